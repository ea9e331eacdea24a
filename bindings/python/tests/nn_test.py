"""tiny.nn beside PyTorch: layers with their gradients, optimisers, states; backward() and training loops."""

import copy
import os
import pathlib
import pickle
import subprocess
import sys
import tempfile
import unittest

import tiny
from tiny import Tensor, nn

try:
    import numpy
    import torch
except ImportError:
    torch = None

needs_torch = unittest.skipIf(torch is None, "PyTorch is not here")


def like(tensor):
    """The same elements for tiny."""
    return Tensor(tensor.detach().numpy())


def take(layer, module):
    """Puts the parameters of a PyTorch module into a layer."""
    state = {name: like(value) for name, value in module.state_dict().items()}
    nn.state.load_state_dict(layer, state)


@needs_torch
class Layers(unittest.TestCase):
    """Each layer with PyTorch's parameters: the result, and the gradients of the input and of all parameters."""

    def setUp(self):
        torch.manual_seed(3)

    def same(self, a, b, tolerance=2e-5):
        a = a.numpy() if isinstance(a, Tensor) else a
        numpy.testing.assert_allclose(a, b.detach().numpy(), rtol=tolerance, atol=tolerance)

    def compare(self, layer, module, x, training=False, of=lambda module: lambda x: module(x)):
        take(layer, module)
        module.train(training)
        mine, theirs = like(x), x.clone()
        if theirs.is_floating_point():
            theirs.requires_grad_()
            mine.requires_grad = True
        with Tensor.train(training):
            y, want = layer(mine), of(module)(theirs)
            self.assertEqual(y.shape, tuple(want.shape))
            weight = torch.randn(want.shape)
            (y * like(weight)).sum().backward()
            (want * weight).sum().backward()
            self.same(y, want)
        if theirs.is_floating_point():
            self.same(mine.grad, theirs.grad)
        parameters = dict(module.named_parameters())
        found = {name: value for name, value in nn.state.get_state_dict(layer).items() if value.is_param}
        self.assertEqual(sorted(found), sorted(parameters))
        for name, value in parameters.items():
            self.same(found[name].grad, value.grad, 1e-4)
        state = nn.state.get_state_dict(layer)
        for name, value in module.state_dict().items():
            self.same(state[name], value)

    def test_linear(self):
        self.compare(nn.Linear(7, 5), torch.nn.Linear(7, 5), torch.randn(3, 4, 7))
        self.compare(nn.Linear(7, 5, bias=False), torch.nn.Linear(7, 5, bias=False), torch.randn(6, 7))

    def test_convolutions(self):
        x = torch.randn(2, 4, 9, 11)
        for arguments in ((6, 3), (6, (3, 5), 2, (1, 2)), (8, 3, 1, 2, 2, 4), (6, 3, 1, 0, 1, 1, False)):
            self.compare(nn.Conv2d(4, *arguments), torch.nn.Conv2d(4, *arguments), x)
        self.compare(nn.Conv2d(4, 6, 4, padding="same", dilation=2), torch.nn.Conv2d(
            4, 6, 4, padding="same", dilation=2), x)
        self.compare(nn.Conv1d(4, 6, 5, 2, 2), torch.nn.Conv1d(4, 6, 5, 2, 2), torch.randn(3, 4, 17))
        self.compare(nn.Conv2d(2, 3, (2, 3, 2)), torch.nn.Conv3d(2, 3, (2, 3, 2)), torch.randn(1, 2, 4, 5, 6))

    def test_transposed_convolutions(self):
        x = torch.randn(2, 4, 5, 6)
        for arguments in ((6, 3), (6, 3, 2, 1, 1), (6, (3, 4), (2, 3), 0)):
            self.compare(nn.ConvTranspose2d(4, *arguments), torch.nn.ConvTranspose2d(4, *arguments), x)
        self.compare(nn.ConvTranspose2d(4, 8, 3, 2, 0, 0, 1, 2), torch.nn.ConvTranspose2d(4, 8, 3, 2, groups=2), x)
        self.compare(nn.ConvTranspose2d(4, 3, 3, dilation=2), torch.nn.ConvTranspose2d(4, 3, 3, dilation=2), x)
        self.compare(nn.ConvTranspose1d(4, 6, 4, 3, 1), torch.nn.ConvTranspose1d(4, 6, 4, 3, 1), torch.randn(2, 4, 7))

    def test_batch_norm(self):
        for training in (True, False):
            for shape, module in (((4, 3, 5, 6), torch.nn.BatchNorm2d(3)), ((9, 3), torch.nn.BatchNorm1d(3)),
                                  ((2, 3, 4, 2, 3), torch.nn.BatchNorm3d(3))):
                with torch.no_grad():
                    module.running_mean.uniform_(-1, 1), module.running_var.uniform_(0.5, 2)
                    module.weight.uniform_(0.5, 2), module.bias.uniform_(-1, 1)
                self.compare(nn.BatchNorm(3), module, torch.randn(shape) * 3 + 1, training)
        plain = nn.BatchNorm2d(3, affine=False, track_running_stats=False)
        x = torch.randn(4, 3, 5, 6)
        self.same(plain(like(x)), torch.nn.functional.batch_norm(x, None, None, training=True))
        self.assertEqual(list(nn.state.get_state_dict(plain)), ["num_batches_tracked"])

    def test_other_norms(self):
        x = torch.randn(3, 6, 4, 5) * 2 + 1
        for layer, module in ((nn.GroupNorm(3, 6), torch.nn.GroupNorm(3, 6)),
                              (nn.InstanceNorm(6), torch.nn.InstanceNorm2d(6, affine=True)),
                              (nn.LayerNorm((4, 5)), torch.nn.LayerNorm((4, 5))),
                              (nn.LayerNorm(5, 1e-3), torch.nn.LayerNorm(5, 1e-3)),
                              (nn.LayerNorm(5, 1e-5, False), torch.nn.LayerNorm(5, 1e-5, False)),
                              (nn.RMSNorm(5), torch.nn.RMSNorm(5, 1e-6))):
            with torch.no_grad():
                for parameter in module.parameters():
                    parameter.uniform_(-2, 2)
            self.compare(layer, module, x)
        self.compare(nn.LayerNorm2d(6), torch.nn.LayerNorm(6), x, of=lambda module: lambda x: module(
            x.permute(0, 2, 3, 1)).permute(0, 3, 1, 2))
        with self.assertRaisesRegex(ValueError, r"last dimensions of \[3, 6, 4, 5\] are to be \[4\]"):
            nn.LayerNorm(4)(like(x))

    def test_embedding(self):
        self.compare(nn.Embedding(11, 4), torch.nn.Embedding(11, 4), torch.tensor([[1, 2, 10], [1, 0, 1]]))

    def test_lstm_cell(self):
        cell, module = nn.LSTMCell(5, 7), torch.nn.LSTMCell(5, 7)
        self.compare(lambda_of(cell), module, torch.randn(3, 5), of=lambda module: lambda x: sum(module(x)))
        x, h, c = torch.randn(3, 5), torch.randn(3, 7), torch.randn(3, 7)
        for mine, theirs in zip(cell(like(x), (like(h), like(c))), module(x, (h, c))):
            self.same(mine, theirs)

    def test_first_values(self):
        """Of parameters: as far from 0 as PyTorch's."""
        for layer, module in ((nn.Linear(64, 50), torch.nn.Linear(64, 50)),
                              (nn.Conv2d(8, 16, 3), torch.nn.Conv2d(8, 16, 3)),
                              (nn.ConvTranspose2d(8, 16, 3), torch.nn.ConvTranspose2d(8, 16, 3)),
                              (nn.LSTMCell(16, 16), torch.nn.LSTMCell(16, 16))):
            for name, mine in nn.state.get_state_dict(layer).items():
                theirs = module.state_dict()[name]
                self.assertAlmostEqual(mine.abs().max().item() / theirs.abs().max().item(), 1, delta=0.25, msg=name)
                self.assertTrue(mine.is_param)

    def test_attention(self):
        q, k, v = (torch.randn(2, 4, 6, 8, requires_grad=True) for _ in range(3))
        mask = torch.rand(6, 6) > 0.3
        mask.fill_diagonal_(True)
        theirs_of = torch.nn.functional.scaled_dot_product_attention
        for said, more in (({}, {}), ({"is_causal": True}, {}), ({}, {"attn_mask": mask}),
                           ({}, {"attn_mask": torch.randn(2, 4, 6, 6)})):
            mine = [like(part).requires_grad_() for part in (q, k, v)]
            y = mine[0].scaled_dot_product_attention(*mine[1:], **said, **{n: like(m) for n, m in more.items()})
            want = theirs_of(q, k, v, **said, **more)
            (y * y).sum().backward()
            self.same(y, want)
            for one, gradient in zip(mine, torch.autograd.grad((want * want).sum(), (q, k, v))):
                self.same(one.grad, gradient, 1e-4)
        grouped = like(q).scaled_dot_product_attention(like(k[:, :2]), like(v[:, :2]), enable_gqa=True)
        self.same(grouped, theirs_of(q, k[:, :2], v[:, :2], enable_gqa=True))


