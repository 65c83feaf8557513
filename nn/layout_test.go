package nn

import (
	"testing"
	"unsafe"
)

// The assembly reads tile by these offsets (internal/kernelgen/tile.go).
func TestTileLayout(t *testing.T) {
	var o tile
	for name, offsets := range map[string][2]uintptr{
		"a":       {unsafe.Offsetof(o.a), 0},
		"b":       {unsafe.Offsetof(o.b), 24},
		"c":       {unsafe.Offsetof(o.c), 48},
		"bias":    {unsafe.Offsetof(o.bias), 72},
		"aRow":    {unsafe.Offsetof(o.aRow), 96},
		"aDepth":  {unsafe.Offsetof(o.aDepth), 104},
		"depth":   {unsafe.Offsetof(o.depth), 112},
		"cRow":    {unsafe.Offsetof(o.cRow), 120},
		"mode":    {unsafe.Offsetof(o.mode), 128},
		"columns": {unsafe.Offsetof(o.columns), 136},
	} {
		if unsafe.Sizeof(uintptr(0)) == 8 && offsets[0] != offsets[1] {
			t.Errorf("%s is at %d, the assembly expects %d", name, offsets[0], offsets[1])
		}
	}
}
