"""What failed calls raise: tiny.Error, which is also what Python calls such a mistake."""

from . import native


class Error(RuntimeError):
    """A call failed: `status` is the number in tiny.h, `name` its name, the text is the engine's.  Shapes that do not fit
    are a ValueError, too, as in NumPy; element types a TypeError, positions an IndexError, memory a MemoryError."""

    def __new__(cls, status, message):
        return super().__new__(_KINDS.get(native.tiny_status_name(status), cls) if cls is Error else cls, message)

    def __init__(self, status, message):
        super().__init__(message or native.tiny_status_name(status))
        self.status = status
        self.name = native.tiny_status_name(status)

    def __reduce__(self):
        return Error, (self.status, str(self))


class ShapeError(Error, ValueError):
    """Shapes, axes or sizes that do not fit together."""


class DTypeError(Error, TypeError):
    """An element type that the operation does not take."""


class PositionError(Error, IndexError):
    """A position that was read from data is out of range."""


class NoMemoryError(Error, MemoryError):
    """Memory that there is not."""


_KINDS = {"SHAPE": ShapeError, "DTYPE": DTypeError, "INDEX": PositionError, "OUT_OF_MEMORY": NoMemoryError}
for _kind in (Error, *_KINDS.values()):
    _kind.__module__ = "tiny"
