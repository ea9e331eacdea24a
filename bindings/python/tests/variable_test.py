"""Programs with dimensions that runs bind."""

import unittest

import numpy
import tiny


class Variable(unittest.TestCase):
    def test_one_program_serves_every_size(self):
        context = tiny.Context(cache=0)
        n = tiny.Variable.create(context, "N", 2, 64)
        self.assertEqual((n.name, n.range), ("N", (2, 64)))
        x = context.input(tiny.float32, [n, 2])
        self.assertEqual(x.shape, (n, 2))
        total = (x * 2 + context.full(tiny.float32, [n, 1], 1)).sum(axes=0)
        run = tiny.Run.create(tiny.Program.compile([x], [total]))
        with self.assertRaisesRegex(tiny.Error, '"N"'):
            run.set_input(0, tiny.tensor([[1.0, 2.0]], context=context))
        for rows in (3, 64):
            run.set_input(0, tiny.tensor([[1.0, 2.0]] * rows, context=context))
            run.execute()
            self.assertEqual(run.output_tensor(0).tolist(), [3.0 * rows, 5.0 * rows])

    def test_it_is_indexed_as_a_whole(self):
        context = tiny.Context(cache=0)
        n = tiny.Variable.create(context, "N", 2, 64)
        x = context.input(tiny.float32, [n, 2])
        self.assertEqual(repr(x), "<tiny.Tensor [N, 2] float32>")
        with self.assertRaisesRegex(TypeError, "axis 0: .*a step of 1"):
            x[::2]
        run = tiny.Run.create(tiny.Program.compile([x], [x[:, 1], x[..., None, 0], x[1:, 0]]))
        run.set_input(0, tiny.tensor([[1.0, 2.0], [3.0, 4.0]], context=context))
        run.execute()
        self.assertEqual(run.output_tensor(0).tolist(), [2.0, 4.0])
        self.assertEqual(run.output_tensor(1).tolist(), [[1.0], [3.0]])
        self.assertEqual(run.output_tensor(2).tolist(), [3.0])

    def test_it_is_set_where_no_input_has_it(self):
        context = tiny.Context(cache=0)
        n = tiny.Variable.create(context, "N", 1, 10)
        squares = context.arange(tiny.int32, n).square()
        with self.assertRaisesRegex(tiny.Error, "program"):
            squares.sum().item()
        run = tiny.Run.create(tiny.Program.compile([], [squares]))
        for size in (4, 1):
            run.set_variable(n, size)
            run.execute()
            self.assertEqual(run.output_tensor(0).tolist(), [i * i for i in range(size)])
        with self.assertRaisesRegex(tiny.Error, '"N" is from 1 to 10; got 11'):
            run.set_variable(n, 11)

    def test_scalars_follow_it(self):
        context = tiny.Context(cache=0)
        n = tiny.Variable.create(context, "N", 2, 64)
        x = context.input(tiny.float32, [n, 2])
        run = tiny.Run.create(tiny.Program.compile([x], [x.sum([0]) / n, (2 * n + 1) * x]))
        for rows in (3, 64):
            run.set_input(0, tiny.tensor([[1.0, 2.0]] * rows, context=context))
            run.execute()
            self.assertEqual(run.output_tensor(0).tolist(), [1.0, 2.0])
            self.assertEqual(run.output_tensor(1).tolist()[-1], [2.0 * rows + 1, 4.0 * rows + 2])
        other = tiny.Variable.create(tiny.Context(cache=0), "N", 2, 64)
        with self.assertRaisesRegex(tiny.Error, "another context's"):
            x * other

    def test_it_takes_part_in_arithmetic(self):
        context = tiny.Context(cache=0)
        n = tiny.Variable.create(context, "N", 2, 64)
        x = context.input(tiny.float32, [n, 4])
        rows = x.shape[0]
        self.assertIsInstance(rows, tiny.Dim)
        self.assertEqual((rows, rows.range, repr(rows)), (n, (2, 64), "N"))
        self.assertEqual({rows: 1}[n.dim], 1)
        for made, low, high in ((n + 1, 3, 65), (1 + n, 3, 65), (rows * 2, 4, 128), (rows // 2, 1, 32),
                                (2 * rows - 3, 1, 125), (100 - n, 36, 98), (n.min(8), 2, 8), (rows.max(8), 8, 64),
                                (-n, -64, -2), (-(-n // 4), 1, 16), (numpy.int64(1) + rows, 3, 65)):
            self.assertIsInstance(made, tiny.Dim, made)
            self.assertEqual(made.range, (low, high), made)
        self.assertLessEqual((rows % 8).range[1], 7)
        self.assertEqual((n + n, n - rows, (n * 6) // 3), (n * 2, 0, 2 * n))
        both = tiny.concat([x, x, context.full(tiny.float32, [1, 4], 1)])
        self.assertEqual(both.shape, (2 * n + 1, 4))
        flat = x.reshape([n * 4])
        shifted = flat.slice([4], [n * 4])
        self.assertEqual(shifted.shape, (n * 4 - 4,))
        run = tiny.Run.create(tiny.Program.compile([x], [both, shifted, context.full(tiny.int32, [n // 2], 7)]))
        run.set_input(0, tiny.tensor([[float(i)] * 4 for i in range(5)], context=context))
        run.execute()
        self.assertEqual(run.output_tensor(0).shape, (11, 4))
        self.assertEqual(run.output_tensor(1).tolist(), [float(i) for i in range(1, 5) for _ in range(4)])
        self.assertEqual(run.output_tensor(2).tolist(), [7, 7])
        self.assertEqual([run.dim(d) for d in (n, n * 3 - 1, 8)], [5, 14, 8])

    def test_comparisons_hold_or_are_refused(self):
        context = tiny.Context(cache=0)
        n = tiny.Variable.create(context, "N", 2, 64)
        m = tiny.Variable.create(context, "M", 70, 80)
        self.assertTrue(n >= 2 and n < 65 and n != 1 and 1 < n + 0 and n < m and n + 1 > n and bool(n.dim))
        self.assertFalse(n == 1 or n > 64 or n + 1 == n or n.dim == 65 or n > m)
        for undecided in (lambda: n < 5, lambda: n == 5, lambda: 5 >= n, lambda: n != 5, lambda: bool(n - 5),
                          lambda: n + 10 < m, lambda: (n, 2) == (5, 2)):
            with self.assertRaisesRegex(ValueError, "depends on the run"):
                undecided()
        self.assertFalse(n == "N" or n.dim is None)

    def test_it_is_no_number(self):
        context = tiny.Context(cache=0)
        n = tiny.Variable.create(context, "N", 2, 64)
        x = context.input(tiny.float32, [n, 4])
        for wrong in (lambda: range(n), lambda: int(n + 1), lambda: n / 2, lambda: n + 0.5, lambda: [0] * n.dim,
                      lambda: numpy.zeros(x.shape), lambda: len(x)):
            with self.assertRaises(TypeError):
                wrong()
        other = tiny.Variable.create(tiny.Context(cache=0), "N", 2, 64)
        with self.assertRaisesRegex(tiny.Error, r"b is -\d+, no size .* and no dimension of this context"):
            n + other
        with self.assertRaisesRegex(tiny.Error, r"dims\[0\] is -\d+, no size"):
            context.input(tiny.float32, [other, 4])
        for changed in (n.dim.number + 1, n.dim.number * 2, -n.dim.number, n.dim.number // 2):
            if -2**63 <= changed < 2**63:
                with self.assertRaisesRegex(tiny.Error, "no dimension of this context"):
                    context.full(tiny.float32, [changed], 0)
        with self.assertRaisesRegex(tiny.Error, r"sizes\[0\], N - 1, depends on the free dimension N"):
            x.split(0, [n - 1, 1])


if __name__ == "__main__":
    unittest.main()
