package dataset_test

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"fmt"
	"image"
	"image/color"
	"image/gif"
	"image/jpeg"
	"image/png"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"grange/dataset"
)

// idx encodes an IDX file.
func idx(data []byte, sizes ...int) []byte {
	out := []byte{0, 0, 8, byte(len(sizes))}
	for _, size := range sizes {
		out = binary.BigEndian.AppendUint32(out, uint32(size))
	}
	return append(out, data...)
}

// compress is gzip.
func compress(t testing.TB, data []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	if _, err := w.Write(data); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// ramp is n bytes that differ from their neighbours.
func ramp(n int) []byte {
	out := make([]byte, n)
	for i := range out {
		out[i] = byte(i*7 + i/251)
	}
	return out
}

func TestOwnIDX(t *testing.T) {
	folder := t.TempDir()
	write(t, folder, "train-images-idx3-ubyte.gz", compress(t, idx(ramp(4*6), 4, 2, 3)))
	write(t, folder, "train-labels-idx1-ubyte", idx([]byte{0, 1, 2, 1}, 4))
	write(t, folder, "t10k-images-idx3-ubyte", idx(ramp(3*6), 3, 2, 3))
	write(t, folder, "t10k-labels-idx1-ubyte.gz", compress(t, idx([]byte{2, 1, 0}, 3)))
	data := open(t, "folder:"+folder)
	shape := dataset.Shape{Channels: 1, Height: 2, Width: 3}
	if diff := cmp.Diff(data.Train, dataset.Images{Shape: shape, Pixels: ramp(24), Labels: []uint8{0, 1, 2, 1}}); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(data.Test, dataset.Images{Shape: shape, Pixels: ramp(18), Labels: []uint8{2, 1, 0}}); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(data.Classes, []string{"0", "1", "2"}); diff != "" {
		t.Error(diff)
	}
}

func TestBadIDX(t *testing.T) {
	images, labels := idx(ramp(4*6), 4, 2, 3), idx([]byte{0, 1, 0, 1}, 4)
	whole := map[string][]byte{
		"train-images-idx3-ubyte": images, "train-labels-idx1-ubyte": labels,
		"test-images-idx3-ubyte": images, "test-labels-idx1-ubyte": labels,
	}
	for _, test := range []struct {
		name, file string
		contents   []byte
		sentinel   error
		words      []string
	}{
		{"truncated", "train-images-idx3-ubyte", images[:30], dataset.ErrCorrupt, []string{"truncated", "14 bytes, expected 24"}},
		{"no header", "train-images-idx3-ubyte", images[:3], dataset.ErrCorrupt, []string{"truncated", "header of 16"}},
		{"empty", "train-labels-idx1-ubyte", nil, dataset.ErrCorrupt, []string{"truncated"}},
		{"longer", "test-images-idx3-ubyte", append(images[:len(images):len(images)], 0), dataset.ErrCorrupt, []string{"more bytes"}},
		{"other magic", "train-images-idx3-ubyte", labels, dataset.ErrCorrupt, []string{"00 00 08 01", "expected 00 00 08 03"}},
		{"huge promise", "train-images-idx3-ubyte", idx(nil, 1<<31, 1<<20, 1<<20), dataset.ErrTooLarge, nil},
		{"large promise", "train-images-idx3-ubyte", idx(nil, 1<<20, 32, 32), dataset.ErrCorrupt, []string{"truncated"}},
		{"no rows", "train-images-idx3-ubyte", idx(nil, 4, 0, 3), dataset.ErrCorrupt, []string{"dimension 2 is 0"}},
		{"fewer labels", "train-labels-idx1-ubyte", idx([]byte{0, 1}, 2), dataset.ErrCorrupt, []string{"2 labels, expected 4"}},
		{"label in test only", "test-labels-idx1-ubyte", idx([]byte{0, 1, 2, 1}, 4), dataset.ErrLabel, []string{"label 2 is 2, expected 0 to 1"}},
		{"class without images", "train-labels-idx1-ubyte", idx([]byte{0, 2, 0, 2}, 4), dataset.ErrEmptyClass, []string{"class 1"}},
		{"one class", "train-labels-idx1-ubyte", idx([]byte{0, 0, 0, 0}, 4), dataset.ErrLabel, nil},
		{"other size", "test-images-idx3-ubyte", idx(ramp(24), 4, 3, 2), dataset.ErrShape, []string{"1×2×3", "1×3×2"}},
		{"bad gzip", "train-images-idx3-ubyte", compress(t, images)[:20], dataset.ErrCorrupt, nil},
		{"bad gzip checksum", "train-images-idx3-ubyte", flipped(compress(t, images), -6), dataset.ErrCorrupt, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			folder := t.TempDir()
			for name, contents := range whole {
				write(t, folder, name, contents)
			}
			write(t, folder, test.file, test.contents)
			failure(t, "folder:"+folder, dataset.Options{}, test.sentinel, append(test.words, folder)...)
		})
	}
}

