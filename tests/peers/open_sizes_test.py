"""Sizes that input data decides and that nothing bounds, operators over sizes of both kinds, and what is refused, against
onnxruntime.  One program serves all data.

    PYTHONPATH=build/release/bindings/python open_sizes_test.py [PATTERN]
"""

import json
import resource
import sys
import threading
import time

import named_tests
from sized_models import (BOOL, CONTEXTS, FLOAT, INT64, MANY, OPEN, OPEN_CONSTANTS, Both, among_many, as_integers, node, number, sent_back)

try:
    import numpy as np
    import tiny
    from onnx import TensorProto, helper, numpy_helper
except ImportError as missing:
    print(f"skipped: this interpreter lacks {missing.name}; scripts/setup.sh makes one that has it")
    sys.exit(77)


def lengths_that_nothing_bounds():
    """Durations decide how many frames there are, as in a synthesiser of speech: each symbol stands in as many."""
    rng = np.random.default_rng(15)
    frames = [as_integers("given", "d"), node("ReduceSum", ["d"], ["total"], keepdims=0), node("Range", ["zero", "total", "one"], ["p"]),
              node("CumSum", ["d", "first"], ["ends"]), node("Unsqueeze", ["p", "last"], ["column"]),
              node("GreaterOrEqual", ["column", "ends"], ["is_behind"]), node("Cast", ["is_behind"], ["behind"], to=INT64),
              node("ReduceSum", ["behind", "last"], ["symbol"], keepdims=0), node("Gather", ["x", "symbol"], ["y"])]
    path = [node("Cast", ["total"], ["limit"], to=FLOAT), node("Shape", ["y"], ["s"], end=1), node("Cast", ["s"], ["size"], to=FLOAT),
            node("Squeeze", ["size"], ["scalar"]), node("Range", ["nothing", "scalar", "unit"], ["times"]),
            node("Unsqueeze", ["times", "last"], ["t"]), node("Cast", ["ends"], ["until"], to=FLOAT), node("Less", ["t", "until"], ["below"]),
            node("Cast", ["below"], ["mask"], to=FLOAT), node("MatMul", ["mask", "x"], ["sums"])]
    decoder = [node("Add", ["y", "sums"], ["both"]), node("Transpose", ["both"], ["turned"]), node("Unsqueeze", ["turned", "first1"], ["n"]),
               node("Conv", ["n", "filters"], ["conv"], pads=[1, 1]), node("LeakyRelu", ["conv"], ["relu"]),
               node("ConvTranspose", ["relu", "up"], ["wave"], strides=[4], pads=[2, 2]), node("Tanh", ["wave"], ["sound"])]
    attention = [node("Transpose", ["y"], ["k"]), node("MatMul", ["y", "k"], ["scores"]), node("Softmax", ["scores"], ["weights"]),
                 node("MatMul", ["weights", "y"], ["mixed"]), node("CumSum", ["mixed", "first"], ["running"])]
    both = Both([*frames, *path, *decoder, *attention], [("given", FLOAT, (None,)), ("x", FLOAT, (MANY, 6))],
                [("sound", FLOAT, 3), ("running", FLOAT, 2), ("total", INT64, 0)],
                zero=np.int64(0), one=np.int64(1), first=np.int64(0), first1=np.int64([0]), last=np.int64([-1]), nothing=np.float32(0),
                unit=np.float32(1), filters=rng.standard_normal((5, 6, 3)).astype(np.float32) / 4,
                up=rng.standard_normal((5, 2, 8)).astype(np.float32) / 4)
    for durations in ([3, 1, 2], [40, 0, 9, 300], [1], [2, 2], [3, 1, 2], [900, 1]):
        both.check(among_many(*durations), rng.standard_normal((MANY, 6)).astype(np.float32), tolerance=1e-3)


def ranges_of_what_data_says():
    for kind, cases in ((INT64, ((0, 7, 2), (5, -6, -3), (0, -3, 1), (-4, 3, 1), (2, 2, 5))),
                        (FLOAT, ((0, 7, 2), (0.5, 3, 0.25), (1, -2, -0.5), (3, 1, 1)))):
        both = Both([*(node("ReduceSum", [name], [f"{name}0"], keepdims=0) for name in "abc"),
                     *(node("Cast", [f"{name}0"], [f"{name}1"], to=kind) for name in "abc"),
                     node("Range", ["a1", "b1", "c1"], ["y"]), node("Neg", ["y"], ["z"])],
                    [(name, FLOAT, (MANY,)) for name in "abc"], [("y", kind, 1), ("z", kind, 1)])
        for case in cases:
            both.check(*(among_many(number) for number in case))


def shapes_of_what_data_says():
    both = Both([as_integers("given", "n"), node("ReduceSum", ["n"], ["s"], keepdims=1), node("Concat", ["s", "two"], ["shape"], axis=0),
                 node("ConstantOfShape", ["shape"], ["zeros"]), node("Expand", ["row", "shape"], ["rows"]),
                 node("Concat", ["one", "s"], ["repeats"], axis=0), node("Tile", ["rows", "repeats"], ["tiled"]),
                 node("Add", ["zeros", "rows"], ["sum"]), node("ReduceSum", ["tiled", "one"], ["all"], keepdims=0)],
                [("given", FLOAT, (MANY,)), ("row", FLOAT, (1, 2))],
                [("sum", FLOAT, 2), ("tiled", FLOAT, 2), ("all", FLOAT, 1)], two=np.int64([2]), one=np.int64([1]))
    for count in (3, 1, 50, 7):
        both.check(among_many(count), np.float32([[1, 2.5]]))


def slices_that_end_where_data_says():
    both = Both([as_integers("given", "b"), node("ReduceSum", ["b"], ["end"], keepdims=1),
                 node("Slice", ["x", "two", "end", "first"], ["y"]), node("Slice", ["x", "zero", "end", "first"], ["z"]),
                 node("Exp", ["y"], ["m"])],
                [("given", FLOAT, (MANY,)), ("x", FLOAT, (9, 4))],
                [("y", FLOAT, 2), ("z", FLOAT, 2), ("m", FLOAT, 2)], first=np.int64([0]), zero=np.int64([0]), two=np.int64([2]))
    rng = np.random.default_rng(16)
    for end in (9, 5, 100, 2, 1, -1, -100):
        both.check(among_many(end), rng.standard_normal((9, 4)).astype(np.float32))


