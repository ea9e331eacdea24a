"""ImageDecoder: pictures of every format that is read, bit for bit as Pillow reads them; broken, foreign and hostile ones.

    PYTHONPATH=build/release/bindings/python decoder_test.py [PATTERN]
"""

import hashlib
import pathlib
import struct
import sys
import zlib

import named_tests

try:
    import numpy as np
    import tiny
    from onnx import TensorProto, helper
except ImportError as missing:
    print(f"skipped: this interpreter lacks {missing.name}; scripts/setup.sh makes one that has it")
    sys.exit(77)

UINT8, INT64, FLOAT = TensorProto.UINT8, TensorProto.INT64, TensorProto.FLOAT
PICTURES = pathlib.Path(__file__).parent.parent / "fuzz" / "seeds" / "picture"
CONTEXT = tiny.Context(threads=1, cache=0)

# Height and width, and the first digits of SHA-256 of what Pillow 13 (libjpeg-turbo 3.2) makes of each, as RGB.
PILLOW = {
    "jpeg_420": (21, 37, "ecac2e42376dcdf5"), "jpeg_422": (21, 37, "2684bcdccd60adae"),
    "jpeg_444": (21, 37, "4c3d341d0ad45720"), "jpeg_progressive": (21, 37, "476f7be6c0fa7de3"),
    "jpeg_grey": (21, 37, "bff30287ea4faa66"), "png_rgb": (21, 37, "d9a6610871637f07"),
    "png_palette": (21, 37, "cb51ed5101c89247"), "png_alpha": (21, 37, "d9a6610871637f07"),
    "png_bits": (21, 37, "e18a91028418f487"), "bmp_rgb": (9, 13, "b58831f89750f39c"),
    "bmp_palette": (21, 37, "cb51ed5101c89247"), "pnm_rgb": (9, 13, "b58831f89750f39c"),
    "pnm_bits": (21, 37, "e18a91028418f487"),
}  # fmt: skip


def content(name):
    return (PICTURES / name).read_bytes()


def decoder(pixel_format="RGB", behind=(), outputs=(("pixels", UINT8, [None] * 3),), context=CONTEXT):
    nodes = [helper.make_node("ImageDecoder", ["file"], ["pixels"], "decode", pixel_format=pixel_format), *behind]
    graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info("file", UINT8, ["bytes"])],
                              [helper.make_tensor_value_info(*output) for output in outputs])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)
    return tiny.Model.load(context, model.SerializeToString())


def run(model, file):
    return [np.array(output.numpy()) for output in model.run([np.frombuffer(file, np.uint8)])]


def refused(model, file, *wanted):
    try:
        run(model, file)
    except tiny.Error as error:
        said = str(error)
        assert all(text in said for text in (*wanted, 'ImageDecoder "decode"')), said
        return said
    raise AssertionError(f"it was decoded: {file[:20]}")


def all_formats():
    models = {pixels: decoder(pixels) for pixels in ("RGB", "BGR", "Grayscale")}
    for name, (height, width, digest) in PILLOW.items():
        (rgb,) = run(models["RGB"], content(name))
        assert rgb.shape == (height, width, 3), (name, rgb.shape)
        assert hashlib.sha256(rgb.tobytes()).hexdigest()[:16] == digest, name
        assert (run(models["BGR"], content(name))[0] == rgb[:, :, ::-1]).all(), name
        grey = (rgb.astype(np.int64) @ [19595, 38470, 7471] + 0x8000) >> 16
        assert (run(models["Grayscale"], content(name))[0] == grey[:, :, None]).all(), name


def portable_maps():
    model = decoder()
    for text, want in (("P1 # bits\n3 2\n1 0 1\n011", [[0, 255, 0], [255, 0, 0]]), ("P1 2 1 10", [[0, 255]]),
                       ("P2 2 2 15 0 15 7 # last\n 1", [[0, 255], [119, 17]]), ("P2 2 1 65535 65535 32768", [[255, 128]])):
        (rgb,) = run(model, text.encode())
        assert (rgb == np.array(want)[:, :, None]).all(), (text, rgb)
    assert run(model, b"P3 1 2 255 1 2 3 4 5 6")[0].tolist() == [[[1, 2, 3]], [[4, 5, 6]]]
    assert run(model, b"P6 1 1 65535\n\x12\x34\xff\xff\0\0")[0].tolist() == [[[18, 255, 0]]]
    assert run(model, b"P4 9 1\n\xff\x00")[0].tolist() == [[[0] * 3] * 8 + [[255] * 3]]


def sixteen_bits():
    """The high bytes."""
    levels = (np.arange(2 * 3 * 3).reshape(2, 3, 3) * 3001).astype(">u2")
    rows = b"".join(b"\0" + row.tobytes() for row in levels)
    assert (run(decoder(), png(3, 2, rows, bits=16))[0] == levels >> 8).all()


def png(width, height, rows, bits=8, colour=2):
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", width, height, bits, colour, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows, 9)) + chunk(b"IEND", b"")


