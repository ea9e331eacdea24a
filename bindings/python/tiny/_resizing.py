"""Axes of another size: x.interpolate((32, 32), "linear")."""

from ._operator import op
from ._reading import WrongArgument
from .native import Tensor

_LINEAR = ("linear", "bilinear", "trilinear")
_CUBIC = ("cubic", "bicubic")


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
    sizes = [*self.shape[:self.ndim - len(size)], *size]
    return op("Resize", self, None, None, sizes, mode=smooth or "nearest", nearest_mode=rounding,
              coordinate_transformation_mode=places)


Tensor.interpolate = interpolate
