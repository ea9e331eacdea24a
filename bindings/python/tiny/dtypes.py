"""Element types by the names that tinygrad has: dtypes.float32, dtypes.int, dtypes.default_float."""

from .methods import Dtype

bool = Dtype.BOOL
int8 = char = Dtype.INT8
int16 = short = Dtype.INT16
int32 = int = Dtype.INT32
int64 = long = Dtype.INT64
uint8 = uchar = Dtype.UINT8
uint16 = ushort = Dtype.UINT16
uint32 = uint = Dtype.UINT32
uint64 = ulong = Dtype.UINT64
float16 = half = Dtype.FLOAT16
bfloat16 = Dtype.BFLOAT16
float32 = float = Dtype.FLOAT32
float64 = double = Dtype.FLOAT64
default_float = float32
default_int = int64  # of tiny.tensor([1, 2]), as in PyTorch

floats = (float16, bfloat16, float32, float64)
uints = (uint8, uint16, uint32, uint64)
sints = (int8, int16, int32, int64)
ints = uints + sints


def is_float(dtype) -> "bool":
    return dtype in floats


def is_int(dtype) -> "bool":
    return dtype in ints


def is_unsigned(dtype) -> "bool":
    return dtype in uints
