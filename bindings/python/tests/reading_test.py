"""Types, indices and writes as tinygrad reads them, in a process in which tiny stands for it."""

import unittest

import tiny.compat

tiny.compat.install()
from tinygrad import Tensor, dtypes  # noqa: E402
from tinygrad.dtype import DTYPES_DICT, can_lossless_cast, least_upper_dtype, strong_dtype, to_dtype  # noqa: E402


class Types(unittest.TestCase):
    def test_numbers_are_weak(self):
        self.assertEqual([Tensor(2).dtype, Tensor(2.5).dtype, Tensor(True).dtype, Tensor(None).dtype],
                         [dtypes.weakint, dtypes.weakfloat, dtypes.bool, dtypes.weakfloat])
        self.assertEqual([Tensor([1]).dtype, Tensor([1.0]).dtype, Tensor.arange(3).dtype, Tensor.zeros(2).dtype],
                         [dtypes.int32, dtypes.float32, dtypes.int32, dtypes.float32])
        small, half = Tensor([1], dtype=dtypes.int8), Tensor([1], dtype=dtypes.half)
        self.assertEqual([(small + 2).dtype, (small + 2.5).dtype, ((small + 2.5) + half).dtype, (Tensor([True]) + 1).dtype],
                         [dtypes.int8, dtypes.weakfloat, dtypes.half, dtypes.weakint])
        self.assertEqual((small + 2.5).tolist(), [3.5])
        self.assertEqual((Tensor([1], dtype=dtypes.int64) + 2 ** 40).tolist(), [2 ** 40 + 1])

    def test_their_names(self):
        self.assertEqual((str(dtypes.float32), repr(dtypes.int32), dtypes.float), ("dtypes.float", "dtypes.int", dtypes.float32))
        self.assertIs(to_dtype("int"), dtypes.int32)
        self.assertIs(strong_dtype(dtypes.weakint), dtypes.default_int)
        self.assertIs(DTYPES_DICT["half"], dtypes.float16)
        self.assertIs(least_upper_dtype(dtypes.int64, dtypes.uint64), dtypes.weakfloat)
        self.assertTrue(can_lossless_cast(dtypes.uint8, dtypes.half) and not can_lossless_cast(dtypes.int32, dtypes.float))
        with self.assertRaises(AttributeError):
            Tensor([1], dtype="nothing")

    def test_numbers_that_do_not_fit_wrap(self):
        self.assertEqual(Tensor([1 << 33, (1 << 32) + 5, -1], dtype=dtypes.uint32).tolist(), [0, 5, 2 ** 32 - 1])


class Indices(unittest.TestCase):
    def test_out_of_range_is_zero(self):
        t = Tensor([[1, 2, 3], [4, 5, 6]])
        self.assertEqual(t[Tensor([1, 7, -1, -9])].tolist(), [[4, 5, 6], [0, 0, 0], [4, 5, 6], [0, 0, 0]])
        self.assertEqual(t[Tensor([0, 1, 2]), Tensor([2, 3, 0])].tolist(), [3, 0, 0])
        self.assertEqual(t.bool()[Tensor([5])].tolist(), [[False] * 3])
        t[Tensor([0, 9])] = 8
        self.assertEqual(t.tolist(), [[8, 8, 8], [4, 5, 6]])

    def test_lists_and_integers(self):
        t = Tensor.arange(24).reshape(2, 3, 4)
        self.assertEqual(t[[[0, 1], [1, 2]]].tolist(), [[4, 5, 6, 7], [20, 21, 22, 23]])  # a tuple of two
        self.assertEqual(t[1, :, [0, 3]].shape, (3, 2))
        self.assertIs(t[:], t)
        for mistake in (lambda: t[0.5], lambda: t[Tensor([0.5])]):
            with self.assertRaises(IndexError):
                mistake()


class Writes(unittest.TestCase):
    def test_types(self):
        t = Tensor.ones(4, dtype=dtypes.int).contiguous().realize()
        t[1] = 5.7
        self.assertEqual(t.tolist(), [1, 5, 1, 1])
        with self.assertRaises(RuntimeError):
            t[:2] = Tensor([1.0, 2.0])
        with self.assertRaises(RuntimeError):
            t /= 2
        number = Tensor(0.0)
        number += 1
        self.assertEqual(number.item(), 1)

    def test_places_out_of_range_take_nothing(self):
        x, index, src = Tensor.zeros(2, 3), Tensor([[0, 9], [-1, 2]]), Tensor([[1.0, 2.0], [3.0, 4.0]])
        want = [[1, 0, 0], [0, 0, 4]]
        self.assertEqual(x.scatter(1, index, src).tolist(), want)
        self.assertEqual(x.scatter_reduce(1, index, src, "sum").tolist(), want)
        self.assertEqual((x + 5).scatter_reduce(1, index, src, "amax", include_self=False).tolist(),
                         [[1, 5, 5], [5, 5, 4]])

    def test_what_is_gathered_from_devices_is_another_tensor(self):
        x = Tensor([1.0, 2.0]).realize().shard(("CPU:0", "CPU:1"), 0).realize()
        before = x.to("CPU")
        x.assign(Tensor([5.0, 6.0]).realize())
        Tensor.realize(x, before)
        self.assertEqual((before.tolist(), x.tolist()), ([1, 2], [5, 6]))

    def test_views_and_gradients(self):
        t = Tensor.zeros(2, 3).contiguous().realize()
        t.T[1, 0] = 5
        t[1][2] = 7
        t.detach()[0, 0] = 1
        self.assertEqual(t.tolist(), [[1, 5, 0], [0, 0, 7]])
        z, x = Tensor([1.0, 2.0, 3.0]), Tensor([10.0])
        z[:1] += x
        (z * z).sum().backward()
        self.assertEqual((z.tolist(), x.grad.tolist()), ([11, 2, 3], [22]))


if __name__ == "__main__":
    unittest.main()
