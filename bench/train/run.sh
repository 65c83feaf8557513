#!/bin/sh
# Compares Grange's training with JAX's on this machine: first with both pinned
# to one core, then with both on two. Prints tables of ratios.
# JAX is installed into bench/.venv the first time.
set -eu
cd "$(dirname "$0")/../.."
venv=bench/.venv
if [ ! -x "$venv/bin/python" ]; then
	python3 -m venv "$venv"
fi
"$venv/bin/python" -c 'import jax' 2>/dev/null || "$venv/bin/pip" install --quiet jax==0.10.2
mkdir -p bin
go build -o bin/bench-train ./bench/train
taskset -c 0 bin/bench-train -cores 1 -python "$venv/bin/python" "$@"
if [ "$(nproc)" -ge 2 ]; then
	taskset -c 0,1 bin/bench-train -cores 2 -matrix=false -python "$venv/bin/python" "$@"
fi
