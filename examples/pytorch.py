"""A model that grange train --save wrote, as a network of PyTorch's.

    import pytorch
    model = pytorch.network("model.safetensors")           # a torch.nn.Module, ready to evaluate
    arrays = pytorch.load("model.safetensors")             # its state_dict as numpy arrays; needs numpy only
    pytorch.export("model.safetensors", "model.pt")        # the state_dict, for torch.load

Images of three channels: channels=3. Scale them as Grange does, (pixel / 255 - mean) / deviation for each channel, with
the means and deviations that grange data info NAME prints.
"""

import json
import struct

import numpy as np


def load(path, channels=1):
    """Return the tensors by name, shaped and ordered as PyTorch has them."""
    with open(path, "rb") as file:
        (size,) = struct.unpack("<Q", file.read(8))
        header, data = json.loads(file.read(size)), file.read()
    # The layer whose input was an image, and the channels of that image. Grange has them row, column, channel.
    flattened = {"softmax": ("output.weight", channels), "mlp": ("hidden1.weight", channels), "cnn": ("hidden.weight", 64)}
    after, depth = flattened.get(header.pop("__metadata__")["model"], ("", 1))
    arrays = {}
    for name, tensor in header.items():
        start, end = tensor["data_offsets"]
        array = np.frombuffer(data[start:end], "<f4").reshape(tensor["shape"])
        if array.ndim == 4:  # row, column, input, output
            array = array.transpose(3, 2, 0, 1)
        elif array.ndim == 2:  # input, output
            if name == after:
                array = array.reshape(-1, depth, array.shape[1]).swapaxes(0, 1).reshape(array.shape)
            array = array.T
        name = name.replace(".mean", ".running_mean").replace(".variance", ".running_var")
        arrays[name] = np.array(array)  # a copy of its own
    return arrays


def network(path, channels=1):
    """Return the network, in evaluation mode."""
    import torch

    arrays = load(path, channels)
    model = build(arrays, channels)
    state = {name: torch.from_numpy(array) for name, array in arrays.items()}
    missing, unexpected = model.load_state_dict(state, strict=False)
    if unexpected or not all(name.endswith("num_batches_tracked") for name in missing):
        raise ValueError(f"{path} lacks {missing} and has {unexpected} besides: is channels={channels} right?")
    return model.eval()


def export(path, to, channels=1):
    """Save the state_dict as torch.save does."""
    import torch

    torch.save(network(path, channels).state_dict(), to)


def build(arrays, channels):
    """Return a network of the architecture that has these tensors."""
    from collections import OrderedDict

    from torch import nn

    def linear(name):
        return nn.Linear(*reversed(arrays[name + ".weight"].shape))

    def conv(inputs, outputs, kernel=3, stride=1, bias=False):
        return nn.Conv2d(inputs, outputs, kernel, stride, kernel // 2, bias=bias)

    class Block(nn.Module):
        def __init__(self, inputs, outputs, stride):
            super().__init__()
            self.conv1, self.norm1 = conv(inputs, outputs, stride=stride), nn.BatchNorm2d(outputs)
            self.conv2, self.norm2 = conv(outputs, outputs), nn.BatchNorm2d(outputs)
            if stride != 1:
                self.carry, self.carrynorm = conv(inputs, outputs, 1, stride), nn.BatchNorm2d(outputs)

        def forward(self, x):
            y = self.norm2(self.conv2(self.norm1(self.conv1(x)).relu()))
            return (y + (self.carrynorm(self.carry(x)) if hasattr(self, "carry") else x)).relu()

    if "stem.conv.weight" in arrays:  # resnet18
        layers = [("stem", nn.Sequential(OrderedDict(conv=conv(channels, 64), norm=nn.BatchNorm2d(64), relu=nn.ReLU())))]
        inputs = 64
        for stage, width in enumerate([64, 128, 256, 512]):
            blocks = OrderedDict(block1=Block(inputs, width, 2 if stage else 1), block2=Block(width, width, 1))
            layers.append((f"stage{stage + 1}", nn.Sequential(blocks)))
            inputs = width
        layers += [("pool", nn.AdaptiveAvgPool2d(1)), ("flat", nn.Flatten())]
    elif "conv1.weight" in arrays:  # cnn
        layers = [("conv1", conv(channels, 32, bias=True)), ("relu1", nn.ReLU()), ("pool1", nn.MaxPool2d(2)),
                  ("conv2", conv(32, 64, bias=True)), ("relu2", nn.ReLU()), ("pool2", nn.MaxPool2d(2)),
                  ("flat", nn.Flatten()), ("hidden", linear("hidden")), ("relu3", nn.ReLU())]
    elif "hidden1.weight" in arrays:  # mlp
        layers = [("flat", nn.Flatten()), ("hidden1", linear("hidden1")), ("relu1", nn.ReLU()),
                  ("hidden2", linear("hidden2")), ("relu2", nn.ReLU())]
    else:  # softmax
        layers = [("flat", nn.Flatten())]
    return nn.Sequential(OrderedDict([*layers, ("output", linear("output"))]))
