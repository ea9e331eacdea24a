"""Times of a step of examples/hlb_cifar10.py on tiny beside those of the same network in PyTorch at its best.

usage: hlb_times.py CHECKOUT [BATCH [STEPS [ROUNDS]]]     32, 30 and 3; prints each round's medians and their ratio

Both are processes of their own, one after the other in each round; the first five steps of each do not count.
"""

import os
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile
import time

import make_cifar

WARM = 5


def network(torch):
    """SpeedyResNet: the program's layers, paddings and normalisations."""
    nn = torch.nn

    class Norm(nn.Module):
        def __init__(self, size):
            super().__init__()
            self.weight = nn.Parameter(torch.ones(size), requires_grad=False)
            self.bias = nn.Parameter(torch.zeros(size))

        def forward(self, x):
            return nn.functional.batch_norm(x, None, None, self.weight, self.bias, True, 0.85, 1e-12)

    def gelu(x):
        return x * torch.sigmoid(x * 1.702)

    class Group(nn.Module):
        def __init__(self, before, after):
            super().__init__()
            self.first, self.second = (nn.Conv2d(a, after, 3, padding=1, bias=False) for a in (before, after))
            self.norm1, self.norm2 = Norm(after), Norm(after)

        def forward(self, x):
            x = gelu(self.norm1(nn.functional.max_pool2d(self.first(x), 2)))
            return gelu(self.norm2(self.second(x))) + x

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.whiten = nn.Parameter(torch.randn(12, 3, 2, 2), requires_grad=False)
            self.first, self.last = nn.Conv2d(12, 32, 1, bias=False), nn.Linear(512, 10, bias=False)
            self.groups = nn.Sequential(Group(32, 64), Group(64, 256), Group(256, 512))

        def forward(self, x):
            x = nn.functional.pad(nn.functional.conv2d(x, self.whiten), (1, 0, 0, 1))
            return self.last(self.groups(gelu(self.first(x))).amax((2, 3))) / 9
    return Net()


def torch_steps(batch, steps):
    """Milliseconds of each step: both optimisers, the losses' read, a rate that changes."""
    import torch
    torch.manual_seed(1)
    net = network(torch).to(memory_format=torch.channels_last)
    biases = [one for name, one in net.named_parameters() if one.requires_grad and "bias" in name]
    others = [one for name, one in net.named_parameters() if one.requires_grad and "bias" not in name]
    optimizers = [torch.optim.SGD(group, 0.01, momentum=0.85, nesterov=True, weight_decay=1e-3, foreach=True)
                  for group in (biases, others)]
    x = torch.randn(batch, 3, 32, 32).contiguous(memory_format=torch.channels_last)
    y = torch.nn.functional.one_hot(torch.arange(batch) % 10, 10).float() * 0.8 + 0.02
    taken = []
    for step in range(steps):
        begun = time.perf_counter()
        loss = -(net(x).log_softmax(1) * y).sum(1).mul(1 / 128 * 512 / batch).sum() * 128
        for optimizer in optimizers:
            optimizer.param_groups[0]["lr"] = 1e-3 * (1 + step / steps)
            optimizer.zero_grad()
        loss.backward()
        for optimizer in optimizers:
            optimizer.step()
        loss.item()
        taken.append((time.perf_counter() - begun) * 1e3)
    return taken


def tiny_steps(checkout, batch, steps, folder):
    """What the program prints of its steps."""
    program = os.path.join(checkout, "examples", "hlb_cifar10.py")
    settings = {"BS": str(batch), "STEPS": str(steps), "EVAL_STEPS": str(10 ** 9), "TINY_DATASETS": str(folder)}
    done = subprocess.run([sys.executable, "-B", "-m", "tiny.compat", program], text=True, capture_output=True,
                          env={**os.environ, **settings}, check=False)
    found = [float(one) for one in re.findall(r"([\d.]+) ms run", done.stdout)]
    if done.returncode or len(found) < steps:
        sys.exit(f"{program}: {done.stdout[-2000:]}{done.stderr[-4000:]}")
    return found


def main(checkout, batch=32, steps=30, rounds=3):
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        make_cifar.write(folder / "cifar-10", max(400, batch * steps // 4))
        ratios = []
        for _ in range(rounds):
            mine = statistics.median(tiny_steps(checkout, batch, steps, folder)[WARM:])
            said = subprocess.run([sys.executable, "-B", __file__, "torch", str(batch), str(steps)], text=True,
                                  capture_output=True, check=True).stdout
            theirs = statistics.median([float(one) for one in said.split()][WARM:])
            ratios.append(mine / theirs)
            print(f"batch {batch}: tiny {mine:.1f} ms, torch {theirs:.1f} ms, ratio {ratios[-1]:.2f}", flush=True)
    print(f"median ratio {statistics.median(ratios):.2f}")


if __name__ == "__main__":
    if sys.argv[1:2] == ["torch"]:
        print(*torch_steps(*map(int, sys.argv[2:])))
    elif len(sys.argv) > 1:
        main(sys.argv[1], *map(int, sys.argv[2:]))
    else:
        sys.exit(__doc__)
