"""Movement as tinygrad and PyTorch spell it: x.reshape(2, -1), x.transpose(0, 1), x.pad((1, 1, 0, 0)), x.T."""

import math

from . import native
from ._bound import sized
from ._creation import spread
from ._dimension import Dim, is_dimension
from ._operands import want_numbers
from ._operator import op
from ._reading import Reading, WrongArgument
from .methods import Dtype, concat, stack
from .native import Tensor, Variable

_reshape, _permute, _expand, _flip = Tensor.reshape, Tensor.permute, Tensor.expand, Tensor.flip
_pad, _tile, _split = Tensor.pad, Tensor.tile, Tensor.split
_squeeze, _unsqueeze = Tensor.squeeze, Tensor.unsqueeze


def axis_of(tensor, axis, more=0):
    """The axis as a number from 0 on, of a shape with `more` axes besides."""
    rank = tensor.rank + more
    try:
        if -max(rank, 1) <= axis < max(rank, 1):
            return axis % max(rank, 1)
    except TypeError as error:
        raise TypeError(f"axis {axis!r} of shape {list(tensor.shape)}: a whole number is wanted") from error
    raise IndexError(f"axis {axis} of shape {list(tensor.shape)}")


def only(call, **said):
    """The one of two names for an argument that was said."""
    given = {name: value for name, value in said.items() if value is not None}
    if len(given) > 1:
        raise TypeError(f"{call}: {' and '.join(given)} name the same argument")
    return next(iter(given.values()), None)


def _dims(call, dims, *named):
    """Dimensions one by one, as one sequence, or by a name."""
    found = [list(value) if not is_dimension(value) else [value] for value in named if value is not None]
    if len(found) + bool(dims) != 1:
        raise TypeError(f"{call}: dimensions are wanted once")
    return found[0] if found else spread(dims)


def reshape(self, *sizes, dims=None, shape=None) -> Tensor:
    """The same elements in another shape, of which one dimension may be -1: what is left over; None: as it is."""
    named = only("reshape", dims=dims, shape=shape)
    wanted = _dims("reshape", sizes, named) if sizes or named is not None else []
    wanted = [self.shape[i] if size is None else size for i, size in enumerate(wanted)]
    return sized(_reshape(self, wanted), wanted)


def permute(self, *places, axes=None, order=None, dims=None) -> Tensor:
    """The result's axis k is this tensor's axis order[k]."""
    return _permute(self, _dims("permute", places, axes, order, dims))


def expand(self, *shape, dims=None) -> Tensor:
    """Repeats axes of size 1; missing leading axes are added; -1 and None keep a size."""
    wanted = [-1 if size is None else size for size in _dims("expand", shape, dims)]
    return sized(_expand(self, wanted), wanted)


def flip(self, *args, axis=None, axes=None, dims=None) -> Tensor:
    """Reverses the axes."""
    return _flip(self, _dims("flip", args, axis, axes, dims))


def repeat(self, *repeats) -> Tensor:
    """The whole of each axis so many times; missing leading axes are added."""
    times = spread(repeats)
    if len(times) < self.rank:
        raise ValueError(f"repeat: {times} for shape {list(self.shape)}: a number for each axis is wanted")
    return _tile(reshape(self, [1] * (len(times) - self.rank) + list(self.shape)), times)


def tile(self, *repeats, dims=None) -> Tensor:
    """The whole of each axis so many times; where there are fewer numbers than axes they are the last ones', where
    there are more the missing leading axes are added."""
    times = _dims("tile", repeats, dims)
    times = [1] * (self.rank - len(times)) + list(times)
    return repeat(self, times)


def transpose(self, dim0=1, dim1=0) -> Tensor:
    """Two axes change places."""
    order = list(range(self.rank))
    a, b = axis_of(self, dim0), axis_of(self, dim1)
    order[a], order[b] = b, a
    return _permute(self, order)


def _transposed(self) -> Tensor:
    """A matrix with its axes exchanged.  Of more axes NumPy and PyTorch turn all round, and tinygrad the first two."""
    if self.rank > 2 and not Reading.tinygrad:
        raise WrongArgument(f"T: a matrix is wanted, not shape {list(self.shape)}: mT exchanges the last two axes, "
                            "permute() any")
    return self if self.rank < 2 else transpose(self)


def _matrices_transposed(self) -> Tensor:
    """The last two axes exchanged."""
    if self.rank < 2:
        raise ValueError(f"mT: matrices are wanted, not shape {list(self.shape)}")
    return transpose(self, -2, -1)


