"""The methods that NumPy's and PyTorch's programs call, against both: axes, folds, elements, places, products, other names."""

import math
import unittest

import hypothesis
import hypothesis.strategies as st
import numpy as np
import torch

import tiny
from compared import BOX, SHAPES, Case, numbers
from tiny import Tensor, _synonyms, dtypes


FEW = {**BOX, "max_examples": 12}  # each compares some twenty methods


def call(name, *arguments, **keywords):
    """The method of that name, of whatever has one."""
    return lambda x, *others: getattr(x, name)(*others, *arguments, **keywords)


class Axes(Case):
    @hypothesis.settings(**FEW)
    @hypothesis.given(SHAPES, st.data())
    def test_against_torch(self, shape, data):
        x, rank = numbers(shape), len(shape)
        axes = st.integers(-rank, rank - 1)
        one, other = data.draw(axes), data.draw(axes)
        length = data.draw(st.integers(1, shape[one]))
        start = data.draw(st.integers(0, shape[one] - length))
        parts = data.draw(st.integers(1, 4))
        for method in (call("movedim", one, other), call("moveaxis", one, other), call("swapaxes", one, other),
                       call("swapdims", one, other), call("ravel"), call("narrow", one, start, length),
                       call("select", one, start), call("flipud"), call("diff", 1, one), call("diag_embed"),
                       call("diag_embed", 1), call("diag_embed", -2), call("diagflat", 1)):
            self.same(method, method, x)
        for name, arguments in (("unbind", (one,)), ("tensor_split", (parts, one)), ("tensor_split", ([1, 3], one))):
            ours, theirs = (getattr(kind(x), name)(*arguments) for kind in (Tensor, torch.tensor))
            self.assertEqual([part.tolist() for part in ours], [part.tolist() for part in theirs], (name, arguments))

    def test_several_axes(self):
        x = numbers((2, 3, 4))
        self.same(call("movedim", (0, 2), (1, 0)), call("movedim", (0, 2), (1, 0)), x)
        for wrong in (((0, 0), (1, 2)), ((0, 1), (2,)), ((0, 1), (1, -2))):
            with self.assertRaisesRegex(ValueError, "movedim"):
                Tensor(x).movedim(*wrong)
        for turns in range(-1, 5):
            self.same(call("rot90", turns, (0, 2)), call("rot90", turns, (0, 2)), x)
        self.same(call("diff", 2), call("diff", 2), x)
        self.assertEqual(Tensor([True, False, False]).diff().tolist(), [True, False])
        self.same(call("diag_embed", 1, 0, 2), call("diag_embed", 1, 0, 2), x)
        for name in ("t", "trace", "fliplr"):
            self.same(call(name), call(name), x[0])
        self.same(call("t"), call("t"), x[0, 0])
        for name in ("t", "trace"):
            with self.assertRaisesRegex(ValueError, f"{name}: a matrix is wanted"):
                getattr(Tensor(x), name)()
        with self.assertRaisesRegex(IndexError, "narrow: 3 elements from 2 on along axis 2"):
            Tensor(x).narrow(2, 2, 3)

    def test_shapes_of_others(self):
        x, wide = numbers((1, 3)), numbers((2, 3), 1)
        self.same(lambda a, b: a.expand_as(b) * b, lambda a, b: a.expand_as(b) * b, x, wide)
        self.same(lambda a, b: b.view_as(a) * a, lambda a, b: b.view_as(a) * a, x, wide[:1])
        self.same(call("broadcast_to", (2, 3)), call("broadcast_to", (2, 3)), x)
        for times in ((2,), (2, 3), (2, 1, 3)):
            self.same(call("tile", times), call("tile", times), wide)
            self.same(call("tile", *times), call("tile", times), wide)
        nothing = np.zeros((0, 4), np.float32)
        self.same(call("unflatten", 1, (2, -1)), call("unflatten", 1, (2, -1)), nothing)
        self.same(call("kron"), torch.kron, x, wide)
        self.same(call("kron"), torch.kron, x[0], wide)

    def test_views_write_through(self):
        x = Tensor([[1.0, 2], [3, 4]])
        x.select(0, 1).assign(Tensor([7.0, 8]))
        x.unbind(1)[0].assign(Tensor([0.0, 0]))
        self.assertEqual(x.tolist(), [[0, 2], [0, 8]])


