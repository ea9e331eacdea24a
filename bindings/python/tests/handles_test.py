"""Objects of handles: who owns them, which threads may drop them, and what operators take."""

import array
import gc
import subprocess
import sys
import threading
import unittest
import weakref

import tiny
from tiny import Tensor, nn


def resident_kilobytes():
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * 4


class Objects(unittest.TestCase):
    def test_attributes_and_weak_references(self):
        a = Tensor([1.0, 2.0])
        a.note = "mine"
        self.assertEqual(a.__dict__["note"], "mine")
        seen = weakref.ref(a)
        del a
        self.assertIsNone(seen())

    def test_a_cycle_is_collected(self):
        a = Tensor([1.0])
        a.itself = a
        seen = weakref.ref(a)
        del a
        gc.collect()
        self.assertIsNone(seen())

    def test_a_class_of_the_users(self):
        class Named(Tensor):
            def __init__(self, data, name):
                super().__init__(data)
                self.title = name

            def __add__(self, other):
                return ("added", super().__add__(other).tolist())

        one = Named([1.0, 2.0], "n")
        self.assertEqual(one.title, "n")
        self.assertEqual(one + 1, ("added", [2.0, 3.0]))
        self.assertEqual((one * 2).tolist(), [2.0, 4.0])
        self.assertEqual((Tensor([3.0, 3.0]) - one).tolist(), [2.0, 1.0])

    def test_one_that_was_not_initialised(self):
        empty = Tensor.__new__(Tensor)
        with self.assertRaisesRegex(RuntimeError, "is NULL"):
            empty + empty
        with self.assertRaisesRegex(RuntimeError, "is NULL"):
            Tensor([1.0]) + empty
        with self.assertRaises(AttributeError):
            empty + 1
        with self.assertRaisesRegex(RuntimeError, "is NULL"):
            empty.shape

    def test_what_has_no_constructor(self):
        with self.assertRaisesRegex(AttributeError, "constructor"):
            tiny.Program()

    def test_other_kinds_are_refused_by_the_name_of_the_call(self):
        with self.assertRaisesRegex(TypeError, "tiny_unary: a Tensor is wanted as argument 2, not tiny.native.Context"):
            tiny.native.tiny_unary(0, tiny.default_context())

    def test_what_is_no_number_or_text_is_refused_with_what_was_given(self):
        x = tiny.Tensor([1.0])
        for call, error, message in (
                (lambda: x.elu(x), TypeError, "tiny_elu: a number is wanted as argument 2, not .*Tensor"),
                (lambda: x.log_softmax("a"), TypeError, "tiny_log_softmax: a whole number is wanted as argument 2, not str"),
                (lambda: x.set_name(1.5), TypeError, "tiny_tensor_set_name: a text is wanted as argument 2, not float"),
                (lambda: x.as_strided([], (), 10**30), OverflowError, f"as argument 5, not {10**30}"),
                (lambda: x.elu("long" * 1000), TypeError, "not str$")):
            with self.assertRaisesRegex(error, message):
                call()

    def test_what_is_no_tensor_is_refused_by_its_name_and_that_of_the_call(self):
        x = Tensor([[1.0, 2.0]])
        text = "a"
        for name, call in (("einsum: a text is wanted as formula, not int", lambda: Tensor.einsum(3, x)),
                           ("einsum: a tensor is wanted as operand 1, not NoneType", lambda: Tensor.einsum("ij,jk->ik", x, None)),
                           ("realize: a tensor is wanted as argument 0, not int", lambda: Tensor.realize(3)),
                           ("realize: a tensor is wanted as argument 1, not list", lambda: x.realize([x])),
                           ("meshgrid: a tensor is wanted as argument 1, not int", lambda: Tensor.meshgrid(Tensor([1]), 3)),
                           ("sequential: a list of functions is wanted, not int", lambda: x.sequential(3)),
                           ("sequential: 3 is no function", lambda: x.sequential([Tensor.relu, 3])),
                           ("batchnorm: a tensor is wanted as mean, not NoneType", lambda: x.batchnorm(None, None, None, x)),
                           ("cross_entropy: a tensor is wanted as Y, not str", lambda: x[0].cross_entropy(text)),
                           ("lerp: a tensor is wanted as end, not NoneType", lambda: x.lerp(None, 1)),
                           ("rearrange: a text is wanted as formula, not int", lambda: x.rearrange(3)),
                           ("axis 'a' of shape .1, 2.: a whole number is wanted", lambda: x.cumsum(text)),
                           ("tiny_reduce: whole numbers are wanted, one or several, not 'a'", lambda: x.sum(text)),
                           ("tiny_reduce: whole numbers are wanted, one or several, not 1.5", lambda: x.sum(axis=1.5)),
                           ("topk: a number is wanted as k, not str", lambda: x.topk(text)),
                           ("dropout: a number is wanted as p, not str", lambda: x.dropout(text)),
                           ("chunk: a number is wanted as chunks, not str", lambda: x.chunk(text)),
                           ("roll: a number is wanted as shifts, not str", lambda: x.roll(text)),
                           ("manual_seed: a number is wanted as seed, not str", lambda: Tensor.manual_seed(text)),
                           ("arange: a number is wanted as stop, not str", lambda: Tensor.arange(text)),
                           ("linspace: a number is wanted as steps, not str", lambda: Tensor.linspace(0, 1, text)),
                           ("get_state_dict: a model, a list or a dict is wanted, not int", lambda: nn.state.get_state_dict(3)),
                           ("get_parameters: a model, a list or a dict is wanted, not NoneType",
                            lambda: nn.state.get_parameters(None)),
                           ("load_state_dict: a tensor is wanted as weight, not int",
                            lambda: nn.state.load_state_dict(nn.Linear(2, 2), {"weight": 3})),
                           ("load_state_dict: a dict of tensors, or a file's path, is wanted, not int",
                            lambda: nn.state.load_state_dict(nn.Linear(2, 2), 3)),
                           ("safe_save: a dict of tensors is wanted, not list", lambda: nn.state.safe_save([x], "/nowhere/a")),
                           ("an optimiser: a list of tensors is wanted, not int", lambda: nn.optim.SGD(3)),
                           ("an optimiser: a number is wanted as lr, not str", lambda: nn.optim.SGD([x], lr=text)),
                           ("OptimizerGroup: an optimiser is wanted, not int", lambda: nn.optim.OptimizerGroup(3)),
                           ("conv2d: a tensor is wanted as weight, not float", lambda: x.conv2d(1.5)),
                           ("conv_transpose2d: a tensor is wanted as weight, not NoneType", lambda: x.conv_transpose2d(None)),
                           ("linear: a tensor is wanted as weight, not list", lambda: x.linear([1])),
                           ("dot: a tensor is wanted as w, not str", lambda: x.dot("a")),
                           ("mm: a tensor is wanted as .k, m., not int", lambda: x.mm(3)),
                           ("attention: a tensor is wanted as value, not int", lambda: x.scaled_dot_product_attention(x, 1)),
                           ("sparse_categorical_crossentropy: a tensor is wanted as Y, not int",
                            lambda: x.sparse_categorical_crossentropy(1)),
                           ("masked_fill: a tensor is wanted as mask, not bool", lambda: x.masked_fill(True, 1)),
                           ("masked_select: a tensor is wanted as mask, not tuple", lambda: x.masked_select(())),
                           ("masked_scatter: a tensor is wanted as source, not int", lambda: x.masked_scatter(x > 1, 1)),
                           ("scatter: a tensor is wanted as index, not str", lambda: x.scatter(0, "", 1.0)),
                           ("type_as: a tensor is wanted as other, not str", lambda: x.type_as("float32"))):
            with self.subTest(name), self.assertRaisesRegex(TypeError, name):
                call()

    def test_a_handle_is_shared(self):
        a, b = Tensor([1.0]), Tensor([2.0])
        a.this = b
        self.assertEqual(a.tolist(), [2.0])
        del b
        self.assertEqual(a.tolist(), [2.0])
        with self.assertRaises(TypeError):
            a.this = tiny.default_context()

    def test_memory_stays_flat(self):
        a = Tensor([1.0, 2.0, 3.0])

        def work(count):
            for i in range(count):
                Tensor([1.0, 2.0, float(i)])
                (a + i).sum()
        work(20_000)
        before = resident_kilobytes()
        work(100_000)
        self.assertLess(resident_kilobytes() - before, 2_000)

    def test_references_are_given_back(self):
        a, context = Tensor([1.0, 2.0]).realize(), tiny.default_context()

        def work():
            a + 1, 1.5 - a, a @ a, a == a, -a, a.exp(), a.shape, a.reshape(2, 1), a.sum(0), Tensor([1.0]), a + True
            for wrong in (lambda: a + None, lambda: a + "x", lambda: a.reshape("x"), lambda: a + 2 ** 70):
                try:
                    wrong()
                except (TypeError, ValueError, OverflowError):
                    pass
        work()
        gc.collect()
        before = [sys.getrefcount(one) for one in (a, context, Tensor, None, True)]
        for _ in range(1000):
            work()
        gc.collect()
        after = [sys.getrefcount(one) for one in (a, context, Tensor, None, True)]
        for one, other in zip(before, after):
            self.assertLess(abs(other - one), 500)

    def test_the_end_of_the_interpreter(self):
        program = "import tiny; a = tiny.Tensor([1.0]) + 1; a.itself = a; import builtins; builtins.kept = [a, a + a]"
        done = subprocess.run([sys.executable, "-B", "-c", program], capture_output=True, text=True, timeout=60)
        self.assertEqual((done.returncode, done.stderr), (0, ""))


