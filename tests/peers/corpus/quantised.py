"""Models through onnxruntime's quantiser: static (QDQ and QLinear), dynamic, and weights of four bits."""

import functools
import pathlib
import tempfile

import onnx
import pictures
import sequences
from example import export
from onnxruntime.quantization import (CalibrationDataReader, QuantFormat, QuantType, quantize_dynamic, quantize_static,
                                      shape_inference)  # fmt: skip

import inputs


class Reader(CalibrationDataReader):
    """Three of the runner's inputs."""

    def __init__(self, path):
        model = onnx.load(path)
        self.rest = [inputs.synthesised(model, 0, seed=seed) for seed in range(3)]

    def get_next(self):
        return self.rest.pop() if self.rest else None


def from_float(makers, name, change, path):
    with tempfile.TemporaryDirectory() as folder:
        plain, ready = pathlib.Path(folder) / "plain.onnx", pathlib.Path(folder) / "ready.onnx"
        export(name, makers[name], "script", plain)
        shape_inference.quant_pre_process(str(plain), str(ready), skip_symbolic_shape=True)
        change(str(ready), str(path))


def static(format_, activation, weight, per_channel, source, target):
    quantize_static(source, target, Reader(source), quant_format=format_, activation_type=activation, weight_type=weight,
                    per_channel=per_channel)  # fmt: skip


def dynamic(weight, source, target):
    quantize_dynamic(source, target, weight_type=weight)


def four_bits(block, symmetric, accuracy, source, target):
    from onnxruntime.quantization.matmul_nbits_quantizer import MatMulNBitsQuantizer

    quantizer = MatMulNBitsQuantizer(onnx.load(source), block_size=block, is_symmetric=symmetric, accuracy_level=accuracy)
    quantizer.process()
    onnx.save(quantizer.model.model, target)


U8, S8 = QuantType.QUInt8, QuantType.QInt8
WAYS = {
    "qdq_u8s8": functools.partial(static, QuantFormat.QDQ, U8, S8, True), "qdq_s8s8": functools.partial(static, QuantFormat.QDQ, S8, S8, False),
    "qlinear": functools.partial(static, QuantFormat.QOperator, U8, U8, False),
    "dynamic": functools.partial(dynamic, U8), "four_bits": functools.partial(four_bits, 32, True, 0),
    "four_bits_offset": functools.partial(four_bits, 16, False, 4), "qdq_u16": functools.partial(static, QuantFormat.QDQ, QuantType.QUInt16, S8, False),
}  # fmt: skip
OF_PICTURES = ("resnet", "mobilenet_v2", "mobilenet_v3", "squeezenet", "inception", "yolo", "super_resolution", "vit")
OF_SEQUENCES = ("encoder_fixed", "llama_step", "lstm_tagger", "text_cnn", "relative_bias", "conformer")
CHOSEN = [(pictures.NETWORKS, name, way) for name in OF_PICTURES for way in ("qdq_u8s8", "qdq_s8s8", "qlinear")]
CHOSEN += [(pictures.NETWORKS, name, "dynamic") for name in ("vgg", "vit")]
CHOSEN += [(sequences.NETWORKS, name, way) for name in OF_SEQUENCES for way in ("dynamic", "qdq_u8s8")]
CHOSEN += [(sequences.NETWORKS, name, way) for name in ("encoder_fixed", "llama_step", "relative_bias") for way in ("four_bits", "four_bits_offset")]
CHOSEN += [(pictures.NETWORKS, "resnet", "qdq_u16")]
MODELS = {f"quantised/{name}_{way}": functools.partial(from_float, makers, name, WAYS[way]) for makers, name, way in CHOSEN}
