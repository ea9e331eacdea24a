"""Functions of tensors against PyTorch, values and slopes: elements, running values, order, places, windows, matrices."""

import functools
import math
import unittest

import hypothesis
import hypothesis.strategies as st
import numpy as np
import torch

import tiny
from compared import BOX, SHAPES, Case, numbers
from tiny import Tensor


class Elements(Case):
    def test_functions_of_one_element(self):
        for name, low, high in (("tan", -1, 1), ("asin", -0.9, 0.9), ("acos", -0.9, 0.9), ("atan", -9, 9),
                                ("sinh", -3, 3), ("cosh", -3, 3), ("asinh", -9, 9), ("acosh", 1.1, 9),
                                ("atanh", -0.9, 0.9), ("exp2", -9, 9), ("log2", 0.1, 9), ("log10", 0.1, 9)):
            with self.subTest(name):
                self.same(getattr(Tensor, name), getattr(torch, name), numbers((20,), 1, low, high))

    def test_slopes_where_activations_bend(self):
        functional = torch.nn.functional
        cases = [(name, getattr(Tensor, name), getattr(functional, name)) for name in (
            "relu", "relu6", "leaky_relu", "elu", "celu", "selu", "hardtanh", "hardsigmoid", "hardswish", "softsign")]
        cases += [
            ("leaky_relu -0.5", lambda x: x.leaky_relu(-0.5), lambda x: functional.leaky_relu(x, -0.5)),
            ("elu 2", lambda x: x.elu(2.0), lambda x: functional.elu(x, 2.0)),
            ("celu 2", lambda x: x.celu(2.0), lambda x: functional.celu(x, 2.0)),
            ("hardtanh -3 6", lambda x: x.hardtanh(-3, 6), lambda x: functional.hardtanh(x, -3, 6)),
            ("clamp", lambda x: x.clamp(-3, 3), lambda x: x.clamp(-3, 3)), ("abs", Tensor.abs, torch.abs),
            ("op.PRelu", lambda x: tiny.op("PRelu", x, Tensor([0.25], dtype=x.dtype)),
             lambda x: functional.prelu(x, torch.tensor([0.25], dtype=x.dtype))),
            ("op.HardSwish", functools.partial(tiny.op, "HardSwish"), functional.hardswish),
            ("op.Selu", functools.partial(tiny.op, "Selu"), functional.selu), ("op.LeakyRelu", functools.partial(tiny.op, "LeakyRelu"), functional.leaky_relu)]
        for kind in (np.float32, np.float64):
            for name, ours, theirs in cases:
                with self.subTest(name, kind=kind):
                    self.same(ours, theirs, np.array([-6, -3, -1, -0.0, 0, 1, 3, 6], kind))
        x = Tensor([math.nan, -1, 0, 2], requires_grad=True)
        x.sign().sum().backward()
        self.assertEqual(x.grad.tolist(), [0, 0, 0, 0])

    def test_slopes_of_slopes(self):
        functional, points = torch.nn.functional, np.array([0, -0.0, 0.5, -0.5, 1e-9, -3, 3, 45, -45])
        cases = [(name, getattr(Tensor, name), getattr(torch, name)) for name in (
            "expm1", "atan", "asinh", "sinh", "cosh", "tanh", "erf", "sigmoid", "sin", "square")]
        cases += [(name, getattr(Tensor, name), getattr(functional, name)) for name in ("softplus", "mish", "logsigmoid")]
        both = lambda name, function: cases.append((name, function, function))
        both("log1p", lambda x: (x.abs() + x * x).log1p())
        both("asin", lambda x: (x * 0.02).asin())
        both("acos", lambda x: (x * 0.02).acos())
        both("logaddexp", lambda x: x.logaddexp(x * 2))
        both("prod", lambda x: x[:3].prod() + x[1:4].prod())
        both("cumprod", lambda x: x[:4].cumprod(0))
        weights = np.arange(1.0, len(points) + 1)
        for name, ours, theirs in cases:
            with self.subTest(name):
                x, y = Tensor(points), torch.tensor(points, requires_grad=True)
                got, want = ours(x), theirs(y)
                count = want.numel()
                slope, = tiny.gradient([(got * Tensor(weights[:count])).sum() if want.ndim else got], [x])
                wanted, = torch.autograd.grad((want * torch.tensor(weights[:count])).sum() if want.ndim else want, y,
                                              create_graph=True)
                curve, = tiny.gradient([(slope * Tensor(weights)).sum()], [x])
                wanted_curve, = torch.autograd.grad((wanted * torch.tensor(weights)).sum(), y)
                for one, other in ((slope, wanted), (curve, wanted_curve)):
                    np.testing.assert_allclose(one.numpy(), other.detach().numpy(), rtol=1e-9, atol=1e-12)

    def test_slopes_at_the_ends(self):
        ends = np.array([math.inf, -math.inf, 1e200, -1e200])
        for name in ("asinh", "sinh", "atan", "expm1"):
            with self.subTest(name):
                self.same(getattr(Tensor, name), getattr(torch, name), ends)
        self.assertTrue(math.isnan(Tensor(-1e200, dtype=tiny.float64).acosh().item()))
        self.assertEqual(math.copysign(1, Tensor(-0.0).expm1().item()), -1)
        self.assertEqual(math.copysign(1, Tensor(-0.0).log1p().item()), -1)

    def test_activations(self):
        functional = torch.nn.functional
        for name in ("hardtanh", "selu", "celu", "softplus", "hardsigmoid", "leaky_relu", "softsign", "logsigmoid",
                     "hardswish", "relu6", "mish"):
            with self.subTest(name):
                self.same(getattr(Tensor, name), getattr(functional, name), numbers((40,), 2, -8, 8))
        self.same(lambda x: x.softplus(3), lambda x: functional.softplus(x, 3), numbers((20,)))
        self.same(lambda x: x.celu(0.3), lambda x: functional.celu(x, 0.3), numbers((20,)))
        self.same(lambda x: x.softmin(0), lambda x: functional.softmin(x, 0), numbers((3, 4)))
        x = numbers((20,)).astype(np.float64)
        for got, want in ((Tensor(x).selu(), functional.selu(torch.tensor(x))),
                          (Tensor(x).celu(0.3), functional.celu(torch.tensor(x), 0.3))):
            np.testing.assert_allclose(got.numpy(), want.numpy(), rtol=1e-14)

    def test_exp2_of_whole_numbers_is_exact(self):
        self.assertEqual(Tensor([-3.0, 0.0, 10.0, 100.0]).exp2().tolist(), [0.125, 1, 1024, 2.0 ** 100])

    def test_functions_of_two_elements(self):
        x, y = numbers((3, 4)), numbers((4,), 1)
        self.same(Tensor.logaddexp, torch.logaddexp, x, y)
        self.same(lambda x: x.copysign(Tensor(y)), lambda x: torch.copysign(x, torch.tensor(y)), x)
        self.same(Tensor.fmod, torch.fmod, x, y, slopes=False)
        self.same(Tensor.mod, torch.remainder, x, y, slopes=False)
        for mode in (None, "trunc", "floor"):
            self.same(lambda x, y, mode=mode: x.div(y, rounding_mode=mode),
                      lambda x, y, mode=mode: torch.div(x, y, rounding_mode=mode), x, y, slopes=mode is None)

    def test_what_integers_become(self):
        for kind in (np.int32, np.uint8, np.bool_):
            array = np.array([[1, 2], [0, 3]], kind)
            for found, wanted in ((Tensor(array).copysign(-1.0), torch.tensor(array).copysign(-1.0)),
                                  (Tensor(array).cumprod(1), torch.tensor(array).cumprod(1))):
                self.assertEqual((found.dtype, found.tolist()), (wanted.dtype, wanted.tolist()))

    def test_logaddexp_at_the_ends(self):
        inf = math.inf
        x, y = Tensor([inf, -inf, inf, -inf, 0.0]), Tensor([inf, -inf, 1.0, 1.0, 0.0])
        np.testing.assert_allclose(x.logaddexp(y).numpy(), [inf, -inf, inf, 1, math.log(2)], rtol=1e-6)

    def test_signs_and_infinities(self):
        x = Tensor([1.0, -0.0, math.inf, -math.inf, math.nan])
        self.assertEqual(Tensor([1.0, 1, 1, 1, 1]).copysign(x).tolist()[:4], [1, -1, 1, -1])
        self.assertEqual(x.isinf().tolist(), [False, False, True, True, False])
        self.assertEqual(x.isinf(detect_positive=False).tolist(), [False, False, False, True, False])
        self.assertEqual(x.isfinite().tolist(), [True, True, False, False, False])
        self.assertEqual(x.isclose(x).tolist(), [True, True, True, True, False])
        self.assertEqual(x.isclose(x, equal_nan=True).tolist(), [True] * 5)
        self.assertTrue(Tensor([1.0, 2.0]).allclose(Tensor([1.0, 2.000001])).item())

    def test_corners(self):
        def slope(f, *values):
            x = Tensor(list(values))
            return f(x).sum().gradient(x)[0].tolist()
        self.assertEqual(slope(Tensor.relu, -1.0, 0.0, 1.0), [0, 0, 1])
        self.assertEqual(slope(lambda x: x.clip(0, 1), -1.0, 0.0, 0.5, 1.0, 2.0), [0, 1, 1, 1, 0])
        self.assertEqual(slope(lambda x: x.maximum(0), -1.0, 0.0, 1.0), [0, 0.5, 1])
        self.assertEqual(slope(Tensor.softplus, 0.0), [0.5])
        for name in ("asin", "atan", "asinh", "sinh", "tan"):
            self.assertEqual(slope(getattr(Tensor, name), 0.0, -0.0), [1, 1], name)
        infinite = float("inf")
        for name, *want in (("asin", infinite, infinite), ("acos", -infinite, -infinite), ("atanh", infinite, infinite)):
            self.assertEqual(slope(getattr(Tensor, name), -1.0, 1.0), want, name)
        self.assertEqual(slope(Tensor.acosh, 1.0), [infinite])

    def test_integers(self):
        x = Tensor([7, -7, 5])
        self.assertEqual((x.bitwise_and(3)).tolist(), [3, 1, 1])
        self.assertEqual(x.lshift(2).tolist(), [28, -28, 20])
        self.assertEqual(x.rshift(1).tolist(), [3, -4, 2])
        truth = tiny.Tensor([True, False, True])  # 0 or 1 beside an integer, as in sums
        for made, wanted in ((truth << 2, [4, 0, 4]), (truth >> 1, [0, 0, 0]), (x << truth, [14, -7, 10]),
                             (1 << truth, [2, 1, 2])):
            self.assertEqual((made.tolist(), made.dtype), (wanted, (truth + 1).dtype))
        for wrong in (lambda: truth << truth, lambda: truth << 1.5):
            with self.assertRaisesRegex(tiny.Error, "a shift takes integers"):
                wrong()
        self.assertEqual(x.bitwise_not().tolist(), [-8, 6, -6])
        self.assertEqual(x.div(2, rounding_mode="trunc").tolist(), [3, -3, 2])
        self.assertEqual(x.sub(1, reverse=True).tolist(), [-6, 8, -4])
        with self.assertRaisesRegex(RuntimeError, "pow"):
            x.pow(-1)
        with self.assertRaisesRegex(RuntimeError, "rounding_mode"):
            x.div(2, rounding_mode="up")


