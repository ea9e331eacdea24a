"""Every model of a folder tree against onnxruntime: what is refused, wrong, slower, slow to compile, and why.

    tests/peers/run_corpus DIR [--only TEXT] [--seconds S] [--no-times] [--json FILE] [--write DOCUMENT] [--all]

Inputs are synthesised (inputs.py), with two sizes where dimensions are free; a folder test_data_set_0 beside a model has its own.
Results are compared by docs/semantics.md, "Whole models".  Times are those of one thread, of turns in one process; each model has
a process of its own, so that what ends it is told too.  The exit status is 1 if a model is refused, wrong or has kernels that are
interpreted since there was no machine code for them.
"""

import argparse
import dataclasses
import json
import multiprocessing
import os
import pathlib
import signal
import sys
import time

import inputs
import numpy as np
import onnx
import onnxruntime
import peers
import timing
import tiny
import wide
from report import geometric_mean, table

TOLERANCE = 1e-4  # of an output's largest magnitude; docs/semantics.md, "Whole models"
HALF_TOLERANCE, STEP_TOLERANCE = 4e-3, 2e-2  # of models with 16-bit floats; with values of 8 bits or fewer
MORE_THAN_THEIRS = 4  # an error that is this many times the peer's is ours
OTHER_DRAWS = 16  # inputs over which it must be: what is left of terms that cancel is chance in one of them
APART = 1e-3  # the share of an output's integers that may differ
SLOWER = 1.2  # of onnxruntime's time
COMPILE_RATIO, COMPILE_LEAST_S = 4.0, 0.3  # from file to first output: slow from both on
TURN_S, LONGEST_S = 0.02, 240
REFERENCE_S = 60
TRACES = 9  # runs whose least times tell the slowest kernels
NARROW_STEPS = {"QuantizeLinear", "DynamicQuantizeLinear", "QLinearConv", "QLinearMatMul", "MatMulInteger", "ConvInteger", "MatMulNBits",
                "DequantizeLinear", "QGemm", "QLinearAdd", "QAttention", "DynamicQuantizeMatMul"}  # fmt: skip


@dataclasses.dataclass
class Outcome:
    name: str
    state: str = "right"  # right, refused, wrong, interpreted, not run
    cause: str = ""
    error: float = 0.0
    ratio: float = 0.0  # tiny's best time over onnxruntime's
    median_ratio: float = 0.0
    tiny_ms: float = 0.0
    peer_ms: float = 0.0
    compile_s: float = 0.0
    peer_compile_s: float = 0.0
    kernels: int = 0
    slowest: str = ""

    @property
    def is_slow_to_compile(self):
        return self.compile_s > COMPILE_LEAST_S and self.compile_s > COMPILE_RATIO * self.peer_compile_s


class TooLong(Exception):
    pass


def late(signum, frame):
    raise TooLong


def tolerance_of(model):
    nodes = [node for graph in inputs.graphs_of(model.graph) for node in graph.node]
    if any(node.op_type in NARROW_STEPS for node in nodes):
        return STEP_TOLERANCE
    kinds = {tensor.data_type for graph in inputs.graphs_of(model.graph) for tensor in graph.initializer}
    kinds |= {port.type.tensor_type.elem_type for port in model.graph.input}
    half = kinds & {onnx.TensorProto.FLOAT16, onnx.TensorProto.BFLOAT16}
    return HALF_TOLERANCE if half else TOLERANCE


def error_of(got, want):
    """The greatest difference in parts of the greatest magnitude; of integers the share that differs."""
    if got.shape != want.shape:
        return float("inf")
    if want.size == 0:
        return 0.0
    if want.dtype.kind in "OSU":
        return 0.0 if (got.astype(str) == want.astype(str)).all() else float("inf")
    if want.dtype.kind in "iub":
        return 0.0 if (got != want).mean() <= APART else float((got != want).mean())
    a, b = got.astype(np.float64), want.astype(np.float64)
    same = (a == b) | (np.isnan(a) & np.isnan(b))
    gap = np.where(same, 0.0, np.abs(a - b))
    finite = np.abs(b[np.isfinite(b)])
    largest = float(finite.max()) if finite.size else 0.0
    worst = float(np.nan_to_num(gap, nan=np.inf).max())
    return worst / (largest or 1.0)


def drawn_again(arrays, seed):
    rng = np.random.default_rng(seed)
    return {name: rng.standard_normal(array.shape).astype(array.dtype) if array.dtype.kind == "f" else array
            for name, array in arrays.items()}  # fmt: skip


