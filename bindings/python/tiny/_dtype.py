"""Element types as objects: tiny.float32 has a name, a size and bounds, and is equal to what others call the same."""

import functools
import weakref

from . import native
from ._reading import Reading

# Of tiny.h, in the order in which types that are combined give way to each other, with the letter of struct and of the
# buffer protocol, or None.
_ROWS = (("bool", 1, "?"), ("int8", 2, "b"), ("uint8", 6, "B"), ("int16", 3, "h"), ("uint16", 7, "H"),
         ("int32", 4, "i"), ("uint32", 8, "I"), ("int64", 5, "q"), ("uint64", 9, "Q"),
         ("float8_e4m3fn", 14, None), ("float8_e5m2", 16, None), ("float8_e4m3fnuz", 15, None),
         ("float8_e5m2fnuz", 17, None), ("float16", 10, "e"), ("bfloat16", 11, None), ("float32", 12, "f"),
         ("float64", 13, "d"))
# Not of tensors: what nothing has, and Python's numbers, which take the type of what they meet.
_VOID, _WEAK_INT, _WEAK_FLOAT = 0, -1, -2
_FLOAT_BITS = {"float8_e4m3fn": (4, 3), "float8_e5m2": (5, 2), "float8_e4m3fnuz": (4, 3), "float8_e5m2fnuz": (5, 2),
               "float16": (5, 10), "bfloat16": (8, 7), "float32": (8, 23), "float64": (11, 52)}
# How tinygrad spells them where it prints one.
_SPELT = {"int8": "char", "uint8": "uchar", "int16": "short", "uint16": "ushort", "int32": "int", "uint32": "uint",
          "int64": "long", "uint64": "ulong", "float16": "half", "float32": "float", "float64": "double",
          "float8_e4m3fn": "fp8e4m3", "float8_e5m2": "fp8e5m2", "float8_e4m3fnuz": "fp8e4m3fnuz",
          "float8_e5m2fnuz": "fp8e5m2fnuz"}
# Names that mean one type wherever they are known; "int", "uint" and "float" do not.
_ALIASES = {name: kind for kind, name in _SPELT.items() if name not in ("int", "uint", "float")}
_ALIASES.update(bool_="bool", ubyte="uint8", byte="int8", float8_e4m3="float8_e4m3fn")
_OF_TINYGRAD = {"int": "int32", "uint": "uint32", "float": "float32"}

_kinds = {}


