package dataset

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
)

// smallRecords is the number of images per file of the CIFAR-10 made up here.
const smallRecords = 7

// synthetic makes up a small CIFAR-10 and encodes it both ways. The maps and what is in them may be changed.
func synthetic(t testing.TB) (data *Dataset, binary, sheets map[string][]byte) {
	t.Helper()
	made.once.Do(func() { made.data, made.binary, made.sheets = makeSynthetic(t) })
	if made.data == nil {
		t.Fatal("no data")
	}
	copied := func(files map[string][]byte) map[string][]byte {
		files = maps.Clone(files)
		for name := range files {
			files[name] = bytes.Clone(files[name])
		}
		return files
	}
	return made.data, copied(made.binary), copied(made.sheets)
}

// made is what synthetic makes, once.
var made struct {
	once           sync.Once
	data           *Dataset
	binary, sheets map[string][]byte
}

func makeSynthetic(t testing.TB) (data *Dataset, binary, sheets map[string][]byte) {
	t.Helper()
	random := rand.New(rand.NewPCG(1, 2))
	data = &Dataset{Classes: cifarClasses}
	data.Train = newImages(cifarShape, cifarBatches*smallRecords)
	data.Test = newImages(cifarShape, smallRecords)
	binary, sheets = map[string][]byte{}, map[string][]byte{}
	labels := map[string][]int{}
	for batch := range cifarBatches + 1 {
		name, set, first, file := fmt.Sprintf("data_batch_%d", batch), &data.Train, (batch-1)*smallRecords, "train_lables.json"
		if batch == 0 {
			name, set, first, file = "test_batch", &data.Test, 0, "test_lables.json"
		}
		picture := image.NewNRGBA(image.Rect(0, 0, 1024, smallRecords))
		for i := range smallRecords {
			label := random.IntN(10)
			set.Labels[first+i] = uint8(label)
			labels[file] = append(labels[file], label)
			planar := set.Image(first + i)
			for k := range planar {
				planar[k] = byte(random.Uint32())
			}
			binary[name+".bin"] = append(append(binary[name+".bin"], byte(label)), planar...)
			for y := range 32 {
				for x := range 32 {
					at := 32*y + x
					picture.SetNRGBA(at, i, color.NRGBA{planar[at], planar[1024+at], planar[2048+at], 255})
				}
			}
		}
		sheets[name+".png"] = encode(t, picture)
	}
	for file, numbers := range labels {
		text, err := json.Marshal(numbers)
		if err != nil {
			t.Fatal(err)
		}
		sheets[file] = text
	}
	return data, binary, sheets
}

