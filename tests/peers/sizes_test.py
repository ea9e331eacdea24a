"""Sizes that input data decides, against onnxruntime: what chooses elements, and what is computed of as many.  One
program serves all data.

    PYTHONPATH=build/release/bindings/python sizes_test.py [PATTERN]
"""

import sys

import named_tests
from sized_models import (BOOL, CONTEXTS, EXAMPLES, FLOAT, INT64, MANY, Both, among_many, as_integers, graph_of, node,
                          sent_back)

try:
    import hypothesis
    import numpy as np
    import onnxruntime
    import tiny
    from hypothesis import strategies as st
    from onnx import TensorProto, helper, numpy_helper
except ImportError as missing:
    print(f"skipped: this interpreter lacks {missing.name}; scripts/setup.sh makes one that has it")
    sys.exit(77)


def non_zero_and_what_follows():
    both = Both([node("NonZero", ["x"], ["p"]), node("Transpose", ["p"], ["t"]), node("GatherND", ["x", "t"], ["v"]),
                 node("ReduceSum", ["v"], ["s"], keepdims=0), node("Shape", ["v"], ["n"]),
                 node("Expand", ["one", "n"], ["e"]), node("Add", ["v", "e"], ["a"]),
                 node("Softmax", ["a"], ["c"], axis=0)],
                [("x", FLOAT, (None, 5))],
                [("p", INT64, 2), ("v", FLOAT, 1), ("s", FLOAT, 0), ("n", INT64, 1), ("e", FLOAT, 1), ("c", FLOAT, 1)],
                one=np.float32(1))
    rng = np.random.default_rng(1)
    for rows, share in ((4, 0.5), (4, 0), (4, 1), (9, 0.3), (9, 0.7), (1, 0.2), (300, 0.5)):
        both.check((rng.standard_normal((rows, 5)) * (rng.random((rows, 5)) < share)).astype(np.float32))


def a_number_has_no_coordinates():
    # As the standard says; onnxruntime has one row of them.
    graph = helper.make_graph([node("NonZero", ["x"], ["p"])], "g", [helper.make_tensor_value_info("x", FLOAT, [])],
                              [helper.make_tensor_value_info("p", INT64, None)])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10).SerializeToString()
    for context in CONTEXTS:
        loaded = tiny.Model.load(context, model)
        assert [loaded.run([np.array(x, np.float32)])[0].shape for x in (3, 0, -1)] == [(0, 1), (0, 0), (0, 1)]


def compress_along_axes():
    for axis, shape in ((0, (6, 3)), (1, (2, 7)), (None, (3, 4))):
        attributes = {} if axis is None else {"axis": axis}
        both = Both([node("Compress", ["x", "c"], ["y"], **attributes), node("Softmax", ["y"], ["s"], axis=-1),
                     node("MatMul", ["y", "w"], ["m"]) if axis == 0 else node("Neg", ["y"], ["m"])],
                    [("x", FLOAT, shape), ("c", BOOL, (None,))],
                    [("y", FLOAT, 1 if axis is None else 2), ("s", FLOAT, 1 if axis is None else 2),
                     ("m", FLOAT, 1 if axis is None else 2)], w=np.ones((3, 2), np.float32))
        rng = np.random.default_rng(2)
        n = 12 if axis is None else shape[axis]
        for length in (n, n - 1, 1):
            for _ in range(4):
                chosen = rng.random(length) < 0.6
                chosen[0] = True  # onnxruntime's Softmax and MatMul of nothing
                both.check(rng.standard_normal(shape).astype(np.float32), chosen)


@EXAMPLES
@hypothesis.given(st.integers(0, 2**32), st.sampled_from([0, 1, 2, None]), st.booleans())
def unique_rows(seed, axis, is_sorted):
    rng = np.random.default_rng(seed)
    shape = tuple(rng.integers(1, 6, 3).tolist())
    attributes = {"sorted": int(is_sorted)} | ({} if axis is None else {"axis": axis})
    both = Both([node("Unique", ["x"], ["y", "i", "v", "c"], **attributes), node("Gather", ["c", "v"], ["g"])],
                [("x", FLOAT, shape)],
                [("y", FLOAT, 1 if axis is None else 3), ("i", INT64, 1), ("v", INT64, 1), ("c", INT64, 1),
                 ("g", INT64, 1)])
    for levels in (1, 2, 9):
        both.check(rng.integers(0, levels, shape).astype(np.float32))


