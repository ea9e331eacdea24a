"""Whole models beside onnxruntime: alternating turns in one process, one process per model.

    models.py MODEL SECONDS     prints one JSON object; needs the Python binding and the wheels
"""

import importlib.util
import json
import pathlib
import sys
import time

from report import geometric_mean, json_of, median, table

TURN = 0.1  # seconds that a contender has before the other's turn
ROUNDS = 3  # turns of each, at the least
TOLERANCE = 1e-3  # of the outputs' largest magnitude


def found(folder):
    """{name: path} of the generated models and of Magika's, out of its wheel."""
    paths = {path.parent.name: path for path in sorted(folder.glob("*/model.onnx"))}
    magika = importlib.util.find_spec("magika")
    if magika:
        for path in sorted(pathlib.Path(magika.origin).parent.glob("models/*/model.onnx"))[-1:]:
            paths["magika"] = path
    return paths


def inputs_of(path, session):
    """{name: array}: the model's first data set, or seeded values where it has none."""
    import numpy
    import onnx.numpy_helper

    arrays = {}
    random = numpy.random.default_rng(7)
    for index, port in enumerate(session.get_inputs()):
        stored = path.parent / f"test_data_set_0/input_{index}.pb"
        if stored.exists():
            tensor = onnx.TensorProto.FromString(stored.read_bytes())
            arrays[port.name] = onnx.numpy_helper.to_array(tensor)
            continue
        shape = [size if isinstance(size, int) else 1 for size in port.shape]
        if "int" in port.type:
            dtype = {"tensor(int32)": "int32", "tensor(int64)": "int64"}[port.type]
            arrays[port.name] = random.integers(0, 256, shape).astype(dtype)
        else:
            arrays[port.name] = random.standard_normal(shape).astype("float32")
    return arrays


def peer_session(path):
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL
    return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


def peer_call(session, arrays):
    """A call that copies neither inputs nor outputs."""
    binding = session.io_binding()
    for name, array in arrays.items():
        binding.bind_cpu_input(name, array)
    for output in session.get_outputs():
        binding.bind_output(output.name)
    return lambda: session.run_with_iobinding(binding), binding


def tiny_run(path, arrays):
    import tiny

    context = tiny.default_context()
    model = tiny.Model.load(context, str(path))
    ordered = [arrays[model.input_name(i)] for i in range(model.input_count)]
    program = model.compile([size for array in ordered for size in array.shape])
    run = tiny.Run.create(program)
    for index, array in enumerate(ordered):
        run.set_input(index, tiny.from_buffer(array, context=context))
    names = [model.output_name(i) for i in range(model.output_count)]
    return run, program, names


def worst_difference(run, names, session, binding):
    """max|a-b| / max|b| of the output that differs most."""
    import numpy

    theirs = dict(zip([o.name for o in session.get_outputs()], binding.copy_outputs_to_cpu()))
    worst = 0.0
    for index, name in enumerate(names):
        ours = numpy.empty_like(theirs[name])
        run.read_output(index, ours)
        largest = float(numpy.abs(theirs[name]).max()) or 1.0
        difference = float(numpy.abs(ours.astype("float64") - theirs[name]).max()) / largest
        worst = max(worst, difference if difference == difference else float("inf"))
    return worst


def take_turn(call, samples):
    end = time.perf_counter() + TURN
    while True:
        start = time.perf_counter()
        call()
        now = time.perf_counter()
        samples.append((now - start) * 1e3)
        if now >= end:
            return


def measure(path, seconds):
    session = peer_session(path)
    arrays = inputs_of(path, session)
    call, binding = peer_call(session, arrays)
    run, program, names = tiny_run(path, arrays)
    contenders = {"tiny": run.execute, "onnxruntime": call}
    for warm in contenders.values():
        warm()
    error = worst_difference(run, names, session, binding)
    if not error <= TOLERANCE:
        raise SystemExit(f"{path}: outputs differ by {error:g} of their largest magnitude")
    samples = {name: [] for name in contenders}
    start, rounds = time.perf_counter(), 0
    while rounds < ROUNDS or time.perf_counter() - start < seconds:
        for name, contender in contenders.items():
            take_turn(contender, samples[name])
        rounds += 1
    row = {"kernels": program.kernel_count, "interpreted": program.interpreted_count, "error": error}
    for name, taken in samples.items():
        row[name] = {"best_ms": min(taken), "median_ms": median(taken), "samples": len(taken)}
    return row


def run(arguments):
    """The part "models" of bench/run: its figures and its table."""
    import onnxruntime

    rows = []
    for name, path in found(arguments.models).items():
        if arguments.only not in name:
            continue
        print(f"bench: {name}", file=sys.stderr)
        row = json_of([sys.executable, "-B", __file__, path, arguments.duration])
        row["name"] = name
        for key in ("best_ms", "median_ms"):
            row["ratio_" + key[:-3]] = row["onnxruntime"][key] / row["tiny"][key]
        rows.append(row)
    if not rows:
        raise SystemExit(f"no models in {arguments.models} whose name has {arguments.only!r}")
    means = {key: geometric_mean([row[key] for row in rows]) for key in ("ratio_best", "ratio_median")}
    cells = [[row["name"], row["kernels"],
              *[f"{row[who][key]:.3f}" for who in ("tiny", "onnxruntime")
                for key in ("best_ms", "median_ms")],
              f"{row['ratio_best']:.2f}", f"{row['ratio_median']:.2f}"] for row in rows]  # fmt: skip
    cells.append(["geometric mean", "", "", "", "", "", f"{means['ratio_best']:.2f}",
                  f"{means['ratio_median']:.2f}"])  # fmt: skip
    header = ["model", "kernels", "tiny best ms", "median", "onnxruntime best ms", "median", "ratio",
              "of medians"]  # fmt: skip
    settings = [f"onnxruntime {onnxruntime.__version__}: intra_op and inter_op threads 1, "
                "ORT_ENABLE_ALL, input and output binding"]
    return {"rows": rows, "geometric_mean": means, "settings": settings}, table(header, cells)


if __name__ == "__main__":
    print(json.dumps(measure(pathlib.Path(sys.argv[1]), float(sys.argv[2]))))
