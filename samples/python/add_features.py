"""Makes what the last layer of an ONNX model reads an output of its own, "features", for fine-tuning.

Usage: add_features.py MODEL OUT
The last layer is the last Gemm of the model.  Needs the package onnx.
"""

import sys

import onnx


def main(path, out):
    model = onnx.shape_inference.infer_shapes(onnx.load(path), data_prop=True)
    layers = [node for node in model.graph.node if node.op_type == "Gemm"]
    if not layers:
        sys.exit(f"add_features: {path} has no Gemm")
    read = layers[-1].input[0]
    types = [value.type for value in model.graph.value_info if value.name == read]
    model.graph.node.append(onnx.helper.make_node("Identity", [read], ["features"]))
    model.graph.output.append(onnx.helper.make_value_info("features", types[0]))
    onnx.checker.check_model(model)
    onnx.save(model, out)


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main(*sys.argv[1:])
