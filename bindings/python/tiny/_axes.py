"""Axes that change places, are taken apart and put together, as NumPy and PyTorch spell it: x.movedim(0, -1), x.unbind(1)."""

import math

from ._arrangement import pad_to, shrink_to
from ._creation import spread
from ._dimension import is_dimension
from ._movement import axis_of, flatten, split, transpose
from ._reading import Reading, WrongArgument
from ._sequences import make_tuple
from .native import Tensor


def movedim(self, source, destination) -> Tensor:
    """Axes at other places of the shape; the others keep their order."""
    moved = [axis_of(self, axis) for axis in make_tuple(source, 1)]
    places = [axis_of(self, axis) for axis in make_tuple(destination, 1)]
    if len(moved) != len(places) or len(set(moved)) < len(moved) or len(set(places)) < len(places):
        raise WrongArgument(f"movedim: {source} to {destination}: each axis once, and a place of its own for each")
    goes_to = dict(zip(places, moved))
    others = (axis for axis in range(self.ndim) if axis not in moved)
    return self.permute([goes_to[place] if place in goes_to else next(others) for place in range(self.ndim)])


def swapaxes(self, axis0, axis1) -> Tensor:
    """Two axes change places: transpose()."""
    return transpose(self, axis0, axis1)


def t(self) -> Tensor:
    """A matrix [n, m] as [m, n]; of one axis itself."""
    if self.ndim > 2:
        raise WrongArgument(f"t: a matrix is wanted, not shape {list(self.shape)}; mT exchanges the last two axes")
    return self if self.ndim < 2 else transpose(self)


def ravel(self) -> Tensor:
    """All elements in a row."""
    return flatten(self)


def _along(self, axis, part) -> Tensor:
    return self[(slice(None),) * axis + (part,)]


def narrow(self, dim, start, length) -> Tensor:
    """`length` elements of an axis from `start` on, a view."""
    axis = axis_of(self, dim)
    size = self.shape[axis] if self.ndim else 0
    begin = start + size if start < 0 else start
    if length < 0 or begin < 0 or begin + length > size:
        raise IndexError(f"narrow: {length} elements from {start} on along axis {axis} of shape {list(self.shape)}")
    return _along(self, axis, slice(begin, begin + length))


def select(self, dim, index) -> Tensor:
    """The part at one place of an axis, without that axis: a view."""
    return _along(self, axis_of(self, dim), index)


def unbind(self, dim=0) -> tuple[Tensor, ...]:
    """The parts along an axis, without that axis: views."""
    axis = axis_of(self, dim)
    if not self.ndim:
        raise WrongArgument("unbind: a tensor without axes has no parts")
    return tuple(_along(self, axis, i) for i in range(self.shape[axis]))


