#!/bin/sh
# Trains what was packed: sh run.sh [flags of grange measure]
#
# It checks the parts, unpacks them into the folder work, trains, and leaves the folder results, which is all that has to
# go home. Stopped in between, the same command goes on: every finished training run is kept.
set -eu
cd "$(dirname "$0")"

fail() {
	echo "run.sh: $1" >&2
	echo "Try: $2" >&2
	exit 1
}

if [ ! -f work/ready ]; then
	while read -r _ part; do
		[ -f "$part" ] || fail "$part is missing" "copy $part to $(pwd)"
	done <SHA256SUMS
	sha256sum -c --quiet SHA256SUMS >&2 || fail "a part was damaged on its way" "copy again the parts that are named above"
	rm -rf work
	mkdir work || fail "cannot make the folder work" "run it in a folder that you may write to"
	while read -r _ part; do
		cat "$part"
	done <SHA256SUMS | tar xf - -C work || fail "the parts do not unpack" "free some space and run it again"
	: >work/ready
fi
if work/grange measure work/scenario.yaml --data work/data --results results "$@"; then
	rm -rf work
	echo "Done. Take home the folder $(pwd)/results: its files belong into the folder of the same name there."
else
	code=$?
	echo "run.sh: what was finished is in $(pwd)/results; the same command goes on from there" >&2
	exit $code
fi
