"""Gradients as training loops write them: x.requires_grad, loss.backward(), x.grad, Tensor.training.

There are two readings of what backward() fills.  The package's own: the `grad` of leaves, tensors whose requires_grad
is true.  tinygrad's (Reading): that of every float tensor that is alive and that the loss was made of.
"""

import contextlib

from . import _bitcast, _tape, native  # noqa: F401  Tensor.bitcast
from ._creation import FLOATS
from ._dtype import WEAK, strong
from ._operands import want_tensors
from ._reading import NoFloat, Reading, WrongArgument
from ._tensor import tensor
from .methods import Optimizer, gradient as gradients_of
from .native import Tensor

_ALLOW_UNUSED = native.TINY_FLAG_ALLOW_UNUSED


def _requires_grad(self) -> bool | None:
    """True: backward() fills `grad`, or this was made of such tensors.  None: nobody has said."""
    own = self.__dict__.get("_requires_grad")
    return True if own is None and self.__dict__.get("_leaves") else own


def _set_requires_grad(self, value):
    if value and self.dtype not in FLOATS:
        raise TypeError(f"requires_grad: gradients are of floats, and this is a tensor of {self.dtype!r}")
    if self.__dict__.get("_leaves"):
        raise ValueError("requires_grad of a tensor that was made of others that require gradients: detach() it first")
    if value and not self.__dict__.get("_has_memory"):  # an equal expression is another leaf
        self.this = native.tiny_clone(self).this
    self._requires_grad = None if value is None else bool(value)


def _requires_grad_(self, requires_grad=True) -> Tensor:
    """Sets requires_grad."""
    _set_requires_grad(self, requires_grad)
    return self


def _is_param(self) -> bool:
    """Whether it is a parameter, which optimisers change: in tinygrad's reading everything of which nobody has said that
    it is none."""
    own = self.__dict__.get("_requires_grad")
    return own is not False if Reading.tinygrad else bool(own)


def _is_param_(self, is_param=True) -> Tensor:
    """Says whether it is a parameter; only floats are."""
    self._requires_grad = bool(is_param) and (self.dtype in FLOATS or Reading.tinygrad)
    return self


def _grad(self) -> Tensor | None:
    """What backward() has added up; None if nothing did."""
    if _tape.State.capture is not None:
        return _tape.State.capture.gradient_of(self)
    found = self.__dict__.get("_gradient")
    if isinstance(found, _tape.Inside):
        raise _tape.JitError(found.text)
    return found


def _set_grad(self, value):
    if value is not None and (not isinstance(value, Tensor) or value.shape != self.shape):
        raise ValueError(f"grad is None or a tensor of shape {list(self.shape)}")
    if _tape.State.capture is not None:
        _tape.State.capture.before_gradient(self)
    self._gradient = value


def _accumulate(tensor, slope):
    """Adds to a gradient in its place, so that a program goes on with it; one that the program made is its own."""
    capture = _tape.State.capture
    if isinstance(tensor.__dict__.get("_gradient"), _tape.Inside):  # what is added to it is nobody's, too
        if capture is not None:
            capture.note_inside(tensor)
        return
    had = tensor.grad
    if had is None:
        _set_grad(tensor, slope)
    elif capture is not None and capture.is_inside(tensor):
        _set_grad(tensor, had + slope)
    else:
        had.assign(had + slope)


def _explained(error):
    return RuntimeError(
        f"backward(): {error}: a tensor that requires gradients was assigned to since the loss was built of it, or a "
        "value between them was computed (realize(), or numpy() and the like while Tensor.no_grad is true)")


def _upstream(self, given):
    if self.dtype not in FLOATS:
        raise NoFloat(f"backward(): gradients are of floats, and this is a tensor of {self.dtype!r}")
    if given is None and self.numel != 1:
        raise WrongArgument(f"backward() of a tensor of shape {list(self.shape)}: gradients are of one number, such as "
                            "sum() or mean(), or weighed by `gradient`")
    if given is None:
        return [self.ones_like()] if self.shape else []
    if Reading.tinygrad and given.shape != self.shape:
        given = given.reshape([]).expand(self.shape) if given.numel == 1 else given.reshape(self.shape)
    return [given]


def _backward(self, gradient=None) -> Tensor:
    """Adds to `grad` of every tensor that requires gradients and that this was made of what this changes by for a
    change of it.  Before this is computed, and before what it was made of is assigned to.  In tinygrad's reading to that
    of every float tensor that is alive and that this was made of, itself among them."""
    if Reading.tinygrad:
        return _backward_to_all(self, gradient)
    found = _tape.leaves(self)
    if _tape.CUT in found:
        raise RuntimeError("backward(): this tensor, or one that it was made of, was computed already, and has no "
                           "graph to go back through; call backward() once, and before realize()")
    try:
        found, may_lack = _tape.reached(self, found)
        if not found:
            raise RuntimeError("backward(): this was made of no tensor that requires gradients (requires_grad=True, or "
                               "given to an optimiser)")
        slopes = gradients_of([self], found, _upstream(self, gradient), may_lack)
    except RuntimeError as error:
        if "has no part in the losses" not in str(error):
            raise
        raise _explained(error) from None
    for leaf, slope in zip(found, slopes):
        _accumulate(leaf, slope)
    if not self.__dict__.get("_requires_grad"):  # the step computes it, with what it writes
        self._leaves = frozenset((_tape.CUT,))
        if _tape.State.capture is None:
            _tape.written(self)
    return self


