// Package table holds the numbers behind a report as plain tables and writes
// them as CSV and Parquet, so that anybody can check or redraw them.
package table

import (
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"strconv"

	"github.com/parquet-go/parquet-go"
)

// ErrRow is returned for a row that does not fit its table.
var ErrRow = errors.New("table: row does not fit the columns")

// Kind is the type of a column.
type Kind int

const (
	Text Kind = iota
	Integer
	Number
	Boolean
)

// Column is one column. Any cell may be nil: not known.
type Column struct {
	Name string
	Kind Kind
}

// Table is named columns and rows of string, int64, float64, bool or nil.
type Table struct {
	Name    string // becomes the file name
	Columns []Column
	Rows    [][]any
}

// Add appends a row. An int becomes an int64.
func (t *Table) Add(cells ...any) {
	for i, c := range cells {
		if v, ok := c.(int); ok {
			cells[i] = int64(v)
		}
	}
	t.Rows = append(t.Rows, cells)
}

func (t *Table) check() error {
	for r, row := range t.Rows {
		if len(row) != len(t.Columns) {
			return fmt.Errorf("%w: %s row %d has %d cells for %d columns", ErrRow, t.Name, r, len(row), len(t.Columns))
		}
		for i, c := range row {
			ok := c == nil
			switch t.Columns[i].Kind {
			case Text:
				_, is := c.(string)
				ok = ok || is
			case Integer:
				_, is := c.(int64)
				ok = ok || is
			case Number:
				_, is := c.(float64)
				ok = ok || is
			case Boolean:
				_, is := c.(bool)
				ok = ok || is
			}
			if !ok {
				return fmt.Errorf("%w: %s row %d: %v (%T) in column %s", ErrRow, t.Name, r, c, c, t.Columns[i].Name)
			}
		}
	}
	return nil
}

// CSV returns the table as a CSV file with a header. Numbers have every digit;
// what is not known is empty.
func (t *Table) CSV() ([]byte, error) {
	if err := t.check(); err != nil {
		return nil, err
	}
	var out bytes.Buffer
	w := csv.NewWriter(&out)
	var line []string
	for _, c := range t.Columns {
		line = append(line, c.Name)
	}
	w.Write(line)
	for _, row := range t.Rows {
		line = line[:0]
		for _, c := range row {
			line = append(line, text(c))
		}
		w.Write(line)
	}
	w.Flush()
	return out.Bytes(), w.Error()
}

func text(c any) string {
	switch v := c.(type) {
	case string:
		return v
	case int64:
		return strconv.FormatInt(v, 10)
	case float64:
		return strconv.FormatFloat(v, 'g', -1, 64)
	case bool:
		return strconv.FormatBool(v)
	}
	return ""
}

// Parquet returns the table as a Parquet file. Every column is optional.
func (t *Table) Parquet() ([]byte, error) {
	if err := t.check(); err != nil {
		return nil, err
	}
	group := parquet.Group{}
	for _, c := range t.Columns {
		var node parquet.Node
		switch c.Kind {
		case Text:
			node = parquet.String()
		case Integer:
			node = parquet.Leaf(parquet.Int64Type)
		case Number:
			node = parquet.Leaf(parquet.DoubleType)
		case Boolean:
			node = parquet.Leaf(parquet.BooleanType)
		}
		group[c.Name] = parquet.Optional(node)
	}
	schema := parquet.NewSchema(t.Name, group)
	// A group orders its columns by name.
	place := map[string]int{}
	for i, path := range schema.Columns() {
		place[path[0]] = i
	}
	var out bytes.Buffer
	w := parquet.NewGenericWriter[any](&out, schema, parquet.CreatedBy("grange", "", ""))
	for _, row := range t.Rows {
		line := make(parquet.Row, len(row))
		for i, c := range row {
			at := place[t.Columns[i].Name]
			if c == nil {
				line[at] = parquet.NullValue().Level(0, 0, at)
			} else {
				line[at] = parquet.ValueOf(c).Level(0, 1, at)
			}
		}
		if _, err := w.WriteRows([]parquet.Row{line}); err != nil {
			return nil, fmt.Errorf("table: write parquet: %w", err)
		}
	}
	if err := w.Close(); err != nil {
		return nil, fmt.Errorf("table: write parquet: %w", err)
	}
	return out.Bytes(), nil
}