def flatten(self, start_dim=0, end_dim=-1) -> Tensor:
    """The axes from one to another as one."""
    first, last = axis_of(self, start_dim), axis_of(self, end_dim)
    sizes = list(self.shape)
    return _reshape(self, sizes[:first] + [math.prod(sizes[first:last + 1])] + sizes[last + 1:])


def unflatten(self, dim, sizes) -> Tensor:
    """An axis as several."""
    axis = axis_of(self, dim)
    known = [size for size in sizes if size != -1]
    if len(known) + 1 == len(sizes) and 0 in self.shape and math.prod(known):  # -1 is of this axis, not of them all
        sizes = [self.shape[axis] // math.prod(known) if size == -1 else size for size in sizes]
    return _reshape(self, [*self.shape[:axis], *sizes, *self.shape[axis + 1:]])


def squeeze(self, axes=None, dim=None) -> Tensor:
    """Without the axes of size 1, or without those that are said."""
    found = only("squeeze", axes=axes, dim=dim)
    if Reading.tinygrad and found is not None:  # an axis that is longer stays
        if not self.ndim:
            axis_of(self, found)
            return self
        found = [axis for axis in [axis_of(self, one) for one in ([found] if is_dimension(found) else found)]
                 if self.shape[axis] == 1]
    return _squeeze(self) if found is None else _squeeze(self, found)


def unsqueeze(self, axes=None, dim=None) -> Tensor:
    """With axes of size 1 at these places of the result."""
    found = only("unsqueeze", axes=axes, dim=dim)
    if found is None:
        raise TypeError("unsqueeze: a place is wanted")
    return _unsqueeze(self, found)


def _several(call, first, others):
    """The tensors one by one, or as one sequence."""
    if not isinstance(first, (list, tuple)):
        return [first, *others]
    if others:
        raise WrongArgument(f"{call}: tensors one by one, or one sequence of them, not both")
    return list(first)


def cat(self, *others, dim=0) -> Tensor:
    """The tensors one after the other along an axis; Tensor.cat(a, b), a.cat(b) and Tensor.cat([a, b])."""
    return concat(_several("cat", self, others), dim)


def stack_(self, *others, dim=0) -> Tensor:
    """The tensors side by side along a new axis; Tensor.stack(a, b), a.stack(b) and Tensor.stack([a, b])."""
    return stack(_several("stack", self, others), dim)


def split(self, axis=None, sizes=None, dim=None) -> tuple[Tensor, ...]:
    """Parts along an axis.  split(sizes, dim=0): a size for each, or one for all of which the last may be smaller;
    split(axis, sizes) with a list of sizes."""
    if axis is not None and sizes is not None and is_dimension(axis) and not is_dimension(sizes):
        return tuple(_split(self, axis, sizes))
    if axis is None:
        axis, sizes = sizes, None
    along = only("split", dim=dim, axis=sizes)
    along = axis_of(self, 0 if along is None else along)
    if is_dimension(axis):
        if axis < 1:
            raise ValueError(f"split: parts of size {axis}")
        size = self.shape[along]
        axis = [min(axis, size - at) for at in range(0, size, axis)] or [0]
    return tuple(_split(self, along, axis))


def chunk(self, chunks, dim=0) -> list[Tensor]:
    """At most so many parts of one size; the last may be smaller."""
    want_numbers("chunk", chunks=chunks)
    if chunks < 1:
        raise ValueError(f"chunk: {chunks} parts")
    return list(split(self, max(1, -(-self.shape[axis_of(self, dim)] // chunks)), dim=dim))


def _sides(padding, rank):
    """[(before, after)] of each axis, of what tinygrad and PyTorch take: pairs from the last axis on in one list of
    numbers, or a pair (or None) for each axis."""
    padding = list(padding)
    if all(is_dimension(number) for number in padding):
        if len(padding) % 2 or len(padding) > 2 * rank:
            raise ValueError(f"pad: {padding} for {rank} axes: pairs of numbers are wanted, the last axis first")
        pairs = list(zip(padding[::2], padding[1::2]))
        return [(0, 0)] * (rank - len(pairs)) + pairs[::-1]
    if len(padding) != rank:
        raise ValueError(f"pad: {len(padding)} pairs for {rank} axes")
    return [(0, 0) if pair is None else tuple(pair) for pair in padding]


# What beyond the ends is like, by the names of PyTorch and tinygrad, and as ONNX has them.
_PADDINGS = {"reflect": "reflect", "replicate": "edge", "circular": "wrap"}


def _pad_with_elements(self, sides, mode):
    """Of elements that are there.  What a negative number takes away does not come back: circular axes are shrunk
    first, the others last."""
    less = [(min(before, 0), min(after, 0)) for before, after in sides]
    more = [(max(before, 0), max(after, 0)) for before, after in sides]
    made = _pad(self, *map(list, zip(*less))) if mode == "circular" else self
    for axis, (size, (before, after)) in enumerate(zip(made.shape, more)):
        most = size - 1 if mode == "reflect" else size if mode == "circular" else math.inf
        if max(before, after) > most:
            raise WrongArgument(f"pad: ({before}, {after}) of axis {axis} of shape {list(self.shape)}: mode {mode!r} has "
                                f"{most} elements for either side")
    made = op("Pad", made, [side[0] for side in more] + [side[1] for side in more], mode=_PADDINGS[mode])
    return made if mode == "circular" else _pad(made, *map(list, zip(*less)))


def pad(self, before=None, after=None, value=0, mode="constant", *, padding=None) -> Tensor:
    """pad((left, right, top, bottom)) and pad(((top, bottom), (left, right))) add elements around axes: `value`, or of
    the tensor itself in mode "reflect", "replicate" or "circular"; pad(before, after) with a list of each.  Negative
    numbers take away."""
    if isinstance(after, str):
        after, mode = None, after
    if mode != "constant" and mode not in _PADDINGS:
        raise NotImplementedError(f"pad: mode={mode!r}; known: 'constant', {', '.join(map(repr, _PADDINGS))}")
    before = only("pad", before=before, padding=padding)
    if after is not None:
        sides = list(zip(before, after))
    elif before is None:
        raise TypeError("pad: numbers of elements are wanted")
    else:
        sides = _sides(before, self.rank)
    if mode != "constant":
        return _pad_with_elements(self, sides, mode)
    before, after = map(list, zip(*sides)) if sides else ([], [])
    if Reading.tinygrad and value != 0:  # it takes part in the type of the result
        inside = _pad(self.ones_like(dtype=Dtype.BOOL), before, after, 0)
        return inside.where(_pad(self, before, after, 0), value)
    return _pad(self, before, after, value)


def ndim(self) -> int:
    """How many axes it has."""
    return native.tiny_tensor_rank(self)


def _inside(begin, end, size):
    """So many elements that each run begins elsewhere have one count: tinygrad takes for granted that all are there."""
    count = end - begin
    if not isinstance(begin, (Dim, Variable)) or not isinstance(count, int) or not isinstance(size, int):
        return begin, end
    begin = begin.min(size - count)
    return begin, begin + count


def shrink(self, arg) -> Tensor:
    """Of each axis the elements from one position to another; None: all."""
    found = [(0, size) if part is None else part for part, size in zip(arg, self.shape)]
    if len(found) != self.rank or len(arg) != self.rank:
        raise ValueError(f"shrink: {len(arg)} ranges for shape {list(self.shape)}")
    for axis, (part, size) in enumerate(zip(found, self.shape)):
        if all(type(number) is int for number in (*part, size)) and not 0 <= part[0] <= part[1] <= size:
            raise WrongArgument(f"shrink: {tuple(part)} of axis {axis}, which has {size} elements")
    if Reading.tinygrad:
        found = [_inside(begin, end, size) for (begin, end), size in zip(found, self.shape)]
    return sized(self.slice([begin for begin, _ in found], [end for _, end in found]),
                 [end - begin for begin, end in found])


def repeat_interleave(self, repeats, dim=None) -> Tensor:
    """Each element of an axis (of all, flattened) so many times."""
    if isinstance(repeats, int) and repeats < 0:
        raise WrongArgument(f"repeat_interleave: {repeats} times")
    made, dim = (flatten(self), 0) if dim is None else (self, dim)
    axis = axis_of(made, dim)
    sizes = list(made.shape)
    spread_out = _expand(_unsqueeze(made, [axis + 1]), [*sizes[:axis + 1], repeats, *sizes[axis + 1:]])
    return flatten(spread_out, axis, axis + 1)


for _function in (reshape, permute, expand, flip, repeat, tile, transpose, flatten, unflatten, squeeze, unsqueeze, cat, split,
                  chunk, pad, shrink, repeat_interleave):
    setattr(Tensor, _function.__name__, _function)
Tensor.view = reshape
Tensor.stack = stack_
Tensor.T = property(_transposed)
Tensor.mT = property(_matrices_transposed)
Tensor.ndim = property(ndim)
