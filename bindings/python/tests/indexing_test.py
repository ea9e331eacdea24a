"""x[..], x[..] = v and x += y against NumPy, of random shapes and indices.

TINY_EXAMPLES tries that many of each, other ones in each run.
"""

import os
import unittest

import tiny
from tiny import Tensor

try:
    import numpy
    from hypothesis import given, settings, strategies as st
except ImportError:
    raise unittest.SkipTest("NumPy or hypothesis is not here") from None

_EXAMPLES = int(os.environ.get("TINY_EXAMPLES", 0))
settings.register_profile("tiny", max_examples=_EXAMPLES or 120, deadline=None, derandomize=not _EXAMPLES, database=None)
settings.load_profile("tiny")
SHAPES = st.lists(st.integers(1, 4), min_size=1, max_size=4)


def counted(shape, dtype="int32"):
    return numpy.arange(numpy.prod(shape), dtype=dtype).reshape(shape)


@st.composite
def basic_part(draw, size):
    bound = st.none() | st.integers(-size - 2, size + 2)
    if draw(st.booleans()):
        return draw(st.integers(-size, size - 1))
    return slice(draw(bound), draw(bound), draw(st.sampled_from((None, 1, 2, -1, -2, 3))))


@st.composite
def basic_key(draw, shape):
    """Integers, slices, None and ... for some of the axes."""
    used = draw(st.integers(0, len(shape)))
    at = draw(st.integers(0, used))
    has_ellipsis = draw(st.booleans()) or used < len(shape)
    behind = used - at if has_ellipsis else 0
    axes = [*range(used - behind), *range(len(shape) - behind, len(shape))]
    parts = [draw(basic_part(shape[axis])) for axis in axes]
    if has_ellipsis:
        parts.insert(used - behind, Ellipsis)
    for _ in range(draw(st.integers(0, 2))):
        parts.insert(draw(st.integers(0, len(parts))), None)
    return tuple(parts)


@st.composite
def picking_key(draw, shape):
    """Slices, and positions of some axes that broadcast to one shape."""
    common = draw(st.lists(st.integers(1, 3), max_size=2))
    parts = []
    for size in shape:
        kind = draw(st.sampled_from("spp"))
        if kind == "s":
            parts.append(draw(basic_part(size)))
            continue
        own = [draw(st.sampled_from((1, one))) for one in common]
        count = int(numpy.prod(own))
        flat = draw(st.lists(st.integers(-size, size - 1), min_size=count, max_size=count))
        parts.append(numpy.array(flat, draw(st.sampled_from(("int64", "int32", "int8")))).reshape(own))
    return tuple(parts)


def of_tiny(key):
    return tuple(Tensor(part) if isinstance(part, numpy.ndarray) else part for part in key)


class Reads(unittest.TestCase):
    def same(self, mine, theirs):
        self.assertEqual(tuple(mine.shape), numpy.shape(theirs))
        numpy.testing.assert_array_equal(mine.numpy(), theirs)

    @given(st.data())
    def test_views(self, data):
        shape = data.draw(SHAPES)
        key = data.draw(basic_key(shape))
        self.same(Tensor(counted(shape))[key], counted(shape)[key])

    @given(st.data())
    def test_positions(self, data):
        shape = data.draw(SHAPES)
        key = data.draw(picking_key(shape))
        array = counted(shape)
        try:
            mine = Tensor(array)[of_tiny(key)]
        except IndexError as error:
            self.assertIn("NumPy puts", str(error))
            return
        self.same(mine, array[key])

    @given(st.data())
    def test_masks(self, data):
        shape = data.draw(SHAPES)
        first = data.draw(st.integers(0, len(shape)))
        last = data.draw(st.integers(first, len(shape)))
        mask = numpy.array(data.draw(st.lists(st.booleans(), min_size=1, max_size=16)))
        mask = numpy.resize(mask, shape[first:last])
        key = (*[slice(None)] * first, mask)
        self.same(Tensor(counted(shape))[of_tiny(key)], counted(shape)[key])
        self.same(Tensor(counted(shape))[key], counted(shape)[key])

    def test_what_is_no_number(self):
        a = Tensor([[1.0, 2.0], [3.0, 4.0]])
        self.same(a[True], a.numpy()[True])
        self.same(a[False], a.numpy()[False])
        self.same(a[numpy.True_], a.numpy()[True])
        self.same(a[[True, False]], a.numpy()[[True, False]])
        self.same(a[a > 1.5], a.numpy()[a.numpy() > 1.5])
        self.same(a[range(1)], a.numpy()[range(1)])
        self.same(a[numpy.int8(1)], a.numpy()[1])
        self.same(a[numpy.array(1)], a.numpy()[1])
        self.same(a[Tensor(1)], a.numpy()[1])
        self.same(a[[]], a.numpy()[[]])
        self.same(a[[0, 1], (1, 0)], a.numpy()[[0, 1], [1, 0]])

    def test_mistakes(self):
        a = Tensor(counted((2, 3, 4)))
        for key, text in (((2,), "index 2 is out of bounds of axis 0"), ((0, 0, 0, 0), "too many indices: 4"),
                          ((..., ...), "single ellipsis"),
                          (0.5, "not float"), ("a", "not str"), (([0, 1], [0, 1, 2]), "do not broadcast"),
                          (Tensor([1.0]), "integers or bools, not float32"), ([True], r"a mask of shape \[1\]"),
                          ([[0, 1], [1, 0]], "one index to NumPy and several"), ([slice(1), 2], "stand in a tuple|in the list"),
                          ((0, slice(None), [1]), "NumPy puts")):
            with self.assertRaisesRegex(IndexError, text):
                a[key]
        with self.assertRaisesRegex(tiny.Error, "index"):
            a[Tensor([2])].numpy()
        with self.assertRaises(ValueError):
            a[::0]