class Folds(Case):
    @hypothesis.settings(**FEW)
    @hypothesis.given(SHAPES, st.data())
    def test_against_torch(self, shape, data):
        x, axis, keep = numbers(shape), data.draw(st.integers(-len(shape), len(shape) - 1)), data.draw(st.booleans())
        for name in ("amax", "amin"):
            self.same(call(name, axis, keep), call(name, axis, keep), x)
        for p in (0, 1, 2, 3, 2.5, math.inf, -math.inf):
            self.same(call("norm", p, axis, keep), call("norm", p, axis, keep), x, slopes=p not in (0, math.inf, -math.inf),
                      rtol=1e-4)
        q = data.draw(st.sampled_from((0.0, 0.25, 0.5, 0.9, 1.0)))
        for between in ("linear", "lower", "higher", "midpoint", "nearest"):
            self.same(call("quantile", q, axis, keep, interpolation=between),
                      call("quantile", q, axis, keep, interpolation=between), x, slopes=False)
        self.same(call("quantile", [0.1, q], axis, keep), lambda x: torch.quantile(x, torch.tensor([0.1, q]), axis, keep), x,
                  slopes=False)
        k = data.draw(st.integers(1, shape[axis]))
        for i in range(2):
            self.same(lambda x: x.kthvalue(k, axis, keep)[i], lambda x: x.kthvalue(k, axis, keep)[i], x, slopes=False)
        whole = np.round(x)
        self.same(call("count_nonzero", axis), call("count_nonzero", axis), whole, slopes=False)

    def test_of_all(self):
        x, y = numbers((3, 4)), numbers((3, 4), 1)
        for name in ("amax", "amin", "norm", "nansum", "nanmean"):
            self.same(call(name), call(name), x)
        for kind in (Tensor, torch.tensor):
            self.assertEqual([one.item() for one in kind(x).aminmax()], [x.min(), x.max()])
        self.same(call("dist", 3), call("dist", 3), x, y, rtol=1e-4)
        for name in ("cov", "corrcoef"):
            self.same(call(name), call(name), x, rtol=1e-4, slopes=name == "cov")
            np.testing.assert_allclose(getattr(Tensor(x), name)().numpy(), getattr(np, name)(x), rtol=1e-4)
            self.same(call(name), call(name), x[0], slopes=False)

    def test_what_is_unknown(self):
        x = np.array([[1.0, math.nan, 3], [4, 5, 6]], np.float32)
        for name in ("nansum", "nanmean"):
            np.testing.assert_array_equal(getattr(Tensor(x), name)(1).numpy(), getattr(np, name)(x, 1))
        np.testing.assert_array_equal(Tensor(x).quantile(0.5, 1).numpy(), [math.nan, 5])

    def test_the_slope_of_a_norm_of_zeros_is_zero(self):
        x = Tensor.zeros(3).clone()
        self.assertEqual(x.norm().gradient(x)[0].tolist(), [0, 0, 0])
        rows = np.array([[0, 0, 0], [1, 0, -2]], np.float32)
        for p in (0.5, 1.5, 2, 3):
            self.same(call("norm", p, 1), call("norm", p, 1), rows)
        self.same(call("norm", -1, 1), call("norm", -1, 1), rows + 3)
        self.same(lambda x: x.normalize(dim=1), lambda x: torch.nn.functional.normalize(x, dim=1), rows)
        self.same(lambda x: x.std(axis=1), lambda x: x.std(1), rows)
        self.same(lambda x: x.atan2(x * 0), lambda x: x.atan2(x * 0), rows[:1])

    def test_spread_as_each_library_says_it(self):
        x = numbers((3, 4))
        for settings in (dict(dim=0), dict(dim=(0, 1)), dict(dim=1, unbiased=False), dict(unbiased=True), dict(dim=1, correction=0)):
            for name in ("std", "var"):
                self.same(lambda t: getattr(t, name)(**settings), lambda t: getattr(t, name)(**settings), x)
        np.testing.assert_allclose(Tensor(x).std(axis=0, ddof=0, keepdims=True).numpy(), x.std(0, ddof=0, keepdims=True), rtol=1e-6)
        self.same(lambda t: t.var_mean(dim=1)[0], lambda t: torch.var_mean(t, dim=1)[0], x)
        self.same(call("flip", dims=(1,)), call("flip", dims=(1,)), x)
        with self.assertRaisesRegex(TypeError, "ddof and unbiased name the same"):
            Tensor(x).std(ddof=1, unbiased=True)

    def test_where_before_and_behind_the_condition(self):
        x = numbers((3, 4))
        self.same(lambda t: t.where(t > 0, t * 2), lambda t: t.where(t > 0, t * 2), x)
        self.same(lambda t: (t > 0).where(t, 0.5), lambda t: torch.where(t > 0, t, 0.5), x)
        self.assertEqual(Tensor([0.0, 2.0]).where(Tensor([1, 2]), Tensor([3, 4])).tolist(), [3, 2])

    def test_the_covariance_of_one_row_is_a_number(self):
        self.same(Tensor.cov, torch.cov, numbers((1, 5)))
        self.assertEqual(Tensor(numbers((1, 5))).corrcoef().shape, torch.corrcoef(torch.tensor(numbers((1, 5)))).shape)

    def test_what_libraries_read_differently(self):
        x = Tensor([3.0, 1, 2, 4])
        self.assertEqual(x[:3].median().item(), 2)
        self.assertEqual(Tensor([[3.0, 1, 2]]).median(axis=1, keepdim=True).tolist(), [[2]])
        with self.assertRaisesRegex(ValueError, "median: of 4 elements PyTorch gives the lower one"):
            x.median()
        for wrong in (lambda: x.median(dim=0), lambda: x[:3].median(0)):
            with self.assertRaisesRegex(TypeError, "kthvalue"):
                wrong()
        with self.assertRaisesRegex(NotImplementedError, "norm: p='nuc'"):
            x.norm("nuc")
        with self.assertRaisesRegex(ValueError, "norm: floats are wanted, not int64"):
            Tensor([1, 2]).norm()


