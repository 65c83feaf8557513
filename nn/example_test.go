package nn_test

import (
	"fmt"
	"math/rand/v2"

	"grange/model"
	"grange/nn"
)

// A network learns to tell the brighter half of an image.
func ExampleNetwork_Step() {
	spec, err := model.New("mlp", model.Shape{Channels: 1, Height: 4, Width: 4}, 2)
	if err != nil {
		fmt.Println(err)
		return
	}
	network, err := nn.New(spec, 16, nn.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	random := rand.New(rand.NewPCG(1, 2))
	weights := model.Init(spec, random)
	images, labels := make([]float32, 16*16), make([]uint8, 16)
	for range 100 {
		for i := range labels {
			labels[i] = uint8(random.IntN(2))
			for p := range 16 {
				images[16*i+p] = random.Float32()
				if p/8 == int(labels[i]) {
					images[16*i+p]++
				}
			}
		}
		network.Step(weights, images, labels, nn.SGD{Rate: 0.1})
	}
	correct, _ := network.Evaluate(weights, images, labels)
	fmt.Println(correct, "of", len(labels))
	// Output: 16 of 16
}

func ExampleMultiplier() {
	m, err := nn.NewMultiplier("")
	if err != nil {
		fmt.Println(err)
		return
	}
	c := make([]float32, 4)
	m.Multiply(c, []float32{1, 2, 3, 4}, []float32{0, 1, 1, 0}, 2, 2, 2)
	fmt.Println(c)
	// Output: [2 1 4 3]
}
