package dataset

import (
	"bytes"
	"context"
	"image"
	"testing"
	"testing/fstest"
)

// What a reader accepts must be consistent: that is what check tells.

func FuzzIDX(f *testing.F) {
	f.Add([]byte{0, 0, 8, 3, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 2, 5, 6})
	f.Add([]byte{0, 0, 8, 3, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255})
	f.Fuzz(func(t *testing.T, contents []byte) {
		sizes, data, err := readIDX(bytes.NewReader(contents), "f", 3, newBudget(1<<16))
		if err == nil && len(data) != sizes[0]*sizes[1]*sizes[2] {
			t.Errorf("%d bytes for sizes %v", len(data), sizes)
		}
	})
}

func FuzzCIFARArchive(f *testing.F) {
	_, binary, sheets := synthetic(f)
	f.Add(pack(f, "cifar-10-batches-bin/", binary))
	f.Add(pack(f, "package/", sheets))
	f.Fuzz(func(t *testing.T, contents []byte) {
		files := fstest.MapFS{"f": {Data: contents}}
		data, err := readCIFARFile(context.Background(), smallReader(), files, "f")
		if err == nil && (data.Train.Len() != cifarBatches*smallRecords || data.Test.Len() != smallRecords) {
			t.Errorf("%d and %d images", data.Train.Len(), data.Test.Len())
		}
	})
}

func FuzzCIFARBinary(f *testing.F) {
	_, binary, _ := synthetic(f)
	f.Add(binary["data_batch_1.bin"])
	f.Fuzz(func(t *testing.T, contents []byte) {
		reader := smallReader()
		if err := reader.binary(0)(bytes.NewReader(contents), int64(len(contents)), "f"); err != nil {
			return
		}
		for i, label := range reader.test.Labels {
			if int(label) >= len(cifarClasses) || label != contents[i*3073] {
				t.Errorf("label %d is %d", i, label)
			}
		}
	})
}

func FuzzSheet(f *testing.F) {
	shape := Shape{3, 2, 2}
	f.Add(encode(f, image.NewNRGBA(image.Rect(0, 0, 4, 3))))
	f.Add(encode(f, image.NewRGBA64(image.Rect(0, 0, 4, 3))))
	f.Fuzz(func(t *testing.T, contents []byte) {
		pixels := make([]byte, 3*shape.Size())
		if err := readSheet(bytes.NewReader(contents), "f", shape, 3, pixels); err != nil && len(err.Error()) == 0 {
			t.Error("an error without a message")
		}
	})
}

func FuzzLabels(f *testing.F) {
	f.Add([]byte("[1,2,3]"))
	f.Add([]byte("[1e0,-0,3]"))
	f.Fuzz(func(t *testing.T, contents []byte) {
		labels, err := readLabels(bytes.NewReader(contents), "f", 3, 4)
		if err == nil && (len(labels) != 3 || max(labels[0], labels[1], labels[2]) > 3) {
			t.Errorf("labels %v", labels)
		}
	})
}

func FuzzTable(f *testing.F) {
	f.Add([]byte("label,a,b,c,d\n0,1,2,3,4\n1,5,6,7,8\n"))
	f.Add([]byte("a,label\n255,cat\n0,\"dog\"\n"))
	f.Add([]byte("\ufefflabel,a\n007,1\n7,2\n"))
	f.Fuzz(func(t *testing.T, contents []byte) {
		files := fstest.MapFS{"f.csv": {Data: contents}}
		options, err := Options{}.withDefaults()
		if err != nil {
			t.Fatal(err)
		}
		data, err := readTables(files, "f.csv", "f.csv", options, newBudget(1<<16))
		if err != nil {
			return
		}
		if data.Train.Len() != data.Test.Len() || data.Train.Len()*data.Shape().Size() != len(data.Train.Pixels) {
			t.Errorf("%d and %d images of %v, %d bytes", data.Train.Len(), data.Test.Len(), data.Shape(), len(data.Train.Pixels))
		}
		for _, label := range data.Test.Labels {
			if int(label) >= len(data.Classes) {
				t.Errorf("label %d of %d classes", label, len(data.Classes))
			}
		}
	})
}
