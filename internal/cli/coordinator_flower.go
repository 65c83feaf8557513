package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/pflag"

	"grange/federated/network"
	"grange/federated/network/coordinator"
	"grange/federated/network/flower"
	"grange/federated/network/flower/layout"
	"grange/federated/network/identity"
	"grange/train"
)

// flowerFlags say how Flower's clients take part.
type flowerFlags struct {
	legacy string
	app    string
	layout string
	style  string
	config map[string]string
}

func (f *flowerFlags) register(set *pflag.FlagSet) {
	set.StringVar(&f.legacy, "flower", "", "members that use Flower's start_client: NAME or NAME=ADDRESS, separated by commas; nobody is identified and TLS is not needed, so only for trusted networks")
	set.StringVar(&f.app, "flower-app", "", "the app that Flower's SuperNodes run, as flwr build makes it (.fab); their keys are let in by enrol-key")
	set.StringVar(&f.layout, "flower-layout", layout.Torch, "how models look to Flower's clients: "+strings.Join(layout.Names(), " or "))
	set.StringVar(&f.style, "flower-style", string(flower.Both), "how messages to SuperNodes are laid out: records, numpy or both")
	set.StringToStringVar(&f.config, "flower-config", nil, "settings of the app, NAME=VALUE")
}

// maxApp is the largest bundle that is read.
const maxApp = 64 << 20

// apply lets Flower's clients into a coordinator.
func (f flowerFlags) apply(config *coordinator.Config, job train.Job) error {
	options := flower.Options{
		Layout: f.layout, Style: flower.Style(f.style), RunConfig: f.config,
		Folder: filepath.Join(config.Folder, "flower"), Log: config.Log,
	}
	for _, member := range job.Members {
		options.Data = append(options.Data, member.Data)
	}
	var err error
	if f.legacy != "" {
		if options.Legacy, err = flower.ParseSeats(f.legacy); err != nil {
			return err
		}
	}
	if f.app != "" {
		if options.App, err = readApp(f.app); err != nil {
			return err
		}
	}
	if !options.Enabled() {
		return nil
	}
	config.Plain = options.Plaintext()
	config.Options = flower.ServerOptions(config.Federation.Spec, options)
	config.Guests = func(federation *network.Federation, registrar *identity.Registrar) (coordinator.Guests, error) {
		options.Keys = registrar
		return flower.New(federation, options)
	}
	return nil
}

func readApp(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err == nil && info.Size() > maxApp {
		err = fmt.Errorf("it has %d bytes, want %d at most", info.Size(), maxApp)
	}
	var content []byte
	if err == nil {
		content, err = os.ReadFile(path)
	}
	if err != nil {
		return nil, &usageError{fmt.Sprintf("--flower-app %s cannot be read: %v", path, err), "flwr build makes the file, which ends in .fab"}
	}
	return content, nil
}