def errors_over_draws(model, arrays, engines):
    """For each engine and output the root mean square of its errors over other inputs of these shapes."""
    squares = 0
    for seed in range(OTHER_DRAWS):
        given = drawn_again(arrays, seed)
        right = [np.asarray(value) for value in wide.outputs(model, given)]
        squares = squares + np.array([[error_of(a, r) ** 2 for a, r in zip(run(given), right)] for run in engines])
    return np.sqrt(squares / OTHER_DRAWS)


def disagreement(model, arrays, got, want, tolerance, engines):
    """ "" and the error, or what is wrong with `got`; `engines`: tiny's outputs and the peer's as functions of inputs."""
    errors = [error_of(a, b) for a, b in zip(got, want)]
    if max(errors) <= tolerance:
        return "", max(errors)
    worst = errors.index(max(errors))
    name = model.graph.output[worst].name
    if got[worst].shape != want[worst].shape:
        return f"{name} has the shape {list(got[worst].shape)}, wanted {list(want[worst].shape)}", errors[worst]
    said = f"{name} differs by {errors[worst]:.1e}"
    signal.alarm(REFERENCE_S)
    try:
        right = wide.outputs(model, arrays)
    except TooLong:
        return f"{said}; the reference takes too long", errors[worst]
    except Exception as error:
        return f"{said}; no reference: {str(error)[:80]}", errors[worst]
    finally:
        signal.alarm(0)
    ours = [error_of(a, np.asarray(r)) for a, r in zip(got, right)]
    theirs = [error_of(b, np.asarray(r)) for b, r in zip(want, right)]
    bad = [i for i, (a, b) in enumerate(zip(ours, theirs)) if a > tolerance and a > MORE_THAN_THEIRS * b]
    if not bad:
        return "", max(ours)
    # Where a rounded value decides (the integer part of a logarithm), each operation rounds as the model's types say.
    rounded = wide.rounded_outputs(model, arrays)
    if rounded and max(map(error_of, got, rounded)) <= tolerance:
        return "", max(map(error_of, got, rounded))
    signal.alarm(REFERENCE_S)
    try:
        means = errors_over_draws(model, arrays, engines)
        if not any(a > tolerance and a > MORE_THAN_THEIRS * b for a, b in zip(*means)):
            return "", max(means[0])
    except Exception:
        pass  # other inputs are not in range, or take too long: the first ones decide
    finally:
        signal.alarm(0)
    i = max(bad, key=ours.__getitem__)
    return f"{model.graph.output[i].name} is off the float64 reference by {ours[i]:.1e}, onnxruntime by {theirs[i]:.1e}", ours[i]


def peer_session(path):
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


def plain(value):
    """A sequence of maps as the columns of their values."""
    if isinstance(value, list) and value and isinstance(value[0], dict):
        return np.array([list(row.values()) for row in value], np.float32)
    return np.asarray(value)


def usable_inputs(path, model, session, which):
    """Inputs that onnxruntime takes, and its outputs; integers grow smaller until they are in range."""
    here = path.parent / "test_data_set_0"
    given = inputs.stored(here, model) if which == 0 and here.is_dir() else None
    for bound in (None, 4, 2, 1):
        arrays = given or inputs.synthesised(model, which, bound)
        try:
            return arrays, [plain(value) for value in session.run(None, arrays)]
        except Exception as error:
            said = error
    raise said


def tiny_outputs(model, arrays):
    values = model.run([arrays[model.input_name(i)] for i in range(model.input_count)])
    return [plain(value) if isinstance(value, list) else np.array(value.numpy()) for value in values]


def compile_times(path, arrays):
    """CPU seconds from the file to the first output, of tiny without its disk cache and of onnxruntime."""
    start = time.process_time()
    context = tiny.Context(threads=1, cache=0)
    tiny_outputs(tiny.Model.load(context, str(path)), arrays)
    middle = time.process_time()
    peer_session(path).run(None, arrays)
    return middle - start, time.process_time() - middle


