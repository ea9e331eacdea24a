"""Sequences, whole numbers and memory, as programs in tinygrad's style handle them."""

import functools
import operator
import os


def prod(values):
    """The product; 1 of nothing."""
    return functools.reduce(operator.mul, values, 1)


def dedup(values) -> list:
    """Each of them once, in the order in which they come."""
    return list(dict.fromkeys(values))


def argfix(*values) -> tuple:
    """f(2, 3), f((2, 3)) and f([2, 3]) name the same."""
    if values and isinstance(values[0], (tuple, list)):
        if len(values) != 1:
            raise ValueError(f"argfix: one sequence, or its elements, not {values}")
        return tuple(values[0])
    return values


def argsort(values):
    """The places of the elements in ascending order, as a sequence of the same type."""
    return type(values)(sorted(range(len(values)), key=values.__getitem__))


def all_same(values) -> bool:
    return all(value == values[0] for value in values)


def all_int(values) -> bool:
    return all(isinstance(value, int) for value in values)


def get_shape(nested) -> tuple:
    """The shape of nested sequences."""
    if not hasattr(nested, "__len__") or isinstance(nested, str) or getattr(nested, "shape", None) == ():
        return ()
    parts = [get_shape(part) for part in nested]
    if not all_same(parts):
        raise ValueError(f"nested sequences of different lengths: {nested}")
    return (len(parts), *(parts[0] if parts else ()))


def make_tuple(value, count) -> tuple:
    """One number stands for all."""
    return (value,) * count if isinstance(value, int) else tuple(value)


def to_tuple(value) -> tuple:
    return value if isinstance(value, tuple) else (value,)


def flatten(lists) -> list:
    """The elements of the elements."""
    return [value for part in lists for value in part]


def fully_flatten(nested) -> list:
    """The elements at every depth."""
    if isinstance(nested, str) or not (hasattr(nested, "__len__") and hasattr(nested, "__getitem__")):
        return [nested]
    if getattr(nested, "shape", None) == ():
        return [nested[()]]
    return [value for part in nested for value in fully_flatten(part)]


def merge_dicts(dicts) -> dict:
    """All of them as one; RuntimeError if they differ about a key."""
    made = {}
    for one in dicts:
        for key, value in one.items():
            if key in made and made[key] != value:
                raise RuntimeError(f"merge_dicts: {key!r} is {made[key]!r} and {value!r}")
            made[key] = value
    return made


def partition(values, is_first) -> tuple:
    """Those for which the function is true, and the others."""
    parts = [], []
    for value in values:
        parts[0 if is_first(value) else 1].append(value)
    return parts


def unwrap(value):
    """The value, which is not None."""
    if value is None:
        raise AssertionError("unwrap: it is None")
    return value


def get_single_element(values):
    """The one element of a sequence."""
    if len(values) != 1:
        raise AssertionError(f"one element is wanted, not {values}")
    return values[0]


def get_child(thing, path):
    """What a path such as "layers.0.weight" leads to, by attributes, keys and places."""
    for name in path.split("."):
        thing = thing[int(name)] if name.isnumeric() else thing[name] if isinstance(thing, dict) else getattr(thing, name)
    return thing


def fromimport(module, name):
    """from module import name."""
    return getattr(__import__(module, fromlist=[name]), name)


# ---- Whole numbers

