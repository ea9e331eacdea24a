"""A tensor that becomes another one, x.replace(y) and x.to_(device), and files of the web as tensors."""

from . import _tape
from ._reading import Reading, WrongArgument
from .native import Tensor


def replace(self, x) -> Tensor:
    """This is what `x` is from now on, its dtype and its memory too; shapes agree.  What was built of it before keeps the
    old elements, as do its views.  Whether it is a parameter, and its gradient, stay."""
    if not isinstance(x, Tensor):
        raise TypeError(f"replace: a tensor is wanted, not {type(x).__name__}; assign() takes numbers")
    if self.shape != x.shape:
        raise WrongArgument(f"replace shape mismatch: {list(self.shape)} is to become {list(x.shape)}")
    if _tape.State.capture is not None:
        raise _tape.JitError("replace() while TinyJit captures: a program would not do it; assign() writes")
    kept = {name: value for name, value in self.__dict__.items() if name in ("_requires_grad", "_gradient")}
    self.__class__ = x.__class__
    self.__dict__.clear()
    self.__dict__.update({name: value for name, value in x.__dict__.items() if name not in ("_requires_grad", "_gradient")})
    self.__dict__.update(kept)
    self.this, self.context = x.this, x.context
    return self


def to_(self, device=None) -> Tensor:
    """Becomes the tensor on a device: to(device)."""
    if isinstance(device, (tuple, list)):
        return self.shard_(device)
    moved = self.to(device)
    return self if moved is self else replace(self, moved)


_plain_device = Tensor.device


def _device(self) -> str:
    """Where the elements are: "cpu", "cuda:1", or as tinygrad spells it "CPU"."""
    name = _plain_device.fget(self).removesuffix(":0")
    return name.upper() if Reading.tinygrad else name


def from_url(url, gunzip=False, device=None) -> Tensor:
    """The bytes of a file of the web, kept where fetch() keeps it, uint8; `gunzip` unpacks it."""
    from .helpers import fetch
    import pathlib
    made = Tensor(pathlib.Path(fetch(url, gunzip=gunzip)))
    return made if device is None else made.to(device)


Tensor.replace = replace
Tensor.to_ = to_
Tensor.device = property(_device)
Tensor.from_url = staticmethod(from_url)
