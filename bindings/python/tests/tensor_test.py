"""The Python package end to end: memory in and out, operators, indexing, errors, lifetimes."""

import array
import ctypes
import datetime
import gc
import json
import math
import mmap
import tempfile
import threading
import unittest
import weakref

import tiny

try:
    import numpy
except ImportError:
    numpy = None

FAR = 2 ** 31 + 7


class Arithmetic(unittest.TestCase):
    def test_two_arrays_add_and_sum(self):
        self.assertEqual([tiny.tensor(one, device="cpu").dtype for one in (3, 3.5, [True])], [tiny.int64, tiny.float32, tiny.bool])
        a = tiny.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
        b = tiny.from_buffer(array.array("f", [10, 20, 30]))
        c = a + b
        self.assertEqual(c.tolist(), [[11, 22, 33], [14, 25, 36]])
        self.assertEqual(c.sum(axes=-1).tolist(), [66, 75])
        self.assertEqual(c.sum(axes=1, keepdims=True).shape, (2, 1))
        self.assertEqual(c.sum().item(), 141)

    def test_operators_take_numbers_on_both_sides(self):
        a = tiny.tensor([1.0, 2.0, 4.0])
        self.assertEqual((2 * a + 1).tolist(), [3, 5, 9])
        self.assertEqual((1 - a).tolist(), [0, -1, -3])
        self.assertEqual((a / 2).tolist(), [0.5, 1, 2])
        self.assertEqual((-a).tolist(), [-1, -2, -4])
        self.assertEqual((a > 1.5).tolist(), [False, True, True])
        self.assertEqual((2.0 / a).dtype, tiny.float32)
        with self.assertRaises(TypeError):
            a + "text"

    @unittest.skipIf(numpy is None, "no NumPy")
    def test_operators_take_arrays_on_both_sides(self):
        a = tiny.tensor([1.0, 2.0, 4.0])
        b = numpy.array([1, 2, 3], numpy.float32)
        for result in (a + b, b + a, a.add(b)):
            self.assertIsInstance(result, tiny.Tensor)
            self.assertEqual(result.tolist(), [2, 4, 7])
        self.assertEqual((a + numpy.float32(0.5)).tolist(), [1.5, 2.5, 4.5])
        self.assertEqual((a * numpy.array(2)).tolist(), [2, 4, 8])
        self.assertEqual((a > b).tolist(), [False, False, True])

    def test_dtypes_have_names(self):
        a = tiny.tensor([1, 2], dtype="float16")
        self.assertEqual(a.dtype, tiny.float16)
        self.assertEqual(a.cast("int8").dtype, tiny.int8)
        self.assertEqual(a.context.full("bfloat16", [2], 1).dtype, tiny.bfloat16)
        if numpy is not None:
            self.assertEqual(a.cast(numpy.float32).dtype, tiny.float32)
            self.assertEqual(a.cast(numpy.dtype("uint8")).dtype, tiny.uint8)
        with self.assertRaisesRegex(TypeError, "dtype is 'float'; known: bool, int8"):
            a.cast("float")

    def test_mistakes_are_named_in_python_s_words(self):
        a = tiny.tensor([[1.0, 2.0]])
        for mistake, text in ((lambda: tiny.tensor("abc"), "a buffer is wanted, not str"),
                              (lambda: tiny.tensor(None), "a buffer is wanted, not NoneType"),
                              (lambda: tiny.tensor(datetime.date.min), r"a buffer is wanted, not datetime\.date"),
                              (lambda: a.mean(colour=0), r"Tensor\.mean\(\) got an unexpected keyword"),
                              (lambda: a.avg_pool(2, colour=3), r"Tensor\.avg_pool\(\) got an unexpected keyword")):
            with self.assertRaisesRegex(TypeError, text):
                mistake()
        for mistake, text in ((lambda: a[[0.5]], "an index has integers or bools, not float32"),
                              (lambda: a[a], "an index has integers or bools, not float32"),
                              (lambda: a[1.5], "an index is an integer.*not float")):
            with self.assertRaisesRegex(IndexError, text):
                mistake()

    def test_what_is_assigned_is_not_what_equal_tensors_are(self):
        """Equal expressions are one node; a write to the memory of one value is of that tensor alone."""
        w = tiny.tensor([0.0, 1.0])
        c = w.context
        for make in (lambda: c.full("float32", [2], 1), lambda: c.arange("float32", 2), lambda: w.exp()):
            wanted, first = make().tolist(), make()
            tiny.realize([first])
            first.assign(7.0)
            tiny.realize([first])
            self.assertEqual((first.tolist(), make().tolist()), ([7.0, 7.0], wanted))

    def test_every_operation_of_a_family_is_a_method(self):
        for family in (tiny.UnaryOp, tiny.BinaryOp, tiny.CompareOp, tiny.ReduceOp):
            for member in family:
                name = member.name.lower().rstrip("_")
                self.assertTrue(callable(getattr(tiny.Tensor, name, None) or
                                         getattr(tiny.Tensor, name + "_")), name)


