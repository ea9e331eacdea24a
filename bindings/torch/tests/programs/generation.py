"""Models that make pictures and samples."""

import copy
import math

import torch
from torch import nn
from torch.nn import functional as F

from . import program, train


@program()
def dcgan(place):
    def begin(m):
        if isinstance(m, (nn.Conv2d, nn.ConvTranspose2d)):
            nn.init.normal_(m.weight, 0.0, 0.02)
        elif isinstance(m, nn.BatchNorm2d):
            nn.init.normal_(m.weight, 1.0, 0.02)
            nn.init.zeros_(m.bias)
    make = nn.Sequential(nn.ConvTranspose2d(6, 16, 4, 1, 0, bias=False), nn.BatchNorm2d(16), nn.ReLU(True),
                         nn.ConvTranspose2d(16, 8, 4, 2, 1, bias=False), nn.BatchNorm2d(8), nn.ReLU(True),
                         nn.ConvTranspose2d(8, 3, 4, 2, 1, bias=False), nn.Tanh())
    judge = nn.Sequential(nn.Conv2d(3, 8, 4, 2, 1, bias=False), nn.LeakyReLU(0.2, inplace=True),
                          nn.Conv2d(8, 16, 4, 2, 1, bias=False), nn.BatchNorm2d(16), nn.LeakyReLU(0.2, inplace=True),
                          nn.Conv2d(16, 1, 4, 1, 0, bias=False), nn.Sigmoid())
    make, judge = place(make.apply(begin), judge.apply(begin))
    makes, judges = place.compiled(make), place.compiled(judge)
    losses = nn.BCELoss()
    of_make, of_judge = (torch.optim.Adam(net.parameters(), lr=2e-3, betas=(0.5, 0.999), eps=1e-4) for net in (make, judge))
    found = []
    for _ in range(4):
        real, noise = place(torch.rand(4, 3, 16, 16) * 2 - 1, torch.randn(4, 6, 1, 1))
        label = torch.full((4,), 1.0, device=place.device)
        judge.zero_grad()
        real_loss = losses(judges(real).view(-1), label)
        real_loss.backward()
        fake = makes(noise)
        label.fill_(0.0)
        fake_loss = losses(judges(fake.detach()).view(-1), label)
        fake_loss.backward()
        of_judge.step()
        make.zero_grad()
        label.fill_(1.0)
        loss = losses(judges(fake).view(-1), label)
        loss.backward()
        of_make.step()
        found += [real_loss, fake_loss, loss]
    return [torch.stack(found), fake]


class Vae(nn.Module):
    def __init__(self):
        super().__init__()
        self.inputs, self.mean, self.spread = nn.Linear(36, 16), nn.Linear(16, 4), nn.Linear(16, 4)
        self.hidden, self.outputs = nn.Linear(4, 16), nn.Linear(16, 36)

    def forward(self, x, noise):
        h = F.relu(self.inputs(x.view(-1, 36)))
        mean, spread = self.mean(h), self.spread(h)
        z = mean + noise * torch.exp(0.5 * spread)
        return torch.sigmoid(self.outputs(F.relu(self.hidden(z)))), mean, spread


@program()
def variational_autoencoder(place):
    net = place(Vae())
    call = place.compiled(net)
    x, noise = place(torch.rand(8, 1, 6, 6), torch.randn(8, 4))

    def loss(step):
        y, mean, spread = call(x, noise)
        apart = -0.5 * torch.sum(1 + spread - mean.pow(2) - spread.exp())
        return F.binary_cross_entropy(y, x.view(-1, 36), reduction="sum") + apart
    return train(loss, net.parameters(), optimizer=torch.optim.Adam(net.parameters(), 1e-3, eps=1e-4))


