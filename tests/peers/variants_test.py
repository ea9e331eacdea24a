"""Attributes and old versions of operators that the onnx package has no cases of, against onnxruntime.

    PYTHONPATH=build/release/bindings/python variants_test.py [PATTERN]
"""

import sys

import named_tests

try:
    import numpy as np
    import onnxruntime
    import tiny
    from onnx import TensorProto, helper, numpy_helper
except ImportError as missing:
    print(f"skipped: this interpreter lacks {missing.name}; scripts/setup.sh makes one that has it")
    sys.exit(77)

CONTEXT = tiny.Context(threads=1)
onnxruntime.set_default_logger_severity(4)
GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}
STEPS, BATCH, FEATURES, UNITS = 5, 3, 4, 6


def floats(seed, *shape):
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def check(op, given, outputs=("y",), version=21, tolerance=1e-5, want=None, **attributes):
    """One node in both engines, or against what is wanted: `given` are its inputs by name, None for one that is left out; the
    first is the graph's."""
    names = [name if array is not None else "" for name, array in given.items()]
    (first, x), *constants = [(name, array) for name, array in given.items() if array is not None]
    graph = helper.make_graph(
        [helper.make_node(op, names, outputs, **attributes)], "g",
        [helper.make_tensor_value_info(first, helper.np_dtype_to_tensor_dtype(x.dtype), x.shape)],
        [helper.make_empty_tensor_value_info(name) for name in outputs],
        [numpy_helper.from_array(array, name) for name, array in constants])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", version)], ir_version=8).SerializeToString()
    if want is None:
        want = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"]).run(None, {first: x})
    got = [out.numpy() for out in tiny.Model.load(CONTEXT, model).run([x])]
    for one, other in zip(got, want, strict=True):
        assert one.dtype == other.dtype and one.shape == other.shape, (one.shape, other.shape)
        np.testing.assert_allclose(one, other, tolerance, tolerance)


def recurrent(op, direction="forward", lengths=None, version=14, has_state=True, has_bias=True, has_peephole=False, steps=STEPS,
              **attributes):  # fmt: skip
    directions, rows = 1 + (direction == "bidirectional"), GATES[op] * UNITS
    state = lambda seed: floats(seed, directions, BATCH, UNITS) if has_state else None
    given = {"x": floats(1, steps, BATCH, FEATURES), "w": floats(2, directions, rows, FEATURES) / 2,
             "r": floats(3, directions, rows, UNITS) / 2, "b": floats(4, directions, 2 * rows) / 3 if has_bias else None,
             "lengths": None if lengths is None else np.int32(lengths), "h": state(5)}
    if op == "LSTM":
        given |= {"c": state(6), "p": floats(7, directions, 3 * UNITS) if has_peephole else None}
    check(op, given, ["y", "last", "cell"][: 3 if op == "LSTM" else 2], version, hidden_size=UNITS, direction=direction,
          **attributes)


def recurrences_have_directions_and_lengths():
    for op in GATES:
        for direction in ("forward", "reverse", "bidirectional"):
            for lengths in (None, [5, 2, 3], [1, 4, 5]):
                recurrent(op, direction, lengths)
        recurrent(op, "bidirectional", [5, 1, 2], version=7, has_state=False)
        recurrent(op, has_state=False, has_bias=False)


def recurrences_may_have_no_steps():
    """Their last state is the first; onnxruntime's GRU and RNN end its process, and its LSTM gives what was in memory."""
    for op in GATES:
        for direction in ("forward", "reverse", "bidirectional"):
            directions = 1 + (direction == "bidirectional")
            states = [floats(5, directions, BATCH, UNITS), floats(6, directions, BATCH, UNITS)][: 2 if op == "LSTM" else 1]
            recurrent(op, direction, steps=0, want=[np.zeros((0, directions, BATCH, UNITS), np.float32), *states])


def recurrences_are_clipped_and_have_other_gates():
    recurrent("GRU", "bidirectional", [4, 5, 1], linear_before_reset=1)
    recurrent("GRU", has_bias=False, linear_before_reset=1)
    recurrent("GRU", clip=0.5)
    recurrent("LSTM", "bidirectional", [3, 5, 2], has_peephole=True, clip=0.4)
    recurrent("LSTM", input_forget=1)


def functions_of_gates_take_the_numbers_that_they_have():
    recurrent("LSTM", activations=["HardSigmoid", "Softsign", "Tanh"], activation_alpha=[0.3], activation_beta=[0.4])
    recurrent("LSTM", "bidirectional", activations=["Sigmoid", "Tanh", "Relu", "HardSigmoid", "ScaledTanh", "Affine"],
              activation_alpha=[0.2, 1.5, 0.7], activation_beta=[0.5, 0.9, 0.1])
    recurrent("GRU", activations=["Sigmoid", "ThresholdedRelu"], activation_alpha=[0.2])
    recurrent("RNN", "bidirectional", activations=["Elu", "Softplus"], activation_alpha=[0.7])
    recurrent("RNN", "reverse", activations=["LeakyRelu"], activation_alpha=[0.1], clip=2.0)


