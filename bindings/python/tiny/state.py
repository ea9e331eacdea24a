"""States: the tensors of a model by dotted names, to files and back."""

from ._archive import get_parameters, get_state_dict, load_state_dict, safe_load, safe_save

__all__ = ["get_parameters", "get_state_dict", "load_state_dict", "safe_load", "safe_save"]
