"""tinygrad.runtime.ops_python: how numbers are stored."""

from ...._rounding import from_storage_scalar, storage_fmt_for_dtype, to_storage_scalar, truncate  # noqa: F401
from ..._absent import names_of

__getattr__ = names_of(__name__)
