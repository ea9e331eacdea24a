"""What Python users expect of a tensor beside the header's functions: construction from lists and
buffers, operators, indexing, NumPy and memoryviews."""

import atexit
import contextlib
import os
import threading

from . import native
from . import _dimension, _tape
from ._dimension import Dim
from ._operands import dtype as dtype_of_name, is_array
from .methods import Dtype
from .native import Context, Tensor, Variable

# The buffer protocol's letters for the element types that have one.
LETTERS = {Dtype.BOOL: "?", Dtype.INT8: "b", Dtype.INT16: "h", Dtype.INT32: "i", Dtype.INT64: "q",
           Dtype.UINT8: "B", Dtype.UINT16: "H", Dtype.UINT32: "I", Dtype.UINT64: "Q",
           Dtype.FLOAT16: "e", Dtype.FLOAT32: "f", Dtype.FLOAT64: "d"}
SAME_SIZE = {"l": "q", "L": "Q", "n": "q", "N": "Q", "c": "B"}  # of 64-bit Unix

_default = None
_lock = threading.Lock()


def default_context() -> Context:
    """The context of tensors made without one; created on first use."""
    global _default
    with _lock:
        if _default is None:
            _default = Context()
        return _default


def _drop_default():
    """At exit: what a context tells at its end (DEBUG=2, PROFILE=1) it tells when it is released."""
    global _default
    _default = None


atexit.register(_drop_default)

# DEBUG=2, NOOPT=1, ..: the names that people know from elsewhere, where TINY_* does not speak.
_BARE_NAMES = ("DEBUG", "BEAM", "NOOPT", "GRAPH", "GRAPHUOPS", "PROFILE", "TRACK_MATCH_STATS")


def _set_bare_names(settings):
    for name in _BARE_NAMES:
        value = os.environ.get(name, "")
        if value.isdecimal() and "TINY_" + name not in os.environ:
            with contextlib.suppress(RuntimeError):  # a number that we do not take
                native.tiny_options_set_int(settings, name.lower(), int(value))


def _new_context(self, **options):
    """Context(threads=2, device="interp", ..): the options of tiny_options_set_int and _string; log, poll,
    progress, thread_pool and allocator=(allocate, release) are functions, as Options.set_log takes them."""
    settings = native.tiny_options_create()
    _set_bare_names(settings)
    settings.set_poll(None)  # signals
    for key, value in options.items():
        if key in ("log", "poll", "progress", "thread_pool"):
            getattr(settings, f"set_{key}")(value)
        elif key == "allocator":
            settings.set_allocator(*(value or (None, None)))
        elif isinstance(value, str):
            native.tiny_options_set_string(settings, key, value)
        else:
            native.tiny_options_set_int(settings, key, value)
    self.this = native.tiny_context_create(settings)


Context.__init__ = _new_context
Context.context = property(lambda self: self)


Tensor.name = Tensor.name.setter(lambda self, text: self.set_name(text))


def _dtype_of(view):
    letter = view.format.lstrip("@=<")
    letter = SAME_SIZE.get(letter, letter)
    for dtype, known in LETTERS.items():
        if letter == known:
            return dtype
    raise TypeError(f"a buffer of format {view.format!r} has no dtype; known: {LETTERS}")


def from_buffer(data, dtype=None, shape=None, context=None) -> Tensor:
    """A tensor with a copy of any object of the buffer protocol, its strides honoured."""
    if _tape.State.capture is not None:
        raise _tape.JitError("an array becomes a tensor while TinyJit captures: the program would have its elements as "
                             "they are now; pass a tensor as an argument")
    try:
        view = memoryview(data)
    except TypeError:
        raise TypeError(f"a number, nested lists or a buffer is wanted, not {type(data).__name__}") from None
    dtype = _dtype_of(view) if dtype is None else dtype_of_name(dtype)
    shape = view.shape if shape is None else shape
    content = view if view.c_contiguous else view.tobytes()
    return Tensor.from_data(context or default_context(), dtype, shape, content)


def wrap(data, dtype=None, context=None) -> Tensor:
    """A tensor of the buffer's own memory, strides of any sign and all; it must not change before
    the tensor is computed.  The buffer is held until nothing needs it.  An assignment is written there,
    but for one that is read-only, such as bytes: then the tensor gets memory of its own."""
    context = context or default_context()
    dtype = _dtype_of(memoryview(data)) if dtype is None else dtype_of_name(dtype)
    made = native.tiny_wrap_buffer(context, dtype, data)
    made.context = context
    return made


_CPU = (1, 0)  # DLPack's device


