# Grange's chores. `make check` is what CI runs; the tools it needs are pinned in tools/go.mod.

TOOL = go tool -modfile=tools/go.mod

.PHONY: build test check format vet staticcheck lint vuln race generated generate figures fuzz bench-game

build:
	go build -o bin/grange ./cmd/grange

test:
	go test ./...

check: format vet staticcheck lint vuln race generated

format:
	@out=$$(gofmt -l $$(git ls-files '*.go')); if [ -n "$$out" ]; then echo "gofmt these files:"; echo "$$out"; exit 1; fi

vet:
	go vet ./...

staticcheck:
	$(TOOL) staticcheck ./...

lint:
	$(TOOL) golangci-lint run ./...

# The vulnerability database is on the network. Where it cannot be reached the check says so and is
# passed over; any other failure, a vulnerability above all, stops.
vuln:
	@out=$$($(TOOL) govulncheck ./... 2>&1); code=$$?; \
	if [ $$code -eq 0 ]; then echo "govulncheck: no known vulnerability"; \
	elif echo "$$out" | grep -q -E 'fetching vulnerabilities|dial tcp|no such host|Forbidden|connection refused|i/o timeout|proxyconnect'; then \
		echo "govulncheck: THE VULNERABILITY DATABASE CANNOT BE REACHED; NOTHING WAS CHECKED"; echo "$$out" | tail -3; \
	else echo "$$out"; exit $$code; fi

race:
	go test -race ./...

# What programs wrote must be what they write today.
generated:
	@dir=$$(mktemp -d) && trap 'rm -r "$$dir"' EXIT && \
	go run ./examples/generate > "$$dir/cooperative.yaml" && \
	diff -u examples/cooperative.yaml "$$dir/cooperative.yaml" && \
	$(MAKE) --no-print-directory figures FIGURES="$$dir" >/dev/null && \
	for f in "$$dir"/*.svg; do diff -q "docs/figures/$$(basename "$$f")" "$$f" || { echo "run make generate"; exit 1; }; done

generate: figures
	go run ./examples/generate > examples/cooperative.yaml

# The paper's Figures 3 and 4, one command each.
FIGURES = docs/figures
figures:
	go run ./cmd/grange sweep examples/figure3.yaml --vary "members[0:3].noise=0:0.5:0.1" --plot $(FIGURES)/figure3.svg
	go run ./cmd/grange sweep examples/figure4.yaml --vary "members[0:3].privacy=0.1:0.9:0.2" --plot $(FIGURES)/figure4.svg

# Five minutes on everything that reads bytes from outside.
fuzz:
	go test ./scenario -run '^$$' -fuzz FuzzParse -fuzztime 5m

# The solver against trying every integer, and on large co-operatives.
bench-game:
	go run ./bench/game
