"""Elements in another arrangement: x.unfold(0, 2, 1), x.diagonal(), x.rearrange("b c h w -> b (h w) c")."""

import math

from ._dimension import is_dimension
from ._movement import axis_of, flatten, pad, shrink, transpose
from ._creation import spread
from ._operands import want_numbers, want_text
from ._reading import WrongArgument
from ._sequences import make_tuple
from .native import Tensor


def shrink_to(self, *shape) -> Tensor:
    """The first elements of each axis, as many as the shape says; None: all."""
    return shrink(self, [None if size is None else (0, size) for size in spread(shape)])


def pad_to(self, *shape, value=0) -> Tensor:
    """Elements `value` behind those of each axis, up to the shape; None: as it is."""
    sizes = spread(shape)
    if len(sizes) != self.ndim:
        raise WrongArgument(f"pad_to: {len(sizes)} sizes for shape {list(self.shape)}")
    return pad(self, [(0, 0 if size is None else size - own) for size, own in zip(sizes, self.shape)], value=value)


def diagonal(self, offset=0, dim1=0, dim2=1) -> Tensor:
    """The elements where the positions along two axes are alike, as the last axis; with an offset the second one is
    that much further on."""
    first, second = axis_of(self, dim1), axis_of(self, dim2)
    if first == second:
        raise WrongArgument(f"diagonal: axis {first} is named twice")
    matrices = self.permute([axis for axis in range(self.ndim) if axis not in (first, second)] + [first, second])
    rows, columns = matrices.shape[-2:]
    count = min(rows - max(0, -offset), columns - max(0, offset))
    leading = matrices.shape[:-2]
    if count <= 0:
        return flatten(matrices[..., :0, :0], -2)
    square = matrices[..., max(0, -offset):max(0, -offset) + count, max(0, offset):max(0, offset) + count]
    everything = [None] * len(leading)
    long = pad_to(square.reshape([*leading, count * count]), *everything, count * (count + 1))
    return long.reshape([*leading, count, count + 1])[..., 0]


def roll(self, shifts, dims=None) -> Tensor:
    """Each axis moved on, what goes over the end to its begin; without axes all elements in a row."""
    if dims is None:
        return roll(flatten(self), shifts, 0).reshape(self.shape)
    shifts, dims = make_tuple(shifts, 1), make_tuple(dims, 1)
    if len(shifts) != len(dims):
        raise WrongArgument(f"roll: {len(shifts)} shifts for {len(dims)} axes")
    made = self
    for shift, dim in zip(shifts, dims):
        want_numbers("roll", shifts=shift)
        axis = axis_of(self, dim)
        size = self.shape[axis]
        shift = shift % size if size else 0
        if shift:
            before, after = made.split([size - shift, shift], dim=axis)
            made = after.cat(before, dim=axis)
    return made


def _max_shape(self) -> tuple:
    """The sizes of the axes, of those that runs bind the greatest."""
    return tuple(size if isinstance(size, int) else size.range[1] for size in self.shape)


def max_numel(self) -> int:
    """How many elements it has at most."""
    return math.prod(_max_shape(self))


# ---- Windows

def pool(self, k_, stride=1, dilation=1) -> Tensor:
    """What lies in each window over the last axes, which end where no window fits: [.., places.., kernel..]."""
    kernel = tuple(k_)
    if len(kernel) > self.ndim:
        raise WrongArgument(f"windows of {len(kernel)} axes over shape {list(self.shape)}")
    return self.windows(kernel=kernel, strides=make_tuple(stride, len(kernel)),
                        dilations=make_tuple(dilation, len(kernel)))


