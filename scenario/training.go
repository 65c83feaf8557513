package scenario

import (
	"fmt"
	"strings"
)

// Training is the section `training`: what the model is trained on and how.
// Its defaults train the built-in data set in seconds on a CPU.
type Training struct {
	Dataset     string  // fashion (default), fashion-full, cifar10 or folder:PATH
	Model       string  // mlp (default), softmax, cnn or resnet18
	Start       string  // how weights are drawn: he (default) or pytorch
	Rounds      int     // default 20
	Epochs      int     // local epochs per round; default 5
	Batch       int     // default 64
	Rate        float64 // local learning rate; default 0.05
	GlobalRate  float64 // η_g; default 1, plain FedAvg
	Momentum    float64 // default 0
	WeightDecay float64 // default 0
	Proximal    float64 // FedProx's weight on staying near the global model; default 0
	Repeats     int     // default 1
	Backend     string  // cpu (default), or xla:NAME
	Seed        uint64  // default 1
	Data        string  // folder with data sets that are not built in; default ""
	Split       Split
	Given       bool // whether the file has the section
}

// Split says how the data set is dealt out to the members.
type Split struct {
	Kind   string    // uniform (default), shares or dirichlet
	Alpha  float64   // of dirichlet: smaller is more uneven; default 0.5
	Shares []float64 // of shares: one per member, adding up to at most 1
}

var (
	datasets = []string{"fashion", "fashion-full", "cifar10"}
	models   = []string{"mlp", "softmax", "cnn", "resnet18"}
)

func (r *reader) training(top fields, members int) Training {
	f := r.section(top, "training", "dataset", "model", "start", "rounds", "epochs", "batch", "rate", "global_rate", "momentum",
		"weight_decay", "proximal", "repeats", "backend", "seed", "data", "split")
	t := Training{
		Dataset:     f.dataset(),
		Model:       f.choice("model", true, models...),
		Start:       f.choice("start", true, "he", "pytorch"),
		Rounds:      int(f.integerOr("rounds", 20, 1)),
		Epochs:      int(f.integerOr("epochs", 5, 1)),
		Batch:       int(f.integerOr("batch", 64, 1)),
		Rate:        f.numberOr("rate", 0.05, positive),
		GlobalRate:  f.numberOr("global_rate", 1, positive),
		Momentum:    f.numberOr("momentum", 0, rate),
		WeightDecay: f.numberOr("weight_decay", 0, notNegative),
		Proximal:    f.numberOr("proximal", 0, notNegative),
		Repeats:     int(f.integerOr("repeats", 1, 1)),
		Backend:     f.backend(),
		Seed:        uint64(f.integerOr("seed", 1, 0)),
		Split:       Split{Kind: "uniform"},
		Given:       top.has("training"),
	}
	if f.has("data") {
		t.Data = f.text("data", "a folder")
	}
	if f.has("split") {
		t.Split = r.split(f.node.child("split"), members)
	}
	return t
}

func (f fields) dataset() string {
	if !f.has("dataset") {
		return datasets[0]
	}
	n := f.node.child("dataset")
	if n.kind == text && strings.HasPrefix(n.text, "folder:") {
		if n.text == "folder:" {
			f.r.fail(n, f.key("dataset"), "%s is %q, want folder:PATH", f.key("dataset"), n.text)
		}
		return n.text
	}
	words := append(append([]string{}, datasets...), "folder:PATH")
	return f.r.word(n, f.key("dataset"), words)
}

func (f fields) backend() string {
	if !f.has("backend") {
		return "cpu"
	}
	n := f.node.child("backend")
	if n.kind == text && (n.text == "cpu" || strings.HasPrefix(n.text, "xla:") && n.text != "xla:") {
		return n.text
	}
	f.r.fail(n, f.key("backend"), "%s is %s, want cpu or xla:NAME, such as xla:cuda", f.key("backend"), n.show())
	return ""
}

func (r *reader) split(n *node, members int) Split {
	const path = "training.split"
	kind := r.fields(n, path, "kind", "alpha", "shares").choice("kind", false, "uniform", "shares", "dirichlet")
	switch kind {
	case "dirichlet":
		f := r.fields(n, path+" of kind dirichlet", "kind", "alpha")
		f.path = path
		return Split{Kind: kind, Alpha: f.numberOr("alpha", 0.5, positive)}
	case "shares":
		f := r.fields(n, path+" of kind shares", "kind", "shares")
		f.path = path
		want := fmt.Sprintf("%d shares, one per member, adding up to at most 1", members)
		shares := f.numbers("shares", members, want, fraction)
		sum := 0.0
		for _, s := range shares {
			sum += s
		}
		if sum > 1+1e-9 {
			r.fail(n.child("shares"), path+".shares", "%s.shares adds up to %g, want at most 1", path, sum)
		}
		return Split{Kind: kind, Shares: shares}
	}
	r.fields(n, path+" of kind uniform", "kind")
	return Split{Kind: "uniform"}
}
