"""Small networks, each of one kind of operation that exporters write in many nodes."""

import sequences
import torch
import torch.nn.functional as F
from example import Example
from torch import nn


class Function(nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, *inputs):
        return self.function(*inputs)


def function(call, *inputs, **how):
    return Example(Function(call), inputs, **how)


def randn(*shape):
    return torch.randn(*shape)


def normalisations():
    class Norms(nn.Module):
        def __init__(self):
            super().__init__()
            self.parts = nn.ModuleList([nn.BatchNorm2d(16), nn.InstanceNorm2d(16, affine=True), nn.GroupNorm(4, 16),
                                        nn.LayerNorm((16, 10, 12)), nn.LocalResponseNorm(5), nn.Softmax2d()])  # fmt: skip

        def forward(self, x):
            return tuple(part(x) for part in self.parts)

    return Example(Norms(), (randn(2, 16, 10, 12),))


def weight_normalised():
    convs = [nn.utils.parametrizations.weight_norm(nn.Conv1d(8, 16, 3)), nn.ReLU(), nn.Conv1d(16, 8, 3)]
    return Example(nn.Sequential(*convs), (randn(2, 8, 30),))


def rms_norms():
    return function(lambda x, w: (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * w, F.normalize(x, p=1, dim=1), x / x.norm(dim=-1, keepdim=True)),
                    randn(4, 6, 32), randn(32))  # fmt: skip


def classification_losses():
    return function(lambda x, y: (F.cross_entropy(x, y), F.cross_entropy(x, y, reduction="none"),
                                  F.nll_loss(x.log_softmax(1), y)),
                    randn(6, 10), torch.randint(0, 10, (6,)), names=("scores", "labels"))  # fmt: skip


def segmentation_loss():
    return function(lambda x, y: F.cross_entropy(x, y, weight=torch.linspace(0.5, 2, 5), ignore_index=3), randn(2, 5, 8, 8),
                    torch.randint(0, 5, (2, 8, 8)), names=("scores", "labels"))  # fmt: skip


def regression_losses():
    return function(lambda a, b: (F.mse_loss(a, b), (a - b).abs().mean(),
                                  F.binary_cross_entropy_with_logits(a, b.sigmoid()),
                                  F.kl_div(a.log_softmax(1), b.softmax(1), reduction="batchmean"),
                                  F.margin_ranking_loss(a, b, torch.ones(8, 20))),
                    randn(8, 20), randn(8, 20))  # fmt: skip


def einsums():
    return function(lambda a, b, c: (torch.einsum("bij,bjk->bik", a, b), torch.einsum("bij,bkj->bki", a, c),
                                     torch.einsum("bij->bj", a), torch.einsum("bii->bi", a[:, :, :6]),
                                     torch.einsum("bij,bjk,bkl->bil", a, b, b.transpose(1, 2)),
                                     torch.einsum("bij,blj->bijl", a, c)), randn(3, 6, 7), randn(3, 7, 5), randn(3, 4, 7))  # fmt: skip


def writes():
    def call(x, places, values):
        x = x.clone()
        x[:, 2:5] = 0
        x[places] = values
        x[..., -1] = x[..., 0] * 2
        return x, x.index_add(0, places, values), x.index_copy(0, places, values), x.index_fill(1, torch.tensor([0, 3]), 7.0)

    return function(call, randn(8, 6), torch.tensor([1, 5, 3]), randn(3, 6), names=("x", "places", "values"))


def masked_writes():
    def call(x):
        x = x.clone()
        x[x > 1] = 1.0
        return x, x.masked_fill(x < -1, -1.0), torch.where(x > 0, x, 0.1 * x)

    return function(call, randn(8, 6))


def scatters():
    def call(x, index, source):
        return (x.scatter(1, index, source), x.scatter_add(1, index, source),
                x.scatter_reduce(1, index, source, "amax"), x.scatter_reduce(1, index, source, "prod"))

    return function(call, randn(5, 9), torch.stack([torch.randperm(9)[:4] for _ in range(5)]), randn(5, 4),
                    names=("x", "index", "source"), opset=18)  # fmt: skip


def gathers():
    return function(lambda x, i, j: (x[:5].gather(1, i), x[:, j], x[i[:, 0], j[0]], x.index_select(1, j),
                                     F.embedding(i, x)), randn(9, 9), torch.randint(0, 9, (5, 4)), torch.randint(0, 9, (3,)),
                    names=("x", "index", "columns"))  # fmt: skip


def grid_samples():
    return function(lambda x, g: (F.grid_sample(x, g, align_corners=True), F.grid_sample(x, g, "nearest", "border", False),
                                  F.grid_sample(x, g, "bicubic", "reflection", False)),
                    randn(2, 3, 9, 11), torch.rand(2, 6, 7, 2) * 2 - 1, names=("x", "grid"), opset=20)  # fmt: skip


