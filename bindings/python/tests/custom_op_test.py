"""Operators whose functions are Python's."""

import gc
import unittest
import weakref

import tiny

try:
    import numpy
except ImportError:
    numpy = None


@unittest.skipUnless(numpy, "NumPy is not here")
class CustomOp(unittest.TestCase):
    def setUp(self):
        self.context = tiny.Context(cache=0)

    def tensor(self, values):
        return tiny.tensor(values, context=self.context)

    def test_arrays_in_and_out(self):
        @tiny.custom_op("test", "Median", infer=lambda x, axis: tiny.Spec(x.dtype, x.shape[:-1]),
                        context=self.context)
        def median(x, axis):
            """The middle."""
            return numpy.median(x, axis=axis).astype(x.dtype)

        x = self.tensor([[3.0, 1.0, 2.0], [6.0, 5.0, 4.0]])
        self.assertEqual((median(x * 2, axis=-1) + 1).tolist(), [5.0, 11.0])
        self.assertEqual(median.__doc__, "The middle.")
        by_name = tiny.op("Median", x, domain="test", axis=-1)
        self.assertEqual(by_name.tolist(), [2.0, 5.0])

    def test_several_outputs_and_inputs_left_out(self):
        def specs(x, y=None):
            return [x, tiny.Spec(tiny.int64, ())]

        @tiny.custom_op("test", "Both", infer=specs, outputs=2, context=self.context)
        def both(x, y=None):
            return x if y is None else x + y, numpy.array(x.size)

        x = self.tensor([1.0, 2.0])
        total, count = both(x, x)
        self.assertEqual((total.tolist(), count.item()), ([2.0, 4.0], 2))
        self.assertEqual(both(x, None, outputs=1).tolist(), [1.0, 2.0])

    def test_programs_with_sizes_of_runs(self):
        calls = []

        @tiny.custom_op("test", "Reverse", context=self.context)
        def reverse(x):
            calls.append(x.shape)
            return x[::-1]

        n = tiny.Variable.create(self.context, "n", 2, 9)
        x = self.context.input(tiny.float32, [n])
        run = tiny.Run.create(tiny.Program.compile([x], [reverse(x) * 2]))
        for values in ([1.0, 2.0, 3.0], [4.0, 5.0]):
            run.set_input(0, self.tensor(values))
            run.execute()
            self.assertEqual(run.output_tensor(0).tolist(), [2 * v for v in reversed(values)])
        self.assertEqual(calls, [(3,), (2,)])

    def test_gradients(self):
        @tiny.custom_op("test", "Cube", context=self.context, gradient=lambda x, y, reached: 3 * x * x * reached)
        def cube(x):
            return x ** 3

        x = self.tensor([1.0, 2.0, 3.0])
        self.assertEqual(tiny.gradient([(cube(x) * 2).sum()], [x])[0].tolist(), [6.0, 24.0, 54.0])
        of_gradient, = tiny.gradient([cube(x)], [x], upstream=[x])
        self.assertEqual(of_gradient.tolist(), [3.0, 24.0, 81.0])

        @tiny.custom_op("test", "Same", context=self.context)
        def same(x):
            return x

        with self.assertRaisesRegex(tiny.Error, "test.Same has no gradient"):
            tiny.gradient([same(x).sum()], [x])

    def test_exceptions_end_the_call(self):
        @tiny.custom_op("test", "Bad", infer=lambda x, fail=0: x if fail < 2 else 1 / 0, context=self.context)
        def bad(x, fail=0):
            if fail == 1:
                raise KeyError("lost")
            if fail == -1:
                raise KeyboardInterrupt
            return x.astype("float64")

        x = self.tensor([1.0])
        with self.assertRaisesRegex(tiny.Error, "KeyError: 'lost'"):
            bad(x, fail=1).tolist()
        with self.assertRaises(KeyboardInterrupt):
            bad(x, fail=-1).tolist()
        with self.assertRaisesRegex(tiny.Error, "ZeroDivisionError"):
            bad(x, fail=2)
        with self.assertRaisesRegex(tiny.Error, "float32.*float64"):
            bad(x).tolist()
        with self.assertRaisesRegex(tiny.Error, "1 outputs where 2"):
            bad(x, outputs=2)[0].tolist()

    def test_functions_go_with_their_context(self):
        def function(x):
            return x

        gone = weakref.ref(function)
        op = tiny.custom_op("test", "Same", context=self.context)(function)
        self.assertEqual(op(self.tensor([1.0])).tolist(), [1.0])
        with self.assertRaisesRegex(tiny.Error, "already"):
            op.register(self.context)
        del op, function, self.context
        gc.collect()
        self.assertIsNone(gone())


if __name__ == "__main__":
    unittest.main()
