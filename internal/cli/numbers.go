package cli

import (
	"fmt"
	"strconv"
	"strings"
)

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