class Elements(Case):
    def test_of_one(self):
        x = numbers((4, 5), 1, -3, 3)
        for name, arguments in (("frac", ()), ("deg2rad", ()), ("rad2deg", ()), ("sinc", ()), ("clamp_min", (0.5,)),
                                ("clamp_max", (0.5,)), ("nan_to_num", ())):
            self.same(call(name, *arguments), call(name, *arguments), x, rtol=1e-4)
        for name in ("hardshrink", "softshrink", "tanhshrink"):
            self.same(call(name), getattr(torch.nn.functional, name), x, rtol=1e-4)
        self.same(call("logit"), call("logit"), numbers((9,), 2, 0.05, 0.95))
        self.same(call("logit", 0.1), call("logit", 0.1), numbers((9,), 2, -0.5, 1.5))
        for weight in (numbers((1,)), numbers((5,))):
            self.same(call("prelu"), torch.nn.functional.prelu, x, weight)

    def test_of_two(self):
        x, y = numbers((4, 5), 1, -3, 3), numbers((5,), 2, -3, 3)
        for name in ("atan2", "hypot", "fmax", "fmin", "logaddexp2"):
            self.same(call(name), call(name), x, y, rtol=1e-4)
        self.same(call("xlogy"), call("xlogy"), x, np.abs(y))
        self.same(lambda x, y: x.addcmul(y, x, value=3), lambda x, y: x.addcmul(y, x, value=3), x, y)
        self.same(lambda x, y: x.addcdiv(x, y, value=3), lambda x, y: x.addcdiv(x, y, value=3), x, y, rtol=1e-4)
        whole = [np.array([[0, 1, -2, 3]]), np.array([[0], [2]])]
        for name in ("logical_and", "logical_or", "logical_xor", "ldexp", "heaviside"):
            ours, theirs = (getattr(kind(whole[0]), name)(kind(whole[1])) for kind in (Tensor, torch.tensor))
            self.assertEqual((ours.tolist(), ours.dtype), (theirs.tolist(), theirs.dtype), name)

    def test_at_the_ends(self):
        ends = [0.0, -0.0, 1.0, -1.0, math.inf, -math.inf, math.nan]
        y, x = (np.array(one, np.float32) for one in zip(*[(a, b) for a in ends for b in ends]))
        for name in ("atan2", "hypot", "fmax", "fmin", "xlogy"):
            got, want = (getattr(kind(y), name)(kind(x)).numpy() for kind in (Tensor, torch.tensor))
            if name == "atan2":
                np.testing.assert_array_equal(np.signbit(got[got == 0]), np.signbit(want[got == 0]), name)
            np.testing.assert_allclose(got, want, rtol=1e-6, err_msg=name)
        np.testing.assert_array_equal(Tensor(y).heaviside(Tensor(x)).numpy(), np.heaviside(y, x))  # PyTorch has 0 of NaN
        x = np.array(ends, np.float32)
        for name in ("hardshrink", "softshrink"):
            np.testing.assert_array_equal(getattr(Tensor(x), name)().numpy(),
                                          getattr(torch.nn.functional, name)(torch.tensor(x)).numpy(), name)
        for name in ("signbit", "isposinf", "isneginf", "nan_to_num", "sinc"):
            got, want = (getattr(kind(x), name)().numpy() for kind in (Tensor, torch.tensor))
            np.testing.assert_allclose(got, want, atol=1e-7, err_msg=name)
        for kind in (tiny.float16, tiny.bfloat16, tiny.float64, tiny.float8_e5m2):
            highest = torch.finfo(getattr(torch, kind.name)).max
            self.assertEqual(Tensor([math.inf, -math.inf], dtype=kind).nan_to_num().tolist(), [highest, -highest], kind)
        self.assertEqual(Tensor([math.nan, math.inf, -math.inf]).nan_to_num(1, 2, 3).tolist(), [1, 2, 3])
        self.assertEqual(Tensor([3e38, 0]).hypot(Tensor([3e38, 0])).isfinite().tolist(), [False, True])
        self.assertAlmostEqual(Tensor([2e38]).hypot(Tensor([1e38])).item() / math.hypot(2e38, 1e38), 1, places=6)
        for kind in (dtypes.float16, dtypes.bfloat16, dtypes.float64, dtypes.int8):
            self.assertEqual(Tensor([-1, 0, 1]).cast(kind).signbit().tolist(), [True, False, False])

    def test_slopes_on_the_edges(self):
        points = np.array([1.0, -1, 0, 0, 2], np.float32), np.array([1.0, -1, 2, -2, 0], np.float32)
        self.same(call("atan2"), call("atan2"), *points)