def interpolations():
    def call(x):
        sizes = lambda mode, **more: F.interpolate(x, size=(17, 13), mode=mode, **more)
        return (sizes("nearest"), sizes("bilinear", align_corners=True), sizes("bicubic", align_corners=False),
                F.interpolate(x, scale_factor=2, mode="nearest"), F.interpolate(x, scale_factor=1.5, mode="bilinear"))

    return function(call, randn(1, 3, 10, 12))


def other_interpolations():
    return function(lambda x, y: (F.interpolate(x, scale_factor=3, mode="linear"), F.interpolate(y, size=(4, 9, 7), mode="trilinear"),
                                  F.interpolate(y, scale_factor=2, mode="nearest")), randn(1, 3, 20), randn(1, 2, 3, 4, 5))  # fmt: skip


def pixel_moves():
    return function(lambda x: (F.pixel_shuffle(x, 2), F.pixel_unshuffle(x, 2)), randn(1, 16, 8, 6))


def running():
    return function(lambda x: (x.cumsum(1), x.cumsum(0), x.flip(1).cumsum(1).flip(1)), randn(4, 50, 3),
)  # fmt: skip


def cumulated():
    return function(lambda x: (x.cumsum(-1), x.cumsum(0), x[:, 1:] - x[:, :-1]), randn(4, 50, 30))


def orders():
    return function(lambda x: (*x.topk(5), *x.topk(3, dim=0, largest=False), *x.sort(dim=1, descending=True), x.argsort(dim=0),
                               *x.max(1), *x.min(0), x.argmax(), x.argmin(1)), randn(7, 12))  # fmt: skip


def windows():
    return function(lambda x: (F.unfold(x, 3, padding=1), F.fold(F.unfold(x, 2, stride=2), (8, 8), 2, stride=2),
                               x.unfold(2, 4, 2)), randn(1, 3, 8, 8), opset=18)  # fmt: skip


def paddings():
    return function(lambda x: (F.pad(x, (1, 2, 3, 4), value=0.5), F.pad(x, (1, 2, 3, 4), "reflect"), F.pad(x, (2, 2, 1, 1), "replicate"),
                               F.pad(x, (2, 1, 1, 3), "circular"), F.pad(x, (-1, 2))), randn(1, 2, 6, 7))  # fmt: skip


def poolings():
    return function(lambda x: (F.max_pool2d(x, 3, 2, 1, ceil_mode=True), F.avg_pool2d(x, 3, 2, 1), F.lp_pool2d(x.abs(), 2, 2),
                               F.adaptive_avg_pool2d(x, (4, 5)), F.adaptive_max_pool2d(x, 2), F.avg_pool2d(x, (2, 5)),
                               F.max_pool2d(x, 5, 1, 2, dilation=2)), randn(1, 4, 16, 20))  # fmt: skip


def line_poolings():
    return function(lambda x, y: (F.max_pool1d(x, 3, 2), F.avg_pool1d(x, 4, 2, 1), F.adaptive_avg_pool1d(x, 5), F.max_pool3d(y, 2),
                                  F.avg_pool3d(y, (1, 2, 2))), randn(2, 4, 30), randn(1, 2, 6, 8, 8))  # fmt: skip


def convolutions():
    class Convs(nn.Module):
        def __init__(self):
            super().__init__()
            self.parts = nn.ModuleList([nn.Conv2d(8, 12, 3, dilation=2), nn.Conv2d(8, 16, (1, 5), (2, 1), (0, 2), groups=4),
                                        nn.Conv2d(8, 8, 3, groups=8, padding="same"), nn.ConvTranspose2d(8, 6, 3, 2, 1, 1),
                                        nn.ConvTranspose2d(8, 8, 4, 2, 1, groups=8), nn.ConvTranspose2d(8, 4, 3, dilation=2),
                                        nn.Conv2d(8, 4, 4, padding="same", bias=False)])  # fmt: skip

        def forward(self, x):
            return tuple(part(x) for part in self.parts)

    return Example(Convs(), (randn(1, 8, 15, 18),))


def arrangements():
    return function(lambda x: (x.roll(2, 1), x.roll((1, -2), (0, 2)), x.flip(0, 2), x.repeat(1, 2, 3),
                               x.repeat_interleave(2, 1), x.tile(2, 1, 1), x.expand(2, 3, 4, 5), x.movedim(0, 2), x.diagonal(0, 1, 2)),
                    randn(3, 4, 5))  # fmt: skip