def context_device(context):
    return json.loads(context.info().text())["device"]


class Memory(unittest.TestCase):
    def test_a_view_with_negative_stride_is_wrapped_without_a_copy(self):
        buffer = array.array("f", [1, 2, 3, 4])
        a = tiny.wrap(memoryview(buffer)[::-1])
        self.assertEqual(a.strides, (-1,))
        buffer[3] = 40.0  # read when the tensor is computed
        self.assertEqual((a + tiny.tensor([1.0, 1.0, 1.0, 1.0])).tolist(), [41, 4, 3, 2])

    def test_a_write_through_a_view_is_seen_by_all_and_by_the_callers_memory(self):
        buffer = array.array("f", [1, 2, 3, 4])
        a = tiny.wrap(buffer)
        before = a * 2
        a.reshape([2, 2]).flip(0).assign(tiny.tensor([[10.0, 20.0], [30.0, 40.0]]))
        self.assertEqual(buffer.tolist(), [1, 2, 3, 4])  # nothing has run yet
        self.assertEqual(a.tolist(), [30, 40, 10, 20])
        self.assertEqual(buffer.tolist(), [30, 40, 10, 20])
        self.assertEqual(before.tolist(), [2, 4, 6, 8])
        with self.assertRaises(tiny.Error):
            a.assign(tiny.tensor([[1.0], [2.0]]))

    def test_read_only_memory_is_never_written(self):
        one = tiny.tensor([1, 1, 1, 1], tiny.uint8)
        with tempfile.TemporaryFile() as file:
            file.write(b"abcd")
            file.flush()
            mapped = mmap.mmap(file.fileno(), 4, prot=mmap.PROT_READ)
            for memory in (b"abcd", memoryview(bytearray(b"abcd")).toreadonly(), mapped):
                a = tiny.wrap(memory, dtype=tiny.uint8)
                before = a + 0
                a.assign(one)
                self.assertEqual(a.tolist(), [1, 1, 1, 1])
                self.assertEqual(before.tolist(), list(b"abcd"))
                self.assertEqual(bytes(memory), b"abcd")
            del a, before, memory
            gc.collect()
            mapped.close()

    def test_a_view_stays_in_its_buffer(self):
        with self.assertRaisesRegex(tiny.Error, "reaches elements 0 to 3 of memory that has 1"):
            tiny.wrap(b"abcd", dtype=tiny.float32)
        columns = memoryview(array.array("f", range(12))).cast("B").cast("f", [3, 4])
        self.assertEqual(tiny.wrap(columns).tolist()[2], [8, 9, 10, 11])

    def test_a_compiled_program_is_replayed_and_writes_its_state(self):
        context = tiny.default_context()
        x = context.input(tiny.float32, [2])
        state = tiny.tensor([0.0, 0.0])
        state.assign(state + x)
        program = tiny.Program.compile([x], [state * 10, state])
        self.assertEqual(state.tolist(), [0, 0])
        run = tiny.Run.create(program)
        run.set_input(0, tiny.tensor([1.0, 2.0]))
        run.execute()
        run.execute()
        self.assertEqual(state.tolist(), [2, 4])
        self.assertEqual(run.output_tensor(0).tolist(), [20, 40])

    def test_a_tensor_lends_its_memory_and_takes_a_run_s_output(self):
        context = tiny.default_context()
        x = context.input(tiny.float32, [2])
        run = tiny.Run.create(tiny.Program.compile([x], [x * 3]))
        buffer = array.array("f", [0, 0])
        y = tiny.wrap(buffer)
        run.set_output(0, y)
        run.set_input(0, tiny.tensor([1.0, 2.0]))
        run.execute()
        self.assertEqual(buffer.tolist(), [3, 6])
        self.assertEqual(y.data_ptr(), buffer.buffer_info()[0])
        self.assertEqual(ctypes.c_float.from_address(y.flip(0).data_ptr()).value, 6)
        self.assertEqual((y.flip(0).offset, y.device), (1, context_device(context)))
        run.set_output(0, None)
        run.set_input(0, y)

    def test_a_run_reads_and_writes_buffers(self):
        x = tiny.default_context().input(tiny.float32, [2])
        run = tiny.Run.create(tiny.Program.compile([x], [x * 3]))
        source, target = bytearray(array.array("f", [1, 2])), array.array("f", [0, 0])
        run.bind_input(0, source)
        run.bind_output(0, target)
        run.execute()
        self.assertEqual(target.tolist(), [3, 6])
        source[:4] = array.array("f", [5]).tobytes()
        run.execute()
        self.assertEqual(target.tolist(), [15, 6])
        with self.assertRaises(BufferError):
            source.extend(b"more")  # it stays where it is
        with self.assertRaises(BufferError):
            run.bind_output(0, b"12345678")  # nobody may write there
        with self.assertRaisesRegex(tiny.Error, "has 8 bytes; got 12"):
            run.bind_input(0, array.array("f", [1, 2, 3]))
        run.bind_input(0, array.array("f", [7, 8]))
        run.bind_output(0, None)
        source.extend(b"more")
        run.execute()
        self.assertEqual(target.tolist(), [15, 6])
        self.assertEqual(run.output_tensor(0).tolist(), [21, 24])

    def test_flip_is_a_view(self):
        a = tiny.tensor([[1, 2], [3, 4]])
        self.assertEqual(a.flip([0, 1]).tolist(), [[4, 3], [2, 1]])
        self.assertEqual((a.flip(0) + a).sum().item(), 20)

    def test_a_wrapped_buffer_is_released_with_the_last_tensor(self):
        buffer = bytearray(16)
        a = tiny.wrap(buffer, dtype=tiny.uint8)
        b = a.reshape([4, 4])
        del a
        gc.collect()
        with self.assertRaises(BufferError):
            buffer.extend(b"more")  # b still needs it
        del b
        gc.collect()
        tiny.tensor([0.0]).tolist()  # a call of the owner: what waited to be released is
        buffer.extend(b"more")

    def test_from_data_copies(self):
        buffer = array.array("q", [1, 2, 3])
        a = tiny.from_buffer(buffer)
        buffer[0] = 100
        self.assertEqual(a.tolist(), [1, 2, 3])
        self.assertEqual(a.dtype, tiny.int64)

    def test_scalars_and_empty_shapes(self):
        self.assertEqual(tiny.tensor(3.0).tolist(), 3.0)
        self.assertEqual(tiny.tensor(3.0).shape, ())
        self.assertEqual(tiny.tensor([[], []]).tolist(), [[], []])
        self.assertEqual(tiny.tensor([]).sum().item(), 0.0)

    def test_a_buffer_of_another_size_is_an_error(self):
        with self.assertRaises(tiny.Error) as caught:
            tiny.Tensor.from_data(tiny.default_context(), tiny.float32, [2, 2], bytes(15))
        self.assertEqual(caught.exception.name, "SHAPE")
        with self.assertRaises((BufferError, ValueError)):
            tiny.tensor([1.0]).read(b"read-only, and no four bytes")

    @unittest.skipIf(numpy is None, "NumPy is not installed")
    def test_numpy_both_ways(self):
        source = numpy.arange(24, dtype=numpy.float32).reshape(2, 3, 4)[:, ::-1, ::2]
        for made in (tiny.tensor(source), tiny.wrap(source)):
            numpy.testing.assert_array_equal(made.numpy(), source)
            numpy.testing.assert_array_equal((made + made).sum(axes=[0, 2]).numpy(),
                                             (source + source).sum(axis=(0, 2)))
            numpy.testing.assert_array_equal(made.permute([2, 0, 1]).numpy(),
                                             source.transpose(2, 0, 1))
        self.assertEqual(numpy.asarray(tiny.tensor([1, 2])).dtype, numpy.int64)


