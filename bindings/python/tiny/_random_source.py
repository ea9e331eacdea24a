"""Where a context's random keys come from: tinygrad's of the same seed and order of draws.

There is a key, made of the seed, and a counter of the words of 32 bits that were drawn, which has two words itself.  A
draw has the key's block at the counter for a key of its own, and moves the counter on by its words.  The counter is a
number here, and a tensor for the programs of TinyJit, which draw on as their functions would: a program moves the
tensor, and whoever runs it the number (Draws).
"""

from . import _tape, native
from ._operands import made
from .methods import Dtype

_DEVICE = 347607321  # the last word of SHA-256 of four zero bytes: tinygrad's of the first device that draws
_MASK = (1 << 32) - 1
_ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))


def block(key, counter):
    """Threefry2x32 with 20 rounds, as tiny_random_at: the words of one key cost less here than as a graph."""
    schedule = (*key, key[0] ^ key[1] ^ 0x1BD11BDA)
    a, b = (counter[0] + key[0]) & _MASK, (counter[1] + key[1]) & _MASK
    for group in range(5):
        for by in _ROTATIONS[group % 2]:
            a = (a + b) & _MASK
            b = a ^ ((b << by | b >> (32 - by)) & _MASK)
        a = (a + schedule[(group + 1) % 3]) & _MASK
        b = (b + schedule[(group + 2) % 3] + group + 1) & _MASK
    return a, b


def _data(words):
    return b"".join(word.to_bytes(4, "little") for word in words)


def _tensor(context, words):
    return native.tiny_tensor_from_data(context, Dtype.UINT32, ([2],), _data(words))


class Source:
    """The state of a context's random numbers; begins with seed 0."""

    def __init__(self, context):
        self._key, self._drawn = (_DEVICE, 0), 0
        # Tensors without `context`: it has them, and would not end.
        self._tensors = [_tensor(context, self._key), _tensor(context, (0, 0))]
        self._is_behind = False  # the tensors are
        self._is_given = False  # somebody has the counter, and may write to it

    def has(self, tensor):
        """Whether the tensor is one of its states."""
        return any(one is tensor for one in self._tensors)

    def seed(self, seed):
        self._key, self._drawn = (_DEVICE, seed & _MASK), 0
        self._is_behind = True

    def next(self, context, words):
        """A key that no other draw has, for so many words."""
        capture = _tape.State.capture
        if capture is not None:
            capture.draws.setdefault(id(self), Draws(self, context)).words += words
            return self._next_of_program(context, words, capture)
        if self._is_given:
            self._look()
        key = block(self._key, (self._drawn & _MASK, self._drawn >> 32))
        self.move(words)
        self._is_behind = True
        if self._is_given:
            self.write(context)
        return made(context, _tensor(context, key))

    def move(self, words):
        """The next draw is behind so many words."""
        self._drawn = (self._drawn + words) & ((1 << 64) - 1)

    def write(self, context):
        """The tensors are as the numbers; before a program draws."""
        if self._is_behind:
            for tensor, words in zip(self._tensors, (self._key, (self._drawn & _MASK, self._drawn >> 32))):
                native.tiny_assign(tensor, _tensor(context, words))
            native.tiny_realize(self._tensors)
            self._is_behind = False

    def given_counter(self, context):
        """The counter, of two words, the lower one first, for whoever wants to see or set it."""
        self.write(context)
        self._is_given = True
        return made(context, native.tiny_slice(self._tensors[1], ([0], [2], None)))

    def tensors(self, context):
        """The key and the counter as programs see them: what is written to them is what follows."""
        self.write(context)
        return [made(context, native.tiny_detach(one)) for one in self._tensors]

    def _look(self):
        if not self._is_behind:  # after seed()
            words = bytearray(8)
            native.tiny_tensor_read(self._tensors[1], words)
            self._drawn = int.from_bytes(words, "little")

    def _next_of_program(self, context, words, capture):
        key, counter = self._tensors
        drawn = made(context, native.tiny_random_at(key, counter))
        moved = made(context, native.tiny_binary(0, counter, _tensor(context, (words & _MASK, words >> 32))))
        before = made(context, native.tiny_slice(counter, ([0], [1], None)))
        carry = (moved.slice([0], [1]) < before).cast(Dtype.UINT32)
        capture.before_write(counter)
        native.tiny_assign(counter, moved + carry.pad([1], [0]))
        _tape.written(counter)
        return drawn


class Draws:
    """What a program draws in each run."""

    def __init__(self, source, context):
        self.source, self.context, self.words = source, context, 0

    def begin(self):
        self.source.write(self.context)

    def end(self):
        self.source.move(self.words)

    def fail(self):
        """The run may have moved the counter."""
        self.source._is_behind = True
