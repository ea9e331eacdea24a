"""Makes a small network that tells how a picture is striped, and pictures to try it on.

Usage: make_stripes.py FOLDER
Writes stripes.onnx (a convolution with one filter for each direction, its energy over the picture,
softmax), labels.txt, and one noisy PNG for each direction.  Needs the packages onnx and numpy.
"""

import pathlib
import struct
import sys
import zlib

import numpy
import onnx
from onnx import TensorProto, helper, numpy_helper

SIZE = 64
DIRECTIONS = {"horizontal": (0, 1), "vertical": (1, 0), "rising": (1, 1), "falling": (1, -1)}
PERIOD = 8.0


def wave(direction, size, phase):
    """Stripes between -1 and 1 across the direction (x, y)."""
    y, x = numpy.mgrid[0:size, 0:size]
    along = (x * direction[0] + y * direction[1]) / numpy.hypot(*direction)
    return numpy.sin(2 * numpy.pi * along / PERIOD + phase)


def network():
    """Each direction has a pair of filters, a quarter of a period apart: their squares add up to
    the stripes' energy wherever the stripes begin."""
    filters = [wave(direction, 9, phase) for direction in DIRECTIONS.values()
               for phase in (0, numpy.pi / 2)]
    kernels = numpy.stack([f - f.mean() for f in filters])[:, None].repeat(3, axis=1) / (3 * 81)
    pairs = numpy.kron(numpy.eye(len(DIRECTIONS)), [[1, 1]])[:, :, None, None] * 1000
    weights = {"kernels": kernels.astype(numpy.float32), "pairs": pairs.astype(numpy.float32)}
    nodes = [helper.make_node("Conv", ["picture", "kernels"], ["response"], pads=[4, 4, 4, 4]),
             helper.make_node("Mul", ["response", "response"], ["square"]),
             helper.make_node("Conv", ["square", "pairs"], ["energy"]),
             helper.make_node("GlobalAveragePool", ["energy"], ["average"]),
             helper.make_node("Flatten", ["average"], ["scores"]),
             helper.make_node("Softmax", ["scores"], ["direction"], axis=1)]
    graph = helper.make_graph(
        nodes, "stripes",
        [helper.make_tensor_value_info("picture", TensorProto.FLOAT, ["N", 3, SIZE, SIZE])],
        [helper.make_tensor_value_info("direction", TensorProto.FLOAT, ["N", len(DIRECTIONS)])],
        [numpy_helper.from_array(value, name) for name, value in weights.items()])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.checker.check_model(model, full_check=True)
    return model


def png(pixels):
    """A PNG file of bytes [height, width, 3]."""
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    height, width, _ = pixels.shape
    rows = b"".join(b"\0" + row.tobytes() for row in pixels)
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">2I5B", width, height, 8, 2, 0, 0, 0)) +
            chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))


def main(folder):
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    onnx.save(network(), folder / "stripes.onnx")
    (folder / "labels.txt").write_text("".join(name + "\n" for name in DIRECTIONS))
    random = numpy.random.default_rng(7)
    for name, direction in DIRECTIONS.items():
        grey = 127 + 60 * wave(direction, SIZE, random.uniform(0, 6))[..., None]
        tinted = grey * random.uniform(0.7, 1.0, 3) + random.normal(0, 25, (SIZE, SIZE, 3))
        pixels = tinted.clip(0, 255).astype(numpy.uint8)
        (folder / f"{name}.png").write_bytes(png(pixels))


if __name__ == "__main__":
    if len(sys.argv) != 2:
        raise SystemExit(__doc__)
    main(sys.argv[1])