class Running(Case):
    @hypothesis.settings(**BOX)
    @hypothesis.given(SHAPES, st.integers(-3, 2))
    def test_against_torch(self, shape, axis):
        axis = max(-len(shape), min(axis, len(shape) - 1))
        x = numbers(shape)
        self.same(lambda x: x.cumsum(axis), lambda x: x.cumsum(axis), x)
        self.same(lambda x: x.cumprod(axis), lambda x: x.cumprod(axis), x, atol=1e-5)
        self.same(lambda x: x.cummax(axis)[0], lambda x: x.cummax(axis)[0], x)
        self.same(lambda x: x.cummin(axis)[0], lambda x: x.cummin(axis)[0], x)
        self.same(lambda x: x.logcumsumexp(axis), lambda x: x.logcumsumexp(axis), x)

    @hypothesis.settings(**BOX)
    @hypothesis.given(st.lists(st.integers(1, 70), min_size=1, max_size=3), st.integers(0, 2), st.booleans(),
                      st.booleans(), st.sampled_from(["float32", "float64", "int32", "int64", "uint8"]))
    def test_against_numpy(self, shape, axis, exclusive, reverse, dtype):
        axis = min(axis, len(shape) - 1)
        x = np.random.default_rng(len(shape)).integers(0, 9, shape).astype(dtype)
        walked = np.flip(x, axis) if reverse else x
        sums = np.cumsum(walked, axis)
        wanted = sums - walked if exclusive else sums
        got = Tensor(x).cumsum(axis, exclusive=exclusive, reverse=reverse).numpy()
        np.testing.assert_array_equal(got, np.flip(wanted, axis) if reverse else wanted)
        if not (exclusive or reverse):
            np.testing.assert_array_equal(Tensor(x).cummax(axis)[0].numpy(), np.maximum.accumulate(x, axis))
            np.testing.assert_array_equal(Tensor(x).cummin(axis)[0].numpy(), np.minimum.accumulate(x, axis))

    def test_what_surrounds_running_values(self):
        x = numbers((300, 5))
        self.same(lambda x: (x.exp().cumsum(0) * x)[3:].flip(0), lambda x: (x.exp().cumsum(0) * x)[3:].flip([0]), x,
                  rtol=1e-4, atol=1e-4)
        self.same(lambda x: x.pad(((2, 3), (0, 0))).cumsum(0).reshape(-1, 61),
                  lambda x: torch.nn.functional.pad(x, (0, 0, 2, 3)).cumsum(0).reshape(-1, 61), x, rtol=1e-4, atol=1e-4)
        self.same(lambda x: x.cumsum(1).cumsum(0) + x.cumsum(0), lambda x: x.cumsum(1).cumsum(0) + x.cumsum(0), x,
                  rtol=1e-4, atol=1e-4)

    def test_places(self):
        x = np.array([[3.0, 1, 3, 5], [math.nan, 1, 2, 9]], np.float32)
        for name in ("cummax", "cummin"):
            for one, other in zip(getattr(Tensor(x), name)(1), getattr(torch.tensor(x), name)(1)):
                np.testing.assert_array_equal(one.numpy(), other.numpy())

    def test_long_axes_go_in_parts(self):
        x = numbers((2, 1500), 3, 0.9, 1.1)
        self.same(lambda x: x.cumprod(1), lambda x: x.cumprod(1), x, rtol=2e-4)
        self.same(lambda x: x.cummax(1)[0], lambda x: x.cummax(1)[0], x)
        self.same(lambda x: x.logcumsumexp(1), lambda x: x.logcumsumexp(1), x, rtol=1e-4)