def splits():
    return function(lambda x: (*x.split((1, 3, 4), 1), *x.chunk(3, 0), torch.stack(x.unbind(0), 2), torch.cat([x, x[:, :2]], 1),
                               x.reshape(2, -1), x.unflatten(1, (2, 4)), x.squeeze().unsqueeze(1), x.swapaxes(0, 1)), randn(3, 8, 5))  # fmt: skip


def slices():
    return function(lambda x: (x[:, 1:-1:2], x[..., -3:], x[::2, None, ::3], x[-1], x[:, [0, 2, 2]], x.narrow(1, 2, 3), x[:, :, 1],
                               x.select(2, -2)), randn(5, 8, 6), names=("x",))  # fmt: skip


def triangles():
    return function(lambda x: (x.triu(), x.tril(-1), x.triu(2), torch.eye(6) * x[0], torch.ones(6, 6).tril() @ x), randn(3, 6, 6))  # fmt: skip


def made_from_sizes():
    def call(x):
        n, t = x.shape[0], x.shape[1]
        ys, xs = torch.meshgrid(torch.arange(n), torch.arange(t), indexing="ij")
        return (torch.arange(t) * x, torch.zeros(n, t) + x, (ys * t + xs).float() + x, x.new_ones(t), x.view(n * t), x.mean() * t,
                torch.arange(0, t, 2).float())

    return function(call, randn(3, 10), names=("x",), free={"x": {0: "batch", 1: "time"}})


def classes():
    return function(lambda i, x: (F.one_hot(i, 6), torch.bucketize(x, torch.tensor([-1.0, 0, 1])), i.bool().any(), (i > 2).all(1),
                                  (i == 1).sum(0), i.float().softmax(1)), torch.randint(0, 6, (4, 5)), randn(4, 5),
                    names=("labels", "x"))  # fmt: skip


def counted():
    return function(lambda x: (x.nonzero(), x[x > 0]), randn(5, 6))


def statistics():
    return function(lambda x: (x.mean((1, 2)), x.std(1), x.var(-1, unbiased=False), x.var(), x.norm(), x.norm(1, 2), x.logsumexp(1),
                               x.prod(2), x.amax((0, 2)), x.aminmax()[0], x.sum(), x.abs().sum((0, 1)),
                               torch.linalg.vector_norm(x, 3, 2)), randn(4, 6, 5))  # fmt: skip


def activations():
    return function(lambda x: (F.gelu(x), F.gelu(x, approximate="tanh"), F.silu(x), F.elu(x), F.selu(x), F.celu(x, 0.7),
                               F.hardswish(x), F.hardsigmoid(x), F.hardtanh(x), F.softplus(x), F.softsign(x), F.leaky_relu(x, 0.3),
                               F.relu6(x), F.logsigmoid(x), F.tanhshrink(x), F.softshrink(x), F.hardshrink(x), F.threshold(x, 0.1, 0),
                               F.glu(x)), randn(6, 40))  # fmt: skip


def functions_of_elements():
    return function(lambda x: (x.exp(), x.abs().log(), x.abs().sqrt(), x.sin(), x.cos(), x.tan(), x.atan(), x.tanh().asin(),
                               x.tanh().acos(), x.erf(), x.floor(), x.ceil(),
                               x.round(), x.sign(), x.reciprocal(), x.pow(3), 2**x, x.abs().rsqrt(), x.abs().log2(), x.abs().log1p(),
                               x.trunc(), x.frac(), x.clamp(-0.5, 0.7), x.isnan(), x.sigmoid()), randn(6, 30))  # fmt: skip


def rarer_functions():
    return function(lambda x: (x.sinh(), x.cosh(), x.asinh(), x.tanh().atanh(), x.diff(dim=1), F.mish(x), torch.rot90(x, 1, (0, 1)),
                               x.cumprod(1), x.exp2(), x.expm1(), x.sinc(), torch.logcumsumexp(x, 1), torch.hypot(x, x + 1),
                               torch.logaddexp(x, 2 * x), F.smooth_l1_loss(x, x + 0.7), F.huber_loss(x, x * 2), F.rms_norm(x, (30,))), randn(6, 30))  # fmt: skip


def pairs_of_elements():
    return function(lambda a, b: (a + b, a - 2 * b, a * b, a / b, a // b, a % b, torch.fmod(a, b), torch.maximum(a, b), torch.minimum(a, b),
                                  a.abs() ** b, torch.atan2(a, b), a > b, a <= b, a == b, torch.lerp(a, b, 0.3),
                                  torch.addcmul(a, a, b, value=0.5), a.remainder(0.7), a.where(a > b, b)),
                    randn(4, 6), randn(3, 1, 6))  # fmt: skip


