"""What `import tinygrad` gives."""

from ... import JitError, TinyJit, nn  # noqa: F401
from ...native import Tensor, Variable  # noqa: F401
from ... import dtypes  # noqa: F401
from ..._devices import Device  # noqa: F401
from ...helpers import Context, GlobalCounters, fetch, getenv  # noqa: F401
from . import function as _function
from .._absent import absent

function = _function.function
try:
    from .uop.ops import UOp
except ImportError:
    UOp = absent(__name__, "UOp")