def unfold(self, dim, size, step) -> Tensor:
    """Windows of `size` elements along an axis, one every `step` elements, as a new last axis."""
    axis = axis_of(self, dim)
    length = self.shape[axis] if self.ndim else 1
    if size < 0 or step <= 0:
        raise WrongArgument(f"unfold: windows of {size} elements, each {step} after the one before")
    if size > length:
        raise WrongArgument(f"unfold: windows of {size} elements along axis {axis} of shape {list(self.shape)}")
    rows = transpose(self, axis, -1) if self.ndim else self.reshape([1])
    if size == 0:
        none = self.full([*rows.shape[:-1], length // step + 1, 0], 0, self.dtype, context=self.context)
        return none.transpose(axis, -2)
    made = pool(rows, (size,), step)
    return made.transpose(axis, -2) if self.ndim else made[0]


# ---- Einstein's notation for axes

def _side(text, formula):
    """Groups of names, one for each axis: (b c) is a group of two, 1 a group of none; "..." stands for axes by itself."""
    groups, open_group = [], None
    tokens = text.replace("…", "...").replace("(", " ( ").replace(")", " ) ").split()
    for token in tokens:
        if token == "(" and open_group is None:
            open_group = []
        elif token == ")" and open_group is not None:
            groups.append(open_group)
            open_group = None
        elif token in ("(", ")"):
            raise _wrong(formula, "brackets do not match")
        elif open_group is not None:
            open_group.append(token)
        else:
            groups.append([] if token == "1" else token if token == "..." else [token])
    if open_group is not None:
        raise _wrong(formula, "brackets do not match")
    for name in _names_of(groups):
        if name != "..." and (not name.isidentifier() or name.startswith("_") or name.endswith("_")):
            raise _wrong(formula, f"{name!r} is no name of an axis")
    return groups


def _names_of(groups):
    return [name for group in groups for name in ([group] if group == "..." else group)]


def _wrong(formula, what):
    return WrongArgument(f"rearrange({formula!r}): {what}")


def _with_ellipsis(groups, count):
    """Each "..." as so many axes of names of their own."""
    names = [f"...{i}" for i in range(count)]
    made = []
    for group in groups:
        if group == "...":
            made.extend([name] for name in names)
        else:
            made.append([new for name in group for new in (names if name == "..." else [name])])
    return made


def _check_names(formula, left, right, sizes):
    before, after = _names_of(left), _names_of(right)
    if len(set(before)) != len(before):
        raise _wrong(formula, "a name stands twice before the arrow")
    if sorted(before) != sorted(after):
        raise _wrong(formula, "both sides of the arrow are to have the same names")
    if any("..." in group for group in left if group != "..."):
        raise _wrong(formula, "... may not stand in brackets before the arrow")
    for name in sizes:
        if name not in before:
            raise _wrong(formula, f"no axis is named {name}")


def rearrange(self, formula, **sizes) -> Tensor:
    """Axes in another order, taken apart and put together, as einops.rearrange: "b (h w) c -> b c h w", h=4."""
    want_text("rearrange", formula=formula)
    if formula.count("->") != 1:
        raise _wrong(formula, "one -> is wanted")
    left, right = (_side(text, formula) for text in formula.split("->"))
    _check_names(formula, left, right, sizes)
    missing = self.ndim - len(left)
    if "..." in left:
        left, right = (_with_ellipsis(side, missing + 1) for side in (left, right))
    elif missing:
        raise _wrong(formula, f"{len(left)} axes for shape {list(self.shape)}")
    shape = []
    for group, size in zip(left, self.shape):
        known = [sizes.get(name, -1) for name in group]
        if not group and size != 1:
            raise _wrong(formula, f"an axis of size {size}, where 1 is wanted")
        if len(group) == 1 and known[0] not in (-1, size):
            raise _wrong(formula, f"{group[0]} is {known[0]}, and the axis has {size} elements")
        if known.count(-1) > 1:
            raise _wrong(formula, f"of ({' '.join(group)}) one size at most may be left out")
        if -1 in known and len(group) > 1:
            known[known.index(-1)] = size // math.prod(one for one in known if one != -1)
        elif -1 in known:
            known = [size]
        if math.prod(known) != size:
            raise _wrong(formula, f"({' '.join(group)}) of {known} for an axis of {size} elements")
        shape.extend(known)
    names = _names_of(left)
    size_of = dict(zip(names, shape))
    order = [names.index(name) for group in right for name in group]
    made = self.reshape(shape).permute(order) if names else self.reshape(shape)
    return made.reshape([math.prod(size_of[name] for name in group) for group in right])


Tensor._pool = pool
Tensor.max_shape = property(_max_shape)
Tensor.max_numel = max_numel
for _function in (shrink_to, pad_to, diagonal, roll, unfold, rearrange):
    setattr(Tensor, _function.__name__, _function)
