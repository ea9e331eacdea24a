"""The grids of GGUF's IQ formats, as words."""

from .....nn._gguf_grids import words
from .....nn.gguf import _IQ4 as kvalues_iq4nl  # noqa: F401

iq2s_grid, iq3s_grid, iq3xxs_grid = words("IQ2_S"), words("IQ3_S"), words("IQ3_XXS")