@EXAMPLES
@hypothesis.given(st.integers(0, 2**32), st.integers(1, 2), st.integers(1, 3), st.integers(1, 30), st.booleans())
def boxes_that_overlap(seed, batch, classes, n, is_centre):
    rng = np.random.default_rng(seed)
    most = int(rng.integers(0, n + 2))
    both = Both([node("NonMaxSuppression", ["b", "s", "most", "iou", "least"], ["p"], center_point_box=int(is_centre)),
                 node("Gather", ["p", "two"], ["box"], axis=1), node("Gather", ["row", "box"], ["kept"])],
                [("b", FLOAT, (batch, n, 4)), ("s", FLOAT, (batch, classes, n)), ("iou", FLOAT, (1,)),
                 ("least", FLOAT, (1,))],
                [("p", INT64, 2), ("kept", FLOAT, 1)], most=np.int64([most]), two=np.int64(2),
                row=np.arange(n, dtype=np.float32))
    for _ in range(3):
        boxes = rng.random((batch, n, 4)).astype(np.float32)
        if is_centre:
            boxes[..., 2:] *= 0.5
        both.check(boxes, rng.random((batch, classes, n)).astype(np.float32),
                   rng.random(1).astype(np.float32), (rng.random(1) * 0.7).astype(np.float32))


def boxes_of_which_few_are_looked_at():
    # So many scores that few candidates are listed, the best of many come first, and all if these do not do.
    rng = np.random.default_rng(9)
    for classes, n, most in ((20, 110, 20), (1, 2200, 20), (20, 110, 110)):
        both = Both([node("NonMaxSuppression", ["b", "s", "most", "iou", "least"], ["p"])],
                    [("b", FLOAT, (None, n, 4)), ("s", FLOAT, (None, classes, n)), ("iou", FLOAT, (1,)),
                     ("least", FLOAT, (1,))],
                    [("p", INT64, 2)], most=np.int64([most]))
        for least in (2, 0.98, 0):
            for spread, overlap in ((100, 0.5), (3, 0.5), (0.1, 0.3)):
                corner = rng.random((2, n, 2)) * spread
                boxes = np.concatenate([corner, corner + 1 + rng.random((2, n, 2))], -1).astype(np.float32)
                both.check(boxes, rng.random((2, classes, n)).astype(np.float32), np.float32([overlap]),
                           np.float32([least]))


def boxes_among_those_that_were_found():
    for n, least in ((40, ["least"]), (2000, ["least"]), (40, [])):
        both = Both([node("Greater", ["s", "half"], ["m"]), node("Compress", ["s", "m"], ["t"], axis=0),
                     node("Compress", ["b", "m"], ["c"], axis=0), node("Unsqueeze", ["c", "first"], ["boxes"]),
                     node("Unsqueeze", ["t", "two"], ["scores"]),
                     node("NonMaxSuppression", ["boxes", "scores", "most", "iou", *least], ["p"])],
                    [("b", FLOAT, (n, 4)), ("s", FLOAT, (n,))], [("p", INT64, 2)], half=np.float32(0.5),
                    first=np.int64([0]), two=np.int64([0, 1]), most=np.int64([30]), iou=np.float32([0.4]),
                    **({"least": np.float32([0.6])} if least else {}))
        rng = np.random.default_rng(10)
        for share in (0, 0.1, 1):
            corner = rng.random((n, 2)) * 5
            both.check(np.concatenate([corner, corner + rng.random((n, 2))], -1).astype(np.float32),
                       (rng.random(n) * (rng.random(n) < share)).astype(np.float32))


def how_many_boxes_is_an_input():
    both = Both([node("NonMaxSuppression", ["b", "s", "most", "iou"], ["p"])],
                [("b", FLOAT, (1, 20, 4)), ("s", FLOAT, (1, 2, 20)), ("most", INT64, (1,))], [("p", INT64, 2)],
                iou=np.float32([0.4]))
    rng = np.random.default_rng(5)
    for most in (1, 3, 100):
        both.check(rng.random((1, 20, 4)).astype(np.float32), rng.random((1, 2, 20)).astype(np.float32),
                   np.int64([most]))


def one_size_decides_the_next():
    both = Both([node("NonZero", ["x"], ["p"]), node("Squeeze", ["p", "zero"], ["q"]), node("Gather", ["x", "q"], ["v"]),
                 node("Greater", ["v", "half"], ["m"]), node("Compress", ["v", "m"], ["w"], axis=0),
                 node("Concat", ["w", "v"], ["y"], axis=0)],
                [("x", FLOAT, (40,))], [("v", FLOAT, 1), ("w", FLOAT, 1), ("y", FLOAT, 1)],
                zero=np.int64([0]), half=np.float32(0.5))
    rng = np.random.default_rng(6)
    for share in (0, 0.1, 0.5, 1):
        both.check((rng.random(40) * (rng.random(40) < share)).astype(np.float32))


