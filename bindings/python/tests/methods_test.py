"""The methods that training programs use, beside PyTorch's: creation, movement, reductions, positions, losses."""

import math
import unittest

import tiny
from tiny import Tensor, dtypes

try:
    import numpy
    import torch
except ImportError:
    torch = None

needs_torch = unittest.skipIf(torch is None, "PyTorch is not here")


class Creation(unittest.TestCase):
    def test_of_data(self):
        for data, dtype in (([1, 2, 3], dtypes.int64), ([[1.5], [2]], dtypes.float32), (True, dtypes.bool),
                            (2.5, dtypes.float), ([], dtypes.float32)):
            made = Tensor(data)
            self.assertEqual((made.tolist(), made.dtype), (data, dtype))
        self.assertEqual(Tensor([1, 2], dtype="float16").dtype, tiny.float16)
        self.assertEqual(Tensor(b"ab").tolist(), [97, 98])
        self.assertEqual((Tensor([1.0]).requires_grad, Tensor([1.0], requires_grad=True).requires_grad), (None, True))
        self.assertIsInstance(Tensor([1]), tiny.native.Tensor)
        self.assertIs(tiny.Tensor, type(tiny.tensor([1])))
        with self.assertRaisesRegex(TypeError, "a tensor is one already"):
            Tensor(Tensor([1]))
        with self.assertRaisesRegex(ValueError, "device 'GPU': known are CPU, "):
            Tensor([1], device="GPU")

    def test_by_rule(self):
        self.assertEqual(Tensor.zeros(2, 3).tolist(), [[0.0] * 3] * 2)
        self.assertEqual(Tensor.ones((2,), dtype=dtypes.int).tolist(), [1, 1])
        self.assertEqual((Tensor.full((2,), 7).dtype, Tensor.full((2,), 7.0).dtype), (tiny.int64, tiny.float32))
        self.assertEqual(Tensor.eye(2, 3).tolist(), [[1, 0, 0], [0, 1, 0]])
        self.assertEqual(Tensor.arange(2, 9, 3).tolist(), [2, 5, 8])
        self.assertEqual(Tensor.arange(3, 0, -1).tolist(), [3, 2, 1])
        self.assertEqual(Tensor.arange(0, 1, 0.25).tolist(), [0, 0.25, 0.5, 0.75])
        self.assertEqual(Tensor.linspace(1, 2, 5).tolist(), [1, 1.25, 1.5, 1.75, 2])
        x = Tensor([[1, 2]])
        self.assertEqual((x.zeros_like().tolist(), x.full_like(3).tolist()), ([[0, 0]], [[3, 3]]))
        self.assertEqual(x.ones_like().dtype, tiny.int64)

    def test_random(self):
        Tensor.manual_seed(4)
        first = [Tensor.rand(3).tolist(), Tensor.randn(2, 2).tolist(), Tensor.randint(5, low=2, high=4).tolist()]
        Tensor.manual_seed(4)
        again = [Tensor.rand(3).tolist(), Tensor.randn(2, 2).tolist(), Tensor.randint(5, low=2, high=4).tolist()]
        self.assertEqual(first, again)
        x = Tensor.rand(4)  # not computed yet: the same however it is reached
        self.assertEqual((x * 1).tolist(), x.tolist())
        self.assertEqual(sorted(Tensor.randperm(6).tolist()), list(range(6)))
        self.assertEqual(set(Tensor.randint(200, high=3).tolist()), {0, 1, 2})
        u, n = Tensor.uniform(4000, low=-2, high=4), Tensor.normal(4000, mean=3, std=2)
        self.assertAlmostEqual(u.mean().item(), 1, delta=0.15)
        self.assertTrue(-2 <= u.min().item() < u.max().item() < 4)
        self.assertAlmostEqual(n.mean().item(), 3, delta=0.15)
        self.assertAlmostEqual(n.std().item(), 2, delta=0.15)
        for made, bound in ((Tensor.glorot_uniform(30, 20), (6 / 50) ** 0.5),
                            (Tensor.scaled_uniform(30, 20), 600 ** -0.5),
                            (Tensor.kaiming_uniform(30, 20, a=1), (3 / 20) ** 0.5)):
            self.assertAlmostEqual(made.abs().max().item() / bound, 1, delta=0.05)
        self.assertAlmostEqual(Tensor.kaiming_normal(100, 50, a=0).std().item(), (2 / 50) ** 0.5, delta=0.02)
        self.assertEqual(Tensor([0.0, 1.0, 0.0]).multinomial(4, replacement=True).tolist(), [1] * 4)
        self.assertEqual((x.rand_like().shape, x.randn_like(dtype="float16").dtype), ((4,), tiny.float16))
        with self.assertRaisesRegex(TypeError, "randint: low=0.5"):
            Tensor.randint(3, low=0.5)


