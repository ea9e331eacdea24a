"""What a run finds out before it can have a program, against onnxruntime (or the given result): which of two branches of different kinds
is taken, and positions, axes and sizes that operators must know.

    PYTHONPATH=build/release/bindings/python found_first_test.py [PATTERN]
"""

import json
import sys

import named_tests
from sized_models import BOOL, CONTEXTS, FLOAT, INT64, MANY, Both, among_many, graph_of, node, number, sent_back

try:
    import numpy as np
    import tiny
    from onnx import helper, numpy_helper
except ImportError as missing:
    print(f"skipped: this interpreter lacks {missing.name}; scripts/setup.sh makes one that has it")
    sys.exit(77)

RISES = [node("ReduceSum", ["x"], ["sum"], keepdims=0), node("Greater", ["sum", "nothing"], ["rises"])]
NOTHING = {"nothing": np.float32(0)}
SIGNS = (1.0, -1.0, 1.0, -1.0)
SIZES = ((3, 4), (3, 4), (5, 4), (7, 2))


def drawn(sign, *shape):
    return (sign * (0.1 + np.random.default_rng(len(shape)).random(shape))).astype(np.float32)


def branches(yes, no, kind=FLOAT):
    return node("If", ["rises"], ["either"], then_branch=graph_of(yes, ("yes", kind, None)), else_branch=graph_of(no, ("no", kind, None)))


SUMMED = branches([node("Relu", ["x"], ["yes"])], [node("ReduceSum", ["x"], ["no"], keepdims=0)])


def branches_of_different_ranks():
    for more, outputs in (([], [("either", FLOAT, 0)]), ([node("Mul", ["either", "x"], ["y"])], [("y", FLOAT, 2)]),
                          ([node("Shape", ["either"], ["y"])], [("y", INT64, 1)]),
                          ([node("Neg", ["either"], ["n"]), node("ReduceMax", ["n"], ["y"], keepdims=0)], [("y", FLOAT, 0)])):
        for shape in (("a", "b"), (3, 4)):
            both = Both([*RISES, SUMMED, *more], [("x", FLOAT, shape)], outputs, declares_outputs=False, **NOTHING)
            for sign, sizes in zip(SIGNS, SIZES):
                both.check(drawn(sign, *(sizes if shape == ("a", "b") else shape)))


def one_inside_of_another():
    inner = branches([node("Neg", ["x"], ["yes"])], [node("ReduceMean", ["x"], ["no"], keepdims=0)])
    inner.input[0], inner.output[0] = "is_large", "inside"
    outer = branches([inner, node("Identity", ["inside"], ["yes"])], [node("Reshape", ["x", "flat"], ["no"])])
    both = Both([*RISES, node("Greater", ["sum", "much"], ["is_large"]), outer], [("x", FLOAT, ("a", "b"))], [("either", FLOAT, 0)],
                declares_outputs=False, much=np.float32(50), flat=np.int64([-1]), **NOTHING)
    for factor in (1, -1, 40, -2, 1):
        both.check(drawn(1, 4, 5) * factor)


def branches_of_lists():
    parts = [node("SplitToSequence", ["x"], ["yes"], axis=0)]
    whole = [node("SequenceConstruct", ["x"], ["no"])]
    made = node("If", ["rises"], ["either"],
                then_branch=helper.make_graph(parts, "yes", [], [helper.make_tensor_sequence_value_info("yes", FLOAT, None)]),
                else_branch=helper.make_graph(whole, "no", [], [helper.make_tensor_sequence_value_info("no", FLOAT, None)]))
    both = Both([*RISES, made, node("ConcatFromSequence", ["either"], ["y"], axis=1), node("SequenceLength", ["either"], ["n"])],
                [("x", FLOAT, (4, 3))], [("y", FLOAT, 2), ("n", INT64, 0)], declares_outputs=False, **NOTHING)
    for sign in SIGNS:
        both.check(drawn(sign, 4, 3))