def lambda_of(cell):
    """A cell whose result is the sum of its states, with the cell's own parameters."""
    class Summed:
        def __call__(self, x):
            h, c = cell(x)
            return h + c
    summed = Summed()
    vars(summed).update(vars(cell))
    return summed


@needs_torch
class Optimisers(unittest.TestCase):
    """Twenty steps beside torch.optim's."""

    def setUp(self):
        torch.manual_seed(5)
        self.x, self.y = torch.randn(16, 6), torch.randn(16, 3)
        self.first = [torch.randn(6, 8) * 0.5, torch.randn(8) * 0.1, torch.randn(8, 3) * 0.5]

    @staticmethod
    def loss(x, y, parameters):
        w, b, v = parameters
        return (((x @ w + b).tanh() @ v - y) ** 2).mean()

    def compare(self, mine, theirs, tolerance=2e-5, first=None):
        ours = [like(one) for one in (first or self.first)]
        others = [one.clone().requires_grad_() for one in (first or self.first)]
        optimizer, other = mine(ours), theirs(others)
        x, y = like(self.x), like(self.y)
        with Tensor.train():
            for step in range(20):
                if step == 10:
                    optimizer.lr = optimizer.lr.item() / 2
                    for group in getattr(other, "param_groups", []):
                        group["lr"] /= 2
                optimizer.zero_grad()
                other.zero_grad()
                loss, want = self.loss(x, y, ours).backward(), self.loss(self.x, self.y, others)
                want.backward()
                optimizer.step()
                other.step()
                self.assertAlmostEqual(loss.item(), want.item(), delta=tolerance * max(1, abs(want.item())))
        for one, another in zip(ours, others):
            numpy.testing.assert_allclose(one.numpy(), another.detach().numpy(), rtol=tolerance * 10, atol=tolerance)
        return optimizer, other

    def test_sgd(self):
        o = torch.optim
        self.compare(lambda p: nn.optim.SGD(p, 0.1), lambda p: o.SGD(p, 0.1))
        self.compare(lambda p: nn.optim.SGD(p, 0.1, 0.9, 0.01), lambda p: o.SGD(p, 0.1, 0.9, weight_decay=0.01))
        mine, theirs = self.compare(lambda p: nn.optim.SGD(p, 0.1, 0.9, nesterov=True),
                                    lambda p: o.SGD(p, 0.1, 0.9, nesterov=True))
        for one, another in zip(mine.b, theirs.state.values()):
            numpy.testing.assert_allclose(one.numpy(), another["momentum_buffer"].numpy(), rtol=1e-3, atol=1e-5)

    def test_adam(self):
        o = torch.optim
        mine, theirs = self.compare(lambda p: nn.optim.Adam(p, 0.01), lambda p: o.Adam(p, 0.01))
        for m, v, another in zip(mine.m, mine.v, theirs.state.values()):
            numpy.testing.assert_allclose(m.numpy(), another["exp_avg"].numpy(), rtol=1e-3, atol=1e-5)
            numpy.testing.assert_allclose(v.numpy(), another["exp_avg_sq"].numpy(), rtol=1e-3, atol=1e-5)
        self.compare(lambda p: nn.optim.Adam(p, 0.02, 0.8, 0.95, 1e-6), lambda p: o.Adam(p, 0.02, (0.8, 0.95), 1e-6))
        self.compare(lambda p: nn.optim.AdamW(p, 0.01, weight_decay=0.1), lambda p: o.AdamW(p, 0.01, weight_decay=0.1))
        self.compare(lambda p: nn.optim.LAMB(p, 0.01, adam=True, eps=1e-8, weight_decay=0.1),
                     lambda p: o.AdamW(p, 0.01, weight_decay=0.1))

    def test_rmsprop(self):
        o = torch.optim
        self.compare(lambda p: nn.optim.RMSprop(p, 0.01), lambda p: o.RMSprop(p, 0.01))
        self.compare(lambda p: nn.optim.RMSprop(p, 0.002, 0.9, 1e-6, 0.01, 0.8, centered=True),
                     lambda p: o.RMSprop(p, 0.002, 0.9, 1e-6, 0.01, 0.8, centered=True))
        with self.assertRaisesRegex(ValueError, "RMSprop: alpha is 0 at least, not -0.5"):
            nn.optim.RMSprop([Tensor([1.0])], alpha=-0.5)

    def test_adagrad(self):
        o = torch.optim
        self.compare(lambda p: nn.optim.Adagrad(p, 0.05), lambda p: o.Adagrad(p, 0.05))
        self.compare(lambda p: nn.optim.Adagrad(p, 0.05, 0.1, 0.01, 0.5, 1e-8),
                     lambda p: o.Adagrad(p, 0.05, 0.1, 0.01, 0.5, 1e-8))

    def test_muon(self):
        matrices = [self.first[0], torch.zeros(1, 8), self.first[2]]
        self.compare(lambda p: nn.optim.Muon(p, 0.02), lambda p: torch.optim.Muon(p, 0.02), 0.03, matrices)

    def test_muon_of_a_vector_is_that_of_a_row(self):
        """As in tinygrad; of a column, the step would be sqrt(8) times as long."""
        values, gradients = [0.5, -1.0, 2.0, 0.25] * 2, [1.0, -3.0, 0.5, 2.0] * 2
        vector, row = Tensor(values, requires_grad=True), Tensor([values], requires_grad=True)
        optimizer = nn.optim.Muon([vector, row], 0.02)
        with Tensor.train():
            (vector * Tensor(gradients) + row * Tensor(gradients)).sum().backward()
            optimizer.step()
        self.assertEqual([vector.tolist()], row.tolist())
        self.assertNotEqual(vector.tolist(), values)

    def test_lamb_and_lars(self):
        """By their papers: torch has neither."""
        class Lamb(torch.optim.Optimizer):
            def __init__(self, params):
                super().__init__(params, {"lr": 0.02})
                self.steps = 0

            @torch.no_grad()
            def step(self):
                self.steps += 1
                for w in self.param_groups[0]["params"]:
                    state = self.state[w]
                    m = state["m"] = 0.9 * state.get("m", 0) + 0.1 * w.grad
                    v = state["v"] = 0.999 * state.get("v", 0) + 0.001 * w.grad ** 2
                    up = m / (1 - 0.9 ** self.steps) / ((v / (1 - 0.999 ** self.steps)).sqrt() + 1e-6) + 0.01 * w
                    w -= self.param_groups[0]["lr"] * w.norm() / up.norm() * up

        class Lars(torch.optim.Optimizer):
            def __init__(self, params):
                super().__init__(params, {"lr": 1.0})

            @torch.no_grad()
            def step(self):
                for w in self.param_groups[0]["params"]:
                    ratio = 0.01 * w.norm() / (w.grad.norm() + 1e-3 * w.norm())
                    g = (w.grad + 1e-3 * w) * ratio * self.param_groups[0]["lr"]
                    b = self.state[w]["b"] = 0.9 * self.state[w].get("b", 0) + g
                    w -= b
        self.compare(lambda p: nn.optim.LAMB(p, 0.02, weight_decay=0.01), Lamb)
        self.compare(lambda p: nn.optim.LARS(p, 1.0, 0.9, 1e-3, tcoef=0.01), Lars)

    def test_groups(self):
        o = torch.optim

        class Both:
            def __init__(self, p):
                self.all = o.SGD(p[:2], 0.1), o.Adam(p[2:], 0.01)

            def zero_grad(self):
                for one in self.all:
                    one.zero_grad()

            def step(self):
                for one in self.all:
                    one.step()
        ours, theirs = [like(one) for one in self.first], [one.clone().requires_grad_() for one in self.first]
        group = nn.optim.OptimizerGroup(nn.optim.SGD(ours[:2], 0.1), nn.optim.Adam(ours[2:], 0.01))
        other = Both(theirs)
        with Tensor.train():
            for _ in range(5):
                group.zero_grad(), other.zero_grad()
                self.loss(like(self.x), like(self.y), ours).backward()
                self.loss(self.x, self.y, theirs).backward()
                group.step(), other.step()
        for one, another in zip(ours, theirs):
            numpy.testing.assert_allclose(one.numpy(), another.detach().numpy(), rtol=1e-4, atol=1e-5)
        self.assertEqual(len(group.params), 3)

    def test_mistakes(self):
        w = Tensor([1.0, 2.0])
        with self.assertRaisesRegex(ValueError, "wants a parameter"):
            nn.optim.SGD([Tensor([1, 2]), Tensor([1.0], requires_grad=False)])
        optimizer = nn.optim.SGD([w, Tensor([3])])
        self.assertEqual((len(optimizer.params), len(optimizer.buffers)), (1, 1))
        with self.assertRaisesRegex(RuntimeError, "Tensor.training is false"):
            optimizer.step()
        with Tensor.train(), self.assertRaisesRegex(RuntimeError, "no parameter has a gradient"):
            optimizer.step()
        with self.assertRaisesRegex(ValueError, "that is Muon"):
            nn.optim.LARS([w], ns_coefficients=(1, 2, 3))
        with self.assertRaisesRegex(ValueError, "momentum is 0 at least, not -1"):
            nn.optim.SGD([w], momentum=-1)


