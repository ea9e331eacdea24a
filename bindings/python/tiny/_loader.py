"""What Python users expect of a loader beside the header's functions: epochs that are iterated over."""

from ._tensor import Tensor, tensor
from .native import Loader


_of_tensors = Loader.create


def _new(arrays, batch, shuffle=False, seed=0, drop_last=False, ahead=2):
    """A loader of the rows of `arrays`: tensors, or arrays of other libraries, which are copied."""
    made = [array if isinstance(array, Tensor) else tensor(array) for array in arrays]
    loader = _of_tensors(made, batch, seed, ahead, shuffle=shuffle, drop_last=drop_last)
    loader.array_count = len(made)
    return loader


def _iterate(self):
    """The batches from here to the end of the epoch, each a tuple of tensors."""
    while self.next():
        yield tuple(self.tensor(i) for i in range(self.array_count))


Loader.create = staticmethod(_new)
Loader.__iter__ = _iterate
Loader.__len__ = lambda self: self.batch_count
