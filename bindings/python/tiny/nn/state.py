"""States: the tensors of a model by dotted names, to files and back, by tinygrad's names."""

from .._archive import get_parameters, get_state_dict, load_state_dict, safe_load, safe_save  # noqa: F401
from ._torch_file import torch_load  # noqa: F401
