"""tiny: an embeddable deep-learning engine, over its C ABI (include/tiny.h).

    import numpy, tiny
    a = tiny.tensor([[1.0, 2.0], [3.0, 4.0]])
    print((a * 2 + 1).sum(axes=1).numpy())

Every function of tiny.h is a method of Tensor, Context, .. or a function of this package, under its
own name; the operations of a family (`TINY_EXP`, `TINY_ADD`) are methods too: `a.exp()`, `a.add(b)`.
Failures raise tiny.Error.  Handles are released with their objects, from any thread.
"""

import os as _os
import threading as _threading

from . import native
from ._errors import Error  # noqa: F401

native.tiny_set_error_class(Error)
native.tiny_set_main_thread(_threading.main_thread().ident)
_os.register_at_fork(after_in_child=lambda: native.tiny_set_main_thread(_threading.get_ident()))

from . import methods  # noqa: E402  attaches the methods
from .methods import *  # noqa: E402,F401,F403
from . import _callbacks, _loader, _model, _run, _window  # noqa: E402,F401  Options.set_log, Model.run, Tensor.conv
from ._archive import load, save  # noqa: E402,F401  Archive is a mapping
from ._dimension import Dim  # noqa: E402,F401  n + 1
from ._tensor import (  # noqa: E402,F401  operators
    default_context, from_buffer, from_dlpack, tensor, wrap)
from ._data import from_blob, meshgrid  # noqa: E402,F401

from . import dtypes, _values, _random, _movement, _functions, _indexing, _training  # noqa: E402,F401  Tensor's methods
from ._together import allgather, allreduce  # noqa: E402,F401  while TinyJit captures, too
from . import _sharding, _variables  # noqa: E402,F401  Tensor.shard, Variable
from . import _elementwise, _arrangement, _running, _places, _matrices  # noqa: E402,F401
from . import _decompositions, _hashing, _operations, _pictures, _resizing  # noqa: E402,F401
from . import _axes, _reductions, _special, _selection, _synonyms  # noqa: E402,F401  NumPy's and PyTorch's names
from . import _inside, _screens  # noqa: E402,F401  Tensor.uop; DEBUG while a program runs

from . import _bitcast, _rebinding  # noqa: E402,F401  Tensor.bitcast to another size, Tensor.replace
from ._dtype import DType, numbered as _numbered  # noqa: E402

globals().update({member.name.lower(): _numbered(int(member)) for member in methods.Dtype})

# Where names are that few programs ask for: an import takes milliseconds without them.
_LATER = {
    "CustomOp": "_custom", "Spec": "_custom", "custom_op": "_custom", "Device": "_devices",
    "GlobalCounters": "_counters", "JitError": "_tape", "TinyJit": "_jit", "fetch": "_fetch", "function": "_jit",
    "getenv": "_settings", "helpers": "helpers", "nn": "nn", "op": "_operator",
    "state": "state", "strides": "strides"}


def __getattr__(name):
    if name not in _LATER:
        return _inside.lazy(name)
    import importlib
    module = importlib.import_module(f"{__name__}.{_LATER[name]}")
    globals()[name] = found = module if name == _LATER[name] else getattr(module, name)
    return found


def __dir__():
    return sorted({*globals(), *_LATER})


__version__ = native.tiny_version()
__all__ = [_name for _name in __dir__() if not _name.startswith("_")]
