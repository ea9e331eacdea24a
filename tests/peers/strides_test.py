"""Views of memory and writes through them: random programs in the engine, in PyTorch on the CPU and in NumPy.

    PYTHONPATH=build/release/bindings/python strides_test.py [--programs N] [--seed S] [--only K] [--device NAME]

A program has two memories of one or several dtypes and makes views of them (as_strided of any strides, slices, axes in
other orders, windows, ..), writes through views, reads before and after writes, and computes what is pending at random
places.  What it says of views must be PyTorch's: shape, strides, offset, and which are refused; negative strides, which
PyTorch has not, are NumPy's.  A value is of before the write, whatever it reads: where a write overlaps what it reads
PyTorch says nothing, and a copy of the value is written here.  All memory is compared in the end, gaps included.
100,000 programs: --programs 100000 (ten minutes).  --only K runs program K of the seed and prints its statements.
"""

import argparse
import random
import sys
import time

try:
    import numpy as np
    import tiny
    import torch
    from tiny import strides as tiny_strides
except ImportError as missing:
    print(f"skipped: this interpreter lacks {missing.name}; scripts/setup.sh makes one that has it")
    sys.exit(77)

DTYPES = {"float32": torch.float32, "float16": torch.float16, "int64": torch.int64, "int32": torch.int32,
          "uint8": torch.uint8, "bool": torch.bool, "float64": torch.float64}
REFUSED = ("unsupported operation: more than one element of the written-to tensor refers to a single memory location. "
           "Please clone() the tensor before performing the operation.")
ELEMENTS = 48  # of a memory, at most
RANK = 4


class Different(Exception):
    """The engine and its peers do not agree."""


class View:
    """One view, three times: PyTorch's (None where strides are negative), NumPy's and the engine's."""

    def __init__(self, memory, peer, array, own):
        self.memory, self.torch, self.numpy, self.own = memory, peer, array, own

    def overlaps_itself(self):
        flat = self.memory.places(self.numpy)
        return len(np.unique(flat)) != flat.size

    def values(self):
        return torch.from_numpy(self.numpy.copy(order="C"))


