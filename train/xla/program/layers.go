package program

import (
	"fmt"

	"grange/model"
)

// network writes the layers of one architecture for one batch.
type network struct {
	*text
	spec    model.Spec
	options Options
	weights []value // by tensor, float32; kernels of convolutions as (output, row, column, input)
	present value   // which rows of the batch are images, i1
	count   value   // how many they are, float32

	values []value // activations by layer, in the computing type
	input  value
	// blank says of each layer whether rows without an image are zero.
	blank []bool
	norms map[int]norm
	fresh map[int]value // statistics after the batch, by tensor
}

// norm is what backward needs of a batch normalisation.
type norm struct {
	mean, inverse, scale value
}

func (n *network) computing() element {
	if n.options.Precision == BFloat16 {
		return bf16
	}
	return f32
}

// precision is the attribute for products of two operands.
func (n *network) precision() string {
	if n.options.Precision == Float32 {
		return "precision_config = [#stablehlo<precision HIGHEST>, #stablehlo<precision HIGHEST>]"
	}
	return "precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>]"
}

func (n *network) value(layer int) value {
	if layer == model.Input {
		return n.input
	}
	return n.values[layer]
}

func (n *network) isBlank(layer int) bool { return layer == model.Input || n.blank[layer] }

// clear sets rows without an image to zero.
func (n *network) clear(v value) value {
	return n.where(n.spread(n.present, v.dims, 0), v, n.fill(v.element, 0, v.dims...))
}

// forward writes all layers and returns the logits in float32. Rows of the input without an image must be zero.
func (n *network) forward(input value, train bool) value {
	n.input = input
	n.values = make([]value, len(n.spec.Layers))
	n.blank = make([]bool, len(n.spec.Layers))
	n.norms, n.fresh = map[int]norm{}, map[int]value{}
	var logits value
	for i, l := range n.spec.Layers {
		x := n.value(l.Inputs[0])
		n.blank[i] = n.isBlank(l.Inputs[0])
		switch l.Kind {
		case model.Dense:
			logits = n.dense(l, x)
			n.values[i], n.blank[i] = n.as(n.computing(), logits), false
		case model.Conv:
			n.values[i] = n.convolve(l, x)
			n.blank[i] = n.blank[i] && l.Bias == model.None
		case model.BatchNorm:
			n.values[i], n.blank[i] = n.normalize(i, l, x, train), train
		case model.ReLU:
			n.values[i] = n.maximum(x, n.fill(x.element, 0, x.dims...))
		case model.MaxPool:
			n.values[i] = n.opWith("reduce_window", window(l), []func(){n.binary("maximum", x.element)},
				n.shaped(l), x, n.least(x.element))
		case model.AveragePool:
			area := float64(l.In.Height * l.In.Width)
			sum := n.sum(x, 1, 2)
			mean := n.multiply(sum, n.fill(f32, 1/area, sum.dims...))
			n.values[i] = n.reshape(n.as(n.computing(), mean), sum.dims[0], 1, 1, sum.dims[1])
		case model.Add:
			n.values[i] = n.add(x, n.value(l.Inputs[1]))
			n.blank[i] = n.blank[i] && n.isBlank(l.Inputs[1])
		default:
			panic(fmt.Sprintf("xla: unknown layer %v", l.Kind))
		}
	}
	return n.reshape(logits, n.options.Batch, n.spec.Classes)
}

// shaped is a result of the shape of a layer's output.
func (n *network) shaped(l model.Layer) value {
	return tensor(n.computing(), n.options.Batch, l.Out.Height, l.Out.Width, l.Out.Channels)
}

func (n *network) least(e element) value {
	bits := map[element]string{f32: "0xFF800000", bf16: "0xFF80"}[e]
	return n.op("constant", fmt.Sprintf("value = dense<%s> : tensor<%s>", bits, e), tensor(e))
}

func (n *network) dense(l model.Layer, x value) value {
	flat := n.reshape(x, n.options.Batch, l.In.Size())
	y := n.product(flat, n.as(n.computing(), n.weights[l.Weight]), 1, 0)
	y = n.add(y, n.channels(n.weights[l.Bias], y.dims))
	return n.reshape(y, n.options.Batch, 1, 1, l.Out.Channels)
}

// product multiplies two matrices into float32, summing over dimension i of a and j of b.
func (n *network) product(a, b value, i, j int) value {
	attributes := fmt.Sprintf("dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [%d], "+
		"rhs_contracting_dimensions = [%d]>, %s", i, j, n.precision())
	return n.op("dot_general", attributes, tensor(f32, a.dims[1-i], b.dims[1-j]), a, b)
}

