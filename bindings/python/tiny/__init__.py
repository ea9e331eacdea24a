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
from . import state  # noqa: E402,F401
from ._archive import load, save  # noqa: E402,F401
from ._custom import CustomOp, Spec, custom_op  # noqa: E402,F401
from ._dimension import Dim  # noqa: E402,F401  n + 1
from ._operator import op  # noqa: E402,F401
from ._tensor import (  # noqa: E402,F401  operators
    default_context, from_buffer, from_dlpack, tensor, wrap)
from ._data import from_blob, meshgrid  # noqa: E402,F401

from . import dtypes, _values, _random, _movement, _functions, _indexing, _training  # noqa: E402,F401  Tensor's methods
from . import _sharding, _variables  # noqa: E402,F401  Tensor.shard, Variable
from . import _elementwise, _arrangement, _running, _places, _matrices  # noqa: E402,F401
from . import _decompositions, _hashing, _resizing  # noqa: E402,F401
from . import nn  # noqa: E402,F401
from ._jit import JitError, TinyJit, function  # noqa: E402,F401
from . import helpers  # noqa: E402,F401
from .helpers import GlobalCounters, fetch, getenv  # noqa: E402,F401
from ._devices import Device  # noqa: E402,F401
from . import _screens  # noqa: E402,F401  DEBUG while a program runs
from ._inside import lazy as __getattr__  # noqa: E402,F401  tiny.UOp, Tensor.uop

from . import _bitcast, _rebinding  # noqa: E402,F401  Tensor.bitcast to another size, Tensor.replace
from ._dtype import DType, numbered as _numbered  # noqa: E402

globals().update({member.name.lower(): _numbered(int(member)) for member in methods.Dtype})

__version__ = native.tiny_version()
