"""The memory that has a node's elements: UOp.buffer."""

import weakref

from .._dtype import of as dtype_of

_alive = weakref.WeakValueDictionary()  # by address and size


class Buffer:
    """Memory with the elements of nodes; the same memory is the same object.

    dtype   of its elements
    size    how many they are
    nbytes  how long it is
    device  where it is
    """

    def __init__(self, node):
        self._node = node  # which keeps the memory
        self.dtype, self.size = node.dtype, node.tensor().numel
        self.nbytes, self.device = self.size * node.dtype.itemsize, "CPU"

    @property
    def base(self) -> "Buffer":
        """The memory that it is a part of: itself."""
        return self

    def is_allocated(self) -> bool:
        """Whether there is memory: always."""
        return True

    def as_memoryview(self) -> memoryview:
        """Its bytes where they lie."""
        tensor = self._node.tensor()
        if self.dtype.fmt is None:
            tensor = tensor.bitcast({1: "uint8", 2: "uint16"}[self.dtype.itemsize])
        return memoryview(tensor.flatten()).cast("B")

    def numpy(self):
        """A copy of its elements."""
        return self._node.tensor().numpy()

    def __repr__(self):
        return f"<Buffer of {self.size} {dtype_of(self.dtype)} on {self.device}>"


def buffer_of(node) -> Buffer:
    """The memory of a node that has some."""
    key = node.tensor().data_ptr(), node.shape
    found = _alive.get(key)
    if found is None:
        found = _alive[key] = Buffer(node)
    return found
