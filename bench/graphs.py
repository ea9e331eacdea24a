"""Single operations as small ONNX graphs: tiny beside onnxruntime and torch, one thread.

    graphs.py SECONDS [TEXT]    prints {"rows": [..], "settings": [..]}, as bench_kernels does

Rows that bench_kernels has too bear the same names: bench/kernels.py joins them.
"""

import json
import math
import pathlib
import sys
import tempfile

import peers
import quantized
import timing
from graph import Graph, node, values

TURN = 0.01


def on_torch(array):
    """A tensor of the array's memory, or None."""
    if not peers.installed("torch"):
        return None
    import torch

    return torch.from_numpy(array)


def matmul(name, m, n, k, is_constant):
    a, b = values((m, k), 1), values((k, n), 2)
    ta, tb, out = on_torch(a), on_torch(b), on_torch(values((m, n), 3))
    product = lambda torch: torch.mm(ta, tb, out=out)
    is_narrow = m < 16
    return Graph(f"matmul {name}" + (", constant B" if is_constant else ""),
                 [node("MatMul", ["a", "b"], "y")], {"a": a} if is_constant else {"a": a, "b": b},
                 {"b": b} if is_constant else {}, (m, n),
                 flops=0 if is_narrow else 2.0 * m * n * k, bytes=4.0 * (m * k + k * n + m * n),
                 limit="read" if is_narrow else "fma", work=2.0 * m * n * k if is_narrow else 0,
                 torch={"torch mm": (product, "highest"), "torch mm, medium": (product, "medium")})


MATMULS = {"256^3": (256, 256, 256), "512^3": (512, 512, 512), "1024^3": (1024, 1024, 1024),
           "2048^3": (2048, 2048, 2048), "128x3072x768": (128, 3072, 768),
           "251x509x127": (251, 509, 127), "1x3072x768": (1, 3072, 768),
           "7x3072x768": (7, 3072, 768)}  # fmt: skip


def chain(name, rows, columns):
    import numpy

    x = values((rows, columns), 6)
    constants = {key: numpy.array(v, numpy.float32) for key, v in (("a", 2), ("b", 0.5), ("c", -1))}
    tx, out = on_torch(x), on_torch(numpy.empty_like(x))
    return Graph(f"relu(x*a+b)+c, {name}",
                 [node("Mul", ["x", "a"], "p"), node("Add", ["p", "b"], "q"),
                  node("Relu", ["q"], "r"), node("Add", ["r", "c"], "y")],
                 {"x": x}, constants, x.shape,
                 bytes=8.0 * x.size, limit="copy",
                 torch={"torch": (lambda torch: torch.mul(tx, 2, out=out).add_(0.5).relu_().add_(-1),
                                  "highest")})  # fmt: skip


def softmax(name, rows, columns):
    x = values((rows, columns), 6)
    tx, out = on_torch(x), on_torch(values(x.shape, 7))
    return Graph(f"softmax, {name}", [node("Softmax", ["x"], "y", axis=-1)], {"x": x}, {}, x.shape,
                 bytes=8.0 * x.size, limit="copy",
                 torch={"torch": (lambda torch: torch.softmax(tx, -1, out=out), "highest")})


def layer_norm(name, rows, columns):
    x, scale, shift = values((rows, columns), 6), values(columns, 7), values(columns, 8)
    tx, ts, th = on_torch(x), on_torch(scale), on_torch(shift)
    function = lambda torch: torch.nn.functional.layer_norm(tx, (columns,), ts, th)
    return Graph(f"LayerNorm, {name}",
                 [node("LayerNormalization", ["x", "scale", "shift"], "y", axis=-1)], {"x": x},
                 {"scale": scale, "shift": shift}, x.shape, bytes=8.0 * x.size, limit="copy",
                 torch={"torch": (function, "highest")})