def loops_of_any_rounds():
    """Each round makes a state of another rank, or a longer list, as many times as data says."""
    grows = graph_of([node("Unsqueeze", ["v", "first"], ["w"]), node("Identity", ["c"], ["d"])], ("d", BOOL, ()), ("w", FLOAT, None),
                     inputs=[("i", INT64, ()), ("c", BOOL, ()), ("v", FLOAT, None)])
    lists = helper.make_graph([node("SequenceInsert", ["s", "x"], ["t"]), node("Identity", ["c"], ["d"])], "body",
                              [helper.make_tensor_value_info("i", INT64, ()), helper.make_tensor_value_info("c", BOOL, ()),
                               helper.make_tensor_sequence_value_info("s", FLOAT, None)],
                              [helper.make_tensor_value_info("d", BOOL, ()), helper.make_tensor_sequence_value_info("t", FLOAT, None)])
    for nodes, rank in (([node("Loop", ["k", "", "x"], ["z"], body=grows), node("Shape", ["z"], ["y"])], 1),
                        ([node("SequenceEmpty", [], ["none"]), node("Loop", ["k", "", "none"], ["all"], body=lists),
                          node("SequenceLength", ["all"], ["y"])], 0)):
        both = Both([*number("given", "k1"), node("Squeeze", ["k1", "first"], ["k"]), *nodes], [("x", FLOAT, (3, 2)), ("given", FLOAT, (MANY,))],
                    [("y", INT64, rank)], first=np.int64([0]))
        for k in (3, 1, 0, 3, 6):
            both.check(np.ones((3, 2), np.float32), among_many(k))


def loops_until_data_ends_them():
    """The same, of rounds that end themselves: after as many as there can be, or before, inside of a branch, or never."""
    ends = [node("Add", ["v", "one"], ["w"]), node("ReduceMax", ["w"], ["top"], keepdims=0), node("Less", ["top", "much"], ["d"])]
    grows = graph_of([*ends, node("Unsqueeze", ["w", "first"], ["u"])], ("d", BOOL, ()), ("u", FLOAT, None), ("top", FLOAT, ()),
                     inputs=[("i", INT64, ()), ("c", BOOL, ()), ("v", FLOAT, None)])
    lists = helper.make_graph([*ends, node("SequenceInsert", ["s", "w"], ["t"])], "body",
                              [helper.make_tensor_value_info("i", INT64, ()), helper.make_tensor_value_info("c", BOOL, ()),
                               helper.make_tensor_sequence_value_info("s", FLOAT, None), helper.make_tensor_value_info("v", FLOAT, None)],
                              [helper.make_tensor_value_info("d", BOOL, ()), helper.make_tensor_sequence_value_info("t", FLOAT, None),
                               helper.make_tensor_value_info("w", FLOAT, None)])
    listed = [node("SequenceEmpty", [], ["none"]), node("Loop", ["k", "", "none", "x"], ["all", "last"], body=lists)]
    constants = {"first": np.int64([0]), "one": np.float32(1), "much": np.float32(10)}
    for most in (6, 2**62):
        for nodes, outputs in (([node("Loop", ["k", "", "x"], ["y", "z"], body=grows)], [("y", FLOAT, 0), ("z", FLOAT, 1)]),
                               ([*listed, node("SequenceLength", ["all"], ["y"]), node("ConcatFromSequence", ["all"], ["z"], axis=0)],
                                [("y", INT64, 0), ("z", FLOAT, 2)])):
            both = Both(nodes, [("x", FLOAT, (3, 2))], outputs, declares_outputs=False, k=np.int64(most), **constants)
            for begin in (7, 9, 5, 7, 20):
                both.check(np.full((3, 2), begin, np.float32))
    both = Both([*number("given", "k1"), node("Squeeze", ["k1", "first"], ["k"]), *listed, node("SequenceLength", ["all"], ["y"])],
                [("x", FLOAT, (3, 2)), ("given", FLOAT, (MANY,))], [("y", INT64, 0)], **constants)
    for begin, k in ((7, 5), (7, 2), (9, 5), (7, 0)):
        both.check(np.full((3, 2), begin, np.float32), among_many(k))
    sent_back(both, [np.full((3, 2), -1e3, np.float32), among_many(1000)], "a loop that changes the lengths of sequences")