@program()
def vector_quantised_autoencoder(place):
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.inputs, self.outputs = nn.Conv2d(1, 4, 4, 2, 1), nn.ConvTranspose2d(4, 1, 4, 2, 1)
            self.book = nn.Embedding(6, 4)

        def forward(self, x):
            z = self.inputs(x).permute(0, 2, 3, 1)
            rows = z.reshape(-1, 4)
            apart = rows.square().sum(1, keepdim=True) - 2 * rows @ self.book.weight.t() + self.book.weight.square().sum(1)
            q = self.book(apart.argmin(1)).view_as(z)
            loss = F.mse_loss(q, z.detach()) + 0.25 * F.mse_loss(z, q.detach())
            return self.outputs((z + (q - z).detach()).permute(0, 3, 1, 2)), loss
    net = place(Net())
    x = place(torch.rand(3, 1, 8, 8))
    call = place.compiled(net)

    def loss(step):
        y, apart = call(x)
        return F.mse_loss(y, x) + apart
    return train(loss, net.parameters())


class Denoiser(nn.Module):
    def __init__(self, width=8):
        super().__init__()
        self.times = nn.Sequential(nn.Linear(width, width), nn.SiLU(), nn.Linear(width, width))
        self.inputs, self.down, self.up = nn.Conv2d(1, width, 3, 1, 1), nn.Conv2d(width, width, 3, 2, 1), nn.Conv2d(width, width, 3, 1, 1)
        self.norm1, self.norm2, self.all = nn.GroupNorm(2, width), nn.GroupNorm(2, width), nn.Conv2d(width, 3 * width, 1)
        self.head = nn.Conv2d(2 * width, 1, 3, 1, 1)

    def forward(self, x, t):
        rates = torch.exp(-math.log(100) * torch.arange(4, device=x.device) / 4)
        angles = t[:, None].float() * rates
        time = self.times(torch.cat((angles.sin(), angles.cos()), -1))
        a = F.silu(self.norm1(self.inputs(x))) + time[:, :, None, None]
        b = self.down(a)
        q, k, v = self.all(self.norm2(b)).flatten(2).transpose(1, 2).chunk(3, -1)
        b = b + F.scaled_dot_product_attention(q, k, v).transpose(1, 2).view_as(b)
        return self.head(torch.cat((a, self.up(F.interpolate(b, scale_factor=2.0, mode="nearest"))), 1))


@program()
def denoising_diffusion(place):
    net = place(Denoiser())
    call = place.compiled(net)
    mean = copy.deepcopy(net).requires_grad_(False)
    betas = torch.linspace(1e-3, 0.2, 20, device=place.device)
    kept = torch.cumprod(1 - betas, 0)
    optimizer = torch.optim.AdamW(net.parameters(), 1e-2, eps=1e-4)
    losses = []
    for _ in range(4):
        x, noise, t = place(torch.rand(4, 1, 8, 8) * 2 - 1, torch.randn(4, 1, 8, 8), torch.randint(20, (4,)))
        share = kept[t][:, None, None, None]
        loss = F.mse_loss(call(share.sqrt() * x + (1 - share).sqrt() * noise, t), noise)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        optimizer.step()
        with torch.no_grad():
            for p, q in zip(mean.parameters(), net.parameters()):
                p.lerp_(q, 0.1)
        losses.append(loss.detach())
    with torch.no_grad():
        x = place(torch.randn(2, 1, 8, 8))
        for step in reversed(range(16, 20)):
            t = torch.full((2,), step, device=place.device)
            guess = mean(x, t)
            x = (x - betas[step] / (1 - kept[step]).sqrt() * guess) / (1 - betas[step]).sqrt()
            x = x.clamp(-1, 1) if step else x
    return [torch.stack(losses), x, *mean.parameters()]


@program(by_cpu=("linalg_solve_triangular",))
def flow_of_couplings(place):
    """RealNVP: a part of the input scales and moves the other."""
    class Coupling(nn.Module):
        def __init__(self, mask):
            super().__init__()
            self.register_buffer("mask", mask)
            self.scale = nn.Sequential(nn.Linear(2, 8), nn.Tanh(), nn.Linear(8, 2), nn.Tanh())
            self.move = nn.Sequential(nn.Linear(2, 8), nn.LeakyReLU(), nn.Linear(8, 2))

        def forward(self, x):
            kept = x * self.mask
            scale, move = self.scale(kept) * (1 - self.mask), self.move(kept) * (1 - self.mask)
            return kept + (1 - self.mask) * (x * scale.exp() + move), scale.sum(1)
    layers = place(nn.ModuleList(Coupling(torch.tensor(mask)) for mask in ([0.0, 1.0], [1.0, 0.0]) * 2))
    base = torch.distributions.MultivariateNormal(torch.zeros(2, device=place.device), scale_tril=torch.eye(2, device=place.device))
    x = place(torch.randn(16, 2) * torch.tensor([1.0, 0.3]) + torch.tensor([0.5, -1]))

    def loss(step):
        z, volume = x, 0
        for layer in layers:
            z, change = layer(z)
            volume = volume + change
        return -(base.log_prob(z) + volume).mean()
    return train(loss, layers.parameters(), steps=4, rate=0.02)


