"""Pictures sampled at places that are computed, and channels that become pixels."""

from ._operator import op
from ._reading import WrongArgument
from .native import Tensor

_MODES = {"bilinear": "linear", "nearest": "nearest", "bicubic": "cubic"}
_PADDINGS = ("zeros", "border", "reflection")


def _factor(name, factor):
    if isinstance(factor, bool) or not isinstance(factor, int) or factor < 1:
        raise WrongArgument(f"{name}: a factor of {factor!r}; a number above 0 is wanted")


def pixel_shuffle(self, upscale_factor) -> Tensor:
    """[.., c r r, h, w] as [.., c, h r, w r] for a factor of r: r r channels are the pixels of a square."""
    _factor("pixel_shuffle", upscale_factor)
    r = upscale_factor
    if self.ndim < 3 or self.shape[-3] % (r * r):
        raise WrongArgument(f"pixel_shuffle: a shape of {list(self.shape)}; at least 3 axes are wanted, of which the third "
                            f"from last has a multiple of {r * r} channels")
    *batch, channels, height, width = self.shape
    n = len(batch)
    apart = self.reshape([*batch, channels // (r * r), r, r, height, width])
    return apart.permute([*range(n), n, n + 3, n + 1, n + 4, n + 2]).reshape([*batch, channels // (r * r), height * r, width * r])


def pixel_unshuffle(self, downscale_factor) -> Tensor:
    """[.., c, h r, w r] as [.., c r r, h, w] for a factor of r: what pixel_shuffle made of it."""
    _factor("pixel_unshuffle", downscale_factor)
    r = downscale_factor
    if self.ndim < 3 or self.shape[-2] % r or self.shape[-1] % r:
        raise WrongArgument(f"pixel_unshuffle: a shape of {list(self.shape)}; at least 3 axes are wanted, of which the last two "
                            f"have multiples of {r} elements")
    *batch, channels, height, width = self.shape
    n = len(batch)
    apart = self.reshape([*batch, channels, height // r, r, width // r, r])
    return apart.permute([*range(n), n, n + 2, n + 4, n + 1, n + 3]).reshape([*batch, channels * r * r, height // r, width // r])


def grid_sample(self, grid, mode="bilinear", padding_mode="zeros", align_corners=False) -> Tensor:
    """[n, c, out..] of a picture [n, c, in..] at the places that grid [n, out.., axes] has, -1 to 1, the last axis first.

    mode           what is between elements: "bilinear", "nearest" (half to even), or "bicubic" along two axes
    padding_mode   what a place outside has: "zeros", the element at the "border", or what a "reflection" there shows
    align_corners  -1 and 1 are the centres of the outermost elements; else their outer edges
    """
    if mode not in _MODES or padding_mode not in _PADDINGS:
        raise WrongArgument(f"grid_sample: mode={mode!r}, padding_mode={padding_mode!r}; known: {', '.join(_MODES)}; "
                            f"{', '.join(_PADDINGS)}")
    if mode == "bicubic" and self.ndim != 4:
        raise WrongArgument(f"grid_sample: mode='bicubic' for shape {list(self.shape)}; it has two axes beside batch and channels")
    return op("GridSample", self, grid, mode=_MODES[mode], padding_mode=padding_mode, align_corners=int(align_corners))


def _middles(size, align_corners):
    """The places of so many elements between -1 and 1; one alone is in the middle."""
    if align_corners and size > 1:
        return [2 * i / (size - 1) - 1 for i in range(size)]
    return [(2 * i + 1) / size - 1 for i in range(size)]


def affine_grid(self, size, align_corners=False) -> Tensor:
    """The grid [n, out.., axes] that moves the points of pictures of this size [n, c, out..] by self [n, axes, axes + 1];
    grid_sample's `align_corners` is this one's."""
    axes = len(size) - 2 if isinstance(size, (tuple, list)) else 0
    if axes not in (2, 3) or tuple(self.shape) != (size[0], axes, axes + 1):
        raise WrongArgument(f"affine_grid: size={size!r} for shape {list(self.shape)}; batch, channels and two or three axes are "
                            "wanted, and for each picture as many rows, one column more")
    columns = [self[:, :, k].reshape([size[0], *[1] * axes, axes]) for k in range(axes + 1)]
    grid = columns[axes]
    for k in range(axes):  # the first column is the last axis'
        shape = [1] * (axes + 2)
        shape[axes - k] = size[axes + 1 - k]
        grid = grid + Tensor(_middles(size[axes + 1 - k], align_corners), dtype=self.dtype).reshape(shape) * columns[k]
    return grid


for _function in (pixel_shuffle, pixel_unshuffle, grid_sample, affine_grid):
    setattr(Tensor, _function.__name__, _function)
