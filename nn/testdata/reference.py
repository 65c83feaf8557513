"""Computes with JAX what one training step does to each of Grange's models.

    pip install jax==0.10.2
    python nn/testdata/reference.py > nn/testdata/reference.json

Weights and images come from a formula that TestAgainstJAX computes too (see
`noise`), so that only results need a file: the loss, and for every tensor the
norm of its gradient and of its new value and a few elements of both. JAX
computes in double precision on inputs rounded to single precision, so the file
is exact as far as single precision goes. Two runs print the same bytes.
"""

import json

import jax

jax.config.update("jax_enable_x64", True)

import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402
from jax import lax  # noqa: E402

RATE = 0.05
EPSILON, MOMENTUM = 1e-5, 0.9
SAMPLES = 10
CASES = [
    # model, (channels, height, width), batch
    ("softmax", (1, 28, 28), 7),
    ("mlp", (1, 28, 28), 7),
    ("cnn", (1, 28, 28), 3),
    ("cnn", (3, 32, 32), 2),
    ("resnet18", (3, 16, 16), 4),
]


def noise(seed, size):
    """Uniform numbers in [-1, 1) from a mixing function of seed and index."""
    x = np.arange(size, dtype=np.uint32) * np.uint32(2654435761) + np.uint32(seed)
    x ^= x >> np.uint32(16)
    x *= np.uint32(0x85EBCA6B)
    x ^= x >> np.uint32(13)
    x *= np.uint32(0xC2B2AE35)
    x ^= x >> np.uint32(16)
    return (x >> np.uint32(8)).astype(np.float64) / 2**23 - 1


class Net:
    """Runs a model, taking tensors by name and noting their order."""

    def __init__(self, tensors, shapes):
        self.tensors, self.shapes, self.moved = tensors, shapes, {}

    def tensor(self, name, *shape):
        self.shapes[name] = shape
        return self.tensors(name, shape)

    def dense(self, name, x, outputs):
        x = x.reshape(x.shape[0], -1)
        w = self.tensor(name + ".weight", x.shape[1], outputs)
        return x @ w + self.tensor(name + ".bias", outputs)

    def conv(self, name, x, outputs, kernel, stride, padding, bias=False):
        w = self.tensor(name + ".weight", kernel, kernel, x.shape[3], outputs)
        y = lax.conv_general_dilated(
            x, w, (stride, stride), [(padding, padding)] * 2,
            dimension_numbers=("NHWC", "HWIO", "NHWC"))
        return y + self.tensor(name + ".bias", outputs) if bias else y

    def norm(self, name, x):
        c = x.shape[3]
        gamma, beta = self.tensor(name + ".weight", c), self.tensor(name + ".bias", c)
        mean, variance = x.mean((0, 1, 2)), x.var((0, 1, 2))
        for part, value in (("mean", mean), ("variance", variance)):
            old = self.tensor(f"{name}.{part}", c)
            self.moved[f"{name}.{part}"] = MOMENTUM * old + (1 - MOMENTUM) * value
        return (x - mean) / jnp.sqrt(variance + EPSILON) * gamma + beta

    def pool(self, x):
        return lax.reduce_window(x, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")


def softmax(n, x):
    return n.dense("output", x, 10)


def mlp(n, x):
    x = jax.nn.relu(n.dense("hidden1", x, 200))
    x = jax.nn.relu(n.dense("hidden2", x, 200))
    return n.dense("output", x, 10)


def cnn(n, x):
    x = n.pool(jax.nn.relu(n.conv("conv1", x, 32, 3, 1, 1, True)))
    x = n.pool(jax.nn.relu(n.conv("conv2", x, 64, 3, 1, 1, True)))
    x = jax.nn.relu(n.dense("hidden", x, 128))
    return n.dense("output", x, 10)


def resnet18(n, x):
    x = jax.nn.relu(n.norm("stem.norm", n.conv("stem.conv", x, 64, 3, 1, 1)))
    for stage in range(4):
        for block in range(2):
            name = f"stage{stage + 1}.block{block + 1}"
            width, stride = 64 << stage, 2 if stage and not block else 1
            y = jax.nn.relu(n.norm(name + ".norm1", n.conv(name + ".conv1", x, width, 3, stride, 1)))
            y = n.norm(name + ".norm2", n.conv(name + ".conv2", y, width, 3, 1, 1))
            if stride != 1:
                x = n.norm(name + ".carrynorm", n.conv(name + ".carry", x, width, 1, stride, 0))
            x = jax.nn.relu(y + x)
    return n.dense("output", x.mean((1, 2)), 10)


def initial(name, shape, index):
    """The formula for tensor number index; rounded to single precision."""
    u = noise(1000 * (index + 1), int(np.prod(shape)))
    if len(shape) > 1:
        u = u * np.sqrt(6 / np.prod(shape[:-1]))
    elif name.endswith(".variance") or "norm" in name and name.endswith(".weight"):
        u = 1 + u * 0.25
    else:
        u = u * 0.25
    return u.astype(np.float32).astype(np.float64).reshape(shape)


def summary(values):
    flat = np.asarray(values).reshape(-1)
    picks = (np.arange(SAMPLES) * 7919 + 11) % flat.size
    return {"norm": float(f"{np.linalg.norm(flat):.9g}"),
            "samples": [float(f"{v:.9g}") for v in flat[picks]]}


def case(model, shape, batch):
    forward = {"softmax": softmax, "mlp": mlp, "cnn": cnn, "resnet18": resnet18}[model]
    channels, height, width = shape
    images = noise(1, batch * channels * height * width).astype(np.float32).astype(np.float64)
    x = jnp.asarray(images.reshape(batch, channels, height, width).transpose(0, 2, 3, 1))
    labels = jnp.asarray([(3 * i + 1) % 10 for i in range(batch)])

    shapes = {}
    forward(Net(lambda _, s: jnp.zeros(s), shapes), x)
    tensors = {name: jnp.asarray(initial(name, s, i)) for i, (name, s) in enumerate(shapes.items())}

    def loss(tensors):
        net = Net(lambda name, _: tensors[name], {})
        logits = forward(net, x)
        picked = jnp.take_along_axis(jax.nn.log_softmax(logits), labels[:, None], 1)
        return -picked.mean(), net.moved

    (value, moved), gradient = jax.value_and_grad(loss, has_aux=True)(tensors)
    out = []
    for name, s in shapes.items():
        if name in moved:
            out.append({"name": name, "shape": list(s), "value": summary(moved[name])})
        else:
            out.append({"name": name, "shape": list(s), "gradient": summary(gradient[name]),
                        "value": summary(tensors[name] - RATE * gradient[name])})
    return {"model": model, "shape": list(shape), "batch": batch, "rate": RATE,
            "loss": float(f"{value:.9g}"), "tensors": out}


def main():
    cases = [json.dumps(case(*c)) for c in CASES]
    print("[\n" + ",\n".join(cases) + "\n]")


main()
