"""Element types by the names that tinygrad has: dtypes.float32, dtypes.int, dtypes.default_float."""

import sys as _sys
import types as _types

from . import _dtype
from ._dtype import finfo, void, weakfloat, weakint  # noqa: F401

_all = _dtype._kinds
bool = _all["bool"]
int8 = char = _all["int8"]
int16 = short = _all["int16"]
int32 = int = _all["int32"]
int64 = long = _all["int64"]
uint8 = uchar = _all["uint8"]
uint16 = ushort = _all["uint16"]
uint32 = uint = _all["uint32"]
uint64 = ulong = _all["uint64"]
float16 = half = _all["float16"]
bfloat16 = _all["bfloat16"]
float32 = float = _all["float32"]
float64 = double = _all["float64"]
fp8e4m3 = _all["float8_e4m3fn"]
fp8e5m2 = _all["float8_e5m2"]
fp8e4m3fnuz = _all["float8_e4m3fnuz"]
fp8e5m2fnuz = _all["float8_e5m2fnuz"]

fp8_ocp = (fp8e4m3, fp8e5m2)
fp8_fnuz = (fp8e4m3fnuz, fp8e5m2fnuz)
fp8s = fp8_ocp + fp8_fnuz
floats = fp8s + (float16, bfloat16, float32, float64)
int8s = (uint8, int8)
int16s = (uint16, int16)
int32s = (uint32, int32)
int64s = (uint64, int64)
uints = (uint8, uint16, uint32, uint64)
sints = (int8, int16, int32, int64)
ints = uints + sints
weaks = (weakint, weakfloat)
all = floats + ints + (bool,)


def is_float(x) -> "bool":
    return _dtype.of(x).is_float


def is_int(x) -> "bool":
    return _dtype.of(x).is_int


def is_unsigned(x) -> "bool":
    return _dtype.of(x) in uints


def is_bool(x) -> "bool":
    return _dtype.of(x) is bool


def from_py(x):
    """The type of a number, weak, or of what a list of them becomes."""
    return _dtype.of_python(x)


class _Module(_types.ModuleType):
    @property
    def default_float(self):
        """What Python's floats become, and Tensor.zeros; it may be set to another float."""
        return _dtype.default_float()

    @default_float.setter
    def default_float(self, dtype):
        _dtype.set_default_float(dtype)

    @property
    def default_int(self):
        """What Python's integers become, and Tensor.arange; it may be set to another integer type."""
        return _dtype.default_int()

    @default_int.setter
    def default_int(self, dtype):
        _dtype.set_default_int(dtype)


_sys.modules[__name__].__class__ = _Module
