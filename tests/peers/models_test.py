"""The generated networks against onnxruntime: the values before the softmax agree on three inputs each
to max|a - b| <= 1e-4 max|b|, with the same five greatest and at least 900 distinct values, on machine
code (where no kernel may be interpreted, and some have a bound on their number) and, for four networks,
the interpreter and C.  What is wanted has a standard deviation of 1 to 3 for each input.  All outputs
are equal within the tolerances that `tiny run` has.

The networks without logits (vision.py, sequence.py) agree in every output, by the same measure, and their
outputs are not all of a kind.

    TINY_CLI=build/release/tools/tiny models_test.py [--small] [--models DIR] [--only NAME..]

With the package tiny (PYTHONPATH=build/release/bindings/python) a network is compiled to C once for its
three inputs, without it once for each.

Networks are made by make_models.py in DIR (default build/models) unless they are there already, one at a
time; the three that --small leaves out have 233 to 548 MB.  Each line says how many kernels ran and how
many of them were interpreted.
"""

import argparse
import itertools
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

try:
    import numpy as np
    import onnx
    import onnxruntime  # noqa: F401: make_models.py needs it
    from onnx import numpy_helper
    import sequence
    import vision
except ImportError as missing:
    print(f"skipped: this interpreter lacks {missing.name}; scripts/setup.sh makes one that has it")
    sys.exit(77)

try:
    import tiny
except ImportError:
    tiny = None

HERE = pathlib.Path(__file__).resolve().parent
TINY = os.environ.get("TINY_CLI", str(HERE.parents[1] / "build/release/tools/tiny"))
SMALL = ["squeezenet", "shufflenet", "mobilenet_v2", "transformer", "inception_v1", "densenet121",
         "inception_v2", "resnet18", "resnet50"]  # fmt: skip
LARGE = ["bvlc_alexnet", "zfnet512", "vgg19"]
OTHERS = [*vision.NETWORKS, *sequence.NETWORKS]
EVERY_DEVICE = ["squeezenet", "shufflenet", "mobilenet_v2", "transformer"]
# The most kernels that a network may become: of the encoder's four layers each 12; ResNet-50 has thirteen
# convolutions in Winograd tiles, each three kernels instead of one.
KERNELS = {"mobilenet_v2": 54, "resnet50": 58 + 2 * 13, "transformer": 4 * 12 + 5}
TOLERANCE, TOP, DISTINCT, SPREAD = 1e-4, 5, 900, (1, 3)
# Sums in another order round a value of eight bits to its neighbour now and then.
TOLERANCES = {"resnet_int8": 1e-2}
# Of the values of an output, at least so many parts are distinct: the rest are zeros and equal sums.
DISTINCT_PARTS = 0.9


def load(path):
    tensor = onnx.TensorProto()
    tensor.ParseFromString(path.read_bytes())
    return numpy_helper.to_array(tensor)


def logits_file(folder):
    """The data set's file of the output before the softmax."""
    for path in sorted(folder.glob("output_*.pb")):
        tensor = onnx.TensorProto()
        tensor.ParseFromString(path.read_bytes())
        if tensor.name == "logits":
            return path
    raise SystemExit(f"{folder} has no logits")


def disagreement(got, want):
    """What is wrong with `got`, or "", and the greatest error in parts of the greatest value."""
    error = float(np.abs(got - want).max() / np.abs(want).max())
    if not error <= TOLERANCE:
        return f"an error of {error:.2e}", error
    for a, b in zip(got.reshape(-1, want.shape[-1] if want.ndim == 2 else want.size),
                    want.reshape(-1, want.shape[-1] if want.ndim == 2 else want.size)):  # fmt: skip
        if list(np.argsort(-a, kind="stable")[:TOP]) != list(np.argsort(-b, kind="stable")[:TOP]):
            return f"other than the {TOP} greatest", error
        if len(np.unique(a)) < DISTINCT:
            return f"only {len(np.unique(a))} distinct values", error
        if not SPREAD[0] <= float(b.std()) <= SPREAD[1]:
            return f"a standard deviation of {float(b.std()):.2f} wanted", error
    return "", error


def verdict(where, got, want, kernels, interpreted, ended):
    """A line about one run, and whether all is as it must be."""
    name, _, device = where
    wrong, error = disagreement(got, want.reshape(got.shape))
    wanted = {"cpu": 0, "c": 0, "interp": kernels}[device]
    if not wrong and interpreted != wanted:
        wrong = f"{wanted} kernels should be interpreted"
    if not wrong and device == "cpu" and kernels > KERNELS.get(name, kernels):
        wrong = f"{KERNELS[name]} kernels would do"
    line = f"{' '.join(map(str, where))}: error {error:.1e}, {kernels} kernels, {interpreted} interpreted"
    return f"{line}{ended}{': ' + wrong if wrong else ''}", not wrong


