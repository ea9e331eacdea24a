"""Writes real-sized models with seeded weights, three inputs each and onnxruntime's outputs.

The nine light topologies of the onnx wheel come with weights that are all 0.02; here they get
weights under which every layer passes its signal on and every class has a logit of its own.
MobileNetV2, ResNet-18 and a transformer encoder with a free sequence length are built from
scratch.  Layout: DIR/NAME/model.onnx and DIR/NAME/test_data_set_{0,1,2}/{input,output}_*.pb.
The first output is the one users look at, the output "logits" stands before the softmax.  No logit of
these inputs is near 0, where a relative tolerance asks for more than float32 can keep.

The networks of vision.py and sequence.py are no classifiers of this kind: they have inputs of their own and
no logits.

Needs the wheels of scripts/requirements.txt and no network:  make_models.py DIR [--only NAME..] [--no-outputs]
[--layers N] [--steps N]
"""

import argparse
import math
import pathlib

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

import sequence
import vision
from builder import NORM_GAIN, Builder, he_normal, random_of, small, uniform

LIGHT = [
    "bvlc_alexnet", "densenet121", "inception_v1", "inception_v2", "resnet50", "shufflenet",
    "squeezenet", "vgg19", "zfnet512",
]  # fmt: skip
CLASSES = 1000
# What the last layer of each model is multiplied by, so that the logits of every input have a
# standard deviation of 1 to 3, about 2 on average: measured once, for inputs as make_inputs makes them.
LAST_LAYER = {
    "bvlc_alexnet": 0.43,
    "densenet121": 0.0691,
    "inception_v1": 0.461,
    "inception_v2": 0.000604,
    "resnet50": 0.000477,
    "shufflenet": 2.19e-05,
    "squeezenet": 0.276,
    "vgg19": 0.463,
    "zfnet512": 1.22,
    "mobilenet_v2": 0.624,
    "resnet18": 0.0215,
    "transformer": 1.62,
}
# How far from 0 the logits stay.
NEAR_ZERO = 0.1
POSITIVE = {"conv10_b_0": (4.0, 8.0)}  # of squeezenet

# ---- the wheel's light models


def role_of(graph, name, users):
    """(op, input index, node) of the operator that a weight ends in, through shape operators."""
    while True:
        node = users[name][0]
        index = list(node.input).index(name)
        if node.op_type not in ("Unsqueeze", "Reshape"):
            return node, index
        name = node.output[0]


def attribute(node, name, default):
    return next((helper.get_attribute_value(a) for a in node.attribute if a.name == name), default)


def light_weight(rng, node, index, shape, feeds_norm):
    """What a weight of this shape and use becomes."""
    op = node.op_type
    if op == "Conv" and index == 1:
        gain = 1 / NORM_GAIN if feeds_norm else 1.0
        return he_normal(rng, shape, math.prod(shape[1:]), gain)
    if op == "Gemm" and index == 1:
        # A weight that a Reshape brings into its form has the layout of a Gemm with transB.
        return he_normal(rng, shape, shape[-1] if attribute(node, "transB", 0) else shape[0])
    if op == "BatchNormalization":
        kinds = {1: (0.5, 1.0), 4: (0.5, 1.5)}
        return uniform(rng, shape, *kinds[index]) if index in kinds else small(rng, shape)
    if op == "Mul":  # a separate scale behind a normalization
        return uniform(rng, shape, 1.1, 1.5)
    if index == 2 or op == "Add":
        return small(rng, shape)
    raise SystemExit(f"no rule for a weight of {op}, input {index}")