class Writes(unittest.TestCase):
    def same(self, mine, theirs):
        numpy.testing.assert_array_equal(mine.numpy(), theirs)

    def written(self, data, key, shape):
        """The same write to both; the value broadcasts to what the key names."""
        array = counted(shape, "float32")
        mine = Tensor(array)
        chosen = array[key].shape
        chosen = chosen[data.draw(st.integers(0, len(chosen))):]
        size = tuple(data.draw(st.sampled_from((1, one))) for one in chosen)
        value = -counted(size, data.draw(st.sampled_from(("float32", "int32", "float64")))) - 1
        listed = value.tolist() if numpy.shape(value.tolist()) == value.shape else value  # [] has one axis
        given = data.draw(st.sampled_from((Tensor(value), value, listed)))
        try:
            mine[of_tiny(key)] = given
        except IndexError as error:
            self.assertIn("NumPy puts", str(error))
            return
        array[key] = value
        self.same(mine, array)

    @given(st.data())
    def test_views(self, data):
        shape = data.draw(SHAPES)
        self.written(data, data.draw(basic_key(shape)), shape)

    @given(st.data())
    def test_positions(self, data):
        shape = data.draw(SHAPES)
        self.written(data, data.draw(picking_key(shape)), shape)

    @given(st.data())
    def test_masks(self, data):
        shape = data.draw(SHAPES)
        first = data.draw(st.integers(0, len(shape) - 1))
        last = data.draw(st.integers(first + 1, len(shape)))
        mask = numpy.resize(data.draw(st.lists(st.booleans(), min_size=1, max_size=16)), shape[first:last])
        self.written(data, (*[slice(None)] * first, mask.astype(bool)), shape)

    @given(st.data())
    def test_in_place(self, data):
        """Through a view, which the tensor that it is a view of sees."""
        shape = data.draw(SHAPES)
        key = data.draw(basic_key(shape))
        array, mine = counted(shape, "float32"), Tensor(counted(shape, "float32"))
        view, own = array[key], mine[key]
        if not isinstance(view, numpy.ndarray):
            return
        view *= 2
        own *= 2
        view -= numpy.int32(3)
        own -= numpy.int32(3)
        self.same(mine, array)
        self.same(own, view)

    def test_every_operator(self):
        for sign in ("+=", "-=", "*=", "//=", "%=", "**=", "&=", "|=", "^=", "<<=", ">>="):
            a, b = numpy.array([5, 9, 12]), numpy.array([2, 3, 1])
            x = t = Tensor(a)
            names = {"x": x, "y": Tensor(b)}
            exec(f"x {sign} y", names)
            exec(f"x {sign} y", theirs := {"x": a, "y": b})
            self.assertIs(names["x"], t)
            self.same(t, theirs["x"])
        x = t = Tensor([[1.0, 2.0], [3.0, 4.0]])
        x /= 2
        x @= x
        self.assertIs(x, t)
        self.same(t, numpy.array([[0.5, 1], [1.5, 2]]) @ numpy.array([[0.5, 1], [1.5, 2]]))

    def test_parts_of_themselves(self):
        a, t = counted((4, 3)), Tensor(counted((4, 3)))
        for x in (a, t):
            x[1] += 2
            x[:, 1] *= 3
            x[[0, 2]] += 5
            x[1:] = x[:-1] + 0
            x.T[1, 0] = 50
            x[::-1][0] = 7
            x[1][2] = 9
        self.same(t, a)

    def test_what_was_built_before_keeps_the_old(self):
        t = Tensor([1.0, 2.0, 3.0])
        total = t.sum()
        t[0] = 10.0
        t += 1
        self.assertEqual((total.item(), t.tolist()), (6.0, [11.0, 3.0, 4.0]))

    def test_of_others(self):
        a = numpy.zeros(3, "float32")
        t = tiny.wrap(a)
        t[1:] = 2
        t.realize()
        self.assertEqual(a.tolist(), [0, 2, 2])
        last = Tensor([1, 2, 3, 4])
        last[[1, 1]] = [5, 0]
        self.assertEqual(last.tolist(), [1, 0, 3, 4])
        last[Tensor([True, False, False, True])] = [7, 8]
        self.assertEqual(last.tolist(), [7, 0, 3, 8])

    def test_mistakes(self):
        t = Tensor([1, 2, 3])
        with self.assertRaisesRegex(TypeError, r"x /= y: the result is of float32, and x is of int64"):
            t /= 2
        with self.assertRaisesRegex(ValueError, r"the result has shape \[2, 3\]"):
            t += Tensor([[1, 2, 3], [4, 5, 6]])
        with self.assertRaisesRegex(tiny.Error, "do not broadcast"):
            t[:2] = [1, 2, 3]
        with self.assertRaises(TypeError):
            t += "text"

    def test_gradients_go_through(self):
        x, v = Tensor([1.0, 2.0, 3.0, 4.0], requires_grad=True), Tensor([10.0, 20.0], requires_grad=True)
        z = x * 2
        z[:2] = v
        z[1:3] += v * 3
        z *= 2
        z.sum().backward()
        self.assertEqual(x.grad.tolist(), [0, 0, 4, 4])
        self.assertEqual(v.grad.tolist(), [8, 8])
        w = Tensor.zeros(3)
        w[Tensor([2, 0])] = v
        (w * w).sum().backward()
        self.assertEqual(v.grad.tolist(), [28, 48])


if __name__ == "__main__":
    unittest.main()
