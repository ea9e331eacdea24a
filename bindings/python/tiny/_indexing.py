"""x[..] as NumPy, PyTorch and tinygrad read it, and x[..] = v as a write that happens when work runs that needs it.

Integers, slices of any step, None and ... give views.  Lists, arrays and tensors of integers name positions; the axes of
what they name stand where the first of them stood, or first if a slice stands between them.  Bools are masks: how many
elements they choose is known only when they are computed, so that reading by one computes it.
"""

import array
import itertools
import operator
import weakref

from . import _tape, native
from ._bound import is_made_of, known, sized
from ._dimension import Dim
from ._dtype import WEAK
from ._operands import made, operand
from ._reading import NoFit, Reading
from ._tensor import tensor
from .methods import Dtype, _tensor_gather, _tensor_gather_nd, _tensor_reshape, stack
from .native import Tensor, Variable


def _as_sequence(part, context):
    """The tensor of nested lists or of another library's array."""
    if isinstance(part, range):
        part = list(part)
    if isinstance(part, tuple):
        part = list(part)
    if isinstance(part, list) and any(isinstance(one, slice) or one is None or one is Ellipsis for one in part):
        raise IndexError("a list among indices has positions; slices, None and ... stand in a tuple: x[0, 1:3]")
    if isinstance(part, list) and any(isinstance(one, Tensor) for one in part):
        return stack([one if isinstance(one, Tensor) else _as_sequence(one, context) for one in part], 0)
    made_of = tensor(part, context=context)
    if isinstance(part, list) and made_of.numel == 0:
        return made_of.cast(Dtype.INT64)
    return made_of


def _whole_number(part):
    """The int or dimension that an index is; None if it is none."""
    if isinstance(part, (int, Dim, Variable)):
        return part
    if hasattr(part, "__index__") and not isinstance(part, Tensor) and not getattr(part, "ndim", 0):
        return operator.index(part)
    return None


def _is_truth(part):
    """Whether it is True or False, of Python or NumPy."""
    return isinstance(part, bool) or (getattr(part, "ndim", None) == 0 and not isinstance(part, Tensor) and
                                      getattr(getattr(part, "dtype", None), "kind", "") == "b")


class _Mask:
    """Bools, for as many axes as they have."""

    def __init__(self, values):
        self.values = values

    def positions(self):
        """For each axis of the mask the positions of what is true, row-major."""
        content = memoryview(self.values.contiguous().memoryview()).cast("B")
        flat = array.array("q", itertools.compress(range(len(content)), content))
        places = tensor(flat, context=self.values.context)
        found, inner = [], 1
        for size in reversed(self.values.shape):
            outermost = len(found) == self.values.rank - 1
            row = places if inner == 1 else places // inner
            found.append(row if outermost else row % size)
            inner *= size
        return found[::-1] or [places]


def _classified(part, context):
    """The index as None, ..., a slice, a number, a mask, or a tensor of positions."""
    if isinstance(part, slice):
        for bound in (part.start, part.stop, part.step):
            if bound is not None and not isinstance(bound, (int, Dim, Variable)):
                operator.index(bound)
        return part
    if part is None or part is Ellipsis:
        return part
    if _is_truth(part):
        return _Mask(context.full(Dtype.BOOL, [], int(bool(part))))
    number = _whole_number(part)
    if number is not None:
        return number
    if isinstance(part, (str, bytes, float, complex, dict, set)) or not (
            hasattr(part, "__len__") or hasattr(part, "__array__") or isinstance(part, Tensor)):
        raise IndexError(f"an index is an integer, a slice, ..., None, a bool, or a tensor, array or list of integers or "
                         f"bools, not {type(part).__name__}")
    places = part if isinstance(part, Tensor) else _as_sequence(part, context)
    if places.dtype == Dtype.BOOL:
        return _Mask(places)
    if not places.dtype.is_int:
        raise IndexError(f"an index has integers or bools, not {places.dtype}")
    return places


def _parts_of(key, context):
    """The indices one by one, of which the ellipsis is one."""
    if isinstance(key, list) and any(isinstance(part, (list, tuple, slice, Tensor)) or part is None or part is Ellipsis
                                     for part in key):
        # tinygrad takes such a list for a tuple; NumPy for positions, or for a mistake.
        if Reading.tinygrad:
            key = tuple(key)
        elif not all(isinstance(part, (list, tuple)) for part in key):
            raise IndexError("x[[..]] with slices or tensors in the list: write x[a, b], or stack the tensors")
        else:
            raise IndexError("x[[[..], [..]]] is one index to NumPy and several to tinygrad: write x[[..], [..]], or give a "
                             "tensor of the positions")
    parts = [_classified(part, context) for part in (key if isinstance(key, tuple) else (key,))]
    if sum(part is Ellipsis for part in parts) > 1:
        raise IndexError("a single ellipsis at most is wanted")
    return parts