def whole_numbers():
    return function(lambda a, b: (a + b, a * b, a // b, a % b, torch.div(a, b, rounding_mode="trunc"), a.clamp(2, 9), a.float().mean(), a.max(), (a - b).abs(), -a, a.cumsum(0), a.sum(1)),
                    torch.randint(1, 50, (4, 6)), torch.randint(1, 9, (4, 6)), names=("positive_a", "positive_b"), opset=18)  # fmt: skip


def bits():
    return function(lambda a, b: (a & b, a | b, a ^ b, a << 2, a >> 1, ~a), torch.randint(1, 50, (4, 6)), torch.randint(1, 9, (4, 6)),
                    names=("positive_a", "positive_b"), opset=18)  # fmt: skip


def truths():
    return function(lambda a, b: (a & b, a | b, a ^ b, ~a, torch.logical_and(a, b), a.any(1), b.all(), a.int().sum(), torch.where(a, 1.0, 0.0),
                                  a == b), randn(4, 6) > 0, randn(4, 6) > 0)  # fmt: skip


def products():
    return function(lambda a, b, v: (a @ b, a @ v, v @ b[0], torch.outer(v, v), torch.baddbmm(v[:5].expand(3, 6, 5), a, b),
                                     torch.addmm(v[:5].expand(6, 5), a[0], b[0]), a.transpose(1, 2) @ a, torch.tensordot(a, b, ([2], [1])),
                                     torch.linalg.cross(a[..., :3], a[..., 1:4])),
                    randn(3, 6, 7), randn(3, 7, 5), randn(7))  # fmt: skip


def distances():
    return function(lambda a, b: (torch.cdist(a, b), F.pairwise_distance(a[:, :5], b), F.cosine_similarity(a[:, :5], b, -1)),
                    randn(2, 6, 8), randn(2, 5, 8))  # fmt: skip


def half_precision():
    body = nn.Sequential(nn.Conv2d(3, 16, 3, 2, 1), nn.ReLU(), nn.Conv2d(16, 32, 3, 2, 1), nn.SiLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(),
                         nn.Linear(32, 10)).half()  # fmt: skip
    return Example(body, (randn(1, 3, 32, 32).half(),))


def half_transformer():
    return Example(sequences.Block(64, 4, 128).half(), (randn(2, 12, 64).half(),))


def double_precision():
    return Example(nn.Sequential(nn.Linear(20, 40), nn.Tanh(), nn.LayerNorm(40), nn.Linear(40, 3), nn.Softmax(1)).double(),
                   (randn(5, 20).double(),))  # fmt: skip


@torch.jit.script
def by_mean(x):
    if bool(x.mean() > 0):
        y = x * 2 + 1
    else:
        y = x.relu() - 1
    return y


def branches():
    return function(by_mean, randn(4, 6))


def conditional():
    class Conditional(nn.Module):
        def forward(self, x):
            return torch.cond(x.sum() > 0, lambda x: x.sin(), lambda x: x.cos() * 2, (x,))

    return Example(Conditional(), (randn(4, 6),))


@torch.jit.script
def until_small(x):
    while bool(x.abs().max() > 0.1):
        x = x * 0.5
    return x


def while_loop():
    return function(until_small, randn(4, 6))


def fourier():
    return function(lambda x: (torch.view_as_real(torch.fft.rfft(x)), torch.fft.fft(x).abs(), torch.fft.irfft(torch.fft.rfft(x))),
                    randn(3, 64), opset=20)  # fmt: skip


def attentions():
    return function(lambda q, k, v, m: (F.scaled_dot_product_attention(q, k, v), F.scaled_dot_product_attention(q, k, v, is_causal=True),
                                        F.scaled_dot_product_attention(q, k, v, m), F.scaled_dot_product_attention(q, k, v, m > 0)),
                    randn(2, 4, 20, 16), randn(2, 4, 20, 16), randn(2, 4, 20, 16), randn(1, 1, 20, 20))  # fmt: skip


NETWORKS = {maker.__name__: maker for maker in (
    normalisations, weight_normalised, rms_norms, classification_losses, segmentation_loss, regression_losses, einsums, writes,
    masked_writes, scatters, gathers, grid_samples, interpolations, other_interpolations, pixel_moves, running, cumulated, orders,
    windows, paddings, poolings, line_poolings, convolutions, arrangements, splits, slices, triangles, made_from_sizes, classes,
    counted, statistics, activations, functions_of_elements, rarer_functions, pairs_of_elements, whole_numbers, bits, truths, products, distances,
    half_precision, half_transformer, double_precision, branches, conditional, while_loop, fourier, attentions)}  # fmt: skip