class Copies(unittest.TestCase):
    def test_a_copy_goes_on_where_the_optimiser_was(self):
        x = Tensor([[1.0, 2.0, 3.0], [0.5, -1.0, 2.0]])

        def step(net, optimizer):
            with Tensor.train():
                optimizer.zero_grad()
                (net(x) - 1).square().mean().backward()
                optimizer.step()
        for make in (nn.optim.Adam, nn.optim.LAMB, nn.optim.Muon, lambda found: nn.optim.SGD(found, momentum=0.9)):
            net = nn.Linear(3, 2)
            optimizer = make(nn.state.get_parameters(net))
            optimizer.lr = 0.05
            step(net, optimizer)
            pairs = [(net, optimizer), copy.deepcopy((net, optimizer)), pickle.loads(pickle.dumps((net, optimizer)))]
            for own, its in pairs:
                self.assertIs(its.params[0], own.weight)
                for _ in range(2):
                    step(own, its)
            self.assertEqual(*(own.weight.tolist() for own, _ in pairs[:2]))
            self.assertEqual(net.weight.tolist(), pairs[2][0].weight.tolist())


class Gradients(unittest.TestCase):
    def test_backward_fills_grad_and_adds(self):
        x, y = Tensor([1.0, 2.0], requires_grad=True), Tensor([3.0, 4.0])
        self.assertTrue((x * y).requires_grad)
        self.assertIsNone((y * y).requires_grad)
        (x * y).sum().backward()
        self.assertEqual((x.grad.tolist(), y.grad), ([3.0, 4.0], None))
        (x * x).backward(Tensor([1.0, 10.0]))
        self.assertEqual(x.grad.tolist(), [5.0, 44.0])
        x.grad = None
        (x.detach() * x).sum().backward()
        self.assertEqual(x.grad.tolist(), [1.0, 2.0])
        a, b = (x * y * y).sum().gradient(x, y)
        self.assertEqual((a.tolist(), b.tolist()), ([9.0, 16.0], [6.0, 16.0]))

    def test_what_cannot_be_is_said(self):
        x = Tensor([1.0, 2.0], requires_grad=True)
        with self.assertRaisesRegex(ValueError, "gradients are of one number"):
            (x * x).backward()
        with self.assertRaisesRegex(RuntimeError, "no tensor that requires gradients"):
            x.detach().sum().backward()
        with self.assertRaisesRegex(TypeError, "gradients are of floats"):
            Tensor([1, 2]).requires_grad = True
        with self.assertRaisesRegex(ValueError, "made of others"):
            (x * 2).requires_grad = False

    def test_a_graph_that_lacks_a_part_is_an_error(self):
        """Never a gradient of what is left of it."""
        w = Tensor([1.0, 2.0], requires_grad=True)
        h = (w * w).realize()
        with self.assertRaisesRegex(RuntimeError, "was computed already"):
            (h * w).sum().backward()  # a part by w is there
        h = w * w
        with Tensor.no_grad():
            h.tolist()
        with self.assertRaisesRegex(RuntimeError, "was computed already"):
            (h * w).sum().backward()
        loss = (w * w).sum().backward()
        with self.assertRaisesRegex(RuntimeError, "was computed already"):
            (loss * 2).backward()
        loss = (w * w).sum()
        w.assign([0.0, 0.0][0])
        with self.assertRaisesRegex(RuntimeError, "was assigned to since"):
            loss.backward()

    def test_elements_may_be_read_before_backward(self):
        """In training or not; what was read once is not computed for each read."""
        for training in (False, True):
            w = Tensor([1.0, 2.0], requires_grad=True).realize()
            with Tensor.train(training):
                h = w * w
                self.assertEqual(h.tolist(), [1.0, 4.0])
                self.assertEqual(bytes(h), bytes(memoryview(h)))
                loss = (h * w).sum()
                self.assertEqual(loss.item(), 9.0)
                count = tiny.GlobalCounters.kernel_count
                self.assertEqual((loss.item(), h.tolist(), f"{loss:.1f}"), (9.0, [1.0, 4.0], "9.0"))
                self.assertEqual(tiny.GlobalCounters.kernel_count, count)
                loss.backward()
            self.assertEqual(w.grad.tolist(), [3.0, 12.0])
            h = w * 1
            self.assertEqual(h.tolist(), [1.0, 2.0])
            h += 1
            self.assertEqual(h.tolist(), [2.0, 3.0])

    def test_training_is_a_context(self):
        self.assertFalse(Tensor.training)
        with Tensor.train():
            self.assertTrue(Tensor.training)
            with tiny.helpers.Context(TRAINING=0):
                self.assertFalse(Tensor.training)
            self.assertTrue(Tensor.training)
        self.assertFalse(Tensor.training)
        x = Tensor.ones(1000)
        self.assertIs(x.dropout(0.5), x)
        with Tensor.train():
            kept = x.dropout(0.25).tolist()
        self.assertEqual(sorted(set(kept)), [0.0, Tensor(4 / 3).item()])
        self.assertAlmostEqual(sum(value > 0 for value in kept) / 1000, 0.75, delta=0.06)


