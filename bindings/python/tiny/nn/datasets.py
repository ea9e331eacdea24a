"""Data sets from files that are on this machine; nothing is fetched."""

import os
import pathlib

from ..methods import Dtype
from ..native import Tensor
from .._archive import load

# Where Debian's packages dataset-fashion-mnist and others put them.
_FOLDER = "/usr/share/datasets"
_FILES = ("train-images-idx3-ubyte", "train-labels-idx1-ubyte", "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte")


def _file(folder, name, package):
    for ending in ("", ".gz"):
        if (folder / (name + ending)).exists():
            return folder / (name + ending)
    raise FileNotFoundError(f"{folder / name}[.gz] is not there: nothing is fetched; {package}, or TINY_DATASETS names "
                            "the folder that has it")


def mnist(device=None, fashion=False) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """(X_train, Y_train, X_test, Y_test) of MNIST, or of Fashion-MNIST: uint8 [count, 1, 28, 28] and uint8 [count].
    The four files of the data set's own format lie in mnist/ or fashion-mnist/ of $TINY_DATASETS, or of
    /usr/share/datasets."""
    from .._creation import check_device
    check_device(device)
    name = "fashion-mnist" if fashion else "mnist"
    folder = pathlib.Path(os.environ.get("TINY_DATASETS", _FOLDER)) / name
    package = f"Debian's package dataset-{name} has it" if fashion else "put it there"
    parts = [next(iter(load(_file(folder, file, package)).values())) for file in _FILES]
    made = [part.reshape([-1, 1, 28, 28]) if i % 2 == 0 else part for i, part in enumerate(parts)]
    return tuple(one if one.dtype == Dtype.UINT8 else one.cast(Dtype.UINT8) for one in made)