// windows are the numbers of a convolution.
type windows struct {
	stride, low                   int
	high                          [2]int // padding below and to the right
	inputDilation, kernelDilation int
	dimensions                    string
}

func (n *network) convolution(w windows, result, x, kernel value) value {
	attributes := fmt.Sprintf("window_strides = array<i64: %[1]d, %[1]d>, padding = dense<[[%[2]d, %[3]d], [%[2]d, %[4]d]]> : tensor<2x2xi64>, "+
		"lhs_dilation = array<i64: %[5]d, %[5]d>, rhs_dilation = array<i64: %[6]d, %[6]d>, window_reversal = array<i1: false, false>, "+
		"dimension_numbers = #stablehlo.conv<%[7]s>, feature_group_count = 1 : i64, batch_group_count = 1 : i64, ",
		w.stride, w.low, w.high[0], w.high[1], w.inputDilation, w.kernelDilation, w.dimensions)
	return n.op("convolution", attributes+n.precision(), result, x, kernel)
}

func (n *network) convolve(l model.Layer, x value) value {
	w := windows{l.Stride, l.Padding, [2]int{l.Padding, l.Padding}, 1, 1, "[b, 0, 1, f]x[o, 0, 1, i]->[b, 0, 1, f]"}
	y := n.convolution(w, n.shaped(l), x, n.as(n.computing(), n.weights[l.Weight]))
	if l.Bias != model.None {
		y = n.add(y, n.channels(n.as(n.computing(), n.weights[l.Bias]), y.dims))
	}
	return y
}

// normalize writes a batch normalisation. In training mean and variance come from one pass over the batch and are those
// of the images alone. Everything is float32: in bfloat16 a channel whose mean is far from zero would lose its variance.
func (n *network) normalize(i int, l model.Layer, x value, train bool) value {
	vector := []int{l.In.Channels}
	mean, variance := n.weights[l.Mean], n.weights[l.Variance]
	if train {
		if !n.isBlank(l.Inputs[0]) {
			x = n.clear(x)
		}
		rows := n.spread(n.rows(l), vector)
		sum, square := n.moments(x, x)
		mean = n.divide(sum, rows)
		variance = n.subtract(n.divide(square, rows), n.multiply(mean, mean))
		variance = n.maximum(variance, n.fill(f32, 0, vector...))
		n.fresh[l.Mean] = n.moved(n.weights[l.Mean], mean)
		n.fresh[l.Variance] = n.moved(n.weights[l.Variance], variance)
	}
	inverse := n.op("rsqrt", "", tensor(f32, vector...), n.add(variance, n.fill(f32, model.Epsilon, vector...)))
	scale := n.multiply(n.weights[l.Weight], inverse)
	shift := n.subtract(n.weights[l.Bias], n.multiply(scale, mean))
	n.norms[i] = norm{mean, inverse, scale}
	y := n.add(n.multiply(n.as(f32, x), n.channels(scale, x.dims)), n.channels(shift, x.dims))
	y = n.as(n.computing(), y)
	if train {
		y = n.clear(y)
	}
	return y
}

// moments are the sums over each channel of a, and of a·b. They are added up image by image first and then over the
// images, both in one pass: the compiler makes much slower code of one sum over all. The factor between keeps it from
// joining the two.
func (n *network) moments(a, b value) (sum, product value) {
	area := float64(a.dims[1] * a.dims[2])
	first, second := n.as(f32, a), n.as(f32, b)
	parts := []value{first, n.multiply(first, second)}
	scaled := func(v []value, by float64) []value {
		factor := n.fill(f32, by, v[0].dims...)
		return []value{n.multiply(v[0], factor), n.multiply(v[1], factor)}
	}
	parts = scaled(n.sums(scaled(n.sums(parts, 1, 2), 1/area), 0), area)
	return parts[0], parts[1]
}

// rows is how many values of each channel a batch has, as a float32 scalar.
func (n *network) rows(l model.Layer) value {
	return n.multiply(n.count, n.number(f32, float64(l.In.Height*l.In.Width)))
}

// moved is a running statistic after a batch.
func (n *network) moved(old, batch value) value {
	return n.add(n.multiply(old, n.fill(f32, model.Momentum, old.dims...)),
		n.multiply(batch, n.fill(f32, 1-model.Momentum, old.dims...)))
}

// window are the attributes of a maximum over windows.
func window(l model.Layer) string {
	return fmt.Sprintf("window_dimensions = array<i64: 1, %[1]d, %[1]d, 1>, window_strides = array<i64: 1, %[2]d, %[2]d, 1>",
		l.Kernel, l.Stride) + ", padding = dense<0> : tensor<4x2xi64>"
}
