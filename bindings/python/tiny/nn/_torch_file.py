"""Files of torch.save, read without executing anything.

Such a file is pickles and the elements of each storage: a .zip since PyTorch 1.6, one stream before, a .tar before that.
The unpickler knows by name what a state dictionary is made of and refuses all else: no class or function that the file
names is imported or called.  Elements stay where they are in the file until they are needed.
"""

import collections
import pickle
import struct
import tarfile
import zipfile

from .._reading import Reading
from ..methods import Dtype, dtype_size
from ..native import Tensor
from ._tensor_io import bytes_of, opened, reader, tar_extract, zip_extract

_STORAGES = {"FloatStorage": Dtype.FLOAT32, "DoubleStorage": Dtype.FLOAT64, "HalfStorage": Dtype.FLOAT16,
             "BFloat16Storage": Dtype.BFLOAT16, "LongStorage": Dtype.INT64, "IntStorage": Dtype.INT32,
             "ShortStorage": Dtype.INT16, "CharStorage": Dtype.INT8, "ByteStorage": Dtype.UINT8,
             "BoolStorage": Dtype.BOOL}
# No operation of a pickle that is none of torch.save's: what is looked up by number, and memory of a said size.
_NEVER = [code[0] for code in (pickle.EXT1, pickle.EXT2, pickle.EXT4, pickle.BYTEARRAY8, pickle.NEXT_BUFFER,
                               pickle.READONLY_BUFFER, pickle.FROZENSET, pickle.ADDITEMS, pickle.EMPTY_SET)]
_MAGIC = 0x1950A86A20F9469CFC6C
_BROKEN = (pickle.UnpicklingError, EOFError, KeyError, AttributeError, TypeError, IndexError, ValueError, OverflowError,
           MemoryError, RuntimeError, struct.error)