// flipped returns bytes with one of them changed; negative positions count from the end.
func flipped(data []byte, at int) []byte {
	data = bytes.Clone(data)
	data[(at+len(data))%len(data)] ^= 0x55
	return data
}

func TestDecompressionBomb(t *testing.T) {
	folder := t.TempDir()
	zeros := make([]byte, 64<<20)
	write(t, folder, "train-images-idx3-ubyte.gz", compress(t, idx(zeros, 64, 1<<10, 1<<10)))
	write(t, folder, "train-labels-idx1-ubyte.gz", compress(t, idx(make([]byte, 64), 64)))
	failure(t, "folder:"+folder, dataset.Options{MaxBytes: 16 << 20}, dataset.ErrTooLarge, "train-images-idx3-ubyte.gz")
}

func TestFashionFullCounts(t *testing.T) {
	folder := t.TempDir()
	for _, set := range []string{"train", "t10k"} {
		write(t, folder, set+"-images-idx3-ubyte", idx(ramp(2*784), 2, 28, 28))
		write(t, folder, set+"-labels-idx1-ubyte", idx([]byte{0, 1}, 2))
	}
	failure(t, "fashion-full:"+folder, dataset.Options{}, dataset.ErrCorrupt, "2 images, expected 60000")
	write(t, folder, "train-images-idx3-ubyte", idx(ramp(2*783), 2, 29, 27))
	failure(t, "fashion-full:"+folder, dataset.Options{}, dataset.ErrShape, "1×29×27, expected 1×28×28")
	failure(t, "fashion-full:"+filepath.Join(folder, "train-images-idx3-ubyte"), dataset.Options{}, dataset.ErrMissing, "is a file")
}

// paint makes an image whose pixels depend on k.
func paint(k, width, height int, grey bool) image.Image {
	if grey {
		picture := image.NewGray(image.Rect(0, 0, width, height))
		for i := range picture.Pix {
			picture.Pix[i] = byte(i*5 + k)
		}
		return picture
	}
	picture := image.NewNRGBA(image.Rect(0, 0, width, height))
	for i := range picture.Pix {
		picture.Pix[i] = byte(i*3 + k)
		if i%4 == 3 {
			picture.Pix[i] = 255
		}
	}
	return picture
}

