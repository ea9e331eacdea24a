"""Models that ask for too much: sizes of 2^62 from data, loops that never end, states that double, rounds without number.
Under limits of memory and time each ends soon, with a result or with an error, and none is a bug of the library.

    PYTHONPATH=build/release/bindings/python hostile_test.py [PATTERN]
"""

import sys
import threading
import time

import named_tests

try:
    import numpy as np
    import tiny
    from onnx import TensorProto, helper, numpy_helper
except ImportError as missing:
    print(f"skipped: this interpreter lacks {missing.name}; scripts/setup.sh makes one that has it")
    sys.exit(77)

FLOAT, INT64, BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL
HUGE = 2**62
MEMORY, TIME_MS = 256 << 20, 500
ENDS_S = 5.0  # of importing, compiling and running; the limit of time and what a loaded machine adds


def node(op, inputs, outputs, **attributes):
    return helper.make_node(op, inputs, outputs, **attributes)


def graph_of(nodes, inputs, outputs, **constants):
    return helper.make_graph(nodes, "g", [helper.make_tensor_value_info(*i) for i in inputs],
                             [helper.make_tensor_value_info(*o) for o in outputs],
                             [numpy_helper.from_array(np.asarray(value), name) for name, value in constants.items()])


def ending(graph, *arrays):
    """What the model ended with, a text; it ends in time."""
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10).SerializeToString()
    begin = time.monotonic()
    try:
        context = tiny.Context(threads=1, cache=0, memory_limit=MEMORY, time_limit=TIME_MS)
        tiny.Model.load(context, model).run([np.asarray(array) for array in arrays])
        said = "a result"
    except tiny.Error as error:
        said = str(error)
    assert time.monotonic() - begin < ENDS_S, f"{time.monotonic() - begin:.1f} s: {said}"
    assert "internal error" not in said, said
    return said


def sizes_of_an_input_are_huge():
    three = np.ones(3, np.float32)
    picture = np.ones((1, 1, 3, 3), np.float32)
    for size in (HUGE, -HUGE, 2**63 - 1, -(2**63), 2**40):
        one = [("x", FLOAT, [3]), ("s", INT64, [1])], [("y", FLOAT, None)]
        for op in ("Expand", "Tile", "Reshape", "CenterCropPad"):
            said = ending(graph_of([node(op, ["x", "s"], ["y"])], *one), three, np.int64([size]))
            assert said != "a result" or size < 0, (op, size)
        ending(graph_of([node("Pad", ["x", "s"], ["y"])], [("x", FLOAT, [3]), ("s", INT64, [2])], one[1]), three,
               np.int64([size, size]))
        ending(graph_of([node("Slice", ["x", "s", "s", "", "s"], ["y"])], *one), three, np.int64([size]))
        ending(graph_of([node("TopK", ["x", "s"], ["y", "i"])], *one), three, np.int64([size]))
        ending(graph_of([node("ConstantOfShape", ["s"], ["y"])], one[0][1:], one[1]), np.int64([size]))
        ending(graph_of([node("Range", ["zero", "s", "one"], ["y"])], [("s", INT64, [])], [("y", INT64, None)],
                        zero=np.int64(0), one=np.int64(1)), np.int64(size))
        ending(graph_of([node("SplitToSequence", ["x", "s"], ["q"]), node("SequenceAt", ["q", "zero"], ["y"])],
                        [("x", FLOAT, [3]), ("s", INT64, [])], one[1], zero=np.int64(0)), three, np.int64(size))
        ending(graph_of([node("Resize", ["x", "", "", "s"], ["y"])], [("x", FLOAT, [1, 1, 3, 3]), ("s", INT64, [4])], one[1]),
               picture, np.int64([1, 1, size, size]))
        ending(graph_of([node("OneHot", ["i", "s", "v"], ["y"])], [("i", INT64, [3]), ("s", INT64, [])], one[1],
                        v=np.float32([0, 1])), np.int64([0, 1, 2]), np.int64(size))


BODY_INPUTS = [("i", INT64, ()), ("c", BOOL, ()), ("v", FLOAT, None)]
STATE = [("x", FLOAT, [3])], [("y", FLOAT, None)]


def loops_do_not_end():
    body = graph_of([node("Identity", ["c"], ["again"]), node("Add", ["v", "v"], ["next"])],
                    BODY_INPUTS, [("again", BOOL, ()), ("next", FLOAT, None)])
    x = np.ones(3, np.float32)
    said = ending(graph_of([node("Loop", ["", "yes", "x"], ["y"], body=body)], *STATE, yes=np.array(True)), x)
    assert "time_limit" in said, said
    said = ending(graph_of([node("Loop", ["most", "yes", "x"], ["y"], body=body)], [*STATE[0], ("most", INT64, [])], STATE[1],
                           yes=np.array(True)), x, np.int64(HUGE))
    assert "time_limit" in said, said


