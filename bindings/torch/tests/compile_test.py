"""torch.compile(backend="tiny"): a program forward, a program backward, the results of the CPU."""

import copy
import unittest
from unittest import mock

import torch
from torch import nn
from torch.nn import functional as F

import tiny.torch as tiny
from tiny.torch import _compile


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

    def test_parts_of_new_tensors_are_written(self):
        def function(x):
            y = F.pad(x * 2, (1, 0, 0, 2))
            z = x + 1
            z[1:, ::2] = 0
            return y, z, torch.stack((x, x * 2), 1), x.new_zeros(3).index_fill(0, torch.tensor([1], device=x.device), 2)
        compiled = torch.compile(function, backend="tiny")
        for scale in (1, 2):  # nothing of a call is left for the next
            x = scale * torch.randn(3, 4)
            for got, want in zip(compiled(x.to("tiny")), function(x)):
                self.close(got, want)

    def programs_of_step(self, net, x):
        """The forward graph's program after a step; its gradients are the CPU's."""
        ours, made, graphs = copy.deepcopy(net).to("tiny"), _compile.Graph, []
        with mock.patch.object(_compile, "Graph", lambda *given: graphs.append(made(*given)) or graphs[-1]):
            torch.compile(ours, backend="tiny", dynamic=False)(x.to("tiny")).square().sum().backward()
        net(x).square().sum().backward()
        for p, q in zip(net.parameters(), ours.parameters()):
            self.close(q.grad, p.grad)
        (program, _), = graphs[0].programs.values()
        return graphs[0], program

    def test_what_is_saved_of_inputs_is_not_copied(self):
        # Weights, their transposes and the input are saved for the backward graph; computed are two products.
        _, program = self.programs_of_step(nn.Sequential(nn.Linear(16, 24), nn.Linear(24, 8)), torch.randn(32, 16))
        self.assertGreaterEqual(len(program.passed), 2)
        self.assertEqual(torch.ops.tiny.kernel_count(program.number), 2)

    def test_what_is_saved_between_convolutions_has_channels_innermost(self):
        net = nn.Sequential(nn.Conv2d(3, 16, 3), nn.ReLU(), nn.Conv2d(16, 8, 3), nn.ReLU())
        graph, program = self.programs_of_step(net, torch.randn(4, 3, 12, 12))
        self.assertTrue(graph.channels_last)
        self.assertEqual(torch.ops.tiny.kernel_count(program.number), 2)
        shared = [places for places in program.result_places if len(places) > 1]
        self.assertTrue(shared)  # an activation, which is saved twice, is stored once
        y = torch.compile(copy.deepcopy(net).to("tiny"), backend="tiny", dynamic=False)(torch.randn(4, 3, 12, 12).to("tiny"))
        self.assertTrue(y.is_contiguous())  # what the caller sees lies as PyTorch says

    def test_a_buffer_that_is_written_is_saved_as_it_was(self):
        class Counting(nn.Module):
            def __init__(self):
                super().__init__()
                self.weight = nn.Parameter(torch.ones(3))
                self.register_buffer("calls", torch.ones(3))

            def forward(self, x):
                y = x * self.weight * self.calls.clone()
                self.calls.add_(1)
                return y
        self.programs_of_step(Counting(), torch.randn(4, 3))

    def test_random_numbers_are_drawn_by_each_call(self):
        compiled = torch.compile(lambda x: F.dropout(x, 0.5), backend="tiny")
        x = torch.ones(100, device="tiny")
        self.assertNotEqual(compiled(x).tolist(), compiled(x).tolist())


class Decoder(nn.Module):
    def __init__(self, words=30, width=16):
        super().__init__()
        self.words, self.places = nn.Embedding(words, width), nn.Embedding(40, width)
        self.all, self.out, self.norm = nn.Linear(width, 3 * width), nn.Linear(width, width), nn.LayerNorm(width)

    def forward(self, x):
        y = self.words(x) + self.places(torch.arange(x.shape[1], device=x.device))
        q, k, v = (part.unflatten(-1, (4, -1)).transpose(1, 2) for part in self.all(self.norm(y)).chunk(3, -1))
        y = y + self.out(F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(2))
        return F.linear(y, self.words.weight)


def convolutions():
    return nn.Sequential(nn.Conv2d(1, 4, 3, 2, 1), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(16, 5))


