"""Views and writes on device "tiny" are those of the CPU: sizes, strides, offsets, elements, errors."""

import itertools
import os
import random
import unittest

import torch

import tiny.torch  # noqa: F401 - the device

# TINY_PROGRAMS=100000 for a long run.
PROGRAMS = int(os.environ.get("TINY_PROGRAMS", "400"))


def layout(x):
    return tuple(x.shape), x.stride(), x.storage_offset(), x._version, x.untyped_storage().nbytes(), x._is_view()


class Goldens(unittest.TestCase):
    def same(self, x, want):
        self.assertEqual(x.cpu().tolist(), want)

    def test_as_strided_basic(self):
        base = torch.arange(12.0, device="tiny")
        v = base.as_strided((2, 3), (1, 4), 1)
        self.same(v, [[1, 5, 9], [2, 6, 10]])
        self.assertEqual((v.stride(), v.storage_offset(), v._is_view()), ((1, 4), 1, True))
        self.assertEqual(v.untyped_storage().data_ptr(), base.untyped_storage().data_ptr())
        self.same(base.as_strided((4,), (3,)), [0, 3, 6, 9])
        self.same(base.as_strided((3, 4), (2, 1)), [[0, 1, 2, 3], [2, 3, 4, 5], [4, 5, 6, 7]])
        self.same(base.as_strided((2, 2), (0, 1)), [[0, 1], [0, 1]])
        x = torch.arange(5.0, device="tiny")
        self.same(x[3:].as_strided((2,), (1,)), [3, 4])
        self.same(x[3:].as_strided((2,), (1,), 0), [0, 1])
        v.mul_(10)
        self.same(base, [0, 10, 20, 3, 4, 50, 60, 7, 8, 90, 100, 11])
        base[1] = 7
        self.same(v, [[7, 50, 90], [20, 60, 100]])

    def test_as_strided_of_a_view_addresses_the_storage(self):
        x = torch.arange(70.0, device="tiny")
        rows = x.as_strided((5, 10), (7, 1)).as_strided((5, 5), (11, 1), 5)
        self.same(rows.sum(1), torch.arange(70.0).as_strided((5, 5), (11, 1), 5).sum(1).tolist())
        y = torch.arange(6.0, device="tiny").reshape(2, 3)
        self.same(y.t().as_strided((6,), (1,)), [0, 1, 2, 3, 4, 5])

    def test_what_is_out_of_bounds_or_negative_is_refused(self):
        base = torch.arange(12.0, device="tiny")
        with self.assertRaisesRegex(RuntimeError, "setStorage: sizes .* out of bounds for storage of size 48"):
            base.as_strided((4, 4), (4, 1))
        with self.assertRaisesRegex(RuntimeError, "Negative strides are not supported"):
            base.as_strided((3,), (-1,), 3)
        with self.assertRaisesRegex(ValueError, "step must be greater than zero"):
            base[::-1]
        with self.assertRaisesRegex(RuntimeError, "overflowed"):
            torch.empty_strided((3,), (-1,), device="tiny")

    def test_gradient_of_an_overlapping_read_adds_up(self):
        x = torch.zeros(5, device="tiny", requires_grad=True)
        x.as_strided((3, 3), (1, 1)).sum().backward()
        self.same(x.grad, [1, 2, 3, 2, 1])

    def test_empty_strided_alloc(self):
        for size, stride, elements in [((2, 3), (3, 1), 6), ((2, 3), (1, 2), 6), ((2, 3), (10, 2), 15), ((2, 3), (0, 1), 3),
                                       ((0, 3), (3, 1), 0), ((), (), 1), ((4, 4), (1, 1), 7), ((1, 5), (100, 2), 9)]:
            x = torch.empty_strided(size, stride, device="tiny")
            self.assertEqual((x.stride(), x.untyped_storage().nbytes()), (stride, 4 * elements))
        x = torch.empty_strided((4, 6), (1, 4), device="tiny")
        x.copy_(torch.arange(24.0).reshape(4, 6))
        self.same(x.as_strided((24,), (1,)), torch.arange(24.0).reshape(4, 6).t().flatten().tolist())
        holes = torch.full((15,), -7.0, device="tiny")
        holes.as_strided((2, 3), (10, 2)).copy_(torch.ones(2, 3))
        self.same(holes, [1, -7, 1, -7, 1, -7, -7, -7, -7, -7, 1, -7, 1, -7, 1])

    def test_copy_between_strides(self):
        def makers(base):
            return {"contiguous": lambda: base[:24].view(2, 3, 2, 2), "transposed": lambda: base[:24].view(2, 2, 3, 2).transpose(1, 2),
                    "channels_last": lambda: base[:24].view(2, 2, 2, 3).permute(0, 3, 1, 2), "step": lambda: base[:48:2].view(2, 3, 2, 2),
                    "gaps": lambda: base.as_strided((2, 3, 2, 2), (20, 6, 3, 1), 1), "offset": lambda: base[7:31].view(2, 3, 2, 2),
                    "expanded": lambda: base[:6].view(2, 3, 1, 1).expand(2, 3, 2, 2)}
        kinds = list(makers(torch.zeros(1)))
        for source, target in itertools.product(kinds, kinds):
            if target == "expanded":
                continue
            for types in ((torch.float32, torch.float32), (torch.float16, torch.float32), (torch.int64, torch.float32),
                          (torch.float32, torch.bool)):
                found = []
                for where in (("cpu", "cpu"), ("cpu", "tiny"), ("tiny", "cpu"), ("tiny", "tiny")):
                    bases = [(torch.arange(60) % 5).to(types[0]).to(where[0]), torch.full((60,), 3, dtype=types[1], device=where[1])]
                    makers(bases[1])[target]().copy_(makers(bases[0])[source]())
                    found.append([base.tolist() for base in bases])
                self.assertEqual(found[1:], found[:1] * 3, (source, target, types))

    def test_flips_are_copies_without_negative_strides(self):
        x = torch.arange(6.0).reshape(2, 3)
        y = x.to("tiny")
        for dims in ((0,), (1,), (0, 1)):
            self.same(y.flip(dims), x.flip(dims).tolist())
        self.assertEqual(y.t().flip(0).stride(), x.t().flip(0).stride())

    def test_a_view_that_overlaps_itself_refuses_writes(self):
        for device in ("cpu", "tiny"):
            e = torch.zeros(1, device=device).expand(3)
            with self.assertRaisesRegex(RuntimeError, "more than one element of the written-to tensor"):
                e.add_(1)
            with self.assertRaisesRegex(RuntimeError, "more than one element of the written-to tensor"):
                e.copy_(torch.ones(3))
            e.fill_(4)
            self.assertEqual(e.tolist(), [4, 4, 4])
            x = torch.zeros(5, device=device)
            with self.assertRaisesRegex(RuntimeError, "refer to a single memory location"):
                x[1:].copy_(x[:-1])


