package nn

import (
	"fmt"

	"grange/model"
)

// plan turns the layers into ops, fusing what a kernel can do in one pass, and
// gives every activation and slope its memory.
func (n *Network) plan() error {
	layers := n.spec.Layers
	consumers := make([][]int, len(layers))
	for i, l := range layers {
		for _, input := range l.Inputs {
			if input >= i || input < model.Input {
				return fmt.Errorf("%w: layer %s reads layer %d, which is not before it", ErrSpec, l.Name, input)
			}
			if input != model.Input {
				consumers[input] = append(consumers[input], i)
			}
		}
	}
	// only returns the sole consumer of layer i if it is of the kind asked for.
	only := func(i int, kind model.Kind) (int, bool) {
		if len(consumers[i]) != 1 || layers[consumers[i][0]].Kind != kind {
			return 0, false
		}
		return consumers[i][0], true
	}
	fused := make([]bool, len(layers))
	for i, l := range layers {
		if fused[i] {
			continue
		}
		output, skip := i, noSkip
		if l.Kind == model.BatchNorm {
			if sum, ok := only(i, model.Add); ok {
				other := layers[sum].Inputs[0] + layers[sum].Inputs[1] - i
				if other < i {
					output, skip = sum, other
					fused[sum] = true
				}
			}
		}
		rectified := false
		if l.Kind == model.Dense || l.Kind == model.Conv || l.Kind == model.BatchNorm {
			if r, ok := only(output, model.ReLU); ok {
				output, rectified = r, true
				fused[r] = true
			}
		}
		if err := n.add(l, output, skip, rectified); err != nil {
			return err
		}
		n.values[output] = make([]float32, n.batch*l.Out.Size())
		if pool, ok := only(output, model.MaxPool); ok && rectified && l.Kind == model.Conv {
			n.ops[len(n.ops)-1].(*convOp).gated = true
			fused[pool] = true
			n.ops = append(n.ops, &poolOp{layer: layers[pool], input: output, output: pool, positive: true})
			n.values[pool] = make([]float32, n.batch*layers[pool].Out.Size())
		}
	}
	return n.planSlopes()
}

// add appends the op of layer l, whose result is that of layer output.
func (n *Network) add(l model.Layer, output, skip int, rectified bool) error {
	e, input := n.engine, l.Inputs[0]
	switch l.Kind {
	case model.Dense:
		n.ops = append(n.ops, &denseOp{
			input: input, output: output, weight: l.Weight, bias: l.Bias,
			inputs: l.In.Size(), outputs: l.Out.Channels, rectified: rectified,
		})
		e.reserve(l.In.Size(), l.Out.Channels)
		e.reserve(l.Out.Channels, l.In.Size())
		e.reserve(n.batch, l.Out.Channels)
	case model.Conv:
		o := &convOp{layer: l, input: input, output: output, rectified: rectified}
		n.ops = append(n.ops, o)
		e.reserve(o.depth(), l.Out.Channels)
		e.reserve(l.Out.Channels, o.depth())
		e.reserve(gradientDepth, l.Out.Channels)
		if need := o.windowRows(e) * o.depth(); need > len(e.windows) {
			e.windows = make([]float32, need)
		}
	case model.BatchNorm:
		o := newNormOp(l)
		o.input, o.output, o.skip, o.rectified = input, output, skip, rectified
		n.ops = append(n.ops, o)
		if need := 2 * l.In.Channels; need > len(e.channel) {
			e.channel, e.totals = make([]float32, need), make([]float64, need)
		}
	case model.ReLU:
		n.ops = append(n.ops, &rectifyOp{input: input, output: output, size: l.Out.Size()})
	case model.MaxPool:
		n.ops = append(n.ops, &poolOp{layer: l, input: input, output: output})
	case model.AveragePool:
		n.ops = append(n.ops, &averageOp{layer: l, input: input, output: output})
	case model.Add:
		n.ops = append(n.ops, &addOp{first: input, second: l.Inputs[1], output: output, size: l.Out.Size()})
	default:
		return fmt.Errorf("%w: layer %s is of unknown kind %d", ErrSpec, l.Name, l.Kind)
	}
	return nil
}

// planSlopes goes through the ops backwards, as training will, and lends each
// slope a buffer from its first contribution until it has been used.
func (n *Network) planSlopes() error {
	var free [][]float32
	lend := func(i int) {
		size, best := len(n.values[i]), -1
		for j, buffer := range free {
			if cap(buffer) >= size && (best < 0 || cap(buffer) < cap(free[best])) {
				best = j
			}
		}
		if best < 0 {
			n.slopes[i] = make([]float32, size)
			return
		}
		n.slopes[i] = free[best][:size]
		free = append(free[:best], free[best+1:]...)
	}
	lend(len(n.spec.Layers) - 1)
	for i := len(n.ops) - 1; i >= 0; i-- {
		output, inputs := n.ops[i].ends()
		if n.slopes[output] == nil {
			return fmt.Errorf("%w: nothing uses layer %s", ErrSpec, n.spec.Layers[output].Name)
		}
		lent := false
		if o, ok := n.ops[i].(*normOp); ok && o.skip >= 0 && n.slopes[o.skip] == nil &&
			o.input != o.skip && (o.input == model.Input || n.slopes[o.input] == nil) {
			o.handOver, lent = true, true
			n.slopes[o.skip] = n.slopes[output]
		}
		for _, input := range inputs {
			if input >= 0 && n.slopes[input] == nil {
				lend(input)
			}
		}
		if !lent {
			free = append(free, n.slopes[output])
		}
	}
	return nil
}

func (d *denseOp) ends() (int, []int)   { return d.output, []int{d.input} }
func (o *convOp) ends() (int, []int)    { return o.output, []int{o.input} }
func (o *normOp) ends() (int, []int)    { return o.output, []int{o.input, o.skip} }
func (o *rectifyOp) ends() (int, []int) { return o.output, []int{o.input} }
func (o *poolOp) ends() (int, []int)    { return o.output, []int{o.input} }
func (o *averageOp) ends() (int, []int) { return o.output, []int{o.input} }
func (o *addOp) ends() (int, []int)     { return o.output, []int{o.first, o.second} }

// part is the gradient of tensor i of w.
func (n *Network) part(w *model.Weights, i int) []float32 {
	t := &w.Tensors()[i]
	return n.gradient[t.Offset : t.Offset+t.Size]
}
