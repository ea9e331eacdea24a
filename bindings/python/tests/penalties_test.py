"""Losses of gradients, and steps of several parts: trajectories as PyTorch's, step by step and as one program."""

import unittest

import numpy as np
import torch
import torch.nn.functional as F

from tiny import Tensor, TinyJit, nn

STEPS = 6


def drawn(*shape, seed=0, by=1.0):
    return (np.random.default_rng(seed).standard_normal(shape) * by).astype(np.float32)


def softplus(x):
    return F.softplus(x) if isinstance(x, torch.Tensor) else x.softplus()


def conv(x, w, **options):
    return (F.conv2d if isinstance(x, torch.Tensor) else Tensor.conv2d)(x, w, **options)


def slopes(y, *by):
    """Of the sum, as values that have gradients."""
    if isinstance(y, torch.Tensor):
        return torch.autograd.grad(y.sum(), by, create_graph=True)
    return y.sum().gradient(*by)


def wasserstein(weights, real, made, between):
    """With a penalty of slopes that are not as long as 1 (Gulrajani et al. 2017)."""
    first, second, last = weights

    def judged(x):
        h = softplus(conv(x, first, stride=2, padding=1))
        return softplus(conv(h, second, stride=2, padding=1)).flatten(1) @ last
    x = between * real + (1 - between) * made
    if isinstance(x, torch.Tensor):
        x.requires_grad_(True)
    slope, = slopes(judged(x), x)
    length = (slope.flatten(1).square().sum(1) + 1e-12).sqrt()
    return judged(made).mean() - judged(real).mean() + 10 * (length - 1).square().mean()


def burgers(weights, x, t):
    """The residual of u_t + u u_x = nu u_xx, whose last slope is a second one (Raissi et al. 2019)."""
    of_x, of_t, inner, last = weights
    if isinstance(x, torch.Tensor):
        x.requires_grad_(True)
        t.requires_grad_(True)
    u = ((x @ of_x + t @ of_t).tanh() @ inner).tanh() @ last
    u_x, u_t = slopes(u, x, t)
    u_xx, = slopes(u_x, x)
    return (u_t + u * u_x - 0.01 * u_xx).square().mean()


def adapted(weights, x, y):
    """The loss after two steps that gradients go back through (Finn et al. 2017)."""
    def loss(first, bias, last):
        return ((x @ first + bias).tanh() @ last - y).square().mean()
    for _ in range(2):
        weights = [w - 0.1 * slope for w, slope in zip(weights, slopes(loss(*weights), *weights))]
    return loss(*weights)


class Trajectories(unittest.TestCase):
    def compare(self, loss, weights, batch):
        theirs = [torch.tensor(w, requires_grad=True) for w in weights]
        optimizer, want = torch.optim.Adam(theirs, 1e-2), []
        for _ in range(STEPS):
            optimizer.zero_grad()
            now = loss(theirs, *map(torch.tensor, batch))
            now.backward()
            optimizer.step()
            want.append(now.item())
        self.assertNotAlmostEqual(want[0], want[-1], places=3)
        for whole in (False, True):
            with self.subTest(program=whole), Tensor.train():
                ours = [Tensor(w, requires_grad=True) for w in weights]
                own = nn.optim.Adam(ours, 1e-2)

                def step(*inputs):
                    own.zero_grad()
                    now = loss(ours, *inputs).backward()
                    own.step()
                    return now.realize()
                step = TinyJit(step) if whole else step
                inputs = [Tensor(array).realize() for array in batch]
                got = [step(*inputs).item() for _ in range(STEPS)]
                np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)
                for one, other in zip(ours, theirs):
                    np.testing.assert_allclose(one.numpy(), other.detach().numpy(), rtol=1e-3, atol=1e-4)

    def test_a_penalty_of_slopes_through_convolutions(self):
        for kernel in (3, 4):
            with self.subTest(kernel=kernel):
                weights = [drawn(8, 3, kernel, kernel, by=0.2), drawn(16, 8, kernel, kernel, by=0.1), drawn(64, 1, by=0.1)]
                between = np.random.default_rng(1).random((4, 1, 1, 1), dtype=np.float32)
                self.compare(wasserstein, weights, [drawn(4, 3, 8, 8), drawn(4, 3, 8, 8, seed=2), between])

    def test_a_residual_of_second_slopes(self):
        weights = [drawn(1, 16), drawn(1, 16, seed=1), drawn(16, 16, by=0.3), drawn(16, 1, by=0.3)]
        self.compare(burgers, weights, [drawn(32, 1), drawn(32, 1, seed=3)])

    def test_a_loss_behind_steps(self):
        self.compare(adapted, [drawn(1, 16), drawn(16, by=0.1), drawn(16, 1, by=0.3)], [drawn(10, 1), drawn(10, 1, seed=1)])


