package dataset_test

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"grange/dataset"
)

// cyclic is n labels of so many classes in turn.
func cyclic(n, classes int) []uint8 {
	labels := make([]uint8, n)
	for i := range labels {
		labels[i] = uint8(i % classes)
	}
	return labels
}

func deal(t testing.TB, split dataset.Split, labels []uint8, classes int, sizes []int, seed uint64) *dataset.Partition {
	t.Helper()
	partition, err := split.Deal(labels, classes, sizes, seed)
	if err != nil {
		t.Fatal(err)
	}
	return partition
}

func TestDealProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		classes := rapid.IntRange(2, 12).Draw(t, "classes")
		labels := rapid.SliceOfN(rapid.Uint8Range(0, uint8(classes-1)), 1, 300).Draw(t, "labels")
		seed := rapid.Uint64().Draw(t, "seed")
		split := dataset.Split{}
		if rapid.Bool().Draw(t, "dirichlet") {
			split = dataset.Split{Method: dataset.Dirichlet, Concentration: rapid.Float64Range(1e-6, 1e6).Draw(t, "concentration")}
		}
		left := len(labels)
		var sizes []int
		for range rapid.IntRange(1, 6).Draw(t, "members") {
			size := rapid.IntRange(0, left).Draw(t, "size")
			sizes = append(sizes, size)
			left -= size
		}
		partition, err := split.Deal(labels, classes, sizes, seed)
		if err != nil {
			t.Fatal(err)
		}
		again, err := split.Deal(labels, classes, sizes, seed)
		if err != nil || !cmp.Equal(partition, again) {
			t.Fatalf("the same arguments, another partition (%v)", err)
		}
		owner := map[int32]int{}
		for member, points := range partition.Points {
			if len(points) != sizes[member] {
				t.Fatalf("member %d has %d points, expected %d", member, len(points), sizes[member])
			}
			for _, point := range points {
				if point < 0 || int(point) >= len(labels) {
					t.Fatalf("point %d of %d", point, len(labels))
				}
				if other, taken := owner[point]; taken {
					t.Fatalf("point %d belongs to members %d and %d", point, other, member)
				}
				owner[point] = member
			}
			small := rapid.IntRange(0, sizes[member]).Draw(t, "small")
			large := rapid.IntRange(small, sizes[member]).Draw(t, "large")
			a, errA := partition.Subset(member, small)
			b, errB := partition.Subset(member, large)
			if errA != nil || errB != nil || !slices.Equal(a, b[:small]) {
				t.Fatalf("contribution %d is not part of contribution %d (%v, %v)", small, large, errA, errB)
			}
		}
	})
}

func TestDealErrors(t *testing.T) {
	labels := cyclic(100, 10)
	for _, test := range []struct {
		split dataset.Split
		sizes []int
		words []string
	}{
		{dataset.Split{}, []int{60, 41}, []string{"101 data points", "only 100", "lower their data"}},
		{dataset.Split{}, []int{math.MaxInt, math.MaxInt}, []string{"only 100"}},
		{dataset.Split{}, []int{10, -1}, []string{"member 2 has -1"}},
		{dataset.Split{Method: dataset.Dirichlet}, []int{10}, []string{"concentration is 0"}},
		{dataset.Split{Method: dataset.Dirichlet, Concentration: math.NaN()}, []int{10}, []string{"NaN"}},
		{dataset.Split{Method: dataset.Dirichlet, Concentration: math.Inf(1)}, []int{10}, []string{"Inf"}},
		{dataset.Split{Method: 7}, []int{10}, []string{"method 7"}},
	} {
		_, err := test.split.Deal(labels, 10, test.sizes, 1)
		if !errors.Is(err, dataset.ErrSplit) {
			t.Errorf("%v: error %v, expected %q", test.sizes, err, dataset.ErrSplit)
			continue
		}
		for _, word := range test.words {
			if !strings.Contains(err.Error(), word) {
				t.Errorf("error does not say %q: %v", word, err)
			}
		}
	}
	partition := deal(t, dataset.Split{}, labels, 10, []int{10}, 1)
	for _, bad := range [][2]int{{0, 11}, {0, -1}, {1, 0}, {-1, 0}} {
		if _, err := partition.Subset(bad[0], bad[1]); !errors.Is(err, dataset.ErrContribution) {
			t.Errorf("Subset(%d, %d): error %v", bad[0], bad[1], err)
		}
	}
}

// A uniform split gives every member every class about equally often: each count is hypergeometric, and within five
// standard deviations of its mean in all but one of a million cases.
func TestUniformIsUniform(t *testing.T) {
	labels := cyclic(10_000, 10)
	partition := deal(t, dataset.Split{}, labels, 10, []int{2000, 2000, 2000}, 3)
	for member := range partition.Points {
		for class, count := range classCounts(labels, partition.Points[member], 10) {
			if math.Abs(float64(count)-200) > 5*math.Sqrt(200*0.9*0.8) {
				t.Errorf("member %d has %d points of class %d, expected about 200", member, count, class)
			}
		}
		// So does what it contributes first.
		for class, count := range classCounts(labels, partition.Points[member][:500], 10) {
			if math.Abs(float64(count)-50) > 5*math.Sqrt(50*0.9) {
				t.Errorf("member %d contributes %d points of class %d first, expected about 50", member, count, class)
			}
		}
	}
}

