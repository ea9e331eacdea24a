"""tinygrad.engine.jit on tiny's TinyJit."""

from .... import JitError, TinyJit  # noqa: F401
from ...._capture import Program as CapturedJit
from ..._absent import names_of
from ..uop.ops import Ops


class _Submitted:
    """What a call in a captured program submits: all kernels at once, as one batch."""
    op, arg = Ops.CUSTOM_FUNCTION, "hcq"

    def __init__(self, program):
        self.program = program

    @property
    def kernels(self) -> int:
        return self.program.kernel_count


class _Call:
    def __init__(self, program):
        self.src = (_Submitted(program),)


class _Linear:
    """`captured.linear`: the calls of a replay.  There is one, or none where no kernel has to run."""
    op = Ops.LINEAR

    def __init__(self, program):
        self.src = (_Call(program),)


CapturedJit.linear = property(lambda self: _Linear(self.compiled))


def graph_class(device):
    """The class that batches kernels on a device: None, since programs are one batch as they are."""
    return device.graph


__getattr__ = names_of(__name__)