@program()
def masked_convolutions(place):
    """PixelCNN: a pixel knows those before it."""
    class Masked(nn.Conv2d):
        def __init__(self, kind, *sizes, **options):
            super().__init__(*sizes, **options)
            mask = torch.ones_like(self.weight)
            h, w = mask.shape[-2:]
            mask[:, :, h // 2, w // 2 + (kind == "B"):] = 0
            mask[:, :, h // 2 + 1:] = 0
            self.register_buffer("mask", mask)

        def forward(self, x):
            self.weight.data *= self.mask
            return super().forward(x)
    net = place(nn.Sequential(Masked("A", 1, 8, 5, padding=2), nn.ReLU(), Masked("B", 8, 8, 3, padding=1), nn.ReLU(),
                              nn.Conv2d(8, 4, 1)))
    x = place(torch.randint(4, (3, 8, 8)))
    found = train(lambda i: F.cross_entropy(net(x[:, None] / 3), x), net.parameters())
    drawn = torch.zeros(1, 1, 4, 4, device=place.device)
    with torch.no_grad():
        for i in range(4):
            for j in range(4):
                drawn[:, :, i, j] = net(drawn)[:, :, i, j].softmax(1).argmax(1, keepdim=True) / 3.0
    return [*found, drawn]


@program()
def penalty_of_gradients(place):
    """WGAN-GP: the gradient's size is part of the loss."""
    judge = place(nn.Sequential(nn.Conv2d(1, 6, 3, 2, 1), nn.LeakyReLU(0.2), nn.Conv2d(6, 8, 3, 2, 1), nn.Tanh(), nn.Flatten(),
                                nn.Linear(32, 1)))
    real, fake, shares = place(torch.rand(4, 1, 8, 8), torch.randn(4, 1, 8, 8), torch.rand(4, 1, 1, 1))

    def loss(step):
        between = (shares * real + (1 - shares) * fake).requires_grad_()
        grad, = torch.autograd.grad(judge(between).sum(), between, create_graph=True)
        return judge(fake).mean() - judge(real).mean() + 10 * ((grad.flatten(1).norm(2, dim=1) - 1) ** 2).mean()
    return train(loss, judge.parameters(), steps=4, rate=0.005)


@program()
def radiance_field(place):
    """NeRF: waves of places, colours along rays, what is in front hides what is behind."""
    class Field(nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = nn.Sequential(nn.Linear(3 + 3 * 2 * 3, 16), nn.ReLU(), nn.Linear(16, 16), nn.ReLU(), nn.Linear(16, 4))

        def forward(self, x):
            waves = [x] + [f(2 ** k * x) for k in range(3) for f in (torch.sin, torch.cos)]
            y = self.layers(torch.cat(waves, -1))
            return torch.sigmoid(y[..., :3]), F.relu(y[..., 3])
    net = place(Field())
    call = place.compiled(net)
    origins, ways, colours = place(torch.randn(6, 3), F.normalize(torch.randn(6, 3), dim=-1), torch.rand(6, 3))
    depths = torch.linspace(0.5, 2, 8, device=place.device)

    def loss(step):
        rgb, density = call(origins[:, None] + ways[:, None] * depths[:, None])
        gaps = torch.cat((depths[1:] - depths[:-1], torch.full((1,), 10.0, device=place.device)))
        alpha = 1 - torch.exp(-density * gaps)
        open_ = torch.cumprod(torch.cat((torch.ones_like(alpha[:, :1]), 1 - alpha + 1e-6), -1), -1)[:, :-1]
        return F.mse_loss(((alpha * open_)[..., None] * rgb).sum(1), colours)
    return train(loss, net.parameters())
