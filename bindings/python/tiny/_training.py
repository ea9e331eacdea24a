"""Gradients as training loops write them: x.requires_grad, loss.backward(), x.grad, Tensor.training."""

import contextlib

from . import _tape, native
from ._creation import FLOATS
from .methods import Optimizer, gradient
from .native import Tensor


def _requires_grad(self) -> bool | None:
    """True: backward() fills `grad`, or this was made of such tensors.  None: nobody has said."""
    own = self.__dict__.get("_requires_grad")
    return True if own is None and self.__dict__.get("_leaves") else own


def _set_requires_grad(self, value):
    if value and self.dtype not in FLOATS:
        raise TypeError(f"requires_grad: gradients are of floats, and this is a tensor of {self.dtype!r}")
    if self.__dict__.get("_leaves"):
        raise ValueError("requires_grad of a tensor that was made of others that require gradients: detach() it first")
    self._requires_grad = None if value is None else bool(value)


def _requires_grad_(self, requires_grad=True) -> Tensor:
    """Sets requires_grad."""
    _set_requires_grad(self, requires_grad)
    return self


def _grad(self) -> Tensor | None:
    """What backward() has added up; None if nothing did."""
    found = self.__dict__.get("_gradient")
    if found is not None and _tape.State.capture is not None:
        _tape.State.capture.reads_gradient(self)
    return found


def _set_grad(self, value):
    if value is not None and (not isinstance(value, Tensor) or value.shape != self.shape):
        raise ValueError(f"grad is None or a tensor of shape {list(self.shape)}")
    if _tape.State.capture is not None:
        _tape.State.capture.before_gradient(self)
    self._gradient = value


def _explained(error):
    return RuntimeError(
        f"backward(): {error}: a tensor that requires gradients was assigned to since the loss was built of it, or a "
        "value between them was computed (realize(), or numpy() and the like while Tensor.training is false)")


def _gradients(self, wanted, upstream):
    if self.dtype not in FLOATS:
        raise TypeError(f"backward(): gradients are of floats, and this is a tensor of {self.dtype!r}")
    if upstream is None and self.numel != 1:
        raise ValueError(f"backward() of a tensor of shape {list(self.shape)}: gradients are of one number, such as "
                         "sum() or mean(), or weighed by `gradient`")
    if upstream is None and self.shape:
        upstream = self.ones_like()
    return gradient([self], wanted, [] if upstream is None else [upstream])


def _backward(self, gradient=None) -> Tensor:
    """Adds to `grad` of every tensor that requires gradients and that this was made of what this changes by for a
    change of it.  Before this is computed, and before what it was made of is assigned to."""
    found = _tape.leaves(self)
    if _tape.CUT in found:
        raise RuntimeError("backward(): this tensor, or one that it was made of, was computed already, and has no "
                           "graph to go back through; call backward() once, and before realize()")
    if not found:
        raise RuntimeError("backward(): this was made of no tensor that requires gradients (requires_grad=True, or "
                           "given to an optimiser)")
    found = list(found)
    try:
        slopes = _gradients(self, found, gradient)
    except RuntimeError as error:
        if "has no part in the losses" not in str(error):
            raise
        raise _explained(error) from None
    for leaf, slope in zip(found, slopes):
        _set_grad(leaf, slope if leaf.grad is None else leaf.grad + slope)
    if not self.__dict__.get("_requires_grad"):  # the step computes it, with what it writes
        self._leaves = frozenset((_tape.CUT,))
        if _tape.State.capture is None:
            _tape.written(self)
    return self


def _gradient(self, *targets, gradient=None) -> list[Tensor]:
    """The gradients of this by the targets, which it was built of; see tiny.gradient."""
    return _gradients(self, list(targets), gradient)


def _realize(self, *others) -> Tensor:
    """Computes this and the others now, with the writes to them that are pending."""
    _tape.realize([self, *others])
    return self


_plain_assign = Tensor.assign


def _assign(self, value) -> Tensor:
    """From now on this, and every tensor that shares its elements, has `value` there, which broadcasts; what was built
    of it before keeps the old elements.  Written when work runs that needs it."""
    if _tape.State.capture is not None:
        _tape.State.capture.before_write(self)
    _plain_assign(self, value)
    self._has_memory = True
    _tape.written(self)
    return self


_plain_add, _plain_step = Optimizer.add, Optimizer.step


def _add(self, parameters) -> int:
    """A group of parameters that share settings; its number.  See tiny_optimizer_add."""
    group = _plain_add(self, parameters)
    self.__dict__.setdefault("_written", []).extend(parameters)
    return group


def _step(self, gradients, skip=None) -> None:
    """Writes new values to all parameters, pending: see tiny_optimizer_step."""
    if _tape.State.capture is not None:
        for parameter in self._written:
            _tape.State.capture.before_write(parameter)
    _plain_step(self, gradients, skip)
    _tape.written(*self._written)


class _Mode(contextlib.ContextDecorator):
    """Tensor.training as said, until the block or the function ends."""

    def __init__(self, training):
        self.training, self.before = training, []

    def __enter__(self):
        self.before.append(Tensor.training)
        Tensor.training = self.training

    def __exit__(self, *error):
        Tensor.training = self.before.pop()


def train(mode=True) -> contextlib.AbstractContextManager:
    """`with Tensor.train():`, or as a decorator: Tensor.training is `mode` within."""
    return _Mode(bool(mode))


def _reading(name):
    plain = getattr(Tensor, name)
    plain = plain.fget if isinstance(plain, property) else plain

    def reads(self, *arguments, **keywords):
        source = _tape.read(self)
        result = plain(source, *arguments, **keywords)
        if source is self:
            _tape.computed(self)
        return result
    reads.__name__, reads.__qualname__, reads.__doc__ = name, f"Tensor.{name}", plain.__doc__
    reads.__wrapped__ = plain  # its signature
    return property(reads) if isinstance(getattr(Tensor, name), property) else reads


Tensor.training = False
Tensor.requires_grad = property(_requires_grad, _set_requires_grad)
Tensor.grad = property(_grad, _set_grad)
Tensor.requires_grad_ = _requires_grad_
Tensor.is_param_ = _requires_grad_
Tensor.is_param = property(lambda self: bool(self.__dict__.get("_requires_grad")))
Tensor.backward = _backward
Tensor.gradient = _gradient
Tensor.realize = _realize
Tensor.assign = _assign
Tensor.train = staticmethod(train)
Optimizer.add, Optimizer.step = _add, _step
for _name in ("read", "data_ptr", "numpy", "tolist", "memoryview", "__dlpack__"):
    setattr(Tensor, _name, _reading(_name))
