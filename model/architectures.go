package model

import "fmt"

// buildSoftmax is multinomial logistic regression.
func buildSoftmax(b *Builder, classes int) {
	b.Dense("output", Input, classes)
}

// buildMLP is a perceptron with two hidden layers of 200, as in McMahan et
// al.'s FedAvg paper.
func buildMLP(b *Builder, classes int) {
	x := b.Dense("hidden1", Input, 200)
	x = b.ReLU("relu1", x)
	x = b.Dense("hidden2", x, 200)
	x = b.ReLU("relu2", x)
	b.Dense("output", x, classes)
}

// buildCNN is a small convolutional network: two 3×3 convolutions, each halved
// by pooling, and one hidden layer.
func buildCNN(b *Builder, classes int) {
	x := b.Conv("conv1", Input, 32, 3, 1, 1, true)
	x = b.ReLU("relu1", x)
	x = b.MaxPool("pool1", x, 2, 2)
	x = b.Conv("conv2", x, 64, 3, 1, 1, true)
	x = b.ReLU("relu2", x)
	x = b.MaxPool("pool2", x, 2, 2)
	x = b.Dense("hidden", x, 128)
	x = b.ReLU("relu3", x)
	b.Dense("output", x, classes)
}

// buildResNet18 is ResNet-18 as used for CIFAR: a 3×3 stem without pooling and
// four stages of two basic blocks. With 10 classes and 3 channels it has
// 11,173,962 parameters.
func buildResNet18(b *Builder, classes int) {
	x := b.Conv("stem.conv", Input, 64, 3, 1, 1, false)
	x = b.BatchNorm("stem.norm", x)
	x = b.ReLU("stem.relu", x)
	for stage, width := range []int{64, 128, 256, 512} {
		for block := range 2 {
			stride := 1
			if stage > 0 && block == 0 {
				stride = 2
			}
			name := fmt.Sprintf("stage%d.block%d", stage+1, block+1)
			x = basicBlock(b, name, x, width, stride)
		}
	}
	x = b.AveragePool("pool", x)
	b.Dense("output", x, classes)
}

// basicBlock is two 3×3 convolutions around which the input is carried by an
// identity, or by a 1×1 convolution where the shape changes.
func basicBlock(b *Builder, name string, input, width, stride int) int {
	x := b.Conv(name+".conv1", input, width, 3, stride, 1, false)
	x = b.BatchNorm(name+".norm1", x)
	x = b.ReLU(name+".relu1", x)
	x = b.Conv(name+".conv2", x, width, 3, 1, 1, false)
	x = b.BatchNorm(name+".norm2", x)
	carried := input
	if stride != 1 {
		carried = b.Conv(name+".carry", input, width, 1, stride, 0, false)
		carried = b.BatchNorm(name+".carrynorm", carried)
	}
	x = b.Add(name+".add", x, carried)
	return b.ReLU(name+".relu2", x)
}