class Function(nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function, self.scale = function, nn.Parameter(torch.tensor([0.5, 1.0, 2.0]))

    def forward(self, x):
        return self.function(x * self.scale)


class Sizes(unittest.TestCase):
    """Graphs with symbols for sizes: one program of the engine for all of them."""

    def setUp(self):
        torch.manual_seed(0)
        torch._dynamo.reset()
        self.graphs = []

    def compare(self, net, inputs, dynamic=True):
        """Outputs and gradients of each input, all of one forward and one backward graph."""
        ours = copy.deepcopy(net).to("tiny")
        made, self.graphs = _compile.Graph, []
        with mock.patch.object(_compile, "Graph", lambda *given: self.graphs.append(made(*given)) or self.graphs[-1]):
            step = torch.compile(ours, backend="tiny", dynamic=dynamic)
            for x in inputs:
                found = []
                for model, call, device in ((net, net, "cpu"), (ours, step, "tiny")):
                    given = x.to(device)
                    if dynamic is None and device == "tiny":
                        torch._dynamo.mark_dynamic(given, 0)
                    model.zero_grad()
                    y = call(given)
                    y.square().sum().backward()
                    found.append([y.detach().cpu(), *(p.grad.cpu() for p in model.parameters())])
                self.assertEqual(found[1][0].stride(), found[0][0].stride())
                for got, want in zip(found[1], found[0]):
                    torch.testing.assert_close(got, want, rtol=1e-3, atol=1e-3)
        self.assertEqual(len(self.graphs), 2)

    def programs(self):
        return [(sum(map(bool, graph.variable_programs.values())), len(graph.programs)) for graph in self.graphs]

    def test_one_program_for_all_sizes(self):
        rows = [torch.randn(n, 3) for n in (4, 5, 7, 16)]
        words = [torch.randint(30, (n, n + 3)) for n in (4, 5, 7, 16)]
        for name, net, inputs in (("decoder", Decoder(), words),
                                  ("encoder", nn.TransformerEncoderLayer(8, 2, 16, 0.0, batch_first=True),
                                   [torch.randn(n, n + 2, 8) for n in (3, 5, 11)]),
                                  *((text, Function(eval("lambda x: " + text)), rows) for text in (
                                      "x * x.shape[0]", "x[1:-1]", "torch.cat((x, x.flip(0)))", "F.pad(x, (0, 1, 2, 0))", "x.mean(0)",
                                      "x.view(-1)", "x.t().softmax(1)", "torch.stack((x, x), 1)", "(x @ x.t()).tril()", "x.var(0)",
                                      "x[torch.arange(x.shape[0] - 1, device=x.device)]"))):
            with self.subTest(name=name):
                torch._dynamo.reset()
                self.compare(net, inputs)
                # The gradient of a variance has a factor that Python calculates: that program is for one size.
                self.assertEqual(self.programs(), [(1, 0), (0, len(inputs)) if name == "x.var(0)" else (1, 0)])

    def test_a_marked_dimension_and_its_neighbours(self):
        self.compare(convolutions(), [torch.randn(n, 1, 8, 8) for n in (3, 2, 9)], dynamic=None)
        self.assertEqual(self.programs(), [(1, 0), (1, 0)])

    def test_pictures_of_any_size(self):
        strided = nn.Sequential(nn.Conv2d(2, 4, 3, 2, 1), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(3, 2, 1), nn.Conv2d(4, 4, 1, 2),
                                nn.AdaptiveAvgPool2d(1))
        halves = nn.Sequential(nn.MaxPool2d(2), nn.Conv2d(2, 3, 3, 1, 1), nn.AvgPool2d(2), nn.GroupNorm(1, 3))  # of no small ones
        pictures = [torch.randn(n, 2, h, w) for n, h, w in ((4, 20, 26), (3, 33, 17), (5, 40, 31))]
        for net in strided, halves:
            torch._dynamo.reset()
            self.compare(net, pictures)
            self.assertEqual(self.programs(), [(1, 0), (1, 0)])

    def test_what_must_know_a_size_has_a_program_for_each(self):
        self.compare(Function(lambda x: x.sort(0).values), [torch.randn(n, 3) for n in (4, 6)])
        self.assertEqual(self.programs(), [(0, 2), (1, 0)])  # a gradient scatters into any size

    def test_sizes_beyond_the_variables_have_programs_of_their_own(self):
        with mock.patch.object(_compile._variables, "GREATEST", (8,)):
            self.compare(Function(torch.sin), [torch.randn(n, 3) for n in (4, 9, 8)])
        self.assertEqual(self.programs(), [(1, 1), (1, 1)])

    def test_a_program_that_no_size_has_a_part_in(self):
        """A graph whose inputs vary while what it computes does not: the rest are views of inputs."""
        @torch.compile(backend="tiny", dynamic=True)
        def parts(x, y, count):
            return x[:count], y.cumsum(0)
        y = torch.tensor([1.0, 2.0, 3.0, 4.0])
        for size in 6, 9:
            x = torch.arange(float(size))
            first, sums = parts(x.to("tiny"), y.to("tiny"), size // 2)
            self.assertEqual((first.tolist(), sums.tolist()), (x[:size // 2].tolist(), y.cumsum(0).tolist()))

    def test_slices_that_end_at_other_sizes(self):
        """Which are smaller, and which of several is, PyTorch's guards say: a program has the parts, seen or summed up, of every call."""
        for name, function in {
            "a part": lambda x, n: x[:n].exp(), "sum of a part": lambda x, n: x[:n].sum(), "from there": lambda x, n: x[n:] * 2,
            "twice as much": lambda x, n: x[:2 * n].cumsum(0), "a view": lambda x, n: x[:n], "what is left": lambda x, n: x[:-n] + 1,
        }.items():
            with self.subTest(name=name):
                torch._dynamo.reset()
                call = torch.compile(function, backend="tiny", dynamic=True)
                for size, count in (9, 3), (12, 4), (11, 5), (7, 2), (4, 9), (6, 6):
                    x = torch.arange(float(size))
                    torch.testing.assert_close(call(x.to("tiny"), count).cpu(), function(x, count))

    def test_numbers_that_look_like_stand_ins_are_numbers(self):
        for numbers in _compile._variables.STAND_INS:
            torch._dynamo.reset()
            self.compare(Function(lambda x: x * 2 + numbers[0]), [torch.randn(n, 3) for n in (4, 6)])


if __name__ == "__main__":
    unittest.main()
