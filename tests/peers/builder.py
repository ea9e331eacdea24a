"""A graph of ONNX nodes that grows, its weights seeded by their names."""

import math
import zlib

import numpy as np
from onnx import TensorProto, helper, numpy_helper

# A batch normalization with a scale of 0.5 to 1 weakens what passes it by about this.
NORM_GAIN = 0.76


def random_of(*names):
    """A generator that depends on nothing but the names."""
    return np.random.default_rng(zlib.crc32("/".join(names).encode()))


def he_normal(rng, shape, fan_in, gain=1.0):
    return (rng.standard_normal(shape) * gain * math.sqrt(2.0 / fan_in)).astype(np.float32)


def uniform(rng, shape, low, high):
    return rng.uniform(low, high, shape).astype(np.float32)


def small(rng, shape):
    return (rng.standard_normal(shape) * 0.1).astype(np.float32)


def port(name, kind, shape):
    return helper.make_tensor_value_info(name, kind, shape)


class Builder:
    """`prefix`: of the names that are made, which those of a body must not share with the graph around it."""

    def __init__(self, name, prefix=""):
        self.name, self.prefix = name, prefix
        self.nodes = []
        self.tensors = []
        self.count = 0

    def weight(self, label, values):
        self.tensors.append(numpy_helper.from_array(values, label))
        return label

    def constant(self, values, dtype=np.int64):
        """A weight without a name of its own."""
        self.count += 1
        return self.weight(f"{self.prefix}constant_{self.count}", np.array(values, dtype))

    def rng(self, label):
        return random_of(self.name, label)

    def op(self, kind, inputs, output=None, label=None, **attributes):
        return self.ops(kind, inputs, 1, output, label, **attributes)[0]

    def ops(self, kind, inputs, count, output=None, label=None, **attributes):
        """The names of all of a node's outputs; `output`: of the first, or a list of all."""
        self.count += 1
        label = label or f"{self.prefix}{kind}_{self.count}"
        rest = [f"{label}/out{i}" for i in range(1, count)]
        outputs = output if isinstance(output, list) else [output or f"{label}/out", *rest]
        self.nodes.append(helper.make_node(kind, inputs, outputs, name=label, **attributes))
        return outputs

    def conv_norm(self, x, label, cin, cout, kernel, stride=1, group=1):
        shape = (cout, cin // group, kernel, kernel)
        w = he_normal(self.rng(label), shape, math.prod(shape[1:]), 1 / NORM_GAIN)
        pad = kernel // 2
        y = self.op("Conv", [x, self.weight(f"{label}.weight", w)], label=label, group=group,
                    kernel_shape=[kernel, kernel], strides=[stride, stride], pads=[pad] * 4)  # fmt: skip
        rng = self.rng(f"{label}.norm")
        parts = [
            self.weight(f"{label}.norm.scale", uniform(rng, (cout,), 0.5, 1.0)),
            self.weight(f"{label}.norm.bias", small(rng, (cout,))),
            self.weight(f"{label}.norm.mean", small(rng, (cout,))),
            self.weight(f"{label}.norm.variance", uniform(rng, (cout,), 0.5, 1.5)),
        ]
        return self.op("BatchNormalization", [y, *parts], label=f"{label}.norm", epsilon=1e-5)

    def conv(self, x, label, cin, cout, kernel, stride=1, group=1, gain=1.0, pads=None):
        """A convolution with a bias; `kernel` is a size for both axes, or one for each axis."""
        kernel = [kernel] * 2 if isinstance(kernel, int) else list(kernel)
        shape = (cout, cin // group, *kernel)
        w = he_normal(self.rng(label), shape, math.prod(shape[1:]), gain)
        parts = [self.weight(f"{label}.weight", w),
                 self.weight(f"{label}.bias", small(self.rng(f"{label}.bias"), (cout,)))]  # fmt: skip
        pads = [k // 2 for k in kernel] * 2 if pads is None else pads
        return self.op("Conv", [x, *parts], label=label, group=group, kernel_shape=kernel,
                       strides=[stride] * len(kernel), pads=pads)  # fmt: skip

    def linear(self, x, label, rows, columns, gain=math.sqrt(0.5)):
        w = he_normal(self.rng(label), (rows, columns), rows, gain)
        y = self.op("MatMul", [x, self.weight(f"{label}.weight", w)], label=label)
        bias = small(self.rng(f"{label}.bias"), (columns,))
        return self.op("Add", [y, self.weight(f"{label}.bias", bias)])

    def layer_norm(self, x, label, width):
        r = self.rng(label)
        parts = [self.weight(f"{label}.scale", uniform(r, (width,), 0.5, 1.5)),
                 self.weight(f"{label}.bias", small(r, (width,)))]  # fmt: skip
        return self.op("LayerNormalization", [x, *parts], label=label, axis=-1, epsilon=1e-5)

    def graph(self, inputs, outputs):
        """What a node has as its body; of ports."""
        return helper.make_graph(self.nodes, self.name, inputs, outputs, self.tensors)

    def finished(self, inputs, outputs, opset, domains=()):
        """The model of {input: (shape, element type)} and {output: the same}; `domains` beside ONNX's, of version 1."""
        ports = [[port(name, kind, shape) for name, (shape, kind) in some.items()] for some in (inputs, outputs)]
        sets = [helper.make_opsetid("", opset), *(helper.make_opsetid(domain, 1) for domain in domains)]
        return helper.make_model(self.graph(*ports), opset_imports=sets,
                                 ir_version=8 if opset < 21 else 11, producer_name="make_models")  # fmt: skip


FLOAT, INT64 = TensorProto.FLOAT, TensorProto.INT64
