"""tinygrad.engine.jit on tiny's TinyJit."""

from .... import JitError, TinyJit  # noqa: F401
from ..._absent import names_of

__getattr__ = names_of(__name__)
