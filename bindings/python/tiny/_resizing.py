"""Axes of another size: x.interpolate((32, 32), "linear")."""

import math

from ._movement import axis_of
from ._operator import op
from ._reading import WrongArgument
from .methods import Dtype
from .native import Tensor

_LINEAR = ("linear", "bilinear", "trilinear")
_CUBIC = ("cubic", "bicubic")


def _between(size, of, align_corners):
    """For each of `size` places among `of` elements the one before it, and how far it is on the way to the next."""
    if align_corners:
        places = [i * (of - 1) / (size - 1) if size > 1 else 0.0 for i in range(size)]
    else:
        places = [max(0.0, (i + 0.5) * of / size - 0.5) for i in range(size)]
    first = [min(math.floor(place), of - 1) for place in places]
    return first, [place - one for place, one in zip(places, first)]


def _linear_bytes(self, sizes, align_corners):
    """As PyTorch and Pillow resize bytes: axis by axis from the last one on, each rounded to bytes, with weights of whole
    numbers that are as large as 16 bits hold."""
    made = self
    for i in range(-1, -len(sizes) - 1, -1):
        axis, of = axis_of(self, i), self.shape[i]
        first, far = _between(sizes[i], of, align_corners)
        bits = 14 if max(1 - share for share in far) > 1 - 2 ** -16 else 15
        shape = [-1 if j == axis else 1 for j in range(self.ndim)]
        behind, before = (Tensor([math.floor(share * 2 ** bits + 0.5) for share in shares], dtype=Dtype.INT32).reshape(shape)
                          for shares in (far, [1 - share for share in far]))
        low = made.gather(Tensor(first, dtype=Dtype.INT64), axis).cast(Dtype.INT32)
        high = made.gather(Tensor([min(one + 1, of - 1) for one in first], dtype=Dtype.INT64), axis).cast(Dtype.INT32)
        made = ((low * before + high * behind + (1 << (bits - 1))) >> bits).cast(Dtype.UINT8)
    return made


def interpolate(self, size, mode="linear", align_corners=False) -> Tensor:
    """The last axes with these sizes, their elements in between made of those that are there.

    mode           "linear", "cubic", "nearest" (the one at or before the place) or "nearest-exact"
    align_corners  the outermost elements stay where they are; else elements are areas, whose outer edges do
    """
    if not isinstance(size, (tuple, list)) or not 0 < len(size) <= self.ndim:
        raise WrongArgument(f"interpolate: sizes {size!r} for shape {list(self.shape)}: a list of one for each of the last "
                            "axes is wanted")
    smooth = {**dict.fromkeys(_LINEAR, "linear"), **dict.fromkeys(_CUBIC, "cubic")}.get(mode)
    if smooth is None and mode not in ("nearest", "nearest-exact"):
        raise WrongArgument(f"interpolate: mode={mode!r}; known: 'linear', 'cubic', 'nearest', 'nearest-exact'")
    if align_corners and smooth is None:
        raise WrongArgument(f"interpolate: align_corners with mode {mode!r}, which has no places between elements")
    places = "align_corners" if align_corners else "asymmetric" if mode == "nearest" else "half_pixel"
    rounding = "floor" if mode == "nearest" else "round_prefer_ceil"
    if self.dtype == Dtype.UINT8 and smooth == "linear":
        return _linear_bytes(self, size, align_corners)
    sizes = [*self.shape[:self.ndim - len(size)], *size]
    return op("Resize", self, None, None, sizes, mode=smooth or "nearest", nearest_mode=rounding,
              coordinate_transformation_mode=places)


Tensor.interpolate = interpolate
