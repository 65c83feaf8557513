"""Training steps in JAX, for comparison with Grange on the same cores.

Reads commands from standard input, one per line, and answers each with one
line of JSON on standard output:

    prepare MODEL BATCH     build and compile; answers {"ready": MODEL}
    run MODEL STEPS         answers {"seconds": S, "used": U} for STEPS steps: the
                            time on the wall and the processor time

The models are those of Grange's package model: same shapes, same layers, same
plain SGD, float32. Images lie in memory, rows and columns before channels, the
order in which XLA's convolutions are fastest on a CPU.
"""

import json
import sys
import time

import jax
import jax.numpy as jnp
from jax import lax

SHAPES = {
    "softmax": (28, 28, 1),
    "mlp": (28, 28, 1),
    "cnn": (28, 28, 1),
    "resnet18": (32, 32, 3),
}
EPSILON, MOMENTUM = 1e-5, 0.9


def conv(x, w, stride, padding):
    return lax.conv_general_dilated(
        x, w, (stride, stride), [(padding, padding)] * 2,
        dimension_numbers=("NHWC", "HWIO", "NHWC"))


def pool(x):
    return lax.reduce_window(x, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")


def norm(x, p, s, name, moved):
    mean = x.mean((0, 1, 2))
    variance = ((x - mean) ** 2).mean((0, 1, 2))
    moved[name] = (MOMENTUM * s[name][0] + (1 - MOMENTUM) * mean,
                   MOMENTUM * s[name][1] + (1 - MOMENTUM) * variance)
    return (x - mean) * lax.rsqrt(variance + EPSILON) * p[name + "g"] + p[name + "b"]


def dense(x, p, name):
    return x.reshape(x.shape[0], -1) @ p[name] + p[name + "b"]


def softmax(p, s, x):
    return dense(x, p, "out"), s


def mlp(p, s, x):
    x = jax.nn.relu(dense(x, p, "a"))
    x = jax.nn.relu(dense(x, p, "b"))
    return dense(x, p, "out"), s


def cnn(p, s, x):
    x = pool(jax.nn.relu(conv(x, p["c"], 1, 1) + p["cb"]))
    x = pool(jax.nn.relu(conv(x, p["d"], 1, 1) + p["db"]))
    x = jax.nn.relu(dense(x, p, "a"))
    return dense(x, p, "out"), s


def blocks():
    for stage in range(4):
        for block in range(2):
            yield f"{stage}{block}", 64 << stage, 2 if stage and not block else 1


def resnet18(p, s, x):
    moved = {}
    x = jax.nn.relu(norm(conv(x, p["stem"], 1, 1), p, s, "stemn", moved))
    for name, _, stride in blocks():
        y = jax.nn.relu(norm(conv(x, p[name + "c"], stride, 1), p, s, name + "n", moved))
        y = norm(conv(y, p[name + "d"], 1, 1), p, s, name + "m", moved)
        if stride != 1:
            x = norm(conv(x, p[name + "s"], stride, 0), p, s, name + "o", moved)
        x = jax.nn.relu(y + x)
    return dense(x.mean((1, 2)), p, "out"), moved


def parameters(model):
    height, width, channels = SHAPES[model]
    key = jax.random.PRNGKey(1)
    p, s = {}, {}

    def draw(name, *shape):
        nonlocal key
        key, k = jax.random.split(key)
        fan = 1
        for side in shape[:-1]:
            fan *= side
        p[name] = jax.random.normal(k, shape) * (2 / fan) ** 0.5

    def draw_dense(name, *shape):
        draw(name, *shape)
        p[name + "b"] = jnp.zeros(shape[-1])

    def draw_norm(name, c):
        p[name + "g"], p[name + "b"] = jnp.ones(c), jnp.zeros(c)
        s[name] = (jnp.zeros(c), jnp.ones(c))

    if model == "softmax":
        draw_dense("out", height * width * channels, 10)
    elif model == "mlp":
        draw_dense("a", height * width * channels, 200)
        draw_dense("b", 200, 200)
        draw_dense("out", 200, 10)
    elif model == "cnn":
        draw_dense("c", 3, 3, channels, 32)
        draw_dense("d", 3, 3, 32, 64)
        draw_dense("a", (height // 4) * (width // 4) * 64, 128)
        draw_dense("out", 128, 10)
    else:
        draw("stem", 3, 3, channels, 64)
        draw_norm("stemn", 64)
        before = 64
        for name, c, stride in blocks():
            draw(name + "c", 3, 3, before, c)
            draw_norm(name + "n", c)
            draw(name + "d", 3, 3, c, c)
            draw_norm(name + "m", c)
            if stride != 1:
                draw(name + "s", 1, 1, before, c)
                draw_norm(name + "o", c)
            before = c
        draw_dense("out", 512, 10)
    return p, s


class Trainer:
    def __init__(self, model, batch):
        forward = {"softmax": softmax, "mlp": mlp, "cnn": cnn, "resnet18": resnet18}[model]

        def loss(p, s, x, labels):
            logits, moved = forward(p, s, x)
            return -jnp.take_along_axis(jax.nn.log_softmax(logits), labels[:, None], 1).mean(), moved

        def step(p, s, x, labels):
            (value, moved), g = jax.value_and_grad(loss, has_aux=True)(p, s, x, labels)
            return jax.tree.map(lambda w, d: w - 0.01 * d, p, g), moved, value

        self.step = jax.jit(step, donate_argnums=(0, 1))
        self.p, self.s = parameters(model)
        self.x = jax.random.normal(jax.random.PRNGKey(2), (batch, *SHAPES[model]))
        self.labels = jax.random.randint(jax.random.PRNGKey(3), (batch,), 0, 10)
        self.run(1)

    def run(self, steps):
        start, used = time.perf_counter(), time.process_time()
        for _ in range(steps):
            self.p, self.s, value = self.step(self.p, self.s, self.x, self.labels)
        jax.block_until_ready((self.p, value))
        return time.perf_counter() - start, time.process_time() - used


def main():
    trainers = {}
    print(json.dumps({"ready": f"JAX {jax.__version__}"}), flush=True)
    for line in sys.stdin:
        command, model, number = line.split()
        if command == "prepare":
            trainers[model] = Trainer(model, int(number))
            answer = {"ready": model}
        else:
            seconds, used = trainers[model].run(int(number))
            answer = {"seconds": seconds, "used": used}
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
