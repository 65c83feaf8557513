"""How long each kernel of a training program takes, alone on the card.

    go run ./bench/xla -program train.mlir && python3 bench/peers/kernels_jax.py train.mlir

JAX compiles the program that Grange writes, with the compiler Grange uses, runs it and profiles it. Printed are the time of
a step of 64 images, and the kernels' time in a step by kind and one by one.
"""
import collections
import glob
import gzip
import json
import os
import re
import sys
import tempfile
import time

os.environ["XLA_PYTHON_CLIENT_PREALLOCATE"] = "false"
os.environ["XLA_FLAGS"] = "--xla_gpu_exclude_nondeterministic_ops=true --xla_gpu_enable_command_buffer="

import jax
import numpy
from jax._src import xla_bridge
from jax._src.lib import xla_client

KINDS = [("products", "conv|dgrad|wgrad|fprop|xmma|cutlass|cudnn|nvjet|gemm"), ("copies", "memcpy|memset"),
         ("sums", "reduce"), ("transposes", "transpose"), ("element by element", "")]


def arguments(text):
    """Random arguments of a program: images, weights, and steps of 64 images."""
    random, integers, out = numpy.random.RandomState(1), 0, []
    signature = re.search(r"@main\((.*?)\) -> ", text).group(1)
    for dims, element in re.findall(r"tensor<((?:\d+x)*)(\w+)>", signature):
        shape = tuple(int(n) for n in dims.split("x") if n)
        if element == "ui8":
            out.append(random.randint(0, 256, shape).astype(numpy.uint8))
        elif element == "i32":
            integers += 1
            top = {1: 50, 2: 10}.get(integers)
            out.append((random.randint(0, top, shape) if top else numpy.full(shape, 64)).astype(numpy.int32))
        elif shape == (4,):
            out.append(numpy.array([0.01, 0, 0, 0], numpy.float32))
        elif len(shape) == 2:
            out.append(numpy.array([[1 / 64] * 3, [-2] * 3], numpy.float32))
        else:
            out.append((abs(random.randn(*shape)) * 0.02).astype(numpy.float32))
    return [jax.device_put(x) for x in out]


def kind(name):
    low = name.lower()
    if "fusion" in low or "wrapped" in low or "convert" in low:
        low = "reduce" if "reduce" in low else "transpose" if "transpose" in low else ""
    return next(k for k, pattern in KINDS if re.search(pattern, low) or not pattern)


def main():
    text = open(sys.argv[1]).read()
    client = xla_bridge.get_backend()
    devices = xla_client.DeviceList(tuple(client.local_devices()[:1]))
    program = client.compile_and_load(text, devices, xla_client.CompileOptions())
    weights, *rest = arguments(text)
    steps = rest[-1].shape[0]

    def run(calls):
        nonlocal weights
        for _ in range(calls):
            results = program.execute_sharded([weights] + rest).disassemble_into_single_device_arrays()
            weights = results[0][0]
        jax.block_until_ready(weights)

    run(5)
    began = time.time()
    run(100)
    step = (time.time() - began) / (100 * steps)
    print(f"a step takes {1e3 * step:.2f} ms: {64 / step:.0f} images/s in one process")
    with tempfile.TemporaryDirectory() as folder:
        with jax.profiler.trace(folder):
            run(4)
        trace = glob.glob(folder + "/**/*.trace.json.gz", recursive=True)[0]
        events = json.load(gzip.open(trace))["traceEvents"]
    names = {(e["pid"], e.get("tid"), e["name"]): e["args"]["name"] for e in events if e.get("ph") == "M" and "name" in e.get("args", {})}
    times, counts, kinds = collections.Counter(), collections.Counter(), collections.Counter()
    for e in events:
        if e.get("ph") == "X" and "Stream" in names.get((e["pid"], e["tid"], "thread_name"), ""):
            times[e["name"]] += e["dur"] / (4 * steps)
            counts[e["name"]] += 1 / (4 * steps)
            kinds[kind(e["name"])] += e["dur"] / (4 * steps)
    print(f"{sum(counts.values()):.0f} kernels of {sum(times.values()):.0f} µs in a step")
    for name, taken in kinds.most_common():
        print(f"{taken:8.1f} µs  {name}")
    for name, taken in times.most_common(40):
        print(f"{taken:8.1f} µs  {counts[name]:5.1f} × {name[:110]}")


main()
