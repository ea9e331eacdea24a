"""Every operator of every version that the onnx package has a schema of stands in docs/ONNX.md's table, which is the
importer's own, or on the list below with its reason; and so do onnxruntime's own.

    schemas_test.py
"""

import pathlib
import re
import sys

try:
    import onnx
    import onnxruntime.capi.onnxruntime_pybind11_state as onnxruntime
    from onnx import defs
except ImportError as missing:
    print(f"skipped: this interpreter lacks {missing.name}; scripts/setup.sh makes one that has it")
    sys.exit(77)

DOCUMENT = pathlib.Path(__file__).resolve().parents[2] / "docs/ONNX.md"
# The newest version of each operator set that the package knows.
NEWEST = {"": defs.onnx_opset_version(), "ai.onnx.ml": 5, "ai.onnx.preview": 1, "ai.onnx.preview.training": 1}
STEPS = "an algorithm of single steps, whose path the data decides"
BLOCKS = "how its blocks are packed is published nowhere, and onnxruntime has no kernel"
# (domain, operator): the versions that have no row, and why.
WITHOUT = {
}  # fmt: skip
DEVICE = "has kernels on devices other than the processor alone, whose layouts it is about"
SEARCH = "a search, whose lengths the data decides"
CACHE = "a cache in pages or windows, which is changed in place"
NEW = "too new for a published exporter to write"
OLD = "no published exporter writes it"
CONTRIBUTED = {
    "AttnLSTM": OLD, "BifurcationDetector": SEARCH, "BitmaskBiasDropout": "training",
    "BitmaskDropout": "training", "BranchwiseRMSNorm": NEW, "CausalConvWithState": NEW,
    "ConvTransposeWithDynamicPads": OLD, "DecoderAttention": OLD, "DecoderMaskedSelfAttention": DEVICE,
    "DequantizeBFP": BLOCKS, "DequantizeWithOrder": DEVICE, "DynamicSparseAttention": CACHE, "DynamicTimeWarping": STEPS,
    "EPContext": "holds what another engine compiled", "EngramGate": NEW, "GatedAdd": NEW, "GatedDeltaNet": NEW,
    "GatedRMSNorm": NEW, "GatedRelativePositionBias": DEVICE, "GemmFloat8": DEVICE, "GemmaRotaryEmbedding": DEVICE,
    "HyperConnectionPostMix": NEW, "HyperConnectionPreMix": NEW, "LinearAttention": NEW,
    "LinearAttentionGate": NEW, "LongformerAttention": DEVICE, "MRotaryEmbedding": NEW,
    "MatMulBlockQuantizedFp4Weight": NEW, "MatMulBlockQuantizedFp8Weight": NEW, "MatMulFpQ4": OLD,
    "MatMulNBitsMlp": NEW, "MatMulNBitsQkv": NEW, "MaxpoolWithMask": OLD, "MurmurHash3": OLD,
    "NGramHashMapping": NEW, "PackedSparseAttentionIndexer": NEW, "PagedAttention": CACHE, "QOrderedAttention": DEVICE, "QOrderedGelu": DEVICE, "QOrderedLayerNormalization": DEVICE,
    "QOrderedLongformerAttention": DEVICE, "QOrderedMatMul": DEVICE, "QuantizeBFP": BLOCKS, "QuantizeWithOrder": DEVICE,
    "SampleOp": OLD, "Sampling": SEARCH,
    "ScaledSiLU": NEW, "Snpe": "holds what another engine compiled", "SparseAttention": CACHE,
    "SparseAttentionIndexer": NEW, "SparsePagedAttention": CACHE, "SparseToDenseMatMul": "there are no sparse tensors",
    "TorchEmbedding": OLD, "VarlenCausalConvWithState": NEW,
    "VarlenNGramHashMapping": NEW, "WhisperBeamSearch": SEARCH, "WordConvEmbedding": OLD,
}  # fmt: skip


def ranges(text):
    return {v for part in text.split(", ") for v in range(int(part.split("-")[0]), int(part.split("-")[1]) + 1)}


def table():
    """The versions that have rows, by domain and operator."""
    text = DOCUMENT.read_text().split("<!-- operators: begin -->")[1]
    rows = {}
    for name, versions in re.findall(r"^\| ([\w.]+) \| ([\d, -]+) \|", text, re.MULTILINE):
        domain, _, op = name.rpartition(".")
        rows[domain, op] = ranges(versions)
    return rows


def schemas():
    """The versions of the operator set in which each operator stands and is not taken away."""
    since = {}
    for schema in defs.get_all_schemas_with_history():
        since.setdefault((schema.domain, schema.name), {})[schema.since_version] = schema.deprecated
    for key, versions in since.items():
        marks = sorted(versions)
        ends = [m - 1 for m in marks[1:]] + [NEWEST[key[0]]]
        yield key, {v for m, end in zip(marks, ends) if not versions[m] for v in range(m, end + 1)}


def main():
    rows, failures, seen = table(), [], set()
    for key, versions in schemas():
        without, reason = WITHOUT.get(key, ("", ""))
        listed = ranges(without) if without else set()
        seen.add(key)
        if missing := versions - rows.get(key, set()) - listed:
            failures.append(f"{key} has no row and no reason in versions {sorted(missing)}")
        if both := rows.get(key, set()) & listed:
            failures.append(f"{key} has a row and a reason for none ({reason}) in versions {sorted(both)}")
    failures += [f"{key} is on the list and onnx {onnx.__version__} has no such operator" for key in WITHOUT if key not in seen]
    own = {s.name for s in onnxruntime.get_all_operator_schema() if s.domain == "com.microsoft"}
    had = {op for domain, op in rows if domain == "com.microsoft"}
    failures += [f"com.microsoft.{op} has no row and no reason" for op in sorted(own - had - set(CONTRIBUTED))]
    failures += [f"com.microsoft.{op} has a row and a reason for none" for op in sorted(had & set(CONTRIBUTED))]
    failures += [f"com.microsoft.{op} is none" for op in sorted((had | set(CONTRIBUTED)) - own)]
    print(*failures, f"{len(seen)} and {len(own)} operators, {len(failures)} failures", sep="\n")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
