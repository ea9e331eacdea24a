"""Runs that read and write Python's own memory."""

from . import native
from .native import Run


def _keep(self, bind, index, data):
    """Binds a buffer, which stays as it is until another is bound: so long somebody has a view of it."""
    view = memoryview(data)
    bind(self, index, view)
    if not hasattr(self, "_bound"):
        self._bound = {}
    self._bound[bind, index] = view


def _bind_input(self, index, data):
    """From now on executions read input `index` from `data`, a contiguous buffer (bytes, array.array, NumPy's
    array) with all its elements; what changes there need not be bound again."""
    _keep(self, native.tiny_run_bind_input, index, data)


def _bind_output(self, index, data):
    """From now on executions write output `index` into `data`, a contiguous buffer that can be written; None:
    into memory of the run's own again."""
    _keep(self, native.tiny_run_bind_output, index, bytearray() if data is None else data)


Run.bind_input = _bind_input
Run.bind_output = _bind_output
