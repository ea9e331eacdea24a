"""Into tensors and out of them: lists, NumPy's and PyTorch's arrays, text, pickle, DLPack."""

import copy
import hashlib
import io
import operator
import pickle
import unittest

import tiny
from tiny import Tensor

try:
    import numpy
except ImportError:
    raise unittest.SkipTest("NumPy is not here") from None
try:
    import torch
except ImportError:
    torch = None
try:
    import ml_dtypes
except ImportError:
    ml_dtypes = None


class Into(unittest.TestCase):
    def test_numbers_and_lists(self):
        for data, kind in ((True, "bool"), (3, "int64"), (2.5, "float32"), ([True, False], "bool"), ([1, True], "int64"),
                           ([[1, 2.5]], "float32"), ([], "float32"), (range(3), "int64"), (((1,), [2]), "int64"),
                           (numpy.float64(2), "float64"), (numpy.int8(3), "int8"), (numpy.array(1.5), "float64"),
                           ([numpy.float32(1)], "float32"), ([numpy.zeros(2, "int16")] * 2, "int16")):
            made = Tensor(data)
            self.assertEqual(made.dtype, kind, repr(data))
            numpy.testing.assert_array_equal(made.numpy(), numpy.array(data))

    def test_types_that_are_said(self):
        self.assertEqual(Tensor([2 ** 63], dtype="uint64").tolist(), [2 ** 63])
        self.assertEqual(Tensor([-3.5, 2], dtype="int32").tolist(), [-3, 2])
        edge = [65519.999, 65520, 1e9, -65519.999, 1e-8]
        with numpy.errstate(over="ignore"):
            numpy.testing.assert_array_equal(Tensor(edge, dtype="float16").numpy(), numpy.array(edge).astype("float16"))
        self.assertEqual(Tensor([1.0, 3.14159], dtype="bfloat16").tolist(), [1.0, 3.140625])
        self.assertEqual(Tensor(numpy.array([1.7, -1.7], "float32"), dtype="int8").tolist(), [1, -1])
        self.assertEqual(Tensor(numpy.array([1, 2], ">i4")).tolist(), [1, 2])
        self.assertEqual(Tensor(b"\x01\x02").dtype, tiny.uint8)
        self.assertEqual(Tensor(numpy.float32([1, 2]).tobytes(), dtype="float32").tolist(), [1, 2])

    def test_mistakes(self):
        a = Tensor([1.0])
        for data, options, kind, text in (
                ([a], {}, TypeError, "stack"), ("abc", {}, TypeError, "not str"), ({}, {}, TypeError, "not dict"),
                ([1, [2]], {}, ValueError, "depths"), ([[1], [2, 3]], {}, ValueError, "lengths"),
                ([300], {"dtype": "int8"}, OverflowError, "300 is out of the range of int8"),
                ([2 ** 70], {}, OverflowError, "say a dtype"), ([None], {}, TypeError, "NoneType"),
                (1j, {}, TypeError, "complex"), (numpy.array(["a"]), {}, TypeError, "no dtype"),
                (b"abc", {"dtype": "int16"}, ValueError, "3 bytes"), ([1], {"dtype": "int33"}, TypeError, "int33")):
            with self.assertRaisesRegex(kind, text):
                Tensor(data, **options)

    def test_memory_at_an_address(self):
        x = numpy.arange(6, dtype="int32")
        t = Tensor.from_blob(x.ctypes.data, (2, 3), dtype="int32")
        t[0] = 9
        t.realize()
        self.assertEqual(x.tolist(), [9, 9, 9, 3, 4, 5])
        with self.assertRaisesRegex(ValueError, "address"):
            tiny.from_blob(0, (2,))

    def test_meshgrid(self):
        parts = [numpy.arange(n) for n in (2, 3, 4)]
        for indexing in ("ij", "xy"):
            for mine, theirs in zip(Tensor.meshgrid(*map(Tensor, parts), indexing=indexing),
                                    numpy.meshgrid(*parts, indexing=indexing)):
                numpy.testing.assert_array_equal(mine.numpy(), theirs)

    @unittest.skipIf(torch is None, "no PyTorch")
    def test_tensors_of_pytorch(self):
        for kind in (torch.float32, torch.bfloat16, torch.int8, torch.bool):
            t = torch.ones(2, 3, dtype=kind).T
            self.assertEqual(Tensor(t).dtype, kind)
            self.assertEqual(Tensor(t).shape, (3, 2))
        t = torch.ones(2)
        mine = Tensor(t)
        t += 1
        self.assertEqual(mine.tolist(), [1, 1])