def what_is_drawn_before_stays():
    """The numbers that decide are those that the run goes on with."""
    drawing = [node("RandomUniform", [], ["r"], shape=[4], low=-1.0, high=1.0), node("ReduceSum", ["r"], ["sum"], keepdims=0),
               node("Greater", ["sum", "nothing"], ["rises"]), branches([node("Add", ["r", "x"], ["yes"])], [node("Neg", ["sum"], ["no"])])]
    graph = helper.make_graph(drawing, "g", [helper.make_tensor_value_info("x", FLOAT, (4,))],
                              [helper.make_empty_tensor_value_info(name) for name in ("r", "either")],
                              [numpy_helper.from_array(value, name) for name, value in NOTHING.items()])
    model = tiny.Model.load(CONTEXTS[0], helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10).SerializeToString())
    taken = set()
    for _ in range(24):
        r, either = (one.numpy() for one in model.run([np.zeros(4, np.float32)]))
        taken.add(either.shape)
        np.testing.assert_allclose(either, r if r.sum() > 0 else -r.sum(), 1e-6, 1e-6)
    assert taken == {(4,), ()}, taken


def positions_and_sizes_that_must_be_known():
    cases = {
        "one of a list": ([node("SplitToSequence", ["x"], ["s"], axis=0), node("SequenceAt", ["s", "k"], ["y"])], 2),
        "one from the end": ([node("Neg", ["k"], ["back"]), node("SplitToSequence", ["x"], ["s"], axis=1), node("SequenceAt", ["s", "back"], ["y"])], 2),
        "one less": ([node("SplitToSequence", ["x"], ["s"], axis=0), node("SequenceErase", ["s", "k"], ["t"]),
                      node("ConcatFromSequence", ["t"], ["y"], axis=0)], 2),
        "parts of a size": ([node("SplitToSequence", ["x", "k"], ["s"], axis=0), node("ConcatFromSequence", ["s"], ["y"], axis=1)], 2),
        "parts of a found axis": ([node("NonZero", ["x"], ["nz"]), node("Transpose", ["nz"], ["places"]), node("GatherND", ["x", "places"], ["v"]),
                                   node("SplitToSequence", ["v", "k"], ["s"], axis=0), node("SequenceLength", ["s"], ["y"])], 0),
        "an axis": ([node("Unsqueeze", ["k", "first"], ["k1"]), node("Mod", ["k1", "two"], ["axes"]), node("ReduceSum", ["x", "axes"], ["y"], keepdims=0)], 1),
        "a sum's axis": ([node("Mod", ["k", "two0"], ["axis"]), node("CumSum", ["x", "axis"], ["y"])], 2),
        "a new axis": ([node("Unsqueeze", ["k", "first"], ["k1"]), node("Mod", ["k1", "two"], ["axes"]), node("Unsqueeze", ["x", "axes"], ["y"])], 3),
        "smoothed": ([node("Unsqueeze", ["k", "first"], ["k1"]), node("Concat", ["ones", "k1", "k1"], ["sizes"], axis=0),
                      node("Unsqueeze", ["x", "two_axes"], ["picture"]), node("Resize", ["picture", "", "", "sizes"], ["y"], mode="linear", antialias=1)], 4),
    }
    x = np.arange(24, dtype=np.float32).reshape(6, 4) - 3
    for name, (nodes, rank) in cases.items():
        both = Both([*number("given", "k1d"), node("Squeeze", ["k1d", "first"], ["k"]), *nodes], [("x", FLOAT, (6, 4)), ("given", FLOAT, (MANY,))],
                    [("y", FLOAT if rank or "parts" not in name else INT64, rank)], declares_outputs=False, first=np.int64([0]), two=np.int64([2]),
                    two0=np.int64(2), ones=np.int64([1, 1]), two_axes=np.int64([0, 1]))
        for k in (2, 3, 1, 2):
            try:
                both.check(x, among_many(k), tolerance=1e-4)
            except Exception as error:
                raise AssertionError(f"{name}, {k}: {error}") from error


