package dataset

import (
	"errors"
	"slices"
	"testing"
)

func own() *Dataset {
	shape := Shape{1, 1, 2}
	return &Dataset{
		Classes: []string{"cat", "dog"},
		Train:   Images{Shape: shape, Pixels: []byte{0, 255, 128, 128, 7, 9}, Labels: []uint8{0, 1, 0}},
		Test:    Images{Shape: shape, Pixels: []byte{1, 2}, Labels: []uint8{1}},
	}
}

func TestConform(t *testing.T) {
	data := own()
	moments := Moments{Mean: []float64{0.5}, Deviation: []float64{0.25}}
	if err := data.Conform(data.Shape(), []string{"dog", "bird", "cat"}, moments); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(data.Train.Labels, []uint8{2, 0, 2}) || !slices.Equal(data.Test.Labels, []uint8{0}) || len(data.Classes) != 3 {
		t.Errorf("labels %v and %v of %v", data.Train.Labels, data.Test.Labels, data.Classes)
	}
	got := make([]float32, 2)
	data.Normalizer().Image(got, data.Train.Image(0))
	if !slices.Equal(got, []float32{-2, 2}) {
		t.Errorf("normalised to %v with mean 0.5 and deviation 0.25", got)
	}
	for name, test := range map[string]struct {
		shape   Shape
		classes []string
		moments Moments
		want    error
	}{
		"shape":          {Shape{1, 2, 1}, []string{"cat", "dog"}, moments, ErrShape},
		"unknown class":  {Shape{1, 1, 2}, []string{"cat", "bird"}, moments, ErrLabel},
		"a name twice":   {Shape{1, 1, 2}, []string{"cat", "cat", "dog"}, moments, ErrLabel},
		"no moments":     {Shape{1, 1, 2}, []string{"cat", "dog"}, Moments{}, ErrShape},
		"zero deviation": {Shape{1, 1, 2}, []string{"cat", "dog"}, Moments{[]float64{0}, []float64{0}}, ErrShape},
	} {
		if err := own().Conform(test.shape, test.classes, test.moments); !errors.Is(err, test.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Given moments normalise as measured ones do, to the bit.
func TestGivenMomentsAreTheMeasuredOnes(t *testing.T) {
	data := own()
	measured := data.Normalizer()
	data.Moments = &measured.Moments
	a, b := make([]float32, 2), make([]float32, 2)
	for i := range data.Train.Len() {
		measured.Image(a, data.Train.Image(i))
		data.Normalizer().Image(b, data.Train.Image(i))
		if !slices.Equal(a, b) {
			t.Errorf("image %d: %v and %v", i, a, b)
		}
	}
}
