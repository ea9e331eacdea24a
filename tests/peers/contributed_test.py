"""The operators of onnxruntime's own (com.microsoft) against onnxruntime, in small models of one node each.

    TINY_CLI=build/release/tools/tiny contributed_test.py [PATTERN] [--save FOLDER]

Each case runs on machine code (one thread and two) and in the interpreter, under TINY_SPEC=1, with fixed sizes
and with free ones. --save writes the cases as the onnx package has its own, and runs none.
"""

import argparse
import os
import pathlib
import re
import subprocess
import sys
import tempfile

try:
    import numpy as np
    import contributed_attention
    import contributed_experts
    import contributed_layout
    import contributed_quantized
    from case_folder import save_case
    from contributed_case import QUANTISED, Case, difference, floats, integers, random, wanted_of
except ImportError as missing:
    print(f"skipped: this interpreter lacks {missing.name}; scripts/setup.sh makes one that has it")
    sys.exit(77)

HERE = pathlib.Path(__file__).resolve().parent
TINY = os.environ.get("TINY_CLI", str(HERE.parents[1] / "build/release/tools/tiny"))
RUNS = [("cpu", 1), ("cpu", 2), ("interp", 1)]
def activations():
    x, bias = floats(1, 3, 5, 16), floats(2, 16)
    for op, has_bias in (("Gelu", 0), ("BiasGelu", 1), ("FastGelu", 1), ("FastGelu", 0), ("QuickGelu", 0)):
        yield Case(f"{op}_{has_bias}", op, {"x": x * 3, **({"bias": bias} if has_bias else {})})
    yield Case("QuickGelu_alpha", "QuickGelu", {"x": x}, alpha=0.7)


def normalizations():
    x, skip, gamma, beta, bias = (floats(i, *s) for i, s in enumerate(
        [(2, 5, 32), (2, 5, 32), (32,), (32,), (32,)]))  # fmt: skip
    full = {"x": x, "skip": skip, "gamma": gamma, "beta": beta, "bias": bias}
    yield Case("SkipLayerNormalization", "SkipLayerNormalization", full, ["y", "", "", "sum"],
               epsilon=1e-5)  # fmt: skip
    yield Case("SkipLayerNormalization_few", "SkipLayerNormalization", {"x": x, "skip": skip, "gamma": gamma})
    yield Case("SkipLayerNormalization_one_skip", "SkipLayerNormalization", full | {"skip": skip[:1]})
    yield Case("SkipLayerNormalization_rows", "SkipLayerNormalization",
               full | {"x": x[0], "skip": skip[0]})  # fmt: skip
    del full["beta"]
    op = "SkipSimplifiedLayerNormalization"
    yield Case(op, op, full, ["y", "", "", "sum"], epsilon=1e-6)
    yield Case(f"{op}_few", op, {"x": x, "skip": skip, "gamma": gamma})


def products():
    a, b = floats(1, 2, 3, 4, 5), floats(2, 2, 3, 5, 6)
    turned = lambda x: np.ascontiguousarray(np.swapaxes(x, -1, -2))
    outer = lambda x: np.ascontiguousarray(np.moveaxis(x, -2, 0))
    for i in range(16):
        ta, tb, oa, ob = (bool(i & bit) for bit in (1, 2, 4, 8))
        left, right = turned(a) if ta else a, turned(b) if tb else b
        yield Case(f"FusedMatMul_{i}", "FusedMatMul",
                   {"a": outer(left) if oa else left, "b": outer(right) if ob else right}, transA=int(ta),
                   transB=int(tb), transBatchA=int(oa), transBatchB=int(ob),
                   alpha=0.5 if i % 3 else 1.0)  # fmt: skip
    yield Case("FusedMatMul_weights", "FusedMatMul", {"a": floats(1, 7, 64), "b": floats(2, 48, 64)},
               weights=["b"], transB=1, alpha=0.125)  # fmt: skip
    for name, numbers in (("Relu", {}), ("LeakyRelu", {"activation_alpha": 0.3}), ("Tanh", {}),
                          ("Elu", {"activation_alpha": 0.5}),
                          ("HardSigmoid", {"activation_alpha": 0.3, "activation_beta": 0.4})):  # fmt: skip
        yield Case(f"FusedGemm_{name}", "FusedGemm",
                   {"a": floats(1, 7, 8), "b": floats(2, 9, 8), "c": floats(3, 9)}, weights=["b", "c"],
                   transB=1, alpha=0.5, beta=2.0, activation=name, **numbers)  # fmt: skip
    for name, numbers in (("Relu", []), ("Clip", [-0.5, 0.5]), ("LeakyRelu", [0.2]),
                          ("HardSigmoid", [0.2, 0.5])):  # fmt: skip
        params = {"activation_params": numbers} if numbers else {}
        yield Case(f"FusedConv_{name}", "FusedConv",
                   {"x": floats(1, 1, 3, 8, 8), "w": floats(2, 4, 3, 3, 3), "b": floats(3, 4)},
                   weights=["w", "b"], pads=[1, 1, 1, 1], activation=name, **params)  # fmt: skip
    yield Case("FusedConv_sum", "FusedConv",
               {"x": floats(1, 1, 3, 8, 8), "w": floats(2, 4, 3, 3, 3), "b": floats(3, 4),
                "z": floats(4, 1, 4, 8, 8)}, weights=["w", "b"], pads=[1, 1, 1, 1],
               activation="Relu")  # fmt: skip