def _axes_of(part):
    if part is None or part is Ellipsis:
        return 0
    return part.values.rank if isinstance(part, _Mask) else 1


class _Cut:
    """What indices do to a tensor, axis by axis: integers, slices and None make a view, in which the axes of positions
    are left whole."""

    def __init__(self, source, key, masks_whole=False):
        parts = _parts_of(key, source.context)
        self.source, self.shape = source, source.shape
        used = sum(map(_axes_of, parts))
        if used > len(self.shape):
            raise IndexError(f"too many indices: {used} for shape {list(self.shape)}")
        self.begin, self.end, self.step = [], [], []
        self.kept = []  # of each axis of the view the axis that it was; None of a new one
        self.places = []  # (axis of the view, positions)
        self.masks = []  # (first axis of the view, mask), where they are left whole
        self.numbers_at = []  # how many axes of the view are before each integer
        self.is_cut = self.is_new = False
        self.masks_whole = masks_whole
        for part in parts if Ellipsis in [one for one in parts if one is Ellipsis] else [*parts, Ellipsis]:
            self._take(part, len(self.shape) - used)

    def _take(self, part, missing):
        if part is None:
            self.kept.append(None)
            self.is_new = True
        elif part is Ellipsis:
            for _ in range(missing):
                self._whole()
        elif isinstance(part, slice):
            self._slice(part)
        elif isinstance(part, _Mask):
            self._mask(part)
        elif isinstance(part, Tensor):
            self.places.append((len(self.kept), part))
            self._whole()
        else:
            self._number(part)

    def _axis(self, begin, end, step=1):
        self.begin.append(begin)
        self.end.append(end)
        self.step.append(step)

    def _whole(self):
        axis = len(self.begin)
        self.kept.append(axis)
        self._axis(0, self.shape[axis])

    def _number(self, at):
        axis = len(self.begin)
        size = self.shape[axis]
        if isinstance(at, int) and isinstance(size, int):
            if not -size <= at < size:
                raise IndexError(f"index {at} is out of bounds of axis {axis}, which has size {size}")
            at %= size
        elif isinstance(at, int) and at < 0:
            at = at + size
        self._axis(at, at + 1)
        self.numbers_at.append(len(self.kept))
        self.is_cut = self.is_new = True

    def _slice(self, part):
        axis = len(self.begin)
        size = self.shape[axis]
        self.kept.append(axis)
        if Reading.tinygrad and any(isinstance(bound, Tensor) for bound in (part.start, part.stop, part.step)):
            raise TypeError(f"axis {axis}: a tensor bounds no slice")
        if part.start is None and part.stop is None and part.step in (None, 1):
            self._axis(0, size)
            return
        self.is_cut = True
        if isinstance(size, Dim) or isinstance(part.start, (Dim, Variable)) or isinstance(part.stop, (Dim, Variable)):
            if part.step not in (None, 1):
                raise TypeError(f"axis {axis}: a slice with bounds that runs bind has a step of 1, not {part.step}")
            self._axis(0 if part.start is None else part.start, size if part.stop is None else part.stop)
            return
        first, last, by = part.indices(size)
        if len(range(first, last, by)) == 0:
            first, last, by = 0, 0, 1
        elif by == 1:
            first, last = known(part.start, 0, size, first), known(part.stop, size, size, last)
        elif last < 0:
            last = -size - 1  # before the first element, in the header's terms
        self.is_cut = (first, last, by) != (0, size, 1) or self.is_cut
        self._axis(first, last, by)

    def _mask(self, mask):
        rank, axis = mask.values.rank, len(self.begin)
        found, wanted = tuple(mask.values.shape), tuple(self.shape[axis:axis + rank])
        if found != wanted:
            raise IndexError(f"a mask of shape {list(found)} for axes of shape {list(wanted)}")
        if self.masks_whole and rank:
            self.masks.append((len(self.kept), mask))
            for _ in range(rank):
                self._whole()
            return
        positions = mask.positions()
        if rank == 0:  # a new axis, of one element or of none
            self.places.append((len(self.kept), positions[0]))
            self.kept.append(None)
            self.is_new = True
        for places in positions if rank else ():
            self.places.append((len(self.kept), places))
            self._whole()

    def view(self):
        """The tensor as far as this goes; itself if nothing changes."""
        sliced = self.source.slice(self.begin, self.end, self.step) if self.is_cut else self.source
        if self.is_cut and (is_made_of(self.begin) or is_made_of(self.end)):
            sized(sliced, [end - begin if by == 1 else None for begin, end, by in zip(self.begin, self.end, self.step)])
        if not self.is_new:
            return sliced
        sizes = sliced.shape
        return sliced.reshape([1 if axis is None else sizes[axis] for axis in self.kept])


