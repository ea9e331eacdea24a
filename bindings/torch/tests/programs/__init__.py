"""Programs in the manner of PyTorch's examples and of published models, small: what each finds out, on whatever device.

A program is a function of the place where it runs; what it gives back is compared with what it gives on the CPU.  Random
numbers are drawn on the CPU, so that places have the same.
"""

import torch

PROGRAMS = {}


class Place:
    def __init__(self, device, compiler=None):
        self.device, self.compiler = device, compiler

    def __call__(self, *given):
        """Modules or tensors here."""
        moved = [one.to(self.device) for one in given]
        return moved[0] if len(moved) == 1 else moved

    def compiled(self, function):
        return torch.compile(function, backend=self.compiler) if self.compiler else function


class Program:
    def __init__(self, function, by_cpu, tolerance):
        self.function, self.by_cpu, self.tolerance = function, by_cpu, tolerance

    def __call__(self, place):
        """Tensors on the CPU."""
        torch.manual_seed(0)
        return [torch.as_tensor(x).detach().cpu() for x in self.function(place)]


def program(*, by_cpu=(), tolerance=1e-3):
    """`by_cpu`: what the device leaves to the CPU there, by the beginnings of names."""
    def register(function):
        PROGRAMS[function.__name__] = Program(function, by_cpu, tolerance)
        return function
    return register


def train(loss_of, parameters, steps=5, rate=0.05, optimizer=None):
    """The losses of some steps, and what the parameters are behind them."""
    parameters = list(parameters)
    optimizer = optimizer or torch.optim.SGD(parameters, rate, momentum=0.9)
    losses = []
    for step in range(steps):
        optimizer.zero_grad()
        loss = loss_of(step)
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
    return [torch.stack(losses), *parameters]


from . import generation, language, learning, machinery, pictures, signals, structures, tools  # noqa: E402,F401 - they register themselves