class _Storage:
    """Elements of one type, in the bytes of a file; `content` is None until it is known where they lie."""

    def __init__(self, dtype, content=None):
        self.dtype, self.content = dtype, content

    def elements(self):
        if self.content is None:
            raise pickle.UnpicklingError("the elements of a storage are not there")
        size = dtype_size(self.dtype)
        return self.content[:self.content.shape[0] // size * size].bitcast(self.dtype)


class _Kind:
    """The name of a type of storage."""

    def __init__(self, dtype):
        self.dtype = dtype


class _Lazy:
    """A tensor of a storage whose place in the file is told later."""

    def __init__(self, storage, offset, size, stride):
        self.storage, self.offset, self.size, self.stride = storage, offset, size, stride

    def tensor(self) -> Tensor:
        size, stride = tuple(self.size), tuple(self.stride)
        if len(size) != len(stride) or not all(isinstance(one, int) and one >= 0 for one in (*size, self.offset)):
            raise pickle.UnpicklingError(f"a tensor of sizes {size}, strides {stride} at {self.offset}")
        flat = self.storage.elements()
        if 0 in size:
            return flat.context.full(flat.dtype, list(size), 0)
        behind, count = [], 1
        for one in reversed(size):
            behind.insert(0, count)
            count *= one
        if all(one == 1 or a == b for one, a, b in zip(size, stride, behind)):
            if self.offset + count > flat.shape[0]:
                raise pickle.UnpicklingError(f"a tensor of sizes {size} at {self.offset} in {flat.shape[0]} elements")
            return flat[self.offset:self.offset + count].reshape(size)
        return Tensor.contiguous(Tensor.as_strided(flat, list(size), list(stride), self.offset))


def _rebuilt(storage, offset, size, stride, *rest):
    """torch._utils._rebuild_tensor and _rebuild_tensor_v2."""
    if not isinstance(storage, _Storage):
        raise pickle.UnpicklingError("a tensor is made of something that is no storage")
    return _Lazy(storage, offset, size, stride)


def _parameter(data, *rest):
    """torch._utils._rebuild_parameter."""
    return data


class _Parameter:
    """torch.nn.Parameter of the oldest files: its state begins with the tensor."""

    tensor = None


class _Inert:
    """An object of a class that is not known here: it takes what the file says of it, and does nothing."""

    def __init__(self, *arguments, **keywords):
        self.arguments, self.items = arguments, []

    def append(self, item):
        self.items.append(item)

    def extend(self, items):
        self.items.extend(items)

    def __setitem__(self, key, value):
        self.items.append((key, value))


_KNOWN = {("torch._utils", "_rebuild_tensor_v2"): _rebuilt, ("torch._utils", "_rebuild_tensor"): _rebuilt,
          ("torch._utils", "_rebuild_parameter"): _parameter, ("torch.nn.parameter", "Parameter"): _Parameter,
          ("torch", "Size"): tuple, ("collections", "OrderedDict"): collections.OrderedDict}


class _Unpickler(pickle._Unpickler):
    """Python's own, in Python: what a broken file asks of it is an exception, and its memo is a dict."""

    dispatch = {key: value for key, value in pickle._Unpickler.dispatch.items() if key not in _NEVER}

    def __init__(self, file, storage_of):
        super().__init__(file, encoding="utf-8")
        self.storage_of = storage_of

    def find_class(self, module, name):
        if module == "torch" and name in _STORAGES:
            return _Kind(_STORAGES[name])
        if (module, name) in _KNOWN:
            return _KNOWN[module, name]
        if Reading.tinygrad:  # as there, without a class of the file's choice
            return _Inert
        raise ValueError(f"the file wants {module}.{name}, which is no part of a state dictionary; nothing of a file is "
                         "executed")

    def persistent_load(self, pid):
        return self.storage_of(pid)

    def _put(self, count):
        """Items of a dict, by keys that are quickly told apart."""
        items = self.stack[-count:] if count else []
        del self.stack[len(self.stack) - count:]
        target = self.stack[-1]
        if not isinstance(target, (dict, _Inert)):
            raise pickle.UnpicklingError(f"items of a {type(target).__name__}")
        for key, value in zip(items[::2], items[1::2]):
            if not isinstance(key, (str, int, float, bytes, type(None))):
                raise pickle.UnpicklingError(f"a key of type {type(key).__name__}")
            target[key] = value

    def load_setitem(self):
        self._put(2)
    dispatch[pickle.SETITEM[0]] = load_setitem

    def load_setitems(self):
        items = self.pop_mark()
        self.stack.extend(items)
        self._put(len(items) // 2 * 2)
    dispatch[pickle.SETITEMS[0]] = load_setitems

    def load_build(self):
        state = self.stack.pop()
        target = self.stack[-1]
        if isinstance(target, _Parameter):
            target.tensor = state[0]
        elif isinstance(target, collections.OrderedDict):
            pass  # _metadata: of modules
        elif not isinstance(target, _Inert):
            raise pickle.UnpicklingError(f"the file changes a {type(target).__name__}")
    dispatch[pickle.BUILD[0]] = load_build


class _Finished:
    """What a pickle gave with tensors in the places of what stands for them; what is shared stays so."""

    def __init__(self):
        self.done, self.begun = {}, set()

    def __call__(self, value):
        if id(value) in self.done:
            return self.done[id(value)][1]
        if id(value) in self.begun:
            raise pickle.UnpicklingError("a container that has itself in it")
        self.begun.add(id(value))
        made = self._made(value)
        self.done[id(value)] = value, made  # the value lives, and with it its id
        return made

    def _made(self, value):
        if isinstance(value, _Lazy):
            return value.tensor()
        if isinstance(value, _Parameter):
            return self(value.tensor)
        if isinstance(value, _Kind):
            return value.dtype
        if isinstance(value, dict):
            return type(value)((key, self(part)) for key, part in value.items())
        if isinstance(value, (list, tuple)):
            return type(value)(self(part) for part in value)
        return value


def _kind_of(dtype):
    if not isinstance(dtype, _Kind):
        raise pickle.UnpicklingError("a storage of no known type")
    return dtype.dtype


def _of_zip(t):
    files = zip_extract(t)
    names = [name for name in files if name.endswith("/data.pkl") or name == "data.pkl"]
    if len(names) != 1:
        raise ValueError(f"it has {len(names)} pickles; torch.save writes one, data.pkl")
    folder, storages = names[0][:-len("data.pkl")], {}

    def storage_of(pid):
        if not isinstance(pid, tuple) or len(pid) < 3 or pid[0] != "storage":
            raise pickle.UnpicklingError("it refers to what is no storage")
        if pid[2] not in storages:
            storages[pid[2]] = _Storage(_kind_of(pid[1]), files[f"{folder}data/{pid[2]}"])
        return storages[pid[2]]
    return _Unpickler(reader(files[names[0]]), storage_of).load()


def _no_storage(pid):
    raise pickle.UnpicklingError("it refers to a storage before there is one")


def _count(file):
    count = _Unpickler(file, _no_storage).load()
    if not isinstance(count, int) or count < 0:
        raise pickle.UnpicklingError(f"a number is wanted, not {count!r}")
    return count


def _of_tar(t):
    files = tar_extract(t)
    file, storages = reader(files["storages"]), {}
    for _ in range(_count(file)):
        key, _, kind = _Unpickler(file, _no_storage).load()
        size, = struct.unpack("<q", file.read(8))
        begin, dtype = file.tell(), _kind_of(kind)
        end = begin + size * dtype_size(dtype)
        if not begin <= end <= files["storages"].shape[0]:
            raise EOFError(f"a storage of {size} elements")
        storages[key] = _Storage(dtype, files["storages"][begin:end])
        file.seek(end)
    file, tensors = reader(files["tensors"]), {}
    for _ in range(_count(file)):
        key, storage, _ = _Unpickler(file, _no_storage).load()
        axes, _ = struct.unpack("<ii", file.read(8))
        if not 0 <= axes <= 64:
            raise pickle.UnpicklingError(f"a tensor of {axes} axes")
        numbers = struct.unpack(f"<{2 * axes + 1}q", file.read(16 * axes + 8))
        tensors[str(key)] = _Lazy(storages[storage], numbers[-1], numbers[:axes], numbers[axes:2 * axes])
    return _Unpickler(reader(files["pickle"]), lambda pid: tensors[str(pid)]).load()


def _of_stream(t):
    file = reader(t)
    if _Unpickler(file, _no_storage).load() != _MAGIC:
        raise ValueError("it begins as none that torch.save writes")
    for _ in range(2):  # the version of the format, the machine's word sizes
        _Unpickler(file, _no_storage).load()
    storages = {}

    def storage_of(pid):
        if not isinstance(pid, tuple) or len(pid) < 5 or pid[0] != "storage" or (len(pid) > 5 and pid[5] is not None):
            raise pickle.UnpicklingError("it refers to what is no storage")
        return storages.setdefault(pid[2], _Storage(_kind_of(pid[1])))
    value = _Unpickler(file, storage_of).load()
    keys = _Unpickler(file, _no_storage).load()
    begin = file.tell()
    for key in keys:  # their elements, behind their numbers
        count, = struct.unpack("<q", bytes_of(t, begin, begin + 8))
        end = begin + 8 + count * dtype_size(storages[key].dtype)
        if not begin + 8 <= end <= t.shape[0]:
            raise EOFError(f"a storage of {count} elements")
        storages[key].content = t[begin + 8:end]
        begin = end
    return value


def torch_load(fn) -> dict:
    """What torch.save wrote: a state dictionary, or nested dicts, lists, tuples, numbers and texts with tensors.  Of a
    path, or a tensor of the file's bytes.  ValueError for what is none, and for what would have to be called."""
    t = opened(fn)
    name = "the tensor" if fn is t else fn
    head = bytes(bytes_of(t, 0, 512))
    try:
        if head[:4] == b"PK\3\4":
            found = _of_zip(t)
        elif head[257:262] == b"ustar":
            found = _of_tar(t)
        elif head[:1] == b"\x80":
            found = _of_stream(t)
        else:
            raise ValueError("it is no zip archive, no tar and no pickle, as torch.save makes them")
        return _Finished()(found)
    except (*_BROKEN, zipfile.BadZipFile, tarfile.TarError) as error:
        text = str(error) or type(error).__name__
        raise ValueError(f"torch_load: {name}: {text}") from error