def operators_over_what_was_found():
    """Along an axis of as many elements as there are: of which there is a bound, and of which there is none."""
    bounded = [node("Compress", ["x", "c"], ["y"], axis=0)]
    unbounded = [node("Cast", ["c"], ["ones"], to=INT64), node("ReduceSum", ["ones"], ["count"], keepdims=0),
                 node("Range", ["none", "count", "one"], ["p"]), node("Gather", ["x", "p"], ["y"])]
    behind = [*(node("Pad", ["y", f"pads_{mode}", "", "first"], [mode], mode=mode) for mode in ("edge", "reflect", "wrap")),
              node("Unsqueeze", ["y", "one1"], ["batch"]), node("ReverseSequence", ["batch", "lengths"], ["turned"], time_axis=0, batch_axis=1),
              node("GRU", ["batch", "gates", "states"], ["steps", "state"], hidden_size=5),
              node("Split", ["y"], ["left", "right"], axis=0, num_outputs=2), node("Reshape", ["y", "picture"], ["blocks"]),
              node("DepthToSpace", ["blocks"], ["space"], blocksize=2), node("CumSum", ["y", "none"], ["sums"]),
              node("Transpose", ["y"], ["t"]), node("Unsqueeze", ["t", "first"], ["n"]),
              node("ConvTranspose", ["n", "up"], ["wide"], strides=[3], pads=[1, 1], output_padding=[1]),
              node("LayerNormalization", ["y", "scale"], ["norm"])]
    rng = np.random.default_rng(17)
    for begin in (bounded, unbounded):
        both = Both([*begin, *behind], [("x", FLOAT, (MANY, 8)), ("c", BOOL, (MANY,))],
                    [("edge", FLOAT, 2), ("reflect", FLOAT, 2), ("wrap", FLOAT, 2), ("turned", FLOAT, 3), ("left", FLOAT, 2),
                     ("right", FLOAT, 2), ("space", FLOAT, 4), ("steps", FLOAT, 4), ("state", FLOAT, 3), ("sums", FLOAT, 2), ("wide", FLOAT, 3), ("norm", FLOAT, 2)],
                    pads_edge=np.int64([5, 7]), pads_reflect=np.int64([2, 3]), pads_wrap=np.int64([2, 1]), first=np.int64([0]),
                    none=np.int64(0), one=np.int64(1), one1=np.int64([1]), lengths=np.int64([5]), picture=np.int64([-1, 8, 1, 1]),
                    up=rng.standard_normal((8, 3, 4)).astype(np.float32), scale=np.ones(8, np.float32),
                    gates=rng.standard_normal((1, 15, 8)).astype(np.float32), states=rng.standard_normal((1, 15, 5)).astype(np.float32))
        for count in (8, 5, 39, 6):
            both.check(rng.standard_normal((MANY, 8)).astype(np.float32), rng.permutation(MANY) < count, tolerance=1e-4)


def slices_that_begin_where_data_says():
    rng = np.random.default_rng(18)
    both = Both([*number("a", "b"), *number("c", "e"), node("Slice", ["x", "b", "far", "first"], ["y"]),
                 node("Slice", ["x", "b", "e", "first"], ["z"]), node("Slice", ["x", "b", "e", "first", "two"], ["s"]),
                 node("Slice", ["x", "b", "e", "first", "back"], ["r"]), node("Slice", ["x", "b", "before", "first", "back"], ["t"]),
                 node("Slice", ["x", "last", "e", "first", "back3"], ["u"]), node("Exp", ["y"], ["v"])],
                [("a", FLOAT, (MANY,)), ("c", FLOAT, (MANY,)), ("x", FLOAT, (9, 4))], [(name, FLOAT, 2) for name in "yzsrtuv"],
                first=np.int64([0]), far=np.int64([2**62]), two=np.int64([2]), back=np.int64([-1]), before=np.int64([-(2**63)]),
                last=np.int64([-1]), back3=np.int64([-3]))
    for begin, end in ((0, 9), (3, 5), (5, 3), (-4, -1), (-100, 100), (8, 9), (100, -100), (1, 8), (-9, -100), (-100, -100)):
        both.check(among_many(begin), among_many(end), rng.standard_normal((9, 4)).astype(np.float32))


def slices_backwards_from_before_the_axis():
    for begin, end in ((-100, -100), (-100, 3), (-10, -20), (0, -10), (-9, -11), (-1, -3)):
        both = Both([node("Slice", ["x", "b", "e", "axis", "step"], ["y"])], [("x", FLOAT, (9, 4))], [("y", FLOAT, 2)],
                    b=np.int64([begin]), e=np.int64([end]), axis=np.int64([0]), step=np.int64([-1]))
        both.check(np.random.default_rng(19).standard_normal((9, 4)).astype(np.float32))


def slices_of_what_was_found():
    rng = np.random.default_rng(20)
    both = Both([node("Compress", ["x", "c"], ["y"], axis=0), node("Compress", ["x", "d"], ["q"], axis=0), node("Shape", ["q"], ["s"], end=1),
                 node("Neg", ["s"], ["n"]), node("Slice", ["y", "s", "far", "first"], ["behind"]), node("Slice", ["y", "n", "far", "first"], ["least"]),
                 node("Slice", ["y", "three", "far", "first"], ["last"]), node("Slice", ["y", "first", "s", "first"], ["head"])],
                [("x", FLOAT, (40, 3)), ("c", BOOL, (40,)), ("d", BOOL, (40,))],
                [(name, FLOAT, 2) for name in ("behind", "least", "last", "head")],
                first=np.int64([0]), far=np.int64([2**62]), three=np.int64([-3]))
    for count, other in ((10, 3), (3, 10), (40, 40), (2, 1), (1, 0), (40, 7)):
        both.check(rng.standard_normal((40, 3)).astype(np.float32), rng.permutation(40) < count, rng.permutation(40) < other)
    both = Both([*number("a", "n"), *number("b", "from"), *number("c", "to"), node("Squeeze", ["n"], ["count"]),
                 node("Range", ["zero", "count", "one"], ["r"]), node("Slice", ["r", "from", "to", "first"], ["t"]),
                 node("Slice", ["r", "from", "far", "first"], ["u"]), node("Slice", ["r", "three", "far", "first"], ["v"]),
                 node("Slice", ["r", "to", "from", "first", "back"], ["w"])],
                [(name, FLOAT, (MANY,)) for name in "abc"], [(name, INT64, 1) for name in "tuvw"],
                first=np.int64([0]), far=np.int64([2**62]), three=np.int64([-3]), zero=np.int64(0), one=np.int64(1), back=np.int64([-2]))
    for numbers in ((10, 3, 7), (1000, -7, 999), (2, 1, 2), (5, 0, 50), (100, 20, 60), (0, 0, 0)):
        both.check(*(among_many(one) for one in numbers))


def splits_as_data_says():
    rng = np.random.default_rng(21)
    both = Both([*number("a", "p"), *number("b", "q"), *number("c", "r"), node("Concat", ["p", "q", "r"], ["s"], axis=0),
                 node("Split", ["x", "s"], ["u", "v", "w"], axis=0, name="parts"), node("Exp", ["v"], ["m"])],
                [*((name, FLOAT, (MANY,)) for name in "abc"), ("x", FLOAT, (9, 4))], [(name, FLOAT, 2) for name in "uvwm"])
    x = rng.standard_normal((9, 4)).astype(np.float32)
    for sizes in ((3, 3, 3), (0, 9, 0), (9, 0, 0), (1, 2, 6)):
        both.check(*(among_many(one) for one in sizes), x)
    for sizes in ((3, 3, 4), (3, 3, 2), (-1, 5, 5), (10, 0, -1)):
        sent_back(both, [*(among_many(one) for one in sizes), x], 'the size "#parts')
    both = Both([node("Compress", ["x", "c"], ["y"], axis=0), node("Split", ["y"], ["u", "v", "w", "t"], axis=0, num_outputs=4)],
                [("x", FLOAT, (40, 3)), ("c", BOOL, (40,))], [(name, FLOAT, 2) for name in "uvwt"])
    for count in (4, 8, 7, 40, 39, 10, 13):
        both.check(rng.standard_normal((40, 3)).astype(np.float32), rng.permutation(40) < count)


