"""Operators on every pair of element types, shapes that broadcast and numbers beside them, against PyTorch.

TINY_EXAMPLES tries that many, other ones in each run.
"""

import operator
import os
import unittest

from tiny import Tensor

try:
    import numpy
    import torch
    from hypothesis import HealthCheck, given, settings, strategies as st
except ImportError:
    raise unittest.SkipTest("NumPy, PyTorch or hypothesis is not here") from None

_EXAMPLES = int(os.environ.get("TINY_EXAMPLES", 0))
_BOX = dict(max_examples=_EXAMPLES or 250, deadline=None, derandomize=not _EXAMPLES, database=None,
            suppress_health_check=list(HealthCheck))
KINDS = ("bool", "uint8", "int8", "int16", "int32", "int64", "float16", "float32", "float64")
ARITHMETIC = {"+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv, "//": operator.floordiv,
              "%": operator.mod, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
              "==": operator.eq, "!=": operator.ne, "max": None, "min": None}
BITS = {"&": operator.and_, "|": operator.or_, "^": operator.xor}
REDUCTIONS = ("sum", "prod", "mean", "max", "min", "argmax", "argmin", "any", "all", "std", "cumsum", "sort")


def _array(data, shape, kind):
    """Small numbers, of which none divides by zero."""
    low = 0 if kind in ("bool", "uint8") else -6
    flat = data.draw(st.lists(st.integers(low, 6), min_size=int(numpy.prod(shape)), max_size=int(numpy.prod(shape))))
    array = numpy.array(flat).reshape(shape)
    return numpy.asarray(array / 2 if kind.startswith("float") else array, kind)


def _shapes(data):
    """Two that broadcast; of one axis at least, since PyTorch takes those without for numbers."""
    whole = data.draw(st.lists(st.integers(1, 4), min_size=1, max_size=3))
    return [[data.draw(st.sampled_from((1, size))) for size in whole[data.draw(st.integers(0, len(whole) - 1)):]]
            for _ in range(2)]


def _apply(sign, a, b, library):
    if sign == "max":
        return library.maximum(a, b)
    if sign == "min":
        return library.minimum(a, b)
    return (ARITHMETIC | BITS)[sign](a, b)


class Operators(unittest.TestCase):
    def same(self, mine, theirs, text, rtol=0.0):
        self.assertEqual((mine.dtype.name, tuple(mine.shape)), (str(theirs.dtype)[6:], tuple(theirs.shape)), text)
        numpy.testing.assert_allclose(mine.numpy().astype("float64"), theirs.double().numpy(), rtol=rtol, err_msg=text)

    @settings(**_BOX)
    @given(st.data())
    def test_of_two_tensors(self, data):
        kinds = [data.draw(st.sampled_from(KINDS)) for _ in range(2)]
        whole = all(not kind.startswith("float") for kind in kinds)
        sign = data.draw(st.sampled_from([*ARITHMETIC, *(BITS if whole else ())]))
        if sign == "-" and "bool" in kinds:  # PyTorch refuses
            return
        first, second = (_array(data, shape, kind) for shape, kind in zip(_shapes(data), kinds))
        if sign in ("/", "//", "%"):
            if sign != "/" and kinds == ["bool", "bool"]:  # int64 here, refused or bool there
                return
            second[second == 0] = 1
        text = f"{first!r} {sign} {second!r}"
        self.same(_apply(sign, Tensor(first), Tensor(second), Tensor),
                  _apply(sign, torch.tensor(first), torch.tensor(second), torch), text, 1e-3 if "float16" in kinds else 1e-6)

    @settings(**_BOX)
    @given(st.data())
    def test_of_a_tensor_and_a_number(self, data):
        kind = data.draw(st.sampled_from(KINDS))
        number = data.draw(st.sampled_from((True, 2, 3, -2, 1.5, -0.5)))
        sign = data.draw(st.sampled_from([one for one in ARITHMETIC if one not in ("max", "min")]))
        is_first = data.draw(st.booleans())
        array = _array(data, data.draw(st.lists(st.integers(1, 3), max_size=2)), kind)
        if isinstance(number, bool) and kind == "bool" and sign in ("-", "//", "%", "/") or sign == "-" and (
                kind == "bool" or isinstance(number, bool)):
            return
        if kind == "uint8" and number < 0:  # wraps, or is compared as it is
            return
        if is_first and sign in ("/", "//", "%"):
            array[array == 0] = 1
        mine, theirs = Tensor(array), torch.tensor(array)
        text = f"{number} {sign} {array!r}" if is_first else f"{array!r} {sign} {number}"
        if is_first:
            self.same(ARITHMETIC[sign](number, mine), ARITHMETIC[sign](number, theirs), text,
                      2e-3 if kind == "float16" else 1e-6)
        else:
            self.same(ARITHMETIC[sign](mine, number), ARITHMETIC[sign](theirs, number), text,
                      2e-3 if kind == "float16" else 1e-6)

    @settings(**_BOX)
    @given(st.data())
    def test_reductions(self, data):
        kind, name = data.draw(st.sampled_from(KINDS)), data.draw(st.sampled_from(REDUCTIONS))
        is_float = kind.startswith("float")
        if name in ("mean", "std") and not is_float or name in ("max", "min", "argmax", "argmin") and kind == "bool":
            return
        array = _array(data, data.draw(st.lists(st.integers(2, 4), min_size=1, max_size=3)), kind)
        axis = data.draw(st.integers(-array.ndim, array.ndim - 1))
        mine, theirs = Tensor(array), torch.tensor(array)
        text = f"{name} {axis} of {array!r}"
        if name in ("argmax", "argmin"):  # of equal ones the first here, any there
            self.same(getattr(mine, name)(axis=axis).cast("int64"),
                      torch.from_numpy(numpy.asarray(getattr(array, name)(axis=axis))), text)
            return
        if name in ("cumsum", "sort"):
            found, wanted = getattr(mine, name)(axis), getattr(theirs, name)(axis)
            if name == "sort":
                found, wanted = found[0], wanted[0]
        elif name in ("max", "min"):
            found, wanted = getattr(mine, name)(axis=axis), getattr(torch, f"a{name}")(theirs, axis)
        else:
            found, wanted = getattr(mine, name)(axis=axis), getattr(theirs, name)(axis)
        if name in ("any", "all"):  # bools; of bytes there they are bytes
            wanted = wanted.bool()
        self.same(found, wanted, text, 3e-3 if kind == "float16" else 1e-5)


if __name__ == "__main__":
    unittest.main()