@needs_torch
class Beside(unittest.TestCase):
    """The same call of both."""

    def setUp(self):
        torch.manual_seed(7)
        self.t = torch.randn(4, 3, 6)

    def same(self, mine, theirs, tolerance=1e-5):
        if isinstance(theirs, (tuple, list)):
            self.assertEqual(len(mine), len(theirs))
            for one, another in zip(mine, theirs):
                self.same(one, another)
            return
        self.assertEqual(mine.shape, tuple(theirs.shape))
        numpy.testing.assert_allclose(mine.numpy(), theirs.numpy(), rtol=tolerance, atol=tolerance)

    def both(self, *functions, t=None):
        t = self.t if t is None else t
        for function in functions:
            self.same(function(Tensor(t.numpy())), function(t))

    def test_movement(self):
        self.both(lambda x: x.reshape(3, -1), lambda x: x.reshape((12, 6)), lambda x: x.view(2, 36),
                  lambda x: x.permute(2, 0, 1), lambda x: x.permute((1, 0, 2)), lambda x: x[:1].expand(5, -1, 6),
                  lambda x: x.flip(0, 2), lambda x: x.flip((1,)), lambda x: x.transpose(0, 2),
                  lambda x: x.transpose(-1, -2), lambda x: x[0].T, lambda x: x.flatten(), lambda x: x.flatten(1),
                  lambda x: x.flatten(0, 1), lambda x: x.unflatten(2, (2, 3)), lambda x: x.unsqueeze(1),
                  lambda x: x.unsqueeze(-1).squeeze(-1), lambda x: x[:1].squeeze(),
                  lambda x: x.unsqueeze(dim=0).squeeze(dim=0), lambda x: x.repeat(2, 1, 1, 3), lambda x: x.roll(2, 0),
                  lambda x: x.roll((1, -2), (0, 2)), lambda x: x.repeat_interleave(2, dim=1),
                  lambda x: x.repeat_interleave(3), lambda x: x.split(2), lambda x: x.split(4, 2),
                  lambda x: x.split([1, 2], dim=1), lambda x: x.split(4, dim=-1), lambda x: x.chunk(3),
                  lambda x: x.chunk(4, dim=2), lambda x: x.chunk(5, 2))
        x = Tensor(self.t.numpy())
        self.same(x.split(1, [1, 2]), self.t.split([1, 2], 1))  # the header's order
        self.assertEqual([type(x.split(2)), type(x.split(1, [1, 2]))], [tuple, tuple])
        for wrong in ((0, 5), (-1, 2), (3, 2)):
            with self.assertRaisesRegex(ValueError, r"shrink: .* of axis 0, which has 4 elements"):
                x.shrink((wrong, None, None))
        with self.assertRaisesRegex(ValueError, "repeat_interleave: -1 times"):
            x.repeat_interleave(-1)
        self.same(x.reshape(None, 18), self.t.reshape(4, 18))
        self.same(Tensor.cat(x, x[:1], dim=0), torch.cat([self.t, self.t[:1]]))
        self.same(x.cat(x, dim=-1), torch.cat([self.t, self.t], -1))
        self.same(Tensor.stack([x, x], dim=1), torch.stack([self.t, self.t], 1))
        self.same(x.stack(x, x), torch.stack([self.t] * 3))
        pad = torch.nn.functional.pad
        self.same(x.pad((1, 2)), pad(self.t, (1, 2)))
        self.same(x.pad((1, 2, 0, 3), value=4), pad(self.t, (1, 2, 0, 3), value=4))
        self.same(x.pad(((0, 1), None, (2, -1))), pad(self.t, (2, -1, 0, 0, 0, 1)))
        self.same(x.pad([0, 0, 1], [1, 0, 0]), pad(self.t, (1, 0, 0, 0, 0, 1)))
        self.same(x.shrink(((1, 3), None, (0, 2))), self.t[1:3, :, :2])
        self.assertEqual((x.ndim, Tensor([1.0]).T.shape), (3, (1,)))
        with self.assertRaisesRegex(ValueError, "T: a matrix is wanted"):
            _ = x.T
        with self.assertRaisesRegex(ValueError, "pairs of numbers"):
            x.pad((1, 2, 3))
        with self.assertRaisesRegex(ValueError, "mode 'reflect' has 5 elements"):
            x.pad((6, 1), mode="reflect")
        with self.assertRaisesRegex(IndexError, "axis 3 of shape"):
            x.transpose(0, 3)

    def test_reductions(self):
        self.both(lambda x: x.sum(), lambda x: x.sum(axis=1), lambda x: x.mean(axis=(0, 2)),
                  lambda x: x.sum(1, keepdim=True), lambda x: x.var(), lambda x: x.var(axis=1),
                  lambda x: x.std(axis=(0, 1), correction=0), lambda x: x.argmax(), lambda x: x.argmax(axis=1),
                  lambda x: x.argmin(axis=-1, keepdim=True), lambda x: x.max(), lambda x: x.min(),
                  lambda x: x.logsumexp(1), lambda x: x.prod(), lambda x: (x > 0).all(axis=1),
                  lambda x: (x > 0).any(), lambda x: x.softmax(-1), lambda x: x.log_softmax(1),
                  lambda x: x.sum(0, dtype=torch.float64 if isinstance(x, torch.Tensor) else "float64"))
        x = Tensor(self.t.numpy())
        self.same(x.max(axis=1), self.t.amax(1))
        self.same(x.max((1, 2)), self.t.amax((1, 2)))
        self.same(x.min(axis=(0, 2), keepdim=True), self.t.amin((0, 2), keepdim=True))
        self.same(x.max(x * x), torch.maximum(self.t, self.t * self.t))
        self.same(x.maximum(0), self.t.clamp(min=0))
        self.same(x.max(0.5), self.t.clamp(min=0.5))
        self.assertAlmostEqual((x > 0).mean().item(), (self.t > 0).float().mean().item(), places=6)
        self.same(x.var_mean(axis=1), torch.var_mean(self.t, 1))
        for text, call in (("write max.axis=1. or maximum.1.", lambda: x.max(1)),
                           ("axes and axis name the same", lambda: x.sum(1, axis=1)),
                           ("write max.axis=1., and argmax.axis=1. for", lambda: x.max(dim=1)),
                           ("True behind the axis is keepdim in tinygrad", lambda: x.std(1, True)),
                           ("write keepdim= or correction=", lambda: x.var(1, False)),
                           ("an operand and an axis", lambda: x.min(x, axis=1))):
            with self.assertRaisesRegex(TypeError, text):
                call()

    def test_elementwise(self):
        f = torch.nn.functional
        x = Tensor(self.t.numpy())
        for name in ("relu6", "hardswish", "hardsigmoid", "mish", "softsign", "logsigmoid", "silu"):
            self.same(getattr(x, name)(), getattr(f, name)(self.t))
        self.both(lambda x: x.abs().log2(), lambda x: x.exp2(), lambda x: x.abs().log10(), lambda x: x.tan(),
                  lambda x: x.isnan(), lambda x: (x / 0).isinf(), lambda x: x.logical_not(),
                  lambda x: x.clamp(-0.5, 0.5), lambda x: x.clip(None, 0.1), lambda x: x.lerp(x * x, 0.25),
                  lambda x: x.half(), lambda x: x.int(), lambda x: x.double(), lambda x: x.bool())
        self.same(x.gelu(), f.gelu(self.t))
        self.same(x.gelu("tanh"), f.gelu(self.t, approximate="tanh"))
        self.same(x.quick_gelu(), self.t * torch.sigmoid(1.702 * self.t))
        self.both(lambda x: x.masked_fill(x > 0, 2.0), lambda x: x.to("cpu"))
        self.assertEqual((x.size(), x.size(-1), x.element_size(), x.half().nbytes()), ((4, 3, 6), 6, 4, 144))
        self.assertEqual((x.swish().shape, x.is_floating_point(), x.long().dtype), ((4, 3, 6), True, tiny.int64))

    def test_positions(self):
        index = torch.tensor([[0, 2], [5, 1]])
        at = Tensor(index.numpy())
        x = Tensor(self.t.numpy())
        each = [[0, 2], [5, 1], [3, 3]]
        self.same(x[0].gather(1, Tensor(each)), self.t[0].gather(1, torch.tensor(each)))
        self.same(x[0].gather(dim=1, index=at), self.t[0, :2].gather(1, index))
        self.same(x.gather(at, 2), torch.from_numpy(numpy.take(self.t.numpy(), index.numpy(), 2)))
        self.same(at.one_hot(6), torch.nn.functional.one_hot(index, 6))
        self.same(at.one_hot(6, 2.0, -1.0), torch.nn.functional.one_hot(index, 6) * 3 - 1)
        rows, columns = torch.tensor([3, 0, 3]), torch.tensor([1, 2, 0])
        r, c = Tensor(rows.numpy()), Tensor(columns.numpy())
        for mine, theirs in ((x[r], self.t[rows]), (x[:, c], self.t[:, columns]), (x[..., c], self.t[..., columns]),
                             (x[r, c], self.t[rows, columns]), (x[r, :, c], self.t[rows, :, columns]),
                             (x[:, c, r], self.t[:, columns, rows]), (x[1][:, c], self.t[1, :, columns]),
                             (x[r, 1, c], self.t[rows, 1, columns]), (x[:, -1, c], self.t[:, -1, columns]),
                             (x[r, 1:, ::2], self.t[rows, 1:, ::2]), (x[None, r], self.t[None, rows]),
                             (x[[0, -1]], self.t[[0, -1]]), (x[r.reshape(3, 1), c], self.t[rows[:, None], columns]),
                             (x[r][:, None, c % 3], self.t[rows][:, None, columns % 3])):
            self.same(mine, theirs)
        with self.assertRaisesRegex(tiny.Error, "index"):
            x[Tensor([4])].numpy()
        with self.assertRaisesRegex(IndexError, "NumPy puts .* first"):
            x[1, :, c]
        with self.assertRaisesRegex(IndexError, "too many indices: 4"):
            x[r, r, r, r]

    def test_writes(self):
        x, t = Tensor(self.t.numpy()), self.t.clone()
        for key, value in ((1, 5.0), ((slice(None), 2), 0), ((Ellipsis, slice(1, 3)), [[1.0, 2.0]] * 3),
                           ((0, 0, 0), -1.0)):
            x[key] = value
            t[key] = torch.tensor(value)
        self.same(x, t)
        x[Tensor([0, -1])] = 1.0
        t[[0, -1]] = 1.0
        self.same(x, t)
        x[0, 0].assign([5, 4, 3, 2, 1, 0])
        t[0, 0] = torch.arange(5, -1, -1)
        self.same(x, t)

    def test_gradients_of_positions(self):
        t = self.t.clone().requires_grad_()
        x = Tensor(self.t.numpy(), requires_grad=True)
        rows = torch.tensor([3, 0, 3])
        (t[rows] * t[rows, :, :]).sum().backward()
        (x[Tensor(rows.numpy())] * x[Tensor(rows.numpy()), :, :]).sum().backward()
        self.same(x.grad, t.grad)

    def test_windows(self):
        f = torch.nn.functional
        t, w, b = torch.randn(2, 4, 9, 8), torch.randn(6, 2, 3, 2), torch.randn(6)
        x, mine, bias = Tensor(t.numpy()), Tensor(w.numpy()), Tensor(b.numpy())
        self.same(x.conv2d(mine, bias, groups=2, stride=2, padding=1), f.conv2d(t, w, b, 2, 1, 1, 2), 1e-4)
        self.same(x.conv2d(mine, None, 2, (1, 2), 2, (2, 1)), f.conv2d(t, w, None, (1, 2), (2, 1), 2, 2), 1e-4)
        self.same(x.conv2d(mine, groups=2, padding=(1, 0, 2, 3)), f.conv2d(f.pad(t, (1, 0, 2, 3)), w, groups=2), 1e-4)
        v = torch.randn(4, 3, 3, 2)
        self.same(x.conv_transpose2d(Tensor(v.numpy()), stride=2, padding=1, output_padding=1),
                  f.conv_transpose2d(t, v, None, 2, 1, 1), 1e-4)
        self.same(x.max_pool2d(), f.max_pool2d(t, 2))
        self.same(x.max_pool2d(3, 2, padding=1, return_indices=True), f.max_pool2d(t, 3, 2, 1, return_indices=True))
        self.same(x.max_pool2d((2, 3), ceil_mode=True), f.max_pool2d(t, (2, 3), ceil_mode=True))
        self.same(x.avg_pool2d(3, 2, padding=1), f.avg_pool2d(t, 3, 2, 1))
        self.same(x.avg_pool2d(3, 2, padding=1, count_include_pad=False),
                  f.avg_pool2d(t, 3, 2, 1, count_include_pad=False))
        with self.assertRaisesRegex(ValueError, "padding .1, 2, 3.: one number, 2 of them, or 4"):
            x.conv2d(mine, groups=2, padding=(1, 2, 3))

    def test_layers(self):
        f = torch.nn.functional
        x, w = Tensor(self.t.numpy()), torch.randn(6, 5)
        self.same(x.linear(Tensor(w.numpy()), Tensor([1.0] * 5)), self.t @ w + 1)
        self.same(x.dot(Tensor(w.numpy())), self.t @ w)
        self.same(x.sequential([Tensor.relu, lambda x: x + 1]), self.t.relu() + 1)
        self.same(x.layernorm(), f.layer_norm(self.t, (6,)))
        self.same(x.layernorm((1, 2)), f.layer_norm(self.t, (3, 6)))
        self.same(x.layernorm(1, 1e-3), f.layer_norm(self.t.transpose(1, 2), (3,), eps=1e-3).transpose(1, 2))
        mean, var = self.t.mean((0, 2)), self.t.var((0, 2), correction=0)
        weight, bias = torch.randn(3), torch.randn(3)
        mine = x.batchnorm(*(Tensor(one.numpy()) for one in (weight, bias, mean, (var + 1e-5).rsqrt())))
        self.same(mine, f.batch_norm(self.t, None, None, weight, bias, training=True))
        self.same(x.batchnorm(None, None, x.mean((0, 2)), (x.variance((0, 2)) + 1e-5).rsqrt()),
                  f.batch_norm(self.t, None, None, training=True))

    def test_losses(self):
        f = torch.nn.functional
        logits, classes = torch.randn(4, 5), torch.tensor([1, 0, 4, 2])
        x, y = Tensor(logits.numpy()), Tensor(classes.numpy())
        self.same(x.sparse_categorical_crossentropy(y), f.cross_entropy(logits, classes))
        self.same(x.sparse_categorical_crossentropy(y, ignore_index=4, label_smoothing=0.1, reduction="sum"),
                  f.cross_entropy(logits, classes, ignore_index=4, label_smoothing=0.1, reduction="sum"))
        deep = torch.randn(2, 3, 5)
        wanted = f.cross_entropy(deep.reshape(6, 5), torch.tensor([0, 1, 2, 3, 4, 0]), reduction="none").reshape(2, 3)
        found = Tensor(deep.numpy()).sparse_categorical_crossentropy(Tensor([[0, 1, 2], [3, 4, 0]]), reduction="none")
        self.same(found, wanted)
        self.same(x.cross_entropy(y, "sum"), f.cross_entropy(logits, classes, reduction="sum"))
        self.same(x.cross_entropy(y, reduction=tiny.Reduction.NONE), f.cross_entropy(logits, classes, reduction="none"))
        self.same(x.log_softmax().nll_loss(y, reduction="sum"), f.cross_entropy(logits, classes, reduction="sum"))
        p, q = torch.rand(4, 5), torch.rand(4, 5)
        self.same(Tensor(p.numpy()).binary_crossentropy(Tensor(q.numpy())), f.binary_cross_entropy(p, q))
        weight = torch.rand(p.shape[-1])
        for reduction in ("mean", "sum", "none"):
            given, said = {"weight": Tensor(weight.numpy()), "reduction": reduction}, {"weight": weight, "reduction": reduction}
            self.same(Tensor(p.numpy()).binary_cross_entropy(Tensor(q.numpy()), **given), f.binary_cross_entropy(p, q, **said))
            ours = Tensor(p.numpy()).binary_cross_entropy_with_logits
            self.same(ours(Tensor(q.numpy()), **given), f.binary_cross_entropy_with_logits(p, q, **said))
            given["pos_weight"], said["pos_weight"] = given.pop("weight"), said.pop("weight")
            self.same(ours(Tensor(q.numpy()), **given), f.binary_cross_entropy_with_logits(p, q, **said))
        self.same(x.binary_crossentropy_logits(Tensor(q.numpy()), "sum"),
                  f.binary_cross_entropy_with_logits(logits, q, reduction="sum"), 1e-4)
        with self.assertRaisesRegex(ValueError, "reduction 'avg'; known: mean, sum, none"):
            x.cross_entropy(y, reduction="avg")