def reshapes_as_data_says():
    rng = np.random.default_rng(22)
    inputs = [("a", FLOAT, (MANY,)), ("b", FLOAT, (MANY,)), ("x", FLOAT, (6, 4))]
    asked = [*number("a", "p"), *number("b", "q"), node("Concat", ["p", "q"], ["s"], axis=0)]
    both = Both([*asked, node("Reshape", ["x", "s"], ["y"]), node("Concat", ["p", "rest"], ["s2"], axis=0), node("Reshape", ["x", "s2"], ["z"]),
                 node("Concat", ["s", "rest"], ["s3"], axis=0), node("Reshape", ["x", "s3"], ["w"]),
                 node("Concat", ["rest", "p"], ["s4"], axis=0), node("Reshape", ["x", "s4"], ["v"]), node("Softmax", ["v"], ["m"])],
                inputs, [("y", FLOAT, 2), ("z", FLOAT, 2), ("w", FLOAT, 3), ("m", FLOAT, 2)], rest=np.int64([-1]))
    x = rng.standard_normal((6, 4)).astype(np.float32)
    for sizes in ((6, 4), (4, 6), (2, 12), (24, 1), (1, 24)):
        both.check(*(among_many(one) for one in sizes), x)
    both = Both([*asked, node("Reshape", ["x", "s"], ["y"], name="shaped")], inputs, [("y", FLOAT, 2)])
    for sizes in ((-1, 4), (0, 4), (0, 0), (0, -1), (8, -1), (-1, 1)):
        both.check(*(among_many(one) for one in sizes), x)
    for sizes in ((5, 5), (-1, -1), (-1, 5), (7, -1)):
        sent_back(both, [*(among_many(one) for one in sizes), x], 'the size "#shaped" is -1: what data says does not fit')
    # Beside a size of 0 others may be any.
    both = Both([*asked, node("Reshape", ["x", "s"], ["y"], allowzero=1, name="shaped")], [*inputs[:2], ("x", FLOAT, (0, 4))], [("y", FLOAT, 2)])
    for sizes in ((5, 0), (0, 7), (0, 0)):
        both.check(*(among_many(one) for one in sizes), np.zeros((0, 4), np.float32))
    sent_back(both, [among_many(5), among_many(1), np.zeros((0, 4), np.float32)], 'the size "#shaped" is -1: what data says does not fit')
    both = Both([*number("a", "n"), node("Squeeze", ["n"], ["count"]), node("Range", ["zero", "count", "one"], ["r"]),
                 node("Reshape", ["r", "blocks"], ["b"], name="blocks"), node("Compress", ["x", "c"], ["y"], axis=0), node("Reshape", ["y", "rows"], ["z"])],
                [("a", FLOAT, (MANY,)), ("x", FLOAT, (40, 3)), ("c", BOOL, (40,))], [("b", INT64, 3), ("z", FLOAT, 2)],
                zero=np.int64(0), one=np.int64(1), blocks=np.int64([-1, 2, 2]), rows=np.int64([2, -1]))
    for count, chosen in ((8, 4), (400, 40), (4, 2), (0, 6)):
        both.check(among_many(count), rng.standard_normal((40, 3)).astype(np.float32), rng.permutation(40) < chosen)
    sent_back(both, [among_many(9), np.zeros((40, 3), np.float32), np.arange(40) < 2], 'the size "#blocks" is -1')


def the_best_of_what_nothing_bounds():
    rng = np.random.default_rng(31)
    for kind in (FLOAT, INT64):
        for largest in (0, 1):
            both = Both([*OPEN, node("Cast", ["y"], ["c"], to=kind), node("TopK", ["c", "k"], ["best", "places"], axis=0, largest=largest),
                         node("TopK", ["c", "total1"], ["all", "order"], axis=0, largest=largest),
                         node("Unsqueeze", ["total", "first"], ["total1"])],
                        [("given", FLOAT, (MANY,)), ("x", FLOAT, (MANY, 3))],
                        [("best", kind, 2), ("places", INT64, 2), ("all", kind, 2), ("order", INT64, 2)],
                        k=np.int64([4]), first=np.int64([0]), **OPEN_CONSTANTS)
            for count in (4, 5, 69, 700, 33):
                x = rng.standard_normal((MANY, 3)).astype(np.float32) * 5
                x[rng.integers(0, MANY, 9)] = np.float32([np.inf, -np.inf, -0.0]) if kind == FLOAT else 2
                both.check(among_many(count), x)
    sent_back(both, [among_many(3), np.zeros((MANY, 3), np.float32)], "")


def unique_rows_that_nothing_bounds():
    rng = np.random.default_rng(32)
    for axis in (None, 0):
        for is_sorted in (0, 1):
            attributes = {} if axis is None else {"axis": axis}
            both = Both([*OPEN, node("Unique", ["y"], ["u", "first", "inverse", "counts"], sorted=is_sorted, **attributes)],
                        [("given", FLOAT, (MANY,)), ("x", FLOAT, (MANY, 2))],
                        [("u", FLOAT, 2 if axis == 0 else 1), ("first", INT64, 1), ("inverse", INT64, 1), ("counts", INT64, 1)], **OPEN_CONSTANTS)
            for count in (1, 2, 50, 140, 3):
                both.check(among_many(count), rng.integers(-2, 2, (MANY, 2)).astype(np.float32))


def boxes_that_nothing_bounds():
    rng = np.random.default_rng(33)
    for most in (np.int64([3]), np.int64([1000])):
        both = Both([*OPEN, node("Unsqueeze", ["y", "first"], ["boxes"]), node("Gather", ["s", "place"], ["t"]),
                     node("Transpose", ["t"], ["u"]), node("Unsqueeze", ["u", "first"], ["scores"]),
                     node("NonMaxSuppression", ["boxes", "scores", "most", "overlap", "least"], ["taken"])],
                    [("given", FLOAT, (MANY,)), ("x", FLOAT, (MANY, 4)), ("s", FLOAT, (MANY, 2))], [("taken", INT64, 2)],
                    first=np.int64([0]), most=most, overlap=np.float32([0.4]), least=np.float32([0.2]), **OPEN_CONSTANTS)
        for count in (1, 30, MANY, 7):
            corner = rng.random((MANY, 2)).astype(np.float32)
            both.check(among_many(count), np.concatenate([corner, corner + rng.random((MANY, 2)).astype(np.float32)], 1),
                       rng.permutation(2 * MANY).reshape(MANY, 2).astype(np.float32) / MANY)


