"""States: the tensors of a model by dotted names, to files and back."""

from ._archive import (  # noqa: F401
    get_parameters, get_state_dict, load_state_dict, safe_load, safe_save)
