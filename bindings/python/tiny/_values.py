"""Out of tensors: numbers, lists, memoryviews, NumPy's arrays, DLPack, pickle, and text."""

import math

from . import _tape, native
from ._dtype import numbered, of, strong
from ._reading import Reading
from .native import Tensor, made

_CPU = (1, 0)  # DLPack's device


def _strong(self):
    """A tensor that has a size of elements: what is weak as it is stored."""
    kind = native.tiny_tensor_dtype(self)
    return self if kind > 0 else self.cast(strong(numbered(kind)))


def _content(self):
    """The elements, computed and copied row-major."""
    content = bytearray(self.numel * self.dtype.itemsize)
    native.tiny_tensor_read(self, content)
    return content


def _memoryview(self) -> memoryview:
    """The elements, computed and copied row-major, as a memoryview of the tensor's shape."""
    self = _strong(self)
    kind, shape = self.dtype, self.shape
    if kind.fmt in (None, "e"):
        raise TypeError(f"memoryview has no {kind}; cast the tensor first")
    content = memoryview(_content(self))
    return content.cast(kind.fmt) if 0 in shape else content.cast(kind.fmt, shape)  # it has no empty shapes


def _data(self) -> memoryview:
    """memoryview()."""
    return self.memoryview()


def _data_ptr(self) -> int:
    """The address of the elements in the tensor's own memory, computed now; see tiny_tensor_data."""
    return native.tiny_tensor_data(self)


def _of_ml_dtypes(kind):
    """ml_dtypes' type, or None without that package."""
    try:
        import ml_dtypes
    except ImportError:
        return None
    return getattr(ml_dtypes, kind.name, None)


def _numpy(self):
    """The elements, computed and copied, as a NumPy array.  Floats that NumPy has not are ml_dtypes' types, and float32
    if that package is not there."""
    import numpy
    self = _strong(self)
    kind = self.dtype
    if kind.fmt is None:
        kind = None if Reading.tinygrad else _of_ml_dtypes(self.dtype)
        if kind is None:
            return self.cast("float32").numpy()
        out = numpy.empty(self.shape, f"uint{8 * self.dtype.itemsize}")
    else:
        out = numpy.empty(self.shape, kind.fmt)
    native.tiny_tensor_read(self, out)
    return out if self.dtype.fmt else out.view(kind)


def _tolist(self):
    """The elements as nested lists of Python's numbers."""
    self = _strong(self)
    content = (self.cast("float32") if self.dtype.fmt in (None, "e") else self).memoryview()
    if 0 not in self.shape:
        return content.tolist()

    def empty(dims):
        return [empty(dims[1:]) for _ in range(dims[0])] if dims else []
    return empty(self.shape[:self.shape.index(0) + 1])


def _item(self):
    """The one element of a tensor that has one, as a number of Python's."""
    if self.numel != 1:
        raise ValueError(f"item() wants one element, not shape {list(self.shape)}")
    return _tape.read(self).reshape([]).tolist()


# ---- As Python's numbers and sequences

def _bool(self) -> bool:
    if Reading.tinygrad:
        raise TypeError("a tensor is no truth value")
    if self.numel != 1:
        raise ValueError(f"the truth of a tensor of shape {list(self.shape)} is not one value: any() or all() make one")
    return bool(self.item())


def _length(self) -> int:
    if not self.shape:
        raise TypeError("a tensor without dimensions has no length")
    return self.shape[0]


def _iterate(self):
    """The parts along the first axis."""
    if not self.shape:
        raise TypeError("a tensor without dimensions has no parts to go through")
    return (self[i] for i in range(self.shape[0]))


def _contains(self, value) -> bool:
    return (self == value).any().item()


def _as_index(self) -> int:
    if not self.dtype.is_int or self.numel != 1:
        raise TypeError(f"an index is a tensor of one integer, not one of shape {list(self.shape)} and {self.dtype}")
    return self.item()


def _no_delete(self, key):
    raise TypeError("elements of a tensor are not deleted; cat() makes a tensor of what is left")


def _format(self, spec) -> str:
    if self.rank == 0 and _is_value(self):
        return format(self.item(), spec)
    if spec:
        raise TypeError(f"format {spec!r}: of a number, not of a tensor of shape {list(self.shape)}")
    return str(self)


# ---- Text

_SHOWN, _EDGE = 1000, 3  # elements of a tensor that is shown as a whole, and parts of an axis at either end


def _is_value(self):
    """Whether elements can be read now: not while TinyJit captures, and not of what only a run gives a value."""
    return _tape.State.capture is None and all(isinstance(size, int) for size in self.shape)


def _number_text(value):
    if isinstance(value, float):
        if not math.isfinite(value):
            return str(value)
        text = f"{value:.4g}" if value and not 1e-4 <= abs(value) < 1e6 else f"{value:.4f}".rstrip("0")
        return text
    return str(value)