def numbers_drawn_as_many_as_were_found():
    draws = [node("RandomNormalLike", ["y"], ["n"], mean=2.0, scale=3.0), node("RandomUniformLike", ["y"], ["u"], low=-1.0, high=3.0),
             node("Cast", ["y"], ["h"], to=TensorProto.FLOAT16), node("RandomUniformLike", ["h"], ["half"]),
             node("Sigmoid", ["y"], ["share"]), node("Bernoulli", ["share"], ["b"]), node("Dropout", ["y", "ratio", "trains"], ["dropped"]),
             node("Unsqueeze", ["y", "first"], ["one_of"]), node("Tile", ["one_of", "times"], ["of"]), node("RandomNormalLike", ["of"], ["more"])]
    outputs = [("n", FLOAT, 2), ("u", FLOAT, 2), ("half", TensorProto.FLOAT16, 2), ("b", FLOAT, 2), ("dropped", FLOAT, 2), ("more", FLOAT, 3)]
    chosen = [node("Compress", ["x", "given_bool"], ["y"], axis=0), node("Cast", ["given"], ["given_bool"], to=BOOL)]
    for begin, counts in ((OPEN, (700, 61, 1)), (chosen[::-1], (70, 61, 1))):
        both = Both([*begin, *draws], [("given", FLOAT, (MANY,)), ("x", FLOAT, (MANY, 3))], outputs,
                    ratio=np.float32(0.25), trains=np.bool_(True), first=np.int64([0]), times=np.int64([300, 1, 1]), **OPEN_CONSTANTS)
        for count in counts:
            given = among_many(count) if begin is OPEN else np.float32([1] * count + [0] * (MANY - count))
            for model in both.ours:
                x = np.zeros((MANY, 3), np.float32)
                n, u, half, b, _, more = (np.array(one.numpy()) for one in model.run([given, x]))
                assert n.shape == u.shape == half.shape == b.shape == (count, 3), (n.shape, count)
                assert np.isfinite(n).all() and (u >= -1).all() and (u < 3).all() and (half >= 0).all() and (half < 1).all()
                assert set(np.unique(b)) <= {0, 1}
                assert more.shape == (300, count, 3) and abs(more.mean()) < 0.2 and abs(more.std() - 1) < 0.2
                if count > 600:
                    assert abs(n.mean() - 2) < 0.3 and abs(n.std() - 3) < 0.3 and abs(u.mean() - 1) < 0.15 and abs(b.mean() - 0.5) < 0.05
                    assert abs(half.mean() - 0.5) < 0.05 and len(np.unique(u)) > 2000
                    again = np.array(model.run([given, x])[0].numpy())
                    assert (again != n).any()


def pads_crops_windows_and_depths_that_data_says():
    """Amounts that are sizes of what was found, of both kinds, and that are data alone; below 0 they take away."""
    rng = np.random.default_rng(19)
    bounded = [node("Compress", ["x", "c"], ["y"], axis=0)]
    unbounded = [node("Cast", ["c"], ["ones"], to=INT64), node("ReduceSum", ["ones"], ["many"], keepdims=0),
                 node("Range", ["none", "many", "one"], ["p"]), node("Gather", ["x", "p"], ["y"])]
    sizes = [node("Shape", ["y"], ["count1"], end=1), node("Squeeze", ["count1", "none1"], ["count"]), node("Sub", ["twelve1", "count1"], ["rest"]),
             *number("a", "before"), *number("b", "after")]
    pads = [node("Concat", ["none1", "rest"], ["filled"], axis=0), node("Pad", ["y", "filled", "half", "none1"], ["twelve"]),
            node("Concat", ["before", "after"], ["both"], axis=0),
            *(node("Pad", ["y", "both", "half" if mode == "constant" else "", "none1"], [mode], mode=mode) for mode in ("constant", "edge", "reflect", "wrap")),
            node("Concat", ["before", "none1", "after", "one1"], ["all"], axis=0), node("Pad", ["given", "all"], ["wide"])]
    others = [node("CenterCropPad", ["y", "six1"], ["six"], axes=[0]), node("CenterCropPad", ["given", "count1"], ["crop"], axes=[0]),
              node("BlackmanWindow", ["count"], ["window"]), node("HannWindow", ["count"], ["hann"], periodic=0),
              node("ArgMax", ["y"], ["most"], axis=0, keepdims=0), node("OneHot", ["most", "count", "off_on"], ["hot"])]
    for begin in (bounded, unbounded):
        model = Both([*begin, *sizes, *pads, *others],
                     [("x", FLOAT, (MANY, 4)), ("c", BOOL, (MANY,)), ("a", FLOAT, (MANY,)), ("b", FLOAT, (MANY,)), ("given", FLOAT, (9, 5))],
                     [(name, FLOAT, 2) for name in ("twelve", "constant", "edge", "reflect", "wrap", "wide", "six", "crop", "hot")]
                     + [("window", FLOAT, 1), ("hann", FLOAT, 1)],
                     none=np.int64(0), one=np.int64(1), none1=np.int64([0]), one1=np.int64([1]), six1=np.int64([6]), twelve1=np.int64([12]),
                     half=np.float32(0.5), off_on=np.float32([0.25, 2]))
        for count, before, after in ((5, 2, 3), (12, 0, 0), (20, 4, -3), (7, -1, 4), (3, 1, 2), (9, 0, -8)):
            model.check(rng.standard_normal((MANY, 4)).astype(np.float32), rng.permutation(MANY) < count, among_many(before), among_many(after),
                        rng.standard_normal((9, 5)).astype(np.float32))


def windows_without_pads_over_what_was_found():
    rng = np.random.default_rng(20)
    bounded = [node("Compress", ["x", "c"], ["y"], axis=0)]
    unbounded = [node("Cast", ["c"], ["ones"], to=INT64), node("ReduceSum", ["ones"], ["many"], keepdims=0),
                 node("Range", ["none", "many", "one"], ["p"]), node("Gather", ["x", "p"], ["y"])]
    windows = [node("Transpose", ["y"], ["t"]), node("Unsqueeze", ["t", "none1"], ["n"]), node("MaxPool", ["n"], ["most"], kernel_shape=[3], strides=[2]),
               node("MaxPool", ["n"], ["up"], kernel_shape=[2], strides=[3], ceil_mode=1), node("AveragePool", ["n"], ["mean"], kernel_shape=[4]),
               node("Conv", ["n", "filters"], ["conv"], strides=[2]), node("Conv", ["conv", "deep"], ["again"], group=5),
               node("STFT", ["t", "two", "", "four"], ["spectrum"])]
    for begin in (bounded, unbounded):
        both = Both([*begin, *windows], [("x", FLOAT, (MANY, 6)), ("c", BOOL, (MANY,))],
                    [(name, FLOAT, 3) for name in ("most", "up", "mean", "again")] + [("spectrum", FLOAT, 4)],
                    none=np.int64(0), one=np.int64(1), none1=np.int64([0]), two=np.int64(2), four=np.int64(4),
                    filters=rng.standard_normal((5, 6, 3)).astype(np.float32), deep=rng.standard_normal((5, 1, 2)).astype(np.float32))
        for count in (5, 6, 39, 70, 8, 13):
            both.check(rng.standard_normal((MANY, 6)).astype(np.float32), rng.permutation(MANY) < count, tolerance=1e-4)


