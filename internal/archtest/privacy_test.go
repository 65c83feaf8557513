package archtest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	_ "grange/federated/network/wire" // registers the protocol
)

// TestPrivacyListsEverything compares docs/privacy.md with the protocol: every field of every message that a silo sends is
// in the table, in a row of that message, and no row is of a message that is not sent.
func TestPrivacyListsEverything(t *testing.T) {
	page, err := os.ReadFile(filepath.Join(root, "docs", "privacy.md"))
	if err != nil {
		t.Fatal(err)
	}
	rows := map[string]string{} // by message
	_, table, _ := strings.Cut(string(page), "## From a silo to the coordinator")
	table, _, _ = strings.Cut(table, "\n## ")
	for _, line := range strings.Split(table, "\n") {
		if cells := strings.Split(line, "|"); len(cells) == 5 && !strings.Contains(cells[1], "---") {
			rows[strings.TrimSpace(cells[2])] = cells[3]
		}
	}
	delete(rows, "message")
	delete(rows, "TLS")
	sent := map[string]bool{}
	protoregistry.GlobalFiles.RangeFilesByPackage("grange.federation.v1", func(file protoreflect.FileDescriptor) bool {
		for i := range file.Services().Len() {
			methods := file.Services().Get(i).Methods()
			for j := range methods.Len() {
				compareMessage(t, methods.Get(j).Input(), rows, sent)
			}
		}
		return true
	})
	if len(sent) < 8 {
		t.Errorf("found only %d messages that silos send", len(sent))
	}
	for message := range rows {
		if !sent[message] {
			t.Errorf("docs/privacy.md lists %q, which no silo sends", message)
		}
	}
}

func compareMessage(t *testing.T, message protoreflect.MessageDescriptor, rows map[string]string, sent map[string]bool) {
	t.Helper()
	name := string(message.Name())
	if sent[name] {
		return
	}
	row, listed := rows[name]
	sent[name] = listed
	for i := range message.Fields().Len() {
		field := message.Fields().Get(i)
		if field.Message() != nil {
			compareMessage(t, field.Message(), rows, sent)
			continue
		}
		if !strings.Contains(row, "`"+string(field.Name())+"`") {
			t.Errorf("silos send %s.%s, which docs/privacy.md does not list", name, field.Name())
		}
	}
}
