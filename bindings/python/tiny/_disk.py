"""Tensors that lie in files: Tensor(Path("w.bin")), Tensor.empty(4, device="disk:w.bin"), x.to("disk:w.bin").

A file is mapped, and a tensor of it is that memory: nothing is read before it is needed; slices, reshapes and bitcasts
are places in the file; an assignment has written the file when it returns.  to("CPU") makes a tensor of its own of it.
While programs of tinygrad's run (Reading.tinygrad) a tensor on disk takes part in nothing else, as there: its
arithmetic, a cast and a view that skips elements raise NotOnDisk.
"""

import math
import mmap
import os

from . import _tape, native
from ._dimension import is_dimension
from ._reading import Reading
from ._operands import COMPARISONS, OPERATORS
from ._tensor import default_context
from .methods import Dtype, dtype_size
from .native import Tensor

_LETTERS = {1: "B", 2: "H", 4: "I", 8: "Q"}  # memoryview's, of as many bytes
# As many as the engine has.
_AXES = 16


_SHARED = "/dev/shm"  # where Linux has shared memory


class NotOnDisk(NotImplementedError, AssertionError):
    """What tensors on disk do not take part in: to("CPU") makes one of its own."""


class File:
    """A file's bytes as memory, `size` of them.  With `least` the file is made, or made longer, to have so many.  With
    `private` it is only read: a tensor that is assigned to gets memory of its own."""

    def __init__(self, path, least=None, private=False):
        self.path = os.path.abspath(path)
        self.private, self.writable = private, not private
        handle = self._open(os.O_CREAT if least is not None else 0)
        try:
            self.size = os.fstat(handle).st_size
            if least is not None and self.size < least:
                if not self.writable:
                    raise PermissionError(f"{self.path} has {self.size} bytes of {least}, and cannot be written")
                os.ftruncate(handle, least)
                self.size = least
            access = mmap.ACCESS_WRITE if self.writable else mmap.ACCESS_READ
            self.memory = mmap.mmap(handle, self.size, access=access) if self.size else b""
        finally:
            os.close(handle)

    def _open(self, flags):
        if self.writable:
            try:
                return os.open(self.path, os.O_RDWR | flags, 0o666)
            except FileNotFoundError:
                raise
            except OSError:  # may be read at least
                self.writable = False
        return os.open(self.path, os.O_RDONLY)

    def tensor(self, start, dtype, shape, context=None) -> Tensor:
        """The elements from byte `start` on.  Where they do not lie at multiples of their size, a copy."""
        size, count = dtype_size(dtype), math.prod(shape)
        if start < 0 or any(dim < 0 for dim in shape) or start + count * size > self.size:
            raise ValueError(f"{self.path}: {list(shape)} elements of {size} bytes from byte {start} on are not in its "
                             f"{self.size} bytes")
        context = context or default_context()
        part = memoryview(self.memory)[start:start + count * size]
        if not count or len(shape) > _AXES:
            return Tensor.from_data(context, dtype, list(shape), part)
        part = part if start % size == 0 else memoryview(bytearray(part))
        made = native.tiny_wrap_buffer(context, dtype, part.cast(_LETTERS[size], shape))
        made.context = context
        return made


def is_disk(device):
    """Whether it names a file: "disk:PATH"."""
    return isinstance(device, str) and device[:5].lower() == "disk:"


def path_of(device):
    """The file that it names; of shared memory ("disk:shm:NAME") that which shm_open has."""
    if len(device) < 6:
        raise ValueError(f"device {device!r}: a path is wanted, disk:PATH")
    path = device[5:]
    return os.path.join(_SHARED, path[4:].lstrip("/")) if path.startswith("shm:") else path


def place(file, start, dtype, shape) -> Tensor:
    """A tensor on disk."""
    made = file.tensor(start, dtype, shape)
    made.__class__ = OnDisk
    made._file, made._start, made._packed = file, start, True
    made._copied = start % dtype_size(dtype) != 0
    return made


