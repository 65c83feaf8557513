package nn

import (
	"math"

	"grange/model"
)

// oracle computes the mean training loss of a network in double precision,
// layer by layer in the plainest way. It shares no code with the engine.
func oracle(spec model.Spec, flat []float64, x []float32, labels []uint8) float64 {
	count := len(labels)
	input := make([]float64, len(x))
	s := spec.Input
	for i := range count {
		for c := range s.Channels {
			for p := range s.Height * s.Width {
				input[i*s.Size()+p*s.Channels+c] = float64(x[i*s.Size()+c*s.Height*s.Width+p])
			}
		}
	}
	values := make([][]float64, len(spec.Layers))
	value := func(i int) []float64 {
		if i == model.Input {
			return input
		}
		return values[i]
	}
	tensor := func(i int) []float64 {
		if i == model.None {
			return nil
		}
		t := spec.Tensors[i]
		return flat[t.Offset : t.Offset+t.Size]
	}
	for i, l := range spec.Layers {
		in := value(l.Inputs[0])
		out := make([]float64, count*l.Out.Size())
		switch l.Kind {
		case model.Dense:
			oracleDense(out, in, tensor(l.Weight), tensor(l.Bias), count)
		case model.Conv:
			oracleConv(out, in, tensor(l.Weight), tensor(l.Bias), l, count)
		case model.BatchNorm:
			oracleNorm(out, in, tensor(l.Weight), tensor(l.Bias))
		case model.ReLU:
			for j, v := range in {
				out[j] = math.Max(v, 0)
			}
		case model.MaxPool:
			oracleWindows(l, count, func(at int, window []int) {
				out[at] = math.Inf(-1)
				for _, from := range window {
					out[at] = math.Max(out[at], in[from])
				}
			})
		case model.AveragePool:
			pixels := l.In.Height * l.In.Width
			for j, v := range in {
				out[j/l.In.Size()*l.In.Channels+j%l.In.Channels] += v / float64(pixels)
			}
		case model.Add:
			for j, v := range value(l.Inputs[1]) {
				out[j] = in[j] + v
			}
		}
		values[i] = out
	}
	logits, loss := values[len(values)-1], 0.0
	for i, label := range labels {
		z, sum := logits[i*spec.Classes:(i+1)*spec.Classes], 0.0
		for _, v := range z {
			sum += math.Exp(v)
		}
		loss += math.Log(sum) - z[label]
	}
	return loss / float64(count)
}

func oracleDense(out, in, weight, bias []float64, count int) {
	inputs, outputs := len(in)/count, len(out)/count
	for i := range count {
		for o := range outputs {
			sum := bias[o]
			for k := range inputs {
				sum += in[i*inputs+k] * weight[k*outputs+o]
			}
			out[i*outputs+o] = sum
		}
	}
}

func oracleConv(out, in, weight, bias []float64, l model.Layer, count int) {
	for at := range out {
		o := at % l.Out.Channels
		x := at / l.Out.Channels % l.Out.Width
		y := at / l.Out.Channels / l.Out.Width % l.Out.Height
		i := at / l.Out.Size()
		if bias != nil {
			out[at] = bias[o]
		}
		for tap := range l.Kernel * l.Kernel {
			row, column := y*l.Stride-l.Padding+tap/l.Kernel, x*l.Stride-l.Padding+tap%l.Kernel
			if row < 0 || row >= l.In.Height || column < 0 || column >= l.In.Width {
				continue
			}
			for c := range l.In.Channels {
				v := in[((i*l.In.Height+row)*l.In.Width+column)*l.In.Channels+c]
				out[at] += v * weight[(tap*l.In.Channels+c)*l.Out.Channels+o]
			}
		}
	}
}

func oracleNorm(out, in, gamma, beta []float64) {
	channels := len(gamma)
	rows := float64(len(in) / channels)
	for c := range channels {
		mean, variance := 0.0, 0.0
		for j := c; j < len(in); j += channels {
			mean += in[j] / rows
		}
		for j := c; j < len(in); j += channels {
			variance += (in[j] - mean) * (in[j] - mean) / rows
		}
		for j := c; j < len(in); j += channels {
			out[j] = gamma[c]*(in[j]-mean)/math.Sqrt(variance+model.Epsilon) + beta[c]
		}
	}
}

// oracleWindows visits each output of a pooling layer with its inputs.
func oracleWindows(l model.Layer, count int, visit func(at int, window []int)) {
	for at := range count * l.Out.Size() {
		c := at % l.Out.Channels
		x := at / l.Out.Channels % l.Out.Width
		y := at / l.Out.Channels / l.Out.Width % l.Out.Height
		i := at / l.Out.Size()
		var window []int
		for tap := range l.Kernel * l.Kernel {
			row, column := y*l.Stride+tap/l.Kernel, x*l.Stride+tap%l.Kernel
			window = append(window, ((i*l.In.Height+row)*l.In.Width+column)*l.In.Channels+c)
		}
		visit(at, window)
	}
}