class Places(Case):
    @hypothesis.settings(**FEW)
    @hypothesis.given(SHAPES, st.data())
    def test_against_torch(self, shape, data):
        axis = data.draw(st.integers(-len(shape), len(shape) - 1))
        count = data.draw(st.integers(1, shape[axis]))
        apart = data.draw(st.permutations(range(shape[axis])))[:count]
        some = data.draw(st.lists(st.integers(0, shape[axis] - 1), min_size=1, max_size=6))
        x = numbers(shape)

        def both(method, index, *arrays):
            self.same(lambda x, *rest: method(x, Tensor(index), *rest),
                      lambda x, *rest: method(x, torch.tensor(index), *rest), x, *arrays)

        def source(index):
            sizes = list(shape)
            sizes[axis] = len(index)
            return numbers(sizes, 3)
        both(lambda x, i: x.index_select(axis, i), some)
        both(lambda x, i: x.index_fill(axis, i, 3.0), some)
        both(lambda x, i, s: x.index_copy(axis, i, s), apart, source(apart))
        both(lambda x, i, s: x.index_add(axis, i, s), some, source(some))
        both(lambda x, i, s: x.index_add(axis, i, s, alpha=2), some, source(some))
        flat = [i % x.size for i in some]
        both(lambda x, i: x.take(i), flat)
        both(lambda x, i: x.take_along_dim(i), flat)
        start = data.draw(st.integers(0, shape[axis] - 1))
        step = data.draw(st.integers(1, 3))
        cut = np.take(x, range(start, shape[axis], step), axis)
        self.same(lambda x, s: x.slice_scatter(s, axis, start, None, step),
                  lambda x, s: x.slice_scatter(s, axis, start, None, step), x, cut)
        self.same(lambda x, s: x.select_scatter(s, axis, start), lambda x, s: x.select_scatter(s, axis, start), x,
                  np.take(x, start, axis))
        mask = numbers(shape, 5) > 0
        self.same(lambda x, s: x.masked_scatter(Tensor(mask), s), lambda x, s: x.masked_scatter(torch.tensor(mask), s), x,
                  numbers((x.size,), 6))

    def test_scatter_add(self):
        index = np.array([[0, 2, 1, 0], [1, 0, 2, 2]])
        self.same(lambda x, s: x.scatter_add(0, Tensor(index), s), lambda x, s: x.scatter_add(0, torch.tensor(index), s),
                  numbers((3, 4)), numbers((2, 4), 1))

    def test_along_an_axis_of_numpy(self):
        x = numbers((3, 4))
        for index in ([0, -1], [[0, 1], [2, 0]]):
            np.testing.assert_array_equal(Tensor(x).take(index, 0).numpy(), np.take(x, index, 0))
            np.testing.assert_array_equal(Tensor(x).take(index).numpy(), np.take(x, index))

    @hypothesis.settings(**FEW)
    @hypothesis.given(st.lists(st.integers(0, 6), min_size=1, max_size=20))
    def test_values(self, values):
        x, y = Tensor(values), np.array(values)
        for ours, theirs in zip(x.unique(return_inverse=True, return_counts=True),
                                torch.tensor(values).unique(return_inverse=True, return_counts=True)):
            self.assertEqual((ours.tolist(), ours.dtype), (theirs.tolist(), theirs.dtype))
        self.assertEqual(x.unique().tolist(), np.unique(y).tolist())
        self.assertEqual(x.bincount(minlength=4).tolist(), np.bincount(y, minlength=4).tolist())
        weights = numbers((len(values),))
        np.testing.assert_allclose(x.bincount(Tensor(weights)).numpy(), np.bincount(y, weights), rtol=1e-5, atol=1e-6)
        rows = sorted(values)
        for side in ("left", "right"):
            self.assertEqual(Tensor(rows).searchsorted([[0, 3, 9]], side).tolist(),
                             np.searchsorted(rows, [[0, 3, 9]], side).tolist())
        self.assertEqual(x.argwhere().tolist(), np.argwhere(y).tolist())

    def test_what_is_no_place(self):
        x = Tensor([[1.0, 2]])
        with self.assertRaisesRegex(TypeError, "index_select: places are integers"):
            x.index_select(0, x[0])
        with self.assertRaisesRegex(ValueError, "index_add: a source of shape"):
            x.index_add(1, Tensor([0]), x)
        with self.assertRaisesRegex(ValueError, "bincount: integers from 0 on"):
            Tensor([-1]).bincount()
        with self.assertRaisesRegex(ValueError, "a mask of bools"):
            x.masked_scatter(x, x)
        self.assertEqual(Tensor([], dtype=dtypes.int64).bincount(minlength=2).tolist(), [0, 0])


