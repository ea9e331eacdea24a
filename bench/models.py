"""Whole models beside onnxruntime: alternating turns in one process, one process per row.

    models.py MODEL SECONDS THREADS [LENGTH]    prints one row as JSON

LENGTH is the size of the model's free dimensions but the first.
"""

import importlib.util
import json
import pathlib
import sys

import peers
import timing
from kernels import environment
from report import at_least, evaluate, geometric_mean, json_of, rows_text

TURN = 0.1  # seconds that a contender has before the other's turn
PAUSE = 0.005  # before a turn, where threads may spin on after the last one
LENGTHS = (32, 128)
LARGE = ("bert_base_17", "bert_base_23")  # models of a free length, one row each
QUICK = ("squeezenet", "mobilenet_v2", "transformer", "magika", "bert_base_17 at 32")
VOCABULARY = 100  # token numbers and positions stay below: the least table of tests/peers/make_models.py's
# Sums in another order round a value of eight bits to its neighbour now and then: tests/peers/models_test.py's.
TOLERANCES = {"resnet_int8": 1e-2}


def found(folder):
    """{name: (path, length)} of the generated models and of Magika's, out of its wheel."""
    models = {}
    for path in sorted(folder.glob("*/model.onnx")):
        name = path.parent.name
        if name in LARGE:
            models |= {f"{name} at {length}": (path, length) for length in LENGTHS}
        else:
            models[name] = (path, None)
    magika = importlib.util.find_spec("magika")
    if magika:
        for path in sorted(pathlib.Path(magika.origin).parent.glob("models/*/model.onnx"))[-1:]:
            models["magika"] = (path, None)
    return models


def inputs_of(path, session, length=None):
    """{name: array}: the model's first data set, or seeded values where there is none or a length."""
    import numpy

    arrays = {}
    random = numpy.random.default_rng(7)
    for index, port in enumerate(session.get_inputs()):
        stored = path.parent / f"test_data_set_0/input_{index}.pb"
        if stored.exists() and length is None:
            import onnx.numpy_helper

            tensor = onnx.TensorProto.FromString(stored.read_bytes())
            arrays[port.name] = onnx.numpy_helper.to_array(tensor)
            continue
        free = [1] + [length or 1] * len(port.shape)
        shape = [s if isinstance(s, int) else free[axis] for axis, s in enumerate(port.shape)]
        if "int" in port.type:
            dtype = {"tensor(int32)": "int32", "tensor(int64)": "int64"}[port.type]
            most = VOCABULARY if length else 256
            arrays[port.name] = random.integers(0, most, shape).astype(dtype)
        else:
            arrays[port.name] = random.standard_normal(shape).astype("float32")
    return arrays


def measure(path, seconds, threads, length):
    session = peers.session_of(str(path), threads)
    arrays = inputs_of(path, session, length)
    reference = peers.onnxruntime_contender(session, arrays)
    tiny = peers.TinyModel(path, arrays, threads)
    contenders = [tiny.contender(session, reference), reference,
                  timing.fma_limit(tiny.operations, threads)]  # fmt: skip
    pause = PAUSE if threads > 1 else 0.0
    # By one thread: onnxruntime's ScatterND on several loses updates of equal indices.
    right = peers.session_of(str(path), 1).run(None, arrays) if threads > 1 else None
    tolerance = TOLERANCES.get(path.parent.name, timing.TOLERANCE)
    figures, dropped = timing.measure(contenders, seconds, TURN, pause, tolerance, right)
    return {"flops": tiny.operations, "bytes": 0, "threads": threads, "contenders": figures,
            "notes": dropped, **tiny.about}  # fmt: skip


def measured_rows(arguments):
    models = found(arguments.models)
    if arguments.large:
        models |= {name: entry for name, entry in found(arguments.large).items() if " at " in name}
    rows = []
    for threads in (1, 2):
        for name, (path, length) in models.items():
            full = f"model {name}, {threads} thread{'s' if threads > 1 else ''}"
            if arguments.only not in full or (arguments.quick and name not in QUICK):
                continue
            print(f"bench: {full}", file=sys.stderr)
            command = [sys.executable, "-B", __file__, path, arguments.duration, threads]
            try:
                row = json_of(command + ([length] if length else []), environment(threads))
                if not any(c["kind"] == "peer" for c in row["contenders"]):
                    row = {"failed": "; ".join(row["notes"]), "threads": threads}
            except RuntimeError as problem:  # the other rows are worth having
                row = {"failed": str(problem)[-300:], "threads": threads}
            rows.append({"name": full, **row})
    return rows


def run(arguments):
    """The part "models" of bench/run: its figures and its table."""
    rows = measured_rows(arguments)
    if not rows:
        raise SystemExit(f"no models in {arguments.models} whose name has {arguments.only!r}")
    figures, lines = [], []
    for threads in (1, 2):
        some = [row for row in rows if row["threads"] == threads and "failed" not in row]
        if not some:
            continue
        for row in some:
            evaluate(row)
        best, middle = (geometric_mean([row[key] for row in some])
                        for key in ("ratio", "ratio_median"))  # fmt: skip
        name = f"geometric mean of {len(some)} models, threads {threads}"
        target = at_least("models: geometric mean", best)
        figures.append({"name": name, "ratio": best, "ratio_median": middle, "target": target})
        lines.append(f"{name}: ratio {best:.2f}, of medians {middle:.2f}. {target}")
    text = rows_text(rows) + "\n\n" + "\n\n".join(lines)
    return {"rows": rows, "figures": figures,
            "settings": peers.settings_lines(("onnxruntime",))}, text  # fmt: skip


if __name__ == "__main__":
    print(json.dumps(measure(pathlib.Path(sys.argv[1]), float(sys.argv[2]), int(sys.argv[3]),
                             int(sys.argv[4]) if len(sys.argv) > 4 else None)))  # fmt: skip