func classCounts(labels []uint8, points []int32, classes int) []int {
	counts := make([]int, classes)
	for _, point := range points {
		counts[labels[point]]++
	}
	return counts
}

// The smaller the concentration, the fewer classes make up a member's data: the expected sum of squared proportions of
// a symmetric Dirichlet distribution over C classes is (α+1)/(Cα+1).
func TestDirichletConcentration(t *testing.T) {
	labels := cyclic(60_000, 10)
	for _, alpha := range []float64{0.05, 0.5, 5, 500} {
		const members = 200
		sizes := slices.Repeat([]int{100}, members)
		partition := deal(t, dataset.Split{Method: dataset.Dirichlet, Concentration: alpha}, labels, 10, sizes, 11)
		mean := 0.0
		for _, points := range partition.Points {
			// The unbiased estimate of the sum of squared proportions from a sample of 100.
			for _, count := range classCounts(labels, points, 10) {
				mean += float64(count) * float64(count-1) / (100 * 99) / members
			}
		}
		want := (alpha + 1) / (10*alpha + 1)
		if math.Abs(mean-want) > 0.1*want {
			t.Errorf("concentration %v: sum of squared proportions %.3f, expected about %.3f", alpha, mean, want)
		}
	}
}

// With all points dealt, every class ends up somewhere, however lopsided the proportions.
func TestDirichletUsesEverything(t *testing.T) {
	labels := cyclic(1000, 10)
	partition := deal(t, dataset.Split{Method: dataset.Dirichlet, Concentration: 1e-3}, labels, 10, []int{500, 500}, 1)
	if n := len(partition.Points[0]) + len(partition.Points[1]); n != 1000 {
		t.Errorf("%d points dealt, expected 1000", n)
	}
}

func TestSizes(t *testing.T) {
	for _, test := range []struct {
		points int
		shares []float64
		want   []int
	}{
		{10, []float64{0.5, 0.5}, []int{5, 5}},
		{10, []float64{1.0 / 3, 1.0 / 3, 1.0 / 3}, []int{4, 3, 3}},
		{100, []float64{0.155, 0.845}, []int{16, 84}},
		{100, []float64{0.1, 0.2}, []int{10, 20}},
		{10, []float64{0, 1}, []int{0, 10}},
		{7, []float64{0.1, 0.1, 0.1}, []int{1, 1, 0}},
		{0, []float64{0.5, 0.5}, []int{0, 0}},
	} {
		got, err := dataset.Sizes(test.points, test.shares)
		if diff := cmp.Diff(got, test.want); err != nil || diff != "" {
			t.Errorf("%d by %v: %v %s", test.points, test.shares, err, diff)
		}
	}
	for _, shares := range [][]float64{{0.6, 0.5}, {-0.1}, {math.NaN()}, {1.5}} {
		if _, err := dataset.Sizes(10, shares); !errors.Is(err, dataset.ErrSplit) {
			t.Errorf("%v: error %v", shares, err)
		}
	}
}

func TestSizesAddUp(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		weights := rapid.SliceOfN(rapid.Float64Range(0.001, 1), 1, 20).Draw(t, "weights")
		points := rapid.IntRange(0, 100_000).Draw(t, "points")
		total := 0.0
		for _, weight := range weights {
			total += weight
		}
		for i := range weights {
			weights[i] /= total
		}
		sizes, err := dataset.Sizes(points, weights)
		if err != nil {
			t.Fatal(err)
		}
		sum := 0
		for i, size := range sizes {
			sum += size
			if math.Abs(float64(size)-weights[i]*float64(points)) > 1+1e-6 {
				t.Fatalf("share %v of %d is %d", weights[i], points, size)
			}
		}
		if sum != points {
			t.Fatalf("sizes add up to %d, expected %d", sum, points)
		}
	})
}

func ExampleSplit_Deal() {
	labels := []uint8{0, 1, 0, 1, 0, 1, 0, 1}
	partition, err := dataset.Split{}.Deal(labels, 2, []int{4, 3}, 1)
	if err != nil {
		fmt.Println(err)
		return
	}
	some, _ := partition.Subset(0, 2)
	more, _ := partition.Subset(0, 3)
	fmt.Println(slices.Equal(some, more[:2]))
	// Output: true
}

func ExampleSizes() {
	sizes, err := dataset.Sizes(10_000, []float64{0.5, 0.3, 0.2})
	fmt.Println(sizes, err)
	// Output: [5000 3000 2000] <nil>
}

func ExampleSplit_Shards() {
	data := &dataset.Dataset{Classes: []string{"no", "yes"}}
	data.Train = dataset.Images{Shape: dataset.Shape{Channels: 1, Height: 1, Width: 1}, Pixels: make([]byte, 8), Labels: []uint8{0, 1, 0, 1, 0, 1, 0, 1}}
	shards, err := dataset.Split{}.Shards(data, []dataset.Holding{
		{Data: 4, Contribution: 3},
		{Data: 4, Contribution: 4, Noise: dataset.Noise{Rate: 1}},
	}, 1)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, shard := range shards {
		fmt.Println(len(shard.Points), "points,", shard.Wrong(&data.Train), "wrong labels")
	}
	// Output:
	// 3 points, 0 wrong labels
	// 4 points, 4 wrong labels
}