@unittest.skipIf(numpy is None or int(numpy.__version__.split(".")[0]) < 2, "NumPy 2 is not here")
class DLPack(unittest.TestCase):
    def test_every_dtype_goes_to_numpy_and_back_without_a_copy(self):
        for dtype in ("?", "b", "h", "i", "q", "B", "H", "I", "Q", "e", "f", "d"):
            source = numpy.arange(6).astype(dtype).reshape(2, 3)
            made = tiny.from_dlpack(source)
            self.assertEqual(made.data_ptr(), source.ctypes.data)
            back = numpy.from_dlpack(made)
            self.assertEqual((back.dtype, back.ctypes.data), (source.dtype, source.ctypes.data))
            numpy.testing.assert_array_equal(back, source)

    def test_strides_of_any_sign_survive(self):
        source = numpy.arange(24, dtype=numpy.int32).reshape(2, 3, 4)[::-1, 1:, ::-2]
        made = tiny.from_dlpack(source)
        self.assertEqual(made.data_ptr(), source.ctypes.data)
        numpy.testing.assert_array_equal((made + 1).numpy(), source + 1)
        numpy.testing.assert_array_equal(numpy.from_dlpack(made), source)
        ours = tiny.tensor([[1, 2, 3], [4, 5, 6]]) * 2
        numpy.testing.assert_array_equal(numpy.from_dlpack(ours.permute([1, 0]).flip(0)),
                                         [[6, 12], [4, 10], [2, 8]])

    def test_writes_are_seen_on_both_sides_but_for_what_is_read_only(self):
        source = numpy.zeros(3, numpy.float32)
        made = tiny.from_dlpack(source)
        made.assign(tiny.tensor([1.0, 2.0, 3.0]))
        made.tolist()
        self.assertEqual(source.tolist(), [1, 2, 3])
        ours = tiny.tensor([1.0, 2.0])
        theirs = numpy.from_dlpack(ours)
        theirs[0] = 10
        self.assertEqual(ours.tolist(), [10, 2])
        frozen = numpy.zeros(2, numpy.float32)
        frozen.flags.writeable = False
        made = tiny.from_dlpack(frozen)
        self.assertFalse(numpy.from_dlpack(made).flags.writeable)
        made.assign(tiny.tensor([5.0, 6.0]))
        self.assertEqual((made.tolist(), frozen.tolist()), ([5, 6], [0, 0]))
        copied = numpy.from_dlpack(ours, copy=True)
        copied[0] = 99
        self.assertEqual(ours.tolist(), [10, 2])

    def test_memory_lives_as_long_as_either_side_needs_it(self):
        class Array(numpy.ndarray):
            pass
        source = numpy.arange(4, dtype=numpy.float32).view(Array)
        gone = weakref.ref(source)
        made = tiny.from_dlpack(source)
        del source
        gc.collect()
        self.assertEqual(made.tolist(), [0, 1, 2, 3])
        self.assertIsNotNone(gone())
        del made
        tiny.tensor([0.0]).tolist()  # a call of the owner: what waited to be released is
        gc.collect()
        self.assertIsNone(gone())
        theirs = numpy.from_dlpack(tiny.tensor([1.0, 2.0]) * 2)
        gc.collect()
        self.assertEqual(theirs.tolist(), [2, 4])
        capsule = tiny.tensor([1.0]).__dlpack__(max_version=(1, 0))
        del capsule  # nobody took it

    def test_what_cannot_be_is_refused(self):
        ours = tiny.tensor([1.0])
        self.assertEqual(ours.__dlpack_device__(), (1, 0))
        for wrong in ({"dl_device": (2, 0)}, {"max_version": (1, 0), "dl_device": (2, 0)},
                      {"max_version": (1, 0), "stream": 1}):
            with self.assertRaises(BufferError):
                ours.__dlpack__(**wrong)

        class Used:
            def __dlpack__(self, max_version):
                capsule = ours.__dlpack__(max_version=max_version)
                numpy.from_dlpack(Given(capsule))
                return capsule

        class Given:
            def __init__(self, capsule):
                self.capsule = capsule

            def __dlpack__(self, **_):
                return self.capsule

            def __dlpack_device__(self):
                return (1, 0)
        with self.assertRaises(BufferError):
            tiny.from_dlpack(Used())
        with self.assertRaises(tiny.Error) as caught:
            tiny.from_dlpack(numpy.zeros(2, numpy.complex64))
        self.assertEqual(caught.exception.name, "DTYPE")