def attention(heads, length, width):
    """From the formula; onnxruntime also by its operator and by the standard's."""
    shape = (1, heads, length, width)
    q, k, v = (values(shape, seed) for seed in (1, 2, 3))
    import numpy

    root = numpy.array(1 / math.sqrt(width), numpy.float32)
    parts = {"q": q, "k": k, "v": v}
    nodes = [node("Transpose", ["k"], "kt", perm=[0, 1, 3, 2]), node("MatMul", ["q", "kt"], "s"),
             node("Mul", ["s", "root"], "t"), node("Softmax", ["t"], "p", axis=-1),
             node("MatMul", ["p", "v"], "y")]  # fmt: skip
    standard = Graph("", [node("Attention", ["q", "k", "v"], "y")], parts, {}, shape, opset=23)
    merged = numpy.array([1, length, heads * width], numpy.int64)
    # Its query is [batch, length, heads * width]: the transposes are part of its time.
    own = [node("Transpose", ["q"], "qt", perm=[0, 2, 1, 3]), node("Reshape", ["qt", "merged"], "qm"),
           node("MultiHeadAttention", ["qm", "k", "v"], "ym", num_heads=heads, domain="com.microsoft"),
           node("Reshape", ["ym", "split"], "ys"), node("Transpose", ["ys"], "y", perm=[0, 2, 1, 3])]
    split = numpy.array([1, length, heads, width], numpy.int64)
    fused = Graph("", own, parts, {"merged": merged, "split": split}, shape)
    tq, tk, tv = map(on_torch, (q, k, v))
    function = lambda torch: torch.nn.functional.scaled_dot_product_attention(tq, tk, tv)
    return Graph(f"attention 1x{heads}x{length}x{width}", nodes, parts, {"root": root}, shape,
                 flops=4.0 * heads * length * length * width, bytes=16.0 * q.size,
                 torch={"torch SDPA": (function, "highest")},
                 others={"onnxruntime Attention": standard,
                         "onnxruntime MultiHeadAttention": fused})  # fmt: skip


def attention_operator(name, heads, shared, rows, keys, width, is_causal=False):
    """By the standard's operator; onnxruntime's own and torch's beside it.  `shared`: of key heads."""
    q = values((1, heads, rows, width), 1)
    k, v = (values((1, shared, keys, width), seed) for seed in (2, 3))
    parts, causal = {"q": q, "k": k, "v": v}, int(is_causal)
    others = {}
    if shared == heads:
        import numpy

        own = [node("Transpose", ["q"], "qt", perm=[0, 2, 1, 3]), node("Reshape", ["qt", "merged"], "qm"),
               node("MultiHeadAttention", ["qm", "k", "v"], "ym", num_heads=heads,
                    unidirectional=causal, domain="com.microsoft"),
               node("Reshape", ["ym", "split"], "ys"),
               node("Transpose", ["ys"], "y", perm=[0, 2, 1, 3])]  # fmt: skip
        shapes = {"merged": numpy.array([1, rows, heads * width], numpy.int64),
                  "split": numpy.array([1, rows, heads, width], numpy.int64)}  # fmt: skip
        others["onnxruntime MultiHeadAttention"] = Graph("", own, parts, shapes, q.shape)
    tq, tk, tv = map(on_torch, (q, k, v))
    function = lambda torch: torch.nn.functional.scaled_dot_product_attention(
        tq, tk, tv, is_causal=is_causal, enable_gqa=shared != heads)  # fmt: skip
    is_narrow = rows < 16
    pairs = heads * rows * (keys - (rows - 1) / 2 if is_causal else keys)
    return Graph(f"attention {name}", [node("Attention", ["q", "k", "v"], "y", is_causal=causal)],
                 parts, {}, q.shape, opset=23, flops=0 if is_narrow else 4.0 * pairs * width,
                 bytes=4.0 * (k.size + v.size), limit="read" if is_narrow else "fma",
                 torch={"torch SDPA": (function, "highest")}, others=others)  # fmt: skip


