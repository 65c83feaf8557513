package dataset

import (
	"container/heap"
	"math"
	"math/rand/v2"

	"grange/internal/stream"
)

// dealDirichlet draws class proportions for every member and deals points by them, one at a time, always to the member
// that has the smallest part of what it will get. So when a class runs out, it runs out for all members alike; from
// then on the others take its place in their proportions.
func dealDirichlet(labels []uint8, classes int, sizes []int, concentration float64, seed uint64) [][]int32 {
	pools := make([][]int32, classes)
	for i, label := range labels {
		pools[label] = append(pools[label], int32(i))
	}
	for class, pool := range pools {
		random := stream.New(seed, "dataset dirichlet pool", class)
		random.Shuffle(len(pool), func(i, j int) { pool[i], pool[j] = pool[j], pool[i] })
	}
	hands := make([][]int32, len(sizes))
	randoms := make([]*rand.Rand, len(sizes))
	wishes := make([][]float64, len(sizes))
	queue := &needs{sizes: sizes, hands: hands}
	for member, size := range sizes {
		hands[member] = make([]int32, 0, size)
		randoms[member] = stream.New(seed, "dataset dirichlet member", member)
		wishes[member] = proportions(classes, concentration, randoms[member])
		if size > 0 {
			queue.members = append(queue.members, member)
		}
	}
	heap.Init(queue)
	for queue.Len() > 0 {
		member := queue.members[0]
		class := pickClass(wishes[member], pools, randoms[member])
		last := len(pools[class]) - 1
		hands[member] = append(hands[member], pools[class][last])
		pools[class] = pools[class][:last]
		if len(hands[member]) == sizes[member] {
			heap.Pop(queue)
		} else {
			heap.Fix(queue, 0)
		}
	}
	return hands
}

// pickClass picks a class that has points left, by proportions; evenly where the proportions of all that are left are 0.
func pickClass(proportions []float64, pools [][]int32, random *rand.Rand) int {
	total, left := 0.0, 0
	for class, pool := range pools {
		if len(pool) > 0 {
			total += proportions[class]
			left++
		}
	}
	last := -1
	u := random.Float64()
	for class, pool := range pools {
		if len(pool) == 0 {
			continue
		}
		last = class
		if total > 0 {
			u -= proportions[class] / total
		} else {
			u -= 1 / float64(left)
		}
		if u < 0 {
			break
		}
	}
	return last
}

// proportions draws from the symmetric Dirichlet distribution. It works with logarithms, since for small concentrations
// gamma variates are too small for a float64.
func proportions(classes int, concentration float64, random *rand.Rand) []float64 {
	logs := make([]float64, classes)
	largest := math.Inf(-1)
	for i := range logs {
		logs[i] = logGamma(concentration, random)
		largest = max(largest, logs[i])
	}
	total := 0.0
	for i := range logs {
		logs[i] = math.Exp(logs[i] - largest)
		total += logs[i]
	}
	for i := range logs {
		logs[i] /= total
	}
	return logs
}

// logGamma draws the logarithm of a gamma variate of scale 1 by Marsaglia and Tsang's method (ACM Transactions on
// Mathematical Software 26(3), 2000), with their power of a uniform for shapes below 1.
func logGamma(shape float64, random *rand.Rand) float64 {
	if shape < 1 {
		return logGamma(shape+1, random) + math.Log(1-random.Float64())/shape
	}
	d := shape - 1.0/3
	c := 1 / math.Sqrt(9*d)
	for {
		x := random.NormFloat64()
		v := 1 + c*x
		if v <= 0 {
			continue
		}
		v = v * v * v
		if math.Log(1-random.Float64()) < x*x/2+d-d*v+d*math.Log(v) {
			return math.Log(d) + math.Log(v)
		}
	}
}

// needs is a heap of members, the one with the smallest part of its points first, the first in order among equals.
type needs struct {
	members []int
	sizes   []int
	hands   [][]int32
}

func (n *needs) Len() int { return len(n.members) }

func (n *needs) Less(i, j int) bool {
	a, b := n.members[i], n.members[j]
	// len/size compared without division, so that equal parts are equal.
	left, right := int64(len(n.hands[a]))*int64(n.sizes[b]), int64(len(n.hands[b]))*int64(n.sizes[a])
	if left != right {
		return left < right
	}
	return a < b
}

func (n *needs) Swap(i, j int) { n.members[i], n.members[j] = n.members[j], n.members[i] }

func (n *needs) Push(x any) { n.members = append(n.members, x.(int)) }

func (n *needs) Pop() any {
	last := len(n.members) - 1
	member := n.members[last]
	n.members = n.members[:last]
	return member
}
