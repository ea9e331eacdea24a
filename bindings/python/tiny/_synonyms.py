"""Other names for what tensors do, as NumPy's and PyTorch's programs call it, and small questions: x.absolute(), x.dim()."""

from . import _indexing
from ._creation import spread
from ._data import tensor
from ._operands import want_tensors
from ._values import row_major
from .methods import Dtype, dtype_size
from .native import Tensor

_OTHER_NAMES = {
    "absolute": "abs", "arccos": "acos", "arccosh": "acosh", "arcsin": "asin", "arcsinh": "asinh", "arctan": "atan",
    "arctan2": "atan2", "arctanh": "atanh", "bitwise_left_shift": "shl", "bitwise_right_shift": "shr", "divide": "div",
    "fix": "trunc", "floor_divide": "floor_div", "greater": "gt", "greater_equal": "ge", "less": "lt", "less_equal": "le",
    "multiply": "mul", "negative": "neg", "not_equal": "ne", "remainder": "floor_mod", "sgn": "sign", "subtract": "sub",
    "true_divide": "div", "tobytes": "__bytes__", "positive": "__pos__"}


# ---- Of another type, or on another device

def astype(self, dtype) -> Tensor:
    """cast()."""
    return self.cast(dtype)


def type_as(self, other) -> Tensor:
    """cast() to the other's dtype."""
    want_tensors("type_as", other=other)
    return self.cast(other.dtype)


def byte(self) -> Tensor:
    """Cast to uint8."""
    return self.cast(Dtype.UINT8)


def char(self) -> Tensor:
    """Cast to int8."""
    return self.cast(Dtype.INT8)


def cpu(self) -> Tensor:
    """to("CPU")."""
    return self.to("CPU")


def cuda(self, device=None) -> Tensor:
    """to("CUDA"), or to the CUDA device of that number."""
    return self.to("CUDA" if device is None else f"CUDA:{device}" if isinstance(device, int) else device)


def copy(self) -> Tensor:
    """clone()."""
    return self.clone()


# ---- Questions

def dim(self) -> int:
    """How many axes it has."""
    return self.ndim


def stride(self, dim=None):
    """How many elements apart neighbours along each axis, or along one, are in memory."""
    return tuple(self.strides) if dim is None else self.strides[dim]


def storage_offset(self) -> int:
    """Where its first element is in memory."""
    return self.offset


def is_contiguous(self) -> bool:
    """Whether its memory has the elements in rows, one behind the other."""
    return tuple(self.strides) == row_major(self.shape)


def is_signed(self) -> bool:
    """Whether its dtype has negative numbers."""
    return self.dtype.is_float or self.dtype.is_signed


def is_complex(self) -> bool:
    """Whether its elements are complex numbers."""
    return self.dtype in (Dtype.COMPLEX64, Dtype.COMPLEX128)


def is_same_size(self, other) -> bool:
    """Whether both have one shape."""
    return tuple(self.shape) == tuple(other.shape)


def is_nonzero(self) -> bool:
    """Whether its one element is not 0."""
    return bool(self.item())


def equal(self, other) -> bool:
    """Whether both have one shape and equal elements, which are computed now; eq() compares elements."""
    return is_same_size(self, other) and bool(self.eq(other).all().item())


def nelement(self) -> int:
    """How many elements it has."""
    return int(self.numel)


def _itemsize(self) -> int:
    """Bytes of an element."""
    return dtype_size(self.dtype)


# ---- Made like this one

def _new(name, make, doc):
    def new(self, *size, dtype=None) -> Tensor:
        return make(self, spread(size), self.dtype if dtype is None else dtype)
    new.__name__, new.__qualname__, new.__doc__ = name, f"Tensor.{name}", doc
    setattr(Tensor, name, new)


def new_full(self, size, fill_value, *, dtype=None) -> Tensor:
    """Of that shape, each element that number, of this dtype if none is said."""
    return self.full(size, fill_value, self.dtype if dtype is None else dtype, context=self.context)


def new_tensor(self, data, *, dtype=None) -> Tensor:
    """Of numbers, lists or arrays, of this dtype if none is said."""
    return tensor(data, context=self.context).cast(self.dtype if dtype is None else dtype)


# ---- Written to

WRITERS = []  # names of the methods that write to their tensor


def _written(name, plain, doc):
    WRITERS.append(name)
    operate = _indexing.in_place(f"{name}()", plain)
    operate.__name__, operate.__qualname__, operate.__doc__ = name, f"Tensor.{name}", doc
    setattr(Tensor, name, operate)


_WRITTEN = ("abs acos acosh add addbmm addcdiv addcmul addmm addmv addr asin asinh atan atan2 atanh baddbmm bitwise_and "
            "bitwise_left_shift bitwise_not bitwise_or bitwise_right_shift bitwise_xor ceil clamp clamp_max clamp_min clip copysign cos cosh "
            "cumprod cumsum deg2rad div divide erf exp exp2 expm1 floor floor_divide fmod frac heaviside hypot index_add index_copy "
            "index_fill ldexp leaky_relu lerp log log10 log1p log2 logit masked_fill masked_scatter mul multiply nan_to_num neg negative "
            "pow rad2deg reciprocal relu remainder round rsqrt scatter scatter_add scatter_reduce sigmoid sign sin sinc sinh sqrt "
            "square sub subtract tan tanh tril triu trunc xlogy")


def _writers():
    for name in _WRITTEN.split():
        _written(f"{name}_", getattr(Tensor, name), f"{name}(), written to x and to every tensor that shares its elements.")
    _written("zero_", Tensor.zeros_like, "Writes 0 to all elements.")
    _written("fill_", lambda self, value: self.full_like(value), "Writes a number to all elements.")
    _written("copy_", lambda self, src: src.cast(self.dtype).expand(self.shape), "Writes what broadcasts to the shape.")
    _written("uniform_", lambda self, low=0.0, high=1.0: self.rand_like() * (high - low) + low,
             "Writes random numbers from `low` to `high`.")
    _written("normal_", lambda self, mean=0.0, std=1.0: self.randn_like() * std + mean,
             "Writes random numbers of that mean and deviation.")


for _name, _plain in _OTHER_NAMES.items():
    setattr(Tensor, _name, getattr(Tensor, _plain))
_new("new_zeros", lambda self, size, dtype: new_full(self, size, 0, dtype=dtype), "Zeros of that shape, of this dtype if none is said.")
_new("new_ones", lambda self, size, dtype: new_full(self, size, 1, dtype=dtype), "Ones of that shape, of this dtype if none is said.")
_new("new_empty", lambda self, size, dtype: new_full(self, size, 0, dtype=dtype), "Of that shape, with any elements.")
for _function in (astype, type_as, byte, char, cpu, cuda, copy, dim, stride, storage_offset, is_contiguous, is_signed, is_complex,
                  is_same_size, is_nonzero, equal, nelement, new_full, new_tensor):
    setattr(Tensor, _function.__name__, _function)
Tensor.ndimension = dim
Tensor.itemsize = property(_itemsize)
_writers()
