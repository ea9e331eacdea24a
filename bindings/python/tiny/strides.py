"""Views of memory by their strides: what memory one needs, and the movement that makes it.

    import tiny
    from tiny import strides
    a = tiny.Tensor.arange(12)
    ops = strides.to_movement_ops((2, 3), (1, 4), offset=1)
    for op in ops:
        a = strides.apply_movement_op(a, op)
    assert a.tolist() == [[1, 5, 9], [2, 6, 10]]

A view is dims, strides and an offset, in elements; a mask, a pair (begin, end) for each axis, says where it has
elements: it is zero elsewhere.  Sizes may depend on variables, as everywhere.
"""

from . import native
from ._dimension import Dim, dim, number
from ._operands import dtype as _number_of, whole
from ._tensor import default_context
from .methods import Movement
from .native import Tensor, Variable


def _context(numbers, context):
    """The one that is said, or that of a dimension among the numbers, or the default."""
    if context is not None:
        return context
    return next((one.context for one in numbers if isinstance(one, (Dim, Variable))), None) or default_context()


def _described(dims, strides, offset, mask, context):
    """The arguments of a call about a view."""
    dims, strides = list(dims), list(strides)
    pairs = [tuple(pair) for pair in mask or ()]
    context = _context([*dims, *strides, offset, *(one for pair in pairs for one in pair)], context)
    bounds = (None, None) if mask is None else ([pair[0] for pair in pairs], [pair[1] for pair in pairs])
    return context, (dims, strides, *bounds), number(offset)


def get_buffer_size(dims, strides, offset=0, mask=None, context=None):
    """The elements that memory needs for the view: one more than the last that it reaches."""
    context, lists, offset = _described(dims, strides, offset, mask, context)
    return dim(context, native.tiny_get_buffer_size(context, lists, offset))


def get_real_view(dims, strides, offset=0, mask=None, context=None):
    """(dims, strides, offset) of the elements that the view reaches, each axis forwards, without axes that repeat or
    have one element."""
    context, lists, offset = _described(dims, strides, offset, mask, context)
    found = [dim(context, one) for one in
             whole(lambda capacity: native.tiny_get_real_view(context, lists, offset, capacity))]
    rank = len(found) // 2
    return tuple(found[:rank]), tuple(found[rank:2 * rank]), found[-1]


def to_movement_ops(dims, strides, offset=0, mask=None, context=None):
    """[(Movement, numbers)], which make the view of a tensor of one axis (apply_movement_op)."""
    context, lists, offset = _described(dims, strides, offset, mask, context)
    found = whole(lambda capacity: native.tiny_to_movement_ops(context, lists, offset, capacity))
    ops, at = [], 0
    while at < len(found):
        end = at + 2 + found[at + 1]
        ops.append((Movement(found[at]), tuple(dim(context, one) for one in found[at + 2:end])))
        at = end
    return ops


def apply_movement_op(tensor, op) -> Tensor:
    """The tensor after one (Movement, numbers); a view wherever the method of that name makes one."""
    movement, numbers = op
    return tensor.apply_movement_op(movement, list(numbers))


def empty_strided(dims, strides, dtype="float32", context=None) -> Tensor:
    """A tensor in memory of its own, of just as many elements as the strides reach; what they are is not said."""
    context = _context([], context)
    return context.empty_strided(_number_of(dtype), list(dims), list(strides))