# Heads, of keys, rows, keys, width, whether a row sees only what is before it.
ATTENTIONS = {"1 row, 12 heads x 4096x64": (12, 12, 1, 4096, 64),
              "1 row, 12 heads x 16384x64": (12, 12, 1, 16384, 64),
              "1 row, 32 of 8 heads x 4096x128": (32, 8, 1, 4096, 128),
              "1 row, 32 of 8 heads x 16384x128": (32, 8, 1, 16384, 128),
              "1 row, 2 heads x 16384x64": (2, 2, 1, 16384, 64),
              "7 rows, 12 heads x 4096x64": (12, 12, 7, 4096, 64),
              "causal 1x12x512x64": (12, 12, 512, 512, 64, True),
              "causal 1x8x2048x64": (8, 8, 2048, 2048, 64, True),
              "1x1x4096x64": (1, 1, 4096, 4096, 64)}  # fmt: skip


def graphs():
    """(name, maker) of each row."""
    for name, (m, n, k) in MATMULS.items():
        for is_constant in (False, True):
            yield f"matmul {name}" + (", constant B" if is_constant else ""), (
                lambda a=(name, m, n, k, is_constant): matmul(*a))
    for title, maker in (("relu(x*a+b)+c", chain), ("softmax", softmax), ("LayerNorm", layer_norm)):
        for size, rows in (("64 MB", 16384), ("4 MB", 1024), ("2 MB", 512)):
            yield f"{title}, {size}", lambda m=maker, a=(size, rows, 1024): m(*a)
    for heads, length in ((12, 128), (8, 2048), (1, 8192)):
        yield f"attention 1x{heads}x{length}x64", lambda a=(heads, length, 64): attention(*a)
    for name, sizes in ATTENTIONS.items():
        yield f"attention {name}", lambda a=(name, *sizes): attention_operator(*a)
    yield from quantized.graphs()


def limits_of(graph):
    if graph.limit == "copy":
        return timing.copy_limits(int(graph.bytes))
    if graph.limit == "read":
        reading = [timing.read_limit(int(graph.bytes))]
        return reading + ([timing.fma_limit(graph.work, 1, "work limit")] if graph.work else [])
    return [timing.fma_limit(graph.flops, 1)]


def contenders_of(graph, path):
    """tiny first, then the peers that there are, then the bounds; what is missing is told."""
    path.write_bytes(graph.model().SerializeToString())
    session = peers.session_of(str(path), 1)
    reference = peers.onnxruntime_contender(session, graph.inputs)
    tiny = peers.TinyModel(path, graph.inputs, 1)
    contenders = [tiny.contender(session, reference), reference]
    told = []
    for name, other in graph.others.items():
        try:
            peer = peers.session_of(other.model().SerializeToString(), 1)
            contenders.append(peers.onnxruntime_contender(peer, graph.inputs, name))
            contenders[-1].call()
        except Exception as problem:  # onnxruntime's own classes; a version may lack an operator
            told.append(f"{name}: {str(problem).splitlines()[0][:120]}")
    for name, (function, precision) in graph.torch.items():
        contender = peers.torch_contender(name, function, 1, precision)
        if contender is None:
            told.append(f"{name}: not installed")
        else:
            contenders.append(contender)
    return contenders + limits_of(graph), tiny.about, told


def measured(graph, path, seconds):
    contenders, about, told = contenders_of(graph, path)
    figures, dropped = timing.measure(contenders, seconds, TURN, tolerance=graph.tolerance)
    return {"name": graph.name, "flops": graph.flops, "bytes": graph.bytes, "threads": 1,
            "contenders": figures, "notes": told + dropped, **about}  # fmt: skip


def main(seconds, only):
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for name, make in graphs():
            if only not in name:
                continue
            print(f"bench: {name}, by onnxruntime and torch", file=sys.stderr)
            try:
                rows.append(measured(make(), pathlib.Path(folder) / "row.onnx", seconds))
            except Exception as problem:  # the other rows are worth having
                rows.append({"name": name, "failed": f"{type(problem).__name__}: {problem}"[:300]})
    print(json.dumps({"rows": rows, "settings": peers.settings_lines(("onnxruntime", "torch"))}))


if __name__ == "__main__":
    main(float(sys.argv[1]), sys.argv[2] if len(sys.argv) > 2 else "")