def _is_target(tensor):
    return tensor.dtype in FLOATS and not tensor.__dict__.get("_is_number")


def _backward_to_all(self, gradient):
    if native.Tensor.no_grad:
        raise RuntimeError("backward() while Tensor.no_grad is true")
    upstream = _upstream(self, gradient)
    targets = [tensor for tensor in _tape.living() if _is_target(tensor) and tensor.context is self.context]
    targets = [one for one in (targets[at] for at in self.made_of(targets)) if _tape.is_of_memory(one)]
    for tensor, slope in zip(targets, _slopes(self, targets, upstream)):
        _accumulate(tensor, slope)
    return self


def _slopes(self, targets, upstream):
    if not targets:
        return []
    made = native.tiny_gradient([self], targets, upstream, _ALLOW_UNUSED, len(targets))
    for tensor in made:
        tensor.context = self.context
        _tape.note(tensor)
    return made


def _gradient(self, *targets, gradient=None) -> list[Tensor]:
    """The gradients of this by the targets, which it was built of; see tiny.gradient.  In tinygrad's reading those that
    it was not built of have zeros."""
    if not Reading.tinygrad:
        upstream = _upstream(self, gradient)
        made = gradients_of([self], list(targets), upstream)
        _tape.trace_gradients([self, *upstream], made)
        return made
    for target in targets:
        if not _is_target(target):
            raise NoFloat("gradient(): gradients are by floats that have memory, and " + (
                "this is a number" if target.__dict__.get("_is_number") else f"this is a tensor of {target.dtype!r}"))
    return _slopes(self, list(targets), _upstream(self, gradient))


def _realize(self, *others) -> Tensor:
    """Computes this and the others now, with the writes to them that are pending."""
    if not isinstance(self, Tensor) or not all(isinstance(one, Tensor) for one in others):
        want_tensors("realize", **{f"argument {i}": one for i, one in enumerate((self, *others))})
    _tape.realize([self, *others])
    return self


_plain_assign, _plain_bitcast = Tensor.assign, Tensor.bitcast


def _bitcast(self, dtype) -> Tensor:
    """The same bits as another dtype of the same size; assign() to it writes there."""
    made = _plain_bitcast(self, dtype)
    made._bits_of = self
    return made


def _assign(self, value) -> Tensor:
    """From now on this, and every tensor that shares its elements, has `value` there, which broadcasts; what was built
    of it before keeps the old elements.  Written when work runs that needs it."""
    if Reading.tinygrad and native.tiny_tensor_dtype(self) < 0:  # a number, which has no memory
        made = self.cast(strong(self.dtype)).contiguous()
        self.this, self._is_number = made.this, False
    if Reading.tinygrad and isinstance(value, Tensor) and value.dtype != self.dtype and not (
            value.dtype in WEAK and (self.dtype.is_float or value.dtype.is_int)):
        raise RuntimeError(f"assign dtype mismatch: {value.dtype!r} to a tensor of {self.dtype!r}; cast() it")
    base = self.__dict__.get("_bits_of")
    if base is not None:  # written where the bits are
        made = value if isinstance(value, Tensor) else self.full_like(value)
        base.assign(_plain_bitcast(made.expand(self.shape), base.dtype))
        return self
    if _tape.State.capture is not None:
        _tape.State.capture.before_write(self)
    if isinstance(value, (list, tuple)):
        value = tensor(value, strong(self.dtype), context=self.context)
    _plain_assign(self, value)
    self._has_memory = True
    _tape.written(self)
    return self


def _contiguous_backward(self) -> Tensor:
    """This.  Where a gradient is stored, and whether, is the schedule's to decide."""
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


class Mode(contextlib.ContextDecorator):
    """Tensor.training or Tensor.no_grad as said, until the block or the function ends."""

    def __init__(self, name, value):
        self.name, self.value, self.before = name, value, []

    def __enter__(self):
        self.before.append(getattr(Tensor, self.name))
        setattr(Tensor, self.name, self.value)

    def __exit__(self, *error):
        setattr(Tensor, self.name, self.before.pop())


def train(mode=True) -> Mode:
    """`with Tensor.train():`, or as a decorator: Tensor.training is `mode` within."""
    return Mode("training", bool(mode))


def inference_mode(mode=True) -> Mode:
    """`with Tensor.inference_mode():`, or as a decorator: Tensor.no_grad is `mode` within."""
    return Mode("no_grad", bool(mode))


class _NoGrad(int):
    """Tensor.no_grad as it begins: false, and `with Tensor.no_grad():` is Tensor.inference_mode()."""

    def __call__(self, function=None):
        return inference_mode() if function is None else inference_mode()(function)


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
Tensor.no_grad = _NoGrad(0)
Tensor.requires_grad = property(_requires_grad, _set_requires_grad)
Tensor.grad = property(_grad, _set_grad)
Tensor.requires_grad_ = _requires_grad_
Tensor.is_param_ = _is_param_
Tensor.is_param = property(_is_param, _is_param_)
Tensor.backward = _backward
Tensor.gradient = _gradient
Tensor.realize = _realize
Tensor.assign = _assign
Tensor.bitcast = _bitcast
Tensor.contiguous_backward = _contiguous_backward
Tensor.train = staticmethod(train)
Tensor.inference_mode = staticmethod(inference_mode)
Optimizer.add, Optimizer.step = _add, _step
for _name in ("read", "data_ptr", "numpy", "tolist", "memoryview", "__dlpack__"):
    setattr(Tensor, _name, _reading(_name))
