package cli

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// runCount is a flag that takes a whole number from 1 on; 0 when it is not given.
type runCount struct {
	to *int
}

func (c runCount) String() string {
	if c.to == nil || *c.to == 0 {
		return ""
	}
	return strconv.Itoa(*c.to)
}

func (runCount) Type() string { return "int" }

func (c runCount) Set(text string) error {
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		return errors.New("want a whole number ≥ 1")
	}
	*c.to = n
	return nil
}

// numbers is a flag that lists numbers, with commas between them. "none" is an empty list, which is not the default.
type numbers struct {
	list *[]float64
}

func (n numbers) String() string {
	if n.list == nil {
		return ""
	}
	texts := make([]string, len(*n.list))
	for i, x := range *n.list {
		texts[i] = strconv.FormatFloat(x, 'g', -1, 64)
	}
	return strings.Join(texts, ",")
}

func (numbers) Type() string { return "numbers" }

func (n numbers) Set(text string) error {
	*n.list = []float64{}
	if text == "none" {
		return nil
	}
	for part := range strings.SplitSeq(text, ",") {
		x, err := strconv.ParseFloat(strings.TrimSpace(part), 64)
		if err != nil {
			return fmt.Errorf("%q is not a number, and not none", part)
		}
		*n.list = append(*n.list, x)
	}
	return nil
}
