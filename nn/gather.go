package nn

import "grange/model"

// gather copies part of the convolution's windows into the engine's block: those
// of rows output pixels from pixel on, and of each window the elements
// from..from+width. It returns them as a matrix of rows×width.
func (o *convOp) gather(n *Network, pixel, rows, from, width int) operand {
	block := n.engine.block
	if o.input == model.Input {
		gatherPlanes(block, n.images, &o.layer, pixel, rows, from, width)
		return operand{block, 1, rows}
	}
	gatherWindows(block, n.values[o.input], &o.layer, pixel, rows, from, width)
	return operand{block, width, 1}
}

// gatherPlanes gathers from planes, in which an element's neighbours along a row
// are the same element of the windows beside it. So it goes element by element
// and, for each, along the rows of pixels: dst[element*rows + pixel].
func gatherPlanes(dst, x []float32, l *model.Layer, pixel, rows, from, width int) {
	for k := from; k < from+width; k++ {
		channel, tap := k%l.In.Channels, k/l.In.Channels
		left := tap%l.Kernel - l.Padding
		seg := dst[(k-from)*rows : (k-from+1)*rows]
		for p := pixel; len(seg) > 0; {
			column, line := p%l.Out.Width, p/l.Out.Width
			row, image := line%l.Out.Height, line/l.Out.Height
			count := min(l.Out.Width-column, len(seg))
			y := row*l.Stride - l.Padding + tap/l.Kernel
			if y < 0 || y >= l.In.Height {
				clear(seg[:count])
			} else {
				plane := x[((image*l.In.Channels+channel)*l.In.Height+y)*l.In.Width:][:l.In.Width]
				gatherLine(seg[:count], plane, column*l.Stride+left, l.Stride)
			}
			seg = seg[count:]
			p += count
		}
	}
}

// gatherLine takes every stride-th element of line from index start on; what is
// outside line is zero.
func gatherLine(dst, line []float32, start, stride int) {
	if stride == 1 {
		low, high := min(max(-start, 0), len(dst)), min(max(len(line)-start, 0), len(dst))
		clear(dst[:low])
		copy(dst[low:high], line[start+low:])
		clear(dst[high:])
		return
	}
	for i := range dst {
		dst[i] = 0
		if at := start + i*stride; at >= 0 && at < len(line) {
			dst[i] = line[at]
		}
	}
}

// gatherWindows gathers from an activation, where a kernel row of a window is
// contiguous: dst[pixel*width + element].
func gatherWindows(dst, x []float32, l *model.Layer, pixel, rows, from, width int) {
	line, wide := l.Kernel*l.In.Channels, l.In.Width*l.In.Channels
	column := pixel % l.Out.Width
	row := pixel / l.Out.Width % l.Out.Height
	image := pixel / (l.Out.Width * l.Out.Height)
	for range rows {
		left := (column*l.Stride - l.Padding) * l.In.Channels
		for k := from; k < from+width; {
			kernelRow := k / line
			start := k - kernelRow*line
			end := min(line, start+from+width-k)
			seg := dst[:end-start]
			dst = dst[end-start:]
			k += end - start
			y := row*l.Stride - l.Padding + kernelRow
			low, high := max(start, -left), min(end, wide-left)
			if y < 0 || y >= l.In.Height || low >= high {
				clear(seg)
				continue
			}
			clear(seg[:low-start])
			base := (image*l.In.Height+y)*wide + left
			copy(seg[low-start:high-start], x[base+low:base+high])
			clear(seg[high-start:])
		}
		if column++; column == l.Out.Width {
			column = 0
			if row++; row == l.Out.Height {
				row = 0
				image++
			}
		}
	}
}

// scatter adds whole windows of rows output pixels from pixel on to x.
func scatter(x, windows []float32, l *model.Layer, pixel, rows int, blend func(dst, x []float32, a, b float32)) {
	line, wide := l.Kernel*l.In.Channels, l.In.Width*l.In.Channels
	for r := range rows {
		p := pixel + r
		column, row := p%l.Out.Width, p/l.Out.Width%l.Out.Height
		image := p / (l.Out.Width * l.Out.Height)
		left := (column*l.Stride - l.Padding) * l.In.Channels
		low, high := max(0, -left), min(line, wide-left)
		for kernelRow := range l.Kernel {
			y := row*l.Stride - l.Padding + kernelRow
			if y < 0 || y >= l.In.Height || low >= high {
				continue
			}
			base := (image*l.In.Height+y)*wide + left
			seg := windows[(r*l.Kernel+kernelRow)*line:]
			blend(x[base+low:base+high], seg[low:high], 1, 1)
		}
	}
}
