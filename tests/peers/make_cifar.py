"""Writes a data set in the binary format of CIFAR-10, of classes that can be learnt: pictures of a wave whose direction
and colours are its class's, moved and dimmed at random, with noise.

usage: make_cifar.py FOLDER [PICTURES]    FOLDER/cifar-10-binary.tar.gz, with so many pictures a file (10,000)
"""

import io
import pathlib
import sys
import tarfile

import numpy

CLASSES = 10


def pictures(count, random):
    """Rows of a label and 3 x 32 x 32 bytes."""
    labels = random.integers(0, CLASSES, count)
    angle = labels * (numpy.pi / CLASSES)
    y, x = numpy.mgrid[:32, :32] / 32
    along = numpy.cos(angle)[:, None, None] * x + numpy.sin(angle)[:, None, None] * y
    wave = numpy.sin(2 * numpy.pi * (3 * along + random.random(count)[:, None, None]))
    colours = numpy.random.default_rng(3).uniform(-1, 1, [CLASSES, 3, 1, 1])[labels]
    strength = random.uniform(0.4, 1, [count, 1, 1, 1])
    values = 128 + 90 * strength * colours * wave[:, None] + random.normal(0, 25, [count, 3, 32, 32])
    rows = numpy.empty([count, 3073], numpy.uint8)
    rows[:, 0] = labels
    rows[:, 1:] = values.clip(0, 255).astype(numpy.uint8).reshape(count, -1)
    return rows


def write(folder, count=10000):
    """Five files to learn from and one to test with."""
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    random = numpy.random.default_rng(7)
    with tarfile.open(folder / "cifar-10-binary.tar.gz", "w:gz", compresslevel=1) as archive:
        for name in (*(f"data_batch_{i}.bin" for i in range(1, 6)), "test_batch.bin"):
            content = pictures(count, random).tobytes()
            info = tarfile.TarInfo(f"cifar-10-batches-bin/{name}")
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))


if __name__ == "__main__":
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    write(sys.argv[1], *map(int, sys.argv[2:]))
