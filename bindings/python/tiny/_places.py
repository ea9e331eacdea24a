"""Elements by their order and their places: x.sort(), x.topk(3), x.scatter(0, index, src), x.masked_select(mask)."""

import math


from ._elementwise import tensor_of
from ._movement import axis_of, flatten, only
from ._arrangement import shrink_to
from ._operands import want_numbers, want_tensors
from ._operator import op
from ._reading import Reading, WrongArgument
from ._results import whole_numbers
from ._sequences import make_tuple
from .methods import Dtype
from .native import Tensor


# ---- Order

def _ordered(self, count, axis, largest):
    """The first `count` elements in order, of equals the earlier first, and where they stood."""
    if self.ndim == 0 or 0 in self.shape:
        values = self if self.ndim == 0 else shrink_to(self, [count if i == axis else None for i in range(self.ndim)])
        return values, whole_numbers(values.zeros_like(dtype=Dtype.INT64))
    values, places = op("TopK", self, [count], axis=axis, largest=int(largest), outputs=2)
    return values, whole_numbers(places)


def sort(self, dim=-1, descending=False) -> tuple:
    """The elements along an axis in order, and where each stood; equals keep theirs.  NaN is the greatest."""
    axis = axis_of(self, dim)
    return _ordered(self, self.shape[axis] if self.ndim else 1, axis, descending)


def argsort(self, dim=-1, descending=False) -> Tensor:
    """Where the elements along an axis stand in order."""
    return sort(self, dim, descending)[1]


def topk(self, k, dim=-1, largest=True, sorted_=True) -> tuple:
    """The k greatest elements along an axis, or the lowest, in order, and where they stand; equals keep their order."""
    axis = axis_of(self, dim)
    size = self.shape[axis] if self.ndim else 1
    want_numbers("topk", k=k)
    if not 0 <= k <= size:
        raise WrongArgument(f"topk: {k} of {size} elements")
    return _ordered(self, k, axis, largest)


# ---- Places that are written

_FOLDS = {"sum": "add", "prod": "mul", "mean": "add", "amax": "max", "amin": "min"}


def _scattered(self, dim, index, src, fold):
    axis = axis_of(self, dim)
    if not self.ndim == index.ndim == src.ndim:
        raise WrongArgument(f"scatter: shapes {list(self.shape)}, {list(index.shape)} of the index and {list(src.shape)} "
                           "of what is written: as many axes are wanted")
    if any(size > most for size, most in zip(index.shape, src.shape)) or any(
            size > most for i, (size, most) in enumerate(zip(index.shape, self.shape)) if i != axis):
        raise WrongArgument(f"scatter: an index of shape {list(index.shape)} for {list(src.shape)} to write into "
                           f"{list(self.shape)} along axis {axis}")
    if self.dtype != src.dtype:
        raise WrongArgument(f"scatter: {src.dtype} is written to {self.dtype}: cast one of them")
    if self.ndim == 0:
        self, index, src = (one.reshape([1]) for one in (self, index, src))
        return _scattered(self, 0, index, src, fold).reshape([])
    src = shrink_to(src, *index.shape)
    if not Reading.tinygrad:
        return op("ScatterElements", self, index, src, axis=axis, reduction=fold)
    # What tinygrad leaves out, places out of range and negative ones, goes to a place of its own behind the others.
    size, more = self.shape[axis], [int(i == axis) for i in range(self.ndim)]
    index = ((index >= 0) & (index < size)).where(index, size)
    made = op("ScatterElements", self.pad([0] * self.ndim, more), index, src, axis=axis, reduction=fold)
    return shrink_to(made, *self.shape)


def scatter(self, dim=None, index=None, src=None, reduce=None, *, axis=None, value=None) -> Tensor:
    """With elements of `src`, or a number, written where the index says: out[i][index[i][j]] = src[i][j] along axis 1.
    Of several in one place the last one stays.  A number may be added to what is there ("add"), or multiply it
    ("multiply")."""
    if reduce not in (None, "add", "multiply"):
        raise TypeError(f"scatter: reduce={reduce!r}; known: None, 'add', 'multiply'; see scatter_reduce()")
    src = only("scatter", src=src, value=value)
    want_tensors("scatter", index=index)
    if isinstance(src, Tensor):
        if reduce is not None:
            raise TypeError("scatter: reduce= is for numbers; scatter_reduce() takes tensors")
    else:
        src = self.full(index.shape, src, self.dtype, context=self.context)
    fold = {None: "none", "add": "add", "multiply": "mul"}[reduce]
    return _scattered(self, only("scatter", dim=dim, axis=axis), index, src, fold)