def matrices_transforms_and_grids_of_what_was_found():
    """Determinants, spectra, mel bands, grids, and pictures that keep their proportions."""
    rng = np.random.default_rng(23)
    bounded = [node("Compress", ["x", "c"], ["y"], axis=0)]
    unbounded = [node("Cast", ["c"], ["ones"], to=INT64), node("ReduceSum", ["ones"], ["many"], keepdims=0),
                 node("Range", ["none", "many", "one"], ["p"]), node("Gather", ["x", "p"], ["y"])]
    sizes = [node("Shape", ["y"], ["count1"], end=1), node("Squeeze", ["count1", "none1"], ["count"]), node("Unsqueeze", ["y", "none1"], ["b"]),
             node("Shape", ["x"], ["wide"], end=1), node("Add", ["count1", "three1"], ["more1"])]
    square = [node("Transpose", ["y"], ["t"]), node("MatMul", ["y", "t"], ["product"]), node("Shape", ["product"], ["of"]),
              node("EyeLike", ["product"], ["unit"]), node("Add", ["product", "unit"], ["matrix"]), node("Det", ["matrix"], ["det"]),
              node("Slice", ["y", "none1", "count1", "one1"], ["part"])]
    spectra = [node("Unsqueeze", ["b", "three1"], ["signal"]),
               *(node("DFT", ["signal", length, "one"], [name], **options) for name, length, options in
                 (("spectrum", "", {}), ("side", "", {"onesided": 1}), ("filled", "more", {}), ("back", "count", {"inverse": 1}))),
               node("Squeeze", ["more1", "none1"], ["more"])]
    mel = [node("Add", ["count", "hundred"], ["length"]), node("MelWeightMatrix", ["four", "length", "rate", "low", "high"], ["mel"])]
    grids = [node("Concat", ["one1", "one1", "count1", "two1"], ["flat"], axis=0), node("Concat", ["one1", "one1", "two1", "count1", "three1"], ["deep"], axis=0),
             node("AffineGrid", ["theta2", "flat"], ["grid"]), node("AffineGrid", ["theta2", "flat"], ["corners"], align_corners=1),
             node("AffineGrid", ["theta3", "deep"], ["volume"])]
    pictures = [node("Unsqueeze", ["b", "none1"], ["picture"]), node("Concat", ["more1", "eleven1"], ["wanted"], axis=0),
                *(node("Resize", ["picture", "", "", "wanted"], [f"{mode}_{policy}"], mode=mode, axes=[2, 3], keep_aspect_ratio_policy=policy,
                       coordinate_transformation_mode=coordinates)
                  for mode, policy, coordinates in (("linear", "not_larger", "half_pixel"), ("nearest", "not_smaller", "asymmetric"), ("cubic", "not_larger", "pytorch_half_pixel")))]
    reshapes = [node("Slice", ["y", "zeros2", "two_three"], ["corner"]), node("Reshape", ["corner", "two_rows"], ["rows"])]
    outputs = [("det", 0), ("spectrum", 4), ("side", 4), ("filled", 4), ("back", 4), ("mel", 2), ("grid", 4), ("corners", 4), ("volume", 5),
               ("linear_not_larger", 4), ("nearest_not_smaller", 4), ("cubic_not_larger", 4), ("rows", 2)]
    for begin in (bounded, unbounded):
        both = Both([*begin, *sizes, *square, *spectra, *mel, *grids, *pictures, *reshapes],
                    [("x", FLOAT, (MANY, 7)), ("c", BOOL, (MANY,))], [(name, FLOAT, rank) for name, rank in outputs],
                    none=np.int64(0), one=np.int64(1), four=np.int64(4), hundred=np.int64(100), rate=np.int64(8000), low=np.float32(20), high=np.float32(3000),
                    **{f"{name}1": np.int64([value]) for name, value in {"none": 0, "one": 1, "two": 2, "three": 3, "eleven": 11}.items()},
                    zeros2=np.int64([0, 0]), two_three=np.int64([2, 3]), two_rows=np.int64([3, 2]),
                    theta2=rng.standard_normal((1, 2, 3)).astype(np.float32), theta3=rng.standard_normal((1, 3, 4)).astype(np.float32))
        for count in (2, 5, 6, 13, 3):
            both.check(rng.standard_normal((MANY, 7)).astype(np.float32) / 2, rng.permutation(MANY) < count, tolerance=2e-4)
        sent_back(both, [np.ones((MANY, 7), np.float32), np.arange(MANY) < 1], "Reshape")
        uneven = Both([*begin, node("Det", ["y"], ["z"])], [("x", FLOAT, (MANY, 7)), ("c", BOOL, (MANY,))], [("z", FLOAT, 0)], none=np.int64(0), one=np.int64(1))
        uneven.check(rng.standard_normal((MANY, 7)).astype(np.float32), rng.permutation(MANY) < 7, tolerance=1e-4)
        sent_back(uneven, [np.ones((MANY, 7), np.float32), np.arange(MANY) < 6], "Det")


