"""Operators on device "tiny" give the CPU's results and gradients: one line each.  tests/peers/run_opinfo has PyTorch's own."""

import math
import operator
import unittest

import torch
from torch.nn import functional as F

import tiny.torch as tiny

UNARY = """abs neg sign sgn floor ceil trunc round frac relu sqrt rsqrt reciprocal exp exp2 expm1 log log2 log10 log1p sin cos tan
tanh sinh cosh asin acos atan asinh acosh atanh erf erfc sigmoid sinc square isnan isinf isfinite logical_not signbit positive
logit softmax log_softmax logsumexp cumsum lgamma digamma erfinv i0 angle special.erfcx special.log_ndtr special.ndtri special.i0e special.i1
special.i1e""".split()
ACTIVATIONS = """gelu silu mish elu selu celu leaky_relu softplus hardtanh hardswish hardsigmoid relu6 softsign tanhshrink
softshrink hardshrink logsigmoid""".split()
BINARY = """add sub mul div maximum minimum fmax fmin atan2 copysign hypot logaddexp logaddexp2 xlogy eq ne lt le gt ge
floor_divide remainder fmod pow logical_and logical_or logical_xor heaviside""".split()
REDUCTIONS = """sum mean prod amax amin any all argmax argmin max min var std var_mean std_mean aminmax nansum norm median
count_nonzero""".split()

# PyTorch has no derivative of these.
WITHOUT_GRADIENT = ("floor_divide", "floor_divide broadcast", "vector_norm 0", "heaviside", "heaviside broadcast")

