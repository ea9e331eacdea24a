"""Pictures: classification, resolution, style, segmentation, detection."""

import math

import torch
from torch import nn
from torch.nn import functional as F

from . import program, train


@program()
def super_resolution(place):
    net = nn.Sequential(nn.Conv2d(1, 16, 5, 1, 2), nn.ReLU(), nn.Conv2d(16, 16, 3, 1, 1), nn.ReLU(), nn.Conv2d(16, 9, 3, 1, 1),
                        nn.PixelShuffle(3))
    for layer in net:
        if isinstance(layer, nn.Conv2d):
            nn.init.orthogonal_(layer.weight, nn.init.calculate_gain("relu"))
    net = place(net)
    call = place.compiled(net)
    large = place(torch.rand(3, 1, 24, 24))
    small = F.interpolate(large, scale_factor=1 / 3, mode="area")
    return train(lambda i: F.mse_loss(call(small), large), net.parameters(), optimizer=torch.optim.Adam(net.parameters(), eps=1e-4))


class Smooth(nn.Module):
    def __init__(self, inputs, outputs, size, stride=1, grow=None):
        super().__init__()
        self.grow, self.border = grow, nn.ReflectionPad2d(size // 2)
        self.convolution, self.norm = nn.Conv2d(inputs, outputs, size, stride), nn.InstanceNorm2d(outputs, affine=True)

    def forward(self, x):
        if self.grow:
            x = F.interpolate(x, mode="nearest", scale_factor=self.grow)
        return self.norm(self.convolution(self.border(x)))


def gram(x):
    rows = x.flatten(2)
    return rows.bmm(rows.transpose(1, 2)) / rows[0].numel()


@program()
def fast_neural_style(place):
    net = place(nn.Sequential(Smooth(3, 8, 9), nn.ReLU(), Smooth(8, 12, 3, 2), nn.ReLU(), Smooth(12, 12, 3), nn.ReLU(),
                              Smooth(12, 8, 3, grow=2), nn.ReLU(), nn.ReflectionPad2d(4), nn.Conv2d(8, 3, 9)))
    eye = place(nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(8, 8, 3, padding=1), nn.ReLU()))
    eye.requires_grad_(False)
    x, style = place(torch.rand(2, 3, 16, 16), torch.rand(1, 3, 16, 16))
    mean = place(torch.tensor([0.485, 0.456, 0.406])).view(-1, 1, 1)
    wanted = gram(eye(style - mean)).expand(2, -1, -1)

    def loss(x):
        y = net(x)
        seen = eye(y - mean)
        rough = (y[..., 1:, :] - y[..., :-1, :]).abs().mean() + (y[..., 1:] - y[..., :-1]).abs().mean()
        return F.mse_loss(seen, eye(x - mean)) + 10 * F.mse_loss(gram(seen), wanted) + 0.1 * rough
    call = place.compiled(loss)
    return train(lambda i: call(x), net.parameters(), steps=4, rate=0.01)