# Operators that care about sizes, over y [n, 8] of which a run finds n: nodes that make "z".
SIZED = {
    "AffineGrid": [node("Slice", ["y", "zeros2", "two_three"], ["t"]), node("Reshape", ["t", "theta"], ["g"]),
                   node("Concat", ["one1", "one1", "count1", "two1"], ["size"], axis=0), node("AffineGrid", ["g", "size"], ["z"])],
    "ArgMax": [node("ArgMax", ["y"], ["z"], axis=0)],
    "AveragePool": [node("Unsqueeze", ["y", "none1"], ["b"]), node("AveragePool", ["b"], ["z"], kernel_shape=[3], pads=[1, 1])],
    "BlackmanWindow": [node("BlackmanWindow", ["count"], ["z"])],
    "CenterCropPad": [node("CenterCropPad", ["y", "four1"], ["z"], axes=[0])],
    "CumProd": [node("CumProd", ["y", "none"], ["z"])],
    "CumSum": [node("CumSum", ["y", "none"], ["z"])],
    "DFT": [node("Unsqueeze", ["y", "last1"], ["b"]), node("DFT", ["b", "", "none"], ["z"])],
    "Det": [node("MatMul", ["y", "square"], ["m"]), node("Det", ["m"], ["z"])],
    "Einsum": [node("Einsum", ["y", "y"], ["z"], equation="ik,jk->ij")],
    "Expand": [node("Concat", ["three1", "count1", "eight1"], ["s"], axis=0), node("Expand", ["y", "s"], ["z"])],
    "EyeLike": [node("EyeLike", ["y"], ["z"])],
    "GridSample": [node("Reshape", ["y", "grid"], ["g"]), node("GridSample", ["picture", "g"], ["z"])],
    "GlobalAveragePool": [node("Unsqueeze", ["y", "none1"], ["b"]), node("GlobalAveragePool", ["b"], ["z"])],
    "InstanceNormalization": [node("Transpose", ["y"], ["t"]), node("Unsqueeze", ["t", "none1"], ["b"]),
                              node("InstanceNormalization", ["b", "eight_ones", "eight_ones"], ["z"])],
    "LSTM": [node("Unsqueeze", ["y", "one1"], ["b"]), node("LSTM", ["b", "gates", "states"], ["z"], hidden_size=5)],
    "LpNormalization": [node("LpNormalization", ["y"], ["z"], axis=0)],
    "MaxPool": [node("Transpose", ["y"], ["t"]), node("Unsqueeze", ["t", "none1"], ["b"]), node("MaxPool", ["b"], ["z"], kernel_shape=[2])],
    "MelWeightMatrix": [node("MelWeightMatrix", ["four", "count", "rate", "low", "high"], ["z"])],
    "Multinomial": [node("Multinomial", ["y"], ["z"], sample_size=3)],
    "Multinomial_along": [node("Transpose", ["y"], ["t"]), node("Multinomial", ["t"], ["z"], sample_size=3)],
    "NonMaxSuppression": [node("Slice", ["y", "none1", "four1", "one1"], ["q"]), node("Unsqueeze", ["q", "none1"], ["boxes"]),
                          node("Transpose", ["y"], ["t"]), node("Unsqueeze", ["t", "none1"], ["scores"]),
                          node("NonMaxSuppression", ["boxes", "scores", "three1"], ["z"])],
    "NonZero": [node("NonZero", ["y"], ["z"])],
    "OneHot": [node("Cast", ["y"], ["i"], to=INT64), node("OneHot", ["i", "count", "off_on"], ["z"])],
    "Pad": [node("Concat", ["none1", "none1", "count1", "none1"], ["pads"], axis=0), node("Pad", ["y", "pads"], ["z"])],
    "RandomNormalLike": [node("RandomNormalLike", ["y"], ["z"])],
    "Resize_nearest": [node("Unsqueeze", ["y", "none1"], ["b"]), node("Resize", ["b", "", "twice"], ["z"], mode="nearest")],
    "Resize_linear": [node("Unsqueeze", ["y", "none1"], ["b"]), node("Resize", ["b", "", "twice"], ["z"], mode="linear")],
    "Resize_cubic": [node("Unsqueeze", ["y", "none1"], ["b"]), node("Resize", ["b", "", "twice"], ["z"], mode="cubic")],
    "Resize_antialias": [node("Unsqueeze", ["y", "none1"], ["b"]), node("Resize", ["b", "", "halves"], ["z"], mode="linear", antialias=1)],
    "Resize_sizes": [node("Concat", ["one1", "count1", "eight1"], ["s"], axis=0), node("Unsqueeze", ["y", "none1"], ["b"]),
                     node("Resize", ["b", "", "", "s"], ["z"], mode="linear")],
    "Resize_policy": [node("Concat", ["count1", "eight1"], ["s"], axis=0), node("Unsqueeze", ["y", "none1"], ["b"]),
                      node("Resize", ["b", "", "", "s"], ["z"], mode="linear", axes=[1, 2], keep_aspect_ratio_policy="not_larger")],
    "ReverseSequence": [node("Unsqueeze", ["y", "one1"], ["b"]), node("ReverseSequence", ["b", "four1"], ["z"], time_axis=0, batch_axis=1)],
    "RoiAlign": [node("Slice", ["y", "none1", "four1", "one1"], ["rois"]), node("Expand", ["none", "count1"], ["of"]),
                 node("RoiAlign", ["picture", "rois", "of"], ["z"], output_height=2, output_width=2, sampling_ratio=2)],
    "STFT": [node("Reshape", ["y", "row"], ["signal"]), node("STFT", ["signal", "four", "", "four"], ["z"])],
    "Scan": [node("Scan", ["row8", "y"], ["state", "z"], num_scan_inputs=1, body=helper.make_graph(
        [node("Add", ["s", "r"], ["t"]), node("Relu", ["t"], ["o"])], "body",
        [helper.make_tensor_value_info("s", FLOAT, (8,)), helper.make_tensor_value_info("r", FLOAT, (8,))],
        [helper.make_tensor_value_info("t", FLOAT, (8,)), helper.make_tensor_value_info("o", FLOAT, (8,))]))],
    "ScatterElements": [node("Cast", ["y"], ["i"], to=INT64), node("Mul", ["i", "none"], ["j"]), node("ScatterElements", ["y", "j", "y"], ["z"])],
    "SpaceToDepth": [node("Reshape", ["y", "blocks"], ["b"]), node("SpaceToDepth", ["b"], ["z"], blocksize=2)],
    "SequenceAt": [node("SplitToSequence", ["y"], ["all"], axis=0), node("SequenceAt", ["all", "none"], ["z"])],
    "Squeeze": [node("Squeeze", ["y"], ["z"])],
    "Tile": [node("Concat", ["count1", "one1"], ["s"], axis=0), node("Tile", ["y", "s"], ["z"])],
    "TopK": [node("TopK", ["y", "three1"], ["z", "i"], axis=0)],
    "Trilu": [node("Trilu", ["y"], ["z"])],
    "Unique": [node("Unique", ["y"], ["z"], axis=0)],
}
SIZED_CONSTANTS = {
    **{name: np.int64(value) for name, value in {"none": 0, "one": 1, "four": 4, "rate": 16000}.items()},
    **{f"{name}1": np.int64([value]) for name, value in {"none": 0, "one": 1, "two": 2, "three": 3, "four": 4, "eight": 8, "last": -1}.items()},
    "low": np.float32(0), "high": np.float32(8000), "theta": np.int64([1, 2, 3]), "zeros2": np.int64([0, 0]), "two_three": np.int64([2, 3]),
    "off_on": np.float32([0, 1]), "eight_ones": np.ones(8, np.float32),
    "square": np.ones((8, 8), np.float32), "grid": np.int64([1, -1, 4, 2]), "picture": np.ones((1, 2, 5, 5), np.float32), "row": np.int64([1, -1]),
    "row8": np.zeros(8, np.float32), "gates": np.ones((1, 20, 8), np.float32), "states": np.ones((1, 20, 5), np.float32),
    "twice": np.float32([1, 2, 1]), "halves": np.float32([1, 0.5, 1]), "blocks": np.int64([1, 2, -1, 2])}

REFUSED = set()


def what_is_said_to_be_supported_compiles():
    """And what is not, does not: each operator along an axis of which the run finds the size, with a bound and without."""
    bounded = [node("Compress", ["x", "c"], ["y"], axis=0)]
    unbounded = [node("Cast", ["c"], ["ones"], to=INT64), node("ReduceSum", ["ones"], ["total"], keepdims=0),
                 node("Range", ["none", "total", "one"], ["p"]), node("Gather", ["x", "p"], ["y"])]
    wrong, refused = [], []
    for begin in (bounded, unbounded):
        for rows in (MANY, None):
            for name, nodes in SIZED.items():
                sizes = [node("Shape", ["y"], ["count1"], end=1), node("Squeeze", ["count1", "none1"], ["count"])]
                graph = helper.make_graph([*begin, *sizes, *nodes], "g", [helper.make_tensor_value_info("x", FLOAT, (rows, 8)),
                                                                          helper.make_tensor_value_info("c", BOOL, (MANY,))],
                                          [helper.make_tensor_value_info("z", TensorProto.UNDEFINED, None)],
                                          [numpy_helper.from_array(np.asarray(value), of) for of, value in SIZED_CONSTANTS.items()])
                model = tiny.Model.load(CONTEXTS[0], helper.make_model(graph, opset_imports=[helper.make_opsetid("", 26)], ir_version=13).SerializeToString())
                is_supported = json.loads(model.info().text())["supported"]
                try:
                    model.run([np.ones((MANY, 8), np.float32), np.arange(MANY) < 8])
                    compiles = True
                except NotImplementedError as error:
                    compiles = False
                    refused.append((name, "bounded" if begin is bounded else "open", str(error)[:200]))
                if is_supported != compiles:
                    wrong.append((name, "bounded" if begin is bounded else "open", rows, is_supported, compiles))
    assert not wrong, (wrong, refused)
    for kind in ("bounded", "open"):
        assert {name for name, of, _ in refused if of == kind} == REFUSED, refused


