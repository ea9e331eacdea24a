"""Branches of different ranks, types and lengths of lists where nobody can be asked before which is taken: in programs that are compiled
once, in graphs of the caller, as C, and in the bodies of loops; against onnxruntime.

    PYTHONPATH=build/release/bindings/python unlike_branches_test.py [PATTERN]
"""

import ctypes
import pathlib
import subprocess
import sys
import tempfile

import named_tests
from sized_models import BOOL, FLOAT, INT64, MANY, Both, among_many, graph_of, node, number

try:
    import numpy as np
    import tiny
    from onnx import helper
except ImportError as missing:
    print(f"skipped: this interpreter lacks {missing.name}; scripts/setup.sh makes one that has it")
    sys.exit(77)

RISES = [node("ReduceSum", ["x"], ["sum"], keepdims=0), node("Greater", ["sum", "nothing"], ["rises"])]
CONSTANTS = {"nothing": np.float32(0), "much": np.float32(9), "flat": np.int64([-1]), "first": np.int64([0]), "one": np.int64(1)}


def drawn(factor, *shape):
    return (factor * (0.1 + np.random.default_rng(len(shape)).random(shape))).astype(np.float32)


def either(yes, no, condition="rises", made="either"):
    """One of two lists of nodes, of which the last makes the value."""
    return node("If", [condition], [made], then_branch=graph_of(yes, (yes[-1].output[0], FLOAT, None)),
                else_branch=graph_of(no, (no[-1].output[0], FLOAT, None)))


SUMMED = either([node("Relu", ["x"], ["a"])], [node("ReduceSum", ["x"], ["b"], keepdims=0)])


def run_once(program, context, x):
    run = tiny.Run.create(program)
    run.set_input(0, tiny.tensor(x, context=context))
    run.execute()
    return run


def check_everywhere(nodes, outputs, *arrays, **constants):
    """In runs, in one program for all of them, and as a part of the caller's graph."""
    both = Both([*RISES, *nodes], [("x", FLOAT, arrays[0].shape)], outputs, declares_outputs=False, **CONSTANTS, **constants)
    programs = [model.compile() for model in both.ours]
    for x in arrays:
        want = both.check(x)
        for model, program in zip(both.ours, programs):
            run = run_once(program, model.context, x)
            applied = model.apply([tiny.tensor(x, context=model.context)])
            for i, one in enumerate(want):
                for got in (run.output_tensor(i), applied[i]):
                    assert got.shape == one.shape, (got.shape, one.shape)
                    np.testing.assert_allclose(got.numpy(), one, 1e-5, 1e-5)


def what_follows_makes_them_alike():
    x = drawn(1, 3, 4)
    of_a_list = node("If", ["rises"], ["list"],
                     then_branch=helper.make_graph([node("SplitToSequence", ["x"], ["s"], axis=0)], "yes", [],
                                                   [helper.make_tensor_sequence_value_info("s", FLOAT, None)]),
                     else_branch=helper.make_graph([node("SequenceConstruct", ["x"], ["t"])], "no", [],
                                                   [helper.make_tensor_sequence_value_info("t", FLOAT, None)]))
    lifted = either([node("Identity", ["x"], ["a"])], [node("Unsqueeze", ["x", "first"], ["b"])])
    again = either([node("Unsqueeze", ["either", "first"], ["c"])], [node("Neg", ["either"], ["d"])], condition="is_large", made="other")
    for nodes, outputs in (
        ([SUMMED, node("Mul", ["either", "x"], ["y"])], [("y", FLOAT, 2)]),
        ([SUMMED, node("Neg", ["x"], ["z"]), node("Reshape", ["either", "flat"], ["r"]), node("ReduceMax", ["r"], ["y"], keepdims=0)],
         [("y", FLOAT, 0), ("z", FLOAT, 2), ("sum", FLOAT, 0)]),
        ([SUMMED, node("Reshape", ["either", "flat"], ["y"])], [("y", FLOAT, 1)]),  # of 12 elements or of one
        ([SUMMED, node("Shape", ["either"], ["s"]), node("Size", ["s"], ["n"]), node("Reshape", ["either", "flat"], ["r"]),
          node("ReduceMean", ["r"], ["y"], keepdims=0)], [("n", INT64, 0), ("y", FLOAT, 0)]),
        ([of_a_list, node("SequenceLength", ["list"], ["n"]), node("SequenceAt", ["list", "zero"], ["f"]), node("ReduceSum", ["f"], ["y"], keepdims=0)],
         [("n", INT64, 0), ("y", FLOAT, 0)]),
        ([lifted, node("Greater", ["sum", "much"], ["is_large"]), again, node("ReduceSum", ["other"], ["y"], keepdims=0)], [("y", FLOAT, 0)]),
    ):  # fmt: skip
        check_everywhere(nodes, outputs, x, -x, 4 * x, zero=np.int64(0))


