"""A device "tiny" of PyTorch: `import tiny.torch`, then `x.to("tiny")`.  docs/TORCH.md has the rest."""

import os
import pathlib

import torch

from ._built import TORCH  # noqa: E402

if torch.__version__.split("+")[0] != TORCH:
    raise ImportError(f"tiny.torch was built for PyTorch {TORCH}; this is {torch.__version__}")
torch.ops.load_library(pathlib.Path(__file__).with_name("_device.so"))
torch.utils.rename_privateuse1_backend("tiny")

from . import _module  # noqa: E402 - the device has its name before it has a module

torch._register_device_module("tiny", _module)
torch.utils.generate_methods_for_privateuse1_backend(for_tensor=True, for_module=True, for_packed_sequence=True,
                                                     for_storage=True)

from ._module import *  # noqa: E402,F403 - tiny.torch has what torch.tiny has
from . import _attention, _bags, _composites, _decompositions, _ending, _orders, _parameters, _sparse  # noqa: E402 - kernels come before what is made of them

_library = _decompositions.register()
for _made in _attention, _bags, _composites, _orders, _sparse:
    _made.register(_library)
_parameters.keep()
_ending.register()
if os.environ.get("TINY_BACKEND", "0") not in ("", "0"):
    from . import _launch

    _launch.take_over()
