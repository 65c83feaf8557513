"""Federated averaging of ResNet-18 on CIFAR-10 in PyTorch, independent of Grange's code.

    python3 bench/peers/fedavg_torch.py cifar-10-binary.tar.gz [points] [rounds] [torch|he] [seed]

Five members with as many points each (1,000 by default) train as in the paper: 5 epochs of plain SGD, batch 64, rate 0.1;
the server takes the mean. The last argument but one says how convolutions begin: "torch" is PyTorch's own way, uniform
with variance 1/(3·inputs); "he" is normal with variance 2/inputs. Where there is a card it computes in bfloat16.
"""
import sys
import tarfile

import numpy
import torch
from torch import nn

from resnet18_torch import network

MEMBERS, EPOCHS, BATCH, RATE = 5, 5, 64, 0.1
CARD = torch.cuda.is_available()
DEVICE = "cuda" if CARD else "cpu"


def images(archive, name):
    data = b"".join(archive.extractfile(f).read() for f in sorted(archive, key=lambda f: f.name) if name in f.name)
    records = torch.from_numpy(numpy.frombuffer(data, numpy.uint8).reshape(-1, 3073).copy())
    mean, deviation = torch.tensor([0.4914, 0.4822, 0.4465]), torch.tensor([0.2470, 0.2435, 0.2616])
    x = records[:, 1:].reshape(-1, 3, 32, 32).float() / 255
    x = (x - mean[:, None, None]) / deviation[:, None, None]
    return x.to(DEVICE, memory_format=torch.channels_last), records[:, 0].long().to(DEVICE)


def begin(net, how):
    for module in net.modules():
        if how == "he" and isinstance(module, (nn.Conv2d, nn.Linear)):
            gain = 2.0 if isinstance(module, nn.Conv2d) else 1.0
            nn.init.normal_(module.weight, std=(gain / module.weight[0].numel()) ** 0.5)
            if module.bias is not None:
                nn.init.zeros_(module.bias)


def main():
    path, points, rounds, how, seed = (sys.argv[1:] + [None] * 4)[:5]
    points, rounds, how, seed = int(points or 1000), int(rounds or 50), how or "torch", int(seed or 1)
    torch.manual_seed(seed)
    torch.backends.cudnn.benchmark = True
    with tarfile.open(path) as archive:
        train_x, train_y = images(archive, "data_batch")
        test_x, test_y = images(archive, "test_batch")
    shards = torch.randperm(len(train_x))[:MEMBERS * points].reshape(MEMBERS, points)
    net = network()
    begin(net, how)
    net = net.to(DEVICE, memory_format=torch.channels_last)
    sgd = torch.optim.SGD(net.parameters(), lr=RATE)

    def loss(x, y):
        with torch.autocast(DEVICE, torch.bfloat16, enabled=CARD):
            return nn.functional.cross_entropy(net(x), y)

    fast = torch.compile(loss, mode="reduce-overhead") if CARD else loss
    state = [t for t in list(net.parameters()) + list(net.buffers()) if t.is_floating_point()]
    whole = [t.detach().clone() for t in state]
    for r in range(1, rounds + 1):
        total = [torch.zeros_like(t) for t in whole]
        for shard in shards:
            with torch.no_grad():
                torch._foreach_copy_(state, whole)
            for _ in range(EPOCHS):
                for batch in shard[torch.randperm(points)].to(DEVICE).split(BATCH):
                    sgd.zero_grad(set_to_none=True)
                    (fast if len(batch) == BATCH else loss)(train_x[batch], train_y[batch]).backward()
                    sgd.step()
            with torch.no_grad():
                torch._foreach_add_(total, state, alpha=1 / MEMBERS)
        whole = total
        net.eval()
        with torch.no_grad(), torch.autocast(DEVICE, torch.bfloat16, enabled=CARD):
            torch._foreach_copy_(state, whole)
            right = sum((net(x).argmax(1) == y).sum().item() for x, y in zip(test_x.split(500), test_y.split(500)))
        net.train()
        print(f"{how} {points} points, seed {seed}, round {r}: {100 * right / len(test_x):.2f}%", flush=True)


main()
