"""The integer types of results, which are int64 but for who reads calls as tinygrad does."""

from ._dtype import default_int, least_upper_dtype, of, strong
from ._reading import Reading


def whole_numbers(made):
    """Places and counts, in the type that integers have if nothing is said; of 32 bits as tinygrad reads it."""
    kind = of("int32") if Reading.tinygrad else default_int()
    return made if made.dtype == kind else made.cast(kind)


def of_sum(source, made):
    """The sum of elements of `source`: of integers int64, or as tinygrad reads it of 32 bits at least."""
    if not Reading.tinygrad or source.dtype.is_float:
        return made
    kind = least_upper_dtype(source.dtype, of("uint32" if not source.dtype.is_signed and source.dtype.name != "bool"
                                              else "int32"))
    return made if made.dtype == kind else made.cast(kind)


def of_product(source, made):
    """The product of elements of `source`: of integers int64, or as tinygrad reads it of their own type."""
    kind = strong(source.dtype)
    return made if not Reading.tinygrad or made.dtype == kind else made.cast(kind)