# Functions of x [4, 5] with a gradient, a mask [4, 5] of bools, and indices [3] below 4.
OTHERS = {
    "where": lambda x, m, i: torch.where(m, x, x * 2),
    "masked_fill": lambda x, m, i: x.masked_fill(m, 3.0),
    "masked_select": lambda x, m, i: x.masked_select(m),
    "index_select": lambda x, m, i: x.index_select(0, i),
    "index": lambda x, m, i: x[i, i] * x[i][:, 1:].sum(),
    "index of later axes": lambda x, m, i: x.view(4, 5, 1)[:, i],
    "index apart": lambda x, m, i: x.view(4, 5, 1).expand(4, 5, 4)[i, :, i],
    "index by a mask": lambda x, m, i: x[m],
    "index_put": lambda x, m, i: x.clone().index_put_((i, i), x[0, :3]),
    "index_put accumulate": lambda x, m, i: x.clone().index_put((i,), x[:3], accumulate=True),
    "index_add": lambda x, m, i: x.index_add(0, i, x[:3], alpha=2),
    "index_copy": lambda x, m, i: x.index_copy(0, torch.unique(i), x[:torch.unique(i).numel()]),
    "index_fill": lambda x, m, i: x.index_fill(1, i, -1.0),
    "gather": lambda x, m, i: x.gather(1, i.view(3, 1).expand(3, 4)),
    "scatter": lambda x, m, i: x.scatter(0, torch.unique(i).view(-1, 1), x[1:1 + torch.unique(i).numel(), :1]),
    "scatter_add": lambda x, m, i: x.scatter_add(0, i.view(3, 1).expand(3, 5), x[:3]),
    "scatter_reduce": lambda x, m, i: x.scatter_reduce(0, i.view(3, 1).expand(3, 5), x[:3], "amax"),
    "take": lambda x, m, i: x.take(i),
    "cat": lambda x, m, i: torch.cat([x, x[1:], x * 2]),
    "stack": lambda x, m, i: torch.stack([x, -x], 1),
    "flip": lambda x, m, i: x.flip(0, 1).t().flip(0),
    "roll": lambda x, m, i: x.roll((1, -2), (0, 1)) + x.roll(3),
    "repeat": lambda x, m, i: x.repeat(2, 3),
    "tril": lambda x, m, i: x.tril(1) + x.triu(-1),
    "sort": lambda x, m, i: torch.sort(x, 1, descending=True)[0],
    "argsort": lambda x, m, i: x.argsort(0),
    "topk": lambda x, m, i: x.topk(2, 1)[0],
    "nonzero": lambda x, m, i: m.nonzero(),
    "one_hot": lambda x, m, i: F.one_hot(i, 6),
    "embedding": lambda x, m, i: F.embedding(i, x, padding_idx=1),
    "clamp": lambda x, m, i: x.clamp(-0.5, 0.5) + x.clamp(min=0.1) + x.clamp(max=x[0]),
    "lerp": lambda x, m, i: torch.lerp(x, x * 2, 0.3) + torch.lerp(x, -x, x.sigmoid()),
    "addcmul": lambda x, m, i: torch.addcmul(x, x, x, value=0.5) + torch.addcdiv(x, x, x.exp(), value=2),
    "mm": lambda x, m, i: x @ x.t() + torch.addmm(x[:, :4], x, x.t(), beta=0.5, alpha=2),
    "bmm": lambda x, m, i: torch.baddbmm(x.view(2, 2, 5), x.view(2, 2, 5), x.new_ones(2, 5, 5)),
    "mv": lambda x, m, i: x.mv(x[0]) + torch.dot(x[0], x[1]) + torch.outer(x[0], x[1])[:4, 0],
    "einsum": lambda x, m, i: torch.einsum("ij,kj->ik", x, x),
    "bilinear resize": lambda x, m, i: F.interpolate(x.view(1, 1, 4, 5), scale_factor=2, mode="bilinear"),
    "nearest resize": lambda x, m, i: F.interpolate(x.view(1, 1, 4, 5), size=(8, 3)),
    "reflection pad": lambda x, m, i: F.pad(x.view(1, 4, 5), (2, 1), mode="reflect"),
    "pad": lambda x, m, i: F.pad(x, (1, -1, 2, 0), value=2.0),
    "conv1d": lambda x, m, i: F.conv1d(x.view(1, 4, 5), x[:2, :4].reshape(2, 4, 1).expand(2, 4, 3), padding=1),
    "conv2d groups": lambda x, m, i: F.conv2d(x.view(1, 4, 5, 1), x[:, :2].reshape(4, 1, 2, 1), x[:, 0], (2, 1), (1, 0), groups=4),
    "conv_transpose": lambda x, m, i: F.conv_transpose2d(x.view(1, 4, 5, 1), x[:, :2].reshape(4, 1, 2, 1), stride=2, output_padding=1),
    "max_pool": lambda x, m, i: F.max_pool2d(x.view(1, 4, 5), 2, 1, 1),
    "avg_pool": lambda x, m, i: F.avg_pool2d(x.view(1, 4, 5), 3, 2, 1, ceil_mode=True, divisor_override=4)
                + F.avg_pool2d(x.view(1, 4, 5), 3, 2, 1, ceil_mode=True, count_include_pad=False),
    "adaptive_pool": lambda x, m, i: F.adaptive_avg_pool2d(x.view(1, 4, 5), (3, 2)),
    "batch_norm": lambda x, m, i: F.batch_norm(x, None, None, x[0], x[1], training=True),
    "batch_norm for inference": lambda x, m, i: F.batch_norm(x, x.detach()[0], x.detach()[1].abs(), x[0], x[1]),
    "layer_norm": lambda x, m, i: F.layer_norm(x, (5,), x[0], x[1]),
    "group_norm": lambda x, m, i: F.group_norm(x.view(1, 4, 5), 2, x[:, 0], x[:, 1]),
    "rms_norm": lambda x, m, i: F.rms_norm(x, (5,), x[0]),
    "attention": lambda x, m, i: F.scaled_dot_product_attention(x.view(1, 4, 5), x.view(1, 4, 5), x.view(1, 4, 5), is_causal=True),
    "cross_entropy": lambda x, m, i: F.cross_entropy(x[:3], i, x[0].detach().abs(), ignore_index=2, label_smoothing=0.1),
    "nll_loss": lambda x, m, i: F.nll_loss(x[:3], i, reduction="none") + F.nll_loss(x[:3], i, reduction="sum"),
    "soft targets": lambda x, m, i: F.cross_entropy(x, x.detach().softmax(1), label_smoothing=0.2, reduction="none"),
    "mse_loss": lambda x, m, i: F.mse_loss(x, x.detach() * 2) + F.l1_loss(x, x.detach() * 2, reduction="sum"),
    "smooth_l1": lambda x, m, i: F.smooth_l1_loss(x, x.detach() * 2) + F.huber_loss(x, x.detach() * 3, delta=0.7),
    "bce": lambda x, m, i: F.binary_cross_entropy_with_logits(x, m.float()) + F.binary_cross_entropy(x.sigmoid(), m.float()),
    "kl_div": lambda x, m, i: F.kl_div(x.log_softmax(1), x.detach().softmax(1), reduction="batchmean"),
    "cosine_similarity": lambda x, m, i: F.cosine_similarity(x, x.flip(0)),
    "linspace": lambda x, m, i: torch.linspace(-1, 2, 7, device=x.device) + torch.arange(1, 4.5, 0.5, device=x.device),
    "eye": lambda x, m, i: torch.eye(4, 5, device=x.device) * x,
    "histc": lambda x, m, i: torch.histc(x.detach(), 6) + torch.histc(x.detach(), 6, -1, 1),
    "multilabel_margin": lambda x, m, i: F.multilabel_margin_loss(x[:, :3], torch.tensor([[0, 1, -1], [-1, 0, 1], [2, 0, 1], [1, -1, 0]]).to(x.device)),
    "embedding with a largest norm": lambda x, m, i: F.embedding(i, x.detach().clone(), max_norm=1.0),
    "fake quantization": lambda x, m, i: torch.fake_quantize_per_tensor_affine(x, 0.1, 3, -8, 7),
    "fake quantization of channels": lambda x, m, i: torch.fake_quantize_per_channel_affine(x, x.detach()[0, :4].abs() / 9, i.new_zeros(4).int(), 0, -8, 7),
    "fake quantization by tensors": lambda x, m, i: torch.fake_quantize_per_tensor_affine(x, x.detach()[0, 0].abs() / 9, i[0].int(), -8, 7),
    "kthvalue": lambda x, m, i: x.kthvalue(3, 1, keepdim=True).values + x.kthvalue(4, 0).values,
    "nanmedian": lambda x, m, i: x.masked_fill(m, math.nan).nanmedian(1).values + x.nanmedian(),
    "median with NaNs": lambda x, m, i: x.masked_fill(m, math.nan).median(0),
    "median of nothing": lambda x, m, i: x[:0].detach().median(),
    "mode": lambda x, m, i: (*(x * 2).round().mode(0), m.int().mode().values),
    "quantile": lambda x, m, i: x.quantile(x.detach()[0, :2].sigmoid(), 1),
    "cummax": lambda x, m, i: (*x.cummax(1), *x.round().masked_fill(m, math.nan).detach().cummin(0)),
    "logcumsumexp": lambda x, m, i: x.logcumsumexp(1) + (x * 100).logcumsumexp(0),
    "searchsorted": lambda x, m, i: (torch.searchsorted(x.detach().sort(1).values, x.detach(), right=True),
                                     torch.searchsorted(x.detach(), x.detach().roll(1, 0), sorter=x.detach().argsort(1), out_int32=True),
                                     torch.bucketize(x.detach().masked_fill(m, math.nan), x.detach()[0].sort().values),
                                     torch.searchsorted(i.sort().values, 2)),
    "bincount": lambda x, m, i: (i.bincount(), i.bincount(x.detach()[0, :3], minlength=7), i[:0].bincount()),
    "repeat_interleave": lambda x, m, i: x.repeat_interleave(torch.cat((i, i[:1])), 0),
    "masked_scatter": lambda x, m, i: x.masked_scatter(m, x.sin()) + x[0].masked_scatter(m, x.cos()),
    "put": lambda x, m, i: x.put(torch.stack((i, -1 - i)), x[:2, :3], accumulate=True) + x.put(i, x[0, :3]),
    "index_reduce": lambda x, m, i: x.index_reduce(1, i, x[:, :3], "mean", include_self=False) * x.index_reduce(0, i[:1], x[1:2], "prod"),
    "pdist": lambda x, m, i: F.pdist(x) + F.pdist(x, 1) + F.pdist(x, 3.5),
    "adaptive max": lambda x, m, i: (*F.adaptive_max_pool2d(x[None], (3, 2), return_indices=True), F.adaptive_max_pool1d(x, 3),
                                     *F.adaptive_max_pool3d(x.view(1, 1, 2, 2, 5), (1, 2, 3), return_indices=True)),
    "windows": lambda x, m, i: (torch.kaiser_window(7, device=x.device), torch.kaiser_window(6, False, 3.5, device=x.device, dtype=torch.float64)),
    "unique": lambda x, m, i: (*torch.unique(x.detach().round(), return_inverse=True, return_counts=True), torch.unique(m), torch.unique(x.detach()[:0]),
                               torch.unique(x.detach()[0].masked_fill(m[0], math.nan)), *torch.unique(m.long() + i[0], return_counts=True)),
    "unique_consecutive": lambda x, m, i: (*torch.unique_consecutive(m, return_inverse=True, return_counts=True),
                                           *torch.unique_consecutive(x.detach().round(), dim=1, return_inverse=True, return_counts=True),
                                           *torch.unique_consecutive(m[:, :2], dim=0, return_counts=True), torch.unique_consecutive(i[0])),
    "multi_margin": lambda x, m, i: F.multi_margin_loss(x[:3], i, 1, 0.7, x.detach()[0].abs()) + F.multi_margin_loss(x[:3], i, 2, reduction="sum")
                    + F.multi_margin_loss(x[:3], i, reduction="none") + F.multi_margin_loss(x[0], i[0]),
    "diff": lambda x, m, i: x.diff() + x.cov()[:, :4],
}