def _common_shape(places):
    """The shape that positions broadcast to."""
    shape = ()
    for one in places:
        other = tuple(one.shape)
        rank = max(len(shape), len(other))
        a, b = ((1,) * (rank - len(sizes)) + sizes for sizes in (shape, other))
        if any(x != y and 1 not in (x, y) for x, y in zip(a, b)):
            raise IndexError(f"positions of shapes {[list(each.shape) for each in places]} do not broadcast")
        shape = tuple(y if x == 1 else x for x, y in zip(a, b))
    return shape


def _require_one_reading(cut, axes, rank):
    """Integers beside positions: NumPy takes them for positions, others for axes that are gone before."""
    nearby = axes == list(range(axes[0], axes[-1] + 1))
    if not cut.numbers_at or Reading.tinygrad or not rank or not nearby or axes[0] == 0:
        return
    first, last = min(axes[0], *cut.numbers_at), max(axes[-1] + 1, *cut.numbers_at)
    if last - first > len(axes):
        raise IndexError("an integer, a slice and positions in one index: NumPy puts the axes of the positions first, "
                         "PyTorch and tinygrad where the positions stand; index twice, x[1][:, places]")


def _picked(cut, view, outside):
    """The elements of the view at the positions.  `outside`: what stands for one out of range, where the reading has
    that; else it is an error when the value is computed."""
    axes, places = [axis for axis, _ in cut.places], [one for _, one in cut.places]
    shape = _common_shape(places)
    _require_one_reading(cut, axes, len(shape))
    valid = None
    if Reading.tinygrad:
        valid, places = _inside([view.shape[axis] for axis in axes], places)
    if len(axes) == 1:
        found, before = _tensor_gather(view, places[0], axes[0]), axes[0]
    else:
        found, before = _joint(view, axes, places, shape)
    if valid is not None:
        after = found.rank - before - valid.rank
        outside = made(view, native.tiny_full(view.context, found.dtype, ((),), outside))
        found = valid.reshape([*valid.shape, *[1] * after]).where(found, outside)
    return found


def _inside(sizes, places):
    """Whether all positions are in range, and positions that are."""
    valid, moved = None, []
    for size, one in zip(sizes, places):
        one = one.cast(Dtype.INT64)
        one = (one < 0).where(one + size, one)
        fits = (one >= 0) & (one < size)
        valid = fits if valid is None else valid & fits
        moved.append(fits.where(one, 0))
    return valid, moved


def _joint(view, axes, places, shape):
    """Positions of several axes, and the axis where theirs stand: where the first one was, or first if others lie
    between them."""
    nearby = axes == list(range(axes[0], axes[-1] + 1))
    if nearby and Reading.tinygrad:  # they are in range: one position among all of these axes says as much
        sizes, place = view.shape, places[0]
        for axis, one in zip(axes[1:], places[1:]):
            place = place * sizes[axis] + one
        return _tensor_gather(view.flatten(axes[0], axes[-1]), place, axes[0]), axes[0]
    rest = [axis for axis in range(view.rank) if axis not in axes]
    front = view.permute(axes + rest)
    joint = stack([one.cast(Dtype.INT64).expand(list(shape)) for one in places], len(shape))
    found = _tensor_gather_nd(front, joint, 0)
    before = axes[0] if nearby else 0
    order = list(range(len(shape), len(shape) + before)) + list(range(len(shape)))
    return found.permute(order + list(range(len(shape) + before, found.rank))), before


