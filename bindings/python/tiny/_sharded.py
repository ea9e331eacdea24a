"""Tensors over several devices: Tensor.shard(("CUDA:0", "CUDA:1"), axis=0).  Each device has a part along an axis, a copy
of all, or a term of the sum that the value is.

What is computed of them is computed on each device, of what lies there, as long as that is enough: operations on elements,
reductions, products, movement that leaves the axis whole, layers along a batch.  A sum over the axis leaves terms, and
sums of terms, and multiples of them, are terms again.  Anything else first brings all of it to each device (`whole`), by
tiny_allreduce and tiny_allgather.  Those compute, and no gradient goes through them: backward() goes on behind them from
what reached their results (`_Crossing`).
"""

import functools
import inspect
import itertools
import math

from . import _tape, native
from ._dtype import known
from ._operands import COMPARISONS, OPERATORS, is_operand
from ._reading import Reading
from ._synonyms import WRITERS
from ._together import allgather, allreduce, copies
from .methods import Dtype, ReduceOp
from .native import Tensor

# In the place of an axis: each device has a term of a sum.
TERMS = "terms"
_crossings = itertools.count()


class _Crossing:
    """Where values went from device to device: what reached the leaves on that side reaches the sources on this."""

    def __init__(self, sources, leaves, back):
        self.sources, self.leaves, self.back = sources, leaves, back
        self.number = next(_crossings)
        for leaf in leaves:
            leaf._has_memory = True
            leaf.requires_grad = True
            _note(leaf)

    def backward(self):
        if all(leaf.grad is None for leaf in self.leaves):
            return
        slopes = [leaf.zeros_like() if leaf.grad is None else leaf.grad for leaf in self.leaves]
        for leaf in self.leaves:
            leaf.grad = None
        for source, slope in zip(self.sources, self.back(slopes)):
            source.backward(slope)


def _note(part):
    """backward() is to reach it in tinygrad's reading, too."""
    if Reading.tinygrad:
        _tape.note(part)


def _has_slopes(parts):
    """Whether backward() may come to the parts: in tinygrad's reading to any floats."""
    return any(_tape.leaves(part) for part in parts) or (
        Reading.tinygrad and parts[0].dtype.is_float and not native.Tensor.no_grad)


def _value_of(part) -> Tensor:
    """Another tensor of the same value, whose computing leaves the graph of the part as it is."""
    other = native.tiny_detach(part)
    other.context = part.context
    return other


def _added(parts):
    return allreduce([_value_of(one) for one in parts], ReduceOp.SUM)


def _of(parts, axis, crossings=frozenset()):
    found = Tensor.__new__(Sharded)
    found._parts, found._axis, found._crossings = tuple(parts), axis, crossings
    return found


def _slice_of(part, axis, i, count):
    """The i-th of `count` parts along an axis."""
    size = part.shape[axis] // count
    return part.shrink(tuple((i * size, (i + 1) * size) if at == axis else (0, dim)
                             for at, dim in enumerate(part.shape)))


def spread(source, contexts, axis):
    """A tensor over the devices of the contexts: a part for each along an axis, or a copy."""
    if axis is None:
        parts = copies(_value_of(source).clone(), contexts)  # writes to the one on its own device are no writes to it
    else:
        slices = [_slice_of(_value_of(source), axis, i, len(contexts)).contiguous() for i in range(len(contexts))]
        parts = [part for one, context in zip(slices, contexts) for part in copies(one, [context])]
    for part in parts:
        part._has_memory = True
        _note(part)
    if not _tape.leaves(source):
        return _of(parts, axis)

    def back(slopes):
        all_of_it = _added(slopes) if axis is None else allgather([_value_of(one) for one in slopes], axis)
        return copies(all_of_it[0], [source.context])
    return _of(parts, axis, frozenset((_Crossing([source], parts, back),)))


def become(source, contexts, axis):
    """The same in its place: from now on `source` is a leaf over the devices."""
    wanted = source.__dict__.get("_requires_grad")
    found = spread(source.detach(), contexts, axis)
    name = source.name
    source.__class__ = Sharded
    source.this = None
    source.__dict__.clear()
    source.__dict__.update(found.__dict__)
    for part in source._parts:
        part._requires_grad = wanted
        part.set_name(name)
    return source


