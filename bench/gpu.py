"""tiny on a GPU beside cuBLAS, cuDNN and PyTorch, in one process: the tables of bench/gpu.

PyTorch calls cuBLAS for products and cuDNN for convolutions and attention, and its calls are captured as CUDA graphs, so that
what the host does counts for neither. Contenders take turns; a time is that of many calls between two waits for the device,
over their number, the median of 20 turns. Data is random (zeros need less power), and there are as many sets of inputs as
do not fit the second-level cache together, used in turn. Results are compared before anything is timed.
Memory's limit is the device's own copy of 1 GiB, measured in the same process.

--rehearse: every row in a small size, on whatever driver there is (the emulated one of the tests), results held to
PyTorch's or NumPy's on the processor; nothing is timed, and rows say "not measured".
"""

import argparse
import json
import math
import sys
import time

import numpy
from report import median, table, verdict
from train_networks import NETWORKS

import tiny

TURNS = 20
TURN_SECONDS = 0.05
CACHE_BYTES = 2 * (50 << 20)  # twice the second-level cache of an H100 or H200
COPY_BYTES = 1 << 30
TAPE = 100  # kernels of the launch row
SETS_MAX = 64
# By NVIDIA's and PyTorch's types; of the largest magnitude of the result.
TOLERANCES = {"float32": 1e-4, "tf32": 5e-3, "bfloat16": 2e-2, "float16": 5e-3}
NOT_MEASURED = "not measured"


class Peer:
    """PyTorch, on the GPU where it sees one; else None."""

    def __init__(self, is_rehearsal):
        try:
            import torch
        except ImportError:
            torch = None
        self.torch = torch
        self.has_gpu = not is_rehearsal and torch is not None and torch.cuda.is_available()
        self.device = "cuda" if self.has_gpu else "cpu"

    def tensor(self, array, kind, last=False):
        t = self.torch.from_numpy(array).to(self.device)
        if array.dtype == numpy.float32:
            t = t.to(self.torch.float32 if kind == "tf32" else getattr(self.torch, kind))
        return t.to(memory_format=self.torch.channels_last) if last and t.dim() == 4 else t

    def graph(self, call):
        """The call as a CUDA graph's replay, and what it computes."""
        if not self.has_gpu:
            return call, call()
        side = self.torch.cuda.Stream()
        side.wait_stream(self.torch.cuda.current_stream())
        with self.torch.cuda.stream(side):  # libraries choose and allocate before they are captured
            for _ in range(3):
                call()
        self.torch.cuda.current_stream().wait_stream(side)
        graph = self.torch.cuda.CUDAGraph()
        with self.torch.cuda.graph(graph):
            result = call()
        return graph.replay, result

    def synchronize(self):
        self.torch.cuda.synchronize()


class Row:
    """`arrays(random)`: the inputs of a set; `fixed(random)`: weights, a dict; `ours` and `theirs` compute of both."""

    def __init__(self, name, group, arrays, ours, theirs, target, fixed=lambda random: {}, kind="float32", bytes_of=None,
                 flops=None, last=False):
        self.name, self.group, self.arrays, self.fixed, self.ours, self.theirs = name, group, arrays, fixed, ours, theirs
        self.target, self.kind, self.bytes, self.flops, self.last = target, kind, bytes_of, flops, last


def of_tiny(context, array, kind):
    t = tiny.Tensor(array, context=context)
    if array.dtype == numpy.float32 and kind in ("bfloat16", "float16"):
        t = t.cast(getattr(tiny, kind))
    return t.realize()


class Ours:
    """A program of tiny over inputs that are bound anew for each set."""

    def __init__(self, context, row, weights, sets):
        self.context = context
        fixed = {name: of_tiny(context, a, row.kind) for name, a in weights.items()}
        held = [[of_tiny(context, a, row.kind) for a in arrays] for arrays in sets]
        entries = [context.input(t.dtype, list(t.shape)) for t in held[0]]
        self.program = tiny.Program.compile(entries, [row.ours(fixed, *entries)])
        self.runs = []
        for one in held:
            run = tiny.Run.create(self.program)
            for i, t in enumerate(one):
                run.set_input(i, t)
            self.runs.append(run)
        self.held = held

    def result(self):
        self.runs[0].execute()
        out = self.runs[0].output_tensor(0)
        return numpy.asarray(out.cast(tiny.float32).numpy())

    def kernels(self):
        return len(json.loads(self.program.kernels().text()))


