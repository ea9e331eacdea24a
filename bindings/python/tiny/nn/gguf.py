"""Files of llama.cpp's: gguf_load gives what a .gguf says of its model, and the weights.

The file is mapped.  A quantised weight is an expression of its bytes, of ordinary operations: it becomes numbers where
it is used, in the kernel that uses it, or in memory by realize().  What is wrong with a file is a ValueError.
"""

import math
import os
import re
import struct

from .. import dtypes
from .._disk import OnDisk, open_path
from .._tensor import tensor as _tensor
from ..native import Tensor
from ._gguf_grids import grid
from ._tensor_io import reader

# ---- Fields of blocks [n, bytes]


def _half(blocks, at):
    """The float16 at a byte of each block, as float32 [n, 1]."""
    return blocks[:, at:at + 2].bitcast(dtypes.float16).cast(dtypes.float32)


def _fields(content, bits, run):
    """The fields of `bits` bits of each byte: of `run` bytes the lowest ones, then the next ones, and so on."""
    count, size = content.shape
    many = 8 // bits
    shifts = (content.context.arange(dtypes.uint8, many) * bits).reshape([many, 1])
    parts = content.reshape([count, size // run, 1, run]).shr(shifts).and_((1 << bits) - 1)
    return parts.reshape([count, size * many])


def _signs(content):
    """1 for each bit that is not set, and -1."""
    return 1 - _fields(content, 1, 1).cast(dtypes.float32) * 2


def _groups(values, size, *scales):
    """values [n, m], of which each `size` share a number of each scale: (values [n, m / size, size], scales [.., 1])."""
    count, total = values.shape
    return (values.cast(dtypes.float32).reshape([count, total // size, size]),
            *(one.reshape([count, total // size, 1]) for one in scales))


def _signed(values, minus):
    return values.cast(dtypes.float32) - minus


# ---- Formats

def _q4_0(b):
    return _half(b, 0) * _signed(_fields(b[:, 2:], 4, 16), 8)


def _q4_1(b):
    return _half(b, 0) * _fields(b[:, 4:], 4, 16) + _half(b, 2)


def _q5(b, at):
    return _fields(b[:, at + 4:], 4, 16).or_(_fields(b[:, at:at + 4], 1, 1).shl(4))


def _q5_0(b):
    return _half(b, 0) * _signed(_q5(b, 2), 16)


def _q5_1(b):
    return _half(b, 0) * _q5(b, 4) + _half(b, 2)


def _q8_0(b):
    return _half(b, 0) * b[:, 2:].bitcast(dtypes.int8)


def _k_scales(b):
    """Of a block's twelve bytes eight scales and eight minima of 6 bits: four of each whole, of the others the upper
    bits are in those."""
    first, second, low = b[:, 4:8], b[:, 8:12], b[:, 12:16]
    scales = first.and_(63).cat(low.and_(15).or_(first.shr(6).shl(4)), dim=1)
    least = second.and_(63).cat(low.shr(4).or_(second.shr(6).shl(4)), dim=1)
    return _half(b, 0) * scales, _half(b, 2) * least


def _k_weights(b, values):
    values, scale, least = _groups(values, 32, *_k_scales(b))
    return values * scale - least


def _q4_k(b):
    return _k_weights(b, _fields(b[:, 16:], 4, 32))


def _q5_k(b):
    return _k_weights(b, _fields(b[:, 48:], 4, 32).or_(_fields(b[:, 16:48], 1, 32).shl(4)))


def _q6_k(b):
    low, high = _fields(b[:, :128], 4, 64), _fields(b[:, 128:192], 2, 32)
    values, scale = _groups(_signed(low.or_(high.shl(4)), 32), 16, _half(b, 208) * b[:, 192:208].bitcast(dtypes.int8))
    return values * scale


def _points(name, numbers, signs, scale):
    """Points of a grid by number, each value with its sign, and a scale for as many as there are of them."""
    count = numbers.shape[0]
    values = grid(name, numbers.context)[numbers.cast(dtypes.int32)].reshape([count, -1]) * signs
    values, scale = _groups(values, values.shape[1] // scale.shape[1], scale)
    return values * scale


def _iq3_xxs(b):
    words = b[:, 66:98].bitcast(dtypes.uint32)
    shifts = b.context.arange(dtypes.uint32, 4) * 7
    seven = words.unsqueeze(2).shr(shifts).and_(127).reshape([-1, 32]).cast(dtypes.uint8)
    # The eighth sign makes the number of those that are minus even.
    odd = seven.xor(seven.shr(4))
    odd = odd.xor(odd.shr(2))
    odd = odd.xor(odd.shr(1)).and_(1)
    scale = _half(b, 0) * (words.shr(28).cast(dtypes.float32) + 0.5) * 0.5
    return _points("IQ3_XXS", b[:, 2:66], _signs(seven.or_(odd.shl(7))), scale)


def _iq3_s(b):
    numbers = b[:, 2:66].cast(dtypes.uint16).or_(_fields(b[:, 66:74], 1, 1).cast(dtypes.uint16).shl(8))
    scale = _half(b, 0) * (_fields(b[:, 106:110], 4, 1).cast(dtypes.float32) * 2 + 1)
    return _points("IQ3_S", numbers, _signs(b[:, 74:106]), scale)


def _iq2_s(b):
    numbers = b[:, 2:34].cast(dtypes.uint16).or_(_fields(b[:, 66:74], 2, 1).cast(dtypes.uint16).shl(8))
    scale = _half(b, 0) * (_fields(b[:, 74:82], 4, 1).cast(dtypes.float32) + 0.5) * 0.25
    return _points("IQ2_S", numbers, _signs(b[:, 34:66]), scale)


_IQ4 = (-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113)


def _looked_up(levels, numbers):
    return _tensor([float(one) for one in levels], context=numbers.context)[numbers.cast(dtypes.int32)]


def _iq4_xs(b):
    scale = _fields(b[:, 4:8], 4, 1).or_(_fields(b[:, 2:4], 2, 1).shl(4))
    values, scale = _groups(_looked_up(_IQ4, _fields(b[:, 8:], 4, 16)), 32, _half(b, 0) * _signed(scale, 32))
    return values * scale


_FP4 = (0, 1, 2, 3, 4, 6, 8, 12)


def _mxfp4(b):
    """Twice the values of 4-bit floats, and half of 2 to a power that is stored with 127 added."""
    power = b[:, :1].cast(dtypes.uint32)
    small = power.eq(0).where(0x00200000, 0x00400000).cast(dtypes.uint32)  # below the least normal number
    scale = (power < 2).where(small, (power - 1).shl(23)).bitcast(dtypes.float32)
    return _looked_up(_FP4 + tuple(-float(one) for one in _FP4), _fields(b[:, 1:], 4, 16)) * scale


def _q1_0(b):
    return b[:, :2].bitcast(dtypes.float16) * (_fields(b[:, 2:], 1, 1).cast(dtypes.float16) * 2 - 1)


# By ggml's numbers: the type; or what a block becomes, its elements and its bytes.
_NATIVE = {0: dtypes.float32, 1: dtypes.float16, 24: dtypes.int8, 25: dtypes.int16, 26: dtypes.int32,
           27: dtypes.int64, 28: dtypes.float64, 30: dtypes.bfloat16}
_BLOCKS = {2: (_q4_0, 32, 18), 3: (_q4_1, 32, 20), 6: (_q5_0, 32, 22), 7: (_q5_1, 32, 24), 8: (_q8_0, 32, 34),
           12: (_q4_k, 256, 144), 13: (_q5_k, 256, 176), 14: (_q6_k, 256, 210), 18: (_iq3_xxs, 256, 98),
           21: (_iq3_s, 256, 110), 22: (_iq2_s, 256, 82), 23: (_iq4_xs, 256, 136), 39: (_mxfp4, 32, 17),
           41: (_q1_0, 128, 18)}


def _off_disk(t):
    """A tensor of the file's bytes that is like any other; where the file can be written by others, a copy."""
    if not isinstance(t, OnDisk):
        return t
    return t._file.tensor(t._start, t.dtype, t.shape) if t._file.private and t._packed else Tensor.contiguous(t)


def _size_of(n, ggml_type):
    """The bytes of `n` elements."""
    if ggml_type in _NATIVE:
        return n * _NATIVE[ggml_type].itemsize
    if ggml_type not in _BLOCKS:
        raise ValueError(f"ggml_data_to_tensor: type {ggml_type}; known: {sorted((*_NATIVE, *_BLOCKS))}")
    _, elements, size = _BLOCKS[ggml_type]
    if n % elements:
        raise ValueError(f"ggml_data_to_tensor: {n} elements are not whole blocks of {elements}")
    return n // elements * size


def ggml_data_to_tensor(t, n, ggml_type) -> Tensor:
    """The first `n` elements, [n], of a tensor of bytes that ggml has in this format, by its number: float32, or what a
    format that is a type itself says."""
    size = _size_of(n, ggml_type)
    if n < 0 or size > t.shape[0]:
        raise ValueError(f"ggml_data_to_tensor: {n} elements of type {ggml_type} are {size} bytes, of {t.shape[0]}")
    if ggml_type in _NATIVE:
        return _off_disk(t[:size].bitcast(_NATIVE[ggml_type]))
    function, elements, block = _BLOCKS[ggml_type]
    return function(_off_disk(t[:size].reshape([n // elements, block]))).reshape([n])


# ---- The file

_NUMBERS = {0: "<B", 1: "<b", 2: "<H", 3: "<h", 4: "<I", 5: "<i", 6: "<f", 7: "<?", 10: "<Q", 11: "<q", 12: "<d"}
_TEXT, _ARRAY = 8, 9
_DEEP = 8  # arrays in arrays


class _Reader:
    """What a .gguf's header is made of."""

    def __init__(self, t):
        self.file, self.size = reader(t), t.shape[0]

    def take(self, count):
        content = self.file.read(count) if 0 <= count <= self.size else b""
        if len(content) != count:
            raise ValueError(f"it ends before {count} more bytes of its header")
        return content

    def number(self, kind):
        return struct.unpack(_NUMBERS[kind], self.take(struct.calcsize(_NUMBERS[kind])))[0]

    def text(self):
        return self.take(self.number(10)).decode("utf-8", "replace")

    def value(self, kind, deep=0):
        if kind in _NUMBERS:
            return self.number(kind)
        if kind == _TEXT:
            return self.text()
        if kind != _ARRAY or deep == _DEEP:
            raise ValueError(f"a value of type {kind}" + (f" in {deep} arrays" if deep else ""))
        kind, count = self.number(4), self.number(10)
        if kind in _NUMBERS:
            form = _NUMBERS[kind]
            content = self.take(count * struct.calcsize(form))
            return list(struct.unpack(f"<{count}{form[1]}", content))
        if count > self.size:
            raise ValueError(f"an array of {count} values")
        return [self.value(kind, deep + 1) for _ in range(count)]

    def info(self):
        """A tensor's name, its sizes, its type and where it is."""
        name, axes = self.text(), self.number(4)
        if axes > 16:
            raise ValueError(f"tensor {name!r} of {axes} axes")
        return name, [self.number(10) for _ in range(axes)], self.number(4), self.number(10)


def _parse(t):
    """(what is said of the model, the weights) of the bytes of one file."""
    r = _Reader(t)
    if r.take(4) != b"GGUF":
        raise ValueError("it does not begin with GGUF")
    version, tensors, pairs = r.number(4), r.number(10), r.number(10)
    if version not in (2, 3):
        raise ValueError(f"version {version}; known are 2 and 3")
    said = {}
    for _ in range(pairs):
        key = r.text()
        said[key] = r.value(r.number(4))
    infos = [r.info() for _ in range(tensors)]
    align = said.get("general.alignment", 32)
    if not isinstance(align, int) or align < 1:
        raise ValueError(f"general.alignment {align!r}")
    begin, weights = -(-r.file.tell() // align) * align, {}
    for name, sizes, kind, offset in infos:
        count = math.prod(sizes)
        try:
            size = _size_of(count, kind)
            if begin + offset + size > t.shape[0]:
                raise ValueError(f"{size} bytes from byte {begin + offset} on, of {t.shape[0]}")
            part = t[begin + offset:begin + offset + size]
            weights[name] = ggml_data_to_tensor(part, count, kind).reshape(list(reversed(sizes)))
        except (ValueError, RuntimeError) as error:
            raise ValueError(f"tensor {name!r} of sizes {sizes}: {error}") from error
    return said, weights


def _paths(path, said):
    """The files of a model that is split."""
    total = said.get("split.count", 1)
    if not isinstance(total, int) or total <= 1:
        return [path]
    found = re.fullmatch(r"(.*)-00001-of-\d{5}\.gguf", os.fspath(path), re.DOTALL)
    if said.get("split.no", 0) != 0 or not found:
        raise ValueError(f"it is split into {total} files: the path of the first one is wanted, NAME-00001-of-{total:05}.gguf")
    return [path, *(f"{found[1]}-{i:05}-of-{total:05}.gguf" for i in range(2, total + 1))]


def gguf_load(fn) -> tuple[dict, dict[str, Tensor]]:
    """What a .gguf says of its model by key, and its weights by name; of a path, also of the first of several files, or
    of a tensor of bytes."""
    try:
        if isinstance(fn, Tensor):
            said, weights = _parse(fn)
            if said.get("split.count", 1) != 1:
                raise ValueError("it is split into several files: a path is wanted")
            return said, weights
        said, weights = _parse(open_path(fn, private=True))
        for path in _paths(fn, said)[1:]:
            weights.update(_parse(open_path(path, private=True))[1])
        return said, weights
    except (ValueError, OverflowError, MemoryError) as error:
        raise ValueError(f"gguf_load: {'the tensor' if isinstance(fn, Tensor) else fn}: {error}") from error