def _sharded_of(value):
    if isinstance(value, Sharded):
        yield value
    elif isinstance(value, (list, tuple)):
        for one in value:
            yield from _sharded_of(one)


def _mapped(value, function):
    """The arguments with something else in the place of each tensor over devices."""
    if isinstance(value, Sharded):
        return function(value)
    if isinstance(value, (list, tuple)):
        return type(value)(_mapped(one, function) for one in value)
    return value


def _check(name, operands, arguments):
    first = operands[0]
    for one in operands[1:]:
        if [part.context for part in one._parts] != [part.context for part in first._parts]:
            raise RuntimeError(f"{name}: tensors over {', '.join(first.device)} and over {', '.join(one.device)}")
    for one in arguments:
        if isinstance(one, Tensor) and not isinstance(one, Sharded):
            raise RuntimeError(f"{name}: a tensor on {one.device} and one over {', '.join(first.device)}: shard() puts it "
                               "there too")


def _each(call, arguments, axis):
    """The call on each device; its results are over the devices along `axis`, or as that says of each."""
    operands = list(_sharded_of(arguments))
    crossings = frozenset().union(*(one._crossings for one in operands))
    results = [call(*_mapped(arguments, lambda one, i=i: one._parts[i])) for i in range(len(operands[0]._parts))]

    def joined(values):
        if isinstance(values[0], Tensor):
            return _of(values, axis(values[0]) if callable(axis) else axis, crossings)
        if isinstance(values[0], (list, tuple)):
            return type(values[0])(joined(list(one)) for one in zip(*values))
        return values[0]
    return joined(results)


def _is_copy(one):
    return one._axis is None


def _wholes(name, call, arguments):
    """Of all, brought to each device where it is not there."""
    return _each(call, _mapped(arguments, lambda one: one.whole()), None)


def _elementwise(name, call, arguments):
    arguments = _mapped(arguments, lambda one: one.whole() if one._axis == TERMS else one)
    operands = list(_sharded_of(arguments))
    along = next((one._axis - one.rank for one in operands if not _is_copy(one)), None)
    if along is None:
        return _each(call, arguments, None)

    def placed(one):
        if one.rank < -along or one.shape[along] == 1:
            return one.whole()
        return one if one._axis is not None and one._axis - one.rank == along else one.whole().shard(None, along)
    return _each(call, _mapped(arguments, placed), lambda result: along + result.rank)


def _linear(name, call, arguments):
    """Multiples of terms, by what is the same on each device."""
    first, *others = arguments
    if isinstance(first, Sharded) and first._axis == TERMS and all(
            _is_copy(one) if isinstance(one, Sharded) else not isinstance(one, Tensor) for one in others):
        return _each(call, arguments, TERMS)
    return _elementwise(name, call, arguments)


def _sum(name, call, arguments):
    if all(isinstance(one, Sharded) and one._axis == TERMS for one in arguments):
        return _each(call, arguments, TERMS)
    return _elementwise(name, call, arguments)


def _axes_said(self, arguments, keywords):
    said = [keywords[name] for name in ("axes", "axis", "dim") if keywords.get(name) is not None]
    said = said[0] if said else arguments[0] if arguments else None
    if said is None:
        return list(range(self.rank))
    return [axis % self.rank for axis in ([said] if isinstance(said, int) else said)]


_COMBINED = {"max": ReduceOp.REDUCE_MAX, "min": ReduceOp.REDUCE_MIN, "reduce_max": ReduceOp.REDUCE_MAX,
             "reduce_min": ReduceOp.REDUCE_MIN, "prod": ReduceOp.PROD, "sum": ReduceOp.SUM, "mean": ReduceOp.MEAN}