def _dlpack(self, *, stream=None, max_version=None, dl_device=None, copy=None):
    """The tensor's own memory, computed now, as a DLPack capsule: numpy.from_dlpack(t) takes it."""
    if max_version is None or max_version[0] < 1:
        raise BufferError("only DLPack's version 1 is offered: ask with max_version=(1, 0)")
    if stream is not None or (dl_device is not None and tuple(dl_device) != _CPU):
        raise BufferError("the memory is the CPU's, which has no streams")
    if copy:
        content = bytearray(self.numel * native.tiny_dtype_size(self.dtype))
        native.tiny_tensor_read(self, content)
        self = Tensor.from_data(self.context, self.dtype, self.shape, content)
    return native.tiny_to_capsule(self)


def from_dlpack(source, context=None) -> Tensor:
    """A tensor of another library's array, without a copy; one that is read-only is not written."""
    context = context or default_context()
    made = native.tiny_from_capsule(context, source.__dlpack__(max_version=(1, 0)))
    made.context = context
    return made


def _flatten(value, shape, depth, flat):
    """Appends the numbers of nested lists to `flat`; `shape` grows on the way down."""
    if not isinstance(value, (list, tuple)):
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
    for item in value:
        _flatten(item, shape, depth + 1, flat)


def tensor(data, dtype=None, context=None) -> Tensor:
    """A tensor of a number, nested lists, or a buffer.  Floats become float32, integers int64."""
    if not isinstance(data, (bool, int, float, list, tuple)):
        return from_buffer(data, dtype, context=context)
    shape, flat = [], []
    _flatten(data, shape, 0, flat)
    if all(isinstance(value, bool) for value in flat) and flat:
        natural = Dtype.BOOL
    elif all(isinstance(value, int) for value in flat) and flat:
        natural = Dtype.INT64
    else:
        natural = Dtype.FLOAT32
    import array
    letter = {Dtype.BOOL: "B", Dtype.INT64: "q", Dtype.FLOAT32: "f"}[natural]
    made = Tensor.from_data(context or default_context(), natural, shape, array.array(letter, flat))
    return made if dtype is None or dtype_of_name(dtype) == natural else made.cast(dtype)


def _memoryview(self) -> memoryview:
    """The elements, computed and copied row-major, as a memoryview of the tensor's shape."""
    dtype, shape = self.dtype, self.shape
    letter = LETTERS.get(dtype)
    if letter in (None, "e"):
        raise TypeError(f"memoryview has no {getattr(dtype, 'name', dtype)}; cast the tensor first")
    content = bytearray(self.numel * native.tiny_dtype_size(dtype))
    native.tiny_tensor_read(self, content)
    if not shape or 0 in shape:
        return memoryview(content).cast(letter)  # memoryview has no such shapes
    return memoryview(content).cast(letter, shape)


def _numpy(self):
    """The elements, computed and copied, as a NumPy array."""
    import numpy
    out = numpy.empty(self.shape, LETTERS.get(self.dtype) or "V2")
    native.tiny_tensor_read(self, out)
    return out


def _tolist(self):
    """The elements as nested lists of Python's numbers."""
    halves = self.dtype in (Dtype.FLOAT16, Dtype.BFLOAT16)
    content = (self.cast(Dtype.FLOAT32) if halves else self).memoryview()
    if not self.shape:
        return content[0]
    if 0 in self.shape:
        def empty(dims):
            return [empty(dims[1:]) for _ in range(dims[0])] if dims else []
        return empty(self.shape[:self.shape.index(0) + 1])
    return content.tolist()


def _item(self):
    """The one element of a tensor that has one."""
    if self.numel != 1:
        raise ValueError(f"item() wants one element, not shape {list(self.shape)}")
    return self.reshape([1]).tolist()[0]


def _repr(self) -> str:
    return f"<tiny.Tensor {list(self.shape)} {getattr(self.dtype, 'name', self.dtype).lower()}>"


def _bool(self) -> bool:
    return bool(self.item())


def _length(self) -> int:
    if not self.shape:
        raise TypeError("a tensor without dimensions has no length")
    return self.shape[0]


def _attach():
    Variable.dim = property(lambda self: Dim(self.context, native.tiny_variable_dim(self)))
    Tensor.shape = property(native.shape)
    Tensor.__hash__ = object.__hash__
    Tensor.__repr__ = _repr
    Tensor.__bool__ = _bool
    Tensor.__len__ = _length
    Tensor.__float__ = lambda self: float(self.item())
    Tensor.__int__ = lambda self: int(self.item())
    Tensor.__array_priority__ = 1000  # NumPy leaves array + tensor to the tensor
    Tensor.__array__ = lambda self, dtype=None, copy=None: (
        self.numpy() if dtype is None else self.numpy().astype(dtype))
    Tensor.__dlpack__ = _dlpack
    Tensor.__dlpack_device__ = lambda self: _CPU
    Tensor.memoryview = _memoryview
    Tensor.numpy = _numpy
    Tensor.tolist = _tolist
    Tensor.item = _item


_attach()
