"""Times of networks on device "tiny" beside PyTorch's on the CPU, eager and compiled, interleaved in one process.

usage: torch_times [-k TEXT] [--rounds N] [--batch N] [--inductor] [--alone]
A row for each: the best and the median in milliseconds, the ratio of the bests to eager PyTorch, and how many kernels of the
engine a call takes.  With --alone on one thread each, in the processor's time: for a machine that has other work.
"""

import argparse
import os
import statistics
import sys
import time

ALONE = "--alone" in sys.argv
if ALONE:
    os.environ["TINY_THREADS"] = "1"
clock = time.process_time if ALONE else time.perf_counter

import hlb_times  # noqa: E402
import networks_test  # noqa: E402
import torch  # noqa: E402
from torch import nn  # noqa: E402
from torch.nn import functional as F  # noqa: E402

import tiny.torch as tiny  # noqa: E402


def resnet18(options, device, compiler):
    torch.manual_seed(0)
    net = networks_test.ResNet18(64, 1000).eval().to(device)
    x = torch.randn(options.batch, 3, 224, 224).to(device)
    call = torch.compile(net, backend=compiler) if compiler else net

    def once():
        with torch.no_grad():
            return call(x)
    return once


def training(net, x, labels, optimizer, compiler):
    call = torch.compile(net, backend=compiler) if compiler else net

    def once():
        optimizer.zero_grad()
        loss = F.cross_entropy(call(x), labels)
        loss.backward()
        optimizer.step()
        return loss
    return once


def mnist(options, device, compiler):
    torch.manual_seed(0)
    net = networks_test.Mnist().to(device)
    x, labels = torch.randn(512, 1, 28, 28).to(device), (torch.arange(512) % 10).to(device)
    return training(net, x, labels, torch.optim.Adam(net.parameters(), 1e-3, foreach=True), compiler)


def hlb(options, device, compiler):
    torch.manual_seed(0)
    net = hlb_times.network(torch).to(device).to(memory_format=torch.channels_last)
    x = torch.randn(32, 3, 32, 32).to(device).to(memory_format=torch.channels_last)
    parameters = [p for p in net.parameters() if p.requires_grad]
    optimizer = torch.optim.SGD(parameters, 1e-3, momentum=0.85, nesterov=True, weight_decay=1e-3, foreach=True)
    return training(net, x, (torch.arange(32) % 10).to(device), optimizer, compiler)


def gpt(options, device, compiler):
    torch.manual_seed(0)
    net = networks_test.Decoder(1000, 256).to(device)
    x = torch.randint(1000, (8, 16)).to(device)
    flat = nn.Sequential(net, nn.Flatten(0, 1))
    return training(flat, x, x.flatten(), torch.optim.AdamW(net.parameters(), 1e-3, foreach=True), compiler)


NETWORKS = {"ResNet-18 inference, 224 x 224": resnet18, "MNIST step, 512": mnist, "hlb-CIFAR10 step, 32": hlb,
            "decoder step, 8 x 16": gpt}


def timed(call):
    begun = clock()
    call().sum().item()
    return 1e3 * (clock() - begun)


def kernels(call):
    torch.tiny.synchronize()
    before = tiny.counters()["realized"]["launches"]
    call().sum().item()
    return tiny.counters()["realized"]["launches"] - before


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-k", default="", help="networks whose name has this text")
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--batch", type=int, default=1, help="of the inference")
    parser.add_argument("--inductor", action="store_true", help="PyTorch's compiler, too (it needs a C++ compiler)")
    parser.add_argument("--alone", action="store_true", help="one thread, the processor's time")
    options = parser.parse_args()
    if ALONE:
        torch.set_num_threads(1)
    ways = [("eager", "cpu", None), ("tiny", "tiny", None), ("tiny compiled", "tiny", "tiny")]
    if options.inductor:
        ways.insert(1, ("inductor", "cpu", "inductor"))
    for name, make in NETWORKS.items():
        if options.k not in name:
            continue
        calls = {way: make(options, device, compiler) for way, device, compiler in ways}
        for call in calls.values():
            for _ in range(3):
                timed(call)
        times = {way: [] for way in calls}
        for _ in range(options.rounds):
            for way, call in calls.items():
                times[way].append(timed(call))
        print(name)
        for way, taken in times.items():
            count = f", {kernels(calls[way])} kernels" if way == "tiny" else ""
            print(f"  {way:14} best {min(taken):8.2f} ms, median {statistics.median(taken):8.2f} ms, "
                  f"{min(taken) / min(times['eager']):.2f} of eager{count}", flush=True)


if __name__ == "__main__":
    main()
