"""Functions of elements that NumPy and PyTorch have beside tinygrad's: x.atan2(y), x.hypot(y), x.nan_to_num(), x.xlogy(y)."""

import math

from ._dtype import finfo
from ._elementwise import _as_floats, tensor_of
from ._reading import WrongArgument
from .methods import Dtype
from .native import Tensor

_INT_OF_SIZE = {2: Dtype.INT16, 4: Dtype.INT32, 8: Dtype.INT64}


# ---- Of one element

def signbit(self) -> Tensor:
    """A bool: whether it is negative, -0 and NaN with that bit among them."""
    kind = self.dtype
    if not kind.is_float:
        return self < 0
    if kind.itemsize not in _INT_OF_SIZE:
        return signbit(self.float())
    return self.bitcast(_INT_OF_SIZE[kind.itemsize]) < 0


def sinc(self) -> Tensor:
    """sin(pi x) / (pi x), 1 at 0."""
    angle = _as_floats(self) * math.pi
    at_zero = angle.eq(0)
    angle = at_zero.where(1, angle)
    return at_zero.where(1, angle.sin() / angle)


def frac(self) -> Tensor:
    """What lies behind the point, with the sign of x."""
    return self - self.trunc()


def deg2rad(self) -> Tensor:
    """Degrees as radians."""
    return _as_floats(self) * (math.pi / 180)


def rad2deg(self) -> Tensor:
    """Radians as degrees."""
    return _as_floats(self) * (180 / math.pi)


def logit(self, eps=None) -> Tensor:
    """log(x / (1 - x)); with `eps` x is kept between it and 1 - it."""
    x = _as_floats(self)
    x = x if eps is None else x.clip(eps, 1 - eps)
    return (x / (1 - x)).log()


def nan_to_num(self, nan=0.0, posinf=None, neginf=None) -> Tensor:
    """With numbers for NaN and the infinities, those at the ends of the dtype's range if nothing is said."""
    if not self.dtype.is_float:
        return self
    if self.dtype.itemsize == 1:  # which a cast keeps in range
        return nan_to_num(self.float(), nan, posinf, neginf).cast(self.dtype)
    exponent, mantissa = finfo(self.dtype)
    most = (2 - 2.0 ** -mantissa) * 2.0 ** (2 ** (exponent - 1) - 1)
    high, low = (most if posinf is None else posinf), (-most if neginf is None else neginf)
    made = self.eq(math.inf).where(high, self.eq(-math.inf).where(low, self))
    return self.isnan().where(nan, made).cast(self.dtype)


def heaviside(self, values) -> Tensor:
    """0 below 0, 1 above, and `values` at 0."""
    values = tensor_of(self, values)
    made = self.eq(0).where(values, (self > 0).cast(self.dtype))
    return self.isnan().where(self, made) if self.dtype.is_float else made


def hardshrink(self, lambd=0.5) -> Tensor:
    """x, and 0 where |x| is at most lambd."""
    return (self.abs() <= lambd).where(0, self)


def softshrink(self, lambd=0.5) -> Tensor:
    """x nearer to 0 by lambd, and 0 where |x| is at most that."""
    return (self.abs() <= lambd).where(0, (self > 0).where(self - lambd, self + lambd))


def tanhshrink(self) -> Tensor:
    """x - tanh(x)."""
    return self - self.tanh()


def prelu(self, weight) -> Tensor:
    """x, below 0 multiplied by the weight: one number, or one for each channel, axis 1."""
    if weight.numel != 1:
        if self.ndim < 2 or weight.shape != (self.shape[1],):
            raise WrongArgument(f"prelu: a weight of shape {list(weight.shape)} for channels of shape {list(self.shape)}")
        weight = weight.reshape([-1] + [1] * (self.ndim - 2))
    return (self > 0).where(self, self * weight)


def clamp_min(self, min) -> Tensor:
    """Not below a number or a tensor."""
    return self.clip(min, None)


def clamp_max(self, max) -> Tensor:
    """Not above a number or a tensor."""
    return self.clip(None, max)


