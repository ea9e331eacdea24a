"""States: the tensors of a model by dotted names, to files and back, by tinygrad's names; and other files of tensors.

    nn.state.safe_save(nn.state.get_state_dict(net), "net.safetensors")
    nn.state.load_state_dict(net, nn.state.safe_load("net.safetensors"))
"""

from .._archive import get_parameters, get_state_dict
from ._load import load_state_dict
from ._safetensors import safe_load, safe_load_metadata, safe_save
from ._tensor_io import TensorIO, tar_extract, zip_extract
from ._torch_file import torch_load

__all__ = ["TensorIO", "get_parameters", "get_state_dict", "load_state_dict", "safe_load", "safe_load_metadata", "safe_save",
           "tar_extract", "torch_load", "zip_extract"]