def many_are_found_among_many_that_were_found():
    # Of more elements than are padded to as many as there can be.
    both = Both([node("Greater", ["x", "half"], ["m"]), node("Compress", ["x", "m"], ["v"], axis=0),
                 node("Greater", ["v", "most"], ["n"]), node("NonZero", ["n"], ["p"]), node("CumSum", ["v", "first"], ["s"])],
                [("x", FLOAT, (20000,))], [("v", FLOAT, 1), ("p", INT64, 2), ("s", FLOAT, 1)],
                half=np.float32(0.5), most=np.float32(0.9), first=np.int64(0))
    rng = np.random.default_rng(7)
    for share in (0, 0.001, 1):
        both.check((rng.random(20000) * (rng.random(20000) < share)).astype(np.float32), tolerance=1e-3)


def a_range_counts_what_was_found():
    both = Both([node("NonZero", ["x"], ["p"]), node("Shape", ["p"], ["s"]), node("Gather", ["s", "last"], ["n"]),
                 node("Range", ["zero", "n", "one"], ["y"]), node("Range", ["zero", "n", "three"], ["z"])],
                [("x", FLOAT, (30,))], [("y", INT64, 1), ("z", INT64, 1)],
                last=np.int64(1), zero=np.int64(0), one=np.int64(1), three=np.int64(3))
    rng = np.random.default_rng(8)
    for share in (0, 0.1, 1):
        both.check((rng.random(30) < share).astype(np.float32))


def how_much_was_found_is_an_output():
    both = Both([node("NonZero", ["x"], ["p"]), node("Size", ["p"], ["n"]), node("Neg", ["p"], ["q"])], [("x", FLOAT, (30,))],
                [("n", INT64, 0), ("q", INT64, 2)])
    rng = np.random.default_rng(8)
    for share in (0, 0.1, 1):
        both.check((rng.random(30) < share).astype(np.float32))


def what_was_found_is_reshaped_to_sizes_of_its_own():
    both = Both([node("NonZero", ["x"], ["p"]), node("Squeeze", ["p", "first"], ["q"]), node("Gather", ["rows", "q"], ["v"]),
                 node("Shape", ["q"], ["s"]), node("Concat", ["s", "four"], ["t"], axis=0), node("Reshape", ["v", "t"], ["y"]),
                 node("Reshape", ["v", "open"], ["flat"]), node("Reshape", ["flat", "t"], ["z"])],
                [("x", FLOAT, (30,)), ("rows", FLOAT, (30, 4))], [("y", FLOAT, 2), ("z", FLOAT, 2)],
                first=np.int64([0]), four=np.int64([4]), open=np.int64([-1]))
    rng = np.random.default_rng(9)
    for share in (0, 0.1, 1):
        both.check((rng.random(30) < share).astype(np.float32), rng.standard_normal((30, 4)).astype(np.float32))


def the_best_of_what_was_found():
    both = Both([node("NonZero", ["x"], ["p"]), node("Squeeze", ["p", "first"], ["q"]), node("Gather", ["rows", "q"], ["v"]),
                 node("Shape", ["q"], ["s"]), node("Min", ["s", "seven"], ["k"]), node("TopK", ["v", "k"], ["a", "b"], axis=0),
                 node("TopK", ["v", "s"], ["c", "d"], axis=0, largest=0), node("TopK", ["q", "k"], ["e", "f"])],
                [("x", FLOAT, (30,)), ("rows", FLOAT, (30, 4))],
                [("a", FLOAT, 2), ("b", INT64, 2), ("c", FLOAT, 2), ("d", INT64, 2), ("e", INT64, 1), ("f", INT64, 1)],
                first=np.int64([0]), seven=np.int64([7]))
    rng = np.random.default_rng(10)
    for share in (0, 0.1, 0.5, 1):
        both.check((rng.random(30) < share).astype(np.float32), rng.integers(-9, 9, (30, 4)).astype(np.float32))


def how_many_are_the_best_is_what_data_says():
    both = Both([as_integers("given", "n"), node("ReduceSum", ["n"], ["k"], keepdims=1), node("TopK", ["x", "k"], ["a", "b"], axis=1), node("Neg", ["a"], ["c"])],
                [("x", FLOAT, (3, 30)), ("given", FLOAT, (MANY,))], [("a", FLOAT, 2), ("b", INT64, 2), ("c", FLOAT, 2)])
    rng = np.random.default_rng(11)
    for k in (4, 1, 30, 0):
        both.check(rng.integers(-9, 9, (3, 30)).astype(np.float32), among_many(k))