# ---- Random programs: each step is done on the CPU and on tiny --------------------------------------


def make_view(r, x):
    kind = r.randrange(10)
    dim = r.randrange(x.dim()) if x.dim() else 0
    if kind == 0 or x.dim() == 0:
        size = [r.randrange(1, 4) for _ in range(r.randrange(1, 4))]
        stride = [r.randrange(0, 6) for _ in size]
        return lambda y: y.as_strided(size, stride, r_offset)
    if kind == 1:
        low, high, step = r.randrange(0, 4), r.randrange(1, 8), r.randrange(1, 4)
        return lambda y: torch.ops.aten.slice(y, dim, low, high, step)
    if kind == 2:
        return lambda y: y.select(dim, 0)
    if kind == 3:
        other = r.randrange(x.dim())
        return lambda y: y.transpose(dim, other)
    if kind == 4:
        return lambda y: y.unsqueeze(dim)
    if kind == 5:
        order = r.sample(range(x.dim()), x.dim())
        return lambda y: y.permute(order)
    if kind == 6:
        size, step = r.randrange(1, 3), r.randrange(1, 3)
        return lambda y: y.unfold(dim, size, step)
    if kind == 7:
        return lambda y: y.view(-1)
    if kind == 8:
        return lambda y: y.expand(2, *y.shape)
    return lambda y: y.diagonal() if y.dim() > 1 else y.narrow(0, 0, 1)