def _rows(values, depth, rank, cut, indent):
    """Nested lists as text, `cut` where parts of an axis are left out."""
    if depth == rank:
        return values
    parts = [_rows(value, depth + 1, rank, cut, indent) for value in values]
    if cut[depth]:
        parts.insert(_EDGE, "...")
    if depth == rank - 1:
        return "[" + ", ".join(parts) + "]"
    return "[" + ("," + "\n" * (rank - depth - 1) + " " * (indent + depth + 1)).join(parts) + "]"


def _texts(values, width):
    return [_texts(value, width) for value in values] if isinstance(values, list) else _number_text(values).rjust(width)


def _flat(values):
    for value in values if isinstance(values, list) else [values]:
        yield from _flat(value) if isinstance(value, list) else [value]


def _shown(self):
    """The elements that are shown as nested lists, and of which axes parts are left out."""
    cut = [self.numel > _SHOWN and size > 2 * _EDGE for size in self.shape]
    seen = native.tiny_detach(self)  # of the same value: this tensor stays as it is
    seen.context = self.context
    for axis, is_long in enumerate(cut):
        if is_long:
            before = (slice(None),) * axis
            seen = seen[(*before, slice(None, _EDGE))].cat(seen[(*before, slice(-_EDGE, None))], dim=axis)
    return seen.tolist(), cut


def _repr(self) -> str:
    """The values, of a large tensor those at the ends of each axis: only what is shown is computed.  The shape alone
    where there are no values: of an input, or while TinyJit captures."""
    kind = self.dtype.name
    if _is_value(self) and 0 in self.shape:
        return f"Tensor([], shape={list(self.shape)}, dtype={kind})"
    try:
        values, cut = _shown(self) if _is_value(self) else (None, None)
    except RuntimeError:  # the engine's, which says why
        values = None
    if values is None:
        return f"<tiny.Tensor {list(self.shape)} {kind}>"
    width = max(len(_number_text(value)) for value in _flat(values)) if self.rank else 0
    text = _rows(_texts(values, width), 0, self.rank, cut, len("Tensor("))
    return f"Tensor({text}, dtype={kind})"


# ---- Exchange

def _dlpack(self, *, stream=None, max_version=None, dl_device=None, copy=None):
    """The tensor's own memory, computed now, as a DLPack capsule: numpy.from_dlpack(t) takes it.  With max_version of
    (1, 0) or more it is one of version 1, else one of before, which cannot say that it is not to be written: memory
    that other values have, too, is copied then."""
    if stream is not None or (dl_device is not None and tuple(dl_device) != _CPU):
        raise BufferError("the memory is the CPU's, which has no streams")
    self = _strong(self)
    if copy:
        self = Tensor.from_data(self.context, self.dtype, self.shape, _content(self))
    if max_version is not None and max_version[0] >= 1:
        return native.tiny_to_capsule(self)
    try:
        return native.tiny_to_old_capsule(self)
    except BufferError:
        return native.tiny_to_old_capsule(Tensor.from_data(self.context, self.dtype, self.shape, _content(self)))


def lent(self):
    """(capsule, letter, bytes) of the memory that has the elements, computed now: what memoryview(x) is made of."""
    source = _tape.read(self)
    kind = source.dtype
    source = _strong(source)
    if source.dtype.fmt is None:
        raise BufferError(f"the buffer protocol has no {kind}; cast the tensor, or take numpy()")
    pin = native.tiny_to_capsule(source)
    if source is self:
        _tape.computed(self)
    return pin, source.dtype.fmt, source.dtype.itemsize


def _rounded(self, digits=None) -> Tensor:
    """To whole numbers, halves to the even one, or to so many decimal places."""
    return self.round() if not digits else (self * 10.0 ** digits).round() / 10.0 ** digits


def _bytes(self) -> bytes:
    """The elements, row-major."""
    return bytes(_content(_strong(_tape.read(self))))


def _array_interface(self):
    """NumPy's protocol: the tensor's own memory, computed now, which is kept as long as the tensor."""
    kind = self.dtype
    if kind.fmt is None:
        raise AttributeError(f"NumPy has no {kind}: __array__() makes an array of ml_dtypes' type")
    pin = native.tiny_to_capsule(self)
    self.__dict__.setdefault("_lent", []).append(pin)
    letter = "b" if kind.name == "bool" else "f" if kind.is_float else "i" if kind.is_signed else "u"
    strides = tuple(step * kind.itemsize for step in self.strides)
    address, is_read_only = native.tiny_capsule_data(pin)
    return {"version": 3, "shape": tuple(self.shape), "typestr": f"<{letter}{kind.itemsize}", "strides": strides,
            "data": (address, bool(is_read_only))}


