"""What axes are folded to, beside sums and means, as NumPy and PyTorch spell it: x.amax(1), x.norm(dim=-1), x.quantile(0.9)."""

import math

from ._movement import axis_of, flatten, only
from ._reading import WrongArgument
from ._results import whole_numbers
from .native import Tensor


def _fold(name, plain):
    def fold(self, axis=None, keepdim=False, *, dim=None, keepdims=None) -> Tensor:
        along, keep = only(name, axis=axis, dim=dim), only(name, keepdim=keepdim or None, keepdims=keepdims)
        return plain(self, axis=along, keepdim=bool(keep))
    fold.__name__, fold.__qualname__ = name, f"Tensor.{name}"
    return fold


def aminmax(self, axis=None, keepdim=False, *, dim=None) -> tuple[Tensor, Tensor]:
    """The lowest and the greatest element of an axis, or of all."""
    along = only("aminmax", axis=axis, dim=dim)
    return self.min(axis=along, keepdim=keepdim), self.max(axis=along, keepdim=keepdim)


def count_nonzero(self, axis=None, keepdim=False, *, dim=None) -> Tensor:
    """How many elements are not 0, along axes, or of all."""
    return whole_numbers(self.ne(0).sum(axis=only("count_nonzero", axis=axis, dim=dim), keepdim=keepdim))


def nansum(self, axis=None, keepdim=False, *, dim=None) -> Tensor:
    """The sum of the elements that are no NaN."""
    return self.isnan().where(0, self).sum(axis=only("nansum", axis=axis, dim=dim), keepdim=keepdim)


def nanmean(self, axis=None, keepdim=False, *, dim=None) -> Tensor:
    """The mean of the elements that are no NaN."""
    along = only("nanmean", axis=axis, dim=dim)
    count = self.eq(self).cast(self.dtype).sum(axis=along, keepdim=keepdim)
    return nansum(self, along, keepdim) / count


def _of_zero(total, function):
    """0 of 0, where the slope is 0, and not 0 / 0 or 0 times infinity."""
    return total.eq(0).where(0, function(total.eq(0).where(1, total)))


def norm(self, p=2, dim=None, keepdim=False, *, axis=None) -> Tensor:
    """(sum |x|^p)^(1/p) along axes, or of all elements: the root of the sum of squares if nothing is said.  p may be
    inf, the greatest |x|, -inf, the lowest, or 0, the count of those that are not 0."""
    along = only("norm", dim=dim, axis=axis)
    if p == "fro" or p is None:
        p = 2
    if isinstance(p, str):
        raise NotImplementedError(f"norm: p={p!r}; known: numbers, inf, 'fro'")
    if not self.dtype.is_float:
        raise WrongArgument(f"norm: floats are wanted, not {self.dtype}: cast() them")
    if p == 0:
        return self.ne(0).cast(self.dtype).sum(axis=along, keepdim=keepdim)
    size = self.abs()
    if math.isinf(p):
        return (size.max if p > 0 else size.min)(axis=along, keepdim=keepdim)
    if p == 1:
        return size.sum(axis=along, keepdim=keepdim)
    if p == 2:
        return _of_zero(self.square().sum(axis=along, keepdim=keepdim), Tensor.sqrt)
    if p < 0:
        return size.pow(p).sum(axis=along, keepdim=keepdim).pow(1 / p)
    powers = _of_zero(size, lambda x: x.pow(p)) if p < 1 else size.pow(p)
    return _of_zero(powers.sum(axis=along, keepdim=keepdim), lambda x: x.pow(1 / p))


def dist(self, other, p=2) -> Tensor:
    """The norm of the difference."""
    return norm(self - other, p)


# ---- By order

_BETWEEN = ("linear", "lower", "higher", "midpoint", "nearest")


def _between(rows, q, interpolation):
    """Of sorted rows [.., n] the element at q of the way, or what lies between two."""
    if not 0 <= q <= 1:
        raise WrongArgument(f"quantile: {q}; from 0 to 1")
    place = q * (rows.shape[-1] - 1)
    low, high = math.floor(place), math.ceil(place)
    if interpolation == "lower" or low == high:
        return rows[..., low]
    if interpolation == "higher":
        return rows[..., high]
    if interpolation == "nearest":
        return rows[..., round(place)]
    return rows[..., low].lerp(rows[..., high], place - low if interpolation == "linear" else 0.5)