def make_light(name):
    folder = pathlib.Path(onnx.__file__).parent / "backend/test/data/light"
    model = onnx.load(folder / f"light_{name}.onnx")
    graph = model.graph
    users = {}
    for node in graph.node:
        for value in node.input:
            users.setdefault(value, []).append(node)
    # Weights are stored, or made by ConstantOfShape from a stored shape.
    stored = {t.name: numpy_helper.to_array(t) for t in graph.initializer}
    shapes = {n: a.shape for n, a in stored.items() if a.dtype == np.float32 and n in users}
    made = [n for n in graph.node if n.op_type == "ConstantOfShape"]
    for node in made:
        shapes[node.output[0]] = tuple(int(d) for d in stored.pop(node.input[0]))
    tensors = [numpy_helper.from_array(a, n) for n, a in stored.items() if n in users and n not in shapes]
    for weight, shape in sorted(shapes.items()):
        node, index = role_of(graph, weight, users)
        followers = users.get(node.output[0], [])
        feeds_norm = any(u.op_type == "BatchNormalization" for u in followers)
        values = light_weight(random_of(name, weight), node, index, shape, feeds_norm)
        if weight in POSITIVE:  # its Relu would make a sixth of the logits the same 0
            values = uniform(random_of(name, weight), shape, *POSITIVE[weight])
        tensors.append(numpy_helper.from_array(values, weight))
    kept = [n for n in graph.node if n.op_type != "ConstantOfShape"]
    inputs = [i for i in graph.input if i.name not in shapes and i.name not in stored]
    inputs = [i for i in inputs if i.name in users and not i.name.endswith("__SHAPE")]
    assert len(inputs) == 1, [i.name for i in inputs]
    outputs = list(graph.output)
    last = kept[-1]
    logits = last.input[0] if last.op_type == "Softmax" else outputs[0].name
    shape = [d.dim_value for d in outputs[0].type.tensor_type.shape.dim]
    if last.op_type != "Softmax":
        outputs = []
    for node in kept:
        for names in (node.input, node.output):
            for i, value in enumerate(names):
                if value == logits:
                    names[i] = "logits"
    outputs.append(helper.make_tensor_value_info("logits", TensorProto.FLOAT, shape))
    new = helper.make_graph(kept, name, inputs, outputs, tensors)
    return helper.make_model(new, opset_imports=[helper.make_opsetid("", 9)], ir_version=4,
                             producer_name="make_models")  # fmt: skip


# ---- models built from scratch


class Classifier(Builder):
    def classifier(self, x, features):
        rng = self.rng("classifier")
        w = self.weight("classifier.weight", he_normal(rng, (CLASSES, features), features))
        b = self.weight("classifier.bias", small(rng, (CLASSES,)))
        logits = self.op("Gemm", [x, w, b], output="logits", label="classifier", transB=1)
        self.op("Softmax", [logits], output="probabilities", label="softmax", axis=1)

    def model(self, inputs, batch, opset):
        outputs = [
            helper.make_tensor_value_info(n, TensorProto.FLOAT, [batch, CLASSES])
            for n in ("probabilities", "logits")
        ]
        graph = helper.make_graph(self.nodes, self.name, inputs, outputs, self.tensors)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)],
                                 ir_version=8 if opset < 21 else 11, producer_name="make_models")  # fmt: skip


def picture_input():
    return helper.make_tensor_value_info("image", TensorProto.FLOAT, [1, 3, 224, 224])


def make_mobilenet_v2():
    b = Classifier("mobilenet_v2")
    low = b.weight("relu6.low", np.float32(0))
    high = b.weight("relu6.high", np.float32(6))
    relu6 = lambda x: b.op("Clip", [x, low, high])
    x = relu6(b.conv_norm("image", "stem", 3, 32, 3, 2))
    cin = 32
    settings = [(1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2),
                (6, 320, 1, 1)]  # fmt: skip
    for stage, (expand, cout, repeat, first_stride) in enumerate(settings):
        for i in range(repeat):
            label = f"stage{stage}.{i}"
            stride = first_stride if i == 0 else 1
            wide = cin * expand
            y = x
            if expand != 1:
                y = relu6(b.conv_norm(y, f"{label}.expand", cin, wide, 1))
            y = relu6(b.conv_norm(y, f"{label}.depthwise", wide, wide, 3, stride, wide))
            y = b.conv_norm(y, f"{label}.project", wide, cout, 1)
            x = b.op("Add", [x, y]) if stride == 1 and cin == cout else y
            cin = cout
    x = relu6(b.conv_norm(x, "head", cin, 1280, 1))
    x = b.op("GlobalAveragePool", [x])
    b.classifier(b.op("Flatten", [x], axis=1), 1280)
    return b.model([picture_input()], 1, 13)


