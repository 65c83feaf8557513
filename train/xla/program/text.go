package program

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// element is the type of a tensor's elements, as StableHLO writes it.
type element string

const (
	f32  element = "f32"
	bf16 element = "bf16"
	i32  element = "i32"
	u8   element = "ui8"
	i1   element = "i1"
)

// value is a result of an operation or an argument of a block.
type value struct {
	name    string
	element element
	dims    []int
}

// typ is the value's type as StableHLO writes it.
func (v value) typ() string {
	var b strings.Builder
	b.WriteString("tensor<")
	for _, n := range v.dims {
		b.WriteString(strconv.Itoa(n))
		b.WriteByte('x')
	}
	b.WriteString(string(v.element))
	b.WriteByte('>')
	return b.String()
}

// like is a value without a name, for a result of v's shape.
func (v value) like() value { return value{element: v.element, dims: v.dims} }

// tensor is a value without a name, for a result.
func tensor(e element, dims ...int) value { return value{element: e, dims: dims} }

// text writes a module in the generic syntax of MLIR, which is the same in every version of StableHLO.
type text struct {
	strings.Builder
	names int
}

func (t *text) name() string {
	t.names++
	return "%v" + strconv.Itoa(t.names)
}

// op writes an operation with one result, shaped like result.
func (t *text) op(name, attributes string, result value, operands ...value) value {
	return t.opWith(name, attributes, nil, result, operands...)
}

// opWith is op with regions.
func (t *text) opWith(name, attributes string, regions []func(), result value, operands ...value) value {
	result.name = t.name()
	result.dims = slices.Clone(result.dims)
	fmt.Fprintf(t, "%s = ", result.name)
	t.call(name, attributes, regions, operands)
	fmt.Fprintf(t, " -> %s\n", result.typ())
	return result
}

// call writes an operation up to its operands' types.
func (t *text) call(name, attributes string, regions []func(), operands []value) {
	fmt.Fprintf(t, "\"stablehlo.%s\"(%s)", name, join(operands, func(v value) string { return v.name }))
	if regions != nil {
		t.WriteString(" (")
		for i, region := range regions {
			if i > 0 {
				t.WriteString(", ")
			}
			t.WriteString("{\n")
			region()
			t.WriteString("}")
		}
		t.WriteString(")")
	}
	if attributes != "" {
		fmt.Fprintf(t, " {%s}", attributes)
	}
	fmt.Fprintf(t, " : (%s)", join(operands, value.typ))
}

// loop writes a loop that carries values, and returns them after it.
func (t *text) loop(carried []value, condition func([]value) value, body func([]value) []value) []value {
	block := func(write func(arguments []value) []value) func() {
		return func() {
			arguments := slices.Clone(carried)
			for i := range arguments {
				arguments[i].name = t.name()
			}
			fmt.Fprintf(t, "^bb0(%s):\n", join(arguments, func(v value) string { return v.name + ": " + v.typ() }))
			t.leave(write(arguments)...)
		}
	}
	name := t.name()
	fmt.Fprintf(t, "%s:%d = ", name, len(carried))
	t.call("while", "", []func(){
		block(func(a []value) []value { return []value{condition(a)} }),
		block(body),
	}, carried)
	fmt.Fprintf(t, " -> (%s)\n", join(carried, value.typ))
	results := slices.Clone(carried)
	for i := range results {
		results[i].name = fmt.Sprintf("%s#%d", name, i)
	}
	return results
}

// leave ends a region.
func (t *text) leave(values ...value) {
	t.call("return", "", nil, values)
	t.WriteString(" -> ()\n")
}

func (t *text) add(a, b value) value      { return t.op("add", "", a.like(), a, b) }
func (t *text) subtract(a, b value) value { return t.op("subtract", "", a.like(), a, b) }
func (t *text) multiply(a, b value) value { return t.op("multiply", "", a.like(), a, b) }
func (t *text) divide(a, b value) value   { return t.op("divide", "", a.like(), a, b) }
func (t *text) maximum(a, b value) value  { return t.op("maximum", "", a.like(), a, b) }

// where is a where the condition holds, and b elsewhere.
func (t *text) where(condition, a, b value) value {
	return t.op("select", "", a.like(), condition, a, b)
}

// compare compares element by element; direction is EQ, LT, GT or GE.
func (t *text) compare(direction string, a, b value) value {
	return t.op("compare", "comparison_direction = #stablehlo<comparison_direction "+direction+">", tensor(i1, a.dims...), a, b)
}

// as converts elements.
func (t *text) as(e element, v value) value {
	if v.element == e {
		return v
	}
	return t.op("convert", "", tensor(e, v.dims...), v)
}

// number is a scalar.
func (t *text) number(e element, x float64) value {
	literal := strconv.FormatFloat(x, 'e', 9, 32)
	if e == i32 {
		literal = strconv.Itoa(int(x))
	}
	v := tensor(e)
	return t.op("constant", fmt.Sprintf("value = dense<%s> : %s", literal, v.typ()), v)
}

