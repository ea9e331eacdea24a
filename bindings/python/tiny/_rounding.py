"""Numbers as an element type holds them: rounded, wrapped, and their bits."""

import bisect
import functools
import math
import struct

from . import _dtype
from ._dtype import finfo, of


def float_to_fp16(x) -> float:
    """The nearest float16; beyond the greatest one infinity."""
    try:
        return struct.unpack("e", struct.pack("e", x))[0]
    except OverflowError:
        return math.copysign(math.inf, x)


def _to_float32(x):
    try:
        return struct.unpack("f", struct.pack("f", x))[0]
    except OverflowError:
        return math.copysign(math.inf, x)


def float_to_bf16(x) -> float:
    """The nearest bfloat16, of two the one with an even last bit."""
    if not math.isfinite(x):
        return x
    bits = int.from_bytes(struct.pack("<f", _to_float32(x)), "little")
    bits += 0x7fff + (bits >> 16 & 1)
    return struct.unpack("<f", struct.pack("<I", bits & 0xffff0000))[0]


@functools.cache
def _magnitudes(kind):
    """The finite values of an 8-bit float from 0 up: that at place k has the bits k."""
    exponents, mantissas = finfo(kind)
    fnuz = kind.name.endswith("fnuz")
    bias = (1 << (exponents - 1)) - (0 if fnuz else 1)
    # What is left out at the end stands for infinity or for no number.
    special = 0 if fnuz else 1 if kind.name == "float8_e4m3fn" else 1 << mantissas
    found = []
    for bits in range(128 - special):
        exponent, mantissa = bits >> mantissas, bits & ((1 << mantissas) - 1)
        lead = 1 if exponent else 0
        found.append(math.ldexp(lead + mantissa / (1 << mantissas), max(exponent, 1) - bias))
    return found


def float_to_fp8(x, dtype) -> int:
    """The bits of the nearest value, of two the even one; a finite number beyond the greatest becomes that one."""
    kind = of(dtype)
    values = _magnitudes(kind)
    sign = 0x80 if math.copysign(1, x) < 0 else 0
    if not math.isfinite(x):
        if kind.name.endswith("fnuz"):
            return 0x80  # its only value that is no number
        return sign | (0x7c if math.isinf(x) and kind.name == "float8_e5m2" else 0x7f)
    above = bisect.bisect_left(values, abs(x))
    if above == len(values):
        bits = len(values) - 1
    elif above == 0:
        bits = 0
    else:
        below, middle = above - 1, (values[above - 1] + values[above]) / 2
        bits = above if abs(x) > middle or abs(x) == middle and above % 2 == 0 else below
    return 0 if bits == 0 and kind.name.endswith("fnuz") else sign | bits


def fp8_to_float(x, dtype) -> float:
    """The value of the bits."""
    kind = of(dtype)
    values = _magnitudes(kind)
    if kind.name.endswith("fnuz") and x == 0x80:
        return math.nan
    bits, sign = x & 0x7f, -1.0 if x & 0x80 else 1.0
    if bits < len(values):
        return math.copysign(values[bits], sign)
    return math.copysign(math.inf if kind.name == "float8_e5m2" and bits == 0x7c else math.nan, sign)


def _wrapped(kind):
    return lambda x: (int(x) - kind.min) % (1 << kind.bitsize) + kind.min


def _truncations():
    """{type: what makes a number of Python's one that the type holds}."""
    exact = {"bool": bool, "float16": float_to_fp16, "bfloat16": lambda x: float_to_bf16(float(x)),
             "float32": _to_float32, "float64": float}
    found = {}
    for kind in _dtype._kinds.values():
        if kind.name in exact:
            found[kind] = exact[kind.name]
        elif kind.name.startswith("float8"):
            found[kind] = lambda x, kind=kind: fp8_to_float(float_to_fp8(float(x), kind), kind)
        elif kind > 0:
            found[kind] = _wrapped(kind)
    return found


truncate = _truncations()


def storage_fmt_for_dtype(dtype):
    """struct's letter for the bits of an element."""
    kind = of(dtype)
    return kind.fmt or {1: "B", 2: "H"}[kind.itemsize]


def to_storage_scalar(x, dtype):
    """What struct packs of a number: the bits of a float that has no letter."""
    kind = of(dtype)
    if kind.name == "float16":
        return float_to_fp16(x)
    if kind.name == "bfloat16":
        return int.from_bytes(struct.pack("<f", float_to_bf16(x)), "little") >> 16
    return float_to_fp8(float(x), kind) if kind.name.startswith("float8") else x


def from_storage_scalar(x, dtype):
    """The number of what struct unpacked."""
    kind = of(dtype)
    if kind.name == "bfloat16":
        return struct.unpack("<f", struct.pack("<I", (x & 0xffff) << 16))[0]
    return fp8_to_float(int(x), kind) if kind.name.startswith("float8") else x


def bitcast(x, in_dtype, out_dtype):
    """The number whose bits as one type are those of `x` as another of the same size."""
    one, other = of(in_dtype), of(out_dtype)
    if one.itemsize != other.itemsize:
        raise ValueError(f"bitcast: {one} has {one.itemsize} bytes, {other} has {other.itemsize}")
    bits = struct.pack(storage_fmt_for_dtype(one), to_storage_scalar(x, one))
    return from_storage_scalar(struct.unpack(storage_fmt_for_dtype(other), bits)[0], other)
