"""tinygrad.runtime.ops_python: numbers as elements have them."""

from ..dtype import bitcast, from_storage_scalar, storage_fmt_for_dtype, to_storage_scalar, truncate  # noqa: F401
from ..._absent import names_of

__getattr__ = names_of(__name__)
