"""Indices that are tensors or lists, x[rows], x[rows, :, columns], and writes, x[2:4] = 0."""

from . import _tape
from ._creation import FLOATS
from ._dimension import is_dimension
from ._tensor import tensor
from .methods import Dtype, stack
from .native import Tensor

_basic = Tensor.__getitem__


def _positions(context, part):
    """The tensor of an index that is none of what slices are made of; None otherwise."""
    if part is None or part is Ellipsis or isinstance(part, slice) or (
            is_dimension(part) and not isinstance(part, Tensor)):
        return None
    made = part if isinstance(part, Tensor) else tensor(part, context=context)
    if made.dtype == Dtype.BOOL or made.dtype in FLOATS:
        kind = type(part).__name__ + ("" if isinstance(part, float) else f" of {made.dtype.name.lower()}")
        raise TypeError(f"an index is an integer, a slice, ..., None, or a tensor or list of integers, not {kind}; "
                        "where() takes masks")
    return made


def _index(self, key) -> Tensor:
    """Integers, slices, ..., None, and tensors or lists of positions, as PyTorch takes them.  One out of range is an
    error when the value is computed."""
    parts = key if isinstance(key, tuple) else (key,)
    found = [_positions(self.context, part) for part in parts]
    if all(one is None for one in found):
        return _basic(self, key)
    used = sum(part is not None and part is not Ellipsis for part in parts)
    if used > self.rank:
        raise IndexError(f"{used} indices for shape {list(self.shape)}")
    # First what slices and integers do, with the axes of positions left whole.
    parts, found = _without_ellipsis(parts, found, self.rank - used)
    sliced = _basic(self, tuple(part if one is None else slice(None) for part, one in zip(parts, found)))
    left = [one for part, one in zip(parts, found) if one is not None or part is None or isinstance(part, slice)]
    axes = [axis for axis, one in enumerate(left) if one is not None]
    places = [left[axis] for axis in axes]
    return sliced.gather(places[0], axes[0]) if len(axes) == 1 else _joint(sliced, axes, places)


def _without_ellipsis(parts, found, missing):
    at = next((i for i, part in enumerate(parts) if part is Ellipsis), len(parts))
    rest = at + 1
    return (list(parts[:at]) + [slice(None)] * missing + list(parts[rest:]),
            found[:at] + [None] * missing + found[rest:])


def _joint(sliced, axes, places):
    """Positions of several axes, which broadcast; their axes stand where the first one was, or first if others lie
    between them."""
    shape = ()
    for one in places:
        shape = (one + (tensor(0, context=one.context).expand(shape) if shape else 0)).shape
    nearby = axes == list(range(axes[0], axes[-1] + 1))
    rest = [axis for axis in range(sliced.rank) if axis not in axes]
    front = sliced.permute(axes + rest)
    joint = stack([one.cast(Dtype.INT64).expand(shape) for one in places], len(shape))
    made = front.gather_nd(joint)
    before = axes[0] if nearby else 0
    order = list(range(len(shape), len(shape) + before)) + list(range(len(shape)))
    return made.permute(order + list(range(len(shape) + before, made.rank)))


def _set_index(self, key, value) -> None:
    """Writes to what integers, slices and ... name; see assign()."""
    parts = key if isinstance(key, tuple) else (key,)
    if any(_positions(self.context, part) is not None for part in parts):
        raise TypeError("x[positions] = value: positions are not written to; where() makes a new tensor")
    if _tape.leaves(self) and not self.__dict__.get("_requires_grad"):
        raise RuntimeError("x[..] = value of a tensor that was made of others that require gradients; cat(), pad() and "
                           "where() make new ones")
    if _tape.State.capture is not None:
        _tape.State.capture.before_write(self)
    view = _basic(self, key)
    value = value if isinstance(value, Tensor) or is_dimension(value) or isinstance(value, float) else tensor(
        value, context=self.context)
    view.assign(value.cast(self.dtype) if isinstance(value, Tensor) else value)
    _tape.written(self)


Tensor.__getitem__ = _index
Tensor.__setitem__ = _set_index