@program()
def siamese_network(place):
    twin = nn.Sequential(nn.Conv2d(1, 8, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(8 * 25, 16))
    head = nn.Sequential(nn.Linear(32, 16), nn.ReLU(inplace=True), nn.Linear(16, 1), nn.Sigmoid())
    net = place(nn.ModuleList((twin, head)))
    a, b, same = place(torch.rand(6, 1, 12, 12), torch.rand(6, 1, 12, 12), torch.tensor([0.0, 1, 0, 1, 1, 0]))
    call = place.compiled(lambda a, b: head(torch.cat((twin(a), twin(b)), 1)).squeeze())
    return train(lambda i: F.binary_cross_entropy(call(a, b), same), net.parameters(),
                 optimizer=torch.optim.Adadelta(net.parameters(), lr=1.0))


@program()
def digits_by_rows(place):
    """mnist_rnn: a picture is a sequence of its rows."""
    cells, norm, head = nn.LSTM(12, 16, batch_first=True), nn.BatchNorm1d(16), nn.Linear(16, 10)
    net = place(nn.ModuleList((cells, norm, head)))
    x, kinds = place(torch.rand(8, 12, 12), torch.randint(10, (8,)))
    call = place.compiled(lambda x: F.log_softmax(head(norm(cells(x)[0][:, -1])), 1))
    optimizer = torch.optim.Adadelta(net.parameters(), lr=0.5)
    found = train(lambda i: F.nll_loss(call(x), kinds), net.parameters(), optimizer=optimizer)
    torch.optim.lr_scheduler.StepLR(optimizer, 1, 0.7).step()
    return [*found, norm.running_var, optimizer.param_groups[0]["lr"]]


@program()
def vision_transformer(place):
    class Net(nn.Module):
        def __init__(self, width=16, patch=4):
            super().__init__()
            self.patch, self.inputs = patch, nn.Linear(3 * patch * patch, width)
            self.token, self.places = nn.Parameter(torch.randn(1, 1, width)), nn.Parameter(torch.randn(1, 10, width))
            self.layers = nn.ModuleList(nn.ModuleList((
                nn.LayerNorm(width), nn.MultiheadAttention(width, 4, batch_first=True), nn.LayerNorm(width),
                nn.Sequential(nn.Linear(width, 32), nn.GELU(), nn.Linear(32, width)))) for _ in range(2))
            self.head = nn.Linear(width, 5)

        def forward(self, x):
            b, c, h, w = x.shape
            x = x.view(b, c, h // self.patch, self.patch, w // self.patch, self.patch).permute(0, 2, 4, 3, 5, 1)
            x = self.inputs(x.flatten(3).flatten(1, 2))
            x = torch.cat((self.token.expand(b, -1, -1), x), 1) + self.places
            for norm1, attention, norm2, wide in self.layers:
                y = norm1(x)
                x = x + attention(y, y, y, need_weights=False)[0]
                x = x + wide(norm2(x))
            return self.head(x.mean(1))
    net = place(Net())
    x, kinds = place(torch.rand(4, 3, 12, 12), torch.randint(5, (4,)))
    call = place.compiled(net)
    optimizer = torch.optim.AdamW(net.parameters(), 1e-2, eps=1e-4)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 5)

    def loss(step):
        if step:
            schedule.step()
        return F.cross_entropy(call(x), kinds, label_smoothing=0.1)
    return train(loss, net.parameters(), optimizer=optimizer)


@program()
def segmentation_with_unet(place):
    class Net(nn.Module):
        def __init__(self):
            super().__init__()

            def both(a, b):
                return nn.Sequential(nn.Conv2d(a, b, 3, padding=1), nn.BatchNorm2d(b), nn.ReLU(inplace=True),
                                     nn.Conv2d(b, b, 3, padding=1), nn.BatchNorm2d(b), nn.ReLU(inplace=True))
            self.down1, self.down2, self.bottom = both(1, 4), both(4, 8), both(8, 16)
            self.up2, self.up1 = nn.ConvTranspose2d(16, 8, 2, 2), nn.Upsample(scale_factor=2, mode="bilinear", align_corners=True)
            self.both2, self.both1, self.head = both(16, 8), both(12, 4), nn.Conv2d(4, 1, 1)

        def forward(self, x):
            a = self.down1(x)
            b = self.down2(F.max_pool2d(a, 2))
            y = self.both2(torch.cat((b, self.up2(self.bottom(F.max_pool2d(b, 2)))), 1))
            y = self.up1(y)
            y = F.pad(y, (0, a.shape[3] - y.shape[3], 0, a.shape[2] - y.shape[2]))
            return self.head(self.both1(torch.cat((a, y), 1)))
    net = place(Net())
    x, mask = place(torch.rand(2, 1, 16, 20), (torch.rand(2, 1, 16, 20) > 0.5).float())
    call = place.compiled(net)

    def loss(step):
        y = call(x)
        p = y.sigmoid()
        dice = 1 - (2 * (p * mask).sum((1, 2, 3)) + 1) / (p.sum((1, 2, 3)) + mask.sum((1, 2, 3)) + 1)
        return F.binary_cross_entropy_with_logits(y, mask) + dice.mean()
    return train(loss, net.parameters(), steps=4, rate=0.02)


def areas(boxes):
    return (boxes[:, 2] - boxes[:, 0]) * (boxes[:, 3] - boxes[:, 1])


def overlaps(a, b):
    low, high = torch.max(a[:, None, :2], b[:, :2]), torch.min(a[:, None, 2:], b[:, 2:])
    both = (high - low).clamp(min=0).prod(2)
    return both / (areas(a)[:, None] + areas(b) - both)


def suppressed(boxes, scores, most):
    """The places of boxes that overlap no better one by more than `most`."""
    order, kept = scores.argsort(descending=True), []
    while len(order):
        kept.append(order[0])
        order = order[1:][overlaps(boxes[order[:1]], boxes[order[1:]])[0] <= most]
    return torch.stack(kept)


def regions(features, boxes, size, scale):
    """Features under boxes as pictures of one size, between pixels."""
    steps = (torch.arange(size, device=boxes.device) + 0.5) / size
    x = boxes[:, 0, None] + steps * (boxes[:, 2] - boxes[:, 0])[:, None]
    y = boxes[:, 1, None] + steps * (boxes[:, 3] - boxes[:, 1])[:, None]
    h, w = features.shape[-2:]
    grid = torch.stack((x[:, None].expand(-1, size, -1) * scale / w, y[:, :, None].expand(-1, -1, size) * scale / h), -1) * 2 - 1
    return F.grid_sample(features.expand(len(boxes), -1, -1, -1), grid, align_corners=False)


class Detector(nn.Module):
    """One stage: classes and corrections of anchors; heads over the best regions."""

    def __init__(self, classes=3):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(3, 8, 3, 2, 1), nn.ReLU(), nn.Conv2d(8, 8, 3, 2, 1), nn.ReLU())
        self.classes, self.corrections = nn.Conv2d(8, 2 * classes, 3, padding=1), nn.Conv2d(8, 8, 3, padding=1)
        self.head, self.count = nn.Linear(8 * 9, classes), classes

    def anchors(self, h, w, device):
        y, x = torch.meshgrid(torch.arange(h, device=device) * 4 + 2.0, torch.arange(w, device=device) * 4 + 2.0, indexing="ij")
        centres = torch.stack((x, y, x, y), -1).view(-1, 1, 4)
        return (centres + torch.tensor([[-4.0, -4, 4, 4], [-6, -3, 6, 3]], device=device)).view(-1, 4)

    def forward(self, x):
        features = self.body(x)
        scores = self.classes(features).permute(0, 2, 3, 1).reshape(-1, self.count)
        corrections = self.corrections(features).permute(0, 2, 3, 1).reshape(-1, 4)
        anchors = self.anchors(*features.shape[-2:], x.device)
        size, centre = anchors[:, 2:] - anchors[:, :2], (anchors[:, 2:] + anchors[:, :2]) / 2
        centre, size = centre + corrections[:, :2] * size, size * corrections[:, 2:].clamp(max=math.log(16)).exp()
        return features, scores, torch.cat((centre - size / 2, centre + size / 2), 1), anchors