def code_is_short_however_many_tiles_there_may_be():
    """A picture that is padded and cropped to a size that data says: tiles of each number of rows have code of their own."""
    nodes = [node("Shape", ["x"], ["whole"]), node("Gather", ["whole", "axes"], ["sizes"]), node("Max", ["sizes", "wanted"], ["wide"]),
             node("Sub", ["wide", "sizes"], ["missing"]), node("Div", ["missing", "two"], ["before"]), node("Sub", ["missing", "before"], ["after"]),
             node("Concat", ["before", "after"], ["pads"], axis=0), node("Pad", ["x", "pads", "", "axes"], ["padded"]),
             node("Shape", ["padded"], ["all"]), node("Gather", ["all", "axes"], ["now"]), node("Sub", ["now", "wanted"], ["more"]),
             node("Div", ["more", "two"], ["first"]), node("Add", ["first", "wanted"], ["end"]), node("Slice", ["padded", "first", "end", "axes"], ["y"])]
    graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info("x", FLOAT, (3, 20, 8)), helper.make_tensor_value_info("wanted", INT64, (2,))],
                              [helper.make_tensor_value_info("y", FLOAT, (3, None, None))],
                              [numpy_helper.from_array(value, name) for name, value in (("axes", np.int64([1, 2])), ("two", np.int64([2])))])
    content = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10).SerializeToString()
    program = tiny.Model.load(CONTEXTS[0], content).compile()
    lines = [len(program.kernel_source(i, "c").text().splitlines()) for i in range(program.kernel_count)]
    assert max(lines) < 4000, lines


def runs_of_sizes_that_are_ended():
    """In the middle, by a limit or by data that says 2^62: the next run is right, and keeps its hands off what the last one gave."""
    nodes = [*OPEN, node("TopK", ["y", "three"], ["best", "places"], axis=0), node("Expand", ["least", "total1"], ["wide"]),
             node("Unsqueeze", ["total", "first"], ["total1"])]
    graph = helper.make_graph(
        nodes, "g", [helper.make_tensor_value_info("given", FLOAT, (MANY,)), helper.make_tensor_value_info("x", FLOAT, (MANY,))],
        [helper.make_tensor_value_info("best", FLOAT, (3,)), helper.make_tensor_value_info("wide", FLOAT, ("n",))],
        [numpy_helper.from_array(np.asarray(value), of)
         for of, value in {"three": np.int64([3]), "first": np.int64([0]), "least": np.float32([0.5]), **OPEN_CONSTANTS}.items()])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10).SerializeToString()
    x = np.arange(MANY, dtype=np.float32)
    for options, count, text in (({}, 2.0**62, "it may be 0 to"), ({}, -(2.0**62), ""), ({"memory_limit": 1 << 20}, 2.0**20, "memory_limit"),
                                 ({"time_limit": 50}, 2.0**22, "time_limit"), ({}, 2.0**23, "cancel")):
        context, cancel = tiny.Context(threads=1, **options), tiny.Cancel.create()
        loaded = tiny.Model.load(context, model)

        def is_right(size):
            best, wide = loaded.run([among_many(size), x])
            assert list(np.array(best.numpy())) == [size - 1, size - 2, size - 3] and wide.shape == (size,)
            assert (np.array(wide.numpy()) == 0.5).all()
            return best

        kept = is_right(9)
        context.set_cancel(cancel)
        teller = threading.Timer(0.1, cancel.set)
        if text == "cancel":
            teller.start()
        begin = time.monotonic()
        try:
            loaded.run([among_many(count), x])
        except tiny.Error as error:
            assert text in str(error).lower(), str(error)
        else:
            raise AssertionError(f"no error of {count} elements")
        assert time.monotonic() - begin < 5, (text, time.monotonic() - begin)
        teller.join() if text == "cancel" else teller.cancel()
        cancel.clear()
        for size in (5, 60):
            is_right(size)
        assert list(np.array(kept.numpy())) == [8, 7, 6]
    # The memory of an output of such a size is the run's own.
    program = loaded.compile([MANY, MANY])
    run = tiny.Run.create(program)
    given, room = tiny.from_buffer(among_many(4), context=context), tiny.from_buffer(np.zeros(50, np.float32), context=context)
    run.set_input(0, given)
    run.set_input(1, tiny.from_buffer(x, context=context))
    try:
        run.set_output(1, room)
        run.execute()
    except tiny.Error as error:
        assert "wide" in str(error), str(error)
    else:
        raise AssertionError("an output of a size that nothing bounds was written to the caller's memory")


def sizes_of_one_are_kept_where_nobody_names_them():
    """Squeeze without axes: a size that the run finds is none of 1, and where it is, the run ends."""
    nodes = [node("NonZero", ["x"], ["p"]), node("Squeeze", ["p"], ["s"]), node("Add", ["s", "s"], ["y"])]
    both = Both(nodes, [("x", FLOAT, (MANY,))], [("y", INT64, 1)])
    for count in (5, 2, 70):
        both.check(among_many(*[1] * count))
    sent_back(both, [among_many(1)], "Squeeze")


def many_parts_that_nothing_bounds():
    """As torch.repeat_interleave of each item and one cat: compiled in time that the parts take, not their squares."""
    took = {}
    for count in (75, 300):
        parts = []
        for i in range(count):
            parts += [node("Gather", ["x", f"i{i}"], [f"x{i}"]), node("Slice", ["d", f"i{i}", f"i{i + 1}"], [f"d{i}"]),
                      node("Concat", [f"d{i}", "three"], [f"shape{i}"], axis=0), node("Expand", [f"x{i}", f"shape{i}"], [f"e{i}"])]
        model = Both([as_integers("given", "d"), *parts, node("Concat", [f"e{i}" for i in range(count)], ["y"], axis=0),
                      node("Softmax", ["y"], ["z"], axis=0)],
                     [("given", FLOAT, (count,)), ("x", FLOAT, (count, 3))], [("y", FLOAT, 2), ("z", FLOAT, 2)],
                     three=np.int64([3]), **{f"i{i}": np.int64([i]) for i in range(count + 1)})
        rng = np.random.default_rng(count)
        begun = resource.getrusage(resource.RUSAGE_SELF).ru_utime
        model.check(rng.integers(0, 4, count).astype(np.float32), rng.standard_normal((count, 3)).astype(np.float32))
        took[count] = resource.getrusage(resource.RUSAGE_SELF).ru_utime - begun
        model.check(rng.integers(0, 4, count).astype(np.float32), rng.standard_normal((count, 3)).astype(np.float32))
    assert took[300] < 8 * took[75] + 1, took