def ceildiv(number, by):
    """Rounded up."""
    found = -(number // -by)
    return int(found) if isinstance(found, float) else found


def round_up(number, by):
    """To a multiple."""
    return ceildiv(number, by) * by


def round_down(number, by):
    """To a multiple."""
    return -round_up(-number, by)


def next_power2(number) -> int:
    """The least power of 2 that is not below it."""
    return 1 if number == 0 else 1 << (number - 1).bit_length()


def cdiv(x, y) -> int:
    """x / y without the fraction, as C has it; 0 for y = 0."""
    return 0 if y == 0 else abs(x) // abs(y) * (-1 if (x < 0) != (y < 0) else 1)


def cmod(x, y) -> int:
    """What cdiv leaves, with the sign of x."""
    return x - cdiv(x, y) * y


def floordiv(x, y) -> int:
    """0 for y = 0."""
    return 0 if y == 0 else x // y


def floormod(x, y) -> int:
    """What floordiv leaves."""
    return x - floordiv(x, y) * y


def lo32(number):
    return number & 0xFFFFFFFF


def hi32(number):
    return number >> 32


def data64(number) -> tuple:
    """The upper and the lower 32 bits."""
    return hi32(number), lo32(number)


def data64_le(number) -> tuple:
    """The lower and the upper 32 bits."""
    return lo32(number), hi32(number)


def getbits(number, first, last) -> int:
    """Bits first to last, both among them."""
    return (number >> first) & ((1 << (last - first + 1)) - 1)


def i2u(bits, number) -> int:
    """A negative number as the unsigned one of the same bits."""
    return number if number >= 0 else (1 << bits) + number


def polyN(x, coefficients):
    """The polynomial of x, whose first coefficient is of the highest power."""
    return functools.reduce(lambda made, coefficient: made * x + coefficient, coefficients, 0.0)


class count:
    """start, start + step, .. of next()."""

    def __init__(self, start=0, step=1):
        self.n, self.step = start, step

    def __next__(self):
        self.n += self.step
        return self.n - self.step


# ---- Memory and files

def from_mv(view, kind=None):
    """The memory of a memoryview as an array of ctypes."""
    import ctypes
    kind = kind or ctypes.c_char
    return ctypes.cast(ctypes.addressof(kind.from_buffer(view)), ctypes.POINTER(kind * len(view))).contents


def to_mv(address, size) -> memoryview:
    """`size` bytes of memory."""
    import ctypes
    return memoryview((ctypes.c_uint8 * size).from_address(address)).cast("B")


def mv_address(view) -> int:
    """Where the memory of a memoryview is."""
    import ctypes
    return ctypes.addressof(ctypes.c_char.from_buffer(view))


def flat_mv(view) -> memoryview:
    """The bytes of a memoryview."""
    return view if len(view) == 0 else view.cast("B", shape=(view.nbytes,))


def temp(name, append_user=False) -> str:
    """A path for files that need not last."""
    import getpass
    import tempfile
    return os.path.join(tempfile.gettempdir(), f"{name}.{getpass.getuser()}" if append_user else name)


def strides_for_shape(shape) -> tuple:
    """Of elements in rows, the last axis being the densest; 0 of an axis of one."""
    strides, step = [], 1
    for size in reversed(shape):
        strides.append(step)
        step *= size
    return canonicalize_strides(shape, tuple(reversed(strides)))


def canonicalize_strides(shape, strides) -> tuple:
    """The strides, with 0 for an axis of one, which has none."""
    return tuple(0 if size == 1 else stride for size, stride in zip(shape, strides))


def pad_bytes(b, align) -> bytes:
    """Zeros behind, up to a multiple of `align`."""
    return b + bytes(-len(b) % align)


def to_be32(val) -> int:
    """The bytes of 32 bits in the other order."""
    return int.from_bytes((val & 0xFFFFFFFF).to_bytes(4, "little"), "big")


def to_be64(val) -> int:
    return int.from_bytes((val & 0xFFFFFFFFFFFFFFFF).to_bytes(8, "little"), "big")


def flat_to_grouped(padding) -> tuple:
    """(last before, last after, the axis before, ..) as pairs of axes from the first on."""
    return tuple(zip(padding[-2::-2], padding[::-2]))


def resolve_pool_pads(padding, dims) -> list:
    """One number for all sides, one for each axis, or a pair of each, as the pairs, the last axis first."""
    if isinstance(padding, int):
        return [padding] * (2 * dims)
    if len(padding) == 2 * dims:
        return padding
    if len(padding) == dims:
        return [side for side in reversed(padding) for _ in range(2)]
    raise ValueError(f"Padding must be an int or a sequence of length {dims} or {2 * dims}, but got {padding=} with {dims=}.")