def focal(scores, targets, alpha=0.25, gamma=2.0):
    p = scores.sigmoid()
    loss = F.binary_cross_entropy_with_logits(scores, targets, reduction="none")
    p = p * targets + (1 - p) * (1 - targets)
    return ((alpha * targets + (1 - alpha) * (1 - targets)) * loss * (1 - p) ** gamma).sum()


@program()
def detection(place):
    net = place(Detector())
    x, boxes, kinds = place(torch.rand(1, 3, 24, 24), torch.tensor([[1.0, 2, 11, 10], [10, 9, 22, 20]]), torch.tensor([0, 2]))
    call = place.compiled(net)

    def loss(step):
        features, scores, found, anchors = call(x)
        best, which = overlaps(anchors, boxes).max(1)
        is_near = best > 0.35
        targets = torch.zeros_like(scores)
        targets[is_near, kinds[which[is_near]]] = 1
        one = focal(scores, targets) / is_near.sum().clamp(min=1)
        two = F.smooth_l1_loss(found[is_near] / 24, boxes[which[is_near]] / 24, beta=1 / 9)
        kept = suppressed(found.detach(), scores.detach().max(1).values, 0.5)[:4]
        seen = net.head(regions(features, found[kept].detach(), 3, 0.25).flatten(1))
        return one + two + F.cross_entropy(seen, kinds[which[kept]])
    return train(loss, net.parameters(), steps=4, rate=0.01)


