"""Views by their strides: the goldens of PyTorch, movement that makes views again, sizes that runs decide."""

import itertools
import random
import unittest

import tiny
from tiny import strides

# dims, strides, offset, mask, elements of the memory.
SIZES = [((2, 3), (1, 2), 0, None, 6), ((3,), (-1,), 2, None, 3), ((3,), (-2,), 5, None, 6),
         ((2, 3), (-3, 1), 3, None, 6), ((2, 2), (3, 5), 1, None, 10), ((4, 4), (1, 1), 0, None, 7),
         ((4, 3), (0, 1), 0, None, 3), ((5,), (1,), -1, [(1, 4)], 3), ((5,), (-1,), 3, [(1, 4)], 3),
         ((), (), 0, None, 1), ((3,), (2,), 4, None, 9), ((0, 3), (3, 1), 0, None, 0)]


def places(dims, steps, offset, mask):
    """The element of memory at each place, -1 where it is masked."""
    found = []
    for index in itertools.product(*map(range, dims)):
        inside = mask is None or all(low <= at < high for at, (low, high) in zip(index, mask))
        found.append(offset + sum(at * step for at, step in zip(index, steps)) if inside else -1)
    return found


def drawn(source):
    """A random view: dims, strides, offset, mask."""
    dims = [source.choice((0, 1, 1, 2, 3, 4, 5)) for _ in range(source.randint(0, 4))]
    steps = [source.randint(-6, 6) for _ in dims]
    mask = None
    if dims and source.random() < 0.3:
        mask = [tuple(sorted(source.choices(range(size + 1), k=2))) for size in dims]
    inside = [sum(at * step for at, step in zip(index, steps))
              for index in itertools.product(*map(range, dims))
              if mask is None or all(low <= at < high for at, (low, high) in zip(index, mask))]
    return dims, steps, source.randint(0, 3) - min(inside, default=0), mask


