package spelling_test

import (
	"testing"

	"grange/internal/spelling"
)

func TestNearest(t *testing.T) {
	known := []string{"north", "south", "Western Clinic"}
	for word, want := range map[string]string{
		"nroth": "north", "souht": "south", "North": "north", "western clinc": "Western Clinic", "Western": "Western Clinic", "oak": "", "": "",
	} {
		if got := spelling.Nearest(word, known); got != want {
			t.Errorf("%q: got %q, want %q", word, got, want)
		}
	}
}
