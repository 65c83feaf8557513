"""The model and its training: a perceptron in numpy, with weights as PyTorch has them: (outputs, inputs)."""

import pathlib

import numpy as np


def load(folder):
    """Return the images, one row each, and the labels of a member."""
    folder = pathlib.Path(folder)
    images = np.load(folder / "images.npy").astype(np.float32)
    return images.reshape(len(images), -1), np.load(folder / "labels.npy").astype(np.int64)


def forward(weights, images):
    """Return what every layer gives; the last ones are the logits."""
    values = [images]
    for i in range(0, len(weights), 2):
        x = values[-1] @ weights[i].T + weights[i + 1]
        values.append(np.maximum(x, 0) if i + 2 < len(weights) else x)
    return values


def train(weights, images, labels, epochs, batch, rate, seed):
    """Train by stochastic gradient descent; return the new weights and the mean loss of the last epoch."""
    weights = [np.array(w, dtype=np.float32) for w in weights]
    random = np.random.default_rng(seed)
    loss = 0.0
    for _ in range(epochs):
        losses = []
        for rows in np.array_split(random.permutation(len(images)), -(-len(images) // batch)):
            values = forward(weights, images[rows])
            logits = values[-1] - values[-1].max(axis=1, keepdims=True)
            chances = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
            losses.append(-np.log(chances[np.arange(len(rows)), labels[rows]] + 1e-9).mean())
            gradient = chances
            gradient[np.arange(len(rows)), labels[rows]] -= 1
            gradient /= len(rows)
            for i in range(len(weights) - 2, -1, -2):
                back = gradient @ weights[i] * (values[i // 2] > 0)
                weights[i] -= np.float32(rate) * (gradient.T @ values[i // 2])
                weights[i + 1] -= np.float32(rate) * gradient.sum(axis=0)
                gradient = back
        loss = float(np.mean(losses))
    return weights, loss
