"""Writes the inputs that fuzzing begins with, into tests/fuzz/seeds: a few small files of every kind.

Needs the wheels of scripts/requirements.txt.  The files are committed; run this when a kind is added.
"""

import io
import json
import pathlib
import pickle
import zlib

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

SEEDS = pathlib.Path(__file__).parent / "seeds"


def put(target, name, content):
    folder = SEEDS / target
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_bytes(content)


def value(name, shape, kind=TensorProto.FLOAT):
    return helper.make_tensor_value_info(name, kind, shape)


def model(nodes, inputs, outputs, weights=(), functions=(), **more):
    graph = helper.make_graph(nodes, "g", inputs, outputs, list(weights), **more)
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("own", 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8,
                             functions=list(functions)).SerializeToString()  # fmt: skip


def models():
    node = helper.make_node
    weight = numpy_helper.from_array(np.arange(6, dtype=np.float32).reshape(2, 3), "w")
    x, y = value("x", ["N", 2]), value("y", ["N", 3])
    yield "gemm", model([node("Gemm", ["x", "w"], ["y"], alpha=0.5)], [x], [y], [weight])
    attributes = {"pads": [1, 2, 3, -4], "auto_pad": "SAME", "scale": 0.5, "scales": [1.0, 2.0],
                  "words": ["a", "b"], "value": weight}  # fmt: skip
    yield "attributes", model([node("Op", ["x"], ["y"], "name", **attributes)], [x], [y])
    branch = helper.make_graph([node("Relu", ["x"], ["inner"])], "b", [], [y])
    branch.output[0].name = "inner"
    choice = node("If", ["c"], ["y"], then_branch=branch, else_branch=branch)
    yield "if", model([choice], [x, value("c", [], TensorProto.BOOL)], [y])
    inner = node("Elu", ["a"], ["b"])
    inner.attribute.append(helper.make_attribute_ref("alpha", onnx.AttributeProto.FLOAT))
    inner.attribute[0].ref_attr_name = "k"
    own = helper.make_function("own", "Twice", ["a"], ["c"], [inner, node("Add", ["b", "b"], ["c"])],
                               [helper.make_opsetid("", 17)], attributes=["k"])  # fmt: skip
    yield "function", model([node("Twice", ["x"], ["y"], domain="own", k=2.0)], [x], [y], [], [own])
    kept = helper.make_tensor("v", TensorProto.FLOAT, [2], [1, 2])
    places = helper.make_tensor("i", TensorProto.INT64, [2], [1, 4])
    sparse = helper.make_sparse_tensor(kept, places, [6])
    yield "sparse", model([node("Neg", ["v"], ["y"])], [], [y], sparse_initializer=[sparse])
    sequence = helper.make_tensor_sequence_value_info("s", TensorProto.INT64, ["N"])
    yield "sequence", model([node("SequenceLength", ["s"], ["y"])], [sequence], [y])


def arrays():
    for kind in ("bool", "int8", "uint16", "int32", "int64", "float16", "float32", "float64"):
        yield kind, np.arange(6).reshape(2, 3).astype(kind)
    yield "scalar", np.float32(1.5)
    yield "empty", np.zeros((0, 4), np.int64)
    yield "columns", np.asfortranarray(np.arange(6, dtype=np.float32).reshape(2, 3))


def named(data, **header):
    text = json.dumps(header, ensure_ascii=False).encode()
    return len(text).to_bytes(8, "little") + text + data


def archives():
    def tensor(dtype, shape, begin, end):
        return {"dtype": dtype, "shape": shape, "data_offsets": [begin, end]}

    yield "none", named(b"")
    yield "two", named(bytes(28), w=tensor("F32", [2, 3], 4, 28), b=tensor("BOOL", [4], 0, 4))
    yield "metadata", named(b"ab", __metadata__={"format": "pt", "k": ""}, x=tensor("BF16", [], 0, 2))
    yield "others", named(bytes(4), h=tensor("F8_E4M3", [2], 0, 2), f=tensor("F4", [4], 2, 4),
                          e=tensor("I64", [0, 5], 2, 2))  # fmt: skip
    text = b'{"\\u00e9\\ud83d\\ude42\\n":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}}   '
    yield "escapes", len(text).to_bytes(8, "little") + text + b"x"


