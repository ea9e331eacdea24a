"""How calls are read that NumPy, PyTorch and tinygrad read differently."""


class Reading:
    """`tinygrad` is set by tiny.compat.install(): such a call does what tinygrad does.  Otherwise it raises."""
    tinygrad = False


class WrongArgument(ValueError, AssertionError):
    """A ValueError that programs written for tinygrad, where it is an assertion, catch as what they know."""


class NoFloat(TypeError, RuntimeError):
    """A TypeError that programs written for tinygrad catch as what they know."""
