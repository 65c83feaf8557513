package cli_test

import (
	"os"
	"strings"
	"testing"
)

// What people get wrong in a federation is named to whoever can mend it.
func TestFederationMistakes(t *testing.T) {
	v := newVillage(t)
	misspelt := strings.TrimSpace(v.must("coordinator", "invite", "coop", "brich", "--quiet"))
	coordinator := v.start()
	join := func(name, token string) {
		t.Helper()
		v.must("silo", "join", "https://"+v.address, "--dir", name, "--token", token)
	}
	refused := func(args ...string) string {
		t.Helper()
		text, err := v.grange(args...).CombinedOutput()
		if err == nil {
			t.Errorf("%v is accepted: %s", args, text)
		}
		return string(text)
	}
	join("ash", strings.TrimSpace(v.must("coordinator", "invite", "coop", "ash", "--quiet")))
	if text := refused("silo", "run", "--dir", "ash", "--data", "cifar10", "--contribute", "5"); strings.Count(text, "cannot take part under these terms") != 1 {
		t.Errorf("other data: %s", text)
	}
	join("brich", misspelt)
	if text := refused("silo", "run", "--dir", "brich", "--data", "fashion", "--contribute", "5"); !strings.Contains(text, `"brich" takes no part in three`) {
		t.Errorf("a name with a letter wrong: %s", text)
	}
	status := v.must("coordinator", "status", "coop")
	for _, line := range []string{"Note: brich was invited but is no member; did you mean birch?\n", `turned away: "brich" was let in, but is no member of three`} {
		if !strings.Contains(status, line) {
			t.Errorf("no %q in\n%s", line, status)
		}
	}
	if err := coordinator.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	_ = coordinator.Wait() // interrupted
	for _, line := range []string{`brich was invited but is no member; did you mean birch?`, `level=WARN msg="turned away"`} {
		if log := coordinator.stderr.String(); !strings.Contains(log, line) {
			t.Errorf("no %q in\n%s", line, log)
		}
	}
}
