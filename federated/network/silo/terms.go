package silo

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"strings"

	"grange/dataset"
	"grange/federated"
	"grange/federated/network"
	"grange/federated/network/objects"
	"grange/federated/network/wire"
	"grange/model"
)

// Limits of what terms may say.
const (
	maxText    = 256
	maxMembers = 100_000
	maxClasses = 256
	maxRounds  = 1 << 20
)

// Terms say what is trained and how, and who the silo is in it.
type Terms struct {
	// Run names the run, and Scenario is the scenario's name.
	Run, Scenario string
	// Member is which member the silo is, and Name what it is called.
	Member int
	Name   string
	Rounds int
	// Local says how to train, and Seed is where all chance comes from.
	Local federated.Local
	Seed  uint64
	// Spec is the architecture.
	Spec model.Spec
	Data Description
	Deal Deal
}

// Description says what the coordinator's data look like.
type Description struct {
	// Name is what it is called: fashion, cifar10, … or folder for the coordinator's own.
	Name string
	// Fingerprint is its digest.
	Fingerprint string
	Shape       dataset.Shape
	Classes     []string
	// Moments are what everybody normalises with.
	Moments dataset.Moments
}

// Describe describes a data set. Where it lies is not said.
func Describe(data *dataset.Dataset) Description {
	name, _, _ := strings.Cut(data.Name, ":")
	return Description{
		Name: name, Fingerprint: data.Fingerprint(), Shape: data.Shape(), Classes: data.Classes,
		Moments: data.Normalizer().Moments,
	}
}

// Deal says which part of the coordinator's data set a silo has in a trial.
type Deal struct {
	// Data is how many data points each member has, and Split how they are dealt.
	Data  []int
	Split dataset.Split
	// Noise says how wrong the silo's labels are.
	Noise dataset.Noise
}

// runID names a run by everything that determines its result.
func runID(info network.RunInfo) (string, error) {
	text, err := json.Marshal([]any{info.Name, info.Members, info.Identity})
	if err != nil {
		return "", fmt.Errorf("naming the run: %w", err)
	}
	digest := sha256.Sum256(text)
	return hex.EncodeToString(digest[:16]), nil
}

// modelFile says what the files of a model look like.
func modelFile(spec model.Spec) (header []byte, size int64, err error) {
	if header, err = model.SafetensorsHeader(spec.Tensors, nil); err != nil {
		return nil, 0, err
	}
	return header, int64(len(header)) + 4*int64(spec.Size()), nil
}

// message writes terms for the wire.
func (t Terms) message() (*wire.Terms, error) {
	header, size, err := modelFile(t.Spec)
	if err != nil {
		return nil, err
	}
	digest := sha256.Sum256(header)
	m := &wire.Terms{
		Run: t.Run, Scenario: t.Scenario, Member: uint32(t.Member), Name: t.Name, Rounds: uint32(t.Rounds), Seed: t.Seed,
		Local: &wire.Local{
			Epochs: uint32(t.Local.Epochs), Batch: uint32(t.Local.Batch), Rate: t.Local.Rate, Momentum: t.Local.Momentum,
			Decay: t.Local.Decay, Proximal: t.Local.Proximal,
		},
		Data: &wire.Data{
			Name: t.Data.Name, Fingerprint: t.Data.Fingerprint, Classes: t.Data.Classes,
			Channels: uint32(t.Data.Shape.Channels), Height: uint32(t.Data.Shape.Height), Width: uint32(t.Data.Shape.Width),
			Mean: t.Data.Moments.Mean, Deviation: t.Data.Moments.Deviation,
		},
		Model: &wire.Model{Name: t.Spec.Name, Header: digest[:], Size: uint64(size)},
		Deal:  &wire.Deal{Split: t.Deal.Split.Method.String(), Concentration: t.Deal.Split.Concentration, Noise: t.Deal.Noise.Rate},
	}
	for _, points := range t.Deal.Data {
		m.Deal.Data = append(m.Deal.Data, uint32(points))
	}
	for _, row := range t.Deal.Noise.Transition {
		m.Deal.Transition = append(m.Deal.Transition, row...)
	}
	return m, nil
}