def what_follows():
    """One program for pictures of all sizes, in which the run finds how many pixels there are."""
    behind = [helper.make_node("Cast", ["pixels"], ["wide"], to=FLOAT), helper.make_node("Transpose", ["wide"], ["y"], perm=[2, 0, 1]),
              helper.make_node("ReduceMean", ["wide"], ["mean"], keepdims=0), helper.make_node("Shape", ["pixels"], ["size"])]
    model = decoder(behind=behind, outputs=(("y", FLOAT, [None] * 3), ("mean", FLOAT, []), ("size", INT64, [3])))
    plain = decoder()
    for name in PILLOW:
        y, mean, size = run(model, content(name))
        (rgb,) = run(plain, content(name))
        assert (y == rgb.transpose(2, 0, 1)).all() and size.tolist() == list(rgb.shape), name
        assert np.isclose(mean, rgb.mean(), 1e-5), name


def files_that_end_early():
    model = decoder()
    for name in PILLOW:
        file = content(name)
        for length in {0, 1, 2, 5, 20, len(file) // 4, len(file) // 2, len(file) - 40} & set(range(len(file) - 1)):
            refused(model, file[:length])
    refused(model, content("jpeg_420")[:-40], "a JPEG of", "ends early")


def a_png_is_broken():
    """Its sums tell."""
    file = bytearray(content("png_rgb"))
    file[file.index(b"IDAT") + 20] ^= 1
    refused(decoder(), bytes(file), "a PNG of", "the sum of the part")


def other_formats():
    model = decoder()
    for begin, name in ((b"RIFF\0\0\0\0WEBPVP8 ", "WebP"), (b"II*\0\x08\0", "TIFF"), (b"MM\0*\0\0", "TIFF"),
                        (b"\0\0\0\x0cjP  \r\n", "JPEG 2000"), (b"\xff\x4f\xff\x51\0", "JPEG 2000"), (b"GIF89a", "GIF")):
        refused(model, begin + bytes(40), name, "JPEG, PNG, BMP and PNM")
    refused(model, b"no picture at all", "17 bytes are no picture")


def bytes_that_changed():
    """A picture or an error; never the end of the process."""
    rng, model = np.random.default_rng(3), decoder()
    ends = {True: 0, False: 0}
    for name in PILLOW:
        file = np.frombuffer(content(name), np.uint8)
        for _ in range(40):
            other = file.copy()
            other[rng.integers(0, len(file), 3)] = rng.integers(0, 256, 3)
            try:
                run(model, other.tobytes())
                ends[True] += 1
            except tiny.Error as error:
                assert "internal error" not in str(error), error
                ends[False] += 1
    assert min(ends.values()) > 50, ends


def sizes_that_are_said():
    """Neither a size in a header nor what a stream unpacks to takes memory beyond the limit."""
    small = tiny.Context(threads=1, cache=0, memory_limit=64 << 20)
    model = decoder(context=small)
    rows = bytes(3 * 40000 + 1)
    refused(decoder(), b"P6 60000 60000 255\n" + bytes(100), "2^31 bytes")
    refused(model, png(12000, 12000, rows), "memory_limit")
    for file in (b"P6 60000 60000 255\n" + bytes(100), b"P5 65535 65535 255\n", png(60000, 60000, rows)):
        refused(model, file)
    for sides in ("65536 1", "1 70000", "0 4", "99999999999999999999 1"):
        refused(model, f"P6 {sides} 255\n".encode() + bytes(100))
    jpeg = bytearray(content("jpeg_420"))
    at = jpeg.index(b"\xff\xc0")
    jpeg[at + 5:at + 9] = struct.pack(">HH", 65500, 65500)
    refused(model, bytes(jpeg))
    # 100 MB in a picture of one pixel.
    refused(decoder(), png(1, 1, bytes(100 << 20)), "a PNG of")
    # More codes than a table has room for.
    table = bytearray(content("jpeg_420"))
    at = table.index(b"\xff\xc4")
    table[at + 5:at + 21] = bytes([200] * 16)
    refused(model, bytes(table), "3200 codes")
    # What looks like such a table in a segment of another kind is none.
    jpeg, look = content("jpeg_420"), b"\xff\xc4\x0c\x93\0" + bytes([200] * 16)
    marked = jpeg[:2] + b"\xff\xe1" + struct.pack(">H", 2 + len(look)) + look + jpeg[2:]
    assert np.array_equal(run(decoder(), marked)[0], run(decoder(), jpeg)[0])
    # As many scans as there are bytes for.
    scans = bytearray(content("jpeg_progressive"))
    at = scans.index(b"\xff\xda")
    refused(decoder(), bytes(scans[:at] + scans[at:-2] * 100), "scans")
    # What was taken was given back.
    assert run(model, content("png_rgb"))[0].shape == (21, 37, 3)


TESTS = (all_formats, portable_maps, sixteen_bits, what_follows, files_that_end_early, a_png_is_broken, other_formats, bytes_that_changed,
         sizes_that_are_said)

if __name__ == "__main__":
    sys.exit(named_tests.run(TESTS))
