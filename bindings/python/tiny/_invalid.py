"""What a number of the graph may be beside Python's: no value at all, and floats that are told apart by their bits."""

import math
import struct


class ConstFloat(float):
    """A float that is equal to another of the same bits alone: -0.0 is not 0.0, and one NaN is another."""

    def __new__(cls, value):
        self = super().__new__(cls, value)
        self.bits = int.from_bytes(struct.pack("<d", value), "little")
        return self

    def __eq__(self, other):
        if isinstance(other, float) and math.isnan(self) and math.isnan(other):
            return True
        return float.__eq__(self, other)

    def __ne__(self, other):
        same = self == other
        return same if same is NotImplemented else not same

    def __hash__(self):
        return hash(self.bits)

    def __repr__(self):
        return f"ConstFloat({float.__repr__(self)})"

    def __str__(self):
        return float.__repr__(self)


class InvalidType:
    """What is read where nothing is: Invalid, the only one."""
    _one = None

    def __new__(cls):
        if cls._one is None:
            cls._one = object.__new__(cls)
        return cls._one

    def __eq__(self, other):
        return self is other if isinstance(other, InvalidType) else NotImplemented

    def __hash__(self):
        return id(self)

    def __repr__(self):
        return "Invalid"

    def __format__(self, spec):
        return format("Invalid", spec)

    def __reduce__(self):
        return InvalidType, ()


Invalid = InvalidType()
