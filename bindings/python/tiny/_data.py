"""Into tensors: numbers, nested lists, bytes, NumPy's and other libraries' arrays, memory at an address."""

import array
import itertools
import math
import struct

from . import _dtype, _tape, native
from ._dtype import of
from ._operands import want_tensors
from ._reading import Reading
from ._rounding import storage_fmt_for_dtype, to_storage_scalar, truncate
from .native import Tensor

# The buffer protocol's letters for the element types that have one, and what those of C's types have here.
LETTERS = {kind: kind.fmt for kind in _dtype.supported if kind.fmt}
_OF_LETTER = {letter: kind for kind, letter in LETTERS.items()}
_SAME_SIZE = {"l": "q", "L": "Q", "n": "q", "N": "Q", "c": "B"}  # of 64-bit Unix
# Whose words are packed at once; what does not fit goes one by one.
_AT_ONCE = {"float32": "f", "float64": "d", "int8": "b", "uint8": "B", "int16": "h", "uint16": "H", "int32": "i",
            "uint32": "I", "int64": "q", "uint64": "Q"}


def _default_context():
    from ._tensor import default_context
    return default_context()


def of_format(view):
    """The element type of a buffer."""
    letter = view.format.lstrip("@=<")
    kind = _OF_LETTER.get(_SAME_SIZE.get(letter, letter))
    if kind is None:
        raise TypeError(f"a buffer of format {view.format!r} has no dtype; known: "
                        f"{', '.join(f'{letter} {kind}' for kind, letter in LETTERS.items())}")
    return kind


def _view_of(data):
    """A memoryview of the data and its element type."""
    try:
        view = memoryview(data)
    except TypeError:
        module = type(data).__module__  # torch's tensors are called Tensor, too
        full = ("" if module == "builtins" else f"{module}.") + type(data).__qualname__
        raise TypeError(f"a number, nested lists or a buffer is wanted, not {full}") from None
    except ValueError as error:  # a type without a letter, such as those of ml_dtypes
        name = getattr(getattr(data, "dtype", None), "name", "")
        kind = _dtype.known(name) if name else None
        if kind in _dtype.supported and kind.fmt is None and hasattr(data, "view"):
            return memoryview(data.view(f"uint{8 * kind.itemsize}")), kind
        raise TypeError(f"an array of {name or type(data).__name__} has no dtype: {error}") from None
    if view.format[:1] in "><!" and hasattr(data, "astype") and view.itemsize > 1:
        return _view_of(data.astype(data.dtype.newbyteorder("=")))
    return view, of_format(view)


def require_no_capture():
    """An array that becomes a tensor would be a constant of a captured program."""
    if _tape.State.capture is not None:
        raise _tape.JitError("an array becomes a tensor while TinyJit captures: the program would have its elements as "
                             "they are now; pass a tensor as an argument")


def from_buffer(data, dtype=None, shape=None, context=None) -> Tensor:
    """A tensor with a copy of any object of the buffer protocol, its strides honoured.  `dtype` says what its bytes are,
    if not what its format says."""
    require_no_capture()
    view, kind = _view_of(data)
    kind = kind if dtype is None else of(dtype)
    if dtype is not None and shape is None and kind.itemsize != view.itemsize:
        raise ValueError(f"from_buffer: the buffer has elements of {view.itemsize} bytes, {kind} has {kind.itemsize}; "
                         "say the shape, too")
    shape = view.shape if shape is None else shape
    content = view if view.c_contiguous else view.tobytes()
    return Tensor.from_data(context or _default_context(), kind, shape, content)


def wrap(data, dtype=None, context=None) -> Tensor:
    """A tensor of the buffer's own memory, strides of any sign and all; it must not change before
    the tensor is computed.  The buffer is held until nothing needs it.  An assignment is written there,
    but for one that is read-only, such as bytes: then the tensor gets memory of its own."""
    context = context or _default_context()
    view, kind = _view_of(data)
    made = native.tiny_wrap_buffer(context, kind if dtype is None else of(dtype), view)
    made.context = context
    return made


def from_blob(ptr, shape, dtype=None, device=None, requires_grad=None, context=None) -> Tensor:
    """A tensor of the memory at an address, row-major, which is neither copied nor kept: it must be there as long as the
    tensor.  An assignment is written there."""
    from ._creation import finish
    kind = _dtype.default_float() if dtype is None else of(dtype)
    shape = [shape] if hasattr(shape, "__index__") else list(shape)
    if not ptr:
        raise ValueError("from_blob: the address is 0")
    count = math.prod(shape)
    import ctypes
    memory = (ctypes.c_char * (count * kind.itemsize)).from_address(ptr)
    view = memoryview(memory).cast("B").cast(storage_fmt_for_dtype(kind))
    made = wrap(view, kind, context).reshape(shape)
    return finish(made, None, device, requires_grad)


