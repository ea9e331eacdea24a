"""Parts that are chosen or written by their places, as PyTorch and NumPy spell it: x.index_select(0, places), x.take(places)."""

from ._movement import axis_of, flatten, only
from ._operands import want_tensors
from ._reading import NoFit, WrongArgument
from ._results import whole_numbers
from ._tensor import tensor
from .methods import Dtype
from .native import Tensor


def _tensor(self, values) -> Tensor:
    return values if isinstance(values, Tensor) else tensor(values, context=self.context)


def _places(call, index) -> Tensor:
    if not index.dtype.is_int:
        raise NoFit(f"{call}: places are integers, not of {index.dtype}")
    if index.ndim > 1:
        raise WrongArgument(f"{call}: places in a row are wanted, not of shape {list(index.shape)}")
    return index.reshape([-1])


def _spread(call, self, dim, index, source):
    """(axis, the places for each element of the source)."""
    axis, places = axis_of(self, dim), _places(call, index)
    wanted = [*self.shape[:axis], places.shape[0], *self.shape[axis + 1:]]
    if source is not None and list(source.shape) != wanted:
        raise WrongArgument(f"{call}: a source of shape {list(source.shape)}, where {wanted} is wanted")
    return axis, places.reshape([-1] + [1] * (self.ndim - axis - 1)).expand(wanted)


def index_select(self, dim, index) -> Tensor:
    """The parts at these places of an axis: [.., len(index), ..]."""
    return self.gather(_places("index_select", index), axis_of(self, dim))


def take(self, index, axis=None, *, dim=None) -> Tensor:
    """The elements at these places of all in a row, in the index's shape; along an axis whole parts."""
    along = only("take", axis=axis, dim=dim)
    index = _tensor(self, index)
    return flatten(self).gather(index, 0) if along is None else self.gather(index, axis_of(self, along))


def take_along_dim(self, indices, dim=None) -> Tensor:
    """out[i][j] = x[i][indices[i][j]] along axis 1; without an axis of all elements in a row."""
    if dim is None:
        return flatten(self).take_along_axis(flatten(indices), 0)
    return self.take_along_axis(indices, axis_of(self, dim))


def index_fill(self, dim, index, value) -> Tensor:
    """With a number at these places of an axis."""
    axis, places = _spread("index_fill", self, dim, index, None)
    return self.scatter(axis, places, value.item() if isinstance(value, Tensor) else value)


def index_copy(self, dim, index, source) -> Tensor:
    """With the source's parts at these places of an axis."""
    axis, places = _spread("index_copy", self, dim, index, source)
    return self.scatter(axis, places, source)


def index_add(self, dim, index, source, *, alpha=1) -> Tensor:
    """With alpha times the source's parts added at these places of an axis."""
    axis, places = _spread("index_add", self, dim, index, source)
    return scatter_add(self, axis, places, source if alpha == 1 else (source * alpha).cast(self.dtype))


def scatter_add(self, dim, index, src) -> Tensor:
    """As scatter(), with what comes to a place added to what is there."""
    return self.scatter_reduce(dim, index, src, "sum")


def select_scatter(self, src, dim, index) -> Tensor:
    """With `src` at one place of an axis."""
    axis = axis_of(self, dim)
    return index_copy(self, axis, _tensor(self, [index]), src.unsqueeze(axis))


def slice_scatter(self, src, dim=0, start=None, end=None, step=1) -> Tensor:
    """With `src` at the places start, start + step, .. before `end` of an axis."""
    axis = axis_of(self, dim)
    places = range(*slice(start, end, step).indices(self.shape[axis]))
    return index_copy(self, axis, _tensor(self, list(places)).cast(Dtype.INT64), src)


def masked_scatter(self, mask, source) -> Tensor:
    """With the source's elements, one after the other, where the mask is true."""
    want_tensors("masked_scatter", mask=mask, source=source)
    if mask.dtype != Dtype.BOOL:
        raise WrongArgument(f"masked_scatter: a mask of bools is wanted, not of {mask.dtype}")
    mask = flatten(mask.expand(self.shape))
    rank = mask.where(mask.cumsum(0) - 1, 0)
    return mask.where(flatten(source).gather(rank, 0), flatten(self)).reshape(self.shape)


def argwhere(self) -> Tensor:
    """[count, axes]: the places of the elements that are not 0; how many these are is looked at now."""
    return self.nonzero()


# ---- Values and how often they occur

def unique(self, sorted=True, return_inverse=False, return_counts=False, dim=None):
    """The values that occur, in ascending order; how many these are is looked at now.  Also where each element's value
    stands among them, in this tensor's shape, and how often each occurs, if that is said.  NaN equals no other."""
    if dim is not None:
        raise NotImplementedError("unique: dim=; values of all elements alone")
    values, order = flatten(self).sort(0)
    size = values.shape[0]
    first = values.ones_like(dtype=Dtype.BOOL)
    if size > 1:
        first = first[:1].cat(values[1:].ne(values[:-1]))
    found = [values[first]]
    rank = first.cumsum(0) - 1
    if return_inverse:
        found.append(whole_numbers(rank.zeros_like().scatter(0, order.cast(rank.dtype), rank).reshape(self.shape)))
    if return_counts:
        found.append(whole_numbers(rank.full([found[0].shape[0]], 0, rank.dtype, context=self.context).scatter_add(0, rank, rank.ones_like())))
    return found[0] if len(found) == 1 else tuple(found)


def bincount(self, weights=None, minlength=0) -> Tensor:
    """How often 0, 1, .. occur among integers in a row, or the sums of their weights; the greatest is looked at now."""
    places = _places("bincount", self)
    if not places.numel:
        return whole_numbers(self.full([minlength], 0, Dtype.INT64, context=self.context))
    if places.min().item() < 0:
        raise WrongArgument("bincount: integers from 0 on are wanted")
    each = places.ones_like(dtype=Dtype.INT64) if weights is None else weights
    count = max(minlength, places.max().item() + 1)
    made = each.full([count], 0, each.dtype, context=self.context).scatter_add(0, places.cast(Dtype.INT64), each)
    return whole_numbers(made) if weights is None else made


def searchsorted(self, values, side="left") -> Tensor:
    """Where values belong in this tensor, which is sorted in a row: before its equals ("left") or behind them
    ("right").  Each is compared with all."""
    if self.ndim != 1 or side not in ("left", "right"):
        raise WrongArgument(f"searchsorted: side={side!r} in shape {list(self.shape)}; 'left' or 'right', in a row")
    behind = _tensor(self, values).unsqueeze(-1)
    return whole_numbers((self < behind if side == "left" else self <= behind).sum(axis=-1))


for _function in (index_select, take, take_along_dim, index_fill, index_copy, index_add, scatter_add, select_scatter, slice_scatter,
                  masked_scatter, argwhere, unique, bincount, searchsorted):
    setattr(Tensor, _function.__name__, _function)