def _array(self, dtype=None, copy=None):
    """A NumPy array; with `copy` false one of the tensor's own memory, or ValueError where that is not possible."""
    import numpy
    if copy is False:
        if self.dtype.fmt is None or (dtype is not None and numpy.dtype(dtype) != numpy.dtype(self.dtype.fmt)):
            raise ValueError(f"no array of {dtype or self.dtype} has the memory of a tensor of {self.dtype}")
        return numpy.from_dlpack(self)
    made = self.numpy()
    return made if dtype is None else made.astype(dtype, copy=False)


def _array_ufunc(self, *arguments, **keywords):
    """NumPy's functions of elements: numpy.exp(x), array + x."""
    from ._array_function import elementwise
    return elementwise(self, *arguments, **keywords)


def _array_function(self, *arguments):
    """NumPy's other functions: numpy.sum(x)."""
    from ._array_function import function
    return function(self, *arguments)


def _lent(self):
    """The elements for pickle's protocol 5: the tensor's own memory where it is row-major."""
    import ctypes
    import pickle
    count = self.numel * self.dtype.itemsize
    pin = native.tiny_to_capsule(self) if count else None
    if pin is None or tuple(self.strides) != row_major(self.shape):
        return pickle.PickleBuffer(_content(self))
    memory = (ctypes.c_char * count).from_address(native.tiny_capsule_data(pin)[0])
    memory.pin = pin  # as long as somebody has a view of it
    return pickle.PickleBuffer(memory)


def row_major(shape):
    """The strides of rows that lie one behind the other."""
    strides, step = [], 1
    for size in reversed(shape):
        strides.append(step)
        step *= size
    return tuple(reversed(strides))


def _restored(kind, shape, requires_grad):
    """A tensor that gets its elements by _set_state: pickle keeps no reference to them then."""
    made = Tensor.__new__(Tensor)
    made._described = kind, shape, requires_grad
    return made


def _set_state(self, content):
    from ._tensor import default_context
    kind, shape, requires_grad = self.__dict__.pop("_described")
    made = Tensor.from_data(default_context(), of(kind), shape, content)
    self.this, self.context, self._has_memory = made.this, made.context, True
    if Reading.tinygrad:
        _tape.note(self)
    if requires_grad is not None:
        self.requires_grad = requires_grad


def _reduce(self, protocol):
    """The elements, computed; the context that it lives in is that of who reads it."""
    own = self.__dict__.get("_requires_grad")
    self = _strong(self)
    content = _lent(_tape.read(self)) if protocol >= 5 else bytes(_content(_tape.read(self)))
    return _restored, (self.dtype.name, tuple(self.shape), own), content


def _clone(self, device=None) -> Tensor:
    """The same value in memory of its own; gradients go through to this, and gradients by it are apart."""
    source = _strong(self)
    copied = made(source, native.tiny_clone(source), source)
    if Reading.tinygrad and self.grad is not None:
        copied.grad = _clone(self.grad)
    return copied if device is None else copied.to(device)


def _deepcopy(self, memo):
    import copy
    made = native.tiny_contiguous(native.tiny_detach(self))
    made.context = self.context
    memo[id(self)] = made
    for name in ("_requires_grad", "_gradient"):
        if self.__dict__.get(name) is not None:
            made.__dict__[name] = copy.deepcopy(self.__dict__[name], memo)
    return made


for _name, _function in (("__bool__", _bool), ("__len__", _length), ("__iter__", _iterate), ("__contains__", _contains),
                         ("__index__", _as_index), ("__delitem__", _no_delete), ("__format__", _format),
                         ("__repr__", _repr), ("__bytes__", _bytes), ("__round__", _rounded), ("__dlpack__", _dlpack), ("__array__", _array),
                         ("__array_ufunc__", _array_ufunc),
                         ("__array_function__", _array_function), ("__reduce_ex__", _reduce), ("__deepcopy__", _deepcopy),
                         ("__setstate__", _set_state),
                         ("__copy__", lambda self: self.reshape(list(self.shape))),
                         ("memoryview", _memoryview), ("data", _data), ("data_ptr", _data_ptr), ("numpy", _numpy),
                         ("tolist", _tolist), ("item", _item), ("clone", _clone), ("__float__", lambda self: float(self.item())),
                         ("__int__", lambda self: int(self.item())), ("__complex__", lambda self: complex(self.item())),
                         ("__pos__", lambda self: self),
                         ("__divmod__", lambda self, other: (self // other, self % other)),
                         ("__dlpack_device__", lambda self: _CPU)):
    setattr(Tensor, _name, _function)
Tensor.__array_interface__ = property(_array_interface)
Tensor.__array_priority__ = 1000  # NumPy leaves array + tensor to the tensor