def branches_that_find_sizes():
    """One finds elements, in it another If chooses among them; the other passes on what there is."""
    best = graph_of([node("Compress", ["v", "m"], ["best"], axis=0)], ("best", FLOAT, None))
    every = graph_of([node("Neg", ["v"], ["every"])], ("every", FLOAT, None))
    found = graph_of([node("NonZero", ["x"], ["p"]), node("Squeeze", ["p", "first"], ["q"]), node("Gather", ["x", "q"], ["v"]),
                      node("Greater", ["v", "half"], ["m"]), node("ReduceMax", ["v"], ["top"], keepdims=0),
                      node("Greater", ["top", "half"], ["is_high"]),
                      node("If", ["is_high"], ["w"], then_branch=best, else_branch=every),
                      node("ReduceSum", ["w"], ["a"], keepdims=0), node("Concat", ["w", "v"], ["b"], axis=0)],
                     ("a", FLOAT, None), ("b", FLOAT, None))
    passed = graph_of([node("Identity", ["zero"], ["c"]), node("Exp", ["x"], ["d"])], ("c", FLOAT, None), ("d", FLOAT, None))
    for size in (40, 400, 40000):
        both = Both([node("ReduceSum", ["x"], ["t"], keepdims=0), node("Greater", ["t", "three"], ["is_much"]),
                     node("If", ["is_much"], ["s", "y"], then_branch=found, else_branch=passed),
                     node("Mul", ["y", "three"], ["z"])],
                    [("x", FLOAT, (size,))], [("s", FLOAT, 0), ("y", FLOAT, 1), ("z", FLOAT, 1)],
                    first=np.int64([0]), half=np.float32(0.5), three=np.float32(3), zero=np.float32(0))
        rng = np.random.default_rng(size)
        for share, scale in ((0, 1), (0.5, 1), (0.7, 0.4), (1, 1), (0.01, 1)):
            both.check((scale * rng.random(size) * (rng.random(size) < share)).astype(np.float32), tolerance=1e-4)


def places_that_a_branch_not_taken_would_read():
    """They are out of range there: what decides a size, or what another branch needs, is computed all the same."""
    found = graph_of([node("Gather", ["x", "i"], ["g"]), node("NonZero", ["g"], ["p"]), node("Squeeze", ["p", "first"], ["q"]),
                      node("Gather", ["g", "q"], ["v"])], ("v", FLOAT, None))
    chosen = graph_of([node("Gather", ["x", "i"], ["g"]), node("ReduceSum", ["g"], ["s"], keepdims=0), node("Greater", ["s", "zero"], ["d"]),
                       node("If", ["d"], ["v"], then_branch=graph_of([node("CumSum", ["g", "first"], ["a"])], ("a", FLOAT, None)),
                            else_branch=graph_of([node("Softmax", ["g"], ["b"])], ("b", FLOAT, None)))], ("v", FLOAT, None))
    other = graph_of([node("Softmax", ["x"], ["e"])], ("e", FLOAT, None))
    rng = np.random.default_rng(13)
    for branch in (found, chosen):
        both = Both([node("ReduceSum", ["x"], ["t"], keepdims=0), node("Greater", ["t", "zero"], ["c"]),
                     node("If", ["c"], ["y"], then_branch=branch, else_branch=other)],
                    [("x", FLOAT, (400,)), ("i", INT64, (400,))], [("y", FLOAT, 1)], first=np.int64([0]), zero=np.float32(0))
        x = rng.random(400).astype(np.float32)
        both.check(x, rng.permutation(400), tolerance=1e-4)
        both.check(-x, np.full(400, 407))


def branches_of_other_sizes():
    for rows, others in ((3, 5), (5, 3), (4, 0)):
        yes = graph_of([node("MatMul", ["x", "w"], ["p"])], ("p", FLOAT, None))
        no = graph_of([node("Slice", ["x", "none", "count"], ["q"])], ("q", FLOAT, None))
        both = Both([node("If", ["c"], ["y"], then_branch=yes, else_branch=no), node("Shape", ["y"], ["s"]),
                     node("ReduceSum", ["y", "none"], ["t"], keepdims=0)],
                    [("c", BOOL, ()), ("x", FLOAT, (rows, 4))], [("y", FLOAT, 2), ("s", INT64, 1), ("t", FLOAT, 1)],
                    w=np.random.default_rng(1).standard_normal((4, 4 + others)).astype(np.float32), none=np.int64([0]),
                    count=np.int64([2]))
        x = np.random.default_rng(2).standard_normal((rows, 4)).astype(np.float32)
        for condition in (True, False):
            both.check(np.array(condition), x)


def running_sums_of_what_was_found():
    both = Both([node("NonZero", ["x"], ["p"]), node("Transpose", ["p"], ["t"]), node("GatherND", ["x", "t"], ["v"]),
                 node("CumSum", ["v", "axis"], ["a"]), node("CumSum", ["v", "axis"], ["b"], reverse=1),
                 node("CumSum", ["p", "last"], ["c"], exclusive=1, reverse=1), node("CumSum", ["p", "axis"], ["d"]),
                 node("CumSum", ["t", "axis"], ["e"], exclusive=1)],
                [("x", FLOAT, (None, 7))],
                [("v", FLOAT, 1), ("a", FLOAT, 1), ("b", FLOAT, 1), ("c", INT64, 2), ("d", INT64, 2), ("e", INT64, 2)],
                axis=np.int64(0), last=np.int64(-1))
    rng = np.random.default_rng(12)
    for rows, share in ((1, 0.2), (9, 0.5), (9, 1), (60, 0.4), (200, 0.1)):
        both.check((rng.random((rows, 7)) * (rng.random((rows, 7)) < share)).astype(np.float32), tolerance=1e-4)