def timed(calls, wait):
    """Seconds of one call, of calls in turn until a turn is over."""
    wait()
    begin, count = time.perf_counter(), 0
    while True:
        for call in calls:
            call()
        count += len(calls)
        if count >= len(calls) and time.perf_counter() - begin > TURN_SECONDS:
            break
    wait()
    return (time.perf_counter() - begin) / count


def sets_of(row, is_rehearsal):
    random = numpy.random.default_rng(1)
    weights = row.fixed(random)
    first = row.arrays(random)
    count = 1
    if not is_rehearsal:
        size = sum(a.nbytes for a in first)
        count = min(SETS_MAX, max(2, math.ceil(CACHE_BYTES / max(size, 1))))
    return weights, [first] + [row.arrays(random) for _ in range(count - 1)]


def measured(row, context, peer, is_rehearsal):
    """{ours, theirs: median seconds, or None; error; kernels}."""
    weights, sets = sets_of(row, is_rehearsal)
    ours = Ours(context, row, weights, sets)
    got = ours.result()
    out = {"name": row.name, "group": row.group, "kernels": ours.kernels(), "ours": None, "theirs": None}
    replays = []
    if peer.torch is not None:
        kind = row.kind if peer.has_gpu else "float32"
        peer.torch.backends.cuda.matmul.allow_tf32 = row.kind == "tf32"
        peer.torch.backends.cudnn.allow_tf32 = row.kind == "tf32"
        with peer.torch.no_grad():
            fixed = {name: peer.tensor(a, kind, row.last) for name, a in weights.items()}
            for arrays in sets:
                given = [peer.tensor(a, kind, row.last) for a in arrays]
                replay, result = peer.graph(lambda given=given: row.theirs(peer.torch, fixed, *given))
                if not replays:
                    replay()
                    wanted = result.float().cpu().numpy()
                replays.append(replay)
        out["error"] = float(numpy.abs(got - wanted).max() / (numpy.abs(wanted).max() or 1))
        if not out["error"] <= TOLERANCES[row.kind]:
            raise RuntimeError(f"{row.name}: tiny differs from PyTorch by {out['error']:.1e} of the largest magnitude")
    if is_rehearsal or not peer.has_gpu:
        return out
    ours_all, theirs_all = [], []
    for _ in range(TURNS):
        ours_all.append(timed([run.execute for run in ours.runs], context.synchronize))
        theirs_all.append(timed(replays, peer.synchronize))
    out["ours"], out["theirs"] = median(ours_all), median(theirs_all)
    return out


def copy_bandwidth(peer):
    a = peer.torch.empty(COPY_BYTES, dtype=peer.torch.uint8, device="cuda")
    b = peer.torch.empty_like(a)
    return 2 * COPY_BYTES / median([timed([lambda: b.copy_(a)], peer.synchronize) for _ in range(TURNS)])


# ---- the rows


def normal(*shape):
    return lambda random: [random.standard_normal(shape, dtype=numpy.float32)]


