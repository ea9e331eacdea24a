"""Files of torch.save, read without executing anything.

Such a file is a zip archive of one pickle and of the elements of each storage.  The unpickler knows by name what a
state dictionary is made of and refuses all else: no class or function that the file names is imported or called.
"""

import collections
import pickle
import zipfile

from .._tensor import from_buffer
from ..methods import Dtype, dtype_size
from ..native import Tensor

_STORAGES = {"FloatStorage": Dtype.FLOAT32, "DoubleStorage": Dtype.FLOAT64, "HalfStorage": Dtype.FLOAT16,
             "BFloat16Storage": Dtype.BFLOAT16, "LongStorage": Dtype.INT64, "IntStorage": Dtype.INT32,
             "ShortStorage": Dtype.INT16, "CharStorage": Dtype.INT8, "ByteStorage": Dtype.UINT8,
             "BoolStorage": Dtype.BOOL}


def _tensor(storage, offset, size, stride, *rest) -> Tensor:
    """torch._utils._rebuild_tensor_v2."""
    if 0 in size:
        return storage.context.full(storage.dtype, size, 0)
    return storage.as_strided(size, stride, offset).contiguous()


def _parameter(data, *rest) -> Tensor:
    """torch._utils._rebuild_parameter."""
    return data


_KNOWN = {("torch._utils", "_rebuild_tensor_v2"): _tensor, ("torch._utils", "_rebuild_parameter"): _parameter,
          ("collections", "OrderedDict"): collections.OrderedDict}


class _Unpickler(pickle.Unpickler):
    def __init__(self, archive, name):
        super().__init__(archive.open(name))
        self.archive, self.folder, self.storages = archive, name[:-len("data.pkl")], {}

    def find_class(self, module, name):
        if module == "torch" and name in _STORAGES:
            return _STORAGES[name]
        if (module, name) not in _KNOWN:
            raise ValueError(f"torch_load: the file wants {module}.{name}, which is no part of a state dictionary; "
                             "nothing of a file is executed")
        return _KNOWN[module, name]

    def persistent_load(self, pid):
        kind, dtype, key = pid[:3]
        if kind != "storage" or not isinstance(dtype, Dtype):
            raise ValueError(f"torch_load: the file refers to {kind!r}, which is no storage")
        if key not in self.storages:
            elements = self.archive.read(f"{self.folder}data/{key}")
            self.storages[key] = from_buffer(elements, dtype, [len(elements) // dtype_size(dtype)])
        return self.storages[key]


def torch_load(path) -> dict:
    """What torch.save wrote: a state dictionary, or nested dicts, lists, tuples, numbers and texts with tensors.  In
    its zip format (PyTorch 1.6 and newer); ValueError for what is none, and for what would have to be called."""
    if not zipfile.is_zipfile(path):
        raise ValueError(f"torch_load: {path} is no zip archive, as torch.save makes them since PyTorch 1.6")
    with zipfile.ZipFile(path) as archive:
        names = [name for name in archive.namelist() if name.endswith("/data.pkl") or name == "data.pkl"]
        if len(names) != 1:
            raise ValueError(f"torch_load: {path} has {len(names)} pickles; torch.save writes one, data.pkl")
        try:
            return _Unpickler(archive, names[0]).load()
        except (pickle.UnpicklingError, EOFError, KeyError, AttributeError, TypeError, IndexError) as error:
            raise ValueError(f"torch_load: {path} is broken: {error}") from error
