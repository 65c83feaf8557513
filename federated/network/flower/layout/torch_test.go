package layout_test

import (
	"encoding/binary"
	"math"
	"testing"

	"grange/federated/network/flower/layout"
	"grange/federated/network/flower/npy"
	"grange/model"
)

// values are the numbers in a file of float32.
func values(t testing.TB, file []byte) []float64 {
	t.Helper()
	header, start, err := npy.Parse(file)
	if err != nil {
		t.Fatal(err)
	}
	list := make([]float64, header.Values())
	for i := range list {
		list[i] = float64(math.Float32frombits(binary.LittleEndian.Uint32(file[start+4*i:])))
	}
	return list
}

// forward computes a network's logits for one image as PyTorch defines its layers: activations are (channel, row, column),
// and every weight is looked up by its name in the list of arrays.
func forward(t testing.TB, s model.Spec, l *layout.Layout, list [][]byte, image []float32) []float64 {
	t.Helper()
	array := func(name string) []float64 {
		if i := l.Find(name); i >= 0 {
			return values(t, list[i])
		}
		return nil
	}
	input := make([]float64, len(image))
	for i, v := range image {
		input[i] = float64(v)
	}
	results := make([][]float64, len(s.Layers))
	for n, layer := range s.Layers {
		x := input
		if layer.Inputs[0] != model.Input {
			x = results[layer.Inputs[0]]
		}
		weight, bias := array(layer.Name+".weight"), array(layer.Name+".bias")
		mean, variance := array(layer.Name+".running_mean"), array(layer.Name+".running_var")
		in, out := layer.In, layer.Out
		y := make([]float64, out.Size())
		for i := range y {
			channel, row, column := i/(out.Height*out.Width), i/out.Width%out.Height, i%out.Width
			switch layer.Kind {
			case model.Dense:
				y[i] = bias[i]
				for j, v := range x {
					y[i] += weight[i*len(x)+j] * v
				}
			case model.Conv:
				if bias != nil {
					y[i] = bias[channel]
				}
				k := layer.Kernel
				for c := range in.Channels {
					for p := range k * k {
						r, q := row*layer.Stride+p/k-layer.Padding, column*layer.Stride+p%k-layer.Padding
						if r >= 0 && r < in.Height && q >= 0 && q < in.Width {
							y[i] += weight[(channel*in.Channels+c)*k*k+p] * x[(c*in.Height+r)*in.Width+q]
						}
					}
				}
			case model.BatchNorm:
				y[i] = (x[i]-mean[channel])/math.Sqrt(variance[channel]+model.Epsilon)*weight[channel] + bias[channel]
			case model.ReLU:
				y[i] = max(0, x[i])
			case model.MaxPool:
				y[i] = math.Inf(-1)
				for p := range layer.Kernel * layer.Kernel {
					r, q := row*layer.Stride+p/layer.Kernel, column*layer.Stride+p%layer.Kernel
					y[i] = max(y[i], x[(channel*in.Height+r)*in.Width+q])
				}
			case model.AveragePool:
				for _, v := range x[i*in.Height*in.Width : (i+1)*in.Height*in.Width] {
					y[i] += v / float64(in.Height*in.Width)
				}
			case model.Add:
				y[i] = x[i] + results[layer.Inputs[1]][i]
			}
		}
		results[n] = y
	}
	return results[len(results)-1]
}
