package npy

import (
	"fmt"
	"strconv"
	"strings"
)

// description reads the dictionary that describes an array, which is written as Python would print it:
//
//	{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }
type description struct {
	text string
}

func parseDescription(text []byte) (Header, error) {
	var h Header
	p := &description{strings.TrimRight(string(text), " \n")}
	if !p.take("{") {
		return h, p.wrong("a dictionary")
	}
	seen := map[string]bool{}
	for !p.take("}") {
		key, ok := p.quoted()
		if !ok || seen[key] || !p.take(":") {
			return h, p.wrong("descr, fortran_order and shape, once each")
		}
		seen[key] = true
		var err error
		switch key {
		case "descr":
			h.Type, err = p.kind()
		case "fortran_order":
			h.Fortran, err = p.boolean()
		case "shape":
			h.Shape, err = p.shape()
		default:
			err = p.wrong("descr, fortran_order and shape")
		}
		if err != nil {
			return h, err
		}
		if !p.take(",") && !strings.HasPrefix(p.text, "}") {
			return h, p.wrong("a comma")
		}
	}
	if p.text != "" || len(seen) != 3 {
		return h, p.wrong("descr, fortran_order and shape, and nothing else")
	}
	return h, nil
}

func (p *description) wrong(expected string) error {
	return fmt.Errorf("%w: its description has %.40q, expected %s", ErrFormat, p.text, expected)
}

// take moves past a word and the blanks around it.
func (p *description) take(word string) bool {
	rest, ok := strings.CutPrefix(strings.TrimLeft(p.text, " "), word)
	if ok {
		p.text = strings.TrimLeft(rest, " ")
	}
	return ok
}

func (p *description) quoted() (string, bool) {
	for _, quote := range []string{"'", `"`} {
		if rest, ok := strings.CutPrefix(p.text, quote); ok {
			word, rest, closed := strings.Cut(rest, quote)
			p.text = strings.TrimLeft(rest, " ")
			return word, closed && !strings.Contains(word, `\`)
		}
	}
	return "", false
}

func (p *description) boolean() (bool, error) {
	switch {
	case p.take("False"):
		return false, nil
	case p.take("True"):
		return true, nil
	}
	return false, p.wrong("True or False")
}

func (p *description) kind() (Type, error) {
	var t Type
	before := *p
	word, ok := p.quoted()
	if !ok || len(word) < 3 || !strings.Contains("<>|", word[:1]) {
		return t, before.wrong("a type of numbers")
	}
	size, err := strconv.Atoi(word[2:])
	t = Type{Kind: word[1], Size: size, Big: word[0] == '>'}
	if err != nil || !t.known() || word[0] == '|' && size != 1 {
		return t, before.wrong("a type of numbers: float16, float32, float64, an integer or bool")
	}
	if size == 1 {
		t.Big = false
	}
	return t, nil
}

func (p *description) shape() ([]int, error) {
	if !p.take("(") {
		return nil, p.wrong("a shape")
	}
	shape, values := []int{}, 1
	for !p.take(")") {
		digits := 0
		for digits < len(p.text) && p.text[digits] >= '0' && p.text[digits] <= '9' {
			digits++
		}
		side, err := strconv.Atoi(p.text[:digits])
		if err != nil || len(shape) == maxDimensions {
			return nil, p.wrong("the sides of the array")
		}
		if side > 0 && values > maxValues/side {
			return nil, fmt.Errorf("%w: its shape is too large", ErrFormat)
		}
		values *= max(1, side)
		shape = append(shape, side)
		p.text = strings.TrimLeft(p.text[digits:], " ")
		if !p.take(",") && (len(shape) == 1 || !strings.HasPrefix(p.text, ")")) {
			return nil, p.wrong("a comma")
		}
	}
	return shape, nil
}
