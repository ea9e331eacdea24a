"""Networks of pictures, as published ones are built, with random weights and few channels."""

import math

import torch
import torch.nn.functional as F
from example import Example
from torch import nn

SIDE = 64


def picture(channels=3, side=SIDE, batch=1):
    return torch.randn(batch, channels, side, side)


def conv_norm(cin, cout, kernel=3, stride=1, groups=1, act=nn.ReLU, dilation=1):
    pad = dilation * (kernel // 2)
    layers = [nn.Conv2d(cin, cout, kernel, stride, pad, dilation, groups, bias=False), nn.BatchNorm2d(cout)]
    return nn.Sequential(*layers, *([act()] if act else []))


class SqueezeExcite(nn.Module):
    def __init__(self, width, reduced, gate=nn.Sigmoid):
        super().__init__()
        self.down, self.up, self.gate = nn.Conv2d(width, reduced, 1), nn.Conv2d(reduced, width, 1), gate()

    def forward(self, x):
        return x * self.gate(self.up(F.relu(self.down(F.adaptive_avg_pool2d(x, 1)))))


class Residual(nn.Module):
    def __init__(self, body, shortcut=None, act=nn.ReLU):
        super().__init__()
        self.body, self.shortcut, self.act = body, shortcut or nn.Identity(), act() if act else nn.Identity()

    def forward(self, x):
        return self.act(self.body(x) + self.shortcut(x))


class Classifier(nn.Module):
    def __init__(self, features, width, classes=100):
        super().__init__()
        self.features, self.head = features, nn.Linear(width, classes)

    def forward(self, x):
        return self.head(torch.flatten(F.adaptive_avg_pool2d(self.features(x), 1), 1))


def classified(features, width, side=SIDE, free=True):
    axes = {"image": {0: "batch"}} if free else {}
    return Example(Classifier(nn.Sequential(*features), width), (picture(side=side, batch=2),), ("image",), axes)


def basic_block(cin, cout, stride):
    body = nn.Sequential(conv_norm(cin, cout, 3, stride), conv_norm(cout, cout, act=None))
    return Residual(body, conv_norm(cin, cout, 1, stride, act=None) if stride > 1 or cin != cout else None)


def resnet():
    return classified([conv_norm(3, 32, 7, 2), nn.MaxPool2d(3, 2, 1), basic_block(32, 32, 1), basic_block(32, 64, 2),
                       basic_block(64, 128, 2)], 128)  # fmt: skip


def resnext_se():
    def block(cin, cout, stride):
        body = nn.Sequential(conv_norm(cin, cout // 2, 1), conv_norm(cout // 2, cout // 2, 3, stride, groups=8),
                             conv_norm(cout // 2, cout, 1, act=None), SqueezeExcite(cout, cout // 8))  # fmt: skip
        return Residual(body, conv_norm(cin, cout, 1, stride, act=None))

    return classified([conv_norm(3, 32, 3, 2), block(32, 64, 1), block(64, 128, 2)], 128)


def inverted(cin, hidden, cout, kernel, stride, act, gate=None):
    layers = [conv_norm(cin, hidden, 1, act=act), conv_norm(hidden, hidden, kernel, stride, hidden, act)]
    layers += [SqueezeExcite(hidden, hidden // 4, gate)] if gate else []
    body = nn.Sequential(*layers, conv_norm(hidden, cout, 1, act=None))
    return Residual(body, act=None) if stride == 1 and cin == cout else body


def mobilenet_v2():
    return classified([conv_norm(3, 16, 3, 2, act=nn.ReLU6), inverted(16, 96, 24, 3, 2, nn.ReLU6),
                       inverted(24, 144, 24, 3, 1, nn.ReLU6), inverted(24, 144, 32, 3, 2, nn.ReLU6)], 32)  # fmt: skip


def mobilenet_v3():
    return classified([conv_norm(3, 16, 3, 2, act=nn.Hardswish), inverted(16, 64, 24, 3, 2, nn.ReLU),
                       inverted(24, 72, 40, 5, 2, nn.Hardswish, nn.Hardsigmoid),
                       inverted(40, 120, 40, 5, 1, nn.Hardswish, nn.Hardsigmoid)], 40)  # fmt: skip


def efficientnet():
    return classified([conv_norm(3, 32, 3, 2, act=nn.SiLU), inverted(32, 32, 16, 3, 1, nn.SiLU, nn.Sigmoid),
                       inverted(16, 96, 24, 3, 2, nn.SiLU, nn.Sigmoid),
                       inverted(24, 144, 40, 5, 2, nn.SiLU, nn.Sigmoid)], 40)  # fmt: skip


class DenseLayer(nn.Module):
    def __init__(self, cin, grown):
        super().__init__()
        self.norm1, self.conv1 = nn.BatchNorm2d(cin), nn.Conv2d(cin, 4 * grown, 1, bias=False)
        self.norm2, self.conv2 = nn.BatchNorm2d(4 * grown), nn.Conv2d(4 * grown, grown, 3, padding=1, bias=False)

    def forward(self, x):
        y = self.conv1(F.relu(self.norm1(x)))
        return torch.cat([x, self.conv2(F.relu(self.norm2(y)))], 1)


def densenet():
    layers = [conv_norm(3, 32, 3, 2)] + [DenseLayer(32 + 16 * i, 16) for i in range(4)]
    layers += [nn.BatchNorm2d(96), nn.ReLU(), nn.Conv2d(96, 48, 1), nn.AvgPool2d(2)]
    return classified(layers + [DenseLayer(48 + 16 * i, 16) for i in range(3)], 96)


class Shuffled(nn.Module):
    def __init__(self, width):
        super().__init__()
        half = width // 2
        self.body = nn.Sequential(conv_norm(half, half, 1), conv_norm(half, half, 3, groups=half, act=None),
                                  conv_norm(half, half, 1))  # fmt: skip

    def forward(self, x):
        keep, change = x.chunk(2, 1)
        y = torch.cat([keep, self.body(change)], 1)
        n, c, h, w = y.shape
        return y.view(n, 2, c // 2, h, w).transpose(1, 2).reshape(n, c, h, w)


def shufflenet():
    return classified([conv_norm(3, 64, 3, 2), nn.MaxPool2d(3, 2, 1), Shuffled(64), Shuffled(64)], 64)


class Fire(nn.Module):
    def __init__(self, cin, squeezed, expanded):
        super().__init__()
        self.squeeze, self.one = nn.Conv2d(cin, squeezed, 1), nn.Conv2d(squeezed, expanded, 1)
        self.three = nn.Conv2d(squeezed, expanded, 3, padding=1)

    def forward(self, x):
        x = F.relu(self.squeeze(x))
        return torch.cat([F.relu(self.one(x)), F.relu(self.three(x))], 1)


def squeezenet():
    return classified([nn.Conv2d(3, 32, 3, 2), nn.ReLU(), nn.MaxPool2d(3, 2, ceil_mode=True), Fire(32, 16, 32),
                       Fire(64, 16, 64), nn.MaxPool2d(3, 2, ceil_mode=True), Fire(128, 32, 64)], 128)  # fmt: skip


class Inception(nn.Module):
    def __init__(self, cin):
        super().__init__()
        self.a = conv_norm(cin, 32, 1)
        self.b = nn.Sequential(conv_norm(cin, 24, 1), nn.Conv2d(24, 32, (1, 7), padding=(0, 3)),
                               nn.Conv2d(32, 32, (7, 1), padding=(3, 0)))  # fmt: skip
        self.c = nn.Sequential(conv_norm(cin, 16, 1), conv_norm(16, 24, 3), conv_norm(24, 24, 3))
        self.d = conv_norm(cin, 16, 1)

    def forward(self, x):
        pooled = F.avg_pool2d(x, 3, 1, 1, count_include_pad=False)
        return torch.cat([self.a(x), self.b(x), self.c(x), self.d(pooled)], 1)


def inception():
    return classified([conv_norm(3, 32, 3, 2), Inception(32), nn.MaxPool2d(3, 2), Inception(104)], 104)


def vgg():
    layers, cin = [], 3
    for width in (32, 64, 128):
        layers += [nn.Conv2d(cin, width, 3, padding=1), nn.ReLU(), nn.Conv2d(width, width, 3, padding=1), nn.ReLU(),
                   nn.MaxPool2d(2)]  # fmt: skip
        cin = width
    return Example(nn.Sequential(*layers, nn.Flatten(), nn.Linear(128 * 64, 256), nn.ReLU(), nn.Dropout(),
                                 nn.Linear(256, 100)), (picture(),), ("image",))  # fmt: skip


class ConvNextBlock(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.depth, self.norm = nn.Conv2d(width, width, 7, padding=3, groups=width), nn.LayerNorm(width, 1e-6)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.scale = nn.Parameter(torch.full((width,), 0.1))

    def forward(self, x):
        y = self.norm(self.depth(x).permute(0, 2, 3, 1))
        return x + (self.scale * self.down(F.gelu(self.up(y)))).permute(0, 3, 1, 2)


def convnext():
    return classified([nn.Conv2d(3, 48, 4, 4), nn.GroupNorm(1, 48), ConvNextBlock(48), ConvNextBlock(48),
                       nn.Conv2d(48, 96, 2, 2), ConvNextBlock(96)], 96)  # fmt: skip


class Ghost(nn.Module):
    def __init__(self, cin, cout):
        super().__init__()
        self.first, self.cheap = conv_norm(cin, cout // 2, 1), conv_norm(cout // 2, cout // 2, 3, groups=cout // 2)
        self.width = cout

    def forward(self, x):
        x = self.first(x)
        return torch.cat([x, self.cheap(x)], 1)[:, : self.width]


def ghostnet():
    return classified([conv_norm(3, 16, 3, 2), Ghost(16, 48), nn.AvgPool2d(2), Ghost(48, 80), SqueezeExcite(80, 20)], 80)


class Unet(nn.Module):
    def __init__(self, grow):
        super().__init__()
        widths = (16, 32, 64)
        self.down = nn.ModuleList(nn.Sequential(conv_norm(a, b), conv_norm(b, b)) for a, b in zip((3, 16, 32), widths))
        self.up = nn.ModuleList(nn.Sequential(conv_norm(2 * b, b), conv_norm(b, b)) for b in (32, 16))
        self.grow = nn.ModuleList(grow(2 * b, b) for b in (32, 16))
        self.head = nn.Conv2d(16, 2, 1)

    def forward(self, x):
        kept = []
        for level, block in enumerate(self.down):
            x = block(F.max_pool2d(x, 2) if level else x)
            kept.append(x)
        for grow, block, skip in zip(self.grow, self.up, reversed(kept[:-1])):
            x = block(torch.cat([skip, grow(x)], 1))
        return self.head(x).softmax(1)


def unet_transposed():
    return Example(Unet(lambda a, b: nn.ConvTranspose2d(a, b, 2, 2)), (picture(),), ("image",),
                   {"image": {2: "height", 3: "width"}})  # fmt: skip


def unet_bilinear():
    grow = lambda a, b: nn.Sequential(nn.Upsample(scale_factor=2, mode="bilinear", align_corners=True), nn.Conv2d(a, b, 1))  # fmt: skip
    return Example(Unet(grow), (picture(),), ("image",))


class DeepLab(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Sequential(conv_norm(3, 32, 3, 2), conv_norm(32, 64, 3, 2), conv_norm(64, 64, 3, 2))
        self.parts = nn.ModuleList([conv_norm(64, 32, 1)] + [conv_norm(64, 32, 3, dilation=d) for d in (2, 4, 6)])
        self.pooled, self.joined, self.head = nn.Conv2d(64, 32, 1), conv_norm(160, 32, 1), nn.Conv2d(32, 21, 1)

    def forward(self, image):
        x = self.stem(image)
        pooled = F.relu(self.pooled(F.adaptive_avg_pool2d(x, 1)))
        pooled = F.interpolate(pooled, size=x.shape[-2:], mode="bilinear", align_corners=False)
        x = self.joined(torch.cat([part(x) for part in self.parts] + [pooled], 1))
        return F.interpolate(self.head(x), size=image.shape[-2:], mode="bilinear", align_corners=False).argmax(1)


def deeplab():
    return Example(DeepLab(), (picture(side=96),), ("image",), {"image": {0: "batch"}})


class Pyramid(nn.Module):
    def __init__(self):
        super().__init__()
        self.levels = nn.ModuleList(conv_norm(a, b, 3, 2) for a, b in ((3, 32), (32, 48), (48, 64)))
        self.sides = nn.ModuleList(nn.Conv2d(width, 32, 1) for width in (32, 48, 64))
        self.smooth = nn.ModuleList(nn.Conv2d(32, 32, 3, padding=1) for _ in range(3))

    def forward(self, x):
        kept = []
        for level in self.levels:
            x = level(x)
            kept.append(x)
        out, above = [], None
        for x, side, smooth in reversed(list(zip(kept, self.sides, self.smooth))):
            x = side(x)
            above = x if above is None else x + F.interpolate(above, size=x.shape[-2:], mode="nearest")
            out.append(smooth(above))
        return tuple(out)


def feature_pyramid():
    return Example(Pyramid(), (picture(side=80),), ("image",))


class Yolo(nn.Module):
    def __init__(self, classes=8):
        super().__init__()
        self.focus, self.body = conv_norm(12, 32, 3, act=nn.SiLU), conv_norm(32, 64, 3, 2, act=nn.SiLU)
        self.reduced, self.spread = conv_norm(64, 32, 1, act=nn.SiLU), conv_norm(128, 64, 1, act=nn.SiLU)
        self.head, self.classes = nn.Conv2d(64, 3 * (5 + classes), 1), classes
        self.register_buffer("anchors", torch.tensor([[10.0, 13], [16, 30], [33, 23]]).view(1, 3, 1, 1, 2))

    def forward(self, x):
        x = torch.cat([x[..., ::2, ::2], x[..., 1::2, ::2], x[..., ::2, 1::2], x[..., 1::2, 1::2]], 1)
        x = self.reduced(self.body(self.focus(x)))
        pools = [x]
        for _ in range(3):
            pools.append(F.max_pool2d(pools[-1], 5, 1, 2))
        x = self.head(self.spread(torch.cat(pools, 1)))
        n, _, h, w = x.shape
        x = x.view(n, 3, 5 + self.classes, h, w).permute(0, 1, 3, 4, 2).sigmoid()
        ys, xs = torch.meshgrid(torch.arange(h), torch.arange(w), indexing="ij")
        grid = torch.stack([xs, ys], -1).view(1, 1, h, w, 2)
        centre = (x[..., :2] * 2 - 0.5 + grid) * 4
        extent = (x[..., 2:4] * 2) ** 2 * self.anchors
        return torch.cat([centre, extent, x[..., 4:]], -1).view(n, -1, 5 + self.classes)


def yolo():
    return Example(Yolo(), (picture(side=96),), ("images",), {"images": {0: "batch"}})


class CentreNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(conv_norm(3, 32, 3, 2), conv_norm(32, 64, 3, 2))
        self.heat, self.extent = nn.Conv2d(64, 6, 1), nn.Conv2d(64, 2, 1)

    def forward(self, x):
        x = self.body(x)
        heat = self.heat(x).sigmoid()
        heat = heat * (F.max_pool2d(heat, 3, 1, 1) == heat).float()
        scores, places = heat.flatten(1).topk(20)
        places = places % (heat.shape[2] * heat.shape[3])
        extents = self.extent(x).flatten(2).transpose(1, 2)
        extents = extents.gather(1, places.unsqueeze(-1).expand(-1, -1, 2))
        return scores, torch.div(places, heat.shape[3], rounding_mode="floor"), places % heat.shape[3], extents


def centre_net():
    return Example(CentreNet(), (picture(),), ("image",))


class Vit(nn.Module):
    def __init__(self, width=96, depth=3, heads=4):
        super().__init__()
        self.patches = nn.Conv2d(3, width, 8, 8)
        self.cls, self.position = nn.Parameter(torch.randn(1, 1, width)), nn.Parameter(torch.randn(1, 65, width) * 0.1)
        layer = nn.TransformerEncoderLayer(width, heads, 4 * width, activation="gelu", batch_first=True, norm_first=True)
        self.layers, self.norm = nn.TransformerEncoder(layer, depth, enable_nested_tensor=False), nn.LayerNorm(width)
        self.head = nn.Linear(width, 100)

    def forward(self, x):
        x = self.patches(x).flatten(2).transpose(1, 2)
        x = torch.cat([self.cls.expand(x.shape[0], -1, -1), x], 1) + self.position
        return self.head(self.norm(self.layers(x))[:, 0])


def vit():
    return Example(Vit(), (picture(batch=2),), ("pixel_values",), {"pixel_values": {0: "batch"}})


class SwinBlock(nn.Module):
    def __init__(self, width, heads, window, shift):
        super().__init__()
        self.heads, self.window, self.shift = heads, window, shift
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.table = nn.Parameter(torch.randn((2 * window - 1) ** 2, heads) * 0.02)
        at = torch.stack(torch.meshgrid(torch.arange(window), torch.arange(window), indexing="ij")).flatten(1)
        apart = (at[:, :, None] - at[:, None, :]) + window - 1
        self.register_buffer("index", apart[0] * (2 * window - 1) + apart[1])

    def forward(self, x):
        n, h, w, c = x.shape
        k = self.window
        y = self.norm1(x)
        if self.shift:
            y = torch.roll(y, (-self.shift, -self.shift), (1, 2))
        y = y.view(n, h // k, k, w // k, k, c).permute(0, 1, 3, 2, 4, 5).reshape(-1, k * k, c)
        q, key, v = self.qkv(y).view(y.shape[0], k * k, 3, self.heads, c // self.heads).permute(2, 0, 3, 1, 4)
        scores = q * (c // self.heads) ** -0.5 @ key.transpose(-2, -1)
        scores = scores + self.table[self.index.view(-1)].view(k * k, k * k, -1).permute(2, 0, 1)
        y = self.out((scores.softmax(-1) @ v).transpose(1, 2).reshape(-1, k * k, c))
        y = y.view(n, h // k, w // k, k, k, c).permute(0, 1, 3, 2, 4, 5).reshape(n, h, w, c)
        if self.shift:
            y = torch.roll(y, (self.shift, self.shift), (1, 2))
        x = x + y
        return x + self.down(F.gelu(self.up(self.norm2(x))))


class Swin(nn.Module):
    def __init__(self):
        super().__init__()
        self.patches = nn.Conv2d(3, 48, 4, 4)
        self.first = nn.Sequential(SwinBlock(48, 3, 4, 0), SwinBlock(48, 3, 4, 2))
        self.merge = nn.Linear(192, 96, bias=False)
        self.second, self.head = nn.Sequential(SwinBlock(96, 6, 4, 0), SwinBlock(96, 6, 4, 2)), nn.Linear(96, 50)

    def forward(self, x):
        x = self.first(self.patches(x).permute(0, 2, 3, 1))
        x = torch.cat([x[:, 0::2, 0::2], x[:, 1::2, 0::2], x[:, 0::2, 1::2], x[:, 1::2, 1::2]], -1)
        return self.head(self.second(self.merge(x)).mean((1, 2)))


def swin():
    return Example(Swin(), (picture(),), ("image",))


def super_resolution():
    return Example(nn.Sequential(nn.Conv2d(1, 32, 5, padding=2), nn.Tanh(), nn.Conv2d(32, 32, 3, padding=1), nn.PReLU(32),
                                 nn.Conv2d(32, 9, 3, padding=1), nn.PixelShuffle(3)), (picture(1),), ("image",),
                   {"image": {0: "batch", 2: "height", 3: "width"}})  # fmt: skip


class DiffusionBlock(nn.Module):
    def __init__(self, cin, cout, steps):
        super().__init__()
        self.norm1, self.conv1 = nn.GroupNorm(8, cin), nn.Conv2d(cin, cout, 3, padding=1)
        self.time = nn.Linear(steps, cout)
        self.norm2, self.conv2 = nn.GroupNorm(8, cout), nn.Conv2d(cout, cout, 3, padding=1)
        self.keep = nn.Conv2d(cin, cout, 1)

    def forward(self, x, t):
        y = self.conv1(F.silu(self.norm1(x))) + self.time(F.silu(t))[:, :, None, None]
        return self.keep(x) + self.conv2(F.silu(self.norm2(y)))


class CrossAttention(nn.Module):
    def __init__(self, width, context, heads):
        super().__init__()
        self.norm, self.heads = nn.GroupNorm(8, width), heads
        self.q, self.k = nn.Linear(width, width, bias=False), nn.Linear(context, width, bias=False)
        self.v, self.out = nn.Linear(context, width, bias=False), nn.Linear(width, width)

    def forward(self, x, context):
        n, c, h, w = x.shape
        y = self.norm(x).flatten(2).transpose(1, 2)
        context = y if context is None else context
        q, k, v = (part.view(n, -1, self.heads, c // self.heads).transpose(1, 2)
                   for part in (self.q(y), self.k(context), self.v(context)))  # fmt: skip
        y = F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(n, h * w, c)
        return x + self.out(y).transpose(1, 2).reshape(n, c, h, w)


class DiffusionUnet(nn.Module):
    def __init__(self):
        super().__init__()
        self.steps, self.enter = nn.Sequential(nn.Linear(32, 64), nn.SiLU(), nn.Linear(64, 64)), nn.Conv2d(4, 32, 3, padding=1)
        self.down1, self.half = DiffusionBlock(32, 32, 64), nn.Conv2d(32, 32, 3, 2, 1)
        self.down2, self.self_attention = DiffusionBlock(32, 64, 64), CrossAttention(64, 64, 4)
        self.attention, self.middle = CrossAttention(64, 48, 4), DiffusionBlock(64, 64, 64)
        self.up1, self.leave = DiffusionBlock(96, 32, 64), nn.Conv2d(32, 4, 3, padding=1)
        self.norm = nn.GroupNorm(8, 32)

    def forward(self, sample, timestep, encoder_hidden_states):
        rate = torch.exp(-math.log(10000) * torch.arange(16, dtype=torch.float32) / 16)
        angle = timestep[:, None].float() * rate[None]
        t = self.steps(torch.cat([angle.cos(), angle.sin()], -1))
        a = self.down1(self.enter(sample), t)
        b = self.self_attention(self.down2(self.half(a), t), None)
        b = self.middle(self.attention(b, encoder_hidden_states), t)
        b = F.interpolate(b, scale_factor=2.0, mode="nearest")
        return self.leave(F.silu(self.norm(self.up1(torch.cat([b, a], 1), t))))


def diffusion_unet():
    return Example(DiffusionUnet(), (torch.randn(2, 4, 32, 32), torch.tensor([3, 700]), torch.randn(2, 7, 48)),
                   ("sample", "timestep", "encoder_hidden_states"))  # fmt: skip


class VaeDecoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.enter, self.norm = nn.Conv2d(4, 64, 3, padding=1), nn.GroupNorm(16, 64, eps=1e-6)
        self.attention = nn.MultiheadAttention(64, 1, batch_first=True)
        self.ups = nn.ModuleList(nn.Conv2d(64, 64, 3, padding=1) for _ in range(2))
        self.leave = nn.Conv2d(64, 3, 3, padding=1)

    def forward(self, latent):
        x = self.enter(latent / 0.18215)
        n, c, h, w = x.shape
        y = self.norm(x).view(n, c, h * w).transpose(1, 2)
        x = x + self.attention(y, y, y, need_weights=False)[0].transpose(1, 2).reshape(n, c, h, w)
        for conv in self.ups:
            x = F.silu(self.norm(conv(F.interpolate(x, scale_factor=2.0, mode="nearest"))))
        return (self.leave(x) / 2 + 0.5).clamp(0, 1)


def vae_decoder():
    return Example(VaeDecoder(), (torch.randn(1, 4, 16, 16),), ("latent",))


def gan_generator():
    layers, cin = [], 64
    for cout in (64, 32, 16):
        layers += [nn.ConvTranspose2d(cin, cout, 4, 2, 1, bias=False), nn.BatchNorm2d(cout), nn.LeakyReLU(0.2)]
        cin = cout
    return Example(nn.Sequential(nn.Linear(32, 64 * 16), nn.Unflatten(1, (64, 4, 4)), *layers,
                                 nn.Conv2d(16, 3, 3, padding=1), nn.Tanh()), (torch.randn(2, 32),), ("z",),
                   {"z": {0: "batch"}})  # fmt: skip


class ModulatedConv(nn.Module):
    """A convolution whose filters depend on the input."""

    def __init__(self):
        super().__init__()
        self.style, self.weight = nn.Linear(16, 32), nn.Parameter(torch.randn(1, 24, 32, 3, 3))

    def forward(self, x, w):
        n = x.shape[0]
        weight = self.weight * self.style(w).view(n, 1, 32, 1, 1)
        weight = weight * torch.rsqrt(weight.pow(2).sum((2, 3, 4), keepdim=True) + 1e-8)
        y = F.conv2d(x.view(1, n * 32, x.shape[2], x.shape[3]), weight.view(n * 24, 32, 3, 3), padding=1, groups=n)
        return y.view(n, 24, x.shape[2], x.shape[3])


def modulated_conv():
    return Example(ModulatedConv(), (torch.randn(2, 32, 24, 24), torch.randn(2, 16)), ("x", "w"))


class Transformed(nn.Module):
    def __init__(self):
        super().__init__()
        self.place = nn.Sequential(conv_norm(3, 8, 5, 4), nn.Flatten(), nn.Linear(8 * 256, 6))
        self.body = nn.Sequential(conv_norm(3, 16, 3, 2), nn.AdaptiveMaxPool2d(1), nn.Flatten(), nn.Linear(16, 10))

    def forward(self, x):
        theta = self.place(x).view(-1, 2, 3) * 0.1 + torch.tensor([[1.0, 0, 0], [0, 1, 0]])
        return self.body(F.grid_sample(x, F.affine_grid(theta, x.shape, align_corners=False), align_corners=False))


def spatial_transformer():
    return Example(Transformed(), (picture(),), ("image",), opset=20)


def video():
    return Example(nn.Sequential(nn.Conv3d(3, 16, 3, padding=1), nn.BatchNorm3d(16), nn.ReLU(), nn.MaxPool3d((1, 2, 2)),
                                 nn.Conv3d(16, 32, (3, 1, 1), padding=(1, 0, 0)), nn.Conv3d(32, 32, (1, 3, 3), groups=4),
                                 nn.ReLU(), nn.AdaptiveAvgPool3d(1), nn.Flatten(), nn.Linear(32, 12)),
                   (torch.randn(1, 3, 8, 32, 32),), ("clip",), {"clip": {0: "batch"}})  # fmt: skip


class Correlation(nn.Module):
    """The cost volume of optical flow: each pixel's product with a window of the other picture."""

    def __init__(self):
        super().__init__()
        self.body, self.flow = conv_norm(3, 16, 3, 2), nn.Conv2d(49, 2, 3, padding=1)

    def forward(self, a, b):
        a, b = self.body(a), self.body(b)
        n, c, h, w = a.shape
        windows = F.unfold(b, 7, padding=3).view(n, c, 49, h, w)
        return self.flow((a.unsqueeze(2) * windows).mean(1))


def optical_flow():
    return Example(Correlation(), (picture(), picture()), ("first", "second"))


class PointNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.turn = nn.Sequential(nn.Conv1d(3, 32, 1), nn.ReLU(), nn.Conv1d(32, 64, 1))
        self.local, self.head = nn.Conv1d(3, 32, 1), nn.Conv1d(96, 5, 1)

    def forward(self, points):
        x = points.transpose(1, 2)
        whole = self.turn(x).max(2, keepdim=True)[0]
        return self.head(torch.cat([F.relu(self.local(x)), whole.repeat(1, 1, x.shape[2])], 1)).log_softmax(1)


def point_net():
    return Example(PointNet(), (torch.randn(2, 256, 3),), ("points",), {"points": {0: "batch", 1: "count"}})


class Mixer(nn.Module):
    def __init__(self):
        super().__init__()
        self.patches, self.norm = nn.Conv2d(3, 64, 8, 8), nn.LayerNorm(64)
        self.tokens = nn.Sequential(nn.Linear(64, 128), nn.GELU(), nn.Linear(128, 64))
        self.channels = nn.Sequential(nn.Linear(64, 256), nn.GELU(approximate="tanh"), nn.Linear(256, 64))

    def forward(self, x):
        x = self.patches(x).flatten(2).transpose(1, 2)
        x = x + self.tokens(self.norm(x).transpose(1, 2)).transpose(1, 2)
        return (x + self.channels(self.norm(x))).mean(1)


def mlp_mixer():
    return Example(Mixer(), (picture(batch=2),), ("image",), {"image": {0: "batch"}})


class BlurPool(nn.Module):
    def __init__(self):
        super().__init__()
        row = torch.tensor([1.0, 3, 3, 1]) / 8
        self.register_buffer("filter", (row[:, None] * row[None]).expand(16, 1, 4, 4).contiguous())
        self.conv = nn.Conv2d(3, 16, 3)

    def forward(self, x):
        x = self.conv(F.pad(x, (1, 1, 1, 1), mode="reflect"))
        x = F.conv2d(F.pad(x, (1, 2, 1, 2), mode="replicate"), self.filter, stride=2, groups=16)
        return F.instance_norm(x)


def blur_pool():
    return Example(BlurPool(), (picture(),), ("image",))


class Segnet(nn.Module):
    def __init__(self):
        super().__init__()
        self.enter, self.leave = nn.Conv2d(3, 16, 3, padding=1), nn.Conv2d(16, 4, 3, padding=1)

    def forward(self, x):
        y, places = F.max_pool2d(F.relu(self.enter(x)), 2, return_indices=True)
        return self.leave(F.max_unpool2d(y, places, 2))


def segnet():
    return Example(Segnet(), (picture(side=32),), ("image",))


class Preprocess(nn.Module):
    """Bytes with channels last to what a classifier wants."""

    def __init__(self):
        super().__init__()
        self.register_buffer("mean", torch.tensor([0.485, 0.456, 0.406]).view(1, 3, 1, 1))
        self.body = conv_norm(3, 16, 3, 2)

    def forward(self, image):
        x = image.permute(0, 3, 1, 2).float() / 255
        x = F.interpolate(x, size=(72, 72), mode="bilinear", align_corners=False, antialias=False)[:, :, 4:68, 4:68]
        return self.body((x - self.mean) / 0.226).mean((2, 3))


def preprocess():
    return Example(Preprocess(), (torch.randint(0, 255, (1, 100, 120, 3), dtype=torch.uint8),), ("image",))


class Detr(nn.Module):
    def __init__(self, width=64, queries=20):
        super().__init__()
        self.body = nn.Sequential(conv_norm(3, 32, 3, 4), conv_norm(32, width, 3, 4))
        self.rows, self.columns = nn.Parameter(torch.rand(16, width // 2)), nn.Parameter(torch.rand(16, width // 2))
        self.queries = nn.Parameter(torch.rand(queries, width))
        self.transformer = nn.Transformer(width, 4, 1, 2, 128, batch_first=True)
        self.classes, self.boxes = nn.Linear(width, 12), nn.Linear(width, 4)

    def forward(self, x):
        x = self.body(x)
        n, _, h, w = x.shape
        where = torch.cat([self.columns[:w].unsqueeze(0).repeat(h, 1, 1), self.rows[:h].unsqueeze(1).repeat(1, w, 1)], -1)
        x = self.transformer(where.flatten(0, 1).unsqueeze(0) + 0.1 * x.flatten(2).transpose(1, 2),
                             self.queries.unsqueeze(0).repeat(n, 1, 1))  # fmt: skip
        return self.classes(x), self.boxes(x).sigmoid()


def detr():
    return Example(Detr(), (picture(side=128),), ("image",))


class Nerf(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(39, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 4))

    def forward(self, origins, directions):
        depth = torch.linspace(2, 6, 32)
        points = origins[:, None] + directions[:, None] * depth[None, :, None]
        rates = 2.0 ** torch.arange(6)
        angles = points[..., None] * rates
        code = torch.cat([points, angles.sin().flatten(-2), angles.cos().flatten(-2)], -1)
        out = self.body(code)
        alpha = 1 - torch.exp(-F.relu(out[..., 3]) * 0.1)
        through = torch.cumprod(torch.cat([torch.ones_like(alpha[:, :1]), 1 - alpha[:, :-1] + 1e-10], 1), 1)
        return ((alpha * through)[..., None] * out[..., :3].sigmoid()).sum(1)


def nerf():
    return Example(Nerf(), (torch.randn(64, 3), torch.randn(64, 3)), ("origins", "directions"))


class Cbam(nn.Module):
    def __init__(self, width=32):
        super().__init__()
        self.enter, self.join = nn.Conv2d(3, width, 3, 2, 1), nn.Conv2d(2, 1, 7, padding=3, bias=False)
        self.gate = nn.Sequential(nn.Conv2d(width, 4, 1), nn.ReLU(), nn.Conv2d(4, width, 1))

    def forward(self, x):
        x = self.enter(x)
        x = x * (self.gate(F.adaptive_avg_pool2d(x, 1)) + self.gate(F.adaptive_max_pool2d(x, 1))).sigmoid()
        both = torch.cat([x.mean(1, keepdim=True), x.amax(1, keepdim=True)], 1)
        return x * self.join(both).sigmoid()


def cbam():
    return Example(Cbam(), (picture(),), ("image",))


class Keypoints(nn.Module):
    """The expected place under the softmax of each heat map."""

    def __init__(self):
        super().__init__()
        self.body, self.head = nn.Sequential(conv_norm(3, 32, 3, 2), conv_norm(32, 32, 3, 2)), nn.ConvTranspose2d(32, 17, 4, 2, 1)

    def forward(self, x):
        heat = self.head(self.body(x))
        n, k, h, w = heat.shape
        weights = heat.view(n, k, -1).softmax(-1).view(n, k, h, w)
        xs, ys = torch.linspace(0, 1, w), torch.linspace(0, 1, h)
        return torch.stack([(weights.sum(2) * xs).sum(-1), (weights.sum(3) * ys).sum(-1)], -1), heat.amax((2, 3))


def keypoints():
    return Example(Keypoints(), (picture(),), ("image",))


class FaceEmbedding(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(conv_norm(3, 32, 3, 2, act=lambda: nn.PReLU(32)), conv_norm(32, 64, 3, 2, 2))
        self.head, self.norm = nn.Linear(64 * 256, 64), nn.BatchNorm1d(64)

    def forward(self, x):
        return F.normalize(self.norm(self.head(self.body((x - 127.5) / 128).flatten(1))))


def face_embedding():
    return Example(FaceEmbedding(), (picture(),), ("image",))


class Suppress(torch.autograd.Function):
    """Overlapping boxes of each class left out, as detectors are published: an operator that PyTorch itself has not."""

    @staticmethod
    def forward(ctx, boxes, scores):
        best = scores.amax(1).topk(5)[1]
        return torch.stack([torch.zeros_like(best), torch.zeros_like(best), best], -1).flatten(0, 1)

    @staticmethod
    def symbolic(g, boxes, scores):
        most, overlap, least = (g.op("Constant", value_t=value) for value in (
            torch.tensor([10]), torch.tensor([0.5]), torch.tensor([0.3])))  # fmt: skip
        return g.op("NonMaxSuppression", boxes, scores, most, overlap, least)


class Detector(nn.Module):
    """Boxes from a grid, those that overlap left out; `best`: only so many of the best of all classes."""

    def __init__(self, best):
        super().__init__()
        self.body, self.best = nn.Sequential(conv_norm(3, 32, 3, 2), conv_norm(32, 64, 3, 2), conv_norm(64, 64, 3, 2)), best
        self.boxes, self.classes = nn.Conv2d(64, 4, 1), nn.Conv2d(64, 6, 1)

    def forward(self, image):
        x = self.body(image)
        n, _, h, w = x.shape
        ys, xs = torch.meshgrid(torch.arange(h), torch.arange(w), indexing="ij")
        centre = (torch.stack([ys, xs], -1).view(1, -1, 2) + 0.5) * 8
        b = self.boxes(x).flatten(2).transpose(1, 2)
        boxes = torch.cat([centre - b[..., :2].exp() * 16, centre + b[..., 2:].exp() * 16], -1)
        scores = self.classes(x).flatten(2).sigmoid()
        chosen = Suppress.apply(boxes, scores)
        kept, kinds = boxes[chosen[:, 0], chosen[:, 2]], chosen[:, 1]
        values = scores[chosen[:, 0], chosen[:, 1], chosen[:, 2]]
        if not self.best:
            return kept, kinds, values
        places = values.topk(min(self.best, int(values.shape[0])))[1]
        return kept[places], kinds[places], values[places]


def detector():
    return Example(Detector(0), (picture(),), ("image",))


def detector_best():
    return Example(Detector(5), (picture(),), ("image",))


NETWORKS = {maker.__name__: maker for maker in (
    resnet, resnext_se, mobilenet_v2, mobilenet_v3, efficientnet, densenet, shufflenet, squeezenet, inception, vgg, convnext,
    ghostnet, unet_transposed, unet_bilinear, deeplab, feature_pyramid, yolo, centre_net, vit, swin, super_resolution,
    diffusion_unet, vae_decoder, gan_generator, modulated_conv, spatial_transformer, video, optical_flow, point_net, mlp_mixer,
    blur_pool, segnet, preprocess, detector, detector_best, detr, nerf, cbam, keypoints, face_embedding)}  # fmt: skip
