"""Whole training steps (forward, gradients, optimiser) beside PyTorch's at its best.

Each engine is a process of its own with the same parameters and the same batch; they take turns. PyTorch: channels
last for pictures, fused optimisers, both of its settings of float32 products, of which the faster counts. The first
step's time is all between a batch in memory and its loss: graph, compiling without a cache, run. Peak memory is the
process' beyond what it had after its imports.
"""

import json
import os
import pathlib
import resource
import subprocess
import sys
import tempfile
import time

from compiling import Figures
from kernels import environment
from report import median
from train_networks import NETWORKS

TURN = 0.3  # seconds of an engine's turn
CHECKED = 3  # steps whose losses must agree
TOLERANCE = 1e-2  # of a loss: what rounding decides (a relu at 0, the largest of a pool) changes a step by that much
FIRST_STEP_SECONDS = 0.3
PRECISIONS = ("highest", "medium")  # of PyTorch's float32 products: MKL's or oneDNN's
ROUNDING = 1e-4  # of the largest element: what products of float32 stay below, and of bfloat16 do not


def peak_megabytes():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


class TinyStep:
    def __init__(self, network, folder, threads):
        import tiny

        self.context = tiny.Context(threads=threads, cache=0)
        self.arrays = [self.array(a) for a in arrays(network)]
        warm = tiny.Context(threads=threads)  # what the library does once
        (warm.arange(tiny.float32, 8) + 1).tolist()
        self.started, self.before = time.perf_counter(), peak_megabytes()
        module = tiny.Module.create(self.context, 1)
        held = [tiny.from_buffer(a, context=self.context) for a in self.arrays]
        inputs = [self.context.input(t.dtype, t.shape) for t in held]
        loss = network.tiny(module, *inputs)
        count = module.parameter_count
        parameters = [module.parameter_at(i) for i in range(count)]
        if folder:
            self.started += self.store(module, folder)  # no part of a step
        optimizer = tiny.Optimizer.create(self.context, tiny.OptimizerKind[network.optimizer])
        optimizer.add(parameters)
        optimizer.set(0, "lr", network.rate)
        if network.momentum:
            optimizer.set(0, "momentum", network.momentum)
        optimizer.step(tiny.gradient([loss], parameters))
        self.program = tiny.Program.compile(inputs, [loss, *parameters])
        self.run = tiny.Run.create(self.program)
        for i, t in enumerate(held):
            self.run.set_input(i, t)

    @staticmethod
    def array(a):
        return a.astype("int32") if a.dtype == "int64" else a

    @staticmethod
    def store(module, folder):
        import numpy

        start = time.perf_counter()
        state = module.state()
        names = [state.name(i) for i in range(state.count)]
        numpy.savez(folder / "parameters.npz", **{name: state.get(name).numpy() for name in names})
        return time.perf_counter() - start

    def step(self):
        self.run.execute()

    def loss(self):
        return self.run.output_tensor(0).item()

    def about(self):
        return {"kernels": len(json.loads(self.program.kernels().text()))}


class TorchStep:
    def __init__(self, network, folder, threads, precision):
        import numpy
        import torch

        torch.set_num_threads(threads)
        torch.set_float32_matmul_precision(precision)
        last = {"memory_format": torch.channels_last} if network.channels_last else {}
        form = lambda t: t.to(**last) if t.dim() == 4 and last else t  # noqa: E731
        torch.ones(8).sum().item()
        self.before = peak_megabytes()
        stored = numpy.load(folder / "parameters.npz")
        state = {name: form(torch.from_numpy(stored[name])) for name in stored.files}
        self.batch = [form(torch.from_numpy(a)) for a in arrays(network)]
        self.started = time.perf_counter()
        parameters = {name: torch.nn.Parameter(value) for name, value in state.items()
                      if value.is_floating_point() and "running" not in name}  # fmt: skip
        self.state, self.network = {**state, **parameters}, network
        made = {"ADAM": torch.optim.Adam, "ADAMW": torch.optim.AdamW, "SGD": torch.optim.SGD}[network.optimizer]
        momentum = {"momentum": network.momentum} if network.momentum else {}
        self.optimizer = made(parameters.values(), network.rate, fused=True, **momentum)

    def step(self):
        self.optimizer.zero_grad(set_to_none=True)
        self.last = self.network.torch(self.state, *self.batch)
        self.last.backward()
        self.optimizer.step()

    def loss(self):
        return self.last.item()

    def about(self):
        """How far its products of float32 are from exact ones: "medium" multiplies in bfloat16 where the processor
        has matrix units for it (AMX)."""
        import torch

        a, b = (torch.rand(256, 256, generator=torch.Generator().manual_seed(seed)) - 0.5 for seed in (1, 2))
        exact = a.double() @ b.double()
        return {"error": float(((a @ b).double() - exact).abs().max() / exact.abs().max())}