def windows_pads_and_places_over_what_was_found():
    rng = np.random.default_rng(13)
    both = Both([node("Compress", ["x", "c"], ["y"], axis=0), node("Pad", ["y", "pads", "", "first"], ["padded"]),
                 node("ArgMax", ["y"], ["most"], axis=0), node("ArgMin", ["y"], ["least"], axis=0, keepdims=0, select_last_index=1),
                 node("Hardmax", ["y"], ["hard"], axis=0), node("Transpose", ["y"], ["t"]), node("Unsqueeze", ["t", "first"], ["n"]),
                 node("Conv", ["n", "filters"], ["conv"], pads=[1, 1], strides=[2]), node("Relu", ["conv"], ["relu"]),
                 node("Conv", ["relu", "more"], ["again"], pads=[2, 2], dilations=[2]),
                 node("MaxPool", ["n"], ["pool"], kernel_shape=[3], pads=[1, 1], strides=[2], ceil_mode=1),
                 node("AveragePool", ["n"], ["mean"], kernel_shape=[3], pads=[1, 1]),
                 node("Reshape", ["y", "pairs"], ["grid"]), node("GridSample", ["picture", "grid"], ["sampled"])],
                [("x", FLOAT, (40, 6)), ("c", BOOL, (40,))],
                [("padded", FLOAT, 2), ("most", INT64, 2), ("least", INT64, 1), ("hard", FLOAT, 2), ("again", FLOAT, 3),
                 ("pool", FLOAT, 3), ("mean", FLOAT, 3), ("sampled", FLOAT, 4)],
                pads=np.int64([2, 1]), first=np.int64([0]), filters=rng.standard_normal((5, 6, 3)).astype(np.float32),
                more=rng.standard_normal((4, 5, 3)).astype(np.float32), pairs=np.int64([1, -1, 3, 2]),
                picture=rng.standard_normal((1, 2, 5, 4)).astype(np.float32))
    for share in (0.1, 0.5, 1, 0.05):
        both.check(rng.integers(-3, 4, (40, 6)).astype(np.float32), np.append(rng.random(39) < share, True), tolerance=1e-4)


def steps_over_what_was_found():
    """Recurrent layers and scans of as many steps as there are, which may be none."""
    rng = np.random.default_rng(14)
    weights = {name: (rng.standard_normal(shape) / 4).astype(np.float32)
               for name, shape in (("w", (2, 20, 6)), ("r", (2, 20, 5)), ("wg", (1, 15, 6)), ("rg", (1, 15, 5)))}
    step = graph_of([node("Add", ["s", "e"], ["sum"]), node("Tanh", ["sum"], ["next"]), node("Exp", ["next"], ["row"])],
                    ("next", FLOAT, (6,)), ("row", FLOAT, (6,)), inputs=[("s", FLOAT, (6,)), ("e", FLOAT, (6,))])
    scan = node("Scan", ["zeros", "y"], ["last", "rows"], body=step, num_scan_inputs=1, scan_input_directions=[1], scan_output_directions=[1])
    found = [node("Compress", ["x", "c"], ["y"], axis=0), node("Unsqueeze", ["y", "one"], ["n"])]
    layers = [node("LSTM", ["n", "w", "r"], ["a", "ah", "ac"], hidden_size=5, direction="bidirectional"),
              node("GRU", ["n", "wg", "rg"], ["b", "bh"], hidden_size=5, direction="reverse")]
    inputs = [("x", FLOAT, (30, 6)), ("c", BOOL, (30,))]
    scanned = [("last", FLOAT, 1), ("rows", FLOAT, 2)]
    both = Both([*found, *layers, scan], inputs,
                [("a", FLOAT, 4), ("ah", FLOAT, 3), ("ac", FLOAT, 3), ("b", FLOAT, 4), ("bh", FLOAT, 3), *scanned],
                one=np.int64([1]), zeros=np.zeros(6, np.float32), **weights)
    for count in (7, 1, 30, 2):
        given = rng.standard_normal((30, 6)).astype(np.float32), rng.permutation(30) < count
        both.check(*given, tolerance=1e-4)
    for model in both.ours:  # onnxruntime's Scan takes a step at least
        y, *_, last, rows = [one.numpy() for one in model.run([given[0], np.zeros(30, bool)])]
        assert y.shape == (0, 2, 1, 5) and rows.shape == (0, 6) and not last.any(), (y.shape, rows.shape, last)