class Harmful:
    """What a pickle can be made of."""
    path = "/nowhere/at/all"

    def __reduce__(self):
        return os.mkdir, (self.path,)


class States(unittest.TestCase):
    class Net:
        def __init__(self):
            self.convs = [nn.Conv2d(1, 2, 3), Tensor.relu, nn.BatchNorm(2)]
            self.head = {"fc": nn.Linear(8, 3)}

        def __call__(self, x):
            return self.head["fc"](x.sequential(self.convs).flatten(1))

    def test_a_round_trip(self):
        a, b = self.Net(), self.Net()
        names = list(nn.state.get_state_dict(a))
        self.assertEqual(names, ["convs.0.weight", "convs.0.bias", "convs.2.weight", "convs.2.bias",
                                 "convs.2.num_batches_tracked", "convs.2.running_mean", "convs.2.running_var",
                                 "head.fc.weight", "head.fc.bias"])
        self.assertEqual(len(nn.state.get_parameters(a)), 9)
        x = Tensor.rand(2, 1, 4, 4)
        self.assertNotEqual(a(x).tolist(), b(x).tolist())
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "net.safetensors")
            nn.state.safe_save(nn.state.get_state_dict(a), path)
            nn.state.load_state_dict(b, nn.state.safe_load(path))
        self.assertEqual(a(x).tolist(), b(x).tolist())

    @needs_torch
    def test_files_of_torch(self):
        module = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4))
        strided = torch.arange(12).reshape(3, 4).T[1:3]
        kept = {"model": module.state_dict(), "epoch": 3, "parts": [module[0].weight, strided],
                "types": [torch.ones(2).to(kind) for kind in (torch.float16, torch.bfloat16, torch.bool, torch.int8)],
                "none": torch.zeros(0, 2)}
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "state.pt")
            torch.save(kept, path)
            found = nn.state.torch_load(path)
            self.assertEqual((found["epoch"], list(found["model"])), (3, list(kept["model"])))
            for name, value in kept["model"].items():
                self.assertEqual(found["model"][name].tolist(), value.tolist())
            self.assertEqual(found["parts"][1].tolist(), strided.tolist())
            self.assertEqual([one.dtype for one in found["types"]], [tiny.float16, tiny.bfloat16, tiny.bool, tiny.int8])
            self.assertEqual(found["none"].shape, (0, 2))
            layer = nn.Linear(3, 4)
            nn.state.load_state_dict(layer, {"weight": found["model"]["0.weight"], "bias": found["model"]["0.bias"]})
            self.assertEqual(layer.weight.tolist(), module[0].weight.tolist())
            torch.save(module, path)  # the module itself: classes
            with self.assertRaisesRegex(ValueError, "wants torch.nn.modules.container.Sequential.*executed"):
                nn.state.torch_load(path)
            torch.save({"call": Harmful()}, path)
            with self.assertRaisesRegex(ValueError, "wants (posix|os).mkdir"):
                nn.state.torch_load(path)
            self.assertFalse(os.path.exists(Harmful.path))
            pathlib.Path(path).write_bytes(b"no archive")
            with self.assertRaisesRegex(ValueError, "no zip archive"):
                nn.state.torch_load(path)

    def test_strictness(self):
        net = self.Net()
        before = net.head["fc"].bias.tolist()
        state = nn.state.get_state_dict(self.Net())
        del state["head.fc.weight"]
        state["other"] = Tensor([1.0])
        with self.assertRaisesRegex(tiny.Error, "head.fc.weight.*other|other.*head.fc.weight"):
            nn.state.load_state_dict(net, state)
        self.assertEqual(net.head["fc"].bias.tolist(), before)
        nn.state.load_state_dict(net, state, strict=False)
        self.assertEqual(net.head["fc"].bias.tolist(), state["head.fc.bias"].tolist())
        state["head.fc.bias"] = Tensor([1.0])
        with self.assertRaisesRegex(tiny.Error, "head.fc.bias"):
            nn.state.load_state_dict(net, state, strict=False)


