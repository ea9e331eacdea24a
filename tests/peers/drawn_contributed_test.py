"""The operators of onnxruntime's own (com.microsoft) with drawn attributes, shapes and inputs left out, sizes fixed and
free, against onnxruntime; where it has no kernel for the processor, against the definition.

    PYTHONPATH=build/release/bindings/python drawn_contributed_test.py [PATTERN [SEED [COUNT]]]

Those whose inputs are texts or whole graphs are drawn in texts_test.py and search_test.py.
"""

import functools
import sys

import drawn_cases

try:
    import drawn_contributed_attention
    import drawn_contributed_layout
    import drawn_contributed_quantized
    import numpy as np
    import tiny
    from contributed_case import difference, wanted_of
except ImportError as missing:
    print(f"skipped: this interpreter lacks {missing.name}; scripts/setup.sh makes one that has it")
    sys.exit(77)


def ours(case, free):
    model = tiny.Model.load(drawn_cases.CONTEXT, case.model(free).SerializeToString())
    return dict(zip(case.outputs, (np.array(one.numpy()) for one in model.run(list(case.given().values())))))


def check(data, op, draw):
    """Whether onnxruntime has the case, or none is needed."""
    case = draw(drawn_cases.Draw(data), op)
    try:
        wanted = wanted_of(case)
    except Exception:  # its own limits, of which ours may be others
        wanted = {}
    for free in (False, True):
        try:
            made = ours(case, free)
        except tiny.Error:
            if wanted:
                raise
            continue
        for name, want in wanted.items():
            got = made[name]
            error = difference(case, got, want)
            assert error <= 1, (
                f"{name} of {got.dtype} {got.shape} is {error:.1e} times as far from {want.dtype} {want.shape} as it may be; {describe(case, free)}")
    return bool(wanted)


def describe(case, free):
    inputs = ", ".join(f"{n} {v.dtype}{list(v.shape)}{' constant' if n in case.weights else ''}" for n, v in case.inputs.items() if v is not None)
    attributes = {a.name: a.ints or a.i or a.f or a.s for a in case.node.attribute}
    return f"{'free' if free else 'fixed'} sizes, {inputs}, {case.outputs}, {attributes}"


DRAWS = drawn_contributed_attention.DRAWS | drawn_contributed_layout.DRAWS | drawn_contributed_quantized.DRAWS


if __name__ == "__main__":
    sys.exit(drawn_cases.main({op: functools.partial(check, op=op, draw=draw) for op, draw in DRAWS.items()}, *sys.argv[1:4]))