class Creation(unittest.TestCase):
    """What native.fill() makes is what the package makes of the same with a dtype's name, and what it leaves is left."""

    def test_lists(self):
        for data, dtype in (([1.0, 2], tiny.float32), ((1, 2, 3), tiny.int64), ([[1, 2], [3, 4]], tiny.int64),
                            ([[[0.5]], [[2 ** 24 + 1]]], tiny.float32), ([2 ** 53], tiny.int64),
                            ([2 ** 62, 1], tiny.int64), ([float("inf"), -0.0], tiny.float32), ([True, False], tiny.bool),
                            ([], tiny.float32), ([[], []], tiny.float32), ([1e300, 1.0], tiny.float32)):
            made, other = Tensor(data), tiny.tensor(data)
            self.assertEqual((made.dtype, made.shape, made.tolist()), (other.dtype, other.shape, other.tolist()))
            self.assertEqual(made.dtype, dtype)
            self.assertIs(made.context, tiny.default_context())

    def test_what_is_no_list_of_numbers(self):
        for wrong in ([1.0, [2.0]], [[1.0], 2.0], [[1], [2, 3]], [1.0, "x"], [None], "x", object()):
            with self.assertRaises((TypeError, ValueError, RuntimeError)):
                Tensor(wrong)

    def test_arrays(self):
        for letter in "bhiqBHIQfd":
            data = array.array(letter, [1, 2, 100])
            made, other = Tensor(data), tiny.tensor(data)
            self.assertEqual((made.dtype, made.tolist()), (other.dtype, other.tolist()), letter)
        square = memoryview(array.array("f", range(12))).cast("B").cast("f", (3, 4))
        self.assertEqual((Tensor(square).shape, Tensor(square)[2, 3].item()), ((3, 4), 11.0))
        self.assertEqual(Tensor(b"ab").tolist(), [97, 98])