func encode(t testing.TB, picture image.Image) []byte {
	t.Helper()
	var out bytes.Buffer
	if err := png.Encode(&out, picture); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// pack makes a compressed tar archive of files below a folder.
func pack(t testing.TB, folder string, files map[string][]byte) []byte {
	t.Helper()
	var entries []*tar.Header
	for _, name := range slices.Sorted(maps.Keys(files)) {
		entries = append(entries, &tar.Header{Name: folder + name, Typeflag: tar.TypeReg, Size: int64(len(files[name])), Mode: 0o644})
	}
	return packEntries(t, entries, func(header *tar.Header) []byte { return files[strings.TrimPrefix(header.Name, folder)] })
}

func packEntries(t testing.TB, entries []*tar.Header, contents func(*tar.Header) []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	compressed := gzip.NewWriter(&out)
	archive := tar.NewWriter(compressed)
	for _, header := range entries {
		if err := archive.WriteHeader(header); err != nil {
			t.Fatal(err)
		}
		if header.Typeflag == tar.TypeReg {
			if _, err := archive.Write(contents(header)); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := errors.Join(archive.Close(), compressed.Close()); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func smallReader() *cifarReader {
	return &cifarReader{records: smallRecords, memory: newBudget(1 << 20)}
}

// folderOf is a folder of files in memory.
func folderOf(files map[string][]byte) fstest.MapFS {
	folder := fstest.MapFS{}
	for name, contents := range files {
		folder[name] = &fstest.MapFile{Data: contents}
	}
	return folder
}

func TestBothCIFARReaders(t *testing.T) {
	want, binary, sheets := synthetic(t)
	ctx := context.Background()
	archives := fstest.MapFS{
		"binary": {Data: pack(t, "cifar-10-batches-bin/", binary)},
		"sheets": {Data: pack(t, "package/", sheets)},
	}
	for name, read := range map[string]func() (*Dataset, error){
		"binary archive": func() (*Dataset, error) { return readCIFARFile(ctx, smallReader(), archives, "binary") },
		"sheets archive": func() (*Dataset, error) { return readCIFARFile(ctx, smallReader(), archives, "sheets") },
		"binary folder":  func() (*Dataset, error) { return smallReader().readFolder(ctx, folderOf(binary)) },
		"sheets folder":  func() (*Dataset, error) { return smallReader().readFolder(ctx, folderOf(sheets)) },
	} {
		got, err := read()
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

func TestFullSizeIsExpected(t *testing.T) {
	_, binary, _ := synthetic(t)
	files := fstest.MapFS{"cifar-10-binary.tar.gz": {Data: pack(t, "cifar-10-batches-bin/", binary)}}
	_, place, err := readCIFAR(context.Background(), files, newBudget(defaultMaxBytes))
	if !errors.Is(err, ErrCorrupt) || !strings.Contains(err.Error(), "expected 30730000 (10000 records of 3073)") {
		t.Errorf("error %v", err)
	}
	if place != "cifar-10-binary.tar.gz" {
		t.Errorf("read from %q", place)
	}
}

func TestBadCIFAR(t *testing.T) {
	transparent := image.NewNRGBA(image.Rect(0, 0, 1024, smallRecords))
	grey := image.NewGray(image.Rect(0, 0, 1024, smallRecords))
	for _, test := range []struct {
		name, file string
		contents   func(whole []byte) []byte // nil: the file is left out
		sentinel   error
		words      []string
	}{
		{"missing batch", "data_batch_3.bin", nil, ErrMissing, []string{"data_batch_3.bin"}},
		{"truncated batch", "data_batch_3.bin", func(b []byte) []byte { return b[:len(b)-5] }, ErrCorrupt, []string{"21506 bytes, expected 21511"}},
		{"longer batch", "test_batch.bin", func(b []byte) []byte { return append(b, 0) }, ErrCorrupt, []string{"test_batch.bin"}},
		{"label", "data_batch_5.bin", func(b []byte) []byte { b[3073] = 10; return b }, ErrLabel, []string{"record 1 has label 10, expected 0 to 9"}},
		{"missing sheet", "data_batch_2.png", nil, ErrMissing, []string{"data_batch_2.png"}},
		{"truncated sheet", "data_batch_2.png", func(b []byte) []byte { return b[:len(b)/2] }, ErrCorrupt, []string{"data_batch_2.png: cannot be decoded"}},
		{"sheet that is none", "data_batch_2.png", func([]byte) []byte { return []byte("GIF89a") }, ErrCorrupt, []string{"not a PNG"}},
		{"sheet of another size", "test_batch.png", func([]byte) []byte {
			return encode(t, image.NewNRGBA(image.Rect(0, 0, 1024, 8)))
		}, ErrShape, []string{"1024×8 pixels, expected 1024×7"}},
		{"transparent sheet", "test_batch.png", func([]byte) []byte { return encode(t, transparent) }, ErrCorrupt, []string{"transparent"}},
		{"grey sheet", "test_batch.png", func([]byte) []byte { return encode(t, grey) }, ErrCorrupt, []string{"expected 8-bit RGB"}},
		{"sheet too long", "test_batch.png", func(b []byte) []byte { return append(b, make([]byte, 1<<18)...) }, ErrTooLarge, []string{"test_batch.png"}},
		{"labels", "train_lables.json", nil, ErrMissing, []string{"train_lables.json"}},
		{"labels not JSON", "train_lables.json", func([]byte) []byte { return []byte("[1,2") }, ErrCorrupt, []string{"JSON array of 35"}},
		{"label count", "test_lables.json", func([]byte) []byte { return []byte("[1,2]") }, ErrCorrupt, []string{"2 labels, expected 7"}},
		{"label range", "test_lables.json", func([]byte) []byte { return []byte("[1,2,3,4,5,6,-1]") }, ErrLabel, []string{"label 6 is -1"}},
		{"label fraction", "test_lables.json", func([]byte) []byte { return []byte("[1,2,3,4,5,6,0.5]") }, ErrCorrupt, nil},
		{"labels too long", "test_lables.json", func([]byte) []byte { return bytes.Repeat([]byte(" "), 2000) }, ErrTooLarge, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, files, sheets := synthetic(t)
			if !strings.HasSuffix(test.file, ".bin") {
				files = sheets
			}
			if test.contents == nil {
				delete(files, test.file)
			} else {
				files[test.file] = test.contents(files[test.file])
			}
			check := func(how string, err error, sentinel error) {
				t.Helper()
				if !errors.Is(err, sentinel) {
					t.Errorf("%s: error %v, expected %q", how, err, sentinel)
					return
				}
				for _, word := range test.words {
					if !strings.Contains(err.Error(), word) {
						t.Errorf("%s: error does not say %q: %v", how, word, err)
					}
				}
			}
			_, err := smallReader().readFolder(context.Background(), folderOf(files))
			check("folder", err, test.sentinel)
			archived := test.sentinel
			if test.contents == nil {
				archived = ErrCorrupt
			}
			packed := fstest.MapFS{"a.tgz": {Data: pack(t, "package/", files)}}
			_, err = readCIFARFile(context.Background(), smallReader(), packed, "a.tgz")
			check("archive", err, archived)
		})
	}
}

func TestBadArchives(t *testing.T) {
	_, binary, _ := synthetic(t)
	good := pack(t, "x/", binary)
	batch := binary["test_batch.bin"]
	one := func(header tar.Header) []byte {
		if header.Typeflag == 0 {
			header.Typeflag = tar.TypeReg
			header.Size = int64(len(batch))
		}
		return packEntries(t, []*tar.Header{&header}, func(*tar.Header) []byte { return batch })
	}
	for _, test := range []struct {
		name     string
		archive  []byte
		sentinel error
		word     string
	}{
		{"truncated", good[:len(good)/2], ErrCorrupt, "truncated"},
		{"damaged", append(bytes.Clone(good[:1000]), bytes.Repeat([]byte{0xff}, 100)...), ErrCorrupt, "a.tgz"},
		{"empty", nil, ErrCorrupt, "truncated"},
		{"not a tar", []byte(strings.Repeat("hello ", 300)), ErrCorrupt, "tar"},
		{"nothing in it", one(tar.Header{Name: "readme.txt"}), ErrCorrupt, "has no data_batch_1.bin"},
		{"way up", one(tar.Header{Name: "../test_batch.bin"}), ErrUnsafe, "leads out"},
		{"way up inside", one(tar.Header{Name: "a/../../test_batch.bin"}), ErrUnsafe, "leads out"},
		{"absolute", one(tar.Header{Name: "/etc/test_batch.bin"}), ErrUnsafe, "absolute"},
		{"backslash", one(tar.Header{Name: `..\test_batch.bin`}), ErrUnsafe, "backslash"},
		{"not UTF-8", one(tar.Header{Name: "\xff/test_batch.bin", Format: tar.FormatGNU}), ErrEncoding, "UTF-8"},
		{"link", one(tar.Header{Name: "test_batch.bin", Typeflag: tar.TypeSymlink, Linkname: "/etc/passwd"}), ErrUnsafe, "link"},
		{"twice", packEntries(t, []*tar.Header{
			{Name: "a/test_batch.bin", Typeflag: tar.TypeReg, Size: int64(len(batch))},
			{Name: "b/test_batch.bin", Typeflag: tar.TypeReg, Size: int64(len(batch))},
		}, func(*tar.Header) []byte { return batch }), ErrCorrupt, "second file"},
	} {
		t.Run(test.name, func(t *testing.T) {
			files := fstest.MapFS{"a.tgz": {Data: test.archive}}
			_, err := readCIFARFile(context.Background(), smallReader(), files, "a.tgz")
			if !errors.Is(err, test.sentinel) || !strings.Contains(err.Error(), test.word) {
				t.Errorf("error %v, expected %q with %q", err, test.sentinel, test.word)
			}
		})
	}
}

func TestArchiveBombs(t *testing.T) {
	filler := make([]byte, maxBeside+1)
	many := make([]*tar.Header, maxEntries+1)
	for i := range many {
		many[i] = &tar.Header{Name: fmt.Sprint("f", i), Typeflag: tar.TypeReg}
	}
	for name, archive := range map[string][]byte{
		"filler": packEntries(t, []*tar.Header{{Name: "filler", Typeflag: tar.TypeReg, Size: int64(len(filler))}},
			func(*tar.Header) []byte { return filler }),
		"many": packEntries(t, many, func(*tar.Header) []byte { return nil }),
		"large part": packEntries(t, []*tar.Header{{Name: "test_batch.png", Typeflag: tar.TypeReg, Size: int64(len(filler))}},
			func(*tar.Header) []byte { return filler }),
	} {
		files := fstest.MapFS{"a.tgz": {Data: archive}}
		if _, err := readCIFARFile(context.Background(), smallReader(), files, "a.tgz"); !errors.Is(err, ErrTooLarge) {
			t.Errorf("%s: error %v, expected %q", name, err, ErrTooLarge)
		}
	}
}