r_offset = 1


def is_ambiguous(x):
    """Whether places of x share elements in a way that PyTorch does not refuse, and orders as it likes."""
    sizes_and_strides = sorted((stride, size) for size, stride in zip(x.shape, x.stride()) if size > 1)
    reach = 0
    for stride, size in sizes_and_strides:
        if stride <= reach:
            return True
        reach += stride * (size - 1)
    return False


WRITES = [
    lambda x, y: x.add_(1), lambda x, y: x.mul_(2), lambda x, y: x.fill_(3), lambda x, y: x.zero_(),
    lambda x, y: x.copy_(y), lambda x, y: x.add_(y), lambda x, y: x.sub_(y, alpha=2), lambda x, y: x.clamp_(0, 50),
    lambda x, y: x.copy_(y.clone()), lambda x, y: torch.add(x, y, out=x), lambda x, y: x.masked_fill_(x > 3, 1),
]
READS = [lambda x: x.clone(), lambda x: x + 1, lambda x: x.contiguous(), lambda x: x.sum(-1) if x.dim() else x,
         lambda x: torch.cat([x, x]) if x.dim() else x, lambda x: x.reshape(-1), lambda x: torch.where(x > 2, x, -x)]


class Programs(unittest.TestCase):
    def attempt(self, action, *given):
        try:
            return action(*given), None
        except (RuntimeError, IndexError, ValueError) as error:
            return None, (type(error), str(error))

    def run_program(self, seed):
        r = random.Random(seed)
        dtype = r.choice([torch.float32, torch.float32, torch.int64, torch.float16])
        count = r.randrange(1, 48)
        cpu, ours = [(torch.arange(count) % 7).to(dtype)], [(torch.arange(count) % 7).to(dtype).to("tiny")]
        for step in range(r.randrange(2, 10)):
            k, other = r.randrange(len(cpu)), r.randrange(len(cpu))
            kind = r.random()
            if kind < 0.5:
                action = make_view(r, cpu[k])
                results = self.attempt(action, cpu[k]), self.attempt(action, ours[k])
            elif kind < 0.8:
                shared = cpu[k].untyped_storage().data_ptr() == cpu[other].untyped_storage().data_ptr()
                write = r.choice(WRITES)
                if is_ambiguous(cpu[k]) and 0 not in cpu[k].squeeze().stride() or (shared and k != other):
                    continue
                if is_ambiguous(cpu[k].squeeze()) and any(size > 1 and stride == 0 for size, stride in zip(cpu[k].shape, cpu[k].stride())):
                    write = r.choice(WRITES[:2])  # which PyTorch refuses
                results = self.attempt(write, cpu[k], cpu[other]), self.attempt(write, ours[k], ours[other])
                results = (None, results[0][1]), (None, results[1][1])
            else:
                action = r.choice(READS)
                results = self.attempt(action, cpu[k]), self.attempt(action, ours[k])
            self.assertEqual(*((error or (None,))[0] for _, error in results), (seed, step, results))
            if results[0][0] is not None and results[0][0].numel() < 4000:
                cpu.append(results[0][0])
                ours.append(results[1][0])
            if r.random() < 0.2:
                torch.tiny.synchronize()
        for x, y in zip(cpu, ours):
            self.assertEqual(layout(x), layout(y), seed)
            self.assertTrue(torch.equal(x, y.cpu()), (seed, x, y.cpu()))

    def test_random_programs(self):
        first = int(os.environ.get("TINY_SEED", "0"))
        for seed in range(first, first + PROGRAMS):
            with self.subTest(seed=seed):
                self.run_program(seed)


if __name__ == "__main__":
    unittest.main()