class Averages(unittest.TestCase):
    """Weights and a queue that follow the trained ones, within the step (He et al. 2020)."""

    def compare_step(self, step, tensors, batch):
        theirs = [torch.tensor(w) for w in tensors]
        for one in theirs[:2]:
            one.requires_grad_(True)
        optimizer, want = torch.optim.SGD(theirs[:2], 0.05, momentum=0.9), []
        for _ in range(STEPS):
            loss, keys = step(theirs, optimizer, *map(torch.tensor, batch))
            with torch.no_grad():
                for slow, fast in zip(theirs[2:4], theirs[:2]):
                    slow.lerp_(fast, 0.1)
                theirs[4].copy_(torch.cat([theirs[4][len(keys):], keys]))
            want.append(loss.item())
        for whole in (False, True):
            with self.subTest(program=whole), Tensor.train():
                ours = [Tensor(w).realize() for w in tensors]
                own = nn.optim.SGD(ours[:2], 0.05, momentum=0.9)

                def whole_step(*inputs):
                    loss, keys = step(ours, own, *inputs)
                    for slow, fast in zip(ours[2:4], ours[:2]):
                        slow.assign(slow.lerp(fast.detach(), 0.1))
                    ours[4].assign(ours[4][keys.shape[0]:].cat(keys, dim=0))
                    return loss.realize(*ours[2:])
                run = TinyJit(whole_step) if whole else whole_step
                inputs = [Tensor(array).realize() for array in batch]
                got = [run(*inputs).item() for _ in range(STEPS)]
                np.testing.assert_allclose(got, want, rtol=1e-4)
                for one, other in zip(ours, theirs):
                    np.testing.assert_allclose(one.numpy(), other.detach().numpy(), rtol=1e-4, atol=1e-5)

    def test_a_queue_of_keys(self):
        def step(tensors, optimizer, a, b):
            first, last, slow_first, slow_last, queue = tensors
            normal = F.normalize if isinstance(a, torch.Tensor) else Tensor.normalize
            optimizer.zero_grad()
            query = normal((a @ first).relu() @ last, dim=-1)
            keys = normal((b @ slow_first).relu() @ slow_last, dim=-1).detach()
            same, others = (query * keys).sum(-1, keepdim=True), query @ queue.T
            if isinstance(a, torch.Tensor):
                loss = -(torch.cat([same, others], 1) / 0.2).log_softmax(-1)[:, 0].mean()
            else:
                loss = -(same.cat(others, dim=1) / 0.2).log_softmax(-1)[:, 0].mean()
            loss.backward()
            optimizer.step()
            return loss, keys
        first, last = drawn(6, 16, by=0.4), drawn(16, 4, seed=1, by=0.3)
        tensors = [first, last, first.copy(), last.copy(), drawn(24, 4, seed=2)]
        self.compare_step(step, tensors, [drawn(8, 6, seed=3), drawn(8, 6, seed=4)])


class GradientsAlone(unittest.TestCase):
    """A loss of gradients alone: its leaves are those that the gradients were made of."""

    def leaves(self, *arrays):
        return [torch.tensor(a, requires_grad=True) for a in arrays], [Tensor(a, requires_grad=True) for a in arrays]

    def test_a_penalty_alone(self):
        arrays = drawn(8, 4, seed=1), drawn(8, seed=2), drawn(1, 8, seed=3), drawn(1, seed=4)
        x = drawn(6, 4, seed=5)
        for soft in (softplus, lambda h: h.relu()):
            got = []
            for kind, (first, bias, last, offset) in zip((torch.tensor, Tensor), self.leaves(*arrays)):
                y = kind(x, requires_grad=True)
                slope, = slopes(soft(y @ first.T + bias) @ last.T + offset, y)
                self.assertTrue(slope.requires_grad)
                slope.square().sum().backward()
                got.append([None if one.grad is None else one.grad.tolist() for one in (first, bias, last, offset)])
            self.assertIsNone(got[1][3])  # the slope has no part of it
            for want, have in zip(*got):
                if want is not None:
                    np.testing.assert_allclose(have, want, rtol=1e-5, atol=1e-6)

    def test_a_penalty_beside_another_loss_lacks_no_part(self):
        arrays, x = (drawn(8, 4, seed=1), drawn(1, 8, seed=3)), drawn(6, 4, seed=5)
        got = []
        for kind, (first, last) in zip((torch.tensor, Tensor), self.leaves(*arrays)):
            y = kind(x)
            y.requires_grad_(True)
            slope, = slopes((y @ first.T).tanh() @ last.T, y)
            (slope.square().sum() + last.sum()).backward()
            got.append([first.grad.tolist(), last.grad.tolist()])
        for want, have in zip(*got):
            np.testing.assert_allclose(have, want, rtol=1e-5, atol=1e-6)

    def test_a_leaf_that_was_written_to_since(self):
        first, last = Tensor(drawn(8, 4), requires_grad=True), Tensor(drawn(1, 8), requires_grad=True)
        y = Tensor(drawn(6, 4))
        slope, = slopes((y @ first.T).tanh() @ last.T, y)
        first.assign(first.detach() * 2).realize()
        with self.assertRaisesRegex(RuntimeError, "assigned to since"):
            slope.square().sum().backward()

    def test_without_gradients(self):
        weight, y = Tensor(drawn(4, 4), requires_grad=True), Tensor(drawn(2, 4))
        with Tensor.no_grad():
            slope, = slopes((y @ weight).tanh(), y)
        self.assertFalse(slope.requires_grad)
        slope, = slopes((y @ weight).tanh(), y)
        with self.assertRaisesRegex(RuntimeError, "requires gradients"):
            slope.detach().sum().backward()


if __name__ == "__main__":
    unittest.main()
