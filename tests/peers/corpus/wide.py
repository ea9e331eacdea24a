"""A model with float64 in the place of all narrower floats: what is right where two engines disagree."""

import copy

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, numpy_helper
from onnx.reference import ReferenceEvaluator

NARROW = {TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.BFLOAT16}


def widen_tensor(tensor):
    if tensor.data_type in NARROW:
        tensor.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(tensor).astype(np.float64), tensor.name))


def widen_type(kind):
    if kind.HasField("tensor_type") and kind.tensor_type.elem_type in NARROW:
        kind.tensor_type.elem_type = TensorProto.DOUBLE
    elif kind.HasField("sequence_type"):
        widen_type(kind.sequence_type.elem_type)
    elif kind.HasField("optional_type"):
        widen_type(kind.optional_type.elem_type)


def widen_node(node):
    for attribute in node.attribute:
        if attribute.type == onnx.AttributeProto.TENSOR:
            widen_tensor(attribute.t)
        elif attribute.type == onnx.AttributeProto.GRAPH:
            widen_graph(attribute.g)
        elif attribute.name in ("to", "dtype", "output_dtype") and attribute.i in NARROW:
            attribute.i = TensorProto.DOUBLE
        elif node.op_type == "Constant" and attribute.name in ("value_float", "value_floats"):
            values = np.float64(attribute.f if attribute.name == "value_float" else attribute.floats)
            attribute.Clear()
            attribute.name, attribute.type = "value", onnx.AttributeProto.TENSOR
            attribute.t.CopyFrom(numpy_helper.from_array(np.asarray(values)))


def widen_graph(graph):
    for tensor in graph.initializer:
        widen_tensor(tensor)
    for port in [*graph.input, *graph.output]:
        widen_type(port.type)
    del graph.value_info[:]
    for node in graph.node:
        widen_node(node)


def plain_run(model, arrays):
    """By onnxruntime's kernels without its passes over graphs."""
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    return onnxruntime.InferenceSession(model.SerializeToString(), options, ["CPUExecutionProvider"]).run(None, arrays)


def outputs(model, arrays):
    """The outputs in float64 by onnxruntime where it has such kernels, else by onnx's reference, else (of quantised models, whose
    operators know no float64) node by node in the model's own types; raises where none can."""
    wide = copy.deepcopy(model)
    widen_graph(wide.graph)
    for function in wide.functions:
        for node in function.node:
            widen_node(node)
    given = {name: array.astype(np.float64) if array.dtype.kind not in "iub" else array for name, array in arrays.items()}
    for attempt in (lambda: plain_run(wide, given), lambda: ReferenceEvaluator(wide).run(None, given)):
        try:
            return attempt()
        except Exception:
            pass
    return plain_run(exact(model), arrays)


def exact(model):
    """Without the leave to round activations to 8 bits (accuracy_level), which onnxruntime takes."""
    model = copy.deepcopy(model)
    for node in model.graph.node:
        if node.op_type == "MatMulNBits":
            kept = [attribute for attribute in node.attribute if attribute.name != "accuracy_level"]
            del node.attribute[:]
            node.attribute.extend(kept)
    return model


def rounded_outputs(model, arrays):
    """Node by node in the model's own types, each rounded, by onnx's reference; none where it cannot."""
    try:
        return [np.asarray(value) for value in ReferenceEvaluator(model).run(None, arrays)]
    except Exception:
        return []