def quantile(self, q, dim=None, keepdim=False, *, interpolation="linear", axis=None) -> Tensor:
    """What so large a part of the elements along an axis, or of all, is below; NaN where there is one.  A list of parts
    gives a first axis of as many.  Between two elements: "linear", "lower", "higher", "midpoint" or "nearest"."""
    if interpolation not in _BETWEEN:
        raise WrongArgument(f"quantile: interpolation={interpolation!r}; known: {', '.join(map(repr, _BETWEEN))}")
    if not self.dtype.is_float:
        raise WrongArgument(f"quantile: floats are wanted, not {self.dtype}: cast() them")
    along = only("quantile", dim=dim, axis=axis)
    rows = flatten(self) if along is None or not self.ndim else self.transpose(axis_of(self, along), -1)
    if rows.shape[-1] == 0:
        raise WrongArgument(f"quantile: no elements along that axis of shape {list(self.shape)}")
    unknown, rows = rows.isnan().any(axis=-1), rows.sort(-1)[0]

    def at(one):
        made = unknown.where(math.nan, _between(rows, one, interpolation)).cast(self.dtype)
        if along is None:
            return made.reshape([1] * self.ndim) if keepdim else made
        made = made.unsqueeze(-1).transpose(axis_of(self, along), -1) if self.ndim else made
        return made if keepdim or not self.ndim else made.squeeze(axis_of(self, along))
    parts = q.tolist() if hasattr(q, "tolist") else q
    return Tensor.stack([at(one) for one in parts]) if isinstance(parts, (list, tuple)) else at(parts)


def median(self, place=None, keepdim=False, *, axis=None, dim=None) -> Tensor:
    """The element in the middle along an axis, or of all, of an odd count of elements.  Of an even count PyTorch gives
    the lower one of two and NumPy their mean; quantile() says which."""
    if place is not None or dim is not None:
        said = f"dim={dim}" if place is None else place
        raise TypeError(f"median({said}) gives PyTorch's programs values and their places: write median(axis=..), or "
                        "kthvalue() for the places")
    count = self.numel if axis is None else self.shape[axis_of(self, axis)]
    if count % 2 == 0:
        raise WrongArgument(f"median: of {count} elements PyTorch gives the lower one in the middle and NumPy the mean of "
                            'both: write quantile(0.5, interpolation="lower") or quantile(0.5)')
    return quantile(self, 0.5, axis, keepdim)


def kthvalue(self, k, dim=-1, keepdim=False) -> tuple[Tensor, Tensor]:
    """The k-th lowest element along an axis, counted from 1, and where it stands."""
    axis = axis_of(self, dim)
    size = self.shape[axis] if self.ndim else 1
    if not 1 <= k <= size:
        raise WrongArgument(f"kthvalue: the {k}-th of {size} elements")
    found = self.sort(axis)
    if not self.ndim:
        return found
    values, places = (one.narrow(axis, k - 1, 1) for one in found)
    return (values, places) if keepdim else (values.squeeze(axis), places.squeeze(axis))


# ---- Of several variables

def cov(self, *, correction=1) -> Tensor:
    """[n, n]: the covariances of n variables, the rows, whose columns are observations; of one row its variance."""
    if not 1 <= self.ndim <= 2:
        raise WrongArgument(f"cov: [variables, observations] are wanted, not shape {list(self.shape)}")
    rows = self.unsqueeze(0) if self.ndim == 1 else self
    rows = rows if rows.dtype.is_float else rows.float()
    apart = rows - rows.mean(axis=1, keepdim=True)
    made = apart @ apart.transpose(0, 1) / (rows.shape[1] - correction)
    return made.reshape([]) if rows.shape[0] == 1 else made


def corrcoef(self) -> Tensor:
    """[n, n]: the correlations of n variables, the rows, whose columns are observations."""
    made = cov(self)
    if made.ndim == 0:
        return made / made
    spread = made.diagonal().sqrt()
    return (made / spread.unsqueeze(1) / spread.unsqueeze(0)).clip(-1, 1)


Tensor.amax, Tensor.amin = _fold("amax", Tensor.max), _fold("amin", Tensor.min)
Tensor.amax.__doc__ = "The greatest element along axes, or of all."
Tensor.amin.__doc__ = "The lowest element along axes, or of all."
for _function in (aminmax, count_nonzero, nansum, nanmean, norm, dist, quantile, median, kthvalue, cov, corrcoef):
    setattr(Tensor, _function.__name__, _function)
