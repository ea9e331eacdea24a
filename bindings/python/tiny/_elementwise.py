"""Functions of each element as tinygrad and PyTorch spell them: x.asin(), x.div(y, rounding_mode="floor"), x.isclose(y)."""

import math

from ._dtype import default_float, least_upper_dtype
from ._operands import is_operand, operand, want_tensors
from ._operator import op
from ._reading import Reading, WrongArgument
from .methods import Dtype
from .native import Tensor


def _method(name, function, doc):
    function.__name__, function.__qualname__, function.__doc__ = name, f"Tensor.{name}", doc
    setattr(Tensor, name, function)


def tensor_of(self, value):
    """The operand as a tensor: a number takes the dtype of what it meets."""
    return value if isinstance(value, Tensor) else _in_context(self, operand(self, value))


def _in_context(self, made):
    made.context = self.context
    return made


def is_float(tensor) -> bool:
    return tensor.dtype.is_float


# ---- Of one element

def _of_one_element():
    for name, operator, doc in (
            ("tan", "Tan", "Its tangent, of an angle in radians."), ("asin", "Asin", "The angle whose sine it is."),
            ("acos", "Acos", "The angle whose cosine it is."), ("atan", "Atan", "The angle whose tangent it is."),
            ("sinh", "Sinh", "The hyperbolic sine."), ("cosh", "Cosh", "The hyperbolic cosine."),
            ("asinh", "Asinh", "The inverse hyperbolic sine."), ("acosh", "Acosh", "The inverse hyperbolic cosine."),
            ("atanh", "Atanh", "The inverse hyperbolic tangent.")):
        _method(name, lambda self, operator=operator: op(operator, _as_floats(self)), doc)
    for name, base in (("log2", 2), ("log10", 10)):
        _method(name, lambda self, base=base: _in_wide(self, lambda x: x.log() / math.log(base)),
                f"The logarithm to the base {base}.")
    _method("exp2", lambda self: tensor_of(self, 2.0).pow(self), "2 to the power of x.")
    _method("isfinite", lambda self: _isfinite(self), "A bool: whether it is a number and not infinite.")
    _method("bitwise_not", lambda self: ~self, "All bits are changed; of bools it is `not`.")


def _as_floats(self):
    """Of integers and bools the floats, as NumPy, PyTorch and tinygrad take them."""
    return self if is_float(self) else self.cast(default_float())


def _in_wide(self, function):
    """Narrow floats in float32, so that steps in between do not round."""
    if not self.dtype.is_float or self.dtype.itemsize >= 4:
        return function(self)
    return function(self.cast(Dtype.FLOAT32)).cast(self.dtype)


def _isfinite(self):
    return self.abs() < math.inf if is_float(self) else self.eq(self)


def isinf(self, detect_positive=True, detect_negative=True) -> Tensor:
    """A bool: whether it is infinite; of one sign only, if the other one is not to be detected."""
    if detect_positive and detect_negative:
        return self.abs().eq(math.inf)
    if not detect_positive and not detect_negative:
        return self.ne(self) & self.eq(self)
    return self.eq(math.inf if detect_positive else -math.inf)


def leaky_relu(self, neg_slope=None, *, slope=None, negative_slope=None) -> Tensor:
    """x, below 0 multiplied by a slope, which is 0.01 if nothing is said."""
    said = [value for value in (neg_slope, slope, negative_slope) if value is not None]
    return _leaky_relu(self, *said)


# The double next above 1 / 6: -3 and 3 are at the bounds in each width of floats, and their slopes 0.
_SIXTH = math.nextafter(1 / 6, 1)


def hardsigmoid(self, alpha=_SIXTH, beta=0.5) -> Tensor:
    """alpha * x + beta, kept between 0 and 1."""
    return self.hard_sigmoid(alpha=alpha, beta=beta)


def hardtanh(self, min_val=-1, max_val=1) -> Tensor:
    """Kept between two numbers, at which its slope is 0 already (that of clip() is 1)."""
    return (self <= min_val).where(min_val, (self >= max_val).where(max_val, self))


def celu(self, alpha=1.0) -> Tensor:
    """x, below 0 alpha * (exp(x / alpha) - 1)."""
    below = self < 0
    return below.where((below.where(self, -1) / alpha).expm1() * alpha, self)


def selu(self, alpha=1.6732632423543772, gamma=1.0507009873554805) -> Tensor:
    """gamma * x, below 0 gamma * alpha * (exp(x) - 1)."""
    return self.elu(alpha) * gamma


def softplus(self, beta=1.0) -> Tensor:
    """log(1 + exp(beta * x)) / beta."""
    return _softplus(self) if beta == 1 else _softplus(self * beta) * (1 / beta)


# ---- Of two elements