def arrays(network):
    import numpy

    return network.data(numpy.random.default_rng(1))


def work(name, engine, threads, folder):
    """A process: its first steps, then a turn for each line that it reads, as lines of JSON."""
    network = NETWORKS[name]
    if engine == "tiny":
        it = TinyStep(network, folder, threads)
    else:
        it = TorchStep(network, folder, threads, engine)
    losses = []
    for _ in range(CHECKED):
        it.step()
        losses.append(it.loss())
        if len(losses) == 1:
            first = time.perf_counter() - it.started
    print(json.dumps({"first": first, "losses": losses, **it.about()}), flush=True)
    for _ in sys.stdin:
        times, end = [], time.perf_counter() + TURN
        while not times or time.perf_counter() < end:
            start = time.perf_counter()
            it.step()
            times.append(time.perf_counter() - start)
        print(json.dumps({"times": times, "memory": peak_megabytes() - it.before}), flush=True)


class Worker:
    def __init__(self, name, engine, threads, folder):
        extra = {"OMP_PROC_BIND": "true", "MALLOC_MMAP_MAX_": "0", "MALLOC_TRIM_THRESHOLD_": str(1 << 32),
                 "MALLOC_TOP_PAD_": str(64 << 20)} if engine != "tiny" else {}  # fmt: skip
        command = [sys.executable, "-B", __file__, name, engine, str(threads), str(folder)]
        self.process = subprocess.Popen(command, env={**environment(threads), **extra}, text=True,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE)  # fmt: skip
        self.name, self.times = engine, []
        self.about = self.read()

    def read(self):
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError(f"{self.name} ended")
        return json.loads(line)

    def turn(self):
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        done = self.read()
        self.times += done["times"]
        self.memory = done["memory"]

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def measured(name, threads, seconds):
    with tempfile.TemporaryDirectory() as folder:
        workers = [Worker(name, engine, threads, pathlib.Path(folder)) for engine in ("tiny", *PRECISIONS)]
        try:
            ours, theirs = workers[0].about["losses"], workers[1].about["losses"]
            if any(not abs(a - b) <= TOLERANCE * abs(b) for a, b in zip(ours, theirs)):
                raise RuntimeError(f"{name}: losses {ours}, PyTorch's {theirs}")
            end = time.perf_counter() + seconds * len(workers)
            while time.perf_counter() < end or len(workers[0].times) < CHECKED:
                for worker in workers:
                    worker.turn()
        finally:
            for worker in workers:
                worker.close()
    return workers


def judged(value, most):
    return "reached" if value <= most else f"MISSED ({value:.2f}, wanted <= {most})"


def run(arguments):
    """The part "train" of bench/run: its figures and its table."""
    figures, steps = Figures(), {}
    for name, network in NETWORKS.items():
        for threads, most in ((1, network.most), (2, network.most_two)):
            row = f"{name}, {threads} thread{'s' * (threads > 1)}"
            if arguments.only not in row:
                continue
            print(f"bench: {row}", file=sys.stderr)
            tiny, *torch = measured(name, threads, arguments.duration)
            # What rounds its operands to fewer bits does another step: it is told, and not compared.
            exact = [worker for worker in torch if worker.about["error"] < ROUNDING]
            best = min(exact, key=lambda worker: min(worker.times))
            other = "".join(f"; torch with bfloat16 products {min(worker.times) * 1e3:.2f}"
                            for worker in torch if worker not in exact)  # fmt: skip
            ms = {worker.name: (min(worker.times) * 1e3, median(worker.times) * 1e3) for worker in (tiny, *torch)}
            steps[row] = {"ms": ms, "kernels": tiny.about["kernels"], "losses": tiny.about["losses"]}
            ratio = ms["tiny"][0] / ms[best.name][0]
            figures.add(f"{row}: step of {tiny.about['kernels']} kernels (median {ms['tiny'][1]:.2f}; torch "
                        f"{ms[best.name][0]:.2f}, median {ms[best.name][1]:.2f}{other})", ms["tiny"][0], "ms",
                        judged(ratio, most), ratio)  # fmt: skip
            figures.add(f"{row}: first step", tiny.about["first"], "s",
                        judged(tiny.about["first"], FIRST_STEP_SECONDS), tiny.about["first"] / best.about["first"])
            least = min(worker.memory for worker in torch)
            figures.add(f"{row}: memory beyond the imports", tiny.memory, "MB",
                        judged(tiny.memory / max(least, 1), 1.0), tiny.memory / max(least, 1))
    return {"figures": figures.rows, "steps": steps}, figures.text()


if __name__ == "__main__":
    work(sys.argv[1], sys.argv[2], int(sys.argv[3]), pathlib.Path(sys.argv[4]))
