"""Models that other tools have rewritten: onnxruntime's optimisers, float16, onnxsim, newer operator sets."""

import functools
import pathlib
import tempfile

import onnx
import onnxruntime
import pictures
import sequences
from example import export
from onnxruntime.transformers import float16, optimizer
from onnxruntime.transformers.fusion_options import FusionOptions


def exported(makers, name, folder):
    path = pathlib.Path(folder) / "plain.onnx"
    export(name, makers[name], "script", path)
    return str(path)


def saved(makers, name, change, path):
    with tempfile.TemporaryDirectory() as folder:
        change(exported(makers, name, folder), str(path))


def by_level(level, source, target):
    """What onnxruntime writes of its own graph after its passes."""
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level, options.optimized_model_filepath = level, target
    onnxruntime.InferenceSession(source, options, ["CPUExecutionProvider"])


def for_transformers(source, target):
    options = FusionOptions("bert")
    optimizer.optimize_model(source, "bert", num_heads=4, hidden_size=96, optimization_options=options).save_model_to_file(target)


def halved(keep_io, source, target):
    onnx.save(float16.convert_float_to_float16(onnx.load(source), keep_io_types=keep_io), target)


def simplified(source, target):
    import onnxsim

    model, right = onnxsim.simplify(onnx.load(source))
    assert right
    onnx.save(model, target)



def newer(version, source, target):
    onnx.save(onnx.version_converter.convert_version(onnx.load(source), version), target)


LEVELS = onnxruntime.GraphOptimizationLevel
WAYS = {"basic": functools.partial(by_level, LEVELS.ORT_ENABLE_BASIC), "extended": functools.partial(by_level, LEVELS.ORT_ENABLE_EXTENDED),
        "transformers": for_transformers,
        "half": functools.partial(halved, False), "half_inside": functools.partial(halved, True), "simplified": simplified,
        "opset_21": functools.partial(newer, 21)}  # fmt: skip
CHOSEN = [(pictures.NETWORKS, name, way) for name in ("resnet", "mobilenet_v3", "unet_bilinear", "vit", "yolo")
          for way in ("extended", "half", "half_inside", "simplified", "opset_21")]  # fmt: skip
CHOSEN += [(sequences.NETWORKS, name, way) for name in ("encoder_fixed", "encoder", "relative_bias", "conformer")
           for way in ("extended", "transformers", "half", "half_inside", "simplified")]  # fmt: skip
CHOSEN += [(sequences.NETWORKS, name, way) for name in ("llama_cache", "lstm_tagger", "vocoder") for way in ("extended", "half", "basic")]
MODELS = {f"rewritten/{name}_{way}": functools.partial(saved, makers, name, WAYS[way]) for makers, name, way in CHOSEN}
