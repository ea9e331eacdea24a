"""An operation or a few as an ONNX model, with what it takes and what it costs."""

import dataclasses

import numpy

import timing

OPSET = 17


@dataclasses.dataclass
class Graph:
    name: str
    nodes: list  # of onnx.helper.make_node
    inputs: dict
    constants: dict
    output: tuple  # its shape; its name is "y"
    dtype: type = numpy.float32  # of the output
    flops: float = 0
    bytes: float = 0
    work: float = 0  # flops of what is bound by reading, too
    torch: dict = dataclasses.field(default_factory=dict)  # name: (function, precision)
    others: dict = dataclasses.field(default_factory=dict)  # name: Graph, for onnxruntime alone
    limit: str = "fma"
    opset: int = OPSET
    tolerance: float = timing.TOLERANCE  # of the results' largest magnitude

    def model(self):
        from onnx import helper, numpy_helper

        def value(name, dtype, shape):
            kind = helper.np_dtype_to_tensor_dtype(numpy.dtype(dtype))
            return helper.make_tensor_value_info(name, kind, shape)

        is_array = lambda a: isinstance(a, numpy.ndarray)  # else it is a tensor of the file's
        graph = helper.make_graph(
            self.nodes, "row", [value(n, a.dtype, a.shape) for n, a in self.inputs.items()],
            [value("y", self.dtype, self.output)],
            [numpy_helper.from_array(a, n) if is_array(a) else a
             for n, a in self.constants.items()])  # fmt: skip
        domains = [("", self.opset)] + [(n.domain, 1) for n in self.nodes if n.domain]
        return helper.make_model(graph, ir_version=8 if self.opset < 21 else 11,
                                 opset_imports=[helper.make_opsetid(*d) for d in domains])


def node(kind, inputs, output, **attributes):
    from onnx import helper

    return helper.make_node(kind, inputs, [output], **attributes)


def values(shape, seed):
    return numpy.random.default_rng(seed).uniform(-1, 1, shape).astype(numpy.float32)
