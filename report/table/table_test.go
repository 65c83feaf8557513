package table

import (
	"bytes"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/parquet-go/parquet-go"
)

func sample() *Table {
	t := &Table{Name: "sample", Columns: []Column{{"rule", Text}, {"points", Integer}, {"accuracy", Number}, {"certified", Boolean}}}
	t.Add("EG", 12, 0.5, true)
	t.Add("say \"LOO\", twice", nil, 1.0/3, false)
	t.Add(nil, int64(7), nil, nil)
	return t
}

func TestCSV(t *testing.T) {
	got, err := sample().CSV()
	if err != nil {
		t.Fatal(err)
	}
	want := "rule,points,accuracy,certified\nEG,12,0.5,true\n\"say \"\"LOO\"\", twice\",,0.3333333333333333,false\n,7,,\n"
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Error(diff)
	}
}

func TestParquetReadsBack(t *testing.T) {
	data, err := sample().Parquet()
	if err != nil {
		t.Fatal(err)
	}
	type row struct {
		Rule      *string  `parquet:"rule,optional"`
		Points    *int64   `parquet:"points,optional"`
		Accuracy  *float64 `parquet:"accuracy,optional"`
		Certified *bool    `parquet:"certified,optional"`
	}
	rows, err := parquet.Read[row](bytes.NewReader(data), int64(len(data)))
	if err != nil {
		t.Fatal(err)
	}
	if len(rows) != 3 || *rows[0].Rule != "EG" || *rows[0].Points != 12 || *rows[0].Accuracy != 0.5 || !*rows[0].Certified {
		t.Errorf("rows %+v", rows)
	}
	if rows[1].Points != nil || *rows[1].Accuracy != 1.0/3 || rows[2].Rule != nil || *rows[2].Points != 7 {
		t.Errorf("rows %+v", rows)
	}
}

func TestRowsMustFit(t *testing.T) {
	for _, row := range [][]any{{"x"}, {1.5, 2, 3.0, true}} {
		tab := sample()
		tab.Add(row...)
		if _, err := tab.CSV(); !errors.Is(err, ErrRow) {
			t.Errorf("%v: %v", row, err)
		}
		if _, err := tab.Parquet(); !errors.Is(err, ErrRow) {
			t.Errorf("%v: %v", row, err)
		}
	}
}
