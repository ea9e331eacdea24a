"""Tensor.schedule(): the kernels that computing tensors would run, and what each computes."""

import functools
import json

from ..methods import schedule as _schedule
from ..methods import schedule_store
from ._node import wrap


class ScheduleItem:
    """A kernel that would run.

    name        after its loops: "r_64_16"
    computes    the nodes of a model, or tensors with a name, that it computes all or a part of
    ranges      its loops, outer to inner: dicts of range, size, kind and reduced
    options     the optimisations that made them, as text
    operations, bytes  of one execution
    buffers     dicts of access, dtype, bytes, buffer (a number in the schedule) and kind
    stores      UOps: what it computes, as the scheduler made it
    """

    def __init__(self, tensors, number, row):
        self._tensors, self._number, self._count = tensors, number, row.pop("stores")
        self.__dict__.update(row)

    @functools.cached_property
    def stores(self) -> tuple:
        return tuple(wrap(schedule_store(self._tensors, self._number, i)) for i in range(self._count))

    @property
    def ast(self):
        """The store, of a kernel that has one; all of them as a tuple otherwise."""
        return self.stores[0] if self._count == 1 else self.stores

    def __repr__(self):
        what = f", computes {' + '.join(self.computes)}" if self.computes else ""
        return f"ScheduleItem({self.name}, {self.operations:.0f} operations, {self.bytes:.0f} bytes{what})"


class Linear:
    """The kernels that computing tensors takes, in their order.

    src   a Call for each
    run() computes the tensors
    """

    def __init__(self, tensors):
        self._tensors = tensors
        self.src = tuple(map(Call, schedule(*tensors)))

    def __len__(self):
        return len(self.src)

    def run(self) -> None:
        self._tensors[0].realize(*self._tensors[1:])


class Call:
    """A kernel among others: `src` is the kernel, a ScheduleItem."""

    device = "CPU"

    def __init__(self, item):
        self.src = (item,)


def schedule_linear(self, *others) -> Linear:
    """What computing it, and others along with it, takes; nothing runs before run()."""
    return Linear([self, *others])


def linear_with_vars(self, *others) -> tuple:
    """schedule_linear(), and the values of the variables that sizes of the tensors depend on, by name."""
    tensors = [self, *others]
    bindings = {name: value for tensor in tensors for size in tensor.__dict__.get("_dims", ())
                for name, (_, value) in getattr(size, "bindings", {}).items()}
    return Linear(tensors), bindings


def schedule(self, *others) -> list:
    """The kernels that computing it (and others along with it) now would run, in their order; nothing runs."""
    tensors = [self, *others]
    rows = json.loads(_schedule(tensors).text())["kernels"]
    return [ScheduleItem(tensors, number, row) for number, row in enumerate(rows)]