# ---- Numbers in lists

_SEQUENCES = (list, tuple, bytes)  # of bytes the numbers are


def _flatten(value, shape, depth, flat):
    """Appends the numbers of nested lists to `flat`; `shape` grows on the way down."""
    if not isinstance(value, _SEQUENCES):
        if depth != len(shape):
            raise ValueError("the nested lists have different depths")
        flat.append(value)
        return
    if depth == len(shape):
        if flat:
            raise ValueError("the nested lists have different depths")
        shape.append(len(value))
    if len(value) != shape[depth]:
        raise ValueError("the nested lists have different lengths")
    if value and depth + 1 == len(shape) and not any(isinstance(item, _SEQUENCES) for item in value):
        flat.extend(value)
        return
    for item in value:
        _flatten(item, shape, depth + 1, flat)


def _natural(flat):
    """The element type of Python's numbers."""
    kinds = set(map(type, flat))
    if not kinds or not kinds <= {bool, int, float}:
        return _of_others(kinds) if kinds else _dtype.default_float()
    if float in kinds:
        return _dtype.default_float()
    if kinds == {bool}:
        return of("bool")
    kind = _dtype.default_int()
    if not Reading.tinygrad and not kind.min <= min(flat) <= max(flat) <= kind.max:
        raise OverflowError(f"{max(flat, key=abs)} is out of the range of {kind}; say a dtype")
    return kind


def _of_others(kinds):
    strange = [kind for kind in kinds if not issubclass(kind, (bool, int, float))]
    if strange:
        names = ", ".join(sorted(kind.__name__ for kind in strange))
        kind = RuntimeError if Reading.tinygrad else TypeError
        raise kind(f"a number, nested lists of numbers or a buffer is wanted, not lists with {names}")
    return _dtype.default_float() if any(issubclass(kind, float) for kind in kinds) else _dtype.default_int()


def _packed(flat, kind):
    """The numbers' bytes as the type has them."""
    if kind not in _dtype.supported:
        known = ", ".join(one.name for one in _dtype.supported)
        raise TypeError(f"tensors of {kind.name} are not supported; known: {known}")
    if kind.name == "bool":
        return bytes(map(bool, flat))
    letter = _AT_ONCE.get(kind.name)
    try:
        if letter is not None:
            return array.array(letter, flat)
        if kind.name == "float16":
            return struct.pack(f"{len(flat)}e", *flat)
    except (TypeError, OverflowError, struct.error):  # a float for an integer, or what is out of range
        pass
    if kind.is_int and not Reading.tinygrad:
        for number in flat:
            if not kind.min <= int(number) <= kind.max:
                raise OverflowError(f"{number} is out of the range of {kind}, from {kind.min} to {kind.max}")
    rounded = map(truncate[kind], map(float, flat) if kind.is_float else flat)
    if kind.fmt is None:
        return array.array(storage_fmt_for_dtype(kind), [to_storage_scalar(number, kind) for number in rounded])
    return struct.pack(f"{len(flat)}{kind.fmt}", *rounded)


def _of_lists(data, dtype, context):
    shape, flat = [], []
    _flatten(data, shape, 0, flat)
    if any(hasattr(item, "dtype") and not isinstance(item, float) for item in flat):  # NumPy's float64 is a float
        return _of_arrays(data, flat, dtype, context)
    kind = _natural(flat) if dtype is None else of(dtype)
    if dtype is not None:
        _natural([item for item in flat if type(item) not in (bool, int, float)])
    return Tensor.from_data(context or _default_context(), kind, shape, _packed(flat, kind))


def _of_arrays(data, flat, dtype, context):
    """Lists with NumPy's numbers or arrays, or with tensors."""
    if any(isinstance(item, Tensor) for item in flat):
        raise TypeError("nested lists of numbers are wanted, not of tensors: tiny.stack() puts them side by side")
    if Reading.tinygrad and dtype is None and not all(getattr(item, "ndim", 0) for item in flat):
        raise RuntimeError("a list of NumPy's numbers has no element type: say a dtype, or make an array of it")
    import numpy
    return tensor(numpy.asarray(data), dtype, context)


