"""Operations by their names, as tinygrad's mixins have them: x.alu(Ops.ADD, y), x.ufix(3), x.threefry(key)."""

from . import dtypes
from ._operands import operand, want_tensors
from ._reading import WrongArgument
from .native import Tensor

# The methods of operations whose names are not theirs: of the engine's names and of tinygrad's.
_METHODS = {"NOT": "bitwise_not", "FLOORDIV": "floor_div", "FLOORMOD": "floor_mod", "LESS": "lt", "LESSEQUAL": "le",
            "EQUAL": "eq", "NOTEQUAL": "ne", "MAX": "maximum", "MIN": "minimum", "AND": "bitwise_and", "OR": "bitwise_or",
            "XOR": "bitwise_xor", "SHL": "lshift", "SHR": "rshift", "TRUNCMOD": "fmod"}
_SAME = {"FDIV": "DIV", "CDIV": "TRUNCDIV", "CMOD": "TRUNCMOD", "CMPLT": "LESS", "CMPEQ": "EQUAL", "CMPNE": "NOTEQUAL",
         "MULACC": "FMA"}
_UNARY = "NEG ABS NOT SQRT FLOOR CEIL TRUNC ROUND EXP EXP2 LOG LOG2 SIN COS TANH ERF RECIPROCAL".split()
_BINARY = ("ADD SUB MUL DIV FLOORDIV FLOORMOD TRUNCDIV TRUNCMOD POW MAX MIN AND OR XOR SHL SHR LESS LESSEQUAL EQUAL "
           "NOTEQUAL THREEFRY").split()
_OPERANDS = {**dict.fromkeys(_UNARY, 1), **dict.fromkeys(_BINARY, 2), "WHERE": 3, "FMA": 3}


def alu(self, op, *src) -> Tensor:
    """The operation of elements that `op`, of tiny.Ops or tinygrad's, names."""
    name = getattr(op, "name", str(op))
    name = _SAME.get(name, name)
    if name not in _OPERANDS:
        raise WrongArgument(f"alu: {name} is no operation of elements; known: {', '.join(sorted(_OPERANDS))}")
    if len(src) + 1 != _OPERANDS[name]:
        raise WrongArgument(f"alu: {name} takes {_OPERANDS[name]} operands, not {len(src) + 1}")
    want_tensors("alu", **{f"operand {i}": one for i, one in enumerate((self, *src))})
    if name == "FMA":
        return self * src[0] + src[1]
    if name == "TRUNCDIV":
        return self.div(src[0], rounding_mode="trunc")
    return getattr(self, _METHODS.get(name, name.lower()))(*src)


def ufix(self, x) -> Tensor:
    """x if it is a tensor, else a scalar of the dtype that it has beside this one."""
    return x if isinstance(x, Tensor) else operand(self, x)


# Salmon et al. 2011, "Parallel random numbers: as easy as 1, 2, 3": threefry2x32 of 20 rounds.
_ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
_PARITY = 0x1BD11BDA
_ROUNDS = 5  # of four rotations each
_LOW = 0xFFFFFFFF


def threefry(self, seed) -> Tensor:
    """The block of threefry2x32 for each counter, by its key: uint64, of which the lower word is the first."""
    want_tensors("threefry", counters=self, seed=seed)
    if self.dtype != dtypes.uint64 or seed.dtype != dtypes.uint64:
        raise WrongArgument(f"threefry: counters and seed are uint64, not {self.dtype} and {seed.dtype}")
    first, second = ((one & _LOW).cast(dtypes.uint32) for one in (self, self >> 32))
    low, high = ((one & _LOW).cast(dtypes.uint32) for one in (seed, seed >> 32))
    keys = (low, high, low ^ high ^ _PARITY)
    first, second = first + low, second + high
    for i in range(_ROUNDS):
        for by in _ROTATIONS[i % 2]:
            first = first + second
            second = first ^ ((second << by) | (second >> (32 - by)))
        first, second = first + keys[(i + 1) % 3], second + keys[(i + 2) % 3] + (i + 1)
    return first.cast(dtypes.uint64) | (second.cast(dtypes.uint64) << 32)


Tensor.alu, Tensor.ufix, Tensor.threefry = alu, ufix, threefry