def branches_inside_of_branches():
    """What follows inside of the branch makes them alike, or only what follows around."""
    x = drawn(1, 3, 4)
    inner = either([node("Neg", ["x"], ["a"])], [node("ReduceMean", ["x"], ["b"], keepdims=0)], condition="is_large", made="inside")
    for last, more in (([node("ReduceMax", ["inside"], ["m"], keepdims=0)], []), ([node("Mul", ["inside", "inside"], ["m"])], [])):
        outer = either([inner, *last], [node("ReduceMin", ["x"], ["n"], keepdims=0)])
        nodes = [node("Greater", ["sum", "much"], ["is_large"]), outer, node("Add", ["either", "x"], ["y"]), *more]
        check_everywhere(nodes, [("y", FLOAT, 2)], x, -x, 4 * x)


def what_cannot_follow_is_an_error_where_it_is_taken():
    both = Both([*RISES, SUMMED, node("ReduceMax", ["either", "one1"], ["y"], keepdims=0)], [("x", FLOAT, (3, 4))], [("y", FLOAT, 1)],
                declares_outputs=False, one1=np.int64([1]), **CONSTANTS)
    for model in both.ours:
        program = model.compile()
        x = drawn(1, 3, 4)
        np.testing.assert_allclose(run_once(program, model.context, x).output_tensor(0).numpy(), x.max(1))
        try:
            run_once(program, model.context, -x)
        except tiny.Error as error:
            assert "cannot be computed" in str(error) and "ReduceMax" in str(error), str(error)
        else:
            raise AssertionError("no error")


def too_many_that_follow_each_other():
    """Each makes what follows twice: what passes the limit is an error where it is taken, and compiling takes no longer."""
    nodes, value = [], "x"
    for i in range(12):
        nodes.append(either([node("Unsqueeze", [value, "first"], ["a"])], [node("Abs", [value], ["b"])], made=f"v{i}"))
        value = f"v{i}"
    nodes.append(node("ReduceSum", [value], ["y"], keepdims=0))
    both = Both([*RISES, *nodes], [("x", FLOAT, (3, 4))], [("y", FLOAT, 0)], declares_outputs=False, **CONSTANTS)
    for model in both.ours:
        program, x = model.compile(), drawn(1, 3, 4)
        taken = []
        for factor in (1, -1):
            try:
                got = run_once(program, model.context, factor * x).output_tensor(0).numpy()
                np.testing.assert_allclose(got, x.sum(), 1e-5)
                taken.append(factor)
            except tiny.Error as error:
                assert "more than 64 branches" in str(error), str(error)
        assert len(taken) < 2


def body_of(*nodes):
    """Of a loop over v, of which `more` says whether it rises in this round."""
    return [node("ReduceSum", ["v"], ["s"], keepdims=0), node("Greater", ["s", "nothing"], ["more"]), *nodes, node("Identity", ["c"], ["d"])]


FLATTENED = either([node("Identity", ["v"], ["a"])], [node("ReduceSum", ["v"], ["b"], keepdims=0)], condition="more", made="part")


