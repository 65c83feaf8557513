package flower

import (
	"archive/zip"
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"strings"
)

// app is a bundle that SuperNodes run.
type app struct {
	content []byte
	hash    string
	// id is publisher/name.
	id, version string
}

// maxProject bounds the description in a bundle.
const maxProject = 1 << 20

// parseApp finds out what a bundle calls itself.
func parseApp(content []byte) (*app, error) {
	wrong := func(format string, args ...any) error {
		return fmt.Errorf("%w: the Flower app is no bundle as flwr build makes it: %s", ErrOptions, fmt.Sprintf(format, args...))
	}
	files, err := zip.NewReader(bytes.NewReader(content), int64(len(content)))
	if err != nil {
		return nil, wrong("%v", err)
	}
	file, err := files.Open("pyproject.toml")
	if err != nil {
		return nil, wrong("%v", err)
	}
	defer file.Close()
	values, err := tomlStrings(io.LimitReader(file, maxProject))
	if err != nil {
		return nil, wrong("%v", err)
	}
	name, version, publisher := values["project.name"], values["project.version"], values["tool.flwr.app.publisher"]
	if name == "" || version == "" || publisher == "" {
		return nil, wrong("its pyproject.toml lacks a name, a version or a publisher")
	}
	sum := sha256.Sum256(content)
	return &app{content: content, hash: hex.EncodeToString(sum[:]), id: publisher + "/" + name, version: version}, nil
}

// tomlStrings reads the plain strings of a TOML file, by table and key. It is enough for what bundles call themselves.
func tomlStrings(in io.Reader) (map[string]string, error) {
	values, table := map[string]string{}, ""
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, maxProject)
	for lines.Scan() {
		line := strings.TrimSpace(lines.Text())
		if rest, ok := strings.CutPrefix(line, "["); ok {
			name, _, _ := strings.Cut(rest, "]")
			table = strings.TrimSpace(name)
			continue
		}
		key, value, ok := strings.Cut(line, "=")
		if !ok {
			continue
		}
		value = strings.TrimSpace(value)
		for _, quote := range []string{`"`, "'"} {
			if rest, ok := strings.CutPrefix(value, quote); ok {
				if text, _, closed := strings.Cut(rest, quote); closed && !strings.Contains(text, `\`) {
					values[strings.TrimPrefix(table+"."+strings.TrimSpace(key), ".")] = text
				}
			}
		}
	}
	return values, lines.Err()
}
