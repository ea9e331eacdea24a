"""What programs take of torchvision where it is not installed: CIFAR-10 from files that are there, and transforms.

Files are looked for in the folder that the program names, then in $TINY_DATASETS: cifar-10-python.tar.gz or
cifar-10-binary.tar.gz, or the folder that is in them.
"""

import importlib.abc
import importlib.machinery
import os
import pathlib
import pickle
import sys
import tarfile

import numpy
import torch

TRAIN = tuple(f"data_batch_{i}" for i in range(1, 6))
TEST = ("test_batch",)


def _from_pickle(content):
    batch = pickle.loads(content, encoding="latin1")
    return numpy.asarray(batch["data"], numpy.uint8).reshape(-1, 3072), list(batch["labels"])


def _from_binary(content):
    rows = numpy.frombuffer(content, numpy.uint8).reshape(-1, 3073)
    return rows[:, 1:], rows[:, 0].tolist()


# By archive: its folder, how a file's name ends, how a file is read.
FORMS = {"cifar-10-python.tar.gz": ("cifar-10-batches-py", "", _from_pickle),
         "cifar-10-binary.tar.gz": ("cifar-10-batches-bin", ".bin", _from_binary)}


def _read(root, names):
    """Contents of the files of a set, each pictures and labels."""
    places = [pathlib.Path(root)] + [pathlib.Path(os.environ[name]) for name in ("TINY_DATASETS",) if name in os.environ]
    for place in places:
        for archive, (folder, suffix, read) in FORMS.items():
            if (place / folder).is_dir():
                return [read((place / folder / (name + suffix)).read_bytes()) for name in names]
            if (place / archive).is_file():
                with tarfile.open(place / archive) as file:
                    return [read(file.extractfile(f"{folder}/{name}{suffix}").read()) for name in names]
    raise FileNotFoundError(f"CIFAR10: neither of {', '.join(FORMS)} is in {' or '.join(map(str, places))}; "
                            "nothing is downloaded (TINY_DATASETS=FOLDER names another place)")


class CIFAR10(torch.utils.data.Dataset):
    classes = ["airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"]

    def __init__(self, root, train=True, transform=None, target_transform=None, download=False):
        parts = _read(root, TRAIN if train else TEST)
        self.root, self.train, self.transform, self.target_transform = root, train, transform, target_transform
        self.data = numpy.concatenate([part[0] for part in parts]).reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1)
        self.targets = [label for part in parts for label in part[1]]
        self.class_to_idx = {name: i for i, name in enumerate(self.classes)}

    def __len__(self):
        return len(self.data)

    def __getitem__(self, index):
        picture, target = self.data[index], self.targets[index]
        if self.transform is not None:
            picture = self.transform(picture)
        if self.target_transform is not None:
            target = self.target_transform(target)
        return picture, target


class Compose:
    def __init__(self, transforms):
        self.transforms = transforms

    def __call__(self, picture):
        for transform in self.transforms:
            picture = transform(picture)
        return picture


class ToTensor:
    """[height, width, channels] of bytes as [channels, height, width] from 0 to 1."""

    def __call__(self, picture):
        tensor = torch.from_numpy(numpy.ascontiguousarray(numpy.asarray(picture).transpose(2, 0, 1)))
        return tensor.float().div(255) if tensor.dtype == torch.uint8 else tensor


class Normalize:
    def __init__(self, mean, std, inplace=False):
        self.mean, self.std = (torch.tensor(numbers).view(-1, 1, 1) for numbers in (mean, std))

    def __call__(self, tensor):
        return (tensor - self.mean) / self.std


MODULES = {"torchvision": {}, "torchvision.datasets": {"CIFAR10": CIFAR10},
           "torchvision.transforms": {"Compose": Compose, "ToTensor": ToTensor, "Normalize": Normalize}}


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Asked last: a torchvision that is installed is found before."""

    def find_spec(self, name, path=None, target=None):
        if name not in MODULES:
            return None
        return importlib.machinery.ModuleSpec(name, self, is_package=name == "torchvision")

    def create_module(self, spec):
        return None

    def exec_module(self, module):
        vars(module).update(MODULES[module.__name__])
        if module.__name__ == "torchvision":
            from torchvision import datasets, transforms
            module.datasets, module.transforms = datasets, transforms


def offer():
    if not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.append(_Finder())
