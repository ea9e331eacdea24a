"""Digests of bytes: x.keccak("sha3_256"), x.hash()."""

import array

from . import dtypes
from ._arrangement import pad_to
from ._reading import WrongArgument
from .native import Tensor

# Bytes that are taken in at once, and what is written behind the message: of SHA-3 and of SHAKE.
_KINDS = {"sha3_224": (144, 0x06), "sha3_256": (136, 0x06), "shake_128": (168, 0x1F)}
_STATE = 200  # bytes
_ROUNDS = 24
_WORD = (1 << 64) - 1


def _round_constants():
    """Of the linear feedback shift register x^8 + x^6 + x^5 + x^4 + 1: bit 2^j - 1 of each is its next bit."""
    made, register = [], 1
    for _ in range(_ROUNDS):
        constant = 0
        for j in range(7):
            if register & 1:
                constant |= 1 << ((1 << j) - 1)
            register = (register << 1) ^ (0x171 if register & 0x80 else 0)
        made.append(constant)
    return made


def _lanes():
    """For each lane of the state after a round's permutation, where it comes from and by how many bits it is rotated;
    lane (x, y) stands at 5 y + x."""
    rotation, (x, y) = [0] * 25, (1, 0)
    for t in range(24):
        rotation[5 * y + x] = (t + 1) * (t + 2) // 2 % 64
        x, y = y, (2 * x + 3 * y) % 5
    source = [0] * 25
    for x in range(5):
        for y in range(5):
            source[5 * ((2 * x + 3 * y) % 5) + y] = 5 * y + x
    return source, [rotation[lane] for lane in source]


def _words(context, values):
    return Tensor.from_data(context, dtypes.uint64, [len(values)], array.array("Q", values))


def _rotated(words, bits):
    """To the left; by 0 too, since a shift by 64 leaves nothing."""
    return (words << bits) | (words >> (64 - bits))


def _permuted(state, source, bits, constants):
    """Keccak-f[1600] of [batch, 25]."""
    for constant in constants:
        rows = state.reshape(-1, 5, 5)
        parity = rows[:, 0] ^ rows[:, 1] ^ rows[:, 2] ^ rows[:, 3] ^ rows[:, 4]
        mixed = parity.roll(1, 1) ^ _rotated(parity.roll(-1, 1), 1)
        moved = _rotated((rows ^ mixed.unsqueeze(1)).reshape(-1, 25).gather(source, 1), bits)
        moved = moved.contiguous().reshape(-1, 5, 5)
        state = (moved ^ (~moved.roll(-1, 2) & moved.roll(-2, 2))).reshape(-1, 25) ^ constant
        state = state.contiguous()  # the next round reads each lane eleven times
    return state


def _padded(data, rate, mark):
    """[batch, blocks, 25] words of messages of bytes along the last axis, with the mark behind them."""
    length = data.shape[-1]
    missing = rate - length % rate
    end = [mark] + [0] * (missing - 1)
    end[-1] ^= 0x80
    tail = Tensor.from_data(data.context, dtypes.uint8, [1, missing], bytes(end)).expand(data.shape[0], missing)
    blocks = data.cat(tail, dim=1).reshape(data.shape[0], -1, rate)
    return pad_to(blocks, None, None, _STATE).contiguous().bitcast(dtypes.uint64)


def keccak(self, cfg="sha3_256") -> Tensor:
    """The digest of the bytes along the last axis: "sha3_224", "sha3_256", "shake_128" (16 bytes of it), or bytes that are
    taken in at once and the byte that is written behind the message."""
    if isinstance(cfg, str) and cfg not in _KINDS:
        raise WrongArgument(f"keccak: {cfg!r}; known: {', '.join(_KINDS)}")
    rate, mark = _KINDS[cfg] if isinstance(cfg, str) else cfg
    data = self if self.dtype == dtypes.uint8 else self.bitcast(dtypes.uint8)
    blocks = _padded(data.reshape(-1, data.shape[-1]), rate, mark)
    source, bits = _lanes()
    source = Tensor.from_data(self.context, dtypes.int64, [25], array.array("q", source))
    bits = _words(self.context, bits)
    constants = [_words(self.context, [value] + [0] * 24) for value in _round_constants()]
    state = blocks[:, 0]
    for block in range(blocks.shape[1]):
        state = _permuted(state if block == 0 else state ^ blocks[:, block], source, bits, constants)
    size = (_STATE - rate) // 2
    return state.bitcast(dtypes.uint8)[:, :size].reshape([*data.shape[:-1], size])


def _digests_of_pieces(data, piece):
    """[batch, digests]: of each 4096 bytes of `piece` bytes, and of these digests together."""
    return data.reshape(-1, 4096).keccak("shake_128").reshape(-1, piece // 4096 * 16).keccak("shake_128")


def hash_(self) -> Tensor:
    """16 bytes that tell the elements' bytes from others: a tree of shake_128 over 1 MiB, of 4096 bytes each, filled with
    zeros."""
    mebibyte = 1 << 20
    data = self.flatten()
    data = data if data.dtype == dtypes.uint8 else data.bitcast(dtypes.uint8)
    while True:
        pieces = max(1, -(-data.shape[0] // mebibyte))
        data = _digests_of_pieces(pad_to(data, pieces * mebibyte).reshape(pieces, mebibyte), mebibyte).flatten()
        if pieces == 1:
            return data


Tensor.keccak, Tensor.hash = keccak, hash_
