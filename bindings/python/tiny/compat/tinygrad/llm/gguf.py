"""tinygrad.llm.gguf is tiny.nn.gguf."""

from ....nn._gguf_grids import grid_of_words
from ....nn.gguf import ggml_data_to_tensor, gguf_load  # noqa: F401


def _ggml_iq_grid(device, words, shape):
    """The points of a grid, which is told by the words that tinygrad has them as, as a tensor."""
    return grid_of_words(words, shape)