def _part(self, at):
    """x[at] of a plain integer, which many loops ask for; None where the general way is to say what it is."""
    sizes = self.shape
    if not sizes or set(map(type, sizes)) != {int} or not -sizes[0] <= at < sizes[0]:
        return None
    at %= sizes[0]
    row = self.slice([at, *[0] * (len(sizes) - 1)], [at + 1, *sizes[1:]])
    return _tensor_reshape(row, sizes[1:])


def _index(self, key) -> Tensor:
    """Integers, slices, ... and None give views; lists, arrays and tensors of integers pick elements, as masks do.  A
    position out of range is an error when the value is computed."""
    view = _part(self, key) if type(key) is int else None
    if view is not None:
        if _tape.leaves(self) or self.__dict__.get("_is_fresh"):
            _note_view(self, key, view)
        return view
    cut = _Cut(self, key)
    view = cut.view()
    if cut.places:
        return _picked(cut, view, 0)
    if view is self and not Reading.tinygrad:
        view = self.slice(cut.begin, cut.end, cut.step) if self.rank else self.reshape([])
    if view is not self and (_tape.leaves(self) or self.__dict__.get("_is_fresh")):
        _note_view(self, key, view)
    return view


# ---- Writes

def _note_view(base, key, view):
    """A view of what requires gradients knows where it is: a write to it is one to that."""
    view.__dict__["_view_of"] = (base, key)
    views = base.__dict__.setdefault("_views", weakref.WeakValueDictionary())
    views[id(view)] = view


def _same_place(value, base, key):
    """Whether the value is the view that x[key] gives, as in x[key] += 1."""
    found = value.__dict__.get("_view_of") if isinstance(value, Tensor) else None
    return found is not None and found[0] is base and found[1] is key


def _value_of(self, value):
    """What is written: a number as it is, anything else as a tensor, of this tensor's dtype."""
    if isinstance(value, Tensor):
        if Reading.tinygrad and value.dtype != self.dtype and not _defers(self, value):
            raise RuntimeError(f"x[..] = value: a value of {value.dtype} for a tensor of {self.dtype}")
        return value if value.dtype == self.dtype else value.cast(self.dtype)
    made_of = made(self, operand(self, value)) if _is_number(value) else tensor(value, context=self.context)
    return made_of.cast(self.dtype)


def _defers(self, value):
    return value.dtype in WEAK and (self.dtype.is_float or not value.dtype.is_float)


def _is_number(value):
    return isinstance(value, (bool, int, float, Dim, Variable)) or (
        getattr(value, "ndim", None) == 0 and hasattr(value, "item"))


def _fitting(value, shape):
    """The value without leading axes of size 1 that the shape has not."""
    extra = value.rank - len(shape)
    if extra > 0 and all(size == 1 for size in value.shape[:extra]):
        return value.reshape(list(value.shape[extra:]))
    return value


def _scattered(self, key, value):
    """This tensor with the value at what the key names, as a new one: gradients go through it to both."""
    count = self.numel
    places = made(self, native.tiny_arange(self.context, Dtype.INT64, count)).reshape(list(self.shape))
    cut = _Cut(places, key)
    view = cut.view()
    if cut.places:
        view = _picked(cut, view, count)
    value = _fitting(value, view.shape).expand(list(view.shape))
    flat = self.reshape([count])
    if Reading.tinygrad:  # what is out of range is written to an element of its own
        flat = flat.pad([0], [1])
    written = made(self, *native.tiny_op(self.context, "", "ScatterND", 0, [
        flat, view.reshape([view.numel, 1]), value.reshape([view.numel])], "{}", 1), flat, value)
    return (written.slice([0], [count]) if Reading.tinygrad else written).reshape(list(self.shape))


def _by_mask(cut, value):
    """What a view becomes where a mask chooses its elements, if the value is the same for all that it chooses; None
    otherwise."""
    if len(cut.masks) != 1 or cut.places:
        return None
    (axis, mask), view = cut.masks[0], cut.view()
    after = view.rank - axis - mask.values.rank
    if value.rank > after and value.shape[value.rank - after - 1] != 1:
        return None
    if value.rank > after:  # the axis of what is chosen
        before = list(value.shape[:value.rank - after - 1])
        value = value.reshape(before + [1] * mask.values.rank + list(value.shape[value.rank - after:]))
    condition = mask.values.reshape([*mask.values.shape, *[1] * after])
    return condition.where(_fitting(value, view.shape), view)