def make_resnet18():
    b = Classifier("resnet18")
    relu = lambda x: b.op("Relu", [x])
    x = relu(b.conv_norm("image", "stem", 3, 64, 7, 2))
    x = b.op("MaxPool", [x], kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1])
    cin = 64
    for stage, cout in enumerate((64, 128, 256, 512)):
        for i in range(2):
            label = f"layer{stage + 1}.{i}"
            stride = 2 if stage > 0 and i == 0 else 1
            y = relu(b.conv_norm(x, f"{label}.conv1", cin, cout, 3, stride))
            y = b.conv_norm(y, f"{label}.conv2", cout, cout, 3)
            if stride != 1 or cin != cout:
                x = b.conv_norm(x, f"{label}.shortcut", cin, cout, 1, stride)
            x = relu(b.op("Add", [y, x]))
            cin = cout
    x = b.op("GlobalAveragePool", [x])
    b.classifier(b.op("Flatten", [x], axis=1), 512)
    return b.model([picture_input()], 1, 13)


VOCABULARY, POSITIONS, WIDTH, HEADS, HIDDEN, LAYERS = 1000, 512, 256, 4, 1024, 4


def make_encoder(name, width, heads, hidden, layers, opset):
    """Embeddings, layers with the norm behind the sum, and the mean of the tokens' classes.

    Below opset 23 attention and Gelu are formulas, from there on operators.
    """
    b = Classifier(name)
    rng = b.rng("embeddings")
    table = rng.standard_normal((VOCABULARY, width)).astype(np.float32)
    places = (rng.standard_normal((POSITIONS, width)) * 0.3).astype(np.float32)
    has_operators = opset >= 23

    def matmul(x, label, rows, columns, bias=True):
        r = b.rng(label)
        w = (r.standard_normal((rows, columns)) / math.sqrt(rows)).astype(np.float32)
        y = b.op("MatMul", [x, b.weight(f"{label}.weight", w)], label=label)
        return b.op("Add", [y, b.weight(f"{label}.bias", small(r, (columns,)))]) if bias else y

    def norm(x, label):
        r = b.rng(label)
        parts = [b.weight(f"{label}.scale", uniform(r, (width,), 0.5, 1.5)),
                 b.weight(f"{label}.bias", small(r, (width,)))]  # fmt: skip
        return b.op("LayerNormalization", [x, *parts], label=label, axis=-1, epsilon=1e-5)

    zero, one = b.weight("zero", np.int64(0)), b.weight("one", np.int64(1))
    length = b.op("Gather", [b.op("Shape", ["tokens"]), one], axis=0)
    positions = b.op("Range", [zero, length, one])
    x = b.op("Gather", [b.weight("embedding", table), "tokens"], axis=0)
    x = b.op("Add", [x, b.op("Gather", [b.weight("places", places), positions], axis=0)])
    x = norm(x, "embedding_norm")
    split = b.weight("split", np.array([0, 0, heads, width // heads], np.int64))
    merge = b.weight("merge", np.array([0, 0, width], np.int64))
    if not has_operators:
        root = b.weight("root", np.float32(math.sqrt(width // heads)))
        sqrt2 = b.weight("sqrt2", np.float32(math.sqrt(2)))
        half, unit = b.weight("half", np.float32(0.5)), b.weight("unit", np.float32(1))
    for i in range(layers):
        label = f"layer{i}"

        def split_heads(kind, perm):
            y = b.op("Reshape", [matmul(x, f"{label}.{kind}", width, width), split])
            return b.op("Transpose", [y], perm=perm)

        if has_operators:
            y = b.op("Attention", [split_heads(kind, [0, 2, 1, 3]) for kind in "qkv"])
        else:
            q, k, v = (split_heads(kind, [0, 2, *last])
                       for kind, last in (("q", (1, 3)), ("k", (3, 1)), ("v", (1, 3))))
            scores = b.op("Div", [b.op("MatMul", [q, k]), root])
            y = b.op("MatMul", [b.op("Softmax", [scores], axis=-1), v])
        y = b.op("Reshape", [b.op("Transpose", [y], perm=[0, 2, 1, 3]), merge])
        x = norm(b.op("Add", [x, matmul(y, f"{label}.o", width, width)]), f"{label}.norm1")
        y = matmul(x, f"{label}.up", width, hidden)
        if has_operators:
            y = b.op("Gelu", [y])
        else:
            erf = b.op("Add", [b.op("Erf", [b.op("Div", [y, sqrt2])]), unit])
            y = b.op("Mul", [b.op("Mul", [y, erf]), half])
        x = norm(b.op("Add", [x, matmul(y, f"{label}.down", hidden, width)]), f"{label}.norm2")
    if opset < 18:
        mean = b.op("ReduceMean", [x], axes=[1], keepdims=0)
    else:
        mean = b.op("ReduceMean", [x, b.weight("second", np.array([1], np.int64))], keepdims=0)
    b.classifier(mean, width)
    tokens = helper.make_tensor_value_info("tokens", TensorProto.INT64, ["batch", "sequence"])
    return b.model([tokens], "batch", opset)


def make_transformer(layers=LAYERS):
    return make_encoder("transformer", WIDTH, HEADS, HIDDEN, layers, 17)


def make_bert_base(opset):
    return make_encoder(f"bert_base_{opset}", 768, 12, 3072, 12, opset)


BUILT = {
    "mobilenet_v2": make_mobilenet_v2,
    "resnet18": make_resnet18,
    "transformer": make_transformer,
}
# Without logits, each with inputs of its own.
OTHERS = vision.NETWORKS | sequence.NETWORKS
# 350 MB each; made when they are named.
LARGE = {
    "bert_base_17": lambda: make_bert_base(17),
    "bert_base_23": lambda: make_bert_base(23),
}


# ---- inputs, outputs, files


def make_inputs(model, name):
    """Three data sets: pictures with structure on a coarse grid, or token lists of three lengths."""
    value = model.graph.input[0]
    results = []
    for i in range(3):
        rng = random_of(name, "input", str(i))
        if value.type.tensor_type.elem_type == TensorProto.INT64:
            results.append([rng.integers(0, VOCABULARY, (1 + i % 2, (16, 37, 128)[i]), np.int64)])
            continue
        shape = [d.dim_value for d in value.type.tensor_type.shape.dim]
        coarse = rng.standard_normal((1, 3, 7, 7)) + rng.standard_normal((1, 3, 1, 1))
        picture = np.kron(coarse, np.ones((1, 1, shape[2] // 7, shape[3] // 7)))
        results.append([(picture + 0.3 * rng.standard_normal(shape)).astype(np.float32)])
    return results


def session_of(model):
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = 1
    return onnxruntime.InferenceSession(model.SerializeToString(), options, ["CPUExecutionProvider"])


def run(model, data_sets):
    session = session_of(model)
    names = [port.name for port in model.graph.input]
    return [session.run(None, dict(zip(names, values))) for values in data_sets]


def logits_of(model, outputs):
    index = [o.name for o in model.graph.output].index("logits")
    return [o[index].reshape(-1, CLASSES) for o in outputs]


def last_layer(model):
    """The initializers (or the only one) of the last operator with weights."""
    tensors = {t.name: t for t in model.graph.initializer}
    producers = {o: n for n in model.graph.node for o in n.output}
    node = next(n for n in reversed(model.graph.node) if n.op_type in ("Conv", "Gemm"))
    found = []
    for value in node.input[1:]:
        while value not in tensors:
            value = producers[value].input[0]
        found.append(tensors[value])
    return found


def scale_last_layer(model, name):
    for tensor in last_layer(model):
        values = numpy_helper.to_array(tensor) * np.float32(LAST_LAYER.get(name, 1))
        tensor.CopyFrom(numpy_helper.from_array(values, tensor.name))


def near_zero(logits):
    """Where a logit is small but not 0, row by row."""
    return (np.abs(logits) < NEAR_ZERO) & (logits != 0)


def keep_from_zero(model, inputs):
    """Raises the biases of classes that have a logit near 0 for one of the inputs; the outputs then."""
    bias = next(t for t in last_layer(model) if math.prod(t.dims) == CLASSES)
    for turn in range(12):  # the first does, unless a Relu lets less of the bias through
        outputs = run(model, inputs)
        logits = np.concatenate(logits_of(model, outputs))
        near = np.flatnonzero(near_zero(logits).any(axis=0))
        if len(near) == 0:
            return outputs
        values = numpy_helper.to_array(bias).copy()
        for k in near:
            steps = NEAR_ZERO / 2 * np.arange(1, 4 * len(logits) + 5)
            step = next(s for s in steps if np.abs(logits[:, k] + s).min() > NEAR_ZERO)
            values.reshape(-1)[k] += step * 2**turn
        bias.CopyFrom(numpy_helper.from_array(values, bias.name))
    raise SystemExit(f"{model.graph.name} keeps logits near 0")


def save_value(path, name, array):
    path.write_bytes(numpy_helper.from_array(array, name).SerializeToString())


def report(model, outputs):
    logits = np.concatenate(logits_of(model, outputs))
    distinct = min(len(np.unique(row)) for row in logits)
    between = np.std(logits - logits.mean(axis=0))
    return (f"logits: std {logits.std(axis=1).mean():.4g}, {distinct} distinct of {CLASSES}, "
            f"std between inputs {between:.3f}")  # fmt: skip


def spreads(model, outputs):
    return ", ".join(f"{port.name}: std {np.std(outputs[0][k]):.3g}, "
                     f"between inputs {np.mean(np.std([o[k] for o in outputs], axis=0)):.3g}"
                     for k, port in enumerate(model.graph.output))  # fmt: skip


def classifier_of(name, layers):
    """The model, its inputs, and what the network makes of them."""
    built = BUILT | LARGE
    if name == "transformer":
        model = make_transformer(layers)
    else:
        model = built[name]() if name in built else make_light(name)
    inputs = make_inputs(model, name)
    scale_last_layer(model, name)
    return model, inputs, keep_from_zero(model, inputs)


def other_of(name, steps):
    """The same of a network without logits."""
    model, inputs_of = sequence.make_gru_tagger(steps) if name == "gru_tagger" else OTHERS[name]()
    inputs = [inputs_of(random_of(name, "input", str(i)), i) for i in range(3)]
    return model, inputs, run(model, inputs)


def write(folder, name, arguments):
    others = name in OTHERS
    model, inputs, outputs = (other_of(name, arguments.steps) if others
                              else classifier_of(name, arguments.layers))  # fmt: skip
    onnx.checker.check_model(model)
    target = folder / name
    target.mkdir(parents=True, exist_ok=True)
    onnx.save(model, target / "model.onnx")
    for i, values in enumerate(inputs):
        data = target / f"test_data_set_{i}"
        data.mkdir(exist_ok=True)
        for k, value in enumerate(values):
            save_value(data / f"input_{k}.pb", model.graph.input[k].name, value)
        for k, value in enumerate([] if arguments.no_outputs else model.graph.output):
            save_value(data / f"output_{k}.pb", value.name, outputs[i][k])
    size = (target / "model.onnx").stat().st_size / 2**20
    print(f"{name}: {size:.1f} MiB, {len(model.graph.node)} nodes, "
          f"{spreads(model, outputs) if others else report(model, outputs)}", flush=True)  # fmt: skip


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("directory", type=pathlib.Path)
    parser.add_argument("--only", nargs="+", metavar="NAME",
                        choices=[*LIGHT, *BUILT, *OTHERS, *LARGE])  # fmt: skip
    parser.add_argument("--no-outputs", action="store_true")
    parser.add_argument("--layers", type=int, default=LAYERS, help="of the transformer")
    parser.add_argument("--steps", type=int, default=sequence.GRU_STEPS, help="of the tagger")
    arguments = parser.parse_args()
    for name in arguments.only or [*LIGHT, *BUILT, *OTHERS]:
        write(arguments.directory, name, arguments)


if __name__ == "__main__":
    main()