class Products(Case):
    def test_against_torch(self):
        a, b, v = numbers((3, 4)), numbers((4, 5), 1), numbers((4,), 2)
        many, others = numbers((2, 3, 4), 3), numbers((2, 4, 5), 4)
        for name, operands in (("mm", (a, b)), ("mv", (a, v)), ("bmm", (many, others)), ("outer", (v, a[0])), ("ger", (v, a[0])),
                               ("inner", (a, v)), ("inner", (many, a)), ("vdot", (v, a[0]))):
            self.same(call(name), call(name), *operands)
        for name, operands in (("addmm", (numbers((3, 5)), a, b)), ("addmv", (numbers((3,)), a, v)),
                               ("addr", (numbers((4, 4)), v, a[0])), ("baddbmm", (numbers((2, 3, 5)), many, others)),
                               ("addbmm", (numbers((3, 5)), many, others))):
            self.same(call(name), call(name), *operands, rtol=1e-4)
            self.same(call(name, beta=2, alpha=0.5), call(name, beta=2, alpha=0.5), *operands, rtol=1e-4)
        x, y = numbers((2, 3), 5), numbers((2, 3), 6)
        self.same(call("cross"), torch.linalg.cross, x, y)
        self.same(call("cross", 0), lambda a, b: torch.linalg.cross(a, b, dim=0), x.T.copy(), y.T.copy())
        for power in range(5):
            self.same(call("matrix_power", power), call("matrix_power", power), numbers((2, 3, 3)), slopes=power > 0, rtol=1e-4)

    def test_axes_are_checked(self):
        a, v = Tensor(numbers((3, 4))), Tensor(numbers((4,)))
        for name, other, text in (("mm", v, r"mm: \[k, m\] is wanted, not shape \[4\]"), ("mv", a, r"mv: \[k\]"),
                                  ("bmm", a, r"bmm: \[b, n, k\]"), ("outer", v, r"outer: \[n\]")):
            with self.assertRaisesRegex(ValueError, text):
                getattr(a, name)(other)


