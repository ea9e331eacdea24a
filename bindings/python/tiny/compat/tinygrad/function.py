"""tinygrad.function on tiny's."""

from ... import function  # noqa: F401