class Indexing(unittest.TestCase):
    def test_as_lists_of_lists(self):
        a = tiny.tensor([[1, 2, 3], [4, 5, 6]])
        self.assertEqual(a[1].tolist(), [4, 5, 6])
        self.assertEqual(a[-1, -1].item(), 6)
        self.assertEqual(a[:, ::-1].tolist(), [[3, 2, 1], [6, 5, 4]])
        self.assertEqual(a[::-1, 2:0:-1].tolist(), [[6, 5], [3, 2]])
        self.assertEqual(a[..., None, 0].tolist(), [[1], [4]])
        self.assertEqual(a[2:].shape, (0, 3))
        with self.assertRaises(IndexError):
            a[2]
        with self.assertRaises(IndexError):
            a[0, 0, 0]


class Dimensions(unittest.TestCase):
    def test_above_two_to_the_31_they_survive(self):
        a = tiny.tensor([5]).expand([FAR])
        self.assertEqual(a.shape, (FAR,))
        self.assertEqual(a.numel, FAR)
        self.assertEqual(a[FAR - 2:].tolist(), [5, 5])
        self.assertEqual(a.reshape([1, FAR]).expand([3, FAR]).numel, 3 * FAR)
        with self.assertRaises(OverflowError):
            a.expand([2 ** 63])

    @unittest.skipUnless(numpy, "NumPy is not here")
    def test_an_array_is_a_list(self):
        a = tiny.tensor([[1.0, 2.0], [3.0, 4.0]])
        self.assertEqual(a.reshape(numpy.array([4, 1])).shape, (4, 1))
        self.assertEqual(a.sum(axes=numpy.array([0, 1])).item(), 10)
        self.assertEqual(a.sum(axes=numpy.int32(0)).tolist(), [4, 6])

    def test_lists_of_one_count_must_agree(self):
        with self.assertRaises(ValueError):
            tiny.tensor([1]).as_strided([2, 2], [1], 0)
        with self.assertRaises(TypeError):
            tiny.tensor([1]).reshape([1.5])


