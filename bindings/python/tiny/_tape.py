"""What tensors were made of that requires gradients, and what is noted while a step is captured.

A tensor knows the leaves (tensors whose `requires_grad` is true) that it was built of; backward() asks the engine for
the gradients of those.  A value that is computed has no graph any more (tiny_gradient): what is built on it afterwards
is marked with CUT, so that a gradient that would lack a part is an error, never a smaller number.  Each operation notes
them in its result: trace() in operators.inc.
"""

import weakref

from . import native
from ._reading import Reading

CUT = object()  # among leaves: the graph ends at a value that was computed
_NONE = frozenset()


class State:
    capture = None  # the program that is being captured (TinyJit)


alive = {}  # id: reference, of all tensors, while calls are read as tinygrad does
pending = {}  # id: reference, of tensors with writes that nothing has computed yet


class JitError(RuntimeError):
    """What a captured program would do otherwise than the function that it was captured from."""


class Inside:
    """In a gradient's place: what reading it says."""

    def __init__(self, text):
        self.text = text


def leaves(tensor):
    """The leaves that the tensor was built of; a leaf is its own."""
    held = tensor.__dict__
    return frozenset((tensor,)) if held.get("_requires_grad") else held.get("_leaves", _NONE)


class OfGradients:
    """Among the leaves of a gradient: it may be made of fewer of them than the loss was (of no bias behind the last
    product), which is asked when backward() wants it; and how often each had been written to."""

    def __init__(self, found):
        self._writes = {leaf: leaf.__dict__.get("_writes", 0) for leaf in found if isinstance(leaf, native.Tensor)}

    def had(self, leaf):
        """Whether the loss was made of the leaf as it is now."""
        return self._writes.get(leaf) == leaf.__dict__.get("_writes", 0)


def trace_gradients(sources, gradients):
    """Gradients were made of the leaves that the losses were made of: they can be differentiated again."""
    found = frozenset().union(*map(leaves, sources))
    if found and not native.Tensor.no_grad:
        found |= {OfGradients(found)}
        for gradient in gradients:
            gradient._leaves = found


def reached(tensor, found):
    """Of the leaves those by which backward() asks for gradients, and whether one may get none all the same: what is
    made of gradients may be made of a leaf by comparisons alone (the slope of relu)."""
    marks = [one for one in found if isinstance(one, OfGradients)]
    found = [one for one in found if isinstance(one, native.Tensor)]
    if marks:
        parts = set(tensor.made_of(found))
        apart = [one for i, one in enumerate(found) if i not in parts]
        if not all(any(mark.had(one) for mark in marks) for one in apart):
            raise RuntimeError("a leaf has no part in the losses")
        found = [found[i] for i in sorted(parts)]
    return found, bool(marks)


def note(tensor):
    """backward() may be asked for its gradient: in tinygrad's reading that of every tensor."""
    key = id(tensor)
    alive[key] = weakref.KeyedRef(tensor, _forget, key)
    if State.capture is not None:
        tensor._is_inside = True  # of a program, which alone has its value


def _forget(reference):
    alive.pop(reference.key, None)


def living():
    """The tensors that were noted; of those over devices the parts."""
    return [tensor for tensor in (reference() for reference in list(alive.values()))
            if tensor is not None and "_parts" not in tensor.__dict__]


def written(tensor, *others):
    """The tensor has a pending write: whoever computes a step computes it too."""
    for one in (tensor, *others):
        one._writes = one.__dict__.get("_writes", 0) + 1
        if State.capture is not None:
            State.capture.written(one)
        else:
            pending[id(one)] = weakref.ref(one, lambda _, key=id(one): pending.pop(key, None))


def waiting():
    """The tensors with pending writes."""
    return [tensor for tensor in (reference() for reference in list(pending.values())) if tensor is not None]


def realize(tensors):
    """Computes the tensors now; while a step is captured, whenever the program runs."""
    if State.capture is not None:
        return
    tensors = list({id(tensor): tensor for tensor in tensors}.values())
    for tensor in tensors:  # what fails is not tried again with each step
        pending.pop(id(tensor), None)
    of_devices = {}
    for tensor in tensors:
        of_devices.setdefault(id(tensor.context), []).append(tensor)
    for several in of_devices.values():
        native.tiny_realize(several)
    for tensor in tensors:
        computed(tensor)


_FEW = 64  # nodes of which a value of numbers alone is made, at most: arange and what follows from it


def is_of_memory(tensor):
    """Whether there is memory among what it is made of: tinygrad has no gradients of what numbers alone make."""
    if tensor.__dict__.get("_has_memory"):
        return True
    seen, stack = set(), [tensor.uop]
    while stack and len(seen) < _FEW:
        node = stack.pop()
        if node.op.name in ("BUFFER", "AFTER", "ALIAS"):
            return True
        if node not in seen:
            seen.add(node)
            stack.extend(reversed(node.src))
    return bool(stack)


def computed(tensor):
    held = tensor.__dict__
    held["_has_memory"] = True
    held.pop("_is_fresh", None)
    if held.get("_leaves") and not held.get("_requires_grad"):
        tensor._leaves = held["_leaves"] | {CUT}


def _has_graph(tensor):
    """Whether it is a float that was not realized, and is to have no memory of its own (clone(), contiguous())."""
    held = tensor.__dict__
    if not tensor.dtype.is_float or held.get("_has_memory") or held.get("_requires_grad"):
        return False
    base = tensor.uop.base
    return base.op.name != "CONTIGUOUS" and not base.is_realized


def read(tensor):
    """What to read the elements from: the tensor, or while its graph is wanted for backward() another of the same
    value, which leaves the graph as it is.  In tinygrad's reading what numbers alone make stays without memory, and a
    float that was not realized has its graph, since any loss may be made of it."""
    if State.capture is not None:
        raise JitError("elements are read while TinyJit captures: the program would have them as they are now; "
                       "return the tensor and read it outside")
    own = leaves(tensor)
    if Reading.tinygrad and (not is_of_memory(tensor) or _has_graph(tensor)) or (
            own and CUT not in own and not tensor.__dict__.get("_requires_grad") and not native.Tensor.no_grad):
        node = None
        if not Reading.tinygrad:  # which has kernels of its own for each read
            node = tensor.uop
            before, other = tensor.__dict__.get("_read", (None, None))
            if before is node:
                return other
        other = native.tiny_detach(tensor)
        other.context = tensor.context
        if node is not None:
            tensor._read = node, other
        return other
    return tensor