class Names(Case):
    def test_other_names(self):
        x, y = numbers((3, 4), 1, 0.1, 0.9), numbers((4,), 2, 0.1, 0.9)
        for name in ("absolute", "arccos", "arcsin", "arcsinh", "arctan", "arctanh", "negative", "positive"):
            self.same(call(name), call(name), x)
        for name in ("arctan2", "divide", "multiply", "subtract", "true_divide"):
            self.same(call(name), call(name), x, y)
        for name in ("floor_divide", "greater", "greater_equal", "less", "less_equal", "not_equal", "remainder"):
            self.same(call(name), call(name), x, y, slopes=False)
        for name in ("fix", "sgn"):
            self.same(call(name), call(name), x - 0.5, slopes=False)
        self.assertEqual(Tensor([3]).bitwise_left_shift(2).bitwise_right_shift(1).tolist(), [6])

    def test_types_and_devices(self):
        x = Tensor([1.5, -2.0])
        for name, kind in (("byte", tiny.uint8), ("char", tiny.int8)):
            self.assertEqual(getattr(x, name)().dtype, kind)
        for said in (tiny.float16, "float16", np.float16, torch.float16):
            self.assertEqual((x.to(said).dtype, x.to(dtype=said).dtype, x.astype(said).dtype), (tiny.float16,) * 3)
        self.assertEqual((x.to("CPU", "int32").tolist(), x.to(Tensor([1])).dtype), ([1, -2], tiny.int64))
        self.assertEqual((x.type_as(Tensor([1])).dtype, x.to(x.dtype) is x, x.cpu() is x), (tiny.int64, True, True))
        self.assertEqual((x.tobytes(), x.itemsize, x.nelement(), x.dim()), (x.numpy().tobytes(), 4, 2, 1))
        with self.assertRaisesRegex(ValueError, "device 'float17'"):
            x.to("float17")

    def test_questions(self):
        x = Tensor(numbers((3, 4)))
        self.assertEqual((x.stride(), x.T.stride(), x.T.stride(0), x[1:].realize().is_contiguous()), ((4, 1), (1, 4), 1, True))
        self.assertEqual((x.is_contiguous(), x.T.is_contiguous(), x.is_signed(), x.is_complex()), (True, False, True, False))
        self.assertEqual((x.equal(x + 0), x.equal(x + 1), x.equal(x[0]), x.is_same_size(x[0])), (True, False, False, False))
        self.assertEqual((Tensor([2]).is_nonzero(), Tensor([0.0]).is_nonzero(), x.storage_offset()), (True, False, 0))

    def test_made_alike(self):
        x = Tensor([1.5, 2], dtype=tiny.float16)
        for made, want in ((x.new_zeros(2), [0, 0]), (x.new_ones((1, 2)), [[1, 1]]), (x.new_full((2,), 7), [7, 7]),
                           (x.new_tensor([1, 2]), [1, 2])):
            self.assertEqual((made.tolist(), made.dtype), (want, tiny.float16))
        self.assertEqual((x.new_empty(2, 3).shape, x.new_empty(2, 3).dtype, x.new_zeros(2, dtype="int32").dtype),
                         ((2, 3), tiny.float16, tiny.int32))

    def test_of_a_context_of_their_own(self):
        context = tiny.Context(device="interp", cache=0)
        x = tiny.tensor([[1.0, 2, 0], [0, 3, 0]], context=context)
        at = tiny.tensor([[0, 1, 0]], context=context)
        for made in (x.scatter(0, at, 3.0), x.masked_select(x > 0, size=2), x.unique(return_counts=True)[1], at[0].bincount(),
                     x.index_add(1, at[0], x), x.clone().uniform_(), x.clone().normal_(), x.new_zeros(2), x.new_empty(2),
                     x.slice_scatter(x[:, :1], 1, 0, 1), (x @ x.T).matrix_power(0), x.take([1, 2]), x.clone().zero_()):
            self.assertIs(made.realize().context, context)

    def test_writing_as_torch(self):
        """Each method that writes, by arguments that fit it, beside PyTorch's of the name."""
        x = np.array([[0.5, 0.25, -0.75], [0.1, -0.2, 0.9]], "float32")
        whole = np.array([[5, 1, -7], [2, 0, 3]], "int64")
        rows, at, mask = np.array([1, 0]), np.array([[0, 1, 0]]), np.array([[True, False, True], [False, True, False]])
        given = {
            "addbmm": (np.stack([x[:, :2]] * 2), np.stack([x] * 2)), "baddbmm": None, "addcdiv": (x, x), "addcmul": (x, x),
            "addmm": (x[:, :2], x), "addmv": None, "addr": (x[:, 0], x[0]), "clamp": (-0.5, 0.5), "clip": (-0.5, 0.5),
            "clamp_max": (0.3,), "clamp_min": (0.3,), "cumprod": (1,), "cumsum": (0,), "fmod": (0.3,), "remainder": (0.3,),
            "floor_divide": (0.3,), "index_add": (0, rows, x), "index_copy": (0, rows, x), "index_fill": (0, rows[:1], 2.0),
            "ldexp": (whole,), "lerp": (x * 3, 0.25), "masked_fill": (mask, 3.0), "masked_scatter": (mask, x * 2), "pow": (2,),
            "scatter": (0, at, x[:1]), "scatter_add": (0, at, x[:1]), "scatter_reduce": (0, at, x[:1], "amax"),
            "bitwise_not": (), "bitwise_left_shift": (2,), "bitwise_right_shift": (1,)}
        two = "add atan2 copysign div divide heaviside hypot mul multiply sub subtract xlogy".split()
        given.update({name: (x + 1,) for name in two}, **{f"bitwise_{name}": (whole[::-1].copy(),) for name in ("and", "or", "xor")})
        for name in _synonyms._WRITTEN.split():
            arguments = given.get(name, ())
            if arguments is None:  # of other ranks: below
                continue
            start = whole if name.startswith("bitwise") else x + 1 if name == "acosh" else x
            ours, theirs = Tensor(start.copy()), torch.tensor(start)
            both = [[make(one) if isinstance(one, np.ndarray) else one for one in arguments] for make in (Tensor, torch.tensor)]
            self.assertIs(getattr(ours, f"{name}_")(*both[0]), ours)
            other = torch if not hasattr(theirs, f"{name}_") else None
            getattr(theirs, f"{name}_")(*both[1]) if other is None else theirs.copy_(getattr(torch.nn.functional, name)(theirs, *both[1]))
            np.testing.assert_allclose(ours.numpy(), theirs.numpy(), rtol=1e-5, atol=1e-6, err_msg=name)
        ours, theirs = Tensor(x[:, 0].copy()), torch.tensor(x[:, 0].copy())
        np.testing.assert_allclose(ours.addmv_(Tensor(x), Tensor(x[0])).numpy(), theirs.addmv_(torch.tensor(x), torch.tensor(x[0])), rtol=1e-5)
        cube = np.stack([x, x * 2])
        np.testing.assert_allclose(Tensor(cube).baddbmm_(Tensor(cube[:, :, :2].copy()), Tensor(cube)).numpy(),
                                   torch.tensor(cube).baddbmm_(torch.tensor(cube[:, :, :2].copy()), torch.tensor(cube)), rtol=1e-5)

    def test_writing(self):
        x = Tensor([1.0, -2.0, 3.0])
        view = x[1:]
        for name, arguments, want in (("add_", (1,), [2, -1, 4]), ("mul_", (2,), [4, -2, 8]), ("clamp_", (0, 5), [4, 0, 5]),
                                      ("sub_", (Tensor([1.0, 1, 1]),), [3, -1, 4]), ("abs_", (), [3, 1, 4]),
                                      ("div_", (2,), [1.5, 0.5, 2]), ("fill_", (3,), [3, 3, 3]), ("zero_", (), [0, 0, 0]),
                                      ("copy_", (Tensor([4]),), [4, 4, 4]), ("sqrt_", (), [2, 2, 2]),
                                      ("masked_fill_", (Tensor([True, False, True]), 9.0), [9, 2, 9])):
            self.assertIs(getattr(x, name)(*arguments), x)
            self.assertEqual((x.tolist(), view.tolist()), (want, want[1:]), name)
        x.uniform_(2, 3)
        self.assertTrue(all(2 <= value < 3 for value in view.tolist()))
        self.assertLess(x.normal_(100, 0.1).sub(100).abs().max().item(), 1)
        with self.assertRaisesRegex(TypeError, r"add_\(\): the result is of float32, and x is of int64"):
            Tensor([1]).add_(1.5)
        with self.assertRaisesRegex(ValueError, r"mul_\(\): the result has shape \[2, 3\]"):
            x.mul_(Tensor.ones(2, 3))


if __name__ == "__main__":
    unittest.main()