def open_path(path, dtype=None, private=False) -> Tensor:
    """All of a file, uint8 if nothing else is said: as many elements as it has whole."""
    dtype = Dtype.UINT8 if dtype is None else dtype
    file = File(path, private=private)
    return place(file, 0, dtype, (file.size // dtype_size(dtype),))


def make(device, shape, dtype) -> Tensor:
    """The first elements of a file, which is made if it is not there."""
    file = File(path_of(device), math.prod(shape) * dtype_size(dtype))
    return place(file, 0, dtype, tuple(shape))


def written(tensor, device) -> Tensor:
    """The elements of a tensor, computed now, in a file."""
    made = make(device, tensor.shape, tensor.dtype)
    if tensor.numel:
        made.assign(tensor)
    return made


def _is_packed(shape, strides):
    """Whether elements of these strides lie one behind the other."""
    behind = 1
    for size, stride in zip(reversed(shape), reversed(strides)):
        if size != 1 and stride != behind:
            return False
        behind *= size
    return True


def _placed(source, made):
    """What a view of a tensor on disk is: on disk too."""
    if isinstance(made, (list, tuple)):
        return type(made)(_placed(source, one) for one in made)
    if made.__class__ is OnDisk:
        return made
    if source._copied and made.numel:
        return _again(source, made)
    packed = not made.numel or _is_packed(made.shape, made.strides)
    if not packed and Reading.tinygrad:
        raise NotOnDisk(f"non-contiguous view is not supported: of {source.device}; to(\"CPU\") makes it another tensor")
    made.__class__ = OnDisk
    made._file, made._packed, made._copied = source._file, packed, False
    made._base = source._base
    made._start = source._base + made.offset * dtype_size(made.dtype)
    return made


def _again(source, made):
    """Of a copy, where a view is a place in the file only if it can be found again."""
    if not _is_packed(made.shape, made.strides):
        return made
    start = source._start + made.offset * dtype_size(made.dtype)
    return place(source._file, start, made.dtype, made.shape)


class OnDisk(Tensor):
    """A Tensor whose memory is a file's."""

    # Where the engine counts offsets from: the byte at which its memory begins.
    _base = property(lambda self: self.__dict__.get("_origin", self._start),
                     lambda self, value: self.__dict__.__setitem__("_origin", value))
    device = property(lambda self: f"DISK:{self._file.path}")

    def bitcast(self, dtype) -> Tensor:
        """The same bytes as elements of another size too: of the last axis."""
        from ._operands import dtype as dtype_of
        dtype = dtype_of(dtype)
        size, other = dtype_size(self.dtype), dtype_size(dtype)
        if not self._packed:
            return Tensor.bitcast(self, dtype)
        shape = self.shape
        if size != other:
            last = shape[-1] * size if shape else 0
            if not shape or last % other:
                raise RuntimeError(f"bitcast: the {last} bytes of the last axis of {list(shape)} are not whole elements "
                                   f"of {other} bytes")
            shape = (*shape[:-1], last // other)
        return place(self._file, self._start, dtype, shape)

    def to(self, device=None) -> Tensor:
        """A tensor of its own, or the elements in another file."""
        if is_disk(device):
            return self if os.path.abspath(path_of(device)) == self._file.path else written(self, device)
        copied = Tensor.contiguous(self)
        return copied if device is None else copied.to(device)

    def contiguous(self, *arguments, **keywords) -> Tensor:
        """The elements one behind the other, as they are in the file already."""
        return self if self._packed else Tensor.contiguous(self)

    def cast(self, dtype) -> Tensor:
        if Reading.tinygrad:
            raise NotOnDisk(f"cast of a tensor on {self.device}; to(\"CPU\") makes it another tensor")
        return Tensor.cast(self, dtype)

    def assign(self, value) -> Tensor:
        """Writes the elements to the file."""
        if self._file.private:
            self.__class__ = Tensor
            return self.assign(value)
        if not self._file.writable:
            raise PermissionError(f"{self._file.path} can only be read")
        if not isinstance(value, Tensor):
            value = Tensor(value, dtype=self.dtype)
        if value.__class__ is OnDisk:
            value = Tensor.contiguous(value)
        Tensor.assign(self, value)
        _tape.realize([self])
        if self._copied and self.numel:
            content = bytearray(self.numel * dtype_size(self.dtype))
            native.tiny_tensor_read(self, content)
            self._file.memory[self._start:self._start + len(content)] = bytes(content)
        return self

    def __getitem__(self, key) -> Tensor:
        made = Tensor.__getitem__(self, key)
        return _placed(self, made) if _is_basic(key) else made

    def __setitem__(self, key, value):
        if not _is_basic(key):
            raise NotOnDisk(f"x[positions] = value of a tensor on {self.device}: integers and slices are written to")
        self[key].assign(value)


def _is_basic(key):
    return all(part is None or part is Ellipsis or isinstance(part, slice) or
               (is_dimension(part) and not isinstance(part, Tensor))
               for part in (key if isinstance(key, tuple) else (key,)))


def _view(name, if_packed):
    def view(self, *arguments, **keywords):
        made = getattr(Tensor, name)(self, *arguments, **keywords)
        return _placed(self, made) if self._packed or not if_packed else made
    view.__name__, view.__qualname__ = name, f"OnDisk.{name}"
    return view


def _refused(name):
    def refused(self, *others):
        if Reading.tinygrad:
            raise NotOnDisk(f"{name} of a tensor on {self.device}; to(\"CPU\") makes it another tensor")
        return getattr(Tensor, name)(self, *others)
    refused.__name__, refused.__qualname__ = name, f"OnDisk.{name}"
    return refused


for _name in ("permute", "transpose", "flip", "expand", "shrink", "slice", "squeeze", "unsqueeze", "split", "chunk"):
    setattr(OnDisk, _name, _view(_name, False))
for _name in ("reshape", "view", "flatten", "unflatten"):
    setattr(OnDisk, _name, _view(_name, True))
OnDisk.T = property(lambda self: self.transpose(0, 1) if self.rank == 2 else _placed(self, Tensor.T.fget(self)))
for _name in (*OPERATORS, *(f"r{name}" for name in OPERATORS), *COMPARISONS):
    setattr(OnDisk, f"__{_name}__", _refused(f"__{_name}__"))
OnDisk.__hash__ = Tensor.__hash__