class Timed:
    """A call of each engine on bound inputs; where elements decide shapes, the call that reads them."""

    def __init__(self, path, arrays):
        self.session = peer_session(path)
        binding = self.session.io_binding()
        for port in self.session.get_inputs():
            binding.bind_cpu_input(port.name, arrays[port.name])
        for output in self.session.get_outputs():
            binding.bind_output(output.name)
        self.peer = lambda: self.session.run_with_iobinding(binding)
        try:
            self.peer()
            self.peer()  # where an output has another shape than the file says the second call fails
        except RuntimeError:
            self.peer = lambda: self.session.run(None, arrays)
        try:
            self.model = peers.TinyModel(path, arrays, 1, cache=0)
            self.model.run.execute()
            self.ours, self.kernels = self.model.run.execute, self.model.about["kernel_count"]
        except tiny.Error:
            context = tiny.Context(threads=1, cache=0)
            model = tiny.Model.load(context, str(path))
            given = [tiny.from_buffer(arrays[model.input_name(i)], context=context) for i in range(model.input_count)]
            self.ours, self.kernels, self.model = lambda: model.run(given), 0, None
            self.peer = lambda: self.session.run(None, arrays)

    def measure(self, seconds):
        """Samples of both, in turns, in milliseconds."""
        contenders = [timing.Contender("tiny", "tiny", self.ours), timing.Contender("onnxruntime", "peer", self.peer)]
        samples = {c.name: [] for c in contenders}
        for contender in contenders:
            contender.call()
        end, rounds = time.perf_counter() + seconds, 0
        while rounds < 3 or time.perf_counter() < end:
            for contender in contenders:
                timing.take_turn(contender, TURN_S, 0.0, samples[contender.name])
            rounds += 1
        return samples["tiny"], samples["onnxruntime"]

    def slowest(self):
        """The kernels that take the most of a run, and what they compute."""
        if self.model is None:
            return "elements decide shapes"
        self.model.run.set_timed(True)
        least = {}
        for _ in range(TRACES):
            self.model.run.execute()
            events = json.loads(self.model.run.trace().text())["traceEvents"]
            for place, event in enumerate(event for event in events if event.get("ph") == "X"):
                least[place] = min(event["dur"], least.get(place, (event["dur"],))[0]), event["name"]
        spans = sorted(least.values(), reverse=True)
        total = sum(span for span, _ in spans) or 1
        return "; ".join(f"{span / total:.0%} {name} {span:.1f} us" for span, name in spans[:3])


def examine(path, name, options, tell):
    """`tell` is told whose work begins: who is at work when the process ends has ended it."""
    outcome = Outcome(name)
    tell("onnxruntime")
    model = onnx.load(str(path))
    try:
        session = peer_session(path)
        first, want = usable_inputs(path, model, session, 0)
    except Exception as error:
        outcome.state, outcome.cause = "not run", f"onnxruntime: {str(error)[:200]}"
        return outcome
    tolerance = tolerance_of(model)
    sizes = [(first, want)]
    if inputs.is_free(model):
        try:
            sizes.append(usable_inputs(path, model, session, 1))
        except Exception:
            pass  # the second size does not fit the graph: the first one stands for it
    tell("tiny")
    try:
        context = tiny.Context(threads=1, cache=0)
        loaded = tiny.Model.load(context, str(path))
        engines = (lambda given: tiny_outputs(loaded, given), lambda given: [plain(value) for value in session.run(None, given)])
        for arrays, wanted in sizes:
            said, error = disagreement(model, arrays, tiny_outputs(loaded, arrays), wanted, tolerance, engines)
            outcome.error = max(outcome.error, error)
            if said:
                outcome.state, outcome.cause = "wrong", said
                return outcome
    except tiny.Error as error:
        outcome.state, outcome.cause = "refused", str(error)[:400]
        return outcome
    interpreted = json.loads(context.counters().text())["kernels"]["interpreted"]
    if interpreted:
        outcome.state, outcome.cause = "interpreted", f"{interpreted} kernels have no machine code"
        return outcome
    if options.times:
        outcome.compile_s, outcome.peer_compile_s = compile_times(path, first)
        timed = Timed(path, first)
        ours, theirs = timed.measure(options.seconds)
        outcome.tiny_ms, outcome.peer_ms = min(ours), min(theirs)
        outcome.ratio = min(ours) / min(theirs)
        outcome.median_ratio = float(np.median(ours) / np.median(theirs))
        outcome.kernels = timed.kernels
        if outcome.ratio > SLOWER or options.all:
            outcome.slowest = timed.slowest()
    return outcome


def in_own_process(path, name, options):
    reader, writer = multiprocessing.Pipe(False)

    def child():
        signal.signal(signal.SIGALRM, late)
        try:
            writer.send(examine(path, name, options, writer.send))
        except Exception as error:
            writer.send(Outcome(name, "wrong", f"{type(error).__name__}: {str(error)[:300]}"))

    process = multiprocessing.Process(target=child)
    process.start()
    writer.close()
    outcome, at_work, end = None, "", time.monotonic() + LONGEST_S
    while outcome is None and reader.poll(max(end - time.monotonic(), 0)):
        try:
            told = reader.recv()
        except EOFError:
            break
        outcome, at_work = (None, told) if isinstance(told, str) else (told, at_work)
    else:
        if outcome is None:
            process.kill()
    process.join()
    if outcome is None:
        how = f"more than {LONGEST_S} s" if time.monotonic() >= end else f"the process ended with {process.exitcode}"
        outcome = Outcome(name, "not run" if at_work == "onnxruntime" else "wrong", f"{at_work}: {how}")
    return outcome