def what_ends_a_question_ends_the_run():
    both = Both([*number("given", "k"), node("Squeeze", ["k", "first"], ["k0"]), node("SplitToSequence", ["x"], ["s"], axis=0),
                 node("SequenceAt", ["s", "k0"], ["y"])], [("x", FLOAT, (3, 2)), ("given", FLOAT, (MANY,))], [("y", FLOAT, 2)],
                first=np.int64([0]))
    x = np.ones((3, 2), np.float32)
    for k in (3, -4, 2.0**62):
        sent_back(both, [x, among_many(k)], "SequenceAt")
        both.check(x, among_many(1))


def it_is_said_to_be_supported_and_compiled_for_one_branch():
    graph = helper.make_graph([*RISES, SUMMED], "g", [helper.make_tensor_value_info("x", FLOAT, (3, 4))], [helper.make_empty_tensor_value_info("either")],
                              [numpy_helper.from_array(value, name) for name, value in NOTHING.items()])
    model = tiny.Model.load(CONTEXTS[0], helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10).SerializeToString())
    assert json.loads(model.info().text())["supported"]
    for first in (False, True):  # what is made for one purpose does not serve the other
        if first:
            model.run([drawn(1, 3, 4)])
        program = model.compile()
        assert program is not None
        for sign in SIGNS:
            x = drawn(sign, 3, 4)
            got = model.run([x])
            got = got[0] if isinstance(got, (list, tuple)) else got
            np.testing.assert_allclose(got.numpy(), x if sign > 0 else x.sum(), 1e-5)


def what_a_question_needs_is_kept_for_the_next_run():
    """Places that are found and written, as many as a sum of them says."""
    counted = [node("Reshape", ["is_more", "flat"], ["f"]), node("Cast", ["f"], ["i"], to=INT64), node("ReduceSum", ["i"], ["n"]),
               node("Expand", ["nothing", "n"], ["u"])]  # fmt: skip
    both = Both([node("Greater", ["x", "nothing"], ["is_more"]), *counted, node("NonZero", ["is_more"], ["p"]), node("Transpose", ["p"], ["q"]),
                 node("ScatterND", ["x", "q", "u"], ["y"])], [("x", FLOAT, (8, 6))], [("y", FLOAT, 2)], flat=np.int64([-1]), **NOTHING)
    context = tiny.Context(threads=1)
    model = tiny.Model.load(context, both.content)
    x = tiny.from_buffer(np.random.default_rng(0).standard_normal((8, 6)).astype(np.float32), context=context)
    both.check(x.numpy())
    allocated = []
    for _ in range(10):
        model.run([x])
        allocated.append(json.loads(context.counters().text())["memory"]["allocations"])
    assert set(np.diff(allocated)) == {3}, allocated  # two answers and the output, but no run's own memory


TESTS = (branches_of_different_ranks, one_inside_of_another, branches_of_lists, loops_of_any_rounds, loops_until_data_ends_them,
         what_is_drawn_before_stays, positions_and_sizes_that_must_be_known, what_ends_a_question_ends_the_run,
         it_is_said_to_be_supported_and_compiled_for_one_branch, what_a_question_needs_is_kept_for_the_next_run)  # fmt: skip

if __name__ == "__main__":
    sys.exit(named_tests.run(TESTS))