class DType(int):
    """The type of a tensor's elements.  A whole number for tiny.h; equal to that number, to the member of tiny.Dtype, to
    NumPy's and PyTorch's type of that name and to the name itself.

    name      "float32"
    itemsize  bytes of an element
    bitsize   bits of an element, 1 of a bool
    fmt       the letter of struct and of the buffer protocol; None if it has none
    min, max  the least and the greatest value; infinite of a float
    priority  where it stands among types that give way to each other, the lesser one to the greater
    """

    def __new__(cls, name):
        found = of(name)
        return found

    @classmethod
    def _make(cls, number, name, fmt, priority, bits):
        self = int.__new__(cls, number)
        self.__dict__.update(name=name, fmt=fmt, priority=priority, bitsize=bits, itemsize=(bits + 7) // 8)
        _kinds[name] = self
        return self

    def __setattr__(self, name, value):
        raise AttributeError(f"{self!r}.{name}: element types do not change")

    @property
    def is_float(self) -> bool:
        return self.name in _FLOAT_BITS or self == _WEAK_FLOAT

    @property
    def is_int(self) -> bool:
        return not self.is_float and self != _VOID and self.name != "bool"

    @property
    def is_signed(self) -> bool:
        return self.is_float or self.is_int and not self.name.startswith("u")

    @property
    def min(self):
        if self.is_float:
            return -float("inf")
        return False if self.name == "bool" else -(1 << (self.bitsize - 1)) if self.is_signed else 0

    @property
    def max(self):
        if self.is_float:
            return float("inf")
        return True if self.name == "bool" else (1 << (self.bitsize - self.is_signed)) - 1

    @property
    def dtype(self):
        """NumPy's type, by which numpy.zeros(3, tiny.float32) takes this one."""
        import numpy
        if self.fmt is not None:
            return numpy.dtype(self.fmt)
        try:
            import ml_dtypes
            return numpy.dtype(getattr(ml_dtypes, self.name))
        except (ImportError, AttributeError):
            raise TypeError(f"NumPy has no {self.name}; the package ml_dtypes gives it one") from None

    def __repr__(self):
        return "dtypes." + (_SPELT.get(self.name, self.name) if Reading.tinygrad else self.name)

    def __str__(self):
        return repr(self) if Reading.tinygrad else self.name

    def __format__(self, spec):
        return format(str(self), spec)

    def __eq__(self, other):
        if isinstance(other, int):
            return int.__eq__(self, other)
        if isinstance(other, str) and Reading.tinygrad:
            return False
        found = known(other)
        return NotImplemented if found is None else found is self

    def __ne__(self, other):
        same = self.__eq__(other)
        return same if same is NotImplemented else not same

    __hash__ = int.__hash__

    def __lt__(self, other):
        return (self.priority, int(self)) < (other.priority, int(other)) if isinstance(other, DType) else int(self) < other

    def __gt__(self, other):
        return other < self if isinstance(other, DType) else int(self) > other

    def __le__(self, other):
        return not self > other

    def __ge__(self, other):
        return not self < other

    def __bool__(self):
        return True

    def __reduce__(self):
        return of, (self.name,)

    def __deepcopy__(self, memo):
        return self

    def __copy__(self):
        return self


void = DType._make(_VOID, "void", None, -1, 0)
weakint = DType._make(_WEAK_INT, "weakint", None, 0, 800)
weakfloat = DType._make(_WEAK_FLOAT, "weakfloat", None, 9, 800)
for _place, (_name, _number, _fmt) in enumerate(_ROWS):
    _bits = 1 if _name == "bool" else native.tiny_dtype_bits(_number)
    # Those of one rank do not give way to each other.
    DType._make(_number, _name, _fmt, {14: 10, 15: 10, 16: 11, 17: 11}.get(_number, _place if _place < 9 else _place - 1),
                _bits)

_by_number = {int(kind): kind for kind in _kinds.values()}
supported = tuple(_by_number[number] for number in sorted(_by_number) if native.tiny_dtype_supported(number))


def numbered(number):
    """The type of tiny.h's number; the number itself if this package is older than the library."""
    return _by_number.get(number, number)


def known(value):
    """The type of that name, number, or of another library; None if there is none."""
    if isinstance(value, int):
        return _by_number.get(value)
    if value is float or value is int:  # of 32 or of 64 bits
        return None
    if isinstance(value, str):
        return _kinds.get(_ALIASES.get(value, value)) or (_kinds.get(_OF_TINYGRAD.get(value)) if Reading.tinygrad else None)
    name = getattr(value, "name", None) or getattr(value, "__name__", None)
    if not isinstance(name, str):
        name = str(value).partition("torch.")[2]  # its types have no attribute for it
    return _kinds.get(_ALIASES.get(name, name)) if name not in _OF_TINYGRAD else None


class UnknownDType(TypeError, AttributeError):
    """No element type has that name."""


def of(value):
    """The type of that name, number, or of another library."""
    if isinstance(value, DType):
        return value
    found = known(value.lower() if isinstance(value, str) else value)
    if found is None:
        names = ", ".join(kind.name for kind in supported)
        unclear = value in _OF_TINYGRAD if isinstance(value, str) else value is int or value is float
        more = f"; {value} has 32 bits in tinygrad and 64 in NumPy" if unclear else ""
        raise UnknownDType(f"dtype is {value!r}; known: {names}{more}")
    return found


# ---- Promotion: docs/semantics.md

@functools.cache
def _above(kind):
    """The types that hold what `kind` holds, itself among them; a float holds any integer, roughly."""
    weak_of = {"bool": ("weakint",), "weakint": ("int8", "uint8"), "int64": ("weakfloat",), "uint64": ("weakfloat",),
               "weakfloat": tuple(_FLOAT_BITS)[:4], "float16": ("float32",), "bfloat16": ("float32",),
               "float32": ("float64",), "float64": ()}
    if kind.name in weak_of:
        above = weak_of[kind.name]
    elif kind.is_float:
        above = ("float16", "bfloat16")
    else:
        wider = kind.bitsize * 2
        above = (f"int{wider}",) if kind.is_signed else (f"int{wider}", f"uint{wider}")
    return frozenset((kind,)).union(*(_above(_kinds[name]) for name in above))


@functools.cache
def least_upper_dtype(*kinds):
    """The type that values of these types meet in."""
    kinds = [of(kind) for kind in kinds]
    return min(frozenset.intersection(*map(_above, kinds)), key=lambda kind: kind.priority)


def finfo(kind):
    """(bits of the exponent, bits of the mantissa) of a float."""
    kind = of(kind)
    if kind.name not in _FLOAT_BITS:
        raise ValueError(f"finfo: {kind} is no float")
    return _FLOAT_BITS[kind.name]


# ---- Defaults

class Defaults:
    """What Python's numbers become where nothing else says it; None: as the reading has it.  See dtypes.default_float."""
    float = None
    int = None
    told = weakref.WeakKeyDictionary()  # what contexts were told last


_AS_THE_ENGINE = (_kinds["float32"], _kinds["int64"], False)


def default_float():
    """float32, unless dtypes.default_float was set."""
    return Defaults.float or _kinds["float32"]


def default_int():
    """int64 as in PyTorch and NumPy, int32 as tinygrad reads it, unless dtypes.default_int was set."""
    return Defaults.int or _kinds["int32" if Reading.tinygrad else "int64"]


def set_default_float(kind):
    """None: as the reading has it."""
    if kind is not None and not of(kind).is_float:
        raise ValueError(f"dtypes.default_float: {of(kind)} is no float")
    Defaults.float = None if kind is None else of(kind)
    tell_contexts()


def set_default_int(kind):
    """None: as the reading has it."""
    if kind is not None and not of(kind).is_int:
        raise ValueError(f"dtypes.default_int: {of(kind)} is no integer type")
    Defaults.int = None if kind is None else of(kind)
    tell_contexts()


def configure(context):
    """The context's numbers become what these say, now and when that changes."""
    said = (default_float(), default_int(), Reading.tinygrad)
    before = Defaults.told.get(context, _AS_THE_ENGINE)
    Defaults.told[context] = said
    if said == before:
        return
    for key, value in (("default_float", said[0]), ("default_int", said[1]), ("weak_results", said[2])):
        if key == "weak_results" or value in supported:
            native.tiny_context_set_int(context, key, int(value))


def tell_contexts():
    """Those that are here already."""
    for context in list(Defaults.told):
        configure(context)


def strong(kind):
    """What a number of Python's becomes where it is stored."""
    return default_int() if kind is weakint else default_float() if kind is weakfloat else kind


def least_upper_float(kind):
    """The type that functions of floats compute in."""
    kind = of(kind)
    if kind is weakint:
        return weakfloat
    return kind if kind.is_float else least_upper_dtype(kind, default_float())


def of_python(value):
    """The type of a number of Python's, weak, or of what a list of them becomes."""
    if isinstance(value, bool) or type(value).__name__ == "InvalidType":
        return _kinds["bool"]
    if isinstance(value, float):
        return weakfloat
    if isinstance(value, int):
        return weakint
    if isinstance(value, (list, tuple)):
        return strong(least_upper_dtype(*map(of_python, value))) if value else default_float()
    raise RuntimeError(f"{value!r} of type {type(value).__name__} has no element type: a number or nested lists are wanted")
