"""What `import tinygrad` gives."""

from ... import JitError, TinyJit, nn  # noqa: F401
from ...native import Tensor, Variable  # noqa: F401
from ... import dtypes  # noqa: F401
from ..._devices import Device  # noqa: F401
from ..._inside import lazy as _lazy
from ...helpers import Context, GlobalCounters, fetch, getenv  # noqa: F401
from . import function as _function

function = _function.function


def __getattr__(name):
    if name == "UOp":
        from .uop.ops import UOp
        return UOp
    return _lazy(name)
