"""Element types as objects, what they meet in, and numbers rounded to them."""

import copy
import itertools
import math
import pickle
import unittest

import tiny
from tiny import Tensor, _dtype, _rounding, dtypes
from tiny._reading import Reading

try:
    import numpy
except ImportError:
    numpy = None
try:
    import torch
except ImportError:
    torch = None


class Kinds(unittest.TestCase):
    def test_what_they_tell(self):
        t = tiny.float32
        self.assertEqual((t.name, str(t), repr(t), f"{t:>8}"), ("float32", "float32", "dtypes.float32", " float32"))
        self.assertEqual((t.itemsize, t.bitsize, t.fmt, t.min, t.max), (4, 32, "f", -math.inf, math.inf))
        self.assertEqual((tiny.int8.min, tiny.int8.max, tiny.uint16.max, tiny.bool.max), (-128, 127, 65535, True))
        self.assertEqual(str(Tensor([1.0]).dtype), "float32")
        with self.assertRaises(AttributeError):
            t.name = "other"

    def test_they_are_equal_to_what_others_call_the_same(self):
        t = Tensor([1.0]).dtype
        self.assertTrue(t == tiny.Dtype.FLOAT32 == t and t == "float32" and t is dtypes.float32 and t == 12)
        self.assertEqual({t: 1}[tiny.Dtype.FLOAT32], 1)
        self.assertFalse(t == "float64" or t == tiny.float64 or t is None)
        self.assertTrue(t != "int8")
        self.assertIs(pickle.loads(pickle.dumps(t)), t)
        self.assertIs(copy.deepcopy(t), t)
        if numpy:
            self.assertTrue(t == numpy.float32 and numpy.float32 == t and t == numpy.dtype("f") and numpy.dtype("f") == t)
            self.assertEqual(numpy.zeros(2, tiny.int16).dtype, "int16")
            self.assertFalse(t == numpy.float64)
        if torch:
            self.assertTrue(t == torch.float32 and torch.float32 == t and t != torch.float16)

    def test_by_what_they_are_named(self):
        a = Tensor([1.0])
        for said, name in (("half", "float16"), ("double", "float64"), ("long", "int64"), ("bool", "bool"), (bool, "bool"),
                           (tiny.Dtype.INT8, "int8"), (5, "int64"), ("uchar", "uint8"), ("FLOAT64", "float64")):
            self.assertEqual(a.cast(said).dtype, name)
        for said in ("float", "int", float, int):
            with self.assertRaisesRegex(TypeError, "32 bits in tinygrad and 64 in NumPy"):
                a.cast(said)
        self.assertIs(a.cast("fp8e4m3").dtype, dtypes.fp8e4m3)
        with self.assertRaisesRegex(tiny.Error, "float8_e8m0 are not supported"):
            a.cast(tiny.Dtype.FLOAT8_E8M0)

    def test_what_they_meet_in(self):
        """As the engine has it."""
        for a, b in itertools.product(_dtype.supported, repeat=2):
            wanted = (Tensor([1]).cast(a) + Tensor([1]).cast(b)).dtype
            found = _dtype.strong(_dtype.least_upper_dtype(a, b))
            self.assertEqual(found, wanted, (a, b))
            self.assertFalse(found < a or found < b)

    def test_defaults(self):
        self.assertEqual((dtypes.default_float, dtypes.default_int), (tiny.float32, tiny.int64))
        dtypes.default_float, dtypes.default_int = "float64", tiny.int16
        try:
            self.assertEqual((Tensor([1.5]).dtype, Tensor([1]).dtype), (tiny.float64, tiny.int16))
            with self.assertRaisesRegex(OverflowError, "70000"):
                Tensor([70000])
            with self.assertRaises(ValueError):
                dtypes.default_float = "int8"
            for tinygrad in (False, True):
                Reading.tinygrad = tinygrad
                for kind in (tiny.float16, tiny.float64):
                    dtypes.default_float = kind
                    for made in (Tensor.rand(2), Tensor.randn(2), Tensor.uniform(2), Tensor.normal(2), Tensor.kaiming_uniform(2, 2),
                                 tiny.nn.Linear(2, 3).weight, tiny.nn.Conv2d(1, 1, 1).bias, tiny.nn.Embedding(2, 2).weight):
                        self.assertEqual(made.dtype, kind)
                    self.assertEqual(set(Tensor.randint(50, high=3).tolist()), {0, 1, 2})
                    self.assertEqual(sorted(Tensor.randperm(6).tolist()), list(range(6)))
        finally:
            Reading.tinygrad = False
            dtypes.default_float = dtypes.default_int = None


