"""tinygrad.dtype on tiny's element types."""

import enum
import functools

from ... import dtypes
from ..._dtype import DType, finfo, least_upper_dtype, least_upper_float  # noqa: F401
from ..._dtype import known, of as to_dtype, strong as strong_dtype, supported, weakfloat, weakint
from ..._invalid import ConstFloat, Invalid, InvalidType  # noqa: F401
from ..._rounding import (  # noqa: F401
    bitcast, float_to_bf16, float_to_fp16, float_to_fp8, fp8_to_float, from_storage_scalar, storage_fmt_for_dtype,
    to_storage_scalar, truncate)

DTypes = type(dtypes)
DTypeLike = str | DType
PyConst = float | int | bool
ConstType = PyConst | InvalidType
FmtStr = str


class AddrSpace(enum.IntEnum):
    """Where memory of a kernel is."""
    GLOBAL = 1
    LOCAL = 2
    REG = 3
    ALU = 4

    def __repr__(self):
        return f"AddrSpace.{self.name}"
    __str__ = __repr__


# The types that tensors have; of each all its names.
DTYPES_DICT = {name: kind for name, kind in vars(dtypes).items()
               if not name.startswith("_") and isinstance(kind, DType) and kind in supported}
INVERSE_DTYPES_DICT = {kind.name: name for name, kind in DTYPES_DICT.items()}


def weak_dtype(dtype):
    """The weak type of its kind."""
    return weakfloat if dtype.is_float else weakint if dtype.is_int else dtype


@functools.cache
def can_lossless_cast(dt0, dt1):
    """Whether every value of the first type is one of the second."""
    if dt0 is dt1 or dt0 is dtypes.bool:
        return True
    if dt1 is weakint:
        return dt0.is_int
    if dt1 is dtypes.bool or dt0.is_float and not dt1.is_float or dt1.name.startswith(("float8", "bfloat16")):
        return False
    if dt0.is_float:
        return all(a <= b for a, b in zip(finfo(dt0), finfo(dt1)))
    bits = dt0.bitsize - dt0.is_signed
    if dt1.is_float:
        return bits <= finfo(dt1)[1] + 1
    return bits <= dt1.bitsize - dt1.is_signed and (dt1.is_signed or not dt0.is_signed)


def sum_acc_dtype(dt):
    """What a sum of such elements is."""
    if dt.is_float:
        return least_upper_dtype(dt, dtypes.float32)
    return least_upper_dtype(dt, dtypes.int32 if dt.is_signed or dt is dtypes.bool else dtypes.uint32)


def _to_np_dtype(dtype):
    """NumPy's type; float32 for floats that it has not."""
    import numpy
    kind = strong_dtype(dtype)
    return numpy.dtype(kind.fmt or "f").type if kind.is_float or kind.fmt else None


def _from_np_dtype(npdtype):
    import numpy
    return to_dtype(numpy.dtype(npdtype).name)


def _to_torch_dtype(dtype):
    """PyTorch's type, or None; bytes stand for 8-bit floats."""
    import torch
    kind = strong_dtype(dtype)
    return torch.uint8 if kind.name.startswith("float8") else getattr(torch, kind.name, None)


def _from_torch_dtype(torchdtype):
    found = known(torchdtype)
    if found is None:
        raise KeyError(torchdtype)
    return found