class WithoutNumPy(unittest.TestCase):
    def test_a_step(self):
        program = """
import sys
sys.modules["numpy"] = None  # importing it fails
from tiny import Tensor, TinyJit, nn
layer = nn.Linear(4, 2)
optimizer = nn.optim.Adam(nn.state.get_parameters(layer), lr=0.1)
x, y = Tensor.randn(8, 4), Tensor([0, 1] * 4)
@TinyJit
@Tensor.train()
def step(x):
    optimizer.zero_grad()
    loss = layer(x).sparse_categorical_crossentropy(y).backward()
    optimizer.step()
    return loss
losses = [step(x).item() for _ in range(30)]
assert losses[-1] < losses[0], losses
"""
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
        self.assertEqual((done.returncode, done.stderr), (0, ""))


class States(unittest.TestCase):
    def test_a_state_of_an_optimizer_goes_on_elsewhere(self):
        def stepped(net, optimizer, count):
            for _ in range(count):
                with Tensor.train():
                    optimizer.zero_grad()
                    (net(Tensor([[1.0, 2.0, 3.0]])).square().sum()).backward()
                    optimizer.step()
        for make in (nn.optim.Adam, lambda params: nn.optim.SGD(params, momentum=0.9), nn.optim.Muon):
            net = nn.Linear(3, 2)
            optimizer = make(nn.state.get_parameters(net))
            stepped(net, optimizer, 2)
            held = {name: tensor.clone().realize() for name, tensor in nn.state.get_state_dict(optimizer).items()}
            self.assertEqual({"params.0", "params.1", "lr"} - set(held), set())
            other = nn.Linear(3, 2)
            again = make(nn.state.get_parameters(other))
            again.lr = 0.5
            nn.state.load_state_dict(again, held)
            stepped(net, optimizer, 2)
            stepped(other, again, 2)
            self.assertEqual([one.tolist() for one in again.params], [one.tolist() for one in optimizer.params])
        self.assertEqual(len(nn.state.get_parameters(nn.optim.OptimizerGroup(optimizer))), len(held))


if __name__ == "__main__":
    unittest.main()