def quantised_products():
    a = floats(1, 5, 32)
    for kind in (np.uint8, np.int8):
        b, columns = integers(2, kind, 32, 24), random(3).uniform(0.01, 0.02, 24).astype(np.float32)
        zeros = integers(4, kind, 24)
        for name, scale, zero in (("one", np.float32(0.02), kind(3)), ("columns", columns, zeros)):
            yield Case(f"DynamicQuantizeMatMul_{kind.__name__}_{name}", "DynamicQuantizeMatMul",
                       {"a": a, "b": b, "scale": np.array(scale), "zero": np.array(zero), "bias": floats(5, 24)},
                       weights=["b", "scale", "zero", "bias"])  # fmt: skip
            yield Case(f"MatMulIntegerToFloat_{kind.__name__}_{name}", "MatMulIntegerToFloat",
                       {"a": integers(6, np.uint8, 5, 32), "b": b, "a_scale": np.array(0.03, np.float32),
                        "b_scale": np.array(scale), "a_zero": np.array(7, np.uint8), "b_zero": np.array(zero),
                        "bias": floats(5, 24)}, weights=["b", "b_scale", "b_zero", "bias"])  # fmt: skip


def quantised_lstm():
    steps, batch, size, hidden = 9, 1, 24, 20
    for direction, count in (("forward", 1), ("reverse", 1), ("bidirectional", 2)):
        for kind in (np.uint8, np.int8):
            for per_row in (False, True):
                shape = (count, 4 * hidden) if per_row else (count,)
                scale = lambda seed: random(seed).uniform(0.001, 0.003, shape).astype(np.float32)
                middle = 128 if kind == np.uint8 else 0
                zero = np.full(shape, middle, kind) if per_row else integers(9, kind, *shape)
                inputs = {"x": floats(1, steps, batch, size),
                          "w": integers(2, kind, count, size, 4 * hidden),
                          "r": integers(3, kind, count, hidden, 4 * hidden),
                          "b": floats(4, count, 8 * hidden) * np.float32(0.1), "lengths": None,
                          "h": floats(5, count, batch, hidden), "c": floats(6, count, batch, hidden), "p": None,
                          "w_scale": scale(7), "w_zero": zero, "r_scale": scale(8), "r_zero": zero}  # fmt: skip
                yield Case(f"DynamicQuantizeLSTM_{direction}_{kind.__name__}_{'rows' if per_row else 'one'}",
                           "DynamicQuantizeLSTM", inputs, 3,
                           weights=["w", "r", "b", "w_scale", "w_zero", "r_scale", "r_zero"],
                           tolerance=QUANTISED, hidden_size=hidden, direction=direction)  # fmt: skip


CASES = (activations, normalizations, products, quantised_products, quantised_lstm, *contributed_attention.CASES,
         *contributed_quantized.CASES, *contributed_layout.CASES, *contributed_experts.CASES)  # fmt: skip


def check(case, folder):
    """What is wrong with the case, by line."""
    wanted = wanted_of(case)
    np.savez(folder / "inputs.npz", **case.given())
    for free in (False, True):
        path = folder / ("free.onnx" if free else "fixed.onnx")
        path.write_bytes(case.model(free).SerializeToString())
        for device, threads in RUNS:
            where = f"{case.name} {device} {threads} {'free' if free else 'fixed'}"
            done = subprocess.run(
                [TINY, "run", path, "--input", folder / "inputs.npz", "--device", device, "--save",
                 folder / "outputs.npz", "--print", "none", "-q"], capture_output=True, text=True,
                env=os.environ | {"TINY_THREADS": str(threads), "TINY_SPEC": "1"})  # fmt: skip
            if done.returncode != 0:
                yield f"{where}: exit status {done.returncode}: {done.stdout}{done.stderr}"
                continue
            with np.load(folder / "outputs.npz") as got:
                for name, want in wanted.items():
                    error = difference(case, got[name], want)
                    if not error <= 1:
                        yield (f"{where}: {name} of {got[name].dtype} {got[name].shape} is {error:.1e} times as far "
                               f"from {want.dtype} {want.shape} as it may be")  # fmt: skip


def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("pattern", nargs="?", default="")
    arguments.add_argument("--save", type=pathlib.Path)
    given = arguments.parse_args()
    pattern = re.compile(given.pattern)
    cases = [case for make in CASES for case in make() if pattern.search(case.name)]
    if given.save:
        for case in cases:
            save_case(given.save / case.name, case.model(False).SerializeToString(), case.given())
        return 0
    failures = []
    for case in cases:
        with tempfile.TemporaryDirectory() as folder:
            failures += check(case, pathlib.Path(folder))
    print(*failures, f"{len(cases)} cases, {len(failures)} failures", sep="\n")
    return 1 if failures or not cases else 0


if __name__ == "__main__":
    sys.exit(main())
