package dataset_test

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"grange/dataset"
)

func noisy(t testing.TB, noise dataset.Noise, labels []uint8, points []int32, classes int, seed uint64, member int) []uint8 {
	t.Helper()
	got, err := noise.Labels(labels, points, classes, seed, member)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// upTo is the points 0 to n-1.
func upTo(n int) []int32 {
	points := make([]int32, n)
	for i := range points {
		points[i] = int32(i)
	}
	return points
}

// uniformMatrix is the transition matrix that does what a rate does.
func uniformMatrix(rate float64, classes int) [][]float64 {
	matrix := make([][]float64, classes)
	for y := range matrix {
		matrix[y] = slices.Repeat([]float64{rate / float64(classes-1)}, classes)
		matrix[y][y] = 1 - rate
	}
	return matrix
}

// Over many labels the share of wrong ones is the rate and every other class is equally frequent, each within five
// standard deviations.
func TestNoiseRate(t *testing.T) {
	const n, classes = 60_000, 10
	labels := cyclic(n, classes)
	for _, rate := range []float64{0.1, 0.5, 0.9} {
		for name, noise := range map[string]dataset.Noise{
			"rate": {Rate: rate}, "matrix": {Transition: uniformMatrix(rate, classes)},
		} {
			got := noisy(t, noise, labels, upTo(n), classes, 5, 0)
			var steps [classes]int
			for i := range got {
				steps[(int(got[i])-int(labels[i])+classes)%classes]++
			}
			for step, count := range steps {
				p := rate / (classes - 1)
				if step == 0 {
					p = 1 - rate
				}
				if math.Abs(float64(count)-n*p) > 5*math.Sqrt(n*p*(1-p)) {
					t.Errorf("%s %v: %d labels moved on by %d, expected about %.0f", name, rate, count, step, n*p)
				}
			}
		}
	}
}

func TestNoiseIsNestedAndCoupled(t *testing.T) {
	labels := cyclic(500, 7)
	rapid.Check(t, func(t *rapid.T) {
		seed := rapid.Uint64().Draw(t, "seed")
		member := rapid.IntRange(0, 5).Draw(t, "member")
		low := rapid.Float64Range(0, 1).Draw(t, "low")
		high := rapid.Float64Range(low, 1).Draw(t, "high")
		n := rapid.IntRange(0, 500).Draw(t, "n")
		few, _ := dataset.Noise{Rate: low}.Labels(labels, upTo(n), 7, seed, member)
		all, _ := dataset.Noise{Rate: low}.Labels(labels, upTo(500), 7, seed, member)
		more, err := dataset.Noise{Rate: high}.Labels(labels, upTo(500), 7, seed, member)
		if err != nil || !slices.Equal(few, all[:n]) {
			t.Fatalf("labels of %d points depend on how many points there are (%v)", n, err)
		}
		for i := range all {
			if all[i] != labels[i] && more[i] != all[i] {
				t.Fatalf("point %d: label %d became %d at rate %v and %d at rate %v", i, labels[i], all[i], low, more[i], high)
			}
		}
	})
}

// The points in another order have the same labels, and members' flips are independent.
func TestNoiseBelongsToPoints(t *testing.T) {
	labels := cyclic(300, 10)
	noise := dataset.Noise{Rate: 0.5}
	forward := upTo(300)
	backward := slices.Clone(forward)
	slices.Reverse(backward)
	a, b := noisy(t, noise, labels, forward, 10, 1, 0), noisy(t, noise, labels, backward, 10, 1, 0)
	slices.Reverse(b)
	if !slices.Equal(a, b) {
		t.Error("labels depend on the order of the points")
	}
	if other := noisy(t, noise, labels, forward, 10, 1, 1); slices.Equal(a, other) {
		t.Error("two members have the same wrong labels")
	}
	if clean := noisy(t, dataset.Noise{}, labels, forward, 10, 1, 0); !slices.Equal(clean, labels) {
		t.Error("labels are wrong without noise")
	}
}

func TestUniformMatrixIsTheRate(t *testing.T) {
	labels := cyclic(2000, 10)
	a := noisy(t, dataset.Noise{Rate: 0.3}, labels, upTo(2000), 10, 4, 2)
	b := noisy(t, dataset.Noise{Transition: uniformMatrix(0.3, 10)}, labels, upTo(2000), 10, 4, 2)
	if !slices.Equal(a, b) {
		t.Error("a rate and its transition matrix give different labels")
	}
}

func TestTransitionMatrix(t *testing.T) {
	labels := cyclic(3000, 3)
	matrix := [][]float64{{0, 1, 0}, {0, 1, 0}, {0.5, 0, 0.5}}
	got := noisy(t, dataset.Noise{Transition: matrix}, labels, upTo(3000), 3, 1, 0)
	moved := 0
	for i, label := range got {
		switch labels[i] {
		case 0, 1:
			if label != 1 {
				t.Fatalf("label %d became %d, expected 1", labels[i], label)
			}
		case 2:
			if label == 1 {
				t.Fatal("label 2 became 1, which has probability 0")
			}
			if label == 0 {
				moved++
			}
		}
	}
	if math.Abs(float64(moved)-500) > 5*math.Sqrt(250) {
		t.Errorf("%d of 1000 labels moved, expected about 500", moved)
	}
}

func TestNoiseShare(t *testing.T) {
	if got := (dataset.Noise{Rate: 0.3}).Share(); got != 0.3 {
		t.Errorf("share of rate 0.3 is %v", got)
	}
	if got := (dataset.Noise{Transition: uniformMatrix(0.3, 10)}).Share(); math.Abs(got-0.3) > 1e-12 {
		t.Errorf("share of the matrix of rate 0.3 is %v", got)
	}
}

func TestBadNoise(t *testing.T) {
	for name, noise := range map[string]dataset.Noise{
		"negative rate":  {Rate: -0.1},
		"rate above 1":   {Rate: 1.1},
		"NaN rate":       {Rate: math.NaN()},
		"both":           {Rate: 0.1, Transition: uniformMatrix(0.1, 3)},
		"too few rows":   {Transition: uniformMatrix(0.1, 2)},
		"short row":      {Transition: [][]float64{{1, 0, 0}, {0, 1}, {0, 0, 1}}},
		"row sum":        {Transition: [][]float64{{1, 0, 0}, {0, 0.9, 0}, {0, 0, 1}}},
		"negative entry": {Transition: [][]float64{{1.5, -0.5, 0}, {0, 1, 0}, {0, 0, 1}}},
		"NaN entry":      {Transition: [][]float64{{math.NaN(), 0, 0}, {0, 1, 0}, {0, 0, 1}}},
	} {
		if _, err := noise.Labels(cyclic(9, 3), upTo(9), 3, 1, 0); !errors.Is(err, dataset.ErrNoise) {
			t.Errorf("%s: error %v", name, err)
		}
	}
	if err := (dataset.Noise{Rate: 0.1}).Validate(1); !errors.Is(err, dataset.ErrNoise) {
		t.Errorf("one class: error %v", err)
	}
}

func ExampleNoise_Labels() {
	labels := []uint8{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}
	points := []int32{3, 1, 4}
	wrong, err := dataset.Noise{Rate: 1}.Labels(labels, points, 10, 1, 0)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(wrong[0] != 3, wrong[1] != 1, wrong[2] != 4)
	// Output: true true true
}
