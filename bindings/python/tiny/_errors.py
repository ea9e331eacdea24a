"""What calls raise that fail."""

from . import native


class Error(RuntimeError):
    """A call failed: `status` is the number in tiny.h, `name` its name, the text is the engine's.  It is also what Python
    raises where numbers, shapes and positions are wrong: ValueError, IndexError, TypeError, NotImplementedError."""

    def __new__(cls, status, message=None):
        return super().__new__(_KINDS.get(status, cls) if cls is Error else cls, status, message)

    def __init__(self, status, message):
        super().__init__(message or native.tiny_status_name(status))
        self.status = status
        self.name = native.tiny_status_name(status)

    def __reduce__(self):
        return Error, (self.status, str(self))


class ArgumentError(Error, ValueError):
    """An argument that the call does not take."""


class ShapeError(Error, ValueError, IndexError):
    """Shapes, axes or sizes that do not fit together: NumPy raises a ValueError, of axes also an IndexError."""


class DtypeError(Error, TypeError):
    """An element type that the operation does not take."""


class UnsupportedError(Error, NotImplementedError):
    """Valid, but this build, device or model feature is missing."""


class MemoryLimitError(Error, MemoryError):
    """Memory could not be had."""


class PositionError(Error, IndexError):
    """An index read from data was out of range."""


_KINDS = {1: ArgumentError, 2: ShapeError, 3: DtypeError, 5: UnsupportedError, 6: MemoryLimitError, 13: PositionError}