class Errors(unittest.TestCase):
    def test_a_wrong_call_says_what_the_engine_says(self):
        with self.assertRaises(tiny.Error) as caught:
            tiny.tensor([1.0, 2.0]) + tiny.tensor([1.0, 2.0, 3.0])
        print("\nthe engine says:", caught.exception)
        self.assertEqual(caught.exception.status, tiny.Status.ERROR_SHAPE)
        self.assertEqual(caught.exception.name, "SHAPE")
        self.assertTrue(str(caught.exception))

    def test_unknown_options_are_errors(self):
        with self.assertRaises(tiny.Error):
            tiny.Context(no_such_option=1)
        self.assertEqual(tiny.tensor([1.0], context=tiny.Context(threads=1)).tolist(), [1.0])

    def test_an_unknown_operation_is_an_error(self):
        with self.assertRaises(tiny.Error):
            tiny.native.tiny_unary(12345, tiny.tensor([1.0]))

    def test_messages_belong_to_the_thread(self):
        messages = {}

        def provoke(size):
            context = tiny.Context(threads=1)
            for _ in range(50):
                try:
                    tiny.tensor([1.0], context=context).reshape([size])
                except tiny.Error as error:
                    messages.setdefault(size, set()).add(str(error))

        threads = [threading.Thread(target=provoke, args=(size,)) for size in (1234, 5678)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for size in (1234, 5678):
            self.assertEqual(len(messages[size]), 1)
            self.assertIn(str(size), messages[size].pop())


class Lifetimes(unittest.TestCase):
    def test_handles_are_released_in_any_order(self):
        context = tiny.Context(threads=1)
        a = tiny.tensor([1.0, 2.0], context=context)
        gone = weakref.ref(context)
        b = a + 1
        del context, a
        gc.collect()
        self.assertEqual(b.tolist(), [2, 3])
        del b
        gc.collect()
        self.assertIsNone(gone())

    def test_memory_stays_flat(self):
        buffer = bytes(1 << 20)
        first = None
        for step in range(300):
            tiny.from_buffer(buffer, tiny.float32, [1 << 18])
            if step == 50:
                first = resident()
        self.assertLess(resident() - first, 64 << 20)

    def test_another_thread_may_release(self):
        made = [tiny.tensor([float(i)]) + 1 for i in range(100)]
        thread = threading.Thread(target=made.clear)
        thread.start()
        kept = [tiny.tensor([float(i)]) + 2 for i in range(100)]
        thread.join()
        self.assertEqual(sum(t.item() for t in kept), sum(range(100)) + 200)


def resident():
    """Bytes of the process in memory."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * ctypes.CDLL(None).getpagesize()


class Elements(unittest.TestCase):
    def test_every_dtype_comes_back(self):
        for dtype in tiny.Dtype:
            if not tiny.dtype_supported(dtype):
                with self.assertRaisesRegex(tiny.Error, tiny.dtype_name(dtype)):
                    tiny.tensor([0.0, 1.0]).cast(dtype)
                continue
            a = tiny.tensor([0.0, 1.0]).cast(dtype)
            self.assertEqual(a.dtype, dtype)
            self.assertTrue(math.isclose(a.tolist()[1], 1))


if __name__ == "__main__":
    unittest.main()