def _replace(self, value):
    """This tensor is the value from now on; what it was made of is not."""
    others = [view for view in self.__dict__.get("_views", {}).values()]
    if others:
        raise RuntimeError("a tensor that requires gradients, or is to, is written while views of it are held: they "
                           "would keep the old elements")
    self.this = value.this
    self.__dict__.pop("_leaves", None)
    if value.__dict__.get("_leaves"):
        self._leaves = value._leaves
    self.__dict__.pop("_has_memory", None)
    self.__dict__.pop("_is_fresh", None)


_MOVEMENT = ("ALIAS", "SHRINK", "RESHAPE", "PERMUTE", "EXPAND", "FLIP", "SLICE", "AS_STRIDED")


def _is_memory(self):
    """Whether it is memory, or a view of some, not a value that is still to be computed."""
    node = self.uop
    while node.op.name in _MOVEMENT:
        node = node.src[0]
    return node.op.name in ("BUFFER", "AFTER")


def _is_traced(self, *values):
    """Whether a write is a part of a graph that gradients go through.  tinygrad has it so for floats that are not
    computed yet."""
    if Reading.tinygrad:
        capture = _tape.State.capture
        is_input = capture is not None and id(self) in capture.inputs
        return self.dtype.is_float and not is_input and (
            self.__dict__.get("_is_fresh", False) or not _is_memory(self))
    own = self.__dict__.get("_requires_grad")
    return not own and any(_tape.leaves(one) for one in (self, *values) if isinstance(one, Tensor))


def _set_index(self, key, value) -> None:
    """Writes to what the key names: as assign(), when work runs that needs it.  The value broadcasts and is converted
    to this tensor's dtype."""
    if _same_place(value, self, key):
        return
    value = _value_of(self, value)
    if _is_traced(self, value):
        _replace(self, _scattered(self, key, value))
        return
    cut = _Cut(self, key, masks_whole=True)
    if cut.masks:
        chosen = _by_mask(cut, value)
        if chosen is not None:
            _write(self, cut.view(), chosen)
            return
    if cut.masks or cut.places:
        _write(self, self, _scattered(self, key, value))
        return
    view = cut.view()
    _write(self, view, _fitting(value, view.shape))


def _write(self, view, value):
    if _tape.State.capture is not None:
        _tape.State.capture.before_write(self)
    native.tiny_assign(view, value)
    self._has_memory = True
    _tape.written(self)


def in_place(name, method):
    """The method whose result is written to the tensor, in its dtype and shape; `name` is what errors call it."""
    def operate(self, *arguments, **keywords) -> Tensor:
        result = method(self, *arguments, **keywords)
        if result is NotImplemented:
            return result
        if result.dtype != self.dtype and native.tiny_tensor_dtype(self) > 0:
            if _defers(self, result):
                result = result.cast(self.dtype)
        if result.dtype != self.dtype and native.tiny_tensor_dtype(self) > 0:
            raise NoFit(f"{name}: the result is of {result.dtype}, and x is of {self.dtype}")
        if tuple(result.shape) != tuple(self.shape):
            raise ValueError(f"{name}: the result has shape {list(result.shape)}, and x has {list(self.shape)}")
        if native.tiny_tensor_dtype(self) < 0:  # a number, which has no memory
            _replace(self, result)
            return self
        if not _is_traced(self, result):
            return self.assign(result)
        base, key = self.__dict__.pop("_view_of", (None, None))
        if base is None:
            _replace(self, result)
            return self
        base._views.pop(id(self), None)
        base[key] = result
        self.this, self._view_of = result.this, (base, key)
        self._leaves = result.__dict__.get("_leaves", frozenset())
        return self
    return operate


def _operator(name, sign):
    operate = in_place(f"x {sign}= y", getattr(Tensor, f"__{name}__"))

    def method(self, other) -> Tensor:
        return operate(self, other)
    method.__name__, method.__qualname__ = f"__i{name}__", f"Tensor.__i{name}__"
    method.__doc__ = f"x {sign}= y writes to x, and to every tensor that shares its elements."
    return method


Tensor.__getitem__ = _index
Tensor.__setitem__ = _set_index
for _name, _sign in (("add", "+"), ("sub", "-"), ("mul", "*"), ("truediv", "/"), ("floordiv", "//"), ("mod", "%"),
                     ("pow", "**"), ("and", "&"), ("or", "|"), ("xor", "^"), ("lshift", "<<"), ("rshift", ">>"),
                     ("matmul", "@")):
    setattr(Tensor, f"__i{_name}__", _operator(_name, _sign))
