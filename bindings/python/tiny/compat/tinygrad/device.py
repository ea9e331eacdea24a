"""tinygrad.device: what there is of it here."""

from ..._devices import Allocator, Compiled, Compiler, Device  # noqa: F401
from .._absent import names_of


def canonicalize_device(device):
    """The name of a device, or of each."""
    return tuple(map(Device.canonicalize, device)) if isinstance(device, (tuple, list)) else Device.canonicalize(device)


__getattr__ = names_of(__name__)