def check(models, name, data_set, device, out):
    """Runs one input through the command line, as `verdict`."""
    folder = models / name / f"test_data_set_{data_set}"
    done = subprocess.run(
        [TINY, "run", models / name / "model.onnx", "--data", folder, "--device", device,
         "--outputs", "logits", "--save", out / "logits.npz", "--print", "none", "--json", "-q"],
        capture_output=True, text=True)  # fmt: skip
    if done.returncode != 0:
        return f"{name} {data_set} {device}: exit status {done.returncode}: {done.stdout}{done.stderr}", False
    report = json.loads(done.stdout)
    kernels = report["kernels"]
    with np.load(out / "logits.npz") as saved:
        got = saved["logits"]
    return verdict((name, data_set, device), got, load(logits_file(folder)), kernels["count"],
                   kernels["interpreted"], f", {report['times_ms']['first_run']:.0f} ms")  # fmt: skip


def check_all_outputs(models, name, data_set, out):
    """Runs one input of a network without logits, as `verdict`."""
    folder = models / name / f"test_data_set_{data_set}"
    done = subprocess.run(
        [TINY, "run", models / name / "model.onnx", "--data", folder, "--device", "cpu", "--rtol", "1",
         "--atol", "1e9", "--save", out / "all.npz", "--print", "none", "--json", "-q"],
        capture_output=True, text=True)  # fmt: skip
    if done.returncode != 0:
        return f"{name} {data_set}: exit status {done.returncode}: {done.stdout}{done.stderr}", False
    kernels = json.loads(done.stdout)["kernels"]
    wrong = [f"{kernels['interpreted']} kernels are interpreted"] if kernels["interpreted"] else []
    errors = []
    with np.load(out / "all.npz") as got:
        for path in sorted(folder.glob("output_*.pb")):
            port, want = onnx.TensorProto.FromString(path.read_bytes()).name, load(path)
            errors.append(float(np.abs(got[port] - want).max() / np.abs(want).max()))
            if got[port].shape != want.shape or not errors[-1] <= TOLERANCES.get(name, TOLERANCE):
                wrong.append(f"{port} of {got[port].shape} with an error of {errors[-1]:.2e}")
            if len(np.unique(got[port])) < DISTINCT_PARTS * want.size:
                wrong.append(f"{port} has {len(np.unique(got[port]))} distinct values")
    line = f"{name} {data_set}: error {max(errors):.1e}, {kernels['count']} kernels"
    return ": ".join([line, *wrong]), not wrong


def check_in_one(models, name, device):
    """Runs every input on one loaded model through the package; a verdict of each."""
    options = tiny.Options.create()
    options.set_string("device", device)
    context = tiny.Context.create(options)
    model = tiny.Model.load(context, str(models / name / "model.onnx"))
    counted = lambda: json.loads(context.counters().text())["kernels"]
    for folder in sorted((models / name).glob("test_data_set_*")):
        before = counted()["launched"]
        outputs = model.run([load(folder / "input_0.pb")])
        got = outputs[model.output_index("logits")].numpy()
        kernels = counted()
        yield verdict((name, folder.name[-1], device), got, load(logits_file(folder)),
                      kernels["launched"] - before, kernels["interpreted"], "")  # fmt: skip


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--small", action="store_true")
    parser.add_argument("--models", type=pathlib.Path, default=HERE.parents[1] / "build/models")
    parser.add_argument("--only", nargs="+", metavar="NAME", choices=SMALL + LARGE + OTHERS)
    parser.add_argument("--keep", action="store_true", help="keep the networks that were made")
    arguments = parser.parse_args()
    names = arguments.only or SMALL + OTHERS + ([] if arguments.small else LARGE)
    failures = checks = 0
    for name in names:
        made = not (arguments.models / name / "test_data_set_2/output_0.pb").exists()
        if made:
            subprocess.run([sys.executable, "-B", HERE / "make_models.py", arguments.models, "--only",
                            name], check=True)  # fmt: skip
        cases = [(i, "cpu") for i in range(3)]
        apart = ("interp",) if tiny else ("interp", "c")
        cases += [(i, device) for device in apart for i in range(3) if name in EVERY_DEVICE]
        with tempfile.TemporaryDirectory() as out:
            verdicts = (check_all_outputs(arguments.models, name, data_set, pathlib.Path(out))
                        if name in OTHERS else
                        check(arguments.models, name, data_set, device, pathlib.Path(out))
                        for data_set, device in cases)  # fmt: skip
            if tiny and name in EVERY_DEVICE:
                verdicts = itertools.chain(verdicts, check_in_one(arguments.models, name, "c"))
            for line, right in verdicts:
                print(line, flush=True)
                checks += 1
                failures += not right
        if made and not arguments.keep:
            shutil.rmtree(arguments.models / name)
    print(f"{checks - failures} passed, {failures} failed, 0 skipped")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