// readTerms reads what a coordinator sent, which is not trusted more than it has to be.
func readTerms(m *wire.Terms) (Terms, error) {
	wrong := func(format string, args ...any) (Terms, error) {
		return Terms{}, fmt.Errorf("%w: %s", ErrTerms, fmt.Sprintf(format, args...))
	}
	data, deal, local := m.GetData(), m.GetDeal(), m.GetLocal()
	for _, text := range []string{m.GetRun(), m.GetScenario(), m.GetName(), data.GetFingerprint(), m.GetModel().GetName()} {
		if len(text) > maxText {
			return wrong("a name of %d bytes, expected at most %d", len(text), maxText)
		}
	}
	members, classes := len(deal.GetData()), len(data.GetClasses())
	const large = 1 << 16
	switch {
	case m.GetRun() == "" || m.GetName() == "":
		return wrong("they name no run or no member")
	case members > maxMembers || int64(m.GetMember()) >= int64(members):
		return wrong("member %d of %d", m.GetMember()+1, members)
	case m.GetRounds() < 1 || m.GetRounds() > maxRounds:
		return wrong("%d rounds, expected 1 to %d", m.GetRounds(), maxRounds)
	case local.GetEpochs() > math.MaxInt16 || local.GetBatch() > large:
		return wrong("%d epochs of batches of %d", local.GetEpochs(), local.GetBatch())
	case data.GetChannels() > maxText || data.GetHeight() > large || data.GetWidth() > large || classes < 2 || classes > maxClasses:
		return wrong("images of %d×%d×%d in %d classes", data.GetChannels(), data.GetHeight(), data.GetWidth(), classes)
	case len(deal.GetTransition()) != 0 && len(deal.GetTransition()) != classes*classes:
		return wrong("a transition matrix of %d numbers for %d classes", len(deal.GetTransition()), classes)
	}
	t := Terms{
		Run: m.GetRun(), Scenario: m.GetScenario(), Member: int(m.GetMember()), Name: m.GetName(), Rounds: int(m.GetRounds()),
		Seed: m.GetSeed(),
		Local: federated.Local{
			Epochs: int(local.GetEpochs()), Batch: int(local.GetBatch()), Rate: local.GetRate(), Momentum: local.GetMomentum(),
			Decay: local.GetDecay(), Proximal: local.GetProximal(),
		},
		Data: Description{
			Name: data.GetName(), Fingerprint: data.GetFingerprint(), Classes: data.GetClasses(),
			Shape:   dataset.Shape{Channels: int(data.GetChannels()), Height: int(data.GetHeight()), Width: int(data.GetWidth())},
			Moments: dataset.Moments{Mean: data.GetMean(), Deviation: data.GetDeviation()},
		},
		Deal: Deal{Noise: dataset.Noise{Rate: deal.GetNoise()}},
	}
	for _, points := range deal.GetData() {
		t.Deal.Data = append(t.Deal.Data, int(points))
	}
	for i := 0; i < len(deal.GetTransition()); i += classes {
		t.Deal.Noise.Transition = append(t.Deal.Noise.Transition, deal.GetTransition()[i:i+classes])
	}
	switch deal.GetSplit() {
	case dataset.Uniform.String():
	case dataset.Dirichlet.String():
		t.Deal.Split = dataset.Split{Method: dataset.Dirichlet, Concentration: deal.GetConcentration()}
	default:
		return wrong("unknown split %.80q", deal.GetSplit())
	}
	return t, t.check(m.GetModel())
}

// check completes terms with the architecture, and checks what can be checked without data.
func (t *Terms) check(m *wire.Model) error {
	var err error
	if t.Local, err = t.Local.Defaults(); err != nil {
		return fmt.Errorf("%w: %w", ErrTerms, err)
	}
	if err := t.Data.Moments.Validate(t.Data.Shape.Channels); err != nil {
		return fmt.Errorf("%w: %w", ErrTerms, err)
	}
	if err := t.Deal.Noise.Validate(len(t.Data.Classes)); err != nil {
		return fmt.Errorf("%w: %w", ErrTerms, err)
	}
	if t.Spec, err = model.New(m.GetName(), model.Shape(t.Data.Shape), len(t.Data.Classes)); err != nil {
		return fmt.Errorf("%w: %w", ErrTerms, err)
	}
	header, size, err := modelFile(t.Spec)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrTerms, err)
	}
	if digest := sha256.Sum256(header); string(digest[:]) != string(m.GetHeader()) || uint64(size) != m.GetSize() {
		return fmt.Errorf("%w: the coordinator's %s is not the %s of this version of the program", ErrTerms, t.Spec.Name, t.Spec.Name)
	}
	return nil
}

// readDigest reads a digest from the wire.
func readDigest(b []byte) (objects.Digest, error) {
	var d objects.Digest
	if len(b) != len(d) {
		return d, fmt.Errorf("%w: %d bytes, expected %d", objects.ErrDigest, len(b), len(d))
	}
	copy(d[:], b)
	return d, nil
}