def _reduced(name, self, arguments, keywords):
    """Over the axis that is spread: a term each of sums; of others what all come to."""
    if name in ("max", "min") and arguments and (isinstance(arguments[0], Tensor) or is_operand(arguments[0])) and \
            not isinstance(arguments[0], int):
        return _elementwise(name, functools.partial(getattr(Tensor, name), **keywords), (self, *arguments))
    if self._axis == TERMS:
        self = self.whole()
    plain = functools.partial(getattr(Tensor, name), **keywords)
    axes = _axes_said(self, arguments, keywords)
    if _is_copy(self) or self._axis not in axes:
        behind = sum(one < self._axis for one in axes) if not _is_copy(self) else 0
        return _each(plain, (self, *arguments), None if _is_copy(self) else
                     lambda result: self._axis - (0 if result.rank == self.rank else behind))
    if name in ("sum", "mean"):
        terms = _each(plain, (self, *arguments), TERMS)
        return terms if name == "sum" else terms * (1 / len(self._parts))
    if name not in _COMBINED or _has_slopes(self._parts):
        return _wholes(name, plain, (self, *arguments))
    return _of(allreduce([plain(part, *arguments) for part in self._parts], _COMBINED[name]), None, self._crossings)


def _variance(self, axes=None, correction=1, keepdims=False):
    """By the mean of all parts."""
    axes = _axes_said(self, [] if axes is None else [axes], {})
    if _is_copy(self) or self._axis not in axes:
        return _reduced("variance", self, (axes, correction, keepdims), {})
    apart = (self - self.mean(axes, keepdim=True)).square()
    return apart.sum(axes, keepdim=keepdims) / (math.prod(self.shape[axis] for axis in axes) - correction)


def _product(name, call, arguments):
    """Rows of the left factor, columns of the right one, or terms of the sums between them."""
    left, right = (one.whole() if isinstance(one, Sharded) and one._axis == TERMS else one for one in arguments)
    _check(name, list(_sharded_of((left, right))), (left, right))
    inner = -1 if right.rank == 1 else -2
    rows = not _is_copy(left) and left._axis < left.rank - 1
    columns = not _is_copy(right) and right.rank > 1 and right._axis == right.rank - 1
    if rows and _is_copy(right) and (right.rank <= 2 or left._axis == left.rank - 2):
        behind = left.rank - left._axis - (1 if right.rank == 1 else 0)
        return _each(call, (left, right), lambda result: result.rank - behind)
    if columns and _is_copy(left):
        return _each(call, (left, right), lambda result: result.rank - 1)
    summed = [one._axis == one.rank + at for one, at in ((left, -1), (right, inner))]
    if any(summed) and all(is_summed or _is_copy(one) for is_summed, one in zip(summed, (left, right))):
        return _each(call, (left.shard(None, -1), right.shard(None, inner)), TERMS)
    if rows and not _is_copy(right):
        return _product(name, call, (left, right.whole()))
    return _wholes(name, call, (left, right))


def _batched(name, call, arguments):
    """Along axis 0 of the first, of which the others have parts too, or copies."""
    first, *others = (one.whole() if isinstance(one, Sharded) and one._axis == TERMS else one for one in arguments)
    if isinstance(first, Sharded) and first._axis == 0 and all(_is_copy(one) for one in _sharded_of(others)):
        return _each(call, (first, *others), 0)
    return _wholes(name, call, (first, *others))


def _normalised(name, self, arguments, keywords):
    """Over axes behind the one that is spread."""
    at = {"layer_norm": 2, "rms_norm": 1}[name]
    axes = keywords.get("axis", keywords.get("axes", arguments[at] if len(arguments) > at else -1))
    first = min(axis % self.rank for axis in ([axes] if isinstance(axes, int) else axes))
    call = functools.partial(getattr(Tensor, name), **keywords)
    spread_before = isinstance(self._axis, int) and self._axis < first
    if spread_before and all(_is_copy(one) for one in _sharded_of((arguments, tuple(keywords.values())))):
        return _each(call, (self, *arguments), self._axis)
    return _wholes(name, call, (self, *arguments))


def _gathered(name, call, arguments):
    """Rows of copies, at positions that are spread."""
    source, index, *axis = arguments
    if isinstance(index, Sharded) and _is_copy(source) and isinstance(index._axis, int) and axis == [0]:
        return _each(call, arguments, index._axis)
    return _wholes(name, call, arguments)