def in_the_bodies_of_loops():
    body = body_of(FLATTENED, node("Mul", ["part", "v"], ["p"]), node("Sub", ["p", "x"], ["w"]), node("ReduceMax", ["w"], ["top"], keepdims=0))
    loop = graph_of(body, ("d", BOOL, ()), ("w", FLOAT, None), ("top", FLOAT, None), inputs=[("i", INT64, ()), ("c", BOOL, ()), ("v", FLOAT, None)])
    for counts in ([], number("given", "k")):
        for rounds in (3, 9):
            nodes = [*counts, node("Loop", ["k" if counts else "rounds", "", "x"], ["z", "tops"], body=loop)]
            both = Both(nodes, [("x", FLOAT, (2, 3)), ("given", FLOAT, (MANY,))][: 2 if counts else 1], [("z", FLOAT, 2), ("tops", FLOAT, 1)],
                        rounds=np.int64(rounds), **CONSTANTS)
            for factor in (0.5, -0.5, 0.7):
                x = drawn(factor, 2, 3)
                for k in (rounds, 1):
                    both.check(*([x, among_many(k)] if counts else [x]), tolerance=1e-4)


def in_steps_of_scans():
    body = graph_of([node("ReduceSum", ["row"], ["s"], keepdims=0), node("Greater", ["s", "nothing"], ["more"]),
                     either([node("Identity", ["row"], ["a"])], [node("Identity", ["s"], ["b"])], "more", "part"), node("Add", ["part", "v"], ["w"]), node("ReduceMin", ["w"], ["low"], keepdims=0)],
                    ("w", FLOAT, (3,)), ("low", FLOAT, ()), inputs=[("v", FLOAT, (3,)), ("row", FLOAT, (3,))])
    both = Both([node("Scan", ["start", "x"], ["z", "lows"], body=body, num_scan_inputs=1)], [("x", FLOAT, (8, 3))], [("z", FLOAT, 1), ("lows", FLOAT, 1)],
                start=np.zeros(3, np.float32), **CONSTANTS)
    rows = np.random.default_rng(3).standard_normal((8, 3)).astype(np.float32)
    for factor in (1, -2, 3):
        both.check(factor * rows)


def exported_as_c():
    both = Both([*RISES, SUMMED, node("Mul", ["either", "x"], ["y"])], [("x", FLOAT, (3, 4))], [("y", FLOAT, 2)], declares_outputs=False, **CONSTANTS)
    fields = ["weights", "memory", "memory_bytes", "threads", "x", "y"]

    class Arguments(ctypes.Structure):
        _fields_ = [(name, ctypes.c_size_t) for name in fields]

    with tempfile.TemporaryDirectory() as folder:
        tiny.Model.load(tiny.Context(cache=0), both.content).compile().export_c(folder, "either")
        subprocess.run(["cc", "-std=c11", "-O1", "-shared", "-fPIC", "-march=native", "-o", f"{folder}/either.so", f"{folder}/either.c", "-lm"], check=True)
        library = ctypes.CDLL(f"{folder}/either.so")
        weights = np.resize(np.frombuffer((pathlib.Path(folder) / "either.weights").read_bytes() + b" ", np.uint8), 4096)
    library.either_memory_bytes.restype = ctypes.c_size_t
    y = np.zeros((3, 4), np.float32)
    for factor in (1, -1, 2):
        x = drawn(factor, 3, 4)
        arguments = Arguments(weights=weights.ctypes.data, x=x.ctypes.data, y=y.ctypes.data)
        memory = np.zeros(library.either_memory_bytes(ctypes.byref(arguments)) + 64, np.uint8)
        arguments.memory, arguments.memory_bytes = memory.ctypes.data, len(memory)
        assert library.either_run(ctypes.byref(arguments)) == 0
        np.testing.assert_allclose(y, both.check(x)[0], 1e-5)


TESTS = (what_follows_makes_them_alike, branches_inside_of_branches, what_cannot_follow_is_an_error_where_it_is_taken, too_many_that_follow_each_other, in_the_bodies_of_loops,
         in_steps_of_scans, exported_as_c)  # fmt: skip

if __name__ == "__main__":
    sys.exit(named_tests.run(TESTS))
