"""The networks of bench/train.py, each in tiny and in PyTorch over the same parameters.

A row: what a batch is, the loss in both, the optimiser. tiny's layers make the parameters; PyTorch's side finds
them by their names in `p`.
"""

import dataclasses
import math

VOCABULARY, LENGTH = 65, 64  # of the GPT
BERT_WORDS, BERT_LENGTH = 30522, 128
LSTM_WORDS, LSTM_STEPS = 10000, 35
EMBEDDING_ROWS = 1024


@dataclasses.dataclass
class Network:
    """`tiny(module, x, y)` and `torch(p, x, y)` are losses; both get the arrays of `data(generator)`."""

    data: object
    tiny: object
    torch: object
    optimizer: str = "ADAM"  # of tiny.OptimizerKind
    rate: float = 1e-3
    momentum: float = 0.0
    channels_last: bool = False
    most: float = 1.0  # tiny's time over torch's at its best that is wanted, on one thread
    most_two: float = 1.0  # the same on two


def pictures(batch, channels, size, classes):
    return lambda random: (random.standard_normal((batch, channels, size, size)).astype("float32"),
                           random.integers(0, classes, batch))  # fmt: skip


def tokens(shape, words):
    return lambda random: (random.integers(0, words, shape), random.integers(0, words, shape))


# ---- beautiful_mnist's network


def mnist_tiny(m, x, y):
    import tiny

    five, three = tiny.Window(2, kernel=5), tiny.Window(2, kernel=3)
    h = m.conv("c1", x, 32, five).relu()
    h = m.conv("c2", h, 32, five).relu()
    h = m.batch_norm("b1", h).max_pool(2, strides=2)
    h = m.conv("c3", h, 64, three).relu()
    h = m.conv("c4", h, 64, three).relu()
    h = m.batch_norm("b2", h).max_pool(2, strides=2)
    return m.linear("l1", h.reshape([x.shape[0], 576]), 10).cross_entropy(y)


def mnist_torch(p, x, y):
    from torch.nn import functional as F

    norm = lambda h, name: F.batch_norm(h, p[f"{name}.running_mean"], p[f"{name}.running_var"],  # noqa: E731
                                        p[f"{name}.weight"], p[f"{name}.bias"], training=True)  # fmt: skip
    conv = lambda h, name: F.relu(F.conv2d(h, p[f"{name}.weight"], p[f"{name}.bias"]))  # noqa: E731
    h = F.max_pool2d(norm(conv(conv(x, "c1"), "c2"), "b1"), 2)
    h = F.max_pool2d(norm(conv(conv(h, "c3"), "c4"), "b2"), 2)
    return F.cross_entropy(F.linear(h.flatten(1), p["l1.weight"], p["l1.bias"]), y)


# ---- Three linear layers


def mlp_tiny(m, x, y):
    h = m.linear("l1", x, 512).relu()
    h = m.linear("l2", h, 512).relu()
    return m.linear("l3", h, 10).cross_entropy(y)


def mlp_torch(p, x, y):
    from torch.nn import functional as F

    h = F.relu(F.linear(x, p["l1.weight"], p["l1.bias"]))
    h = F.relu(F.linear(h, p["l2.weight"], p["l2.bias"]))
    return F.cross_entropy(F.linear(h, p["l3.weight"], p["l3.bias"]), y)


# ---- Transformers: GPT 4 x 128 before the norm, BERT-base after it


