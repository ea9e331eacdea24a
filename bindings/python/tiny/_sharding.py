"""Tensor.shard: tensors over several devices (_sharded.py).  Devices whose memory is the host's are one, "CPU:0", "CPU:1",
..: a tensor that is spread over them is where it was, and its kernels run on all cores in any case."""

from ._creation import check_device
from ._movement import axis_of
from ._placing import context_on, is_one_place
from .native import Context, Tensor


def _checked(self, devices, axis):
    """The devices, their contexts, and the axis as a number."""
    devices = (devices,) if isinstance(devices, (str, Context)) else tuple(devices)
    if not devices:
        raise ValueError("shard: no devices")
    for device in devices:
        if not isinstance(device, Context):
            check_device(device)
    if axis is not None:
        axis = axis_of(self, axis)
        size = self.shape[axis]
        if isinstance(size, int) and size % len(devices):
            raise RuntimeError(f"shard: axis {axis} of shape {list(self.shape)} is no multiple of {len(devices)} devices")
    contexts = [device if isinstance(device, Context) else context_on(device, self.context) for device in devices]
    return devices, contexts, axis


def _shard(self, devices, axis=None) -> Tensor:
    """From now on it is spread over devices, along an axis, or each has a copy.  A device is a name, or a context."""
    devices, contexts, axis = _checked(self, devices, axis)
    if is_one_place(self, devices):
        self._devices = devices
        return self
    from . import _sharded
    return _sharded.become(self, contexts, axis)


def _sharded(self, devices, axis=None) -> Tensor:
    """Spread over devices, along an axis, or a copy for each.  A device is a name, or a context."""
    named, contexts, axis = _checked(self, devices, axis)
    if is_one_place(self, named):
        return _shard(self.contiguous(), devices, axis)
    from . import _sharded
    return _sharded.spread(self, contexts, axis)


def _shard_like(self, other) -> Tensor:
    """Spread as another tensor is."""
    if not isinstance(other, Tensor):
        raise TypeError(f"shard_like: a tensor is wanted, not {type(other).__name__}")
    if hasattr(other, "_parts"):
        return _sharded(self, [part.context for part in other._parts], other.axis)
    return self


Tensor.shard, Tensor.shard_ = _sharded, _shard
Tensor.shard_like = _shard_like
