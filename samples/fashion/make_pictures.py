"""Makes the pictures and labels of this folder from Fashion-MNIST's test set.

    make_pictures.py [DATA_DIR [OUT_DIR]]

DATA_DIR holds the files of Debian's package dataset-fashion-mnist.  The first picture of each class
becomes NAME.png, 28x28 and grey; line i of labels.txt has the name of class i.
"""

import gzip
import pathlib
import struct
import sys
import zlib

CLASSES = ["T-shirt", "trousers", "pullover", "dress", "coat", "sandal", "shirt", "sneaker", "bag", "ankle-boot"]
SIDE = 28


def elements(path, header):
    return gzip.decompress(path.read_bytes())[header:]


def png(pixels):
    """The bytes of a PNG file: a header, the rows with a filter byte each (0: none), an end."""
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    rows = b"".join(b"\0" + pixels[i:i + SIDE] for i in range(0, len(pixels), SIDE))
    header = struct.pack(">IIBBBBB", SIDE, SIDE, 8, 0, 0, 0, 0)
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows, 9)) +
            chunk(b"IEND", b""))


def main(data="/usr/share/datasets/fashion-mnist", out=pathlib.Path(__file__).parent):
    data, out = pathlib.Path(data), pathlib.Path(out)
    pictures = elements(data / "t10k-images-idx3-ubyte.gz", 16)
    labels = elements(data / "t10k-labels-idx1-ubyte.gz", 8)
    for number, name in enumerate(CLASSES):
        first = labels.index(number) * SIDE * SIDE
        (out / f"{name}.png").write_bytes(png(pictures[first:first + SIDE * SIDE]))
    (out / "labels.txt").write_text("".join(name + "\n" for name in CLASSES))


if __name__ == "__main__":
    main(*sys.argv[1:])
