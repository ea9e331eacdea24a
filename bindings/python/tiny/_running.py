"""What has come together up to each element along an axis: x.cumsum(1), x.cummax(0), x.logcumsumexp(-1)."""

import math

from . import dtypes
from ._elementwise import logaddexp
from ._movement import axis_of, only
from ._operator import op
from ._reading import Reading
from ._results import of_sum, whole_numbers
from .native import Tensor

# The gradients of products, and sums of exponentials, are n * n operations; long axes are cut in parts of so many
# elements, whose totals are run through in turn.
_PART = 256


def _lowest(tensor):
    return -math.inf if tensor.dtype.is_float else tensor.dtype.min


def _in_parts(self, axis, run, join, neutral) -> Tensor:
    """run(x, axis) of each part, joined with what is in the parts before."""
    size = self.shape[axis]
    if size <= 2 * _PART:
        return run(self, axis)
    rows = self.transpose(axis, -1)
    parts = -(-size // _PART)
    filled = rows.pad((0, parts * _PART - size), value=neutral)
    inside = run(filled.unflatten(-1, (parts, _PART)), rows.ndim)
    totals = _in_parts(inside[..., _PART - 1], rows.ndim - 1, run, join, neutral)
    before = totals[..., :parts - 1].pad((1, 0), value=neutral)
    return join(inside, before.unsqueeze(-1)).flatten(-2)[..., :size].transpose(axis, -1)


def _up_to_each(self, axis, outside):
    """The elements along an axis for each of them, along the next axis: those up to it, and `outside` behind."""
    places = self.context.arange(dtypes.int64, self.shape[axis]).reshape([-1] + [1] * (self.ndim - axis - 1))
    return (places.unsqueeze(0) <= places.unsqueeze(1)).where(self.unsqueeze(axis), outside)


def _running_maximum(self, axis):
    # Stored as it is: such a kernel takes a step for each element, and one that reads other places would take all.
    return _up_to_each(self, axis, _lowest(self)).max(axis=axis + 1).contiguous()


def _extreme(self, axis, sign):
    """Values and places.  A place is that of the last new maximum, so that the values' gradients are those of elements
    that are taken."""
    axis = axis_of(self, axis)
    if self.ndim == 0 or 0 in self.shape:
        return self, whole_numbers(self.zeros_like(dtype=dtypes.int64))
    ordered = self.detach()
    ordered = ordered if sign > 0 else -ordered if self.dtype.is_float else ~ordered
    highest = _running_maximum(ordered, axis)
    places = self.context.arange(dtypes.int64, self.shape[axis]).reshape([-1] + [1] * (self.ndim - axis - 1))
    if Reading.tinygrad:  # the first of equals
        rows = highest.transpose(axis, -1)
        before = rows[..., :-1].pad((1, 0), value=_lowest(highest)).transpose(axis, -1)
        new = ordered.ne(before) & ordered.eq(highest) & (ordered > before)
    else:  # the last one, as in PyTorch
        new = ordered.eq(highest)
    if ordered.dtype.is_float:
        new = new | ordered.isnan()
    found = _running_maximum(new.where(places, 0), axis)
    return self.take_along_axis(found, axis), whole_numbers(found)


def cumsum(self, axis=None, exclusive=False, reverse=False, *, dim=None) -> Tensor:
    """Sums up to each element along an axis, which is 0 if nothing is said; `exclusive`: before it, `reverse`: from the
    end.  Integers become int64."""
    axis = only("cumsum", axis=axis, dim=dim)
    axis = axis_of(self, 0 if axis is None else axis)
    made = _cumsum(self, axis, exclusive, reverse) if self.ndim else self.sum()
    return of_sum(self, made)


def cumprod(self, axis=None, *, dim=None) -> Tensor:
    """Products up to each element along an axis.  Integers become int64; tinygrad's keep their dtype."""
    axis = only("cumprod", axis=axis, dim=dim)
    if axis is None:
        raise TypeError("cumprod: an axis is wanted")
    axis = axis_of(self, axis)
    if not (Reading.tinygrad or self.dtype.is_float or self.dtype is dtypes.uint64):
        self = self.cast(dtypes.int64)
    if self.ndim == 0 or 0 in self.shape:
        return self
    return _in_parts(self, axis, lambda x, along: op("CumProd", x, along), Tensor.mul, 1)


def cummax(self, axis=None, *, dim=None) -> tuple:
    """The greatest element up to each along an axis, and where it stands; NaN is the greatest."""
    axis = only("cummax", axis=axis, dim=dim)
    return _extreme(self, 0 if axis is None else axis, 1)


def cummin(self, axis=None, *, dim=None) -> tuple:
    """The lowest element up to each along an axis, and where it stands; NaN is the lowest."""
    axis = only("cummin", axis=axis, dim=dim)
    return _extreme(self, 0 if axis is None else axis, -1)


def _plain_logcumsumexp(self, axis):
    highest = _running_maximum(self.detach(), axis)
    highest = highest.isinf().where(0, highest)
    sums = (_up_to_each(self, axis, -math.inf) - highest.unsqueeze(axis + 1)).exp().sum(axis=axis + 1)
    return sums.log() + highest


def logcumsumexp(self, axis=None, *, dim=None) -> Tensor:
    """The logarithm of the sum of exponentials up to each element along an axis, without leaving the range of floats on
    the way."""
    axis = only("logcumsumexp", axis=axis, dim=dim)
    axis = axis_of(self, 0 if axis is None else axis)
    if self.ndim == 0 or 0 in self.shape:
        return self
    return _in_parts(self, axis, _plain_logcumsumexp, logaddexp, -math.inf)


_cumsum = Tensor.cumsum
for _function in (cumsum, cumprod, cummax, cummin, logcumsumexp):
    setattr(Tensor, _function.__name__, _function)