class Weak(unittest.TestCase):
    """What numbers become in a context that says it."""

    def test_defaults_of_a_context(self):
        c = tiny.Context(default_int=4, default_float=10, cache=0)
        ints, bools = tiny.tensor([1, 2], "int8", context=c), tiny.tensor([True], context=c)
        self.assertEqual([(bools + 3).dtype, (ints + 3).dtype, (ints + 2.5).dtype, (ints / 2).dtype, ints.exp().dtype],
                         ["int32", "int8", "float16", "float16", "float16"])
        self.assertEqual((tiny.tensor([2 ** 40], context=c) + 2 ** 40).tolist(), [2 ** 41])

    def test_results_that_give_way(self):
        c = tiny.Context(weak_results=1, cache=0)
        ints, halves = tiny.tensor([1, 2], "int8", context=c), tiny.tensor([1.0], "float16", context=c)
        both = ints + 2.5
        self.assertIs(both.dtype, dtypes.weakfloat)
        self.assertEqual((both.numpy().dtype, both.tolist()), (tiny.float32, [3.5, 4.5]))
        for weak in (both, both.exp(), both.reshape(2, 1), both[:1], -both, (ints > 1).where(both, 1), both.contiguous()):
            self.assertIs(weak.dtype, dtypes.weakfloat)
            self.assertIs((weak + halves).dtype, tiny.float16)
        truths = tiny.tensor([True], context=c)
        counted = truths + 1
        for weak in (counted, tiny.concat([counted, counted]), tiny.stack([counted, counted]), counted.tile([2])):
            self.assertIs(weak.dtype, dtypes.weakint)
        self.assertEqual([made.dtype for made in (truths / 2, counted / 2, 2 / counted, counted / counted)], ["float32"] * 4)
        self.assertIs((counted / 2.5).dtype, dtypes.weakfloat)
        self.assertEqual([both.sum().dtype, (ints + 1).dtype, (both > 1).dtype, (ints / ints).dtype, both.cast("float64").dtype],
                         ["float32", "int8", "bool", "float32", "float64"])
        self.assertIs((tiny.tensor([1], "int64", context=c) + tiny.tensor([1], "uint64", context=c)).dtype, dtypes.weakfloat)

    def test_truths_are_no_numbers(self):
        self.assertEqual((Tensor([True]) + True).dtype, tiny.bool)
        self.assertEqual((Tensor([1], dtype="int8") * True).dtype, tiny.int8)


class Rounding(unittest.TestCase):
    NUMBERS = [0.0, -0.0, 1.0, 1.1, 0.3, 448.0, 463.9, 464.0, 1e6, -240.1, 57344.0, 61439.0, 2.0 ** -9, 2.0 ** -10, 3 * 2.0 ** -11,
               1e-9, math.pi, -1234.5, 65504.0, 65520.0, math.inf, -math.inf]

    @unittest.skipIf(torch is None, "no PyTorch")
    def test_floats(self):
        for kind, theirs in ((dtypes.float16, torch.float16), (dtypes.bfloat16, torch.bfloat16),
                             (dtypes.float32, torch.float32)):
            for x in self.NUMBERS:
                self.assertEqual(_rounding.truncate[kind](x), torch.tensor(x, dtype=torch.float64).to(theirs).item())

    @unittest.skipIf(torch is None, "no PyTorch")
    def test_bytes_as_floats(self):
        for kind, theirs in ((dtypes.fp8e4m3, torch.float8_e4m3fn), (dtypes.fp8e5m2, torch.float8_e5m2),
                             (dtypes.fp8e4m3fnuz, torch.float8_e4m3fnuz), (dtypes.fp8e5m2fnuz, torch.float8_e5m2fnuz)):
            wanted = torch.arange(256, dtype=torch.uint8).view(theirs).float().tolist()
            for bits, value in enumerate(wanted):
                found = _rounding.fp8_to_float(bits, kind)
                self.assertTrue(found == value or math.isnan(found) and math.isnan(value), (kind, bits))
                if not math.isnan(value):
                    self.assertEqual(_rounding.float_to_fp8(value, kind), bits)
            for x in self.NUMBERS:
                if abs(x) < max(v for v in wanted if math.isfinite(v)):
                    self.assertEqual(_rounding.truncate[kind](x), torch.tensor(x).to(theirs).float().item(), (kind, x))

    @unittest.skipIf(torch is None, "no PyTorch")
    def test_tensors_of_bytes_as_floats(self):
        for kind in dtypes.fp8s:
            theirs = torch.arange(256, dtype=torch.uint8).view(getattr(torch, kind.name))
            mine = Tensor(list(range(256)), dtype="uint8").bitcast(kind)
            wanted = theirs.float().tolist()
            for found in (mine.tolist(), mine.float().tolist()):
                for bits, (one, other) in enumerate(zip(found, wanted)):
                    self.assertTrue(one == other or one != one and other != other, (kind, bits, one, other))
            numbers = [x for x in self.NUMBERS if math.isfinite(x)]
            self.assertEqual(Tensor(numbers, dtype="float32").cast(kind).tolist(),
                             [_rounding.truncate[kind](x) for x in numbers])
            self.assertEqual(Tensor(numbers, dtype=kind).tolist(), [_rounding.truncate[kind](x) for x in numbers])
            x = Tensor([[1.0, -2.0], [0.5, 3.0]], dtype=kind)
            self.assertEqual((x + x).dtype, kind)
            self.assertEqual((x * 2 + 1).tolist(), [[3, -3], [2, 7]])
            self.assertEqual((x @ x).float().tolist(), [[0, -8], [2, 8]])
            self.assertEqual((x.sum().item(), x.max().item(), x.argmax().item()), (2.5, 3, 3))
            drawn = Tensor.rand(1000, dtype=kind).float()
            self.assertTrue(0 <= drawn.min().item() <= drawn.max().item() < 1 and 0.35 < drawn.mean().item() < 0.5)
            self.assertEqual(Tensor.randn(3, dtype=kind).dtype, kind)
            self.assertEqual(pickle.loads(pickle.dumps(x)).tolist(), x.tolist())
            self.assertEqual(bytes(x), bytes(torch.tensor(x.tolist()).to(theirs.dtype).view(torch.uint8).numpy()))

    def test_integers_wrap(self):
        self.assertEqual([_rounding.truncate[dtypes.int8](x) for x in (127, 128, -129, 2.9)], [127, -128, 127, 2])
        self.assertEqual(_rounding.bitcast(1.0, "float32", "int32"), 0x3f800000)


if __name__ == "__main__":
    unittest.main()