def pictures_are_resized_as_old_tensorflow_did():
    # Whole sizes: onnxruntime calculates with the size that scales ask for, rounded.
    for scales in ([1, 1, 2, 3], [1, 1, 0.5, 1.5], [1, 1, 3, 0.25]):
        check("Resize", {"x": floats(1, 1, 2, 4, 8), "roi": np.zeros(0, np.float32), "scales": np.float32(scales)}, version=11,
              mode="nearest", nearest_mode="floor", coordinate_transformation_mode="tf_half_pixel_for_nn")


def the_first_pictures_that_were_resized():
    for mode in ("nearest", "linear"):
        for scales in ([1, 1, 2, 3], [1, 1, 0.5, 1.5], [1, 1, 0.6, 0.7], [1, 1, 1, 0.75], [1, 1, 1.5, 0.4]):
            check("Resize", {"x": floats(1, 1, 2, 6, 10), "scales": np.float32(scales)}, version=10, mode=mode)


def pads_repeat_the_axis_in_files_of_older_versions_too():
    # What torch writes of a circular convolution at version 18, which is older than the mode.
    for version in (13, 18, 19):
        check("Pad", {"x": floats(1, 2, 3, 7), "pads": np.int64([0, 0, 2, 0, 1, 3])}, version=version, mode="wrap")


def reductions_of_no_elements_are_what_onnxruntime_says():
    for op in ("ReduceMean", "ReduceSum", "ReduceProd", "ReduceMax", "ReduceMin", "ReduceL1", "ReduceL2", "ReduceSumSquare"):
        for dtype in (np.float32, np.float64, np.int32):
            for shape in ((0, 3), (2, 0, 3), (2, 5, 3)):
                check(op, {"x": np.ones(shape, dtype), "axes": np.int64([len(shape) - 2])}, version=18)


def integers_stay_integers():
    # onnxruntime has no Erf of integers.
    check("Shrink", {"x": np.arange(-3, 4).astype(np.int32)}, lambd=1.5, bias=0.5)
    check("Shrink", {"x": np.arange(7).astype(np.uint8)}, lambd=2.5, bias=0.75)
    graph = helper.make_graph([helper.make_node("Erf", ["x"], ["y"])], "g",
                              [helper.make_tensor_value_info("x", TensorProto.INT32, (3,))],
                              [helper.make_tensor_value_info("y", TensorProto.INT32, (3,))])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8).SerializeToString()
    [got] = [out.numpy() for out in tiny.Model.load(CONTEXT, model).run([np.int32([0, 1, -9])])]
    assert got.dtype == np.int32 and got.tolist() == [0, 0, -1], got


def open_sizes_beside_a_zero_are_those_of_any_other_size():
    """Of a batch without pictures, and texts without words; onnxruntime has no rule for them, but its fused attention."""
    for shape, asked, allow_zero, want in (
            ([0, 3, 4, 16], [0, 3, -1], 0, (0, 3, 64)), ([3, 0, 4, 16], [0, 0, -1], 0, (3, 0, 64)), ([3, 0, 64], [3, 0, -1, 16], 1, (3, 0, 4, 16)),
            ([0, 3, 64], [-1, 64], 0, (0, 64)), ([0, 3, 4], [2, -1], 0, (2, 0)), ([3, 4], [0, -1], 1, "[3, 4] cannot become [0, -1]")):
        for is_free in (False, True):
            graph = helper.make_graph([helper.make_node("Reshape", ["x", "s"], ["y"], allowzero=allow_zero)], "g",
                                      [helper.make_tensor_value_info("x", TensorProto.FLOAT, [f"n{i}" for i in range(len(shape))] if is_free else shape)],
                                      [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)], [numpy_helper.from_array(np.int64(asked), "s")])
            model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=8).SerializeToString()
            try:
                got = tiny.Model.load(CONTEXT, model).run([np.zeros(shape, np.float32)])[0].shape
            except tiny.Error as error:
                assert str(want) in str(error), str(error)
            else:
                assert got == want, (shape, asked, got)


TESTS = (open_sizes_beside_a_zero_are_those_of_any_other_size, integers_stay_integers, pads_repeat_the_axis_in_files_of_older_versions_too,
         reductions_of_no_elements_are_what_onnxruntime_says, recurrences_have_directions_and_lengths, recurrences_may_have_no_steps,
         recurrences_are_clipped_and_have_other_gates, functions_of_gates_take_the_numbers_that_they_have, the_first_pictures_that_were_resized, pictures_are_resized_as_old_tensorflow_did)  # fmt: skip

if __name__ == "__main__":
    sys.exit(named_tests.run(TESTS))
