"""torch.compile(backend="tiny"): a program forward, a program backward, the results of the CPU."""

import copy
import unittest

import torch
from torch import nn
from torch.nn import functional as F

import tiny.torch as tiny


class Compiled(unittest.TestCase):
    def setUp(self):
        torch.manual_seed(0)
        torch._dynamo.reset()
        tiny.clear_fallbacks()

    def close(self, got, want):
        torch.testing.assert_close(got.detach().cpu(), want.detach(), rtol=1e-4, atol=1e-4)

    def test_a_network_is_trained(self):
        net = nn.Sequential(nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(36, 5))
        ours = copy.deepcopy(net).to("tiny")
        step = torch.compile(ours, backend="tiny")
        x, target = torch.randn(6, 1, 8, 8), torch.randint(5, (6,))
        optimizers = [torch.optim.SGD(model.parameters(), 0.1) for model in (net, ours)]
        for _ in range(3):
            for model, optimizer, device in ((net, optimizers[0], "cpu"), (step, optimizers[1], "tiny")):
                optimizer.zero_grad()
                F.cross_entropy(model(x.to(device)), target.to(device)).backward()
                optimizer.step()
        for p, q in zip([*net.parameters(), *net.buffers()], [*ours.parameters(), *ours.buffers()]):
            self.close(q, p)
        self.assertEqual(tiny.fallbacks(), {})

    def test_views_writes_and_sizes(self):
        def function(x):
            y = x.t().clone()
            y[0] += 2
            x.mul_(2)
            return y, y.as_strided((2, 2), (1, 1)), x.flip(0)
        compiled = torch.compile(function, backend="tiny")
        for rows in (2, 3, 4):
            given = torch.arange(rows * 3.0).reshape(rows, 3)
            ours = given.to("tiny")
            for got, want in zip(compiled(ours), function(given)):
                self.assertEqual((got.shape, got.stride()), (want.shape, want.stride()))
                self.close(got, want)
            self.close(ours, given)

    def test_random_numbers_are_drawn_by_each_call(self):
        compiled = torch.compile(lambda x: F.dropout(x, 0.5), backend="tiny")
        x = torch.ones(100, device="tiny")
        self.assertNotEqual(compiled(x).tolist(), compiled(x).tolist())


if __name__ == "__main__":
    unittest.main()
