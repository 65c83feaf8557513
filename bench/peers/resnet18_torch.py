"""Images per second of PyTorch training ResNet-18 on one card: several processes side by side.

    python3 bench/peers/resnet18_torch.py [processes] [eager|compile] [foreach|fused]

Each process trains its own model (bf16 autocast, channels last, batch 64, plain SGD) on random images of CIFAR-10's
shape that stay on the card and are taken by index, compiled with torch.compile(mode="reduce-overhead") by default, under
NVIDIA's multi-process service where it is installed. Every process is measured over the same 600 steps after 60 of
warm-up, all at once; the sum is printed. bench/xla measures Grange in the same way.
"""
import os
import shutil
import subprocess
import sys
import tempfile
import time

WARM, STEPS, BATCH, IMAGES = 60, 600, 64, 50000


def network():
    """ResNet-18 for images of 32×32 points, as Grange builds it."""
    import torch
    from torch import nn

    class Block(nn.Module):
        def __init__(self, inputs, width, stride):
            super().__init__()
            self.conv1 = nn.Conv2d(inputs, width, 3, stride, 1, bias=False)
            self.norm1 = nn.BatchNorm2d(width)
            self.conv2 = nn.Conv2d(width, width, 3, 1, 1, bias=False)
            self.norm2 = nn.BatchNorm2d(width)
            self.carry = nn.Identity()
            if stride != 1:
                self.carry = nn.Sequential(nn.Conv2d(inputs, width, 1, stride, bias=False), nn.BatchNorm2d(width))

        def forward(self, x):
            y = self.norm2(self.conv2(torch.relu(self.norm1(self.conv1(x)))))
            return torch.relu(y + self.carry(x))

    layers, width = [nn.Conv2d(3, 64, 3, 1, 1, bias=False), nn.BatchNorm2d(64), nn.ReLU()], 64
    for out, stride in [(64, 1), (128, 2), (256, 2), (512, 2)]:
        layers += [Block(width, out, stride), Block(out, out, 1)]
        width = out
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, 10))


def train(mode, optimizer, folder, index, count):
    import torch
    from torch import nn

    torch.backends.cudnn.benchmark = True
    net = network()
    net = net.cuda().to(memory_format=torch.channels_last)
    sgd = torch.optim.SGD(net.parameters(), lr=0.01, **{optimizer: True})
    images = torch.randint(0, 256, (IMAGES, 3, 32, 32), dtype=torch.uint8, device="cuda")
    images = images.to(memory_format=torch.channels_last)
    labels = torch.randint(0, 10, (IMAGES,), device="cuda")
    order = torch.randint(0, IMAGES, (WARM + STEPS, BATCH), device="cuda")

    def loss(x, y):
        with torch.autocast("cuda", torch.bfloat16):
            return nn.functional.cross_entropy(net(x), y)

    if mode == "compile":
        loss = torch.compile(loss, mode="reduce-overhead")

    def step(i):
        x = ((images[order[i]].float() / 255 - 0.45) * 4).to(memory_format=torch.channels_last)
        sgd.zero_grad(set_to_none=True)
        loss(x, labels[order[i]]).backward()
        sgd.step()

    for i in range(WARM):
        step(i)
    torch.cuda.synchronize()
    open(os.path.join(folder, str(index)), "w").close()
    while len(os.listdir(folder)) < count:
        time.sleep(0.005)
    began = time.time()
    for i in range(WARM, WARM + STEPS):
        step(i)
    torch.cuda.synchronize()
    print("images/s", STEPS * BATCH / (time.time() - began))


def main():
    arguments = sys.argv[1:] + [None] * 3
    count, mode, optimizer = int(arguments[0] or 5), arguments[1] or "compile", arguments[2] or "foreach"
    service = shutil.which("nvidia-cuda-mps-control") if count > 1 else None
    with tempfile.TemporaryDirectory() as folder:
        environment = dict(os.environ)
        if service:
            pipes = os.path.join(folder, "pipes")
            os.mkdir(pipes)
            environment.update(CUDA_MPS_PIPE_DIRECTORY=pipes, CUDA_MPS_LOG_DIRECTORY=pipes)
            subprocess.run([service, "-d"], env=environment, check=True)
            time.sleep(1)
        ready = os.path.join(folder, "ready")
        os.mkdir(ready)
        workers = [
            subprocess.Popen([sys.executable, __file__, "worker", mode, optimizer, ready, str(i), str(count)],
                             env=environment, stdout=subprocess.PIPE, text=True)
            for i in range(count)
        ]
        total = 0.0
        for worker in workers:
            out, _ = worker.communicate()
            total += sum(float(line.split()[1]) for line in out.splitlines() if line.startswith("images/s"))
        if service:
            subprocess.run([service], env=environment, input="quit\n", text=True)
    import torch
    print(f"PyTorch {torch.__version__} {mode} {optimizer}: {count} processes, side by side {bool(service)}: {total:.0f} images/s in all")


if __name__ == "__main__":
    if len(sys.argv) > 1 and sys.argv[1] == "worker":
        train(sys.argv[2], sys.argv[3], sys.argv[4], int(sys.argv[5]), int(sys.argv[6]))
    else:
        main()