// fill is a tensor of one number.
func (t *text) fill(e element, x float64, dims ...int) value { return t.spread(t.number(e, x), dims) }

// spread repeats v; its own dimensions become the given ones of the result.
func (t *text) spread(v value, dims []int, to ...int) value {
	return t.op("broadcast_in_dim", "broadcast_dimensions = "+integers(to), tensor(v.element, dims...), v)
}

// channels spreads a vector over the last dimension.
func (t *text) channels(v value, dims []int) value { return t.spread(v, dims, len(dims)-1) }

func (t *text) reshape(v value, dims ...int) value {
	return t.op("reshape", "", tensor(v.element, dims...), v)
}

// transpose puts dimensions in another order: the i-th of the result is the given one of v.
func (t *text) transpose(v value, order ...int) value {
	result := tensor(v.element)
	for _, i := range order {
		result.dims = append(result.dims, v.dims[i])
	}
	return t.op("transpose", "permutation = "+integers(order), result, v)
}

// iota counts along a dimension.
func (t *text) iota(e element, along int, dims ...int) value {
	return t.op("iota", fmt.Sprintf("iota_dimension = %d : i64", along), tensor(e, dims...))
}

// reduce folds dimensions with "add", "maximum" or "minimum", from a scalar.
func (t *text) reduce(with string, v, from value, over ...int) value {
	result := tensor(v.element)
	for i, n := range v.dims {
		if !slices.Contains(over, i) {
			result.dims = append(result.dims, n)
		}
	}
	return t.opWith("reduce", "dimensions = "+integers(over), []func(){t.binary(with, v.element)}, result, v, from)
}

// binary is a region that combines two scalars.
func (t *text) binary(with string, e element) func() {
	return func() {
		a, b := value{t.name(), e, nil}, value{t.name(), e, nil}
		fmt.Fprintf(t, "^bb0(%s: %s, %s: %s):\n", a.name, a.typ(), b.name, b.typ())
		if with == "GE" {
			t.leave(t.compare(with, a, b))
			return
		}
		t.leave(t.op(with, "", a.like(), a, b))
	}
}

// sum adds up dimensions in float32.
func (t *text) sum(v value, over ...int) value {
	return t.reduce("add", t.as(f32, v), t.number(f32, 0), over...)
}

// sums adds up dimensions of two float32 tensors of one shape, in one pass.
func (t *text) sums(v []value, over ...int) []value {
	zero := t.number(f32, 0)
	result := tensor(f32)
	for i, n := range v[0].dims {
		if !slices.Contains(over, i) {
			result.dims = append(result.dims, n)
		}
	}
	name := t.name()
	fmt.Fprintf(t, "%s:2 = ", name)
	t.call("reduce", "dimensions = "+integers(over), []func(){func() {
		var of [4]value
		for i := range of {
			of[i] = value{t.name(), f32, nil}
		}
		fmt.Fprintf(t, "^bb0(%s):\n", join(of[:], func(v value) string { return v.name + ": " + v.typ() }))
		t.leave(t.add(of[0], of[2]), t.add(of[1], of[3]))
	}}, []value{v[0], v[1], zero, zero})
	fmt.Fprintf(t, " -> (%[1]s, %[1]s)\n", result.typ())
	results := []value{result, result}
	for i := range results {
		results[i].name = fmt.Sprintf("%s#%d", name, i)
	}
	return results
}

// row takes row i, a scalar, of a tensor; the row keeps a first dimension of 1.
func (t *text) row(v, i value) value {
	starts := []value{v, i}
	zero := t.number(i32, 0)
	sizes := slices.Clone(v.dims)
	sizes[0] = 1
	for range len(v.dims) - 1 {
		starts = append(starts, zero)
	}
	return t.op("dynamic_slice", "slice_sizes = "+integers(sizes), tensor(v.element, sizes...), starts...)
}

// part takes elements from…to of a vector and gives them a shape.
func (t *text) part(v value, from, to int, dims []int) value {
	attributes := fmt.Sprintf("start_indices = array<i64: %d>, limit_indices = array<i64: %d>, strides = array<i64: 1>", from, to)
	return t.reshape(t.op("slice", attributes, tensor(v.element, to-from), v), dims...)
}

// join writes values with commas.
func join(values []value, write func(value) string) string {
	parts := make([]string, len(values))
	for i, v := range values {
		parts[i] = write(v)
	}
	return strings.Join(parts, ", ")
}

// integers writes an array attribute.
func integers(values []int) string {
	if len(values) == 0 {
		return "array<i64>"
	}
	parts := make([]string, len(values))
	for i, n := range values {
		parts[i] = strconv.Itoa(n)
	}
	return "array<i64: " + strings.Join(parts, ", ") + ">"
}