@EXAMPLES
@hypothesis.given(st.integers(0, 2**32), st.sampled_from([0, 1, None]), st.booleans())
def unique_rows_of_what_was_found(seed, axis, is_sorted):
    rng = np.random.default_rng(seed)
    shape = tuple(rng.integers(1, 9, 2).tolist())
    attributes = {"sorted": int(is_sorted)} | ({} if axis is None else {"axis": axis})
    both = Both([node("Compress", ["x", "m"], ["p"], axis=max(axis or 0, 0)), node("Unique", ["p"], ["y", "i", "v", "c"], **attributes)],
                [("x", FLOAT, shape), ("m", BOOL, (shape[axis or 0],))],
                [("y", FLOAT, 1 if axis is None else 2), ("i", INT64, 1), ("v", INT64, 1), ("c", INT64, 1)])
    for levels in (1, 2, 9):
        x = rng.integers(-levels, levels, shape).astype(np.float32)
        mask = rng.random(shape[axis or 0]) < rng.random()
        mask[rng.integers(0, mask.size)] = True  # onnxruntime ends its process where there are none
        both.check(x, mask)


def loops_that_collect_until_they_end():
    """As many rounds as data says at the most, or as the count of what was found; an axis of what is collected grows."""
    body = graph_of([node("Mul", ["v", "w"], ["u"]), node("Tanh", ["u"], ["t"]), node("Add", ["t", "v"], ["next"]),
                     node("ReduceSum", ["next"], ["sum"], keepdims=0), node("Less", ["sum", "limit"], ["again"]),
                     node("Cast", ["i"], ["at"], to=FLOAT), node("Mul", ["next", "at"], ["row"])],
                    ("again", BOOL, ()), ("next", FLOAT, (6,)), ("row", FLOAT, (6,)), ("sum", FLOAT, ()), ("at", FLOAT, ()),
                    inputs=[("i", INT64, ()), ("goes", BOOL, ()), ("v", FLOAT, None)])
    collected = [("last", FLOAT, 1), ("rows", FLOAT, 2), ("sums", FLOAT, 1), ("numbers", FLOAT, 1), ("s", INT64, 1), ("p", FLOAT, 2)]
    behind = [node("Shape", ["rows"], ["s"]), node("MatMul", ["rows", "square"], ["p"])]
    w, square = np.random.default_rng(1).random(6).astype(np.float32), np.eye(6, dtype=np.float32)
    both = Both([node("Loop", ["most", "", "x"], ["last", "rows", "sums", "numbers"], body=body), *behind],
                [("x", FLOAT, (6,)), ("limit", FLOAT, ())], collected, w=w, square=square, most=np.int64(40))
    counted = Both([node("NonZero", ["x"], ["q"]), node("Size", ["q"], ["most"]),
                    node("Loop", ["most", "", "x"], ["last", "rows", "sums", "numbers"], body=body), *behind],
                   [("x", FLOAT, (6,)), ("limit", FLOAT, ())], collected, w=w, square=square)
    rng = np.random.default_rng(3)
    for limit in (0, 5, 20, 1e9):
        for share in (0, 0.5, 1):
            x = (rng.random(6) * (rng.random(6) < share)).astype(np.float32)
            for one in (both, counted):
                one.check(x, np.array(limit, np.float32), tolerance=1e-4)


def loops_that_collect_until_data_ends_them():
    """Nothing says how many rounds there are at the most, or what says it is far too much."""
    body = graph_of([node("Mul", ["v", "half"], ["next"]), node("ReduceMax", ["next"], ["top"], keepdims=0),
                     node("Greater", ["top", "limit"], ["again"])],
                    ("again", BOOL, ()), ("next", FLOAT, (3,)), ("next", FLOAT, (3,)), ("top", FLOAT, ()),
                    inputs=[("i", INT64, ()), ("goes", BOOL, ()), ("v", FLOAT, (3,))])
    outputs = [("last", FLOAT, 1), ("rows", FLOAT, 2), ("tops", FLOAT, 1), ("p", FLOAT, 2)]
    behind = node("MatMul", ["rows", "square"], ["p"])
    constants = {"half": np.float32(0.5), "square": np.eye(3, dtype=np.float32), "yes": np.array(True), "endless": np.int64(2**63 - 1)}
    given = [("x", FLOAT, (3,)), ("limit", FLOAT, ())]
    for head in (["", "yes", "x"], ["endless", "", "x"], ["", "goes", "x"], ["counted", "goes", "x"]):
        before = [node("Equal", ["limit", "limit"], ["goes"]), node("Cast", ["x"], ["many"], to=INT64),
                  node("ReduceSum", ["many"], ["counted"], keepdims=0)]
        both = Both([*before, node("Loop", head, ["last", "rows", "tops"], body=body), behind], given, outputs, **constants)
        for limit in (100, 3, 0.01, 1e-5, 0.3):
            both.check(np.float32([3, 5, 2]), np.array(limit, np.float32))
        # Halves of a negative number stay above another: for so many rounds there is no memory.
        if head[0] != "counted":
            sent_back(both, [np.float32([-1, -1, -1]), np.array(-9, np.float32)], "Loop")