class Places(Case):
    def test_order(self):
        x = numbers((3, 6))
        for descending in (False, True):
            self.same(lambda x: x.sort(1, descending)[0], lambda x: x.sort(1, descending)[0], x)
            np.testing.assert_array_equal(Tensor(x).argsort(0, descending).numpy(),
                                          torch.tensor(x).argsort(0, descending).numpy())
        self.same(lambda x: x.topk(2, 1)[0], lambda x: x.topk(2, 1)[0], x)
        self.assertEqual(Tensor([1, 1, 0, 1, 0]).topk(3)[1].tolist(), [0, 1, 3])
        with self.assertRaisesRegex(ValueError, "topk: 4 of 3"):
            Tensor([1, 2, 3]).topk(4)

    def test_scatter(self):
        x, src = numbers((3, 4)), numbers((3, 4), 1)
        index = np.array([[0, 2, 1, 0], [1, 0, 2, 2]])
        places = Tensor(index), torch.tensor(index)
        self.same(lambda x, s: x.scatter(0, places[0], s), lambda x, s: x.scatter(0, places[1], s[:2]), x, src)
        self.same(lambda x: x.scatter(0, places[0], 3.0), lambda x: x.scatter(0, places[1], 3.0), x)
        for reduce in ("add", "multiply"):
            self.same(lambda x: x.scatter(0, places[0], 3.0, reduce=reduce),
                      lambda x: x.scatter(0, places[1], 3.0, reduce=reduce), x, slopes=False)
        for reduce in ("sum", "prod", "mean", "amax", "amin"):
            for include in (True, False):
                with self.subTest(reduce=reduce, include=include):
                    self.same(lambda x, s: x.scatter_reduce(0, places[0], s, reduce, include),
                              lambda x, s: x.scatter_reduce(0, places[1], s, reduce, include_self=include), x, src[:2],
                              slopes=reduce in ("sum", "mean"))
        with self.assertRaises(TypeError):
            Tensor(x).scatter(0, places[0], Tensor(src), reduce="add")
        with self.assertRaisesRegex(RuntimeError, "float16|float32"):
            Tensor(x).half().scatter(0, places[0], Tensor(src))

    def test_selection(self):
        x = Tensor([[1.0, 0, 2], [0, 3, 0]])
        self.assertEqual(x.masked_select(x > 0).tolist(), [1, 2, 3])
        self.assertEqual(x.masked_select(x > 0, size=5, fill_value=-1).tolist(), [1, 2, 3, -1, -1])
        self.assertEqual(x.masked_select(x > 0, size=2).tolist(), [1, 2])
        self.assertEqual(x.nonzero().tolist(), [[0, 0], [0, 2], [1, 1]])
        self.assertEqual(x.nonzero(size=4, fill_value=-1).tolist(), [[0, 0], [0, 2], [1, 1], [-1, -1]])

    def test_unpooling(self):
        x = numbers((2, 3, 8, 6))
        for keywords in ({"kernel_size": 2}, {"kernel_size": (2, 3), "stride": (2, 3)}):
            self.same(lambda x: Tensor.max_unpool2d(*x.max_pool2d(return_indices=True, **keywords), **keywords),
                      lambda x: torch.nn.functional.max_unpool2d(
                          *torch.nn.functional.max_pool2d(x, return_indices=True, **keywords), **keywords), x)