def compressed():
    rows = b"\0\0\x08\x02" + (2).to_bytes(4, "big") + (60).to_bytes(4, "big") + bytes(range(60)) * 2
    yield "rows", rows
    yield "floats", b"\0\0\x0d\x01" + (1).to_bytes(4, "big") + b"\x3f\x80\0\0"
    for name, level, strategy in (("stored", 0, zlib.Z_DEFAULT_STRATEGY), ("fixed", 6, zlib.Z_FIXED),
                                  ("dynamic", 9, zlib.Z_DEFAULT_STRATEGY), ("codes", 9, zlib.Z_HUFFMAN_ONLY)):  # fmt: skip
        packer = zlib.compressobj(level, zlib.DEFLATED, 31, 8, strategy)
        yield name, packer.compress(rows) + packer.flush()


OPTIONS = [
    "TILE r0 4; UPCAST r3",
    "TILE r0 6; UPCAST r3; TILE r1 32; TILE r4 16; UPCAST r4; VEC r5",
    "ORDER r1 r0; TILE r1 16; VEC r3; THREAD r1",
    "TILE r2 4; UNROLL r3",
    "STAGE p0 all r0 r2 pad 3; STAGE p1 r1 r2 r4 r5",
]


def pictures():
    """As Pillow writes them; the files that are committed are those of Pillow 13."""
    try:
        from PIL import Image
    except ImportError:
        return print("left out: pictures, for want of Pillow")
    y, x = np.mgrid[0:21, 0:37]
    levels = np.stack([(x * 7 + y * 3) % 256, (x * x + y * 5) % 256, (x * 3 + y * y) % 256], -1)
    whole = Image.fromarray(levels.astype("uint8"))
    kinds = {"jpeg_420": ("RGB", {"quality": 60, "subsampling": 2}), "jpeg_422": ("RGB", {"quality": 75, "subsampling": 1}),
             "jpeg_444": ("RGB", {"quality": 40, "subsampling": 0, "restart_marker_blocks": 2}),
             "jpeg_progressive": ("RGB", {"quality": 50, "progressive": True}), "jpeg_grey": ("L", {"quality": 30}),
             "png_rgb": ("RGB", {}), "png_palette": ("P", {}), "png_alpha": ("RGBA", {}), "png_bits": ("1", {}),
             "bmp_rgb": ("RGB", {}), "bmp_palette": ("P", {}), "pnm_rgb": ("RGB", {}), "pnm_bits": ("1", {})}  # fmt: skip
    for name, (mode, options) in kinds.items():
        part = whole.crop((0, 0, 13, 9)) if name in ("bmp_rgb", "pnm_rgb") else whole
        file = io.BytesIO()
        kind = name.split("_")[0]
        part.convert(mode).save(file, format="ppm" if kind == "pnm" else kind, **options)
        put("picture", name, file.getvalue())


def main():
    pictures()
    for name, content in models():
        put("model", name, content)
    for name, array in arrays():
        file = io.BytesIO()
        np.save(file, array)
        put("npy", name, file.getvalue())
        put("pb", name, numpy_helper.from_array(np.asarray(array), name).SerializeToString())
    for kind, values in (("FLOAT", [1.5, 2]), ("INT32", [3, -4]), ("INT64", [5, -6]), ("DOUBLE", [7, 8]),
                         ("UINT64", [9, 10]), ("STRING", [b"a\0b", b"c"])):  # fmt: skip
        tensor = helper.make_tensor(f"typed_{kind}", getattr(TensorProto, kind), [2], values)
        put("pb", tensor.name, tensor.SerializeToString())
    for name, content in archives():
        put("safetensors", name, content)
    for name, content in compressed():
        put("gzip", name, content)
    for protocol in (2, 3, 4, 5):
        batch = {"data": np.arange(6, dtype=np.uint8).reshape(2, 3), "labels": [1, 2, 300, -4], "name": "batch",
                 "real": np.ones(2, np.float32), "files": ["a", "b"], "none": None, "some": (1.5, True)}  # fmt: skip
        put("pickle", f"protocol{protocol}", pickle.dumps(batch, protocol))
    for i, text in enumerate(OPTIONS):
        put("options", f"list{i}", f"{text}\n".encode())


if __name__ == "__main__":
    main()