def line_of(outcome):
    if outcome.state != "right":
        return f"{outcome.name}: {outcome.state}: {outcome.cause}"
    text = f"{outcome.name}: right ({outcome.error:.0e})"
    if outcome.ratio:
        text += (f", {outcome.tiny_ms:.3f} ms, {outcome.ratio:.2f} of onnxruntime's (medians {outcome.median_ratio:.2f}),"
                 f" first output after {outcome.compile_s:.2f} s ({outcome.peer_compile_s:.2f})")  # fmt: skip
    if outcome.ratio > SLOWER:
        text += f": SLOWER: {outcome.slowest}"
    if outcome.is_slow_to_compile:
        text += ": SLOW TO COMPILE"
    return text


def summary(outcomes):
    of = lambda state: [outcome for outcome in outcomes if outcome.state == state]
    timed = [outcome for outcome in outcomes if outcome.ratio]
    lines = [f"{len(outcomes)} models: {len(of('right'))} right, {len(of('refused'))} refused, {len(of('wrong'))} wrong, "
             f"{len(of('interpreted'))} interpreted, {len(of('not run'))} that onnxruntime does not run"]  # fmt: skip
    if timed:
        lines.append(f"time, of onnxruntime's: geometric mean {geometric_mean([o.ratio for o in timed]):.2f} "
                     f"(of medians {geometric_mean([o.median_ratio for o in timed]):.2f}), greatest "
                     f"{max(o.ratio for o in timed):.2f}, {sum(o.ratio > SLOWER for o in timed)} above {SLOWER}; file to first "
                     f"output {geometric_mean([max(o.compile_s, 1e-3) / max(o.peer_compile_s, 1e-3) for o in timed]):.2f}, "
                     f"{sum(o.is_slow_to_compile for o in timed)} slow")  # fmt: skip
    return "\n".join(lines)


def family_table(outcomes):
    """A row for each family of models."""
    families = {}
    for outcome in outcomes:
        families.setdefault(outcome.name.partition("/")[0], []).append(outcome)
    rows = []
    for family, some in sorted(families.items()):
        timed = [o for o in some if o.ratio]
        count = lambda state: str(sum(o.state == state for o in some))
        rows.append([family, str(len(some)), count("refused"), count("wrong"),
                     f"{geometric_mean([o.ratio for o in timed]):.2f}" if timed else "",
                     f"{max(o.ratio for o in timed):.2f}" if timed else "", str(sum(o.ratio > SLOWER for o in timed))])  # fmt: skip
    return table(["family", "models", "refused", "wrong", "geometric mean", "greatest", f"above {SLOWER}"], rows)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--only", default="", metavar="TEXT", help="models whose path has TEXT")
    parser.add_argument("--seconds", type=float, default=0.5, help="of timing, for each model (0.5)")
    parser.add_argument("--no-times", dest="times", action="store_false")
    parser.add_argument("--all", action="store_true", help="the slowest kernels of every model")
    parser.add_argument("--json", type=pathlib.Path, metavar="FILE")
    parser.add_argument("--write", type=pathlib.Path, metavar="FILE", help="the table of families, in Markdown")
    options = parser.parse_args()
    onnxruntime.set_default_logger_severity(4)
    outcomes = []
    for path in sorted(options.folder.rglob("*.onnx")):
        name = str(path.relative_to(options.folder).with_suffix(""))
        if options.only in name:
            outcomes.append(in_own_process(path, name, options))
            print(line_of(outcomes[-1]), flush=True)
    if not outcomes:
        raise SystemExit(f"no models in {options.folder} whose path has {options.only!r}")
    print(family_table(outcomes), summary(outcomes), sep="\n\n")
    if options.json:
        options.json.write_text(json.dumps([dataclasses.asdict(outcome) for outcome in outcomes], indent=1))
    if options.write:
        options.write.write_text(f"{family_table(outcomes)}\n\n{summary(outcomes)}\n")
    bad = sum(outcome.state in ("refused", "wrong", "interpreted") for outcome in outcomes)
    print(f"{len(outcomes) - bad} passed, {bad} failed")
    return 1 if bad else 0


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    multiprocessing.set_start_method("fork")
    sys.exit(main())