@program()
def spatial_transformer(place):
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.look = nn.Sequential(nn.Conv2d(1, 4, 5), nn.MaxPool2d(2, 2), nn.ReLU(True), nn.Flatten(), nn.Linear(64, 6))
            self.look[-1].weight.data.mul_(0.1)
            self.look[-1].bias.data.copy_(torch.tensor([1.0, 0, 0, 0, 1, 0]))
            self.net = nn.Sequential(nn.Conv2d(1, 6, 3), nn.ReLU(), nn.AdaptiveAvgPool2d(3), nn.Flatten(), nn.Linear(54, 4))

        def forward(self, x):
            grid = F.affine_grid(self.look(x).view(-1, 2, 3), x.size(), align_corners=False)
            return self.net(F.grid_sample(x, grid, align_corners=False))
    net = place(Net())
    x, kinds = place(torch.rand(4, 1, 12, 12), torch.randint(4, (4,)))
    call = place.compiled(net)
    return train(lambda i: F.cross_entropy(call(x), kinds), net.parameters())


@program()
def video_with_convolutions_of_three_axes(place):
    net = place(nn.Sequential(nn.Conv3d(1, 4, 3, padding=1), nn.BatchNorm3d(4), nn.ReLU(), nn.MaxPool3d((1, 2, 2)),
                              nn.Conv3d(4, 6, (3, 1, 1)), nn.ELU(), nn.AdaptiveAvgPool3d(1), nn.Flatten(), nn.Linear(6, 3)))
    x, kinds = place(torch.rand(2, 1, 4, 8, 8), torch.tensor([0, 2]))
    call = place.compiled(net)
    return train(lambda i: F.cross_entropy(call(x), kinds), net.parameters())


@program()
def squeezed_and_inverted_residuals(place):
    """EfficientNet's and MobileNet's blocks, with channels_last."""
    class Block(nn.Module):
        def __init__(self, width, wide):
            super().__init__()
            self.grow = nn.Sequential(nn.Conv2d(width, wide, 1, bias=False), nn.BatchNorm2d(wide), nn.SiLU(inplace=True))
            self.depth = nn.Sequential(nn.Conv2d(wide, wide, 3, 1, 1, groups=wide, bias=False), nn.BatchNorm2d(wide), nn.Hardswish())
            self.squeeze = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Conv2d(wide, 4, 1), nn.SiLU(), nn.Conv2d(4, wide, 1),
                                         nn.Hardsigmoid())
            self.shrink = nn.Sequential(nn.Conv2d(wide, width, 1, bias=False), nn.BatchNorm2d(width))

        def forward(self, x):
            y = self.depth(self.grow(x))
            return x + self.shrink(y * self.squeeze(y))
    net = place(nn.Sequential(Block(4, 12), Block(4, 8), nn.Flatten(), nn.Linear(4 * 64, 3))).to(memory_format=torch.channels_last)
    x, kinds = place(torch.rand(3, 4, 8, 8), torch.randint(3, (3,)))
    call = place.compiled(net)
    return train(lambda i: F.cross_entropy(call(x.contiguous(memory_format=torch.channels_last)), kinds), net.parameters())