def loops_whose_rounds_differ_in_size():
    """Tokens that grow until one ends them, and rounds that choose elements: of no more than 1024 rounds each is a branch."""
    grows = graph_of([node("Gather", ["tokens", "last"], ["token"]), node("Gather", ["words", "token"], ["word"]),
                      node("MatMul", ["word", "head"], ["scores"]), node("ArgMax", ["scores"], ["next"], axis=-1),
                      node("Concat", ["tokens", "next"], ["longer"], axis=0), node("Squeeze", ["next", "zero"], ["one"]),
                      node("Equal", ["one", "end"], ["ends"]), node("Not", ["ends"], ["again"]),
                      node("ReduceMax", ["scores"], ["best"], keepdims=0)],
                     ("again", BOOL, ()), ("longer", INT64, None), ("best", FLOAT, ()),
                     inputs=[("i", INT64, ()), ("goes", BOOL, ()), ("tokens", INT64, None)])
    rng = np.random.default_rng(5)
    words, head = rng.standard_normal((20, 5)).astype(np.float32), rng.standard_normal((5, 20)).astype(np.float32)
    for most, beginnings in ((12, range(20)), (150, range(4))):
        both = Both([node("Loop", ["most", "yes", "x"], ["y", "scored"], body=grows), node("CumSum", ["y", "zero"], ["sums"]),
                     node("Size", ["y"], ["n"])], [("x", INT64, (1,))],
                    [("y", INT64, 1), ("scored", FLOAT, 1), ("sums", INT64, 1), ("n", INT64, 0)],
                    most=np.int64(most), yes=np.array(True), last=np.int64(-1), words=words, head=head,
                    end=np.int64(3), zero=np.int64([0]))
        for first in beginnings:
            both.check(np.int64([first]))
    found = graph_of([node("Greater", ["v", "half"], ["m"]), node("Compress", ["v", "m"], ["w"]), node("ReduceSum", ["w"], ["a"], keepdims=0),
                      node("Mul", ["a", "tenth"], ["b"]), node("Sub", ["v", "b"], ["next"]), node("ReduceMax", ["next"], ["top"], keepdims=0),
                      node("Greater", ["top", "half"], ["again"])],
                     ("again", BOOL, ()), ("next", FLOAT, (8,)), inputs=[("i", INT64, ()), ("goes", BOOL, ()), ("v", FLOAT, (8,))])
    both = Both([node("Loop", ["most", "", "x"], ["y"], body=found)], [("x", FLOAT, (8,)), ("most", INT64, ())], [("y", FLOAT, 1)],
                half=np.float32(0.5), tenth=np.float32(0.1))
    for most in (0, 1, 3, 9, 60):
        both.check((4 * rng.random(8)).astype(np.float32), np.array(most))


def loops_without_rounds():
    body = graph_of([node("Add", ["v", "one"], ["next"]), node("Expand", ["next", "two"], ["row"])],
                    ("goes", BOOL, ()), ("next", FLOAT, (3,)), ("row", FLOAT, (2, 3)),
                    inputs=[("i", INT64, ()), ("goes", BOOL, ()), ("v", FLOAT, (3,))])
    step = graph_of([node("Add", ["v", "e"], ["next"]), node("Expand", ["e", "two"], ["row"])],
                    ("next", FLOAT, (3,)), ("row", FLOAT, (2, 3)), inputs=[("v", FLOAT, (3,)), ("e", FLOAT, (3,))])
    x = np.random.default_rng(4).random(3).astype(np.float32)
    both = Both([node("Loop", ["none", "", "x"], ["last", "rows"], body=body)], [("x", FLOAT, (3,))],
                [("last", FLOAT, 1), ("rows", FLOAT, 3)], none=np.int64(0), one=np.float32(1), two=np.int64([2, 3]))
    both.check(x)
    # onnxruntime has no scan without rounds.
    graph = helper.make_graph([node("Scan", ["x", "y"], ["state", "steps"], body=step, num_scan_inputs=1, scan_output_axes=[1])],
                              "g", [helper.make_tensor_value_info("x", FLOAT, [3]),
                                    helper.make_tensor_value_info("y", FLOAT, [0, 3])],
                              [helper.make_tensor_value_info("state", FLOAT, None),
                               helper.make_tensor_value_info("steps", FLOAT, None)],
                              [numpy_helper.from_array(np.int64([2, 3]), "two")])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    state, steps = tiny.Model.load(CONTEXTS[0], model.SerializeToString()).run([x, np.zeros((0, 3), np.float32)])
    assert (state.numpy() == x).all() and steps.shape == (2, 0, 3), steps.shape


