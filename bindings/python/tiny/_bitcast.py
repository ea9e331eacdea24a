"""The same bytes as elements of another size."""

from .methods import Dtype, dtype_size
from .native import Tensor

_plain = Tensor.bitcast
_WORDS = {1: Dtype.UINT8, 2: Dtype.UINT16, 4: Dtype.UINT32, 8: Dtype.UINT64}


def _joined(t, size):
    """Elements of the last axis as words of `size` bytes, the first one lowest."""
    small = dtype_size(t.dtype)
    many = size // small
    if not t.shape or t.shape[-1] % many:
        raise RuntimeError(f"bitcast: the last axis of {list(t.shape)} has {small} bytes an element, which are not whole "
                           f"elements of {size} bytes")
    word = _WORDS[size]
    parts = _plain(t, _WORDS[small]).reshape([*t.shape[:-1], t.shape[-1] // many, many]).cast(word)
    made = parts[..., 0]
    for i in range(1, many):
        made = made.or_(parts[..., i].shl(8 * small * i))
    return made


def _parted(t, size):
    """Elements as words of `size` bytes along the last axis, the lowest one first."""
    wide = dtype_size(t.dtype)
    many = wide // size
    if not t.shape:
        raise RuntimeError(f"bitcast: a tensor without axes has no parts of {size} bytes")
    word = _plain(t, _WORDS[wide]).reshape([*t.shape, 1])
    shifts = t.context.arange(_WORDS[wide], many) * (8 * size)
    parts = word.shr(shifts).and_((1 << 8 * size) - 1)
    return parts.cast(_WORDS[size]).reshape([*t.shape[:-1], t.shape[-1] * many])


def bitcast(self, dtype) -> Tensor:
    """The same bits as another dtype: of another size, the elements of the last axis are so many more or fewer."""
    from ._operands import dtype as dtype_of
    dtype = dtype_of(dtype)
    if dtype == self.dtype:
        return self
    if Dtype.BOOL in (dtype, self.dtype):
        if dtype == Dtype.BOOL:
            return bitcast(self, Dtype.UINT8).ne(0)
        return bitcast(self.cast(Dtype.UINT8), dtype)
    small, size = dtype_size(self.dtype), dtype_size(dtype)
    if size > small:
        return _plain(_joined(self, size), dtype)
    if size < small:
        return _plain(_parted(self, size), dtype)
    return _plain(self, dtype)


Tensor.bitcast = bitcast