class OutOf(unittest.TestCase):
    def test_arrays(self):
        a = Tensor([[1.0, 2.0], [3.0, 4.5]])
        self.assertTrue(numpy.array(a).flags.owndata)
        self.assertEqual(numpy.asarray(a, "float64").dtype, "float64")
        self.assertEqual(numpy.asarray(a, copy=False).ctypes.data, a.data_ptr())
        with self.assertRaises(ValueError):
            numpy.asarray(a, "float64", copy=False)
        numpy.testing.assert_array_equal(numpy.asarray(a.T), a.numpy().T)
        shared = numpy.asarray(a.T[::-1])
        del a
        self.assertEqual(shared.tolist(), [[2, 4.5], [1, 3]])

    def test_an_array_keeps_the_memory(self):
        a = Tensor([1.0, 2.0])
        before = numpy.asarray(a)
        a.assign(Tensor([5.0, 6.0]) * 2).realize()
        self.assertIn(before.tolist(), ([1, 2], [10, 12]))  # there it is in any case

    def test_the_buffer_protocol(self):
        a = Tensor([[1.0, 2.0], [3.0, 4.5]])
        with memoryview(a) as view:
            self.assertEqual((view.format, view.shape, view.strides, view.readonly), ("f", (2, 2), (8, 4), False))
            view[0, 1] = 7
        with memoryview(a.T) as view:
            self.assertEqual((view.tolist(), view.strides), ([[1, 3], [7, 4.5]], (4, 8)))
        self.assertEqual(bytes(a), a.numpy().tobytes())
        self.assertEqual(bytes(Tensor([3], dtype="uint8")), b"\3")  # not as many zeros
        file = io.BytesIO()
        file.write(memoryview(a + 1))
        self.assertEqual(file.getvalue(), (a.numpy() + 1).tobytes())
        kept = memoryview(Tensor([1, 2, 3]) * 2)
        self.assertEqual(kept.tolist(), [2, 4, 6])
        self.assertEqual((memoryview(Tensor(2)).shape, memoryview(Tensor.ones(0, 3)).shape), ((), (0, 3)))
        for take in (file.write, io.BytesIO, hashlib.sha256):  # they would not see the type of the elements
            with self.assertRaisesRegex(BufferError, "with its format alone"):
                take(a)
        with self.assertRaisesRegex(BufferError, "bfloat16"):
            memoryview(a.cast("bfloat16"))
        with memoryview(Tensor.ones(2, 2)) as shared:  # a constant is everyone's
            self.assertEqual(shared.tolist(), [[1, 1], [1, 1]])

    @unittest.skipIf(ml_dtypes is None, "no ml_dtypes")
    def test_bfloat16(self):
        source = numpy.array([1, 2.5], ml_dtypes.bfloat16)
        t = Tensor(source)
        self.assertEqual((t.dtype, t.tolist()), (tiny.bfloat16, [1, 2.5]))
        for out in (t.numpy(), numpy.asarray(t)):
            self.assertEqual(out.dtype, source.dtype)
            numpy.testing.assert_array_equal(out, source)
        with self.assertRaises(ValueError):
            numpy.asarray(t, copy=False)

    @unittest.skipIf(ml_dtypes is None, "no ml_dtypes")
    def test_floats_of_8_bits(self):
        for name in ("float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz"):
            source = numpy.array([[1, 2.5], [-0.5, 3]], getattr(ml_dtypes, name))
            t = Tensor(source)
            self.assertEqual((t.dtype, t.tolist()), (name, [[1, 2.5], [-0.5, 3]]))
            for out in (t.numpy(), numpy.asarray(t), copy.deepcopy(t).numpy()):
                self.assertEqual(out.dtype, source.dtype)
                numpy.testing.assert_array_equal(out, source)
            t[0] = 7
            self.assertEqual(t.tolist(), [[7, 7], [-0.5, 3]])

    def test_operators_of_numpy(self):
        a, n = Tensor([1.0, 2.0]), numpy.array([3, 4], "float32")
        for made in (n + a, a + n, numpy.add(n, a), n * a, numpy.exp(a), n @ a, n > a, numpy.float32(2) * a, 2 ** a):
            self.assertIsInstance(made, Tensor)
        self.assertEqual((n / a).tolist(), [3, 2])
        n += a
        self.assertEqual(n.tolist(), [4, 6])
        with self.assertRaises(TypeError):
            numpy.modf(a)

    def test_python_s_functions(self):
        self.assertEqual(f"{Tensor(1.5):.3f} {Tensor(3)}", "1.500 3")
        self.assertEqual([10, 20][Tensor(1)], 20)
        self.assertEqual(operator.index(Tensor([3])), 3)
        self.assertEqual([row.tolist() for row in Tensor([[1, 2], [3, 4]])], [[1, 2], [3, 4]])
        self.assertTrue(2 in Tensor([1, 2]) and 5 not in Tensor([1, 2]))
        self.assertEqual(divmod(Tensor([7]), 2)[1].tolist(), [1])
        for mistake in (lambda: f"{Tensor([1.0, 2.0]):.2f}", lambda: len(Tensor(1)), lambda: iter(Tensor(1)),
                        lambda: operator.index(Tensor(1.0)), lambda: Tensor([1]).__delitem__(0)):
            self.assertRaises(TypeError, mistake)
        with self.assertRaisesRegex(ValueError, "any.. or all"):
            bool(Tensor([1, 2]))

    def test_text(self):
        self.assertEqual(repr(Tensor([[1.0, 2.0], [3.0, 4.5]])),
                         "Tensor([[ 1.,  2.],\n        [ 3., 4.5]], dtype=float32)")
        self.assertEqual(repr(Tensor([[[1], [2]], [[3], [4]]])),
                         "Tensor([[[1],\n         [2]],\n\n        [[3],\n         [4]]], dtype=int64)")
        self.assertEqual(str(Tensor([1e-9, 1e10, float("nan")])), "Tensor([1e-09, 1e+10,   nan], dtype=float32)")
        self.assertEqual(repr(Tensor(3)), "Tensor(3, dtype=int64)")
        self.assertEqual(repr(Tensor.zeros(2, 0)), "Tensor([], shape=[2, 0], dtype=float32)")
        large = Tensor.ones(10 ** 6, 10 ** 6)  # of which no more is computed than is shown
        self.assertEqual(repr(large * 2).splitlines()[3], "        ...,")
        x = tiny.default_context().input("float32", [2])
        self.assertEqual(repr(x + 1), "<tiny.Tensor [2] float32>")

    def test_text_leaves_the_graph(self):
        w = Tensor([1.0, 2.0], requires_grad=True)
        loss = (w * w).sum()
        self.assertEqual((repr(loss), f"{loss:.1f}"), ("Tensor(5., dtype=float32)", "5.0"))
        Tensor.training = True
        try:
            loss = (w * w).sum()
            f"{loss} {loss!r}"
            loss.backward()
        finally:
            Tensor.training = False
        self.assertEqual(w.grad.tolist(), [2, 4])

    def test_pickles(self):
        for kind in ("float32", "bfloat16", "bool", "uint64"):
            a = Tensor([[1, 0], [3, 4]]).cast(kind)
            for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
                b = pickle.loads(pickle.dumps(a, protocol))
                self.assertEqual((b.dtype, b.tolist()), (a.dtype, a.tolist()))
        buffers = []
        data = pickle.dumps(Tensor.ones(1000), 5, buffer_callback=buffers.append)
        self.assertEqual((len(buffers), len(data) < 300), (1, True))
        self.assertEqual(pickle.loads(data, buffers=buffers).sum().item(), 1000)
        w = Tensor([1.0], requires_grad=True)
        self.assertTrue(pickle.loads(pickle.dumps(w)).requires_grad)
        error = pickle.loads(pickle.dumps(tiny.Error(3, "told")))
        self.assertEqual((str(error), error.status), ("told", 3))

    def test_copies(self):
        a = Tensor([1.0, 2.0])
        shared, own, other = copy.copy(a), copy.deepcopy(a), a.clone()
        a += 1
        self.assertEqual([x.tolist() for x in (a, shared, own, other)], [[2, 3], [2, 3], [1, 2], [1, 2]])
        w = Tensor([1.0, 2.0], requires_grad=True)
        (w * w).sum().backward()
        both = copy.deepcopy({"w": w, "again": w})
        self.assertIs(both["w"], both["again"])
        self.assertTrue(both["w"].requires_grad)
        self.assertIsNot(both["w"].grad, w.grad)
        self.assertEqual(both["w"].grad.tolist(), [2, 4])

    @unittest.skipIf(torch is None, "no PyTorch")
    def test_dlpack_old_and_new(self):
        a = Tensor([[1.0, 2.0], [3.0, 4.0]])
        for theirs in (torch.from_dlpack(a), torch.utils.dlpack.from_dlpack(a.__dlpack__())):
            self.assertEqual(theirs.tolist(), a.tolist())

        class Old:
            def __dlpack__(self, stream=None):
                return torch.utils.dlpack.to_dlpack(torch.arange(4))
        t = tiny.from_dlpack(Old())
        self.assertEqual(t.tolist(), [0, 1, 2, 3])
        a.__dlpack__()  # nobody takes it


if __name__ == "__main__":
    unittest.main()