class StridesTest(unittest.TestCase):
    def test_buffer_sizes(self):
        for dims, steps, offset, mask, size in SIZES:
            self.assertEqual(strides.get_buffer_size(dims, steps, offset, mask), size, (dims, steps))
        with self.assertRaisesRegex(ValueError, "reaches element -1"):
            strides.get_buffer_size((3,), (-1,), 1)
        with self.assertRaisesRegex(ValueError, "wanted 0 <= begin <= end <= size"):
            strides.get_buffer_size((3,), (1,), 0, [(2, 1)])

    def test_real_views(self):
        self.assertEqual(strides.get_real_view((4, 3, 1), (0, -2, 7), 4), ((3,), (2,), 0))
        self.assertEqual(strides.get_real_view((), (), 4), ((), (), 4))
        self.assertEqual(strides.get_real_view((5,), (1,), -1, [(1, 4)]), ((3,), (1,), 0))

    def test_rebuild(self):
        source = random.Random(7)
        for _ in range(500):
            dims, steps, offset, mask = drawn(source)
            want = places(dims, steps, offset, mask)
            size = strides.get_buffer_size(dims, steps, offset, mask)
            self.assertEqual(size, max(want, default=-1) + 1)
            row = tiny.Tensor.arange(1, size + 1 + source.randint(0, 2), dtype="int64")
            made = row
            for op in strides.to_movement_ops(dims, steps, offset, mask):
                made = strides.apply_movement_op(made, op)
            self.assertEqual(made.shape, tuple(dims))
            got = made.reshape(-1).tolist() if 0 not in dims else []
            self.assertEqual([one - 1 for one in got], want, (dims, steps, offset, mask))

    def test_every_movement_has_its_numbers(self):
        kind = tiny.Movement
        x = tiny.Tensor.arange(6).reshape(2, 3)
        for op, want in [((kind.RESHAPE, (3, -1)), [[0, 1], [2, 3], [4, 5]]),
                         ((kind.PERMUTE, (1, 0)), [[0, 3], [1, 4], [2, 5]]),
                         ((kind.EXPAND, (1, 2, 3)), [[[0, 1, 2], [3, 4, 5]]]),
                         ((kind.PAD, (0, 1, 0, 0)), [[0, 0, 1, 2], [0, 3, 4, 5]]),
                         ((kind.SHRINK, (0, 1, 2, 3)), [[1, 2], [4, 5]]),
                         ((kind.FLIP, (1,)), [[2, 1, 0], [5, 4, 3]]),
                         ((kind.STRIDE, (-1, 2)), [[3, 5], [0, 2]]),
                         ((kind.STRIDE, (1, -2)), [[2, 0], [5, 3]]),
                         ((kind.AS_STRIDED, (2, 2, 1, 3, 1)), [[1, 4], [2, 5]])]:
            self.assertEqual(strides.apply_movement_op(x, op).tolist(), want, op)
        for op in [(kind.PAD, (1,)), (kind.STRIDE, (1,)), (kind.AS_STRIDED, (2, 2)), (kind.SHRINK, (0, 0, 3, 3))]:
            with self.assertRaises(ValueError):
                strides.apply_movement_op(x, op)
        with self.assertRaisesRegex(ValueError, "known: TINY_MOVEMENT_RESHAPE"):
            x.apply_movement_op(99, [])

    def test_empty_strided_is_written_where_its_strides_say(self):
        made = strides.empty_strided((2, 3), (10, 2), "int32")
        self.assertEqual((made.shape, made.strides, made.offset), ((2, 3), (10, 2), 0))
        all_of_it = made.as_strided([15], [1], 0)
        all_of_it.assign(tiny.Tensor.full((15,), -7, dtype="int32"))
        made.assign(tiny.Tensor.arange(6, dtype="int32").reshape(2, 3))
        self.assertEqual(all_of_it.tolist(), [0, -7, 1, -7, 2, -7, -7, -7, -7, -7, 3, -7, 4, -7, 5])
        self.assertEqual(strides.empty_strided((3,), (-2,)).offset, 4)

    def test_views_that_overlap_themselves_refuse_writes(self):
        view = tiny.Tensor.arange(6).as_strided([3, 3], [1, 1], 0)
        with self.assertRaisesRegex(Exception, "more than one element of the written-to tensor refers to a single "
                                               "memory location. Please clone"):
            view.assign(tiny.Tensor.zeros(3, 3, dtype=view.dtype))

    def test_gradients_of_views(self):
        """What is read several times adds up, backwards too."""
        x = tiny.Tensor.arange(6).cast("float32")
        for dims, steps, offset in [((3, 4), (1, 1), 0), ((3,), (-2,), 5), ((2, 2), (0, 3), 1)]:
            slopes = tiny.gradient([x.as_strided(list(dims), list(steps), offset).sum()], [x])[0]
            uses = [0] * 6
            for place in places(dims, steps, offset, None):
                uses[place] += 1
            self.assertEqual(slopes.tolist(), uses, (dims, steps))
        self.assertEqual(tiny.gradient([x[:5].cumsum(0).sum()], [x])[0].tolist(), [5, 4, 3, 2, 1, 0])

    def test_sizes_that_runs_decide(self):
        context = tiny.Context(cache=0)
        n = tiny.Variable.create(context, "n", 1, 4)
        self.assertTrue(strides.get_buffer_size((3, n), (n, 1)) == 3 * n)
        self.assertTrue(strides.get_real_view((n, 2), (-2, 0), 6)[2] == 8 - 2 * n)
        row = context.input(tiny.float32, [16])
        for dims, steps, offset, want in [
                ((n, 3), (3, 1), 0, [0, 1, 2, 3, 4, 5]), ((3, n), (n, 1), 0, [0, 1, 2, 3, 4, 5]),
                ((n, 3), (1, 4), 0, [0, 4, 8, 1, 5, 9]), ((n, 2), (-2, 3), 6, [6, 9, 4, 7]),
                ((n, 3), (2, 1), n, [2, 3, 4, 4, 5, 6]), ((2, n), (-3, 2), 4, [4, 6, 1, 3])]:
            made = row
            for op in strides.to_movement_ops(dims, steps, offset):
                made = strides.apply_movement_op(made, op)
            direct = row.as_strided(list(dims), list(steps), offset)
            run = tiny.Run.create(tiny.Program.compile([row], [made * 1, direct * 1]))
            run.set_variable(n, 2)
            run.set_input(0, tiny.tensor([float(i) for i in range(16)], context=context))
            run.execute()
            for k in (0, 1):
                self.assertEqual(sum(run.output_tensor(k).tolist(), []), want, (dims, steps, k))

    def test_parts_of_what_has_free_sizes(self):
        """Only the axis that is split is known."""
        context = tiny.Context(cache=0)
        n = tiny.Variable.create(context, "n", 1, 4)
        x = context.input(tiny.float32, [n, 6])
        self.assertEqual([part.shape[1] for part in x.split([1, 2, 3], dim=1)], [1, 2, 3])
        self.assertEqual([part.shape[1] for part in x.split(4, dim=1)], [4, 2])
        self.assertEqual([part.shape[1] for part in x.chunk(3, dim=-1)], [2, 2, 2])
        self.assertEqual(x.split(4, dim=1)[1].shape[0], x.shape[0])


if __name__ == "__main__":
    unittest.main()