func encodePNG(t testing.TB, picture image.Image) []byte {
	t.Helper()
	var out bytes.Buffer
	if err := png.Encode(&out, picture); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// writeTree writes two classes of n grey images each.
func writeTree(t testing.TB, folder string, n int) {
	for class, name := range []string{"cats", "dogs"} {
		for i := range n {
			write(t, folder, fmt.Sprintf("%s/%02d.png", name, i), encodePNG(t, paint(100*class+i, 4, 3, true)))
		}
	}
}

func TestTree(t *testing.T) {
	folder := t.TempDir()
	writeTree(t, filepath.Join(folder, "train"), 3)
	writeTree(t, filepath.Join(folder, "test"), 2)
	write(t, folder, "train/cats/notes.txt", []byte("hello"))
	write(t, folder, "train/dogs/.hidden", nil)
	write(t, folder, "readme.txt", nil)
	data := open(t, "folder:"+folder)
	if diff := cmp.Diff(data.Classes, []string{"cats", "dogs"}); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(data.Train.Labels, []uint8{0, 0, 0, 1, 1, 1}); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(data.Train.Image(4), paint(101, 4, 3, true).(*image.Gray).Pix); diff != "" {
		t.Error(diff)
	}
	if data.Test.Len() != 4 || data.Shape() != (dataset.Shape{Channels: 1, Height: 3, Width: 4}) {
		t.Errorf("%d test images of %v", data.Test.Len(), data.Shape())
	}
	if len(data.Warnings) != 1 || !strings.Contains(data.Warnings[0], "notes.txt") {
		t.Errorf("warnings %q, expected one about notes.txt", data.Warnings)
	}
}

func TestTreeOfColours(t *testing.T) {
	folder := t.TempDir()
	writeTree(t, folder, 5)
	picture := paint(9, 4, 3, false)
	write(t, folder, "dogs/00.png", encodePNG(t, picture))
	var buffer bytes.Buffer
	if err := jpeg.Encode(&buffer, paint(1, 4, 3, true), nil); err != nil {
		t.Fatal(err)
	}
	write(t, folder, "cats/a.JPG", buffer.Bytes())
	buffer.Reset()
	palette := image.NewPaletted(image.Rect(0, 0, 4, 3), color.Palette{color.Gray{10}, color.Gray{200}})
	if err := gif.Encode(&buffer, palette, nil); err != nil {
		t.Fatal(err)
	}
	write(t, folder, "cats/b.gif", buffer.Bytes())
	data := open(t, "folder:"+folder)
	if data.Shape().Channels != 3 || data.Train.Len()+data.Test.Len() != 12 {
		t.Fatalf("%d and %d images of %v, expected 12 in all with 3 channels", data.Train.Len(), data.Test.Len(), data.Shape())
	}
	want := make([]byte, 36)
	for i := range 12 {
		for c := range 3 {
			want[c*12+i] = picture.(*image.NRGBA).Pix[4*i+c]
		}
	}
	found := 0
	for _, set := range []*dataset.Images{&data.Train, &data.Test} {
		for i := range set.Len() {
			if bytes.Equal(set.Image(i), want) {
				found++
			}
		}
	}
	if found != 1 {
		t.Errorf("the colour image was found %d times, expected once", found)
	}
}

func TestHoldout(t *testing.T) {
	folder := t.TempDir()
	writeTree(t, folder, 10)
	a, b := open(t, "folder:"+folder), open(t, "folder:"+folder)
	if a.Fingerprint() != b.Fingerprint() {
		t.Error("the held-out images differ between two readings")
	}
	if diff := cmp.Diff(a.Test.Counts(2), []int{2, 2}); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(a.Train.Counts(2), []int{8, 8}); diff != "" {
		t.Error(diff)
	}
	if len(a.Warnings) != 1 || !strings.Contains(a.Warnings[0], "4 of the 20 images were held out") {
		t.Errorf("warnings %q", a.Warnings)
	}
}

func TestBadTree(t *testing.T) {
	for _, test := range []struct {
		name     string
		change   func(t *testing.T, folder string)
		sentinel error
		words    []string
	}{
		{"odd size", func(t *testing.T, folder string) {
			write(t, folder, "dogs/01.png", encodePNG(t, paint(1, 3, 4, true)))
		}, dataset.ErrShape, []string{"dogs/01.png is 3×4 pixels, expected 4×3"}},
		{"not an image", func(t *testing.T, folder string) {
			write(t, folder, "dogs/01.png", []byte("hello"))
		}, dataset.ErrCorrupt, []string{"dogs/01.png", "not a PNG, JPEG or GIF"}},
		{"truncated image", func(t *testing.T, folder string) {
			write(t, folder, "dogs/01.png", encodePNG(t, paint(1, 4, 3, true))[:50])
		}, dataset.ErrCorrupt, []string{"dogs/01.png", "cannot be decoded"}},
		{"empty class", func(t *testing.T, folder string) {
			write(t, folder, "eels/readme.txt", nil)
		}, dataset.ErrEmptyClass, []string{"eels"}},
		{"single image", func(t *testing.T, folder string) {
			write(t, folder, "eels/1.png", encodePNG(t, paint(1, 4, 3, true)))
		}, dataset.ErrEmptyClass, []string{"eels", "at least two"}},
		{"link out", func(t *testing.T, folder string) {
			outside := filepath.Join(t.TempDir(), "x.png")
			write(t, filepath.Dir(outside), "x.png", encodePNG(t, paint(1, 4, 3, true)))
			if err := os.Symlink(outside, filepath.Join(folder, "dogs", "02.png")); err != nil {
				t.Fatal(err)
			}
		}, dataset.ErrUnsafe, []string{"dogs/02.png"}},
		{"train without test", func(t *testing.T, folder string) {
			writeTree(t, filepath.Join(folder, "train"), 2)
		}, dataset.ErrMissing, []string{"without a folder test"}},
		{"two layouts", func(t *testing.T, folder string) {
			write(t, folder, "train.csv", []byte("label,p\n0,1\n"))
		}, dataset.ErrCorrupt, []string{"side by side"}},
		{"folder called like an image", func(t *testing.T, folder string) {
			write(t, folder, "dogs/a.png/b.png", nil)
		}, dataset.ErrCorrupt, []string{"dogs/a.png: is a folder"}},
		{"huge image", func(t *testing.T, folder string) {
			write(t, folder, "cats/00.png", encodePNG(t, image.NewGray(image.Rect(0, 0, 5000, 2))))
		}, dataset.ErrShape, []string{"5000×2", "4096"}},
		{"not UTF-8", func(t *testing.T, folder string) {
			write(t, folder, "b\xff/1.png", encodePNG(t, paint(1, 4, 3, true)))
		}, dataset.ErrEncoding, []string{`b\xff`}},
	} {
		t.Run(test.name, func(t *testing.T) {
			folder := t.TempDir()
			writeTree(t, folder, 2)
			test.change(t, folder)
			failure(t, "folder:"+folder, dataset.Options{}, test.sentinel, test.words...)
		})
	}
}

func TestTestClassUnknown(t *testing.T) {
	folder := t.TempDir()
	writeTree(t, filepath.Join(folder, "train"), 2)
	writeTree(t, filepath.Join(folder, "test"), 1)
	write(t, folder, "test/eels/1.png", encodePNG(t, paint(1, 4, 3, true)))
	failure(t, "folder:"+folder, dataset.Options{}, dataset.ErrLabel, "test/eels")
}

func TestTables(t *testing.T) {
	folder := t.TempDir()
	write(t, folder, "train.csv", []byte("\ufeffp1,Label,p2,p3,p4\n1,0,2,3,4\n5,1,6,7,8\n"))
	write(t, folder, "test.csv.gz", compress(t, []byte("label,a,b,c,d\n\"1\",255,0, 9 ,8\n")))
	data := open(t, "folder:"+folder)
	shape := dataset.Shape{Channels: 1, Height: 2, Width: 2}
	if diff := cmp.Diff(data.Train, dataset.Images{Shape: shape, Pixels: []byte{1, 2, 3, 4, 5, 6, 7, 8}, Labels: []uint8{0, 1}}); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(data.Test, dataset.Images{Shape: shape, Pixels: []byte{255, 0, 9, 8}, Labels: []uint8{1}}); diff != "" {
		t.Error(diff)
	}
	if len(data.Warnings) != 1 || !strings.Contains(data.Warnings[0], "no test image of class 0") {
		t.Errorf("warnings %q", data.Warnings)
	}
}

func TestSingleTable(t *testing.T) {
	folder := t.TempDir()
	var text strings.Builder
	text.WriteString("kind,a,b,c\n")
	for i := range 10 {
		fmt.Fprintf(&text, "%s,%d,0,0\n", []string{"wolf", "ant"}[i%2], i)
	}
	write(t, folder, "animals.csv", []byte(text.String()))
	for _, name := range []string{"folder:" + folder, "folder:" + filepath.Join(folder, "animals.csv")} {
		data, err := dataset.Open(t.Context(), name, dataset.Options{LabelColumn: "kind"})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(data.Classes, []string{"ant", "wolf"}); diff != "" {
			t.Error(diff)
		}
		if data.Train.Len() != 8 || data.Test.Len() != 2 || data.Shape() != (dataset.Shape{Channels: 3, Height: 1, Width: 1}) {
			t.Errorf("%d and %d images of %v", data.Train.Len(), data.Test.Len(), data.Shape())
		}
	}
}

func TestBadTables(t *testing.T) {
	for _, test := range []struct {
		name, text string
		sentinel   error
		words      []string
	}{
		{"empty", "", dataset.ErrCorrupt, []string{"no header"}},
		{"no rows", "label,a\n", dataset.ErrCorrupt, []string{"no rows"}},
		{"no label column", "class,a\n0,1\n", dataset.ErrCorrupt, []string{`no column called "label"`, "class,a"}},
		{"two label columns", "label,a,LABEL\n0,1,0\n", dataset.ErrCorrupt, []string{"columns 1 and 3"}},
		{"odd number of values", "label,a,b\n0,1,1\n1,2,2\n", dataset.ErrShape, []string{"2 value columns"}},
		{"value too large", "label,a\n0,1\n1,256\n", dataset.ErrCorrupt, []string{"line 3, column 2", `"256"`, "0 to 255"}},
		{"value not a number", "label,a\n0,x\n", dataset.ErrCorrupt, []string{"line 2, column 2"}},
		{"missing column", "label,a\n0,1\n1\n", dataset.ErrCorrupt, []string{"line 3"}},
		{"no label", "label,a\n,1\n", dataset.ErrLabel, []string{"line 2"}},
		{"label too large", "label,a\n0,1\n256,1\n", dataset.ErrLabel, []string{"label 256"}},
		{"numbers and names", "label,a\n0,1\n0,1\none,2\n", dataset.ErrLabel, []string{`"one"`}},
		{"gap", "label,a\n0,1\n0,1\n2,2\n2,1\n", dataset.ErrEmptyClass, []string{"class 1"}},
		{"label not UTF-8", "label,a\n\xff,1\n", dataset.ErrEncoding, []string{"line 2"}},
		{"header not UTF-8", "label,\xff\n0,1\n", dataset.ErrEncoding, []string{"column 2"}},
		{"open quote", "label,a\n\"0,1\n", dataset.ErrCorrupt, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			folder := t.TempDir()
			write(t, folder, "data.csv", []byte(test.text))
			failure(t, "folder:"+folder, dataset.Options{}, test.sentinel, test.words...)
		})
	}
	folder := t.TempDir()
	write(t, folder, "a.csv", []byte("label,a\n0,1\n1,1\n"))
	write(t, folder, "b.csv", []byte("label,a\n0,1\n1,1\n"))
	failure(t, "folder:"+folder, dataset.Options{}, dataset.ErrCorrupt, "train.csv and test.csv")
	failure(t, "folder:"+filepath.Join(folder, "a.csv"), dataset.Options{Shape: dataset.Shape{Channels: 1, Height: 2, Width: 2}},
		dataset.ErrShape, "expected 4")
	failure(t, "folder:"+filepath.Join(folder, "a.csv"), dataset.Options{MaxBytes: 1}, dataset.ErrTooLarge)
}