class Arrangement(Case):
    def test_windows(self):
        for shape, arguments in (((8,), (0, 2, 1)), ((8,), (0, 7, 3)), ((3, 3, 3), (2, 2, 8)), ((3, 4, 3), (1, 0, 8)),
                                 ((3, 3, 5), (-1, 2, 2))):
            self.same(lambda x: x.unfold(*arguments), lambda x: x.unfold(*arguments), numbers(shape),
                      slopes=arguments[1] > 0)
        for wrong, kind in (((0, 9, 3), RuntimeError), ((1, 8, 3), IndexError), ((0, 1, -1), RuntimeError)):
            with self.assertRaises(kind):
                Tensor(numbers((8,))).unfold(*wrong)
        self.same(lambda x: x._pool((2, 3), (1, 2), (2, 1)),
                  lambda x: torch.stack([x[:, i:i + 3:2, j:j + 3] for i in range(2) for j in (0, 2)], 1)
                  .reshape(2, 2, 2, 2, 3), numbers((2, 4, 5)))

    def test_diagonals(self):
        self.same(Tensor.diag, torch.diag, numbers((4,)))
        for offset in (-2, 0, 1):
            self.same(lambda x: x.diag(offset), lambda x: x.diag(offset), numbers((3,)))
            self.same(lambda x: x.diag(offset), lambda x: x.diag(offset), numbers((3, 4)))
        self.assertEqual(Tensor.zeros(2, 3, 0).diagonal(0, 0, 2).shape, torch.zeros(2, 3, 0).diagonal(0, 0, 2).shape)
        for offset in (-2, -1, 0, 1, 3, 4):
            self.same(lambda x: x.diagonal(offset, 0, 2), lambda x: x.diagonal(offset, 0, 2), numbers((3, 2, 4)))

    def test_roll(self):
        x = numbers((3, 4))
        for arguments in ((1,), (2, 0), (-1, 1), ((1, 2), (0, 1)), (9, 1)):
            self.same(lambda x: x.roll(*arguments), lambda x: x.roll(*arguments), x)

    def test_padding(self):
        functional = torch.nn.functional
        for mode in ("reflect", "replicate", "circular"):
            self.same(lambda x: x.pad((2, 1, 1, 2), mode=mode), lambda x: functional.pad(x, (2, 1, 1, 2), mode=mode),
                      numbers((1, 2, 4, 5)))
        with self.assertRaisesRegex(ValueError, "reflect"):
            Tensor(numbers((2, 3))).pad((3, 0), mode="reflect")
        with self.assertRaisesRegex(NotImplementedError, "typo"):
            Tensor(numbers((2, 3))).pad((3, 0), mode="typo")

    def test_rearrange(self):
        x = numbers((2, 12, 3))
        self.same(lambda x: x.rearrange("b (h w) c -> b c h w", h=3),
                  lambda x: x.reshape(2, 3, 4, 3).permute(0, 3, 1, 2), x)
        self.same(lambda x: x.rearrange("... c -> c (...)"), lambda x: x.reshape(24, 3).T, x)
        self.same(lambda x: x.rearrange("a b c -> (a b) 1 c"), lambda x: x.reshape(24, 1, 3), x)
        for wrong in ("a b c", "a b c -> a b", "a b -> a b", "a (b c) d -> a b c d", "a b c -> a b) c"):
            with self.assertRaises(ValueError):
                Tensor(x).rearrange(wrong)

    def test_interpolation(self):
        functional = torch.nn.functional
        for shape, size, name in (((1, 2, 5), (9,), "linear"), ((1, 2, 5, 6), (3, 9), "bilinear")):
            for corners in (False, True):
                self.same(lambda x: x.interpolate(size, "linear", corners),
                          lambda x: functional.interpolate(x, size, mode=name, align_corners=corners), numbers(shape),
                          atol=1e-5)
        for mode in ("nearest", "nearest-exact"):
            self.same(lambda x: x.interpolate((9, 4), mode), lambda x: functional.interpolate(x, (9, 4), mode=mode),
                      numbers((1, 2, 5, 6)))