def loops_collect_and_grow_without_end():
    x, low = np.ones(3, np.float32), np.float32(-1e30)
    goes = [node("ReduceMax", ["next"], ["top"], keepdims=0), node("Greater", ["top", "low"], ["again"])]
    outputs = [("again", BOOL, ()), ("next", FLOAT, None)]
    given = [*STATE[0], ("low", FLOAT, [])]
    # 60,000 rows of 300,000 elements.
    rows = graph_of([node("Add", ["v", "v"], ["next"]), *goes, node("Expand", ["next", "wide"], ["row"])],
                    BODY_INPUTS, [*outputs, ("row", FLOAT, None)])
    said = ending(graph_of([node("Loop", ["most", "yes", "x"], ["last", "y"], body=rows)], given, STATE[1], yes=np.array(True),
                           most=np.int64(60000), wide=np.int64([100000, 3])), x, np.array(low))
    assert "memory_limit" in said, said
    doubles = graph_of([node("Concat", ["v", "v"], ["next"], axis=0), *goes], BODY_INPUTS, outputs)
    for most in (60, 1000, HUGE):
        said = ending(graph_of([node("Loop", ["most", "yes", "x"], ["y"], body=doubles)], given, STATE[1], yes=np.array(True),
                               most=np.int64(most)), x, np.array(low))
        assert said != "a result"
    # Rounds of rounds, each of which finds a size and makes another.
    inner = graph_of([node("NonZero", ["v"], ["p"]), node("Squeeze", ["p", "first"], ["q"]), node("Gather", ["v", "q"], ["f"]),
                      node("Concat", ["v", "f"], ["next"], axis=0), *goes], BODY_INPUTS, outputs)
    outer = graph_of([node("Loop", ["most", "c", "v"], ["next"], body=inner), *goes], BODY_INPUTS, outputs)
    said = ending(graph_of([node("Loop", ["most", "yes", "x"], ["y"], body=outer)], given, STATE[1], yes=np.array(True),
                           most=np.int64(64), first=np.int64([0])), x, np.array(low))
    assert said != "a result"


def a_loop_ends_when_it_is_told_to():
    body = graph_of([node("Identity", ["c"], ["again"]), node("Add", ["v", "v"], ["next"])],
                    BODY_INPUTS, [("again", BOOL, ()), ("next", FLOAT, None)])
    graph = graph_of([node("Loop", ["", "yes", "x"], ["y"], body=body)], *STATE, yes=np.array(True))
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10).SerializeToString()
    context, cancel = tiny.Context(threads=1, cache=0), tiny.Cancel.create()
    context.set_cancel(cancel)
    loaded = tiny.Model.load(context, model)
    teller = threading.Timer(0.2, cancel.set)
    teller.start()
    begin = time.monotonic()
    try:
        loaded.run([np.ones(3, np.float32)])
    except tiny.Error as error:
        assert "cancel" in str(error).lower(), str(error)
    else:
        raise AssertionError("no error")
    assert time.monotonic() - begin < ENDS_S


def lengths_that_nothing_bounds_are_huge():
    """What a run computes decides how much there is: as many as a size may be have memory, if the limit has it."""
    integers = node("Cast", ["given"], ["s"], to=INT64)
    total = node("ReduceSum", ["s"], ["n"], keepdims=0)
    given, count = [("given", FLOAT, [70])], {"zero": np.int64(0), "one": np.int64(1)}
    numbers = [integers, total, node("Range", ["zero", "n", "one"], ["y"])]
    square = [*numbers, node("Unsqueeze", ["y", "last"], ["c"]), node("Sub", ["c", "y"], ["all"]), node("Exp", ["f"], ["z"])]
    square.insert(-1, node("Cast", ["all"], ["f"], to=FLOAT))
    shaped = [integers, node("ReduceSum", ["s"], ["m"], keepdims=1), node("ConstantOfShape", ["m"], ["z"])]
    for size in (HUGE, 2**40, 2**25, 2**23, -(2**40)):
        many = np.float32([size // 2, size // 2, *[0] * 68])  # few would be read before the run
        for nodes, output, least in ((numbers, ("y", INT64, None), 2**25), (square, ("z", FLOAT, None), 2**23), (shaped, ("z", FLOAT, None), 2**25)):
            names = {} if nodes is shaped else count | {"last": np.int64([-1])}
            said = ending(graph_of(nodes, given, [output], **names), many)
            assert (said == "a result") == (size < least) or (nodes is shaped and size < 0), (size, output, said)
            if size == 2**23 and said != "a result":
                assert "memory_limit" in said, said


TESTS = (lengths_that_nothing_bounds_are_huge, sizes_of_an_input_are_huge, loops_do_not_end, loops_collect_and_grow_without_end, a_loop_ends_when_it_is_told_to)

if __name__ == "__main__":
    sys.exit(named_tests.run(TESTS))