// A small file that unpacks to one endless row, header or field takes no more memory than a data set may have.
func TestTableBombs(t *testing.T) {
	const budget = 4 << 20
	for name, text := range map[string]string{
		"header": strings.Repeat(",", 30<<20),
		"row":    "label,a\n0," + strings.Repeat(",", 30<<20),
		"field":  "label,a\n0,\"" + strings.Repeat("1\n", 15<<20),
		"blank":  "label,a\n" + strings.Repeat("\n", 30<<20),
		"label":  longLabels(250, 50<<10),
	} {
		t.Run(name, func(t *testing.T) {
			folder := t.TempDir()
			write(t, folder, "data.csv.gz", compress(t, []byte(text)))
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			failure(t, "folder:"+folder, dataset.Options{MaxBytes: budget}, dataset.ErrTooLarge, "data.csv.gz")
			runtime.ReadMemStats(&after)
			if took := after.TotalAlloc - before.TotalAlloc; took > 4*budget {
				t.Errorf("%d MiB taken in all, with a budget of %d", took>>20, budget>>20)
			}
		})
	}
}

// longLabels is a table of rows whose labels are long and all different.
func longLabels(rows, length int) string {
	var b strings.Builder
	b.WriteString("label,a\n")
	for i := range rows {
		fmt.Fprintf(&b, "%d%s,1\n", i, strings.Repeat("x", length))
	}
	return b.String()
}