def _attended(name, call, arguments):
    """Of query, key and value with parts along axis 0; a mask is a copy."""
    if all(isinstance(one, Sharded) and one._axis == 0 for one in arguments[:3]) and \
            all(_is_copy(one) for one in _sharded_of(arguments[3:])):
        return _each(call, arguments, 0)
    return _wholes(name, call, arguments)


def _dropped(name, call, arguments):
    """Numbers of each device's own: of a part."""
    if Tensor.training and not isinstance(arguments[0]._axis, int):
        raise NotImplementedError(f"{name} of copies, which would be others on each device: of parts along an axis it is done")
    return _elementwise(name, call, arguments)


def _rows(name, self, arguments, keywords):
    """Along another axis than the one that is spread."""
    axes = keywords.get("axis", keywords.get("dim", arguments[0] if arguments else -1))
    axes = [axis % self.rank for axis in ([axes] if isinstance(axes, int) else axes)] if self.rank else []
    call = functools.partial(getattr(Tensor, name), **keywords)
    if isinstance(self._axis, int) and all(self._axis < axis for axis in axes) and \
            all(_is_copy(one) for one in _sharded_of(arguments)):
        return _each(call, (self, *arguments), self._axis)
    return _wholes(name, call, (self, *arguments))


def _loss(name, self, arguments, keywords):
    """Of a batch: a mean is a sum by the number of targets."""
    call = functools.partial(getattr(Tensor, name), **{**keywords, "reduction": "sum"})
    target = arguments[0] if arguments else None
    kind = keywords.get("reduction", "mean")
    kind = kind if isinstance(kind, str) else kind.name.lower()
    simple = len(arguments) == 1 and isinstance(target, Sharded) and self._axis == target._axis == 0 and \
        keywords.get("weight") is None
    if not simple or kind == "none":
        plain = functools.partial(getattr(Tensor, name), **keywords)
        return _each(plain, (self, *arguments), 0) if simple else _wholes(name, plain, (self, *arguments))
    summed = _each(call, (self, target), TERMS)
    if kind == "sum":
        return summed
    if name in ("cross_entropy", "nll_loss", "sparse_categorical_crossentropy") and target.dtype.is_int:
        ignored = keywords.get("ignore_index", -1 if name == "sparse_categorical_crossentropy" else -100)
        return summed / target.ne(ignored).sum().cast(self.dtype).whole()
    return summed / (self.shape[0] if name in ("cross_entropy", "nll_loss", "kl_div") else self.numel)