class Helpers(unittest.TestCase):
    def test_them(self):
        self.assertEqual((tiny.helpers.getenv("TINY_NOT_SET", 3), tiny.helpers.getenv("TINY_NOT_SET", "a")), (3, "a"))
        self.assertEqual(tiny.helpers.colored("x", "red"), "\x1b[31mx\x1b[0m")
        self.assertEqual(tiny.helpers.colored("x", None), "x")
        self.assertEqual(list(tiny.helpers.trange(3)), [0, 1, 2])
        tiny.GlobalCounters.reset()
        self.assertEqual(tiny.GlobalCounters.kernel_count, 0)
        (Tensor.rand(8) + 1).realize()
        self.assertGreater(tiny.GlobalCounters.kernel_count, 0)
        self.assertGreater(tiny.GlobalCounters.mem_used, 0)
        self.assertTrue(dtypes.is_float(dtypes.half) and dtypes.is_int(dtypes.uchar))
        self.assertFalse(dtypes.is_unsigned(dtypes.int))

    def test_functions_are_what_they_were(self):
        self.assertEqual(tiny.function(lambda x: x + 1)(1), 2)
        self.assertEqual(tiny.function(precompile=True)(lambda x: x + 1)(1), 2)
        with self.assertRaisesRegex(ValueError, "grad_fxn"):
            tiny.function(math.sin, grad_fxn=math.cos)

    def test_data_sets_are_not_fetched(self):
        with self.assertRaisesRegex(FileNotFoundError, "nothing is fetched.*TINY_DATASETS"):
            tiny.nn.datasets.mnist()


if __name__ == "__main__":
    unittest.main()