def memory_rows(small):
    n = 1 << 10 if small else 1 << 26
    lines = 8 if small else 16384
    kinds = ("float32",) if small else ("float32", "bfloat16")
    for kind in kinds:
        size = 4 if kind == "float32" else 2
        yield Row(f"x * 2 + 1, {kind}", "memory", normal(n), lambda w, x: x * 2 + 1, lambda t, w, x: x * 2 + 1, 0.95,
                  kind=kind, bytes_of=2 * n * size)
        yield Row(f"gelu(x), {kind}", "memory", normal(n), lambda w, x: x.gelu(),
                  lambda t, w, x: t.nn.functional.gelu(x), 0.95, kind=kind, bytes_of=2 * n * size)
        for width in (96,) if small else (1024, 4096, 16384):
            total = 2 * lines * width * size
            yield Row(f"softmax {lines}x{width}, {kind}", "memory", normal(lines, width), lambda w, x: x.softmax(-1),
                      lambda t, w, x: x.softmax(-1), 0.95, kind=kind, bytes_of=total)
            yield Row(f"layer norm {lines}x{width}, {kind}", "memory", normal(lines, width), lambda w, x: x.layernorm(),
                      lambda t, w, x: t.nn.functional.layer_norm(x, x.shape[-1:]), 0.95, kind=kind, bytes_of=total)
        yield Row(f"sum of all, {kind}", "memory", normal(n), lambda w, x: x.abs().sum(), lambda t, w, x: x.abs().sum(),
                  0.95, kind=kind, bytes_of=n * size)
        side = 40 if small else 8192
        yield Row(f"transpose {side}x{side}, {kind}", "memory", normal(side, side), lambda w, x: x.transpose(0, 1).contiguous(),
                  lambda t, w, x: x.t().contiguous(), 0.95, kind=kind, bytes_of=2 * side * side * size)


def product_rows(small):
    for kind, target in (("float32", 0.9), ("tf32", 0.9), ("bfloat16", 1.0), ("float16", 1.0)):
        for n in (48,) if small else (1024, 4096, 8192):
            yield Row(f"{n}^3, {kind}", "product", lambda random, n=n: [random.standard_normal((n, n), dtype=numpy.float32)
                                                                      for _ in range(2)],
                      lambda w, a, b: a @ b, lambda t, w, a, b: a @ b, target, kind=kind, flops=2 * n**3)
    for rows in (1, 16):
        n = 64 if small else 8192
        yield Row(f"{rows}x{n} by {n}x{n}, bfloat16", "product",
                  lambda random, n=n, rows=rows: [random.standard_normal(shape, dtype=numpy.float32)
                                                  for shape in ((rows, n), (n, n))],
                  lambda w, a, b: a @ b, lambda t, w, a, b: a @ b, 0.9, kind="bfloat16", flops=2 * rows * n * n)