def _reversible(name):
    plain = getattr(Tensor, name)

    def binary(self, x, reverse=False) -> Tensor:
        return plain(tensor_of(self, x), self) if reverse else plain(self, x)
    _method(name, binary, f"{plain.__doc__ or name}  With `reverse` the operands change places.")


def div(self, x, reverse=False, rounding_mode=None) -> Tensor:
    """self / x, of integers as floats; rounded towards 0 ("trunc") or down ("floor"), and then integers of integers.
    With `reverse` the operands change places."""
    a, b = (tensor_of(self, x), self) if reverse else (self, x)
    functions = {None: _div, "trunc": Tensor.trunc_div, "floor": Tensor.floor_div}
    if rounding_mode not in functions:
        raise WrongArgument(f"div: rounding_mode={rounding_mode!r}; known: None, 'trunc', 'floor'")
    return functions[rounding_mode](a, b)


def pow_(self, x, reverse=False) -> Tensor:
    """self to the power of x.  Integers have no negative powers.  With `reverse` the operands change places."""
    a, b = (tensor_of(self, x), self) if reverse else (self, x)
    if isinstance(x, int) and x < 0 and not reverse and not is_float(self):
        raise WrongArgument(f"pow: {x} is no power of {self.dtype}: cast to floats first")
    return _pow(a, b)


def copysign(self, other) -> Tensor:
    """The size of this with the sign of the other, also that of -0.  Integers become floats, but for tinygrad's."""
    other = tensor_of(self, other)
    size = (self.cast(least_upper_dtype(self.dtype, other.dtype)) if Reading.tinygrad else _as_floats(self)).abs()
    negative = (other < 0) | (other.reciprocal() < 0) if is_float(other) else other < 0
    return negative.where(-size, size)


def logaddexp(self, other) -> Tensor:
    """log(exp(self) + exp(other)), without leaving the range of floats on the way."""
    other = tensor_of(self, other)
    first = self >= other
    high, low = first.where(self, other), first.where(other, self)
    same = high.isinf() & self.eq(other)  # inf - inf is no distance
    return same.where(high, high + _softplus(same.where(0, low - high)))


def isclose(self, other, rtol=1e-05, atol=1e-08, equal_nan=False) -> Tensor:
    """A bool: whether |self - other| <= atol + rtol * |other|.  Infinities are close to themselves; NaN only to NaN, if
    `equal_nan`."""
    other = tensor_of(self, other)
    near = ((self - other).abs() <= other.abs() * rtol + atol) & self.isfinite() & other.isfinite()
    near = near | self.eq(other)
    return near | (self.isnan() & other.isnan()) if equal_nan else near


def allclose(self, other, rtol=1e-05, atol=1e-08, equal_nan=False) -> Tensor:
    """A bool: whether all elements are close; see isclose()."""
    return isclose(self, other, rtol, atol, equal_nan).all()


def lerp(self, end, weight) -> Tensor:
    """On the way to `end`, as far as `weight` says, 1 being there.  Of bytes it is rounded to the nearest one."""
    if self.dtype == Dtype.UINT8 and isinstance(weight, Tensor):
        exact = self.float() + (end.float() - self.float()) * weight
        return (exact + 0.5).floor().clip(0, 255).cast(Dtype.UINT8)
    if not is_operand(end):
        want_tensors("lerp", end=end)
    return self + (end - self) * weight


def usum(self, *others) -> Tensor:
    """The sum of all of them; of bools `or`."""
    return _folded(self, others, Tensor.__or__ if self.dtype == Dtype.BOOL else Tensor.add)


def uprod(self, *others) -> Tensor:
    """The product of all of them; of bools `and`."""
    return _folded(self, others, Tensor.__and__ if self.dtype == Dtype.BOOL else Tensor.mul)


def _folded(made, others, function):
    others = others[0] if len(others) == 1 and isinstance(others[0], (tuple, list)) else others
    for other in others:
        made = function(made, other)
    return made


_div, _pow, _softplus, _leaky_relu = Tensor.div, Tensor.pow, Tensor.softplus, Tensor.leaky_relu
for _name in ("add", "sub", "mul"):
    _reversible(_name)
for _name, _plain in (("bitwise_and", "and_"), ("bitwise_or", "or_"), ("bitwise_xor", "xor"), ("lshift", "shl"),
                      ("rshift", "shr"), ("mod", "floor_mod")):
    setattr(Tensor, _name, getattr(Tensor, _plain))
    _reversible(_name)
Tensor.fmod = Tensor.trunc_mod
Tensor.pow = pow_
_of_one_element()
for _function in (isinf, leaky_relu, hardsigmoid, hardtanh, celu, selu, softplus, div, copysign, logaddexp, isclose,
                  allclose, lerp, usum, uprod):
    setattr(Tensor, _function.__name__, _function)
