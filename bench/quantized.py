"""Graphs of quantised values and of narrow weights, as rows of graphs.py."""

import numpy

import timing
from graph import Graph, node, values


def codes(shape, dtype, seed):
    info = numpy.iinfo(dtype)
    return numpy.random.default_rng(seed).integers(info.min, info.max, shape).astype(dtype)


def scalar(value, dtype=numpy.float32):
    return numpy.array(value, dtype)


def bfloat16_constant(name, array):
    """The upper halves of its elements."""
    from onnx import TensorProto

    proto = TensorProto(name=name, data_type=TensorProto.BFLOAT16, dims=array.shape)
    proto.raw_data = (array.view(numpy.uint32) >> 16).astype(numpy.uint16).tobytes()
    return proto


WIDENED = {"float32": 4, "float16": 2, "bfloat16": 2, "int8": 1}  # bytes of an element


def narrow_weights(kind, m, n=4096, k=4096):
    from onnx import TensorProto

    x, w = values((m, k), 1), values((k, n), 2) * 0.125
    constants, nodes = {"w": w}, [node("Cast", ["w"], "b", to=TensorProto.FLOAT)]
    if kind == "float16":
        constants["w"] = w.astype(numpy.float16)
    if kind == "bfloat16":
        constants["w"] = bfloat16_constant("w", w)
    if kind == "int8":
        constants = {"w": codes((k, n), numpy.int8, 2), "s": scalar(0.001)}
        nodes = [node("DequantizeLinear", ["w", "s"], "b")]
    return Graph(f"matmul {m}x{n}x{k}, {kind} B", nodes + [node("MatMul", ["x", "b"], "y")],
                 {"x": x}, constants, (m, n), opset=21, limit="read",
                 # onnxruntime rounds x to 8 bits where w has them.
                 tolerance=0.02 if kind == "int8" else timing.TOLERANCE,
                 bytes=WIDENED[kind] * k * n + 4.0 * (m * k + m * n),
                 work=2.0 * m * n * k)  # fmt: skip


PARAMETERS = {"as": scalar(0.02), "az": scalar(117, numpy.uint8), "ws": scalar(0.01),
              "wz": scalar(0, numpy.int8), "ys": scalar(3.0),
              "yz": scalar(120, numpy.uint8)}  # fmt: skip


def product(name, m, n, k):
    """A product of bytes, between the operators that make them and use it."""
    a, w = codes((m, k), numpy.uint8, 1), codes((k, n), numpy.int8, 2)
    inputs, constants, output, used = {"a": a}, {"w": w}, numpy.uint8, PARAMETERS
    if name == "MatMulInteger":
        nodes, used, output = [node("MatMulInteger", ["a", "w"], "y")], {}, numpy.int32
    if name == "QLinearMatMul":
        nodes = [node(name, ["a", "as", "az", "w", "ws", "wz", "ys", "yz"], "y")]
    if name == "QDQ matmul":
        nodes = [node("DequantizeLinear", ["a", "as", "az"], "af"),
                 node("DequantizeLinear", ["w", "ws", "wz"], "wf"),
                 node("MatMul", ["af", "wf"], "yf"),
                 node("QuantizeLinear", ["yf", "ys", "yz"], "y")]  # fmt: skip
    if name == "dynamic int8 matmul":
        from onnx import TensorProto, helper

        inputs, used, output = {"a": values((m, k), 1)}, {}, numpy.float32
        quantize = helper.make_node("DynamicQuantizeLinear", ["a"], ["q", "s", "z"])
        nodes = [quantize, node("MatMulInteger", ["q", "w", "z"], "i"),
                 node("Cast", ["i"], "f", to=TensorProto.FLOAT), node("Mul", ["f", "s"], "y")]
    return Graph(f"{name} {m}x{n}x{k}", nodes, inputs, {**constants, **used}, (m, n),
                 flops=2.0 * m * n * k, dtype=output)  # fmt: skip


def convolution(channels, size):
    a = codes((1, channels, size, size), numpy.uint8, 1)
    w = codes((channels, channels, 3, 3), numpy.int8, 2)
    nodes = [node("QLinearConv", ["a", "as", "az", "w", "ws", "wz", "ys", "yz"], "y",
                  pads=[1, 1, 1, 1])]  # fmt: skip
    return Graph(f"QLinearConv 3x3 {channels} at {size}", nodes, {"a": a}, {"w": w, **PARAMETERS},
                 a.shape, flops=18.0 * channels * channels * size * size, dtype=numpy.uint8)


def graphs():
    """(name, maker) of each row."""
    for m in (1, 7):
        for kind in WIDENED:
            yield f"matmul {m}x4096x4096, {kind} B", lambda a=(kind, m): narrow_weights(*a)
    for m, n, k in ((1, 4096, 4096), (64, 4096, 4096), (64, 1024, 4096), (512, 768, 768)):
        for name in ("MatMulInteger", "QLinearMatMul", "QDQ matmul", "dynamic int8 matmul"):
            yield f"{name} {m}x{n}x{k}", lambda a=(name, m, n, k): product(*a)
    for channels, size in ((64, 56), (256, 14)):
        yield f"QLinearConv 3x3 {channels} at {size}", lambda a=(channels, size): convolution(*a)