def attention_rows(small):
    for causal in (False, True):
        batch, heads, length, width = (1, 2, 24, 16) if small else (4, 16, 4096, 128)
        yield Row(f"attention {batch}x{heads}x{length}x{width}{', causal' * causal}, bfloat16", "attention",
                  lambda random, shape=(batch, heads, length, width): [random.standard_normal(shape, dtype=numpy.float32)
                                                                       for _ in range(3)],
                  lambda w, q, k, v, causal=causal: q.scaled_dot_product_attention(k, v, is_causal=causal),
                  lambda t, w, q, k, v, causal=causal: t.nn.functional.scaled_dot_product_attention(q, k, v,
                                                                                                  is_causal=causal),
                  1.0, kind="bfloat16", flops=4 * batch * heads * length * length * width // (2 if causal else 1))


def resnet(conv, relu, pool, mean, linear, w, x, blocks):
    x = pool(relu(conv(x, w["stem"], w["stem.bias"], 2, 3)))
    for stage, count in enumerate(blocks):
        for block in range(count):
            name, stride = f"{stage}.{block}", 2 if block == 0 and stage > 0 else 1
            y = relu(conv(x, w[f"{name}.1"], w[f"{name}.1.bias"], 1, 0))
            y = relu(conv(y, w[f"{name}.2"], w[f"{name}.2.bias"], stride, 1))
            y = conv(y, w[f"{name}.3"], w[f"{name}.3.bias"], 1, 0)
            x = relu(y + (conv(x, w[f"{name}.skip"], w[f"{name}.skip.bias"], stride, 0) if block == 0 else x))
    return linear(mean(x), w["head"], w["head.bias"])


def resnet_weights(random, width, blocks):
    made = {}

    def add(name, shape):
        fan = math.prod(shape[1:])
        made[name] = random.standard_normal(shape, dtype=numpy.float32) / numpy.float32(math.sqrt(fan))
        made[f"{name}.bias"] = 0.1 * random.standard_normal(shape[0], dtype=numpy.float32)
    add("stem", (width, 3, 7, 7))
    before = width
    for stage, count in enumerate(blocks):
        inner = width << stage
        for block in range(count):
            name = f"{stage}.{block}"
            add(f"{name}.1", (inner, before, 1, 1))
            add(f"{name}.2", (inner, inner, 3, 3))
            add(f"{name}.3", (4 * inner, inner, 1, 1))
            if block == 0:
                add(f"{name}.skip", (4 * inner, before, 1, 1))
            before = 4 * inner
    add("head", (1000 if width == 64 else 10, before))
    return made


def encoder(norm, linear, gelu, attention, w, x, layers, heads):
    """BERT's encoder, of embeddings."""
    batch, length, width = x.shape
    split = lambda y: y.reshape(batch, length, heads, width // heads).transpose(1, 2)  # noqa: E731
    for i in range(layers):
        q, k, v = (split(linear(x, w[f"{i}.{part}"], w[f"{i}.{part}.bias"])) for part in "qkv")
        y = attention(q, k, v).transpose(1, 2).reshape(batch, length, width)
        x = norm(x + linear(y, w[f"{i}.o"], w[f"{i}.o.bias"]), w[f"{i}.n1"], w[f"{i}.n1.bias"])
        y = linear(gelu(linear(x, w[f"{i}.up"], w[f"{i}.up.bias"])), w[f"{i}.down"], w[f"{i}.down.bias"])
        x = norm(x + y, w[f"{i}.n2"], w[f"{i}.n2.bias"])
    return x


def encoder_weights(random, width, layers):
    made = {}
    for i in range(layers):
        for part, rows, columns in (("q", width, width), ("k", width, width), ("v", width, width), ("o", width, width),
                                    ("up", 4 * width, width), ("down", width, 4 * width)):
            made[f"{i}.{part}"] = random.standard_normal((rows, columns), dtype=numpy.float32) / numpy.float32(math.sqrt(columns))
            made[f"{i}.{part}.bias"] = 0.1 * random.standard_normal(rows, dtype=numpy.float32)
        for part in ("n1", "n2"):
            made[f"{i}.{part}"] = 1 + 0.1 * random.standard_normal(width, dtype=numpy.float32)
            made[f"{i}.{part}.bias"] = 0.1 * random.standard_normal(width, dtype=numpy.float32)
    return made


def network_rows(small):
    width, blocks, size = (4, (1, 1), 32) if small else (64, (3, 4, 6, 3), 224)
    for batch in (1,) if small else (1, 32):
        for kind in ("float32",) if small else ("float32", "bfloat16"):
            yield Row(f"ResNet-50, batch {batch}, {kind}", "network", normal(batch, 3, size, size),
                      lambda w, x: resnet(lambda x, k, b, s, p: x.conv2d(k, b, stride=s, padding=p), lambda x: x.relu(),
                                          lambda x: x.max_pool2d((3, 3), stride=2, padding=1), lambda x: x.mean((2, 3)),
                                          lambda x, k, b: x @ k.transpose(0, 1) + b, w, x, blocks),
                      lambda t, w, x: resnet(lambda x, k, b, s, p: t.nn.functional.conv2d(x, k, b, s, p), t.relu,
                                             lambda x: t.nn.functional.max_pool2d(x, 3, 2, 1), lambda x: x.mean((2, 3)),
                                             t.nn.functional.linear, w, x, blocks),
                      1.0, fixed=lambda random: resnet_weights(random, width, blocks), kind=kind, last=True)
    layers, wide, heads, length = (1, 32, 2, 12) if small else (12, 768, 12, 128)
    for batch in (1,) if small else (1, 32):
        for kind in ("float32",) if small else ("float32", "bfloat16"):
            yield Row(f"BERT-base's encoder, batch {batch}, {kind}", "network", normal(batch, length, wide),
                      lambda w, x: encoder(lambda x, a, b: x.layernorm(eps=1e-12) * a + b,
                                           lambda x, k, b: x @ k.transpose(0, 1) + b, lambda x: x.gelu(),
                                           lambda q, k, v: q.scaled_dot_product_attention(k, v), w, x, layers, heads),
                      lambda t, w, x: encoder(lambda x, a, b: t.nn.functional.layer_norm(x, x.shape[-1:], a, b, 1e-12),
                                              t.nn.functional.linear,
                                              lambda x: t.nn.functional.gelu(x),
                                              t.nn.functional.scaled_dot_product_attention, w, x, layers, heads),
                      1.0, fixed=lambda random: encoder_weights(random, wide, layers), kind=kind)


def launch_row(context, is_rehearsal):
    """Until execute() of a tape of small kernels returns."""
    chain = [context.input(tiny.float32, [16, 16])]
    value = chain[0]
    for _ in range(TAPE):  # a product reads all of the one before: none can be one kernel with it
        value = value @ chain[0]
    program = tiny.Program.compile(chain, [value])
    run = tiny.Run.create(program)
    run.set_input(0, tiny.Tensor(numpy.zeros((16, 16), numpy.float32), context=context).realize())
    run.execute()
    context.synchronize()
    count = len(json.loads(program.kernels().text()))
    if is_rehearsal:
        return count, None
    seconds = []
    for _ in range(TURNS):
        begin = time.perf_counter()
        run.execute()
        seconds.append(time.perf_counter() - begin)
        context.synchronize()
    return count, median(seconds)


# ---- training


def training(name, context, peer, is_rehearsal):
    """A step of tiny and of torch.compile's: median seconds of each, and both losses of three steps."""
    network = NETWORKS[name]
    arrays = [a.astype("int32") if a.dtype == "int64" else a for a in network.data(numpy.random.default_rng(1))]
    module = tiny.Module.create(context, 1)
    held = [tiny.Tensor(a, context=context).realize() for a in arrays]
    entries = [context.input(t.dtype, list(t.shape)) for t in held]
    loss = network.tiny(module, *entries)
    parameters = [module.parameter_at(i) for i in range(module.parameter_count)]
    state = module.state()
    stored = {state.name(i): state.get(state.name(i)).numpy() for i in range(state.count)}
    optimizer = tiny.Optimizer.create(context, tiny.OptimizerKind[network.optimizer])
    optimizer.add(parameters)
    optimizer.set(0, "lr", network.rate)
    optimizer.step(tiny.gradient([loss], parameters))
    run = tiny.Run.create(tiny.Program.compile(entries, [loss, *parameters]))
    for i, t in enumerate(held):
        run.set_input(i, t)
    if is_rehearsal or not peer.has_gpu:
        return None, None
    losses = []
    for _ in range(3):
        run.execute()
        losses.append(run.output_tensor(0).item())
    torch = peer.torch
    torch.set_float32_matmul_precision("highest")
    theirs = {key: torch.from_numpy(value).cuda() for key, value in stored.items()}
    trained = {key: torch.nn.Parameter(value) for key, value in theirs.items()
               if value.is_floating_point() and "running" not in key}
    theirs.update(trained)
    made = {"ADAM": torch.optim.Adam, "ADAMW": torch.optim.AdamW, "SGD": torch.optim.SGD}[network.optimizer]
    other = made(trained.values(), network.rate, fused=True)
    batch = [torch.from_numpy(a).cuda() for a in network.data(numpy.random.default_rng(1))]
    forward = torch.compile(lambda: network.torch(theirs, *batch), mode="reduce-overhead")

    def step():
        other.zero_grad(set_to_none=True)
        last = forward()
        last.backward()
        other.step()
        return last
    wanted = [step().item() for _ in range(3)]
    if any(not abs(a - b) <= 2e-2 * abs(b) for a, b in zip(losses, wanted)):
        raise RuntimeError(f"{name}: losses {losses}, PyTorch's {wanted}")
    ours, others = [], []
    for _ in range(TURNS):
        ours.append(timed([run.execute], context.synchronize))
        others.append(timed([step], peer.synchronize))
    return median(ours), median(others)


# ---- the report


def figures(row, made, copy):
    """The cells of a row: times, ratio to PyTorch's, what of the limit, verdict."""
    if made["ours"] is None:
        return [row.name, made["kernels"], NOT_MEASURED, NOT_MEASURED, "", "", NOT_MEASURED]
    ratio = made["theirs"] / made["ours"]
    share = row.bytes / made["ours"] / copy if row.bytes else None
    speed = f"{share:.0%} of copy" if share else f"{row.flops / made['ours'] / 1e12:.0f} TFLOP/s" if row.flops else ""
    judged = verdict(share if share else ratio, ">=", row.target, "of copy " if share else "")
    return [row.name, made["kernels"], f"{made['ours'] * 1e6:.1f}", f"{made['theirs'] * 1e6:.1f}", f"{ratio:.2f}", speed, judged]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--only", default="")
    parser.add_argument("--json")
    parser.add_argument("--rehearse", action="store_true")
    given = parser.parse_args()
    peer = Peer(given.rehearse)
    contexts = {kind: tiny.Context(device=given.device, cache=0, tf32=int(kind == "tf32")) for kind in ("float32", "tf32")}
    if not given.rehearse and not peer.has_gpu:
        print("bench/gpu: PyTorch sees no GPU here, so there is nothing to compare with: not measured", file=sys.stderr)
        return 77
    copy = copy_bandwidth(peer) if peer.has_gpu else None
    if copy:
        print(f"{peer.torch.cuda.get_device_name()}; its copy: {copy / 1e9:.0f} GB/s; "
              f"cuDNN {peer.torch.backends.cudnn.version()}, CUDA {peer.torch.version.cuda}\n", flush=True)
    cells, kept, failed = [], [], False
    for make in (memory_rows, product_rows, attention_rows, network_rows):
        for row in make(given.rehearse):
            if given.only not in row.name:
                continue
            print(f"bench: {row.name}", file=sys.stderr, flush=True)
            try:
                made = measured(row, contexts["tf32" if row.kind == "tf32" else "float32"], peer, given.rehearse)
            except Exception as error:  # a row that fails is a miss, and the others go on
                failed = True
                cells.append([row.name, "", "", "", "", "", f"MISSED ({type(error).__name__}: {error})"[:200]])
                continue
            kept.append(made)
            cells.append(figures(row, made, copy))
    for name, target in (("mnist", 0.7), ("GPT 4x128", 0.7)):
        if given.only not in name:
            continue
        print(f"bench: step of {name}", file=sys.stderr, flush=True)
        ours, theirs = training(name, contexts["float32"], peer, given.rehearse)
        judged = verdict(ours / theirs, "<=", target) if ours else NOT_MEASURED
        cells.append([f"training step, {name}", "", *(f"{one * 1e6:.1f}" if one else NOT_MEASURED for one in (ours, theirs)),
                      f"{theirs / ours:.2f}" if ours else "", "", judged])
        kept.append({"name": name, "group": "training", "ours": ours, "theirs": theirs})
    if given.only in "launch of a tape":
        count, seconds = launch_row(contexts["float32"], given.rehearse)
        cells.append([f"launch of a tape of {count} kernels", count, f"{seconds * 1e6:.1f}" if seconds else NOT_MEASURED, "", "",
                      "", verdict(seconds * 1e6, "<=", 50, "us ") if seconds else NOT_MEASURED])
        kept.append({"name": "launch", "group": "launch", "ours": seconds})
    print(table(["row", "kernels", "tiny us", "torch us", "torch / tiny", "speed", "target"], cells))
    if given.json:
        with open(given.json, "w") as file:
            json.dump({"copy": copy, "rows": kept}, file, indent=1)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