def _least(dtype, fold):
    """What changes nothing that it is folded with."""
    if fold in ("add", "mul"):
        return 0 if fold == "add" else 1
    if dtype.is_float:
        return -math.inf if fold == "max" else math.inf
    return dtype.min if fold == "max" else dtype.max


def scatter_reduce(self, dim, index, src, reduce, include_self=True) -> Tensor:
    """As scatter(), with what comes together in one place folded: "sum", "prod", "mean", "amax" or "amin".  Without
    `include_self` what was there before takes no part."""
    if reduce not in _FOLDS:
        raise WrongArgument(f"scatter_reduce: reduce={reduce!r}; known: {', '.join(map(repr, _FOLDS))}")
    fold = _FOLDS[reduce]
    start = self
    if not include_self:
        taken = _scattered(self.zeros_like(dtype=Dtype.BOOL), dim, index, src.ones_like(dtype=Dtype.BOOL), "none")
        start = taken.where(_least(self.dtype, fold), self).cast(self.dtype)
    made = _scattered(start, dim, index, src, fold)
    if reduce != "mean":
        return made
    count = self.ones_like() if include_self else taken.where(0, 1).cast(self.dtype)
    return made / _scattered(count, dim, index, src.ones_like(), "add")


def max_unpool2d(self, indices, kernel_size=(2, 2), stride=None, dilation=1, padding=0, output_size=None) -> Tensor:
    """The elements at the places that max_pool2d(.., return_indices=True) found them, and zeros elsewhere.  The last
    sizes of `output_size` say how large the result is, if several sizes have such pools."""
    axes = self.ndim - 2
    if output_size is None:
        from ._functions import sides_of_padding
        kernel, dilations = make_tuple(kernel_size, axes), make_tuple(dilation, axes)
        strides = kernel if stride is None else make_tuple(stride, axes)
        sizes = [(size - 1) * strides[i] - before - after + dilations[i] * (kernel[i] - 1) + 1
                 for i, (size, (before, after)) in enumerate(zip(self.shape[2:], sides_of_padding(padding, axes)))]
    else:
        sizes = list(output_size[-axes:])
    rows = [*self.shape[:2], math.prod(self.shape[2:])]
    empty = self.full([*self.shape[:2], math.prod(sizes)], 0, self.dtype, context=self.context)
    made = _scattered(empty, 2, indices.reshape(rows), self.reshape(rows), "none")
    return made.reshape([*self.shape[:2], *sizes])


# ---- Places that are chosen

def _mask_of(call, mask, shape):
    want_tensors(call, mask=mask)
    if mask.dtype != Dtype.BOOL:
        raise WrongArgument(f"{call}: a mask of bools is wanted, not of {mask.dtype}")
    return flatten(mask.expand(shape))


def _first_true(values, mask, size, fill):
    """Of elements in a row `size`, the first ones where the mask is true, `fill` behind."""
    rank = mask.cumsum(0) - 1
    places = (mask & (rank < size)).where(rank, size)
    made = values.full([size + 1], fill, values.dtype, context=values.context)
    return made.scatter(0, places, values)[:size]


def masked_select(self, mask, size=None, fill_value=0) -> Tensor:
    """The elements where the mask is true, in a row.  How many these are is looked at now; with a size there are as
    many, `fill_value` behind the last one."""
    mask, values = _mask_of("masked_select", mask, self.shape), flatten(self)
    if size is not None:
        return _first_true(values, mask, size, fill_value)
    return values[mask]


def nonzero(self, size=None, fill_value=0) -> Tensor:
    """[count, axes]: the places of the elements that are not 0.  How many these are is looked at now; with a size there
    are as many rows, of `fill_value` behind the last one."""
    mask = flatten(self.ne(0))
    places = self.context.arange(Dtype.INT64, self.numel)
    if self.ndim == 0:
        count = int(mask.item()) if size is None else size
        return whole_numbers(self.full([count, 0], 0, Dtype.INT64, context=self.context))
    places = masked_select(places, mask, size, -1)
    rows, step = [], 1
    for length in reversed(self.shape):
        rows.append(places // step % max(1, length))
        step *= length if length else 1
    made = rows[-1].stack(*rows[-2::-1], dim=1)
    if size is not None:
        made = (places < 0).unsqueeze(1).where(int(fill_value), made)
    return whole_numbers(made)


for _function in (sort, argsort, topk, scatter, scatter_reduce, max_unpool2d, masked_select, nonzero):
    setattr(Tensor, _function.__name__, _function)
