"""Programs of views, writes and arithmetic on tensors that share their elements, against NumPy's arrays.

TINY_EXAMPLES tries that many programs, other ones in each run.
"""

import os
import unittest

from tiny import Tensor

try:
    import numpy
    from hypothesis import HealthCheck, given, settings, strategies as st
except ImportError:
    raise unittest.SkipTest("NumPy or hypothesis is not here") from None

_EXAMPLES = int(os.environ.get("TINY_EXAMPLES", 0))
_BOX = dict(max_examples=_EXAMPLES or 60, deadline=None, derandomize=not _EXAMPLES, database=None,
            suppress_health_check=list(HealthCheck))
_STEPS = 8


class Pair:
    """The same elements as a tensor and as an array."""

    def __init__(self, mine, theirs):
        self.mine, self.theirs = mine, theirs

    @property
    def shape(self):
        return self.theirs.shape


def _part(data, size):
    if data.draw(st.integers(0, 3)) == 0:
        return data.draw(st.integers(-size, size - 1))
    bound = st.none() | st.integers(-size - 1, size + 1)
    return slice(data.draw(bound), data.draw(bound), data.draw(st.sampled_from((None, 1, 2, -1, -2))))


def _key(data, shape):
    return tuple(_part(data, size) for size in shape[:data.draw(st.integers(0, len(shape)))])


def _as_array(value):
    return value if isinstance(value, numpy.ndarray) else numpy.asarray(value)


class Programs(unittest.TestCase):
    def setUp(self):
        self.pairs, self.told = [], []

    def pick(self, data, want=lambda pair: True):
        found = [pair for pair in self.pairs if want(pair)]
        return data.draw(st.sampled_from(found)) if found else None

    def add(self, mine, theirs):
        if isinstance(theirs, numpy.ndarray) and theirs.size and len(self.pairs) < 8:
            self.pairs.append(Pair(mine, theirs))

    def fresh(self, data):
        shape = data.draw(st.lists(st.integers(1, 4), min_size=1, max_size=3))
        array = numpy.arange(numpy.prod(shape), dtype=data.draw(st.sampled_from(("int32", "float32")))).reshape(shape)
        self.add(Tensor(array), array.copy())
        self.told.append(f"fresh {shape} {array.dtype}")

    def view(self, data):
        pair = self.pick(data)
        kind = data.draw(st.sampled_from(("key", "key", "permute", "flip", "squeeze")))
        self.told.append(f"{kind} of {self.pairs.index(pair)}")
        if kind == "key":
            key = _key(data, pair.shape)
            self.told.append(str(key))
            self.add(pair.mine[key], pair.theirs[key])
        elif kind == "permute":
            order = data.draw(st.permutations(range(pair.theirs.ndim)))
            self.add(pair.mine.permute(order), pair.theirs.transpose(order))
        elif kind == "flip":
            axis = data.draw(st.integers(0, pair.theirs.ndim - 1))
            self.add(pair.mine.flip(axis), numpy.flip(pair.theirs, axis))
        else:
            self.add(pair.mine.unsqueeze(0), pair.theirs[None])

    def value(self, data, shape, dtype):
        """What is written to elements of a shape: a number, or an expression of what is there."""
        other = self.pick(data, lambda pair: pair.theirs.dtype == dtype and self.fits(pair.shape, shape))
        if other is None or data.draw(st.integers(0, 2)) == 0:
            number = data.draw(st.integers(-5, 5))
            return number, number
        factor = data.draw(st.integers(-2, 2))
        self.told.append(f"{self.pairs.index(other)} * {factor}")
        if factor == 1:
            return other.mine, other.theirs
        return other.mine * factor, other.theirs * numpy.array(factor, dtype)

    @staticmethod
    def fits(shape, wanted):
        try:
            return numpy.broadcast_shapes(shape, wanted) == wanted
        except ValueError:
            return False

    def write(self, data):
        pair = self.pick(data)
        key = _key(data, pair.shape)
        self.told.append(f"write to {self.pairs.index(pair)}[{key}]")
        mine, theirs = self.value(data, _as_array(pair.theirs[key]).shape, pair.theirs.dtype)
        pair.mine[key] = mine
        pair.theirs[key] = theirs

    def pick_write(self, data):
        """By positions along the first axis, each of which is named once."""
        pair = self.pick(data)
        rows = data.draw(st.lists(st.integers(0, pair.shape[0] - 1), min_size=1, max_size=4, unique=True))
        self.told.append(f"write to {self.pairs.index(pair)}[{rows}]")
        mine, theirs = self.value(data, (len(rows), *pair.shape[1:]), pair.theirs.dtype)
        pair.mine[rows] = mine
        pair.theirs[rows] = theirs

    def mask_write(self, data):
        pair = self.pick(data)
        least = data.draw(st.integers(-3, 9))
        self.told.append(f"write to {self.pairs.index(pair)} where > {least}")
        number = data.draw(st.integers(-5, 5))
        pair.mine[pair.mine > least] = number
        pair.theirs[pair.theirs > least] = number

    def in_place(self, data):
        pair = self.pick(data)
        self.told.append(f"in place {self.pairs.index(pair)}")
        mine, theirs = self.value(data, pair.shape, pair.theirs.dtype)
        sign = data.draw(st.sampled_from("+-"))
        x, y = pair.mine, pair.theirs
        if sign == "+":
            x += mine
            y += theirs
        else:
            x -= mine
            y -= theirs

    def derive(self, data):
        """A value of its own, which later writes leave alone."""
        pair = self.pick(data)
        self.told.append(f"derived of {self.pairs.index(pair)}")
        kind = data.draw(st.sampled_from(("add", "sum", "pick")))
        if kind == "add":
            self.add(pair.mine + 1, pair.theirs + numpy.array(1, pair.theirs.dtype))
        elif kind == "sum":
            self.add(pair.mine.sum(axis=0, keepdim=True).cast(str(pair.theirs.dtype)),
                     pair.theirs.sum(0, keepdims=True, dtype=pair.theirs.dtype))
        else:
            rows = data.draw(st.lists(st.integers(0, pair.shape[0] - 1), min_size=1, max_size=3))
            self.add(pair.mine[rows], pair.theirs[rows])

    def compute(self, data):
        pair = self.pick(data)
        self.told.append(f"computed {self.pairs.index(pair)}")
        if data.draw(st.booleans()):
            pair.mine.realize()
        else:
            self.same(pair)

    def same(self, pair):
        numpy.testing.assert_array_equal(pair.mine.numpy(), pair.theirs, err_msg="; ".join(self.told))

    @settings(**_BOX)
    @given(st.data())
    def test_they_are_what_numpy_makes_of_them(self, data):
        self.pairs, self.told = [], []
        self.fresh(data)
        steps = (self.fresh, self.view, self.view, self.write, self.write, self.pick_write, self.mask_write,
                 self.in_place, self.in_place, self.derive, self.compute)
        for _ in range(data.draw(st.integers(1, _STEPS))):
            data.draw(st.sampled_from(steps))(data)
        for pair in self.pairs:
            self.same(pair)


if __name__ == "__main__":
    unittest.main()
