"""tinygrad.tensor: the class, and what programs import beside it."""

from ... import dtypes  # noqa: F401
from ..._devices import Device  # noqa: F401
from ...native import Tensor  # noqa: F401
from .._absent import names_of
from .dtype import _from_np_dtype, _to_np_dtype  # noqa: F401


def is_numpy_ndarray(value) -> bool:
    return f"{type(value).__module__}.{type(value).__name__}" == "numpy.ndarray"


__getattr__ = names_of(__name__)
