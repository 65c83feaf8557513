package nn

import (
	"fmt"
	"math"

	"grange/model"
)

// crossEntropy returns the summed loss -log softmax(logits)[label]. Where slope
// is not nil it receives the gradient of the mean loss.
func crossEntropy(slope, logits []float32, labels []uint8, classes int) (sum float64) {
	var powers [model.MaxClasses]float64
	for i, label := range labels {
		if int(label) >= classes {
			panic(fmt.Sprintf("nn: label %d of %d classes", label, classes))
		}
		z := logits[i*classes : (i+1)*classes]
		top := float64(z[argmax(z)])
		total := 0.0
		for j, v := range z {
			powers[j] = math.Exp(float64(v) - top)
			total += powers[j]
		}
		sum += math.Log(total) + top - float64(z[label])
		if slope == nil {
			continue
		}
		g := slope[i*classes : (i+1)*classes]
		scale := 1 / (total * float64(len(labels)))
		for j := range g {
			g[j] = float32(powers[j] * scale)
		}
		g[label] -= 1 / float32(len(labels))
	}
	return sum
}

// argmax is the first index of the largest value.
func argmax(values []float32) int {
	best := 0
	for i, v := range values {
		if v > values[best] {
			best = i
		}
	}
	return best
}