def tensor_split(self, indices_or_sections, dim=0) -> list[Tensor]:
    """Parts along an axis: so many, the first ones larger by one where they are not of one size; or a part that ends at
    each of these places, and the rest."""
    axis = axis_of(self, dim)
    size, said = self.shape[axis], indices_or_sections
    if is_dimension(said):
        if said < 1:
            raise WrongArgument(f"tensor_split: {said} parts")
        return list(split(self, [size // said + (i < size % said) for i in range(said)], dim=axis))
    places = [0, *said, size]
    return [_along(self, axis, slice(begin, end)) for begin, end in zip(places, places[1:])]


def broadcast_to(self, *shape) -> Tensor:
    """Repeated along axes of size 1 and missing leading ones, up to the shape."""
    return self.expand(spread(shape))


def expand_as(self, other) -> Tensor:
    """expand() to the other's shape."""
    return self.expand(other.shape)


def reshape_as(self, other) -> Tensor:
    """reshape() to the other's shape."""
    return self.reshape(other.shape)


def _matrix_at_least(call, self):
    if self.ndim < 2:
        raise WrongArgument(f"{call}: two axes at least are wanted, not shape {list(self.shape)}")


def fliplr(self) -> Tensor:
    """The second axis reversed."""
    _matrix_at_least("fliplr", self)
    return self.flip(1)


def flipud(self) -> Tensor:
    """The first axis reversed."""
    return self.flip(0)


def rot90(self, k=1, dims=(0, 1)) -> Tensor:
    """Turned k times by a right angle, from the first of two axes towards the second."""
    _matrix_at_least("rot90", self)
    first, second = (axis_of(self, axis) for axis in dims)
    if first == second:
        raise WrongArgument(f"rot90: axis {first} is named twice")
    k %= 4
    if k == 2:
        return self.flip(first, second)
    made = self.flip(second) if k == 1 else self
    made = transpose(made, first, second) if k else made
    return made.flip(second) if k == 3 else made


def diff(self, n=1, dim=-1, *, axis=None) -> Tensor:
    """The differences of neighbours along an axis, n times over; of bools whether they differ."""
    along = axis_of(self, dim if axis is None else axis)
    if n < 0 or not self.ndim:
        raise WrongArgument(f"diff: n={n} of shape {list(self.shape)}")
    made = self
    for _ in range(min(n, self.shape[along])):
        behind, before = _along(made, along, slice(1, None)), _along(made, along, slice(None, -1))
        made = behind.ne(before) if made.dtype.name == "bool" else behind - before
    return made


def diag_embed(self, offset=0, dim1=-2, dim2=-1) -> Tensor:
    """Matrices with the last axis on a diagonal, which is `offset` above the main one, and zeros elsewhere."""
    size, leading = self.shape[-1], self.shape[:-1]
    same = [None] * len(leading)
    long = flatten(pad_to(self.unsqueeze(-1), *same, size, size + 1), -2)
    made = shrink_to(long, *same, size * size).reshape([*leading, size, size])
    above, below = max(offset, 0), max(-offset, 0)
    return movedim(made.pad((above, below, below, above)), (-2, -1), (dim1, dim2))


def diag(self, diagonal=0) -> Tensor:
    """Of one axis the matrix with these elements on a diagonal, which is `diagonal` above the main one, and zeros
    elsewhere; of a matrix the elements there."""
    if self.ndim == 2 and not Reading.tinygrad:
        return self.diagonal(diagonal)
    if self.ndim != 1:
        raise WrongArgument(f"diag: one axis or a matrix is wanted, not shape {list(self.shape)}; diagonal() and "
                            "diag_embed() know more axes")
    return diag_embed(self, diagonal)


def diagflat(self, offset=0) -> Tensor:
    """The matrix with all elements on a diagonal, which is `offset` above the main one, and zeros elsewhere."""
    return diag_embed(flatten(self), offset)


def trace(self) -> Tensor:
    """The sum of a matrix's diagonal."""
    if self.ndim != 2:
        raise WrongArgument(f"trace: a matrix is wanted, not shape {list(self.shape)}; diagonal() takes any")
    return self.diagonal().sum()


def kron(self, other) -> Tensor:
    """The product of each element with the whole of the other: [a * c, b * d] of [a, b] and [c, d]."""
    axes = max(self.ndim, other.ndim)
    first = [1] * (axes - self.ndim) + list(self.shape)
    second = [1] * (axes - other.ndim) + list(other.shape)
    pairs = self.reshape([size for one in first for size in (one, 1)]) * other.reshape(
        [size for one in second for size in (1, one)])
    return pairs.reshape([math.prod(sizes) for sizes in zip(first, second)])


for _function in (movedim, swapaxes, t, ravel, narrow, select, unbind, tensor_split, broadcast_to, expand_as, reshape_as, fliplr,
                  flipud, rot90, diff, diag, diag_embed, diagflat, trace, kron):
    setattr(Tensor, _function.__name__, _function)
Tensor.moveaxis, Tensor.swapdims, Tensor.view_as = movedim, swapaxes, reshape_as