class Matrices(Case):
    def test_einsum(self):
        a, b = numbers((3, 4)), numbers((4, 5), 1)
        self.same(lambda a, b: Tensor.einsum("ij,jk->ki", a, b), lambda a, b: torch.einsum("ij,jk->ki", a, b), a, b)
        self.same(lambda a, b: Tensor.einsum("ij, jk", [a, b]), lambda a, b: torch.einsum("ij,jk", a, b), a, b)
        with self.assertRaisesRegex(ValueError, "1 operands are wanted, not 2"):
            Tensor.einsum("ij", Tensor(a), Tensor(b))
        with self.assertRaises(RuntimeError):  # two ellipses in one term
            Tensor.einsum("...i...,ij->", Tensor(numbers((2, 3, 4))), Tensor(a))

    def test_qr(self):
        for shape in ((3, 3), (3, 5), (5, 3), (2, 4, 4), (1, 1)):
            x = Tensor(numbers(shape))
            q, r = x.qr("complete")
            np.testing.assert_allclose((q @ r).numpy(), x.numpy(), atol=2e-6)
            np.testing.assert_allclose((q.transpose(-2, -1) @ q).numpy(), np.broadcast_to(
                np.eye(shape[-2]), q.shape), atol=2e-6)
            self.assertEqual(r.tril(-1).abs().max().item(), 0)
        with self.assertRaisesRegex(ValueError, "mode"):
            Tensor(numbers((5, 3))).qr()
        self.same(lambda x: x.qr()[1].abs(), lambda x: torch.linalg.qr(x)[1].abs(), numbers((3, 3)), atol=1e-5, rtol=1e-4)

    def test_singular_values(self):
        for shape in ((2, 2), (5, 3), (3, 5), (3, 4, 4), (6, 6)):
            for full in (False, True):
                x = Tensor(numbers(shape, 5))
                u, s, v = x.svd(full)
                want = np.linalg.svd(x.numpy(), full_matrices=full)
                self.assertEqual((u.shape, s.shape, v.shape), tuple(one.shape for one in want))
                np.testing.assert_allclose(s.numpy(), want[1], rtol=1e-5, atol=1e-6)
                k = min(shape[-2:])
                np.testing.assert_allclose(((u[..., :k] * s.unsqueeze(-2)) @ v[..., :k, :]).numpy(), x.numpy(), atol=1e-5)
                for one in (u.transpose(-2, -1) @ u, v @ v.transpose(-2, -1)):
                    np.testing.assert_allclose(one.numpy(), np.broadcast_to(np.eye(one.shape[-1]), one.shape), atol=1e-5)
        for x in (Tensor.zeros(2, 2), Tensor.eye(3), Tensor([[1.0, 1.0], [2.0, 2.0]])):
            u, s, v = x.svd()
            np.testing.assert_allclose(((u * s) @ v).numpy(), x.numpy(), atol=1e-5)
            np.testing.assert_allclose((u.T @ u).numpy(), np.eye(u.shape[0]), atol=1e-5)

    def test_newton_schulz(self):
        x = Tensor(numbers((3, 5))).newton_schulz(20, (2, -1.5, 0.5))
        np.testing.assert_allclose((x @ x.T).numpy(), np.eye(3), atol=1e-3)


class Digests(unittest.TestCase):
    def test_against_hashlib(self):
        import hashlib
        for kind, digest in (("sha3_224", lambda d: hashlib.sha3_224(d).digest()),
                             ("sha3_256", lambda d: hashlib.sha3_256(d).digest()),
                             ("shake_128", lambda d: hashlib.shake_128(d).digest(16))):
            for size in (1, 143, 170):
                data = np.random.default_rng(size).integers(0, 256, size, np.uint8)
                self.assertEqual(bytes(Tensor(data).keccak(kind).tolist()), digest(data.tobytes()), (kind, size))


if __name__ == "__main__":
    unittest.main()