def _reshaped(self, shape):
    """Where parts stay whole: the axis begins where one of the new shape does, which as many parts divide."""
    if self._axis == TERMS or _is_copy(self):
        return _each(Tensor.reshape, (self, list(shape)), self._axis)
    count = len(self._parts)
    before = math.prod(self.shape[:self._axis])
    sizes = list(itertools.accumulate(shape, lambda a, b: a * b, initial=1))
    at = max((i for i in range(len(shape)) if sizes[i] == before), default=None)
    if at is None or shape[at] % count:
        raise RuntimeError(f"reshape {list(self.shape)} to {list(shape)}: elements would go to other devices; whole() brings "
                           "all to each")
    return _each(Tensor.reshape, (self, [*shape[:at], shape[at] // count, *shape[at + 1:]]), at)


def _like_reshape(name, self, arguments, keywords):
    meta = self._parts[0].context.full(Dtype.BOOL, list(self.shape), 0)
    return _reshaped(self, getattr(Tensor, name)(meta, *arguments, **keywords).shape)


def _like_permute(name, self, arguments, keywords):
    meta = self._parts[0].context.full(Dtype.BOOL, list(range(2, 2 + self.rank)), 0)
    order = [size - 2 for size in getattr(Tensor, name)(meta, *arguments, **keywords).shape]
    axis = order.index(self._axis) if isinstance(self._axis, int) else self._axis
    return _each(functools.partial(getattr(Tensor, name), **keywords), (self, *arguments), axis)


def _expanded(self, *dims):
    dims = list(dims[0]) if len(dims) == 1 and not isinstance(dims[0], int) else list(dims)
    if not isinstance(self._axis, int):
        return _each(Tensor.expand, (self, dims), self._axis)
    at = self._axis + len(dims) - self.rank
    dims[at] = -1
    return _each(Tensor.expand, (self, dims), at)


def _indexed(self, key):
    keys = key if isinstance(key, tuple) else (key,)
    _check("[]", [self, *_sharded_of(keys)], keys)
    if list(_sharded_of(keys)):
        if isinstance(key, Sharded) and key.dtype.is_int:
            return _gathered("[]", lambda source, index, _: source[index], (self, key, 0))
        return _wholes("[]", Tensor.__getitem__, (self, key))
    if _is_copy(self):
        return _each(Tensor.__getitem__, (self, key), None)
    basic = all(isinstance(one, (int, slice)) or one is None for one in keys)
    if self._axis == TERMS or not basic:
        return _wholes("[]", Tensor.__getitem__, (self, key))
    axis, at = 0, 0  # of the tensor, of the result
    for one in keys:
        if axis == self._axis and one is not None:
            break
        axis, at = axis + (one is not None), at + (not isinstance(one, int))
    else:
        return _each(Tensor.__getitem__, (self, key), at + self._axis - axis)
    if one == slice(None):
        return _each(Tensor.__getitem__, (self, key), at)
    return _wholes("[]", Tensor.__getitem__, (self, key))


class Sharded(Tensor):
    """A Tensor over several devices."""

    __hash__ = Tensor.__hash__
    rank = ndim = property(lambda self: self._parts[0].rank)
    dtype = property(lambda self: self._parts[0].dtype)
    device = property(lambda self: tuple(str(part.device).upper() for part in self._parts))
    numel = property(lambda self: math.prod(self.shape))
    name = property(lambda self: self._parts[0].name)
    axis = property(lambda self: self._axis if isinstance(self._axis, int) else None)
    T = property(lambda self: self.transpose())
    mT = property(lambda self: self.transpose(-2, -1))

    @property
    def context(self):
        """It has one for each device; who asks takes no tensors over several."""
        raise NotImplementedError(f"a tensor over {', '.join(self.device)} where one device's is wanted: to() brings it there")

    @property
    def shape(self):
        shape = list(self._parts[0].shape)
        if isinstance(self._axis, int):
            shape[self._axis] *= len(self._parts)
        return tuple(shape)

    @property
    def requires_grad(self):
        return self._parts[0].requires_grad

    @requires_grad.setter
    def requires_grad(self, value):
        for part in self._parts:
            part.requires_grad = value

    @property
    def grad(self):
        """Of copies the terms of a sum: what reached each."""
        slopes = [part.grad for part in self._parts]
        if any(one is None for one in slopes):
            return None
        return _of(slopes, TERMS if _is_copy(self) else self._axis)

    @grad.setter
    def grad(self, value):
        if value is not None:
            raise ValueError("grad of a tensor over devices: None takes it away; backward() fills it")
        for part in self._parts:
            part.grad = None

    def whole(self) -> Tensor:
        """All of it on each device."""
        if _is_copy(self):
            return self
        known = self._known_whole()
        if known is None:
            parts, axis = self._parts, self._axis
            found = _added(parts) if axis == TERMS else allgather([_value_of(one) for one in parts], axis)
            crossings = self._crossings
            if _has_slopes(parts):
                def back(slopes):
                    added = _added(slopes)
                    return added if axis == TERMS else [_slice_of(one, axis, i, len(added)) for i, one in enumerate(added)]
                crossings |= {_Crossing(parts, found, back)}
            known = _of(found, None, crossings)
            if _tape.State.capture is not None:
                _tape.State.capture.wholes[id(self)] = self, known
            else:
                self._whole = known
        return known

    @property
    def of(self):
        """Makes a tensor that is spread in the same way of other parts."""
        return functools.partial(_of, axis=self._axis)

    def _known_whole(self):
        """What whole() gave before; while a program is captured, what it has."""
        if _tape.State.capture is not None:
            return _tape.State.capture.wholes.get(id(self), (None, None))[1]
        return self.__dict__.get("_whole")

    def forget(self):
        """Parts are written: what whole() gave is no more what they are."""
        self.__dict__.pop("_whole", None)
        if _tape.State.capture is not None:
            _tape.State.capture.wholes.pop(id(self), None)

    def shard(self, devices=None, axis=None) -> Tensor:
        """Along another axis, over the same devices."""
        self._same_devices("shard", devices)
        axis = None if axis is None else axis % self.rank
        if axis == self._axis:
            return self
        all_of_it = self.whole()
        if axis is None:
            return all_of_it
        if self.shape[axis] % len(self._parts):
            raise RuntimeError(f"shard: axis {axis} of shape {list(self.shape)} is no multiple of {len(self._parts)} devices")
        parts = all_of_it._parts
        return _of([_slice_of(part, axis, i, len(parts)) for i, part in enumerate(parts)], axis, all_of_it._crossings)

    def _same_devices(self, name, devices):
        if devices is None or isinstance(devices, str):
            return
        from ._placing import context_on
        if [context_on(one, self._parts[0].context) for one in devices] != [part.context for part in self._parts]:
            raise RuntimeError(f"{name} of a tensor over {', '.join(self.device)}: to() brings it to one device first")

    def shard_like(self, other) -> Tensor:
        return self.shard(None, other.axis)

    def to(self, device=None, dtype=None) -> Tensor:
        """All of it, on one device, or of a dtype; see Tensor.to."""
        if dtype is not None:
            return self.to(device).cast(dtype)
        if device is None or isinstance(device, (list, tuple)):
            self._same_devices("to", device)
            return self
        if isinstance(device, Tensor):
            return self.to(device.device, device.dtype)
        if known(device) is not None:
            return self.cast(device)
        from ._placing import context_on
        parts = self.whole()._parts
        wanted = context_on(device, parts[0].context)
        return next((part for part in parts if part.context is wanted), parts[0]).to(device)

    def _here(self):
        """For who reads it."""
        return self.whole()._parts[0]

    def realize(self, *others) -> Tensor:
        """Computes it, and the others."""
        for one in (self, *others):
            if isinstance(one, Sharded):
                for part in one._parts:
                    part.realize()
            else:
                one.realize()
        return self

    def assign(self, value) -> Tensor:
        if not isinstance(value, Sharded):
            if isinstance(value, Tensor):
                _check("assign", [self], [value])
            value = [value] * len(self._parts)
        else:
            value = value.shard(None, self._axis)._parts
        self.forget()
        for part, one in zip(self._parts, value):
            part.assign(one)
        return self

    def detach(self) -> Tensor:
        return _of([part.detach() for part in self._parts], self._axis)

    def requires_grad_(self, requires_grad=True) -> Tensor:
        self.requires_grad = requires_grad
        return self

    def backward(self, gradient=None) -> Tensor:
        """Fills `grad` of the leaves, each device of its own, then behind what went from device to device."""
        if gradient is None and self.numel != 1:
            raise RuntimeError(f"backward() of a tensor of shape {list(self.shape)}: gradients are of one number, such as "
                               "sum() or mean(), or weighed by `gradient`")
        # Each of the copies has its share of what it changes.
        shares = self / len(self._parts) if _is_copy(self) else self
        for i, part in enumerate(shares._parts):
            part.backward(None if gradient is None else gradient.shard(None, self.axis)._parts[i])
            if _tape.State.capture is not None:
                _tape.State.capture.ended.append(part)
        for crossing in sorted(self._crossings, key=lambda one: one.number, reverse=True):
            crossing.backward()
        return self

    def linear(self, weight, bias=None, dtype=None) -> Tensor:
        return Tensor.linear(self, weight, bias, dtype)

    def sequential(self, ll) -> Tensor:
        """Of functions such as Tensor.relu those of this class."""
        names = [getattr(one, "__name__", "") for one in ll]
        return Tensor.sequential(self, [getattr(Sharded, name) if getattr(Tensor, name, None) is one else one
                                        for name, one in zip(names, ll)])

    def size(self, dim=None):
        return self.shape if dim is None else self.shape[dim]

    def __repr__(self):
        where = {None: "a copy each", TERMS: "a term of the sum each"}.get(self._axis, f"parts along axis {self._axis}")
        return f"<Tensor of {self.dtype.name} {list(self.shape)} over {', '.join(self.device)}: {where}>"

    variance = _variance
    var = _variance
    __getitem__ = _indexed
    expand = _expanded


def _call(name, kind):
    plain = getattr(Tensor, name)

    def call(self, *arguments, **keywords):
        operands = list(_sharded_of((self, arguments, tuple(keywords.values()))))
        _check(name, operands, (self, *arguments, *keywords.values()))
        if list(_sharded_of(tuple(keywords.values()))):  # by their places
            bound = inspect.signature(plain).bind(self, *arguments, **keywords)
            bound.apply_defaults()
            arguments, keywords = bound.args[1:], bound.kwargs
        if kind in (_reduced, _rows, _normalised, _loss, _like_reshape, _like_permute):
            return kind(name, self, arguments, keywords)
        return kind(name, functools.partial(plain, **keywords), (self, *arguments))
    call.__name__, call.__qualname__, call.__doc__ = name, f"Sharded.{name}", plain.__doc__
    return call


_KINDS = {
    _linear: "__mul__ __rmul__ __truediv__ mul div __neg__ neg contiguous multiply divide true_divide negative",
    _sum: "__add__ __sub__ add sub subtract",
    _elementwise: "__radd__ __rsub__ __rtruediv__ __floordiv__ __rfloordiv__ __mod__ __rmod__ __pow__ __rpow__ __and__ __rand__ "
                  "__or__ __ror__ __xor__ __rxor__ __lshift__ __rlshift__ __rshift__ __rrshift__ __lt__ __le__ __gt__ __ge__ "
                  "__eq__ __ne__ __invert__ __abs__ __pos__ abs acos acosh and_ asin asinh atan atanh bfloat16 bitcast "
                  "bitwise_and bitwise_not bitwise_or bitwise_xor bool cast ceil celu clamp clip clone const_like "
                  "contiguous_backward copysign cos cosh double elu eq erf exp exp2 expm1 float floor floor_div "
                  "floor_mod fmod full_like ge gelu gt half hard_sigmoid hardsigmoid hardswish hardtanh int is_nan isclose "
                  "isfinite isinf isnan le leaky_relu lerp log log10 log1p log2 logaddexp logical_not logsigmoid long lshift lt "
                  "masked_fill maximum minimum mish mod ne not_ ones_like or_ pow quick_gelu reciprocal relu relu6 "
                  "round rshift rsqrt selu shl short shr sigmoid sign silu sin sinh softplus softsign sqrt square swish tan "
                  "tanh trunc trunc_div trunc_mod where xor zeros_like absolute arccos arccosh arcsin arcsinh arctan arctan2 "
                  "arctanh astype atan2 bitwise_left_shift bitwise_right_shift byte char clamp_max clamp_min copy deg2rad fix "
                  "floor_divide fmax fmin frac greater greater_equal hardshrink heaviside hypot isneginf isposinf ldexp less "
                  "less_equal logaddexp2 logical_and logical_or logical_xor logit nan_to_num not_equal rad2deg remainder sgn "
                  "signbit sinc softshrink tanhshrink xlogy",
    _reduced: "sum mean max min prod any all reduce_max reduce_min argmax argmin logsumexp",
    _product: "matmul dot __matmul__",
    _batched: "conv2d conv_transpose2d conv conv_transpose max_pool2d avg_pool2d max_pool avg_pool batch_norm batchnorm "
              "group_norm instance_norm interpolate pixel_shuffle pixel_unshuffle",
    _attended: "scaled_dot_product_attention",
    _dropped: "dropout",
    _gathered: "gather",
    _normalised: "layer_norm rms_norm",
    _rows: "softmax log_softmax softmin layernorm cumsum cumprod cummax normalize",
    _loss: "cross_entropy nll_loss mse_loss l1_loss smooth_l1_loss huber_loss binary_cross_entropy "
           "binary_cross_entropy_with_logits binary_crossentropy binary_crossentropy_logits "
           "sparse_categorical_crossentropy",
    _like_reshape: "reshape view flatten unflatten squeeze unsqueeze",
    _like_permute: "permute transpose",
}
# Of the values, wherever they are.
_READ = ("numpy tolist item data memoryview save __array__ __bool__ __float__ __int__ __index__ __complex__ __len__ __iter__ "
         "__str__ __format__ __contains__ __dlpack__ __dlpack_device__ allclose")
# Of one device's memory or graph, or with numbers that would be others on each device.
_REFUSED = ("data_ptr node replace read schedule schedule_linear linear_with_vars callify made_of set_name shard_ to_ hash gradient "
            "rand_like randn_like random_at multinomial __setitem__ __delitem__ __reduce_ex__ __copy__ __deepcopy__ recompute")


def _reader(name):
    def read(self, *arguments, **keywords):
        return getattr(self._here(), name)(*arguments, **keywords)
    return read


def _refusal(name):
    def refuse(self, *_, **__):
        raise NotImplementedError(f"{name} of a tensor over {', '.join(self.device)}: to() brings it to one device")
    return refuse


def _fill():
    own = set(vars(Sharded))
    for kind, names in _KINDS.items():
        for name in names.split():
            if hasattr(Tensor, name) and name not in own:
                setattr(Sharded, name, _call(name, kind))
    for make, names in ((_reader, _READ.split()), (_refusal, _REFUSED.split()), (_refusal, WRITERS)):
        for name in names:
            setattr(Sharded, name, make(name))
    for name in OPERATORS:  # x += y is x = x + y
        if hasattr(Tensor, f"__i{name}__"):
            setattr(Sharded, f"__i{name}__", lambda self, other, name=name: getattr(self, f"__{name}__")(other))
    done = set(vars(Sharded)) | {"__init__", "__array_ufunc__", "__array_function__", "__setstate__", "_buffer", "_pool"}
    for name in dir(Tensor):
        static = inspect.getattr_static(Tensor, name)
        if name not in done and inspect.isfunction(static):
            setattr(Sharded, name, _call(name, _wholes))
        elif name not in done and isinstance(static, property):
            setattr(Sharded, name, property(_refusal(name)))


_fill()
assert set(f"__{name}__" for name in (*OPERATORS, *COMPARISONS)) <= set(vars(Sharded))


class OverDevices:
    """An optimiser of parameters over devices: one for each device, of what lies there.  Of copies the gradients of all
    devices are added up first, together in one piece for each dtype."""

    def __init__(self, kind, params, arguments, keywords):
        self.params = list(params)
        if not all(isinstance(one, Sharded) for one in self.params):
            raise TypeError("an optimiser's parameters are all over the same devices, or none is: shard_() puts one there")
        self.optimizers = [kind([one._parts[i] for one in self.params], *arguments, **keywords)
                           for i in range(len(self.params[0]._parts))]

    @property
    def lr(self) -> Tensor:
        """The first device's; assigned to, all have it."""
        return self.optimizers[0].lr

    @lr.setter
    def lr(self, value):
        for one in self.optimizers:
            one.lr = value

    def zero_grad(self) -> None:
        """No parameter has a gradient any more."""
        for one in self.optimizers:
            one.zero_grad()

    def step(self) -> None:
        """One step on each device."""
        copies = [one for one in self.params if _is_copy(one) and one.grad is not None]
        terms = {part: part.grad for one in copies for part in one._parts}
        for dtype in {one.dtype for one in copies}:
            _add_gradients([one for one in copies if one.dtype == dtype])
        try:
            for one in self.params:
                one.forget()
            for one in self.optimizers:
                one.step()
        finally:
            for part, slope in terms.items():
                part.grad = slope


def _add_gradients(copies):
    """In the place of each copy's gradient what all have."""
    def flat(i):
        slopes = [one._parts[i].grad.detach().reshape([-1]) for one in copies]
        return slopes[0] if len(slopes) == 1 else slopes[0].cat(*slopes[1:])
    for i, added in enumerate(allreduce([flat(i) for i in range(len(copies[0]._parts))], ReduceOp.SUM)):
        at = 0
        for one in copies:
            part = one._parts[i]
            part.grad = added[at:at + one.numel].reshape(list(one.shape))
            at += one.numel