def isposinf(self) -> Tensor:
    """A bool: whether it is the positive infinity."""
    return self.isinf(detect_negative=False)


def isneginf(self) -> Tensor:
    """A bool: whether it is the negative infinity."""
    return self.isinf(detect_positive=False)


# ---- Of two elements

def _two_floats(self, other):
    return _as_floats(self), _as_floats(tensor_of(self, other))


def atan2(self, other) -> Tensor:
    """The angle of the point (other, self), y before x, from -pi to pi; zeros count with their signs."""
    y, x = _two_floats(self, other)
    below, left = signbit(y), signbit(x)
    high, wide = below.where(-y, y), left.where(-x, x)
    steep = high > wide
    short, long = steep.where(wide, high), steep.where(high, wide)
    short = (short.eq(0) & long.eq(0)).where(0, short)  # at the origin no slope
    both_infinite = short.eq(math.inf) & long.eq(math.inf)
    short, long = both_infinite.where(1, short), both_infinite.where(1, long.eq(0).where(1, long))
    angle = (short / long).atan()
    angle = steep.where(math.pi / 2 - angle, angle)
    angle = left.where(math.pi - angle, angle)
    return below.where(-angle, angle)


def hypot(self, other) -> Tensor:
    """The root of the sum of squares, which do not overflow on the way."""
    x, y = _two_floats(self, other)
    size = x.abs().maximum(y.abs()).detach()
    scale = (size.eq(0) | size.eq(math.inf)).where(1, size)
    squares = (x / scale).square() + (y / scale).square()
    root = squares.eq(0).where(0, squares.eq(0).where(1, squares).sqrt() * scale)
    return (x.isinf() | y.isinf()).where(math.inf, root)


def fmax(self, other) -> Tensor:
    """The greater one; of NaN and a number the number."""
    other = tensor_of(self, other)
    return self.isnan().where(other, other.isnan().where(self, self.maximum(other)))


def fmin(self, other) -> Tensor:
    """The lower one; of NaN and a number the number."""
    other = tensor_of(self, other)
    return self.isnan().where(other, other.isnan().where(self, self.minimum(other)))


def xlogy(self, other) -> Tensor:
    """self * log(other), 0 where self is 0, whatever the logarithm is."""
    x, y = _two_floats(self, other)
    zero = x.eq(0) & ((y <= 0) | y.eq(math.inf))
    return zero.where(0, x * zero.where(1, y).log())


def logaddexp2(self, other) -> Tensor:
    """log2(2^self + 2^other), without leaving the range of floats on the way."""
    x, y = _two_floats(self, other)
    return (x * math.log(2)).logaddexp(y * math.log(2)) / math.log(2)


def ldexp(self, other) -> Tensor:
    """self * 2^other."""
    x, power = _two_floats(self, other)
    return x * power.exp2()


def _logical(name, method, doc):
    def logical(self, other) -> Tensor:
        return getattr(self.ne(0), method)(tensor_of(self, other).ne(0))
    logical.__name__, logical.__qualname__, logical.__doc__ = name, f"Tensor.{name}", doc
    setattr(Tensor, name, logical)


# ---- Of three

def addcmul(self, tensor1, tensor2, *, value=1) -> Tensor:
    """self + value * tensor1 * tensor2."""
    return self + tensor1 * tensor2 * value


def addcdiv(self, tensor1, tensor2, *, value=1) -> Tensor:
    """self + value * tensor1 / tensor2."""
    return self + tensor1 / tensor2 * value


_logical("logical_and", "__and__", "A bool: whether both are not 0.")
_logical("logical_or", "__or__", "A bool: whether one of them is not 0.")
_logical("logical_xor", "__xor__", "A bool: whether exactly one of them is not 0.")
for _function in (signbit, sinc, frac, deg2rad, rad2deg, logit, nan_to_num, heaviside, hardshrink, softshrink, tanhshrink, prelu,
                  clamp_min, clamp_max, isposinf, isneginf, atan2, hypot, fmax, fmin, xlogy, logaddexp2, ldexp, addcmul, addcdiv):
    setattr(Tensor, _function.__name__, _function)
