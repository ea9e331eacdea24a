"""Tensors over several devices.  All devices of this package are the host's, "CPU:0", "CPU:1", ..: a tensor that is
spread over them is where it was, and its kernels run on all cores in any case."""

from ._creation import check_device
from ._movement import axis_of
from .native import Tensor


def _shard(self, devices, axis=None) -> Tensor:
    """From now on it is spread over devices, along an axis, or each has a copy: it stays where all of them reach it."""
    devices = (devices,) if isinstance(devices, str) else tuple(devices)
    if not devices:
        raise ValueError("shard: no devices")
    for device in devices:
        check_device(device)
    if axis is not None:
        size = self.shape[axis_of(self, axis)]
        if isinstance(size, int) and size % len(devices):
            raise RuntimeError(f"shard: axis {axis} of shape {list(self.shape)} is no multiple of {len(devices)} devices")
    self._devices = devices
    return self


def _sharded(self, devices, axis=None) -> Tensor:
    """Spread over devices, along an axis, or a copy for each: the same value, which all of them reach."""
    return _shard(self.contiguous(), devices, axis)


def _shard_like(self, other) -> Tensor:
    """Spread as another tensor is."""
    if not isinstance(other, Tensor):
        raise TypeError(f"shard_like: a tensor is wanted, not {type(other).__name__}")
    return self


Tensor.shard, Tensor.shard_ = _sharded, _shard
Tensor.shard_like = _shard_like