class Operators(unittest.TestCase):
    def compare(self, name, function, dtype=torch.float32, wants_gradient=True, tolerance=1e-4):
        generator = torch.Generator().manual_seed(1)
        x = torch.randn(4, 5, generator=generator)
        m, i = torch.rand(4, 5, generator=generator) < 0.4, torch.tensor([2, 0, 3])
        found = []
        for device in ("cpu", "tiny"):
            leaf = x.clone().to(dtype).to(device).requires_grad_(wants_gradient and dtype.is_floating_point)
            made = function(leaf, m.to(device), i.to(device))
            made = list(made) if isinstance(made, tuple) else [made]
            grad = None
            if any(y.requires_grad for y in made) and name not in WITHOUT_GRADIENT:
                sum((y * torch.arange(1.0, 1 + y.numel(), device=device).view(y.shape)).sum() for y in made if y.requires_grad).backward()
                grad = leaf.grad.cpu()
            found.append([y.detach().cpu() for y in made] + [grad])
        with self.subTest(name=name, dtype=dtype):
            for got, want in zip(found[1], found[0]):
                if want is None:
                    self.assertIsNone(got)
                else:
                    torch.testing.assert_close(got, want, rtol=tolerance, atol=10 * tolerance, equal_nan=True)

    def test_functions_of_one(self):
        tiny.clear_fallbacks()
        for name in UNARY:
            along = {"dim": 1} if name in ("softmax", "log_softmax", "logsumexp", "cumsum") else {}
            self.compare(name, lambda x, m, i: operator.attrgetter(name)(torch)(x, **along))
        for order in range(4):
            self.compare(f"polygamma {order}", lambda x, m, i: torch.polygamma(order, x))
        self.assertEqual(tiny.fallbacks(), {})

    def test_special_functions_far_out(self):
        """Where values are tiny, huge or none: as near as PyTorch's in float64."""
        far = torch.cat((torch.linspace(-30, 30, 977).double(), torch.logspace(-30, 18, 97).double(),
                         torch.tensor([0, -0.0, 1, 2, -3, math.inf, -math.inf, math.nan])))
        share = torch.cat((torch.logspace(-37, 0, 99), torch.tensor([0.5, 2, -1, 0, math.nan]))).double()
        far, share = far.float().double(), share.float().double()
        for x, names in ((far, "lgamma digamma erfc special.erfcx special.log_ndtr special.i0e special.i1e angle"),
                         (share, "erfinv special.ndtri")):
            for name in names.split():
                with self.subTest(name=name):
                    call = operator.attrgetter(name)(torch)
                    torch.testing.assert_close(call(x.to("tiny")).cpu(), call(x), rtol=1e-10, atol=1e-300, equal_nan=True)
                    want, got = call(x), call(x.float().to("tiny")).cpu().double()
                    is_normal = (want == 0) | (want.abs() > 1.2e-38) & (want.abs() < 3.4e38) | ~want.isfinite()
                    torch.testing.assert_close(got[is_normal], want[is_normal], rtol=2e-7, atol=1e-30, equal_nan=True)
        x, y = far.float(), far.float().roll(1)
        for a, b in ((x, y), (x.double(), y.double())):
            torch.testing.assert_close(torch.nextafter(a.to("tiny"), b.to("tiny")).cpu(), torch.nextafter(a, b), rtol=0, atol=0, equal_nan=True)

    def test_parts_of_numbers(self):
        """Mantissas and exponents, also of numbers that are not normal, and of what is no number."""
        edges = [0, -0.0, 1, -1, 0.5, 3.75, -1e-40, 1e-45, 6e-8, 5e-324, 65504, math.inf, -math.inf, math.nan]
        x = torch.cat((torch.tensor(edges, dtype=torch.float64), torch.randn(30, generator=torch.Generator().manual_seed(4)).double()))
        tiny.clear_fallbacks()
        for dtype in (torch.float64, torch.float32, torch.float16, torch.bfloat16):
            with self.subTest(dtype=dtype):
                for got, want in zip(torch.frexp(x.to(dtype).to("tiny")), torch.frexp(x.to(dtype))):
                    torch.testing.assert_close(got.cpu(), want, rtol=0, atol=0, equal_nan=True)
        with self.assertRaisesRegex(RuntimeError, "floating-point"):
            torch.frexp(torch.arange(3, device="tiny"))
        self.assertEqual(tiny.fallbacks(), {})

    def test_activations(self):
        for name in ACTIVATIONS:
            self.compare(name, lambda x, m, i: getattr(F, name)(x))
        self.compare("gelu by tanh", lambda x, m, i: F.gelu(x, approximate="tanh"))

    def test_functions_of_two(self):
        for name in BINARY:
            self.compare(name, lambda x, m, i: getattr(torch, name)(x, x.roll(1, 0) * 2))
            self.compare(name + " broadcast", lambda x, m, i: getattr(torch, name)(x, x[:1].detach()))
        for mode in (None, "floor", "trunc"):
            self.compare(f"div {mode}", lambda x, m, i: torch.div(x, x.detach().roll(1) + 3, rounding_mode=mode))

    def test_numbers(self):
        for number in (2, -0.37, 0, True):
            for name in ("add", "mul", "sub", "eq", "lt", "pow"):
                for dtype in (torch.float32, torch.float16, torch.int64, torch.uint8):
                    if not (number is True and name == "sub" or number == -0.37 and name == "pow" or
                            dtype is torch.uint8 and name == "sub"):
                        self.compare(f"{name} {number}", lambda x, m, i: getattr(torch, name)(x.abs(), number), dtype, False, 1e-3)

    def test_reductions(self):
        for name in REDUCTIONS:
            self.compare(name, lambda x, m, i: getattr(torch, name)(x))
            if name not in ("aminmax", "norm"):
                self.compare(name + " along", lambda x, m, i: getattr(torch, name)(x, 1))
        for order in (0, 1, 2, 3, float("inf"), -float("inf")):
            self.compare(f"vector_norm {order}", lambda x, m, i: torch.linalg.vector_norm(x, order, (0,)))

    def test_others(self):
        tiny.clear_fallbacks()
        for name, function in OTHERS.items():
            self.compare(name, function)
        self.assertLessEqual(set(tiny.fallbacks()), {
            "multilabel_margin_loss_forward", "multilabel_margin_loss_backward"})

    def test_integers(self):
        for name in ("add", "mul", "sub", "div", "floor_divide", "remainder", "fmod", "maximum", "eq", "lt", "bitwise_and", "bitwise_or",
                     "bitwise_xor", "gcd", "lcm"):
            for dtype in (torch.int64, torch.int32, torch.int16):
                self.compare(name, lambda x, m, i: getattr(torch, name)((x.float() * 9).to(dtype), (x.roll(1).float() * 5).to(dtype).abs() + 1), dtype)
        for name in ("sum", "prod", "mean", "cumsum"):
            self.compare(name, lambda x, m, i: getattr(torch, name)(x if name != "mean" else x.float(), dim=0), torch.int32)
            if name != "mean":
                self.compare(name, lambda x, m, i: getattr(torch, name)(m, dim=0))

    def test_floats_of_16_bits_are_rounded_once(self):
        x, y, z = (torch.randn(2000, generator=torch.Generator().manual_seed(seed)).bfloat16() for seed in range(3))
        for name, function in {"addcmul": lambda x, y, z: torch.addcmul(x, y, z), "hypot": lambda x, y, z: x.hypot(y),
                               "tan": lambda x, y, z: x.tan(), "log2": lambda x, y, z: x.abs().log2(), "mish": lambda x, y, z: F.mish(x),
                               "lerp": lambda x, y, z: x.lerp(y, 0.3), "sigmoid": lambda x, y, z: x.sigmoid(),
                               "product and sum": lambda x, y, z: torch.addmm(x.view(40, 50), y[:400].view(40, 10), z[:500].view(10, 50), beta=-0.7),
                               "outer product and sum": lambda x, y, z: torch.addr(x.view(40, 50), y[:40], z[:50]),
                               "convolution": lambda x, y, z: F.conv1d(x.view(1, 4, 500), y[:24].view(2, 4, 3), z[:2]),
                               "convolution back": lambda x, y, z: F.conv_transpose1d(x.view(1, 4, 500), y[:24].view(4, 2, 3), z[:2]),
                               "deviation": lambda x, y, z: x.view(400, 5).std(1),
                               "pool": lambda x, y, z: F.avg_pool2d(x.view(1, 40, 50), 3),
                               "uneven pool": lambda x, y, z: F.adaptive_avg_pool2d(x.view(1, 40, 50), (17, 30)),
                               "resize": lambda x, y, z: F.interpolate(x.view(1, 1, 40, 50), scale_factor=1.7, mode="bicubic")}.items():
            with self.subTest(name=name):
                want = function(x.float(), y.float(), z.float()).bfloat16()
                got = function(*(one.to("tiny") for one in (x, y, z))).cpu()
                self.assertLess((got != want).float().mean().item(), 0.01)

    def test_floats_of_8_bits(self):
        """Conversions, bits and copies: what PyTorch has for them on any device."""
        edges = [0, -0.0, 447, 448, 464, 465, 480, 240, 247, 248, 57344, 61439, 61440, 65536, math.inf, math.nan, 2 ** -9, 2 ** -10, 2 ** -17, 1e-9]
        x = torch.cat((torch.randn(400, generator=torch.Generator().manual_seed(2)) * 50, torch.tensor(edges), -torch.tensor(edges)))
        for dtype in (torch.float8_e4m3fn, torch.float8_e5m2, torch.float8_e4m3fnuz, torch.float8_e5m2fnuz):
            for given in (x, x.half(), x.bfloat16(), x.double()):
                with self.subTest(dtype=dtype, given=given.dtype):
                    want, got = given.to(dtype), given.to("tiny").to(dtype)
                    self.assertEqual((got.dtype, got.element_size()), (dtype, 1))
                    torch.testing.assert_close(got.float().cpu(), want.float(), rtol=0, atol=0, equal_nan=True)
                    torch.testing.assert_close(want.to("tiny").float().cpu(), want.float(), rtol=0, atol=0, equal_nan=True)
            number = x.to(dtype).float() == x.to(dtype).float()
            self.assertEqual(x.to("tiny").to(dtype).view(torch.uint8)[number.to("tiny")].tolist(), x.to(dtype).view(torch.uint8)[number].tolist())
            self.assertEqual(x.to("tiny").to(dtype).view(4, -1).t()[1:3, 2:].contiguous().float().tolist(),
                             x.to(dtype).view(4, -1).t()[1:3, 2:].float().tolist())

    def compare_errors(self, calls, seen):
        """Of what each call raises, `seen` is on the device what it is on the CPU."""
        for name, call in calls.items():
            with self.subTest(name=name):
                found = []
                for device in ("cpu", "tiny"):
                    with self.assertRaises(Exception) as raised:
                        call(lambda x: x.to(device))
                    found.append(seen(raised.exception))
                self.assertEqual(*found)

    def test_what_pytorch_refuses(self):
        """Programs see the CPU's errors: of dtypes, sizes, places, and of results that share elements with what they are of."""
        def overlapping(call):
            def refused(make):
                x = make(torch.rand(6))
                return call(x[1:], x[:-1])
            return refused
        flags = torch.tensor([True, False, True])
        self.compare_errors({
            "bool - bool": lambda make: make(flags) - make(flags), "1 - bool": lambda make: 1 - make(flags),
            "float - bool": lambda make: make(torch.ones(3)) - make(flags), "-bool": lambda make: -make(flags),
            "alpha": lambda make: torch.add(make(torch.arange(3)), make(torch.arange(3)), alpha=0.5),
            "index": lambda make: make(torch.ones(3, 4)).index_select(0, make(torch.zeros(2, 2, dtype=torch.long))),
            "embedding": lambda make: F.embedding(make(torch.tensor([9])), make(torch.ones(3, 2))),
            "gather": lambda make: make(torch.ones(3, 4)).gather(1, make(torch.full((3, 1), 4))),
            "scatter": lambda make: make(torch.ones(3, 4)).scatter_add(0, make(torch.full((1, 4), 3)), make(torch.ones(1, 4))),
            "gather's out": lambda make: torch.gather(make(torch.ones(2, 2)), 1, make(torch.zeros(2, 1, dtype=torch.long)),
                                                      out=make(torch.ones(2, 1, dtype=torch.float64))),
            "extremes' out": lambda make: torch.amax(make(torch.ones(2)), 0, out=make(torch.ones((), dtype=torch.int32))),
            "layer_norm": lambda make: F.layer_norm(make(torch.ones(2, 3)), (4,)),
            "its weight": lambda make: torch.native_layer_norm(make(torch.ones(2, 3)), (3,), make(torch.ones(1, 3)), None, 1e-5),
            "gelu": lambda make: F.gelu(make(torch.ones(2)), approximate="none "),
            "softshrink": lambda make: F.softshrink(make(torch.ones(2)), -0.5),
            "softmax": lambda make: make(torch.ones(2, 3, dtype=torch.long)).softmax(1),
            "softmax of an axis before": lambda make: make(torch.ones(2, 3, dtype=torch.int32)).softmax(0),
            "log_softmax": lambda make: make(torch.ones(2, 3, dtype=torch.bool)).log_softmax(-1),
            "clamp": lambda make: make(torch.ones(2)).clamp(), "clamp_": lambda make: make(torch.ones(2)).clamp_(),
            "clamp by tensors": lambda make: torch.clamp(make(torch.ones(2)), None, None),
            "dot": lambda make: make(torch.ones(2)).dot(make(torch.ones(2, dtype=torch.float64))),
            "geometric": lambda make: make(torch.ones(2)).geometric_(-1), "log_normal": lambda make: make(torch.ones(2)).log_normal_(0, 0),
            "samples": lambda make: torch.multinomial(make(torch.ones(2)), 3),
            "no samples": lambda make: torch.multinomial(make(torch.ones(2)), 0),
            "probabilities": lambda make: torch.multinomial(make(torch.tensor([1.0, -1.0])), 1),
            "no probability": lambda make: torch.multinomial(make(torch.zeros(2)), 1),
            "pool": lambda make: F.max_pool3d(make(torch.ones(1, 1, 4, 4, 4)), 2, 1, 2),
            "small pool": lambda make: F.max_pool3d(make(torch.ones(1, 1, 1, 4, 4)), 2),
            "expanded out": lambda make: torch.cat([make(torch.ones(2)), make(torch.ones(1))], out=make(torch.ones(1)).expand(3)),
            "cat": overlapping(lambda x, y: torch.cat([x[:2], y[:3]], out=y)),
            "take": overlapping(lambda x, y: torch.take(x, torch.arange(5, device=x.device), out=y)),
            "masked_select": overlapping(lambda x, y: torch.masked_select(x, x > -1, out=y)),
            "where": lambda make: torch.where(make(torch.ones(2)), 1, 2),
            "target": lambda make: F.nll_loss(make(torch.zeros(2, 3)), make(torch.tensor([0, 3]))),
            "negative target": lambda make: F.cross_entropy(make(torch.zeros(2, 3)), make(torch.tensor([0, -3])), label_smoothing=0.1),
            "target of pixels": lambda make: F.nll_loss(make(torch.zeros(1, 3, 1, 2)), make(torch.tensor([[[0, 5]]]))),
            "index_add": lambda make: make(torch.zeros(3)).index_add(0, make(torch.tensor([3])), make(torch.ones(1))),
            "index_copy": lambda make: make(torch.zeros(3)).index_copy(0, make(torch.tensor([3])), make(torch.ones(1))),
            "index_fill": lambda make: make(torch.zeros(3)).index_fill(0, make(torch.tensor([-4])), 1.0),
            "place": lambda make: make(torch.zeros(3)).take(make(torch.tensor([3]))),
            "deviation": lambda make: torch.normal(make(torch.zeros(2)), make(torch.tensor([1.0, -1.0]))),
            "deviations": lambda make: torch.normal(0.0, make(torch.tensor([1.0, -1.0]))),
        }, lambda error: (type(error), str(error).split("\n")[0]))

    def test_types_of_what_pytorch_refuses(self):
        """Where the words name the CPU's kernel, or are of no use, the exception's type alone is the CPU's."""
        self.compare_errors({
            "bits of floats": lambda make: make(torch.ones(2)) & make(torch.ones(2)),
            "bits of a float": lambda make: make(torch.ones(2, dtype=torch.int32)) | make(torch.ones(2)),
            "shifted floats": lambda make: make(torch.ones(2)) << make(torch.ones(2)),
            "counted floats": lambda make: make(torch.zeros(3)).bincount(),
            "probability": lambda make: torch.bernoulli(make(torch.tensor([0.5, 2.0]))),
        }, type)

    def test_ignored_targets_are_no_classes(self):
        for target, ignored in ((-100, -100), (7, 7), (-1, -1)):
            def call(device):
                x = torch.tensor([[0.0, 1.0, 2.0], [-math.inf, 4.0, 5.0]]).to(device).requires_grad_()
                loss = F.cross_entropy(x, torch.tensor([1, target]).to(device), ignore_index=ignored)
                loss.backward()
                return loss.detach().cpu(), x.grad.cpu()
            torch.testing.assert_close(call("tiny"), call("cpu"))
        for shape in (2, 3), (2, 3, 1, 2):  # a mean over no target: not a number, and no slope
            found = []
            for device in "cpu", "tiny":
                x = torch.ones(shape, device=device, requires_grad=True)
                loss = F.cross_entropy(x, torch.full((shape[0], *shape[2:]), -100, device=device))
                loss.backward()
                found += [loss.detach().cpu(), x.grad.cpu()]
            self.assertTrue(found[0].isnan() and found[2].isnan())
            self.assertTrue(torch.equal(found[1], found[3]))

    def test_indices_in_a_list_of_torchscript(self):
        @torch.jit.script
        def written(x):
            x[x < 2] = 7.0
            return x
        self.assertEqual(written(torch.arange(4.0, device="tiny")).tolist(), [7.0, 7.0, 2.0, 3.0])

    def test_softmax_of_rows_without_a_finite_number(self):
        """What attention has where a query may look at no key: zeros, and no gradient."""
        torch.manual_seed(5)
        rows = torch.randn(3, 4, 5)
        rows[0, 1], rows[2, 3, 1:], rows[1, 0, 2] = -math.inf, -math.inf, math.nan
        for dim in (0, 1, 2, -1):
            for given, dtype in ((torch.float32, None), (torch.float64, None), (torch.float16, None), (torch.float16, torch.float32), (torch.int64, torch.float32)):
                if given == torch.int64:
                    here = there = rows.nan_to_num(0, 0, 0).to(given)
                else:
                    here = rows.clone().to(given).requires_grad_()
                    there = here.detach().to("tiny").requires_grad_()
                want, got = (torch.ops.aten._safe_softmax(x.to(place), dim, dtype) for x, place in ((here, "cpu"), (there, "tiny")))
                self.assertEqual((got.dtype, got.device.type), (want.dtype, "tiny"))
                torch.testing.assert_close(got.cpu(), want, equal_nan=True)
                if want.requires_grad and dtype is None:
                    factors = torch.arange(60.0).view(3, 4, 5).to(want.dtype)
                    (want * factors).sum().backward()
                    (got * factors.to("tiny")).sum().backward()
                    torch.testing.assert_close(there.grad.cpu(), here.grad, rtol=1e-2 if given == torch.float16 else 1e-4, atol=1e-2 if given == torch.float16 else 1e-5, equal_nan=True)
        for x in (torch.tensor(-math.inf), torch.tensor(2.0), torch.zeros(2, 0)):
            self.assertEqual(torch.ops.aten._safe_softmax(x.to("tiny"), -1).tolist(), torch.ops.aten._safe_softmax(x, -1).tolist())

    def test_attention_with_and_without_derivatives(self):
        """Without, one value of the engine; with, PyTorch's operators, which have derivatives of any order: the same numbers."""
        torch.manual_seed(3)
        draw = torch.randn
        rows = torch.rand(5, 7) < 0.5
        rows[1] = False  # a query that may look at no key
        for sizes, mask, options in (((2, 3), None, {}), ((3,), None, {"is_causal": True}), ((2, 3), rows, {}), ((2, 1), draw(5, 7), {"scale": 0.2}),
                                     ((), None, {"scale": -0.3}), ((2, 3), draw(2, 3, 5, 7), {})):
            for dtype, tolerance in (torch.float32, 1e-5), (torch.float16, 4e-3):
                q, k, v = (draw(*sizes, *last).to(dtype) for last in ((5, 8), (7, 8), (7, 6)))
                bias = mask if mask is None or mask.dtype == torch.bool else mask.to(dtype)
                want = F.scaled_dot_product_attention(q, k, v, bias, **options)
                q, k, v, there = (x if x is None else x.to("tiny") for x in (q, k, v, bias))
                alone = F.scaled_dot_product_attention(q, k, v, there, **options)
                slow = F.scaled_dot_product_attention(q.clone().requires_grad_(), k, v, there, **options)
                with self.subTest(sizes=sizes, mask=mask is not None, dtype=dtype, **options):
                    for got in alone, slow.detach():
                        self.assertEqual((got.dtype, got.stride()), (dtype, want.contiguous().stride()))
                        torch.testing.assert_close(got.cpu(), want, rtol=tolerance, atol=tolerance)
        heads = F.scaled_dot_product_attention(draw(2, 4, 5, 8).to("tiny"), draw(2, 2, 7, 8).to("tiny"), draw(2, 2, 7, 8).to("tiny"), enable_gqa=True)
        self.assertEqual(heads.shape, (2, 4, 5, 8))
        x = draw(2, 5, 8).double()
        call = lambda x: F.scaled_dot_product_attention(x, x, x)  # noqa: E731
        self.assertTrue(torch.autograd.gradgradcheck(call, x[0, :3, :2].to("tiny").requires_grad_(), nondet_tol=1e-9))
        torch.testing.assert_close(torch.func.vmap(call)(x.to("tiny")).cpu(), call(x))
        torch.testing.assert_close(torch.func.jvp(call, (x.to("tiny"),), (x.to("tiny"),))[0].cpu(), call(x))

    def test_the_largest_of_unsigned_integers(self):
        most = 2**64 - 1
        for made in torch.empty(3, dtype=torch.uint64, device="tiny").fill_(most), torch.full((3,), most, dtype=torch.uint64, device="tiny"):
            self.assertEqual(made.tolist(), [most] * 3)
        self.assertEqual(torch.full((1,), most, dtype=torch.float64, device="tiny").item(), 2.0**64)

    def test_integers_are_counted(self):
        x = torch.tensor([0, 3, 3, 7, 1], device="tiny", dtype=torch.int32)  # which PyTorch's CPU does not
        self.assertEqual((torch.histc(x, 4, 0, 7).tolist(), torch.histc(x, 8).dtype), ([2, 2, 0, 1], torch.int32))

    def test_results_into_tensors(self):
        for device in ("cpu", "tiny"):
            x, out = torch.arange(6.0, device=device).view(2, 3), torch.empty(0, device=device)
            self.assertIs(torch.add(x, 1, out=out), out)
            self.assertEqual((out.tolist(), out.shape), ((x + 1).tolist(), x.shape))
            out = torch.zeros(3, 2, device=device).t()
            torch.mul(x, 2, out=out)
            self.assertEqual((out.tolist(), out.stride()), ((x * 2).tolist(), (1, 2)))
            with self.assertRaisesRegex(RuntimeError, "can't be cast"):
                torch.add(x, 1, out=torch.empty(2, 3, dtype=torch.int64, device=device))
            torch.sum(x, 1, out=out.resize_(2))
            self.assertEqual(out.tolist(), x.sum(1).tolist())


if __name__ == "__main__":
    unittest.main()