def a_branch_of_another_rank_is_an_error_of_a_program_for_both():
    yes = graph_of([node("Identity", ["x"], ["a"])], ("a", FLOAT, None))
    no = graph_of([node("Unsqueeze", ["x", "none"], ["p"]), node("Exp", ["p"], ["b"])], ("b", FLOAT, None))
    graph = helper.make_graph([node("ReduceSum", ["x"], ["t"], keepdims=0), node("Greater", ["t", "three"], ["c"]),
                               node("If", ["c"], ["y"], then_branch=yes, else_branch=no), node("Neg", ["y"], ["z"])], "g",
                              [helper.make_tensor_value_info("x", FLOAT, [100])],
                              [helper.make_tensor_value_info("z", FLOAT, None)],
                              [numpy_helper.from_array(np.int64([0]), "none"),
                               numpy_helper.from_array(np.float32(3), "three")])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    loaded = tiny.Model.load(CONTEXTS[0], model.SerializeToString())
    run = tiny.native.Run.create(loaded.compile())
    run.set_input(0, tiny.tensor(np.ones(100, np.float32), context=loaded.context))
    run.execute()
    assert (run.output_tensor(0).numpy() == -1).all()
    assert loaded.run([np.zeros(100, np.float32)])[0].shape == (1, 100)
    try:
        run.set_input(0, tiny.tensor(np.zeros(100, np.float32), context=loaded.context))
        run.execute()
    except tiny.Error as error:
        assert "not the rank or the type of the other's" in str(error), str(error)
    else:
        raise AssertionError("no error")


def padding_is_taken_away_and_put_back():
    """Around attention over tokens of all sequences in one row, of which onnxruntime has no kernels here."""
    rng = np.random.default_rng(7)
    size, heads = 8, 2
    w, b = (rng.standard_normal(shape).astype(np.float32) for shape in ((size, 3 * size), 3 * size))
    own = {"domain": "com.microsoft"}
    nodes = [helper.make_node("RemovePadding", ["x", "n"], ["tokens", "places", "ends", "most"], **own),
             helper.make_node("PackedAttention", ["tokens", "w", "b", "places", "ends"], ["a"], num_heads=heads, **own),
             helper.make_node("RestorePadding", ["a", "places"], ["y"], **own)]  # fmt: skip
    graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info("x", FLOAT, ["batch", "steps", size]),
                                           helper.make_tensor_value_info("n", TensorProto.INT32, ["batch"])],
                              [helper.make_tensor_value_info("y", FLOAT, None)],
                              [numpy_helper.from_array(w, "w"), numpy_helper.from_array(b, "b")])  # fmt: skip
    sets = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    model = helper.make_model(graph, opset_imports=sets, ir_version=8).SerializeToString()
    for context in CONTEXTS:
        loaded = tiny.Model.load(context, model)
        for batch, steps in ((3, 5), (2, 7), (3, 5), (1, 1)):
            x = rng.standard_normal((batch, steps, size)).astype(np.float32)
            lengths = rng.integers(1, steps + 1, batch).astype(np.int32)
            want = np.zeros_like(x)
            for i, n in enumerate(lengths):
                q, k, v = np.split(x[i, :n] @ w + b, 3, axis=-1)
                for h in np.split(np.arange(size), heads):
                    scores = np.exp(q[:, h] @ k[:, h].T / np.sqrt(len(h)))
                    want[i, :n, h] = (scores / scores.sum(-1, keepdims=True) @ v[:, h]).T
            np.testing.assert_allclose(loaded.run([x, lengths])[0].numpy(), want, 1e-4, 1e-4)


TESTS = (non_zero_and_what_follows, a_number_has_no_coordinates, compress_along_axes, unique_rows, boxes_that_overlap,
         boxes_of_which_few_are_looked_at, boxes_among_those_that_were_found, how_many_boxes_is_an_input, one_size_decides_the_next,
         many_are_found_among_many_that_were_found, how_much_was_found_is_an_output, a_range_counts_what_was_found,
         what_was_found_is_reshaped_to_sizes_of_its_own, the_best_of_what_was_found, how_many_are_the_best_is_what_data_says,
         branches_that_find_sizes, places_that_a_branch_not_taken_would_read, branches_of_other_sizes, running_sums_of_what_was_found,
         windows_pads_and_places_over_what_was_found, steps_over_what_was_found, unique_rows_of_what_was_found, loops_that_collect_until_they_end,
         loops_that_collect_until_data_ends_them, padding_is_taken_away_and_put_back,
         loops_whose_rounds_differ_in_size, loops_without_rounds, a_branch_of_another_rank_is_an_error_of_a_program_for_both)  # fmt: skip

if __name__ == "__main__":
    sys.exit(named_tests.run(TESTS))
