"""Values that go from device to device.  Now; or while TinyJit captures a function, in each run of its program, between
programs of the devices (_joint.py): what follows is built of what came there, as of inputs."""

from . import _tape, methods, native
from .native import made


def allreduce(tensors, op, processes=None):
    """What element i of all tensors comes to, on the device of each: see tiny_allreduce."""
    capture = _tape.State.capture
    if capture is None:
        return methods.allreduce(tensors, op, processes)
    return capture.exchange(tensors, lambda values: methods.allreduce(values, op, processes),
                            [(one.context, list(one.shape)) for one in tensors])


def allgather(tensors, axis, processes=None):
    """All tensors, one after the other along an axis, on the device of each: see tiny_allgather."""
    capture = _tape.State.capture
    if capture is None:
        return methods.allgather(tensors, axis, processes)
    count = len(tensors) * (1 if processes is None else processes.count)
    at = axis % tensors[0].rank if tensors[0].rank else 0
    return capture.exchange(tensors, lambda values: methods.allgather(values, axis, processes),
                            [(one.context, [size * (count if i == at else 1) for i, size in enumerate(one.shape)])
                             for one in tensors])


def copies(source, contexts):
    """The tensor in each of the contexts."""
    def copied(values):
        return [made(context, native.tiny_tensor_to(values[0], context)) for context in contexts]
    capture = _tape.State.capture
    if capture is None:
        return copied([source])
    return capture.exchange([source], copied, [(context, list(source.shape)) for context in contexts])
