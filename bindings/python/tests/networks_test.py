"""Random small networks against PyTorch's: values, gradients, and gradients of gradients.

Each network is a few functions that are drawn, with their options, one after the other; `NETWORKS=5000` in the
environment tries more of them than the suite does, from `NETWORKS_FROM` on.
"""

import os
import random
import unittest
import warnings

import numpy as np
import torch
import torch.nn.functional as F
from compared import Case
from torch.nn.attention import SDPBackend, sdpa_kernel

import tiny
from tiny import Tensor, nn

ELEMENTS_MAX = 600  # of a value: larger ones only take time
GREATEST = 1e3  # what is greater amplifies rounding until nothing can be compared


class Unfit(Exception):
    """A function that the value cannot have."""


def fits(condition):
    if not condition:
        raise Unfit


class Draw:
    """The next function of a network, as a pair: of tensors here, and of PyTorch's."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.arrays = np.random.default_rng(seed)

    def numbers(self, *shape, low=-2.0):
        return self.arrays.uniform(low, 2.0, shape)

    def axis(self, x):
        fits(x.ndim)
        return self.random.randrange(-x.ndim, x.ndim)

    def element(self, x):
        one = self.random.choice([
            (lambda x: x.gelu("tanh"), lambda x: F.gelu(x, approximate="tanh")), (Tensor.softplus, F.softplus),
            (Tensor.elu, F.elu), (Tensor.celu, F.celu), (Tensor.mish, F.mish), (Tensor.logsigmoid, F.logsigmoid),
            *[(getattr(Tensor, name), getattr(torch, name)) for name in
              "relu sigmoid tanh exp sin abs square erf atan asinh sinh expm1 exp2 trunc neg".split()],
            (lambda x: (x.sin() * 0.9).asin(),) * 2, (lambda x: (x * x + 0.1).log2(),) * 2,
            (lambda x: x.abs().log1p(),) * 2, (lambda x: (x * x + 1.1).acosh(),) * 2, (lambda x: x.clamp(-0.5, 0.7),) * 2])
        return one

    def reduction(self, x):
        axis, keepdim, name = self.axis(x), self.random.random() < 0.5, self.random.choice(
            "sum mean amax amin prod logsumexp var std norm cumsum cumprod logcumsumexp cummax softmax log_softmax sort "
            "normalize".split())
        size = x.shape[axis]
        fits(size > 1 if name in ("var", "std") else size > 0 if name in ("norm", "cummax") else True)
        if name == "normalize":
            return lambda x: x.normalize(dim=axis), lambda x: F.normalize(x, dim=axis)
        if name in ("sum", "mean", "amax", "amin", "prod", "logsumexp"):
            both = lambda x: getattr(x, name)(axis, keepdim=keepdim)
        elif name in ("var", "std"):
            both = lambda x: getattr(x, name)(axis, correction=1, keepdim=keepdim)
        elif name == "norm":
            both = lambda x: x.norm(2, axis, keepdim)
        elif name in ("cummax", "sort"):
            both = lambda x: getattr(x, name)(axis)[0]
        else:
            both = lambda x: getattr(x, name)(axis)
        return both, both

    def movement(self, x):
        name = self.random.choice("permute pad slice cat tile diag_embed diagonal unfold gather scatter write".split())
        if name == "permute":
            fits(x.ndim)
            order = self.random.sample(range(x.ndim), x.ndim)
            both = lambda x: x.permute(*order)
        elif name == "pad":
            sides = [self.random.randint(0, 2) for _ in range(2 * x.ndim)]
            return lambda x: x.pad(tuple(sides), value=0.5), lambda x: F.pad(x, sides, value=0.5)
        elif name == "slice":
            axis = self.axis(x) % x.ndim
            key = (slice(None),) * axis + (slice(self.random.randint(-2, 1), None, self.random.randint(1, 2)),)
            both = lambda x: x[key]
        elif name == "cat":
            axis = self.axis(x)
            return lambda x: x.cat(x * 2, dim=axis), lambda x: torch.cat([x, x * 2], axis)
        elif name == "tile":
            times = [self.random.randint(1, 2) for _ in range(self.random.randint(1, x.ndim + 1))]
            both = lambda x: x.tile(times)
        elif name == "diag_embed":
            fits(x.ndim in (1, 2))
            offset = self.random.randint(-2, 2)
            both = lambda x: x.diag_embed(offset)
        elif name == "diagonal":
            fits(x.ndim > 1)
            offset, axes = self.random.randint(-2, 2), self.random.sample(range(x.ndim), 2)
            both = lambda x: x.diagonal(offset, *axes)
        elif name == "unfold":
            axis = self.axis(x)
            fits(x.shape[axis])
            size, step = self.random.randint(1, x.shape[axis]), self.random.randint(1, 3)
            both = lambda x: x.unfold(axis, size, step)
        elif name == "write":
            fits(x.ndim and x.shape[0])

            def both(x):
                y = x.clone()
                y[::2] *= 3
                y[-1] = (x[0] * x[-1]).sin()
                return y * x
        else:
            axis = self.axis(x)
            fits(x.shape[axis])
            index = self.arrays.integers(0, x.shape[axis], x.shape)
            if name == "gather":
                return lambda x: x.gather(axis, Tensor(index)), lambda x: x.gather(axis, torch.tensor(index))
            return (lambda x: x.scatter_add(axis, Tensor(index), x.sin()),
                    lambda x: x.scatter_add(axis, torch.tensor(index), x.sin()))
        return both, both

    def product(self, x):
        fits(x.ndim > 1 and 0 not in x.shape)
        *batch, length, size = x.shape
        if self.random.random() < 0.4:
            weight, bias = self.numbers(self.random.randint(1, 4), size), self.numbers(1)
            return (lambda x: x.linear(Tensor(weight).T, Tensor(bias)),
                    lambda x: F.linear(x, torch.tensor(weight), torch.tensor(bias)))
        others, width = self.random.randint(1, 5), self.random.randint(1, 5)
        keys, values = self.numbers(*batch, others, size), self.numbers(*batch, others, width)
        mask = self.numbers(length, others)
        return (lambda x: x.scaled_dot_product_attention(Tensor(keys) * x.mean(), Tensor(values) * x.mean(),
                                                         attn_mask=Tensor(mask)),
                lambda x: F.scaled_dot_product_attention(x, torch.tensor(keys) * x.mean(),
                                                         torch.tensor(values) * x.mean(), torch.tensor(mask)))

    def window(self, x):
        fits(x.ndim in (3, 4, 5) and 0 not in x.shape)
        count = x.ndim - 2
        kernel, steps = ([self.random.randint(1, 3) for _ in range(count)] for _ in range(2))
        sides = [self.random.randint(0, size // 2) for size in kernel]
        apart = [self.random.randint(1, 2) for _ in range(count)]
        name = self.random.choice(["conv", "conv_transpose", "max_pool", "avg_pool"])
        theirs = getattr(F, f"{name}{count}d")
        if name == "max_pool":
            ceil = self.random.random() < 0.5
            return (lambda x: x.max_pool2d(kernel, stride=steps, dilation=apart, padding=sides, ceil_mode=ceil),
                    lambda x: theirs(x, kernel, steps, sides, apart, ceil))
        if name == "avg_pool":
            ceil, whole = self.random.random() < 0.5, self.random.random() < 0.5
            return (lambda x: x.avg_pool2d(kernel, stride=steps, padding=sides, ceil_mode=ceil, count_include_pad=whole),
                    lambda x: theirs(x, kernel, steps, sides, ceil, whole))
        channels = x.shape[1]
        groups = self.random.choice([n for n in range(1, channels + 1) if channels % n == 0])
        each = self.random.randint(1, 2)
        if name == "conv":
            weight = self.numbers(groups * each, channels // groups, *kernel)
            padding = tuple(side for one in reversed(sides) for side in (one, one))
            ours = lambda x: x.conv2d(Tensor(weight) * x.mean(), None, groups, steps, apart, padding)
        else:
            weight = self.numbers(channels, each, *kernel)
            ours = lambda x: x.conv_transpose2d(Tensor(weight) * x.mean(), None, groups, steps, apart, sides)
        return ours, lambda x: theirs(x, torch.tensor(weight) * x.mean(), None, stride=steps, padding=sides,
                                      groups=groups, dilation=apart)

    def norm(self, x):
        fits(x.ndim > 2 and 0 not in x.shape)
        channels, inner = x.shape[1], x.shape[2:]
        fits(np.prod(inner) > 1)
        return self.random.choice([
            (lambda x: nn.LayerNorm(inner, eps=1e-2)(x), lambda x: F.layer_norm(x, inner, eps=1e-2)),
            (lambda x: nn.GroupNorm(1, channels, eps=1e-2)(x), lambda x: F.group_norm(x, 1, eps=1e-2)),
            (lambda x: nn.InstanceNorm(channels, eps=1e-2)(x), lambda x: F.instance_norm(x, eps=1e-2))])

    def loss(self, x):
        fits(x.ndim > 1 and 0 not in x.shape)
        reduction, smoothing = self.random.choice(["mean", "sum", "none"]), self.random.choice([0.0, 0.1])
        classes, other = self.arrays.integers(0, x.shape[1], (x.shape[0], *x.shape[2:])), self.numbers(*x.shape)
        return self.random.choice([
            (lambda x: x.cross_entropy(Tensor(classes), reduction=reduction, label_smoothing=smoothing),
             lambda x: F.cross_entropy(x, torch.tensor(classes), reduction=reduction, label_smoothing=smoothing)),
            (lambda x: x.huber_loss(Tensor(other), reduction=reduction, delta=0.5),
             lambda x: F.huber_loss(x, torch.tensor(other), reduction=reduction, delta=0.5)),
            (lambda x: x.binary_cross_entropy_with_logits(Tensor(other).sigmoid(), reduction=reduction),
             lambda x: F.binary_cross_entropy_with_logits(x, torch.tensor(other).sigmoid(), reduction=reduction))])

    KINDS = [element, element, reduction, reduction, movement, movement, product, window, window, norm, loss]

    def network(self):
        """Numbers, functions here, and the values that PyTorch has after each."""
        shape = [self.random.choice([1, 2, 3, 3, 4, 5]) for _ in range(self.random.randint(1, 5))]
        if self.random.random() < 0.05:
            shape[self.random.randrange(len(shape))] = 0
        start = self.numbers(*shape)
        values, functions = [torch.tensor(start, requires_grad=True)], []
        length = self.random.randint(1, 4)
        while len(functions) < length:
            try:
                ours, theirs = self.random.choice(self.KINDS)(self, values[-1])
                value = theirs(values[-1])
            except (Unfit, RuntimeError, ValueError, IndexError):
                continue
            if value.numel() > ELEMENTS_MAX or not torch.isfinite(value).all() or (value.abs() > GREATEST).any():
                continue
            functions.append(ours)
            values.append(value)
        return start, functions, values


class Networks(Case):
    def close(self, got, want, tolerance):
        if not torch.isfinite(want).all():  # at a pole; finite numbers are as good
            return
        want = want.numpy(force=True)
        self.assertEqual(got.shape, want.shape)
        np.testing.assert_allclose(got.numpy(), want, rtol=tolerance,
                                   atol=tolerance * (1 + np.abs(want).max(initial=0)))

    def compare(self, draw):
        start, functions, values = draw.network()
        x = Tensor(start)
        mine = [x]
        for function, value in zip(functions, values[1:]):
            mine.append(function(mine[-1]))
            self.assertEqual(mine[-1].shape, tuple(value.shape))
        weights, again = draw.numbers(*values[-1].shape), draw.numbers(*start.shape)
        loss = (values[-1] * torch.tensor(weights)).sum()
        slopes, = torch.autograd.grad(loss, values[0], create_graph=True)
        own_slopes, = tiny.gradient([(mine[-1] * Tensor(weights)).sum()], [x], allow_unused=True)
        curves = None
        if slopes.requires_grad:
            curves, = torch.autograd.grad((slopes * torch.tensor(again)).sum(), values[0], allow_unused=True)
            own_curves, = tiny.gradient([(own_slopes * Tensor(again)).sum()], [x], allow_unused=True)
        self.close(mine[-1], values[-1], 1e-9)
        self.close(own_slopes, slopes, 1e-8)
        if curves is not None:
            self.close(own_curves, curves, 1e-6)

    def test_an_extremum_that_was_read_before_it_is_looked_for(self):
        rows = np.random.default_rng(374).uniform(-2, 2, (2, 5, 4))
        for read in (False, True):
            x = Tensor(rows)
            best = x.normalize(dim=2).max_pool2d((2,), stride=1, dilation=2)
            slope, = best.sum().gradient(x)
            if read:
                best.numpy()
            y = torch.tensor(rows, requires_grad=True)
            F.max_pool1d(F.normalize(y, dim=2), 2, 1, 0, 2).sum().backward()
            np.testing.assert_allclose(slope.numpy(), y.grad.numpy(), rtol=1e-9, atol=1e-12)

    def test_against_torch(self):
        first, count = int(os.environ.get("NETWORKS_FROM", 0)), int(os.environ.get("NETWORKS", 150))
        for seed in range(first, first + count):
            with self.subTest(network=seed), warnings.catch_warnings(), sdpa_kernel(SDPBackend.MATH):
                warnings.simplefilter("ignore")
                self.compare(Draw(seed))


if __name__ == "__main__":
    unittest.main()
