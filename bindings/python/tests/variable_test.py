"""Programs with dimensions that runs bind."""

import unittest

import tiny


class Variable(unittest.TestCase):
    def test_one_program_serves_every_size(self):
        context = tiny.Context(cache=0)
        n = tiny.Variable.create(context, "N", 2, 64)
        self.assertEqual((n.name, n.range), ("N", (2, 64)))
        x = context.input(tiny.float32, [n, 2])
        self.assertEqual(x.shape, (n.dim, 2))
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
        self.assertEqual(repr(x), "<tiny.Tensor [?, 2] float32>")
        with self.assertRaisesRegex(IndexError, "axis 0 of shape .*runs bind"):
            x[1:]
        run = tiny.Run.create(tiny.Program.compile([x], [x[:, 1], x[..., None, 0]]))
        run.set_input(0, tiny.tensor([[1.0, 2.0], [3.0, 4.0]], context=context))
        run.execute()
        self.assertEqual(run.output_tensor(0).tolist(), [2.0, 4.0])
        self.assertEqual(run.output_tensor(1).tolist(), [[1.0], [3.0]])

    def test_it_is_set_where_no_input_has_it(self):
        context = tiny.Context(cache=0)
        n = tiny.Variable.create(context, "N", 1, 10)
        squares = context.arange(tiny.int32, n.dim).square()
        with self.assertRaisesRegex(tiny.Error, "program"):
            squares.sum().item()
        run = tiny.Run.create(tiny.Program.compile([], [squares]))
        for size in (4, 1):
            run.set_variable(n, size)
            run.execute()
            self.assertEqual(run.output_tensor(0).tolist(), [i * i for i in range(size)])
        with self.assertRaisesRegex(tiny.Error, '"N" is from 1 to 10; got 11'):
            run.set_variable(n, 11)


if __name__ == "__main__":
    unittest.main()
