"""Data sets from files that are on this machine; nothing is fetched.

They are looked for in $TINY_DATASETS, then in /usr/share/datasets, then where tinygrad keeps what it has fetched.
"""

import gzip
import os
import pathlib

from .._archive import load
from .._creation import check_device
from ..methods import Dtype
from ..native import Tensor
from ._tensor_io import tar_extract

# Where Debian's packages dataset-fashion-mnist and others put them.
_FOLDER = "/usr/share/datasets"
_MNIST = ("train-images-idx3-ubyte", "train-labels-idx1-ubyte", "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte")
_CIFAR = "cifar-10-batches-bin"
_PARTS = tuple(f"data_batch_{i}.bin" for i in range(1, 6))
_ROW = 1 + 3 * 32 * 32  # bytes of a label and a picture
# Under what names tinygrad keeps them: digests of where they come from.
_KEPT = {"mnist": ("e8e6ed0857e9bb000985bfea8283b0b3", "684fe191a76d9107981692e6f0d3842f",
                   "40a9ec2164c7887e8a5f1225de927907", "7b1e157ab43d54d0946f76d1bb6df574"),
         "fashion-mnist": ("d816638d5d83debc5daa005ee533cfb0", "ef6f3241a0fc8d21d97fb12e6ac896de",
                           "dba54c68981b4360510c1948d7ade037", "2b3f8f45aac5f1bb590421788878aa6e"),
         "cifar-10": ("ee7f4bc255140bb367b2dbcba231c8ba",)}


def _folders():
    return [pathlib.Path(one) for one in (os.environ.get("TINY_DATASETS"), _FOLDER) if one]


def _kept(name):
    """What tinygrad has fetched of a data set, or nothing."""
    folder = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "tinygrad" / "downloads"
    files = [folder / f"{digest}.gunzip" for digest in _KEPT[name]]
    return files if all(file.exists() for file in files) else None


def _absent(name, files, package):
    places = " or ".join(str(folder / name) for folder in _folders())
    return FileNotFoundError(f"{files} of {name} are not in {places}, and nothing is fetched: {package}, or TINY_DATASETS "
                             "names the folder that has its folder")


def _idx(path):
    """An IDX file's elements, uint8."""
    if path.suffix != ".gunzip":
        made = next(iter(load(path).values()))
        return made if made.dtype == Dtype.UINT8 else made.cast(Dtype.UINT8)
    content = path.read_bytes()  # an ending that says nothing of the format
    axes = content[3] if len(content) > 3 else 0
    if content[:3] != b"\0\0\x08" or len(content) < 4 + 4 * axes:
        raise ValueError(f"{path}: it is no IDX file of bytes")
    shape = [int.from_bytes(content[4 + 4 * i:8 + 4 * i], "big") for i in range(axes)]
    return Tensor(content[4 + 4 * axes:]).reshape(shape)


def mnist(device=None, fashion=False) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """(X_train, Y_train, X_test, Y_test) of MNIST, or of Fashion-MNIST: uint8 [count, 1, 28, 28] and uint8 [count].
    The four files of the data set's own format, .gz or not, lie in a folder mnist or fashion-mnist."""
    check_device(device)
    name = "fashion-mnist" if fashion else "mnist"
    found = None
    for folder in _folders():
        files = [next((path for path in (folder / name / file, folder / name / f"{file}.gz") if path.exists()), None)
                 for file in _MNIST]
        if found is None and all(files):
            found = files
    found = found or _kept(name)
    if found is None:
        raise _absent(name, f"{_MNIST[0]} and three more", f"Debian's package dataset-{name} has them")
    parts = [_idx(path) for path in found]
    made = (part.reshape([-1, 1, 28, 28]) if i % 2 == 0 else part for i, part in enumerate(parts))
    return tuple(part if device is None else part.to(device) for part in made)


def _cifar_files():
    """The bytes of the six files by name, as tensors."""
    names = (*_PARTS, "test_batch.bin")
    for folder in _folders():
        for place in (folder / "cifar-10", folder / "cifar-10" / _CIFAR, folder / _CIFAR):
            if all((place / name).exists() for name in names):
                return {name: Tensor((place / name).read_bytes()) for name in names}
        for path in (folder / "cifar-10" / "cifar-10-binary.tar.gz", folder / "cifar-10-binary.tar.gz"):
            if path.exists():
                with gzip.open(path) as file:
                    found = tar_extract(Tensor(file.read()))
                return {name: found[f"{_CIFAR}/{name}"] for name in names}
    kept = _kept("cifar-10")
    if kept is None:
        raise _absent("cifar-10", f"{_PARTS[0]} and the others, or cifar-10-binary.tar.gz,",
                      "its authors' page has the binary version")
    found = tar_extract(Tensor(kept[0].read_bytes()))
    return {name: found[f"{_CIFAR}/{name}"] for name in names}


def cifar(device=None) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """(X_train, Y_train, X_test, Y_test) of CIFAR-10: uint8 [count, 3, 32, 32] and uint8 [count].  The binary version's
    files lie in a folder cifar-10 or cifar-10-batches-bin, or there is its archive, cifar-10-binary.tar.gz."""
    check_device(device)
    rows = {}
    for name, content in _cifar_files().items():
        if content.shape[0] % _ROW:
            raise ValueError(f"cifar: {name} has {content.shape[0]} bytes, which are not rows of {_ROW}")
        rows[name] = content.reshape([-1, _ROW])
    train, test = Tensor.cat(*(rows[name] for name in _PARTS)), rows["test_batch.bin"]
    made = [part for one in (train, test)
            for part in (one[:, 1:].reshape([-1, 3, 32, 32]).contiguous(), one[:, 0].contiguous())]
    made[0].realize(*made[1:])
    return tuple(part if device is None else part.to(device) for part in made)