class Threads(unittest.TestCase):
    def test_any_thread_drops(self):
        a, made, errors = Tensor([1.0, 2.0]).realize(), [], []
        lock = threading.Lock()

        def build():
            try:
                for i in range(2_000):
                    value = (a + i) * 2
                    with lock:
                        made.append(value)
                        dropped = made.pop(0) if len(made) > 100 else None
                    del dropped
            except Exception as error:  # noqa: BLE001  told below
                errors.append(error)
        threads = [threading.Thread(target=build) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(errors, [])
        self.assertEqual(len(made[-1].tolist()), 2)

    def test_building_waits_for_a_computation_without_the_lock(self):
        """A call that has the context is in a function of Python's, which needs the interpreter's lock; another thread
        builds meanwhile, and waits for the context: not with that lock."""
        begun, go_on = threading.Event(), threading.Event()

        def progress(what, done, total):
            begun.set()
            go_on.wait(20)
            return False
        context = tiny.Context(progress=progress)
        a = context.full("float32", [64], 1)
        results = []

        def build():
            begun.wait(20)
            go_on_soon.start()
            results.append((a + 1) * 2)
        go_on_soon = threading.Timer(0.2, go_on.set)
        builder = threading.Thread(target=build)
        builder.start()
        b = (a * 3).contiguous()
        b.realize()
        if not begun.is_set():  # nothing was told: the kernel was there already
            begun.set()
        builder.join(20)
        self.assertFalse(builder.is_alive())
        self.assertEqual(results[0].tolist(), [4.0] * 64)


class Operators(unittest.TestCase):
    def test_numbers_on_either_side(self):
        a = Tensor([1.0, 4.0])
        self.assertEqual((10 - a).tolist(), [9.0, 6.0])
        self.assertEqual((2.0 / a).tolist(), [2.0, 0.5])
        self.assertEqual((2 ** a).tolist(), [2.0, 16.0])
        self.assertEqual((7 // a).tolist(), [7.0, 1.0])
        self.assertEqual((7 % a).tolist(), [0.0, 3.0])
        self.assertEqual((2 < a).tolist(), [False, True])
        self.assertEqual((True + a).tolist(), [2.0, 5.0])
        self.assertEqual((1 << Tensor([1, 2])).tolist(), [2, 4])
        self.assertEqual((~Tensor([True, False])).tolist(), [False, True])
        self.assertEqual(abs(-a).tolist(), [1.0, 4.0])

    def test_what_is_no_operand(self):
        a = Tensor([1.0])
        for operate in (lambda: a + None, lambda: "x" + a, lambda: a @ [1], lambda: a < "x", lambda: pow(a, 2, 3)):
            with self.assertRaises(TypeError):
                operate()
        self.assertIs(a == None, False)  # noqa: E711
        self.assertIs(a != "x", True)

    def test_another_object_that_knows_how(self):
        class Other:
            def __radd__(self, tensor):
                return "theirs"

            def __gt__(self, tensor):
                return "theirs"
        self.assertEqual(Tensor([1.0]) + Other(), "theirs")
        self.assertEqual(Tensor([1.0]) < Other(), "theirs")

    def test_contexts_are_not_mixed(self):
        with self.assertRaisesRegex(RuntimeError, "another context"):
            Tensor([1.0]) + tiny.Context().full("float32", [1], 1)

    def test_gradients_pass(self):
        x, w = Tensor([2.0], requires_grad=True), Tensor([3.0], requires_grad=True)
        ((x * w + 1) ** 2).sum().backward()
        self.assertEqual(x.grad.tolist(), [42.0])
        self.assertEqual(w.grad.tolist(), [28.0])
        self.assertIsNone((x < w).requires_grad)
        self.assertIsNone(x.detach().requires_grad)

    def test_an_integer_too_large(self):
        with self.assertRaises(OverflowError):
            Tensor([1.0]) + 2 ** 70


if __name__ == "__main__":
    unittest.main()
