package silo_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"grange/dataset"
	"grange/federated"
	"grange/federated/network/silo"
	"grange/train"
)

// broken is a trainer that cannot, for a reason that is nobody else's business.
type broken struct{}

func (broken) Train(context.Context, federated.Task) (federated.Update, error) {
	return federated.Update{}, errors.New("reading /home/secret/patients.csv")
}

// ownData writes images of a silo's own as CSV, so many of each of fashion's classes.
func ownData(t *testing.T, perClass int) string {
	t.Helper()
	data, err := fashion()
	if err != nil {
		t.Fatal(err)
	}
	var rows strings.Builder
	rows.WriteString("label")
	for i := range data.Shape().Size() {
		fmt.Fprintf(&rows, ",p%d", i)
	}
	left := make([]int, len(data.Classes))
	for i, label := range data.Test.Labels {
		if left[label]++; left[label] > perClass {
			continue
		}
		rows.WriteString("\n" + data.Classes[label])
		for _, pixel := range data.Test.Image(i) {
			fmt.Fprintf(&rows, ",%d", pixel)
		}
	}
	folder := t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, "data.csv"), []byte(rows.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	return folder
}

// A silo with data of its own takes part beside one that is dealt a part of a public data set.
func TestOwnData(t *testing.T) {
	w := newWorld(t, "softmax", 2, member("a", 500, 100, 0), member("b", 500, 100, 0))
	w.start()
	folder := ownData(t, 10)
	var group sync.WaitGroup
	run(t, &group, w.silo(1))
	a := w.silo(0)
	source := silo.Source{Name: "folder:" + folder, Contribution: 60, Engine: train.CPU(1, "")}
	var prepared *silo.Prepared
	a.Prepare = func(ctx context.Context, terms silo.Terms) (_ *silo.Prepared, err error) {
		prepared, err = source.Prepare(ctx, terms)
		return prepared, err
	}
	run(t, &group, a)
	networked := <-w.result
	if networked.err != nil {
		t.Fatal(networked.err)
	}
	group.Wait()
	if prepared.Contribution != 60 || prepared.Data != 80 { // a fifth is held out to test with
		t.Errorf("contributes %d of %d", prepared.Contribution, prepared.Data)
	}
	if networked.result.Accuracy < 0.3 {
		t.Errorf("accuracy %v", networked.result.Accuracy)
	}
}

// Terms that the silo's data do not fit end its run before anything is declared.
func TestDataThatDoNotFit(t *testing.T) {
	w := newWorld(t, "softmax", 1, member("a", 500, 100, 0))
	w.start()
	small := t.TempDir()
	if err := os.WriteFile(filepath.Join(small, "data.csv"), []byte("label,a,b,c,d\nyes,0,1,2,3\nno,9,8,7,6\nyes,0,2,2,3\nno,9,8,7,5\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		source silo.Source
		want   error
	}{
		"too many":        {silo.Source{Name: "fashion", Contribution: 501}, dataset.ErrContribution},
		"another set":     {silo.Source{Name: "cifar10", Contribution: 1}, silo.ErrTerms},
		"unknown set":     {silo.Source{Name: "mnist", Contribution: 1}, dataset.ErrUnknown},
		"nowhere":         {silo.Source{Name: "folder:/nowhere", Contribution: 1}, dataset.ErrMissing},
		"other shape":     {silo.Source{Name: "folder:" + small, Contribution: 1}, dataset.ErrShape},
		"too many of own": {silo.Source{Name: "folder:" + ownData(t, 3), Contribution: 1000}, dataset.ErrContribution},
	} {
		s := w.silo(0)
		s.Prepare = test.source.Prepare
		if err := s.Run(t.Context()); !errors.Is(err, test.want) || !errors.Is(err, silo.ErrTerms) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if w.federation.Status().Members[0].Declaration != nil {
		t.Error("something was declared")
	}
}

func TestAddress(t *testing.T) {
	for text, want := range map[string]string{
		"https://coordinator:8443": "coordinator:8443", "https://[::1]:8443/": "[::1]:8443", "coordinator:8443": "coordinator:8443",
		"": "", "coordinator": "", "http://coordinator:8443": "", "https://coordinator": "", "https://a:1/path": "", "https://u:p@a:1": "",
		"://": "", ":8443": "",
	} {
		if got, err := silo.Address(text); got != want || (err == nil) != (want != "") {
			t.Errorf("%q: %q, %v", text, got, err)
		}
	}
}