def attention_tiny(m, name, x, heads, causal):
    rows, length, width = x.shape
    three = m.linear(f"{name}.in", x, 3 * width).reshape([rows, length, 3, heads, width // heads])
    q, k, v = (three.slice([0, 0, i, 0, 0], [rows, length, i + 1, heads, width // heads])
               .reshape([rows, length, heads, width // heads]).permute([0, 2, 1, 3]) for i in range(3))  # fmt: skip
    scores = q @ k.permute([0, 1, 3, 2]) * (1 / math.sqrt(width // heads))
    if causal:
        import tiny

        place = x.context.arange(tiny.int32, length)
        scores = (place.reshape([length, 1]) >= place.reshape([1, length])).where(scores, -math.inf)
    seen = (scores.softmax(-1) @ v).permute([0, 2, 1, 3]).reshape([rows, length, width])
    return m.linear(f"{name}.out", seen, width)


def attention_torch(p, name, x, heads, causal):
    from torch.nn import functional as F

    rows, length, width = x.shape
    q, k, v = (t.view(rows, length, heads, width // heads).transpose(1, 2)
               for t in F.linear(x, p[f"{name}.in.weight"], p[f"{name}.in.bias"]).chunk(3, -1))  # fmt: skip
    seen = F.scaled_dot_product_attention(q, k, v, is_causal=causal).transpose(1, 2).reshape(rows, length, width)
    return F.linear(seen, p[f"{name}.out.weight"], p[f"{name}.out.bias"])


def gpt_tiny(m, x, y):
    h = m.embedding("words", x, VOCABULARY, 128) + m.parameter("places", [LENGTH, 128], 2, 0.0, 0.02)
    for i in range(4):
        h = h + attention_tiny(m, f"{i}.attention", m.layer_norm(f"{i}.n1", h), 4, True)
        up = m.linear(f"{i}.up", m.layer_norm(f"{i}.n2", h), 512).gelu()
        h = h + m.linear(f"{i}.down", up, 128)
    z = m.linear("head", m.layer_norm("n", h), VOCABULARY, no_bias=True)
    return z.reshape([-1, VOCABULARY]).cross_entropy(y.reshape([-1]))


def norm_torch(p, name, h):
    from torch.nn import functional as F

    return F.layer_norm(h, h.shape[-1:], p[f"{name}.weight"], p[f"{name}.bias"])


def gpt_torch(p, x, y):
    from torch.nn import functional as F

    h = F.embedding(x, p["words.weight"]) + p["places"]
    for i in range(4):
        h = h + attention_torch(p, f"{i}.attention", norm_torch(p, f"{i}.n1", h), 4, True)
        up = F.gelu(F.linear(norm_torch(p, f"{i}.n2", h), p[f"{i}.up.weight"], p[f"{i}.up.bias"]))
        h = h + F.linear(up, p[f"{i}.down.weight"], p[f"{i}.down.bias"])
    z = F.linear(norm_torch(p, "n", h), p["head.weight"])
    return F.cross_entropy(z.view(-1, VOCABULARY), y.view(-1))


def bert_tiny(m, x, y):
    h = m.embedding("words", x, BERT_WORDS, 768) + m.parameter("places", [BERT_LENGTH, 768], 2, 0.0, 0.02)
    h = m.layer_norm("n", h)
    for i in range(12):
        h = m.layer_norm(f"{i}.n1", h + attention_tiny(m, f"{i}.attention", h, 12, False))
        up = m.linear(f"{i}.up", h, 3072).gelu()
        h = m.layer_norm(f"{i}.n2", h + m.linear(f"{i}.down", up, 768))
    first = h.slice([0, 0, 0], [h.shape[0], 1, 768]).reshape([h.shape[0], 768])
    return m.linear("head", m.linear("pool", first, 768).tanh(), 2).cross_entropy(y)


def bert_torch(p, x, y):
    from torch.nn import functional as F

    h = norm_torch(p, "n", F.embedding(x, p["words.weight"]) + p["places"])
    for i in range(12):
        h = norm_torch(p, f"{i}.n1", h + attention_torch(p, f"{i}.attention", h, 12, False))
        up = F.gelu(F.linear(h, p[f"{i}.up.weight"], p[f"{i}.up.bias"]))
        h = norm_torch(p, f"{i}.n2", h + F.linear(up, p[f"{i}.down.weight"], p[f"{i}.down.bias"]))
    pooled = F.linear(h[:, 0], p["pool.weight"], p["pool.bias"]).tanh()
    return F.cross_entropy(F.linear(pooled, p["head.weight"], p["head.bias"]), y)


# ---- A residual network of hlb-CIFAR10's size

RESNET_WIDTHS = (64, 256, 512)


def resnet_tiny(m, x, y):
    import tiny

    three = tiny.Window(2, kernel=3, padding=1)
    conv = lambda name, h, width: m.conv(name, h, width, three, no_bias=True)  # noqa: E731
    h = m.conv("white", x, 24, tiny.Window(2, kernel=2)).gelu()
    for i, width in enumerate(RESNET_WIDTHS):
        h = m.batch_norm(f"{i}.n1", conv(f"{i}.c1", h, width).max_pool(2, strides=2)).gelu()
        h = h + m.batch_norm(f"{i}.n2", conv(f"{i}.c2", h, width)).gelu()
    return m.linear("head", h.max(axis=(2, 3)), 10, no_bias=True).cross_entropy(y)


def resnet_torch(p, x, y):
    from torch.nn import functional as F

    norm = lambda name, h: F.batch_norm(h, p[f"{name}.running_mean"], p[f"{name}.running_var"],  # noqa: E731
                                        p[f"{name}.weight"], p[f"{name}.bias"], training=True)  # fmt: skip
    h = F.gelu(F.conv2d(x, p["white.weight"], p["white.bias"]))
    for i in range(len(RESNET_WIDTHS)):
        h = F.gelu(norm(f"{i}.n1", F.max_pool2d(F.conv2d(h, p[f"{i}.c1.weight"], padding=1), 2)))
        h = h + F.gelu(norm(f"{i}.n2", F.conv2d(h, p[f"{i}.c2.weight"], padding=1)))
    return F.cross_entropy(F.linear(h.amax((2, 3)), p["head.weight"]), y)


# ---- A language model of two LSTM layers


def lstm_tiny(m, x, y):
    import tiny

    h = m.embedding("words", x, LSTM_WORDS, 256)
    h = m.recurrent("lstm", tiny.RecurrentKind.LSTM, h, 256, 1, layers=2)[0]
    return m.linear("head", h.reshape([-1, 256]), LSTM_WORDS).cross_entropy(y.reshape([-1]))


def lstm_torch(p, x, y):
    import torch
    from torch.nn import functional as F

    h = F.embedding(x, p["words.weight"])
    weights = [p[f"lstm.{kind}_{side}_l{layer}"]
               for layer in range(2) for kind in ("weight", "bias") for side in ("ih", "hh")]  # fmt: skip
    zero = torch.zeros(2, x.shape[1], 256)
    h = torch.lstm(h, (zero, zero), weights, True, 2, 0.0, True, False, False)[0]
    return F.cross_entropy(F.linear(h.reshape(-1, 256), p["head.weight"], p["head.bias"]), y.view(-1))


# ---- The gradient of an embedding by itself


def embedding(words):
    def of_tiny(m, x, y):
        return (m.embedding("words", x, words, 128) * y).sum()

    def of_torch(p, x, y):
        from torch.nn import functional as F

        return (F.embedding(x, p["words.weight"]) * y).sum()

    def data(random):
        return random.integers(0, words, EMBEDDING_ROWS), random.standard_normal((EMBEDDING_ROWS, 128)).astype("float32")

    return Network(data, of_tiny, of_torch, optimizer="SGD")


NETWORKS = {
    "mnist": Network(pictures(128, 1, 28, 10), mnist_tiny, mnist_torch, channels_last=True, most=0.45, most_two=0.55),
    "MLP 784-512-512-10": Network(
        lambda random: (random.standard_normal((128, 784)).astype("float32"), random.integers(0, 10, 128)),
        mlp_tiny, mlp_torch, optimizer="SGD", rate=0.01, momentum=0.9, most=0.85, most_two=0.85),
    "GPT 4x128": Network(tokens((16, LENGTH), VOCABULARY), gpt_tiny, gpt_torch, most=0.43, most_two=0.40),
    "ResNet of hlb-CIFAR10's size": Network(pictures(64, 3, 32, 10), resnet_tiny, resnet_torch, optimizer="SGD",
                                            rate=0.01, momentum=0.9, channels_last=True, most=0.6, most_two=0.6),
    "LSTM 2x256": Network(tokens((LSTM_STEPS, 20), LSTM_WORDS), lstm_tiny, lstm_torch, optimizer="SGD", rate=0.1,
                          most=0.6, most_two=0.6),
    "BERT-base 4x128": Network(
        lambda random: (random.integers(0, BERT_WORDS, (4, BERT_LENGTH)), random.integers(0, 2, 4)),
        bert_tiny, bert_torch, optimizer="ADAMW", rate=2e-5, most=0.8, most_two=0.8),
    **{f"embedding of {words}": embedding(words) for words in (65, 1000, 32000)},
}  # fmt: skip
