"""What `import tinygrad` gives."""

from ... import JitError, TinyJit, function, nn  # noqa: F401
from ...native import Tensor, Variable  # noqa: F401
from ... import dtypes  # noqa: F401
from ...helpers import Context, GlobalCounters, getenv  # noqa: F401
from ..._inside import lazy as __getattr__  # noqa: F401  UOp
