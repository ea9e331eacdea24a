"""How calls are read that NumPy, PyTorch and tinygrad read differently."""


class Reading:
    """`tinygrad` is set by tiny.compat.install(): such a call does what tinygrad does.  Otherwise it raises."""
    tinygrad = False


class WrongArgument(ValueError, RuntimeError, AssertionError):
    """A ValueError, as NumPy raises, that programs written for PyTorch, where it is a RuntimeError, and for tinygrad,
    where it may be an assertion, catch as what they know."""


class NoFloat(TypeError, RuntimeError):
    """A TypeError that programs written for tinygrad catch as what they know."""
