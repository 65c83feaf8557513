package report

import "image/color"

func rgb(hex uint32) color.NRGBA {
	return color.NRGBA{R: uint8(hex >> 16), G: uint8(hex >> 8), B: uint8(hex), A: 0xff}
}

// Okabe and Ito's palette, told apart by readers with any colour vision, and
// two more for the ninth and tenth member.
var palette = []color.NRGBA{
	rgb(0x0072b2), rgb(0xe69f00), rgb(0x009e73), rgb(0xd55e00), rgb(0xcc79a7),
	rgb(0x56b4e9), rgb(0xf0e442), rgb(0x000000), rgb(0x8c510a), rgb(0x999999),
}

// Shades of blue and of orange: members whose value is varied and the others.
var (
	blues   = []color.NRGBA{rgb(0x0b3c6f), rgb(0x2b7bba), rgb(0x7db8e0), rgb(0xbcd9ee)}
	oranges = []color.NRGBA{rgb(0x8f3b00), rgb(0xe07b00), rgb(0xf7b45a), rgb(0xfbd9a8)}
)

// colours gives every member its own, in two families when varied splits the
// members into two small groups.
func colours(members int, varied []bool) []color.NRGBA {
	in, out := 0, 0
	for _, v := range varied {
		if v {
			in++
		} else {
			out++
		}
	}
	grouped := len(varied) == members && in > 0 && out > 0 && in <= len(blues) && out <= len(oranges)
	chosen := make([]color.NRGBA, members)
	in, out = 0, 0
	for n := range chosen {
		switch {
		case !grouped:
			chosen[n] = palette[n%len(palette)]
		case varied[n]:
			chosen[n] = blues[in]
			in++
		default:
			chosen[n] = oranges[out]
			out++
		}
	}
	return chosen
}
