"""Cases of one operator each that hypothesis draws, in both engines."""

import functools
import re
import sys
import zlib

import named_tests

try:
    import hypothesis
    import numpy as np
    import onnxruntime
    import tiny
    from hypothesis import strategies as st
    from onnx import helper, numpy_helper
except ImportError as missing:
    print(f"skipped: this interpreter lacks {missing.name}; scripts/setup.sh makes one that has it")
    sys.exit(77)

CONTEXT = tiny.Context(threads=2)
onnxruntime.set_default_logger_severity(4)
DRAWS = 12


class Draw:
    """What hypothesis chooses; the elements of arrays are a generator's whose seed it chooses."""

    def __init__(self, data):
        self.data = data
        self.rng = np.random.default_rng(self.number(0, 2**32 - 1))

    def number(self, low, high):
        """From low to high, both included."""
        return self.data.draw(st.integers(low, high))

    def among(self, *values):
        return values[self.number(0, len(values) - 1)]

    def coin(self):
        return self.number(0, 1) == 1

    def width(self):
        """Of rows: below, at and above those of registers."""
        return self.among(1, 3, 8, 16, 17, 40)

    def shape(self, rank, low=1, high=7):
        return [self.number(low, high) for _ in range(rank)]

    def floats(self, shape):
        return self.rng.standard_normal(shape).astype(np.float32)

    def integers(self, shape, low, high, kind=np.int64):
        return self.rng.integers(low, high, shape).astype(kind)

    def axis(self, rank):
        return self.number(-rank, rank - 1)

    def permutation(self, count):
        return self.data.draw(st.permutations(range(count)))


def in_both(op, arrays, attributes, version, outputs, constant):
    """What both engines make, inputs of fixed sizes and of free ones; None where onnxruntime refuses the case."""
    names = [f"x{i}" if array is not None else "" for i, array in enumerate(arrays)]
    given = {name: np.asarray(array) for name, array in zip(names, arrays) if name}
    inputs = {name: array for name, array in given.items() if name not in constant}
    domain, _, plain = op.rpartition(".")
    node = helper.make_node(plain, names, [f"y{i}" for i in range(outputs)], domain=domain, **attributes)
    for is_free in (False, True):
        shape = lambda name, array: [f"{name}_{i}" for i in range(array.ndim)] if is_free else array.shape
        graph = helper.make_graph([node], "g", [helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), shape(name, array))
                                                for name, array in inputs.items()],
                                  [helper.make_empty_tensor_value_info(name) for name in node.output],
                                  [numpy_helper.from_array(array, name) for name, array in given.items() if name in constant])  # fmt: skip
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", version), helper.make_opsetid("com.microsoft", 1)], ir_version=9).SerializeToString()
        try:
            want = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"]).run(None, inputs)
        except Exception:  # its own limits
            return
        yield want, [np.array(one.numpy()) for one in tiny.Model.load(CONTEXT, model).run(list(inputs.values()))]


def check(data, op, draw, version, outputs=1, tolerance=2e-5):
    """Whether onnxruntime has the case."""
    d = Draw(data)
    arrays, attributes = draw(d)
    some = d.number(0, 2)  # of the inputs but the first none are constants, all, or some
    constant = [f"x{i}" for i in range(1, len(arrays)) if some == 1 or (some == 2 and d.coin())]
    is_had = False
    for want, got in in_both(op, arrays, attributes, version, outputs, constant):
        is_had = True
        for one, other in zip(got, want, strict=True):
            assert one.dtype == other.dtype and one.shape == other.shape, (one.shape, other.shape, attributes, constant)
            np.testing.assert_allclose(one.astype(np.float64), other.astype(np.float64), tolerance, tolerance, err_msg=f"{attributes} {constant}")
    return is_had


def drawn(of_data, seed, count, had):
    """Draws so many cases, or until one fails, then shrinks it; appends to `had` whether the other engine has each."""

    @hypothesis.seed(seed)
    @hypothesis.settings(max_examples=count, deadline=None, database=None, print_blob=False,
                         suppress_health_check=list(hypothesis.HealthCheck))  # fmt: skip
    @hypothesis.given(st.data())
    def draws(data):
        had.append(of_data(data))

    draws()


def main(checks, pattern="", seed=0, count=DRAWS):
    """Of `checks` by operator: each is given hypothesis' data, and returns whether the other engine has the case drawn."""
    done, failures = 0, []
    for op, of_data in checks.items():
        if not re.search(pattern, op):
            continue
        had = []
        try:
            drawn(of_data, zlib.crc32(op.encode()) + int(seed), int(count), had)
            if 2 * sum(had) < len(had):
                failures.append(f"{op}: onnxruntime has {sum(had)} of {len(had)} cases")
        except Exception as error:
            failures.append(f"{op}: {type(error).__name__}: {str(error)[:700]}")
        done += len(had)
    return named_tests.report(done, failures)


def compared(cases):
    """The checks of `cases`: by operator its draws, the version, how many outputs it has (1), and the tolerance."""
    return {op: functools.partial(check, op=op, **dict(zip(("draw", "version", "outputs", "tolerance"), case))) for op, case in cases.items()}