def pictures_of_sizes_that_were_found():
    """Another size in every mode, by scales or to sizes; of axes that were found, and of such as stay."""
    rng = np.random.default_rng(23)
    ways = [({"mode": "nearest", "nearest_mode": rounds, "coordinate_transformation_mode": place}, scale)
            for rounds, place, scale in (("floor", "asymmetric", 2), ("round_prefer_floor", "half_pixel", 1.5),
                                         ("ceil", "half_pixel", 0.625), ("round_prefer_ceil", "align_corners", 2),
                                         ("round_prefer_floor", "half_pixel_symmetric", 0.75))]
    ways += [({"mode": mode, "coordinate_transformation_mode": place, "exclude_outside": outside}, scale)
             for mode, place, outside, scale in (("linear", "half_pixel", 0, 2), ("linear", "align_corners", 0, 3), ("linear", "pytorch_half_pixel", 0, 0.5),
                                                 ("cubic", "half_pixel", 0, 2), ("cubic", "asymmetric", 0, 1.3), ("cubic", "half_pixel", 1, 0.7))]
    ways.append(({"mode": "linear", "antialias": 1}, 0.4))
    for attributes, scale in ways:
        # To the nearest of sizes whose share is no float either rounds its own way.
        weighted = {"mode": "linear"} if attributes["mode"] == "nearest" else attributes | {"antialias": 0}
        both = Both([node("Compress", ["x", "c"], ["y"], axis=2), node("Resize", ["y", "", "scales"], ["z"], **attributes),
                     node("Resize", ["y", "", "", "sizes"], ["w"], **weighted),
                     node("Compress", ["x", "c"], ["rows"], axis=2), node("Transpose", ["rows"], ["turned"], perm=[2, 0, 1, 3]),
                     node("Resize", ["turned", "", "behind"], ["v"], **attributes)],
                    [("x", FLOAT, (1, 2, 20, 5)), ("c", BOOL, (20,))], [("z", FLOAT, 4), ("w", FLOAT, 4), ("v", FLOAT, 4)],
                    scales=np.float32([1, 1, scale, 1]), sizes=np.int64([1, 2, 13, 5]), behind=np.float32([1, 1, 1, 2]))
        for count in (5, 20, 4, 13):
            both.check(rng.standard_normal((1, 2, 20, 5)).astype(np.float32), rng.permutation(20) < count, tolerance=1e-4)
    both = Both([*number("a", "n"), node("Concat", ["three", "n"], ["sizes"], axis=0),
                 node("Resize", ["x", "", "", "sizes"], ["y"], mode="linear"), node("Resize", ["y", "", "scales"], ["z"], mode="cubic")],
                [("a", FLOAT, (MANY,)), ("x", FLOAT, (1, 2, 3, 7))], [("y", FLOAT, 4), ("z", FLOAT, 4)],
                three=np.int64([1, 2, 3]), scales=np.float32([1, 1, 1, 2]))
    for count in (7, 3, 40, 1):
        both.check(among_many(count), rng.standard_normal((1, 2, 3, 7)).astype(np.float32), tolerance=1e-4)


def neighbours_and_sums_of_what_was_found():
    """What the one slice has of an axis and the other: as many elements, if of other words."""
    rng = np.random.default_rng(24)
    both = Both([node("Compress", ["x", "c"], ["y"], axis=0), node("Slice", ["y", "one", "far", "zero"], ["next"]),
                 node("Slice", ["y", "zero", "last", "zero"], ["before"]), node("Sub", ["next", "before"], ["d"]),
                 node("Slice", ["y", "two", "last", "zero"], ["e"]), node("Slice", ["y", "one", "last2", "zero"], ["f"]), node("Mul", ["e", "f"], ["g"])],
                [("x", FLOAT, (30, 3)), ("c", BOOL, (30,))], [("d", FLOAT, 2), ("g", FLOAT, 2)], zero=np.int64([0]),
                one=np.int64([1]), two=np.int64([2]), far=np.int64([2**63 - 1]), last=np.int64([-1]), last2=np.int64([-2]))
    for count in (9, 30, 3, 2, 1, 0):
        both.check(rng.standard_normal((30, 3)).astype(np.float32), rng.permutation(30) < count)
    # The mean of each group, as torch's index_add is written.
    both = Both([node("Unique", ["ids"], ["u", "", "group"]), node("Shape", ["u"], ["n"]), node("Concat", ["n", "four"], ["shape"], axis=0),
                 node("ConstantOfShape", ["shape"], ["zeros"]), node("Slice", ["zeros", "zero2", "first", "axes"], ["row"]), node("Shape", ["row"], ["r"]),
                 node("Expand", ["x", "r"], ["updates"]), node("Unsqueeze", ["group", "one"], ["column"]), node("Shape", ["updates"], ["s"]),
                 node("Expand", ["column", "s"], ["places"]), node("ScatterElements", ["zeros", "places", "updates"], ["sums"], axis=0, reduction="add")],
                [("x", FLOAT, (None, 4)), ("ids", INT64, (None,))], [("sums", FLOAT, 2), ("u", INT64, 1)],
                one=np.int64([1]), four=np.int64([4]), zero2=np.int64([0, 0]), first=np.int64([1, 2**63 - 1]), axes=np.int64([0, 1]))
    for rows, groups in ((20, 5), (33, 12), (1, 1), (7, 1)):
        both.check(rng.standard_normal((rows, 4)).astype(np.float32), rng.integers(0, groups, rows))


def ten_thousand_runs_of_other_sizes():
    """Memory stays, nothing is compiled after the first; what is too much is an error, and the next run is right."""
    nodes = [*number("a", "n"), *number("b", "s"), node("Squeeze", ["n"], ["count"]), node("Range", ["zero", "count", "one"], ["r"]),
             node("Cast", ["r"], ["f"], to=FLOAT), node("Slice", ["f", "s", "far", "first"], ["t"]), node("CumSum", ["t", "zero"], ["c"])]
    graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info(name, FLOAT, [MANY]) for name in "ab"],
                              [helper.make_tensor_value_info(name, FLOAT, ["n"]) for name in "tc"],
                              [numpy_helper.from_array(np.asarray(value), name) for name, value in
                               (("zero", np.int64(0)), ("one", np.int64(1)), ("first", np.int64([0])), ("far", np.int64([2**62])))])
    context = tiny.Context(device="cpu", threads=1, memory_limit=1 << 20)
    model = tiny.Model.load(context, helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10).SerializeToString())

    def had_code():
        had = json.loads(context.counters().text())
        return had["kernels"]["compiled"] + had["kernels"]["cached"]

    def run(count, begin):
        got = [one.numpy() for one in model.run([among_many(count), among_many(begin)])]
        assert got[0].shape == got[1].shape and (got[0] == np.arange(count, dtype=np.float32)[begin:]).all(), (count, begin)

    rng = np.random.default_rng(25)
    for number_of_run in range(10_000):
        run(int(rng.integers(0, 3000)), int(rng.integers(-100, 200)))
        if number_of_run == 99:
            code = had_code()
            resident = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert had_code() == code > 0, (had_code(), code)
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - resident  # KiB
    assert grown < 4096, grown
    for count, said in ((2**62, "the size"), (1 << 23, "memory_limit"), (1 << 22, "memory_limit")):
        try:
            model.run([among_many(count), among_many(0)])
        except tiny.Error as error:
            assert said in str(error), str(error)
        else:
            raise AssertionError(f"no error of {count} elements")
        run(700, 3)





TESTS = (lengths_that_nothing_bounds, ranges_of_what_data_says, shapes_of_what_data_says, slices_that_end_where_data_says,
         slices_that_begin_where_data_says, slices_backwards_from_before_the_axis, slices_of_what_was_found, splits_as_data_says,
         reshapes_as_data_says, pictures_of_sizes_that_were_found, neighbours_and_sums_of_what_was_found, the_best_of_what_nothing_bounds,
         unique_rows_that_nothing_bounds, boxes_that_nothing_bounds, numbers_drawn_as_many_as_were_found, pads_crops_windows_and_depths_that_data_says, windows_without_pads_over_what_was_found, matrices_transforms_and_grids_of_what_was_found,
         what_is_said_to_be_supported_compiles, code_is_short_however_many_tiles_there_may_be,
         runs_of_sizes_that_are_ended, sizes_of_one_are_kept_where_nobody_names_them, many_parts_that_nothing_bounds,
         ten_thousand_runs_of_other_sizes, operators_over_what_was_found)  # fmt: skip

if __name__ == "__main__":
    sys.exit(named_tests.run(TESTS))