class Memory:
    """A row of elements that PyTorch and NumPy share, and the engine's of the same values."""

    def __init__(self, numbers, own):
        self.numpy = numbers
        self.dtype, self.count = str(numbers.dtype), numbers.size
        self.torch = torch.from_numpy(self.numpy)
        self.own = own
        self.whole = View(self, self.torch, self.numpy, self.own)
        self.begin = self.numpy.__array_interface__["data"][0]

    @classmethod
    def drawn(cls, program, dtype):
        """Numbers copied, computed, or written into memory that strides say the size of."""
        count, how = program.random.randint(1, ELEMENTS), program.random.randrange(3)
        low, high = (0, 2) if dtype == "bool" else (0, 100) if dtype == "uint8" else (-50, 50)
        numbers = np.array([program.random.randrange(low, high) for _ in range(count)], dtype)
        own = tiny.tensor(numbers, context=program.context)
        program.said.append(f"memory of {count} {dtype}, {('copied', 'computed', 'written')[how]}")
        if how == 1:
            own = own.cast("float64").mul(1).cast(dtype)
        if how == 2:
            empty = tiny_strides.empty_strided((count,), (1,), dtype, program.context)
            empty.assign(own)
            own = empty
        return cls(numbers, own)

    def places(self, array):
        """Which elements an array has, of its memory."""
        size = self.numpy.itemsize
        first = (array.__array_interface__["data"][0] - self.begin) // size
        found = np.array(first)
        for axis, (count, step) in enumerate(zip(array.shape, array.strides)):
            shape = [1] * array.ndim
            shape[axis] = count
            found = found + (np.arange(count) * (step // size)).reshape(shape)
        return np.broadcast_to(found, array.shape).reshape(-1)


class Program:
    """Random statements, each of which is compared as it is made."""

    def __init__(self, seed, context):
        self.random, self.context, self.said = random.Random(seed), context, []
        dtypes = [self.random.choice(list(DTYPES)) for _ in range(2)]
        self.memories = [Memory.drawn(self, dtype) for dtype in dtypes]
        self.views = [memory.whole for memory in self.memories]
        self.read_later = []  # what was built, and what it was worth then

    def run(self):
        for _ in range(self.random.randint(2, 9)):
            if self.random.random() < 0.5:
                self.make_view()
            else:
                self.random.choice((self.write, self.write, self.update, self.build, self.derive, self.compute,
                                    self.rebuild))()
        for own, want in self.read_later:
            self.same(own, want)
        self.random.shuffle(self.views)
        for view in self.views + [memory.whole for memory in self.memories]:
            self.same(view.own, view.numpy)

    def say(self, text):
        self.said.append(text)

    def name(self, view):
        return f"v{self.views.index(view)}"

    # ---- Views

    def make_view(self):
        view = self.random.choice(self.views)
        makers = [self.as_strided, self.as_strided, self.slice, self.permute, self.expand, self.select, self.reshape,
                  self.flip, self.unsqueeze, self.split]
        made = self.random.choice(makers)(view)
        if made is not None:
            self.described(made)
            self.views.append(made)

    def described(self, view):
        """What the engine says of a view is what its peers say."""
        size = view.numpy.itemsize
        steps = tuple(step // size for step in view.numpy.strides)
        offset = (view.numpy.__array_interface__["data"][0] - view.memory.begin) // size
        if view.torch is not None:
            steps, offset = view.torch.stride(), view.torch.storage_offset()
        if tuple(view.own.shape) != view.numpy.shape:
            raise Different(f"shape {view.own.shape}, wanted {view.numpy.shape}")
        if not view.numpy.size:
            return
        moved = [axis for axis, count in enumerate(view.numpy.shape) if count > 1]
        if [view.own.strides[axis] for axis in moved] != [steps[axis] for axis in moved] or view.own.offset != offset:
            raise Different(f"strides {view.own.strides} from {view.own.offset}, wanted {steps} from {offset}")

    def as_strided(self, view):
        """Anywhere in the memory, now and then beyond it."""
        rank = self.random.randint(0, RANK)
        dims = [self.random.choice((0, 1, 2, 2, 3, 3, 4)) for _ in range(rank)]
        low = -4 if self.random.random() < 0.3 else 0
        steps = [self.random.randint(low, 8) for _ in dims]
        offset = self.random.randint(0, 12)
        memory = view.memory
        self.say(f"v{len(self.views)} = {self.name(view)}.as_strided({dims}, {steps}, at {offset})")
        reach = [(count - 1) * step for count, step in zip(dims, steps)]
        lowest, highest = offset + sum(min(one, 0) for one in reach), offset + sum(max(one, 0) for one in reach)
        legal = 0 in dims or (lowest >= 0 and highest < memory.count)
        peer = None
        try:
            peer = view.torch.as_strided(dims, steps, offset) if view.torch is not None else None
        except RuntimeError as error:
            negative = any(step < 0 for step in steps)
            if legal and not negative:
                raise Different(f"PyTorch refuses: {error}") from error
        try:
            own = view.own.as_strided(dims, steps, offset - view.own.offset)
        except ValueError as error:
            if legal:
                raise Different(f"refused: {error}") from error
            return None
        if not legal:
            raise Different("a view beyond its memory was made")
        if (tuple(own.strides), own.offset) != (tuple(steps), offset):
            raise Different(f"strides {own.strides} from {own.offset}")
        size = memory.numpy.itemsize
        if 0 in dims:
            return None
        array = np.lib.stride_tricks.as_strided(memory.numpy[offset:], dims, [step * size for step in steps])
        return View(memory, peer, array, own)

    def indexed(self, view, index, said):
        """An index that NumPy and the engine take alike, and PyTorch where its steps go forwards."""
        self.say(f"v{len(self.views)} = {self.name(view)}{said}")
        backwards = any(isinstance(one, slice) and (one.step or 1) < 0 for one in index)
        peer = None if view.torch is None or backwards else view.torch[index]
        # NumPy has a number instead of a view unless there is an ellipsis.
        return View(view.memory, peer, view.numpy[(*index, ...)], view.own[index])

    def slice(self, view):
        index = []
        for count in view.numpy.shape:
            low, high = self.random.randint(-count - 1, count + 1), self.random.randint(-count - 1, count + 1)
            step = self.random.choice((1, 1, 2, 3, -1, -2))
            index.append(slice(self.random.choice((None, low)), self.random.choice((None, high)), step))
        return self.indexed(view, tuple(index), f"[{index}]")

    def select(self, view):
        places = [axis for axis, count in enumerate(view.numpy.shape) if count]
        if not places:
            return None
        axis = self.random.choice(places)
        at = self.random.randint(-view.numpy.shape[axis], view.numpy.shape[axis] - 1)
        return self.indexed(view, (slice(None),) * axis + (at,), f".select({axis}, {at})")

    def permute(self, view):
        order = list(range(view.numpy.ndim))
        self.random.shuffle(order)
        self.say(f"v{len(self.views)} = {self.name(view)}.permute({order})")
        peer = None if view.torch is None else view.torch.permute(order)
        return View(view.memory, peer, view.numpy.transpose(order), view.own.permute(order))

    def flip(self, view):
        axes = [axis for axis in range(view.numpy.ndim) if self.random.random() < 0.5]
        self.say(f"v{len(self.views)} = {self.name(view)}.flip({axes}) as a view")
        array = np.flip(view.numpy, axes) if axes else view.numpy
        return View(view.memory, view.torch if not axes else None, array, view.own.flip(axes))

    def expand(self, view):
        if view.numpy.ndim >= RANK:
            return None
        shape = [self.random.randint(1, 3) if count == 1 else count for count in (1, *view.numpy.shape)]
        self.say(f"v{len(self.views)} = {self.name(view)}.expand({shape})")
        peer = None if view.torch is None else view.torch.expand(shape)
        array = np.lib.stride_tricks.as_strided(
            view.numpy, shape, [0, *(0 if count == 1 else step
                                     for count, step in zip(view.numpy.shape, view.numpy.strides))])
        return View(view.memory, peer, array, view.own.expand(shape))

    def unsqueeze(self, view):
        if view.numpy.ndim >= RANK:
            return None
        axis = self.random.randint(0, view.numpy.ndim)
        self.say(f"v{len(self.views)} = {self.name(view)}.unsqueeze({axis})")
        peer = None if view.torch is None else view.torch.unsqueeze(axis)
        return View(view.memory, peer, np.expand_dims(view.numpy, axis), view.own.unsqueeze(axis))

    def reshape(self, view):
        """What PyTorch's view() can have of it."""
        count = view.numpy.size
        if view.torch is None or not count:
            return None
        parts = [part for part in range(1, count + 1) if count % part == 0]
        first = self.random.choice(parts)
        shape = self.random.choice(([count], [first, count // first]))
        try:
            peer = view.torch.view(shape)
        except RuntimeError:
            return None
        self.say(f"v{len(self.views)} = {self.name(view)}.view({shape})")
        size = view.numpy.itemsize
        array = np.lib.stride_tricks.as_strided(view.memory.numpy[peer.storage_offset():], shape,
                                                [step * size for step in peer.stride()])
        return View(view.memory, peer, array, view.own.reshape(shape))

    def split(self, view):
        places = [axis for axis, count in enumerate(view.numpy.shape) if count]
        if not places:
            return None
        axis = self.random.choice(places)
        size = self.random.randint(1, view.numpy.shape[axis])
        parts = view.own.split(size, dim=axis)
        wanted = range(0, view.numpy.shape[axis], size)
        if len(parts) != len(wanted):
            raise Different(f"{len(parts)} parts, wanted {len(wanted)}")
        k = self.random.randrange(len(parts))
        self.say(f"v{len(self.views)} = {self.name(view)}.split({size}, {axis})[{k}]")
        index = (slice(None),) * axis + (slice(k * size, (k + 1) * size),)
        peer = None if view.torch is None else view.torch[index]
        return View(view.memory, peer, view.numpy[(*index, ...)], parts[k])

    # ---- Statements

    def value(self, shape, dtype):
        """Something that broadcasts to the shape, in the dtype: PyTorch's now, and the engine's."""
        fitting = [view for view in self.views
                   if self.broadcasts(view.numpy.shape, shape) and self.converts(view.numpy, dtype)]
        if not fitting or self.random.random() < 0.2:
            number = self.random.randint(0, 1) if dtype == "bool" else self.random.randint(0, 20)
            return torch.tensor(number, dtype=DTYPES[dtype]), self.context.full(tiny.dtypes.__dict__[dtype], [], number), \
                str(number)
        view = self.random.choice(fitting)
        return view.values().to(DTYPES[dtype]), view.own.cast(dtype), f"{self.name(view)} as {dtype}"

    @staticmethod
    def converts(array, dtype):
        """Whether it is defined what becomes of the elements: floats of no integer of that dtype are processors' own."""
        if array.dtype.kind != "f" or dtype == "bool" or np.dtype(dtype).kind == "f":
            return True
        limits = np.iinfo(dtype)
        return bool(np.all((array >= limits.min) & (array <= limits.max)))

    @staticmethod
    def broadcasts(shape, target):
        behind = target[len(target) - len(shape):]
        return len(shape) <= len(target) and all(one in (1, all_) for one, all_ in zip(shape, behind))

    def written(self, view, value, own):
        """The value through the view; whether it was."""
        if view.numpy.size and view.overlaps_itself():
            try:
                view.own.assign(own)
            except tiny.Error as error:
                if REFUSED not in str(error):
                    raise Different(f"refused with other words: {error}") from error
                return
            raise Different("a view that overlaps itself was written")
        view.own.assign(own)
        np.copyto(view.numpy, torch.broadcast_to(value, view.numpy.shape).numpy())

    def write(self):
        view = self.random.choice(self.views)
        value, own, said = self.value(view.numpy.shape, view.memory.dtype)
        self.say(f"{self.name(view)}[...] = {said}")
        if tuple(own.shape) != view.numpy.shape:
            own = own.expand(list(view.numpy.shape))
        self.written(view, value.clone(), own)

    def update(self):
        """In place, of the elements that are there and another value."""
        view = self.random.choice(self.views)
        dtype = view.memory.dtype
        value, own, said = self.value(view.numpy.shape, dtype)
        logical = dtype == "bool"
        self.say(f"{self.name(view)} {'^' if logical else '+'}= {said}")
        mine = view.own ^ own if logical else view.own + own
        now = view.values()
        self.written(view, now ^ value if logical else now + value, mine)

    def build(self):
        """What is computed later, of the elements as they are now."""
        view = self.random.choice(self.views)
        factor = 1 if view.memory.dtype == "bool" else 2
        self.say(f"{self.name(view)} * {factor}, read at the end")
        own = view.own if factor == 1 else view.own * 2
        if factor == 1:
            own = own.cast("int32")
        want = view.values().to(torch.int32) if factor == 1 else view.values() * 2
        self.read_later.append((own, want.numpy()))

    def derive(self):
        """A value of its own, not computed yet, of the elements as they are now: views of it are of its memory."""
        view = self.random.choice(self.views)
        floats, own = view.values().to(torch.float64), view.own.cast("float64").mul(1)
        how = self.random.choice(("row", "twice", "padded", "sums"))
        if how == "sums" and floats.ndim:
            floats, own = floats.sum(0), own.sum(axes=0)
        floats, own = floats.reshape(-1), own.reshape(-1)
        if how == "twice":
            floats, own = torch.cat([floats, floats]), own.cat(own, dim=0)
        if how == "padded":
            floats, own = torch.nn.functional.pad(floats, (1, 2)), own.pad((1, 2))
        if not 0 < floats.numel() <= 4 * ELEMENTS:
            return
        dtype = self.random.choice([one for one in DTYPES if self.converts(floats.numpy(), one)])
        self.say(f"v{len(self.views)} = {self.name(view)}, {how}, as {dtype}")
        self.memories.append(Memory(floats.to(DTYPES[dtype]).numpy().copy(), own.cast(dtype)))
        self.views.append(self.memories[-1].whole)

    def compute(self):
        view = self.random.choice(self.views)
        self.say(f"realize {self.name(view)}")
        view.own.realize()
        self.same(view.own, view.numpy)

    def rebuild(self):
        """A view by movement of its memory: the same one."""
        view = self.random.choice(self.views)
        memory = view.memory
        size = memory.numpy.itemsize
        if not view.numpy.size:
            return
        steps = [step // size for step in view.numpy.strides]
        offset = (view.numpy.__array_interface__["data"][0] - memory.begin) // size
        self.say(f"v{len(self.views)} = {self.name(view)} by movement")
        own = memory.own
        for op in tiny_strides.to_movement_ops(view.numpy.shape, steps, offset, context=self.context):
            own = tiny_strides.apply_movement_op(own, op)
        made = View(memory, view.torch, view.numpy, own)
        self.described(made)
        self.views.append(made)

    def same(self, own, want):
        got = own.numpy()
        if not np.array_equal(got, want, equal_nan=got.dtype.kind == "f"):
            raise Different(f"got {got.tolist()}, wanted {want.tolist()}")


def run_one(seed, k, context):
    """Whether program k is right; it is printed where it is not."""
    program = None
    try:
        with np.errstate(all="ignore"):
            program = Program(seed * 1_000_003 + k, context)
            program.run()
        return True
    except (Different, tiny.Error, ValueError, IndexError, TypeError) as error:
        print(f"program {k} of seed {seed}: {type(error).__name__}: {error}")
        print("\n".join(f"  {line}" for line in (program.said if program else [])))
        return False


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--programs", type=int, default=1500)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", type=int)
    parser.add_argument("--device", default="cpu")
    arguments = parser.parse_args()
    context = tiny.Context(cache=0, threads=1, device=arguments.device)
    wrong, begin = 0, time.monotonic()
    for k in [arguments.only] if arguments.only is not None else range(arguments.programs):
        wrong += not run_one(arguments.seed, k, context)
        if wrong >= 10:
            break
    count = 1 if arguments.only is not None else arguments.programs
    print(f"{count} programs, {wrong} wrong, {time.monotonic() - begin:.1f} s, device {arguments.device}, "
          f"torch {torch.__version__}, NumPy {np.__version__}")
    return wrong != 0


if __name__ == "__main__":
    sys.exit(main())