def tensor(data, dtype=None, context=None, *, device=None, requires_grad=None) -> Tensor:
    """A tensor of a number, nested lists, or a buffer, such as NumPy's arrays.  Floats become float32, integers int64
    (dtypes.default_float, default_int); arrays keep their type, and `dtype` converts.  The bytes of `bytes` are elements
    of `dtype`, uint8 if nothing is said."""
    if device is not None or requires_grad is not None:
        return Tensor(data, device=device, dtype=dtype, requires_grad=requires_grad, context=context)
    if isinstance(data, (bool, int, float)) and not hasattr(data, "dtype"):
        if Reading.tinygrad and (dtype is None or of(dtype) in _dtype.WEAK) and not isinstance(data, bool):
            return _number(data, dtype, context)
        kind = of(dtype) if dtype is not None else _natural([data])
        return Tensor.from_data(context or _default_context(), kind, [], _packed([data], kind))
    if dtype is not None and of(dtype) in _dtype.WEAK:
        raise RuntimeError(f"a tensor of {of(dtype)} has no elements of its own: it is a number")
    if isinstance(data, range):
        data = list(data)
    if isinstance(data, (list, tuple)):
        return _of_lists(data, dtype, context)
    if isinstance(data, (bytes, bytearray)):
        kind = of(dtype or "uint8")
        if len(data) % kind.itemsize:
            raise ValueError(f"{len(data)} bytes are no whole number of elements of {kind}")
        return from_buffer(data, kind, [len(data) // kind.itemsize], context)
    made = _of_foreign(data, context)
    return made if dtype is None or of(dtype) == made.dtype else made.cast(dtype)


def _number(data, dtype, context):
    """A number as tinygrad has it: it takes the type of what it meets."""
    context = context or _default_context()
    kind = _dtype.of_python(data) if dtype is None else of(dtype)
    if kind is _dtype.weakfloat:
        made = native.tiny_scalar_float(context, float(data))
    else:
        made = native.tiny_scalar_int(context, int(data))
    made.context = context
    return made


def _of_foreign(data, context):
    """Another library's array, copied."""
    if hasattr(data, "dtype") and getattr(data, "ndim", None) == 0 and hasattr(data, "item") and not _has_buffer(data):
        kind = of(data.dtype)
        return Tensor.from_data(context or _default_context(), kind, [], _packed([data.item()], kind))
    if not _has_buffer(data) and hasattr(data, "__dlpack__"):
        require_no_capture()
        return from_dlpack(data.contiguous() if hasattr(data, "contiguous") else data, context).contiguous().realize()
    if not _has_buffer(data) and hasattr(data, "__array__"):
        data = data.__array__()
    return from_buffer(data, context=context)


def _has_buffer(data):
    try:
        memoryview(data)
    except TypeError:
        return False
    except ValueError:
        pass
    return True


def from_dlpack(source, context=None) -> Tensor:
    """A tensor of another library's array, without a copy; one that is read-only is not written."""
    context = context or _default_context()
    try:
        capsule = source.__dlpack__(max_version=(1, 0))
    except TypeError:  # a library from before DLPack's version 1
        capsule = source.__dlpack__()
    made = native.tiny_from_capsule(context, capsule)
    made.context = context
    return made


# ---- Coordinates

def meshgrid(self, *others, indexing="ij"):
    """Of vectors of n, m, .. elements as many tensors of shape [n, m, ..] (`indexing="xy"`: [m, n, ..]), each with the
    elements of one along its axis."""
    if indexing not in ("ij", "xy"):
        raise RuntimeError(f"meshgrid: indexing is {indexing!r}; known: ij, xy")
    vectors = list(itertools.chain(self if isinstance(self, (list, tuple)) else [self], others))
    want_tensors("meshgrid", **{f"argument {i}": one for i, one in enumerate(vectors)})
    if any(one.rank > 1 for one in vectors):
        raise ValueError(f"meshgrid: vectors are wanted, not shapes {[list(one.shape) for one in vectors]}")
    sizes = [one.numel for one in vectors]
    order = [1, 0, *range(2, len(sizes))] if indexing == "xy" and len(sizes) > 1 else list(range(len(sizes)))
    shape = [sizes[axis] for axis in order]
    made = []
    for axis, one in enumerate(vectors):
        own = [sizes[axis] if other == axis else 1 for other in order]
        made.append(one.reshape(own).expand(shape))
    return tuple(made)


Tensor.from_blob = staticmethod(from_blob)
Tensor.meshgrid = meshgrid
