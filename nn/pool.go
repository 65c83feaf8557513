package nn

import "grange/model"

// poolOp is a maximum over windows. Where the layer below is rectified and
// feeds nothing else, its rectifier's gradient is taken here.
type poolOp struct {
	layer         model.Layer
	input, output int
	positive      bool
}

// halves reports whether the windows are the 2×2 ones that kernels know.
func (o *poolOp) halves() bool { return o.layer.Kernel == 2 && o.layer.Stride == 2 }

func (o *poolOp) forward(n *Network, _ *model.Weights, count int, _ bool) {
	l := &o.layer
	x, y := n.value(o.input), n.values[o.output]
	in, out := l.In.Width*l.In.Channels, l.Out.Width*l.Out.Channels
	for i := range count {
		for row := range l.Out.Height {
			from := x[(i*l.In.Height+row*l.Stride)*in:]
			to := y[(i*l.Out.Height+row)*out:][:out]
			if o.halves() {
				n.engine.pool(to, from[:in], from[in:2*in], l.In.Channels)
				continue
			}
			for j := range to {
				to[j] = from[o.largest(from, j)]
			}
		}
	}
}

// largest is the index in from, which starts at the window's first row, of the
// first largest element of the window that gives element j of an output row.
func (o *poolOp) largest(from []float32, j int) int {
	l := &o.layer
	channels := l.In.Channels
	corner := j/channels*l.Stride*channels + j%channels
	best := corner
	for r := range l.Kernel {
		for c := range l.Kernel {
			at := corner + (r*l.In.Width+c)*channels
			if from[at] > from[best] {
				best = at
			}
		}
	}
	return best
}

func (o *poolOp) backward(n *Network, _ *model.Weights, count int) {
	if o.input == model.Input {
		return
	}
	l := &o.layer
	x, y := n.value(o.input), n.values[o.output]
	slope, dx := n.slopes[o.output], n.slopes[o.input][:count*l.In.Size()]
	accumulated := n.start(o.input)
	fast := o.halves() && !accumulated
	covered := fast && l.In.Height == 2*l.Out.Height && l.In.Width == 2*l.Out.Width
	if !accumulated && !covered {
		clear(dx)
	}
	in, out := l.In.Width*l.In.Channels, l.Out.Width*l.Out.Channels
	for i := range count {
		for row := range l.Out.Height {
			base := (i*l.In.Height + row*l.Stride) * in
			from, to := x[base:], dx[base:]
			at := (i*l.Out.Height + row) * out
			if fast {
				n.engine.unpool(to[:in], to[in:2*in], from[:in], from[in:2*in],
					y[at:at+out], slope[at:at+out], l.In.Channels, o.positive)
				continue
			}
			for j, s := range slope[at : at+out] {
				if best := o.largest(from, j); !o.positive || from[best] > 0 {
					to[best] += s
				}
			}
		}
	}
}

// averageOp is the mean over each channel's image.
type averageOp struct {
	layer         model.Layer
	input, output int
}

func (o *averageOp) forward(n *Network, _ *model.Weights, count int, _ bool) {
	channels, size := o.layer.In.Channels, o.layer.In.Size()
	x, y := n.value(o.input), n.values[o.output]
	clear(y[:count*channels])
	for i := range count {
		n.engine.sums(y[i*channels:(i+1)*channels], x[i*size:(i+1)*size], size/channels)
	}
	scale := float32(channels) / float32(size)
	for i := range y[:count*channels] {
		y[i] *= scale
	}
}

func (o *averageOp) backward(n *Network, _ *model.Weights, count int) {
	if o.input == model.Input {
		return
	}
	channels, size := o.layer.In.Channels, o.layer.In.Size()
	slope, dx := n.slopes[o.output], n.slopes[o.input]
	keep := float32(0)
	if n.start(o.input) {
		keep = 1
	} else {
		clear(dx[:count*size])
	}
	scale := float32(channels) / float32(size)
	for i := range count {
		from := slope[i*channels : (i+1)*channels]
		for p := 0; p < size; p += channels {
			n.engine.blend(dx[i*size+p:i*size+p+channels], from, keep, scale)
		}
	}
}
