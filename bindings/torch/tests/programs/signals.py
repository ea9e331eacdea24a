"""Signals and what is complex about them: the device keeps complex tensors, the CPU computes them."""

import math

import torch
from torch import nn
from torch.nn import functional as F

from . import program, train



@program(by_cpu=("_fft_c2c",))
def mixing_by_fourier_transforms(place):
    """A block of FNet: words are mixed by the real part of a transform over both axes."""
    table, norm, out = place(nn.Embedding(20, 8), nn.LayerNorm(8), nn.Linear(8, 20))
    words = place(torch.randint(0, 20, (3, 6)))

    def loss(step):
        x = table(words)
        x = norm(x + torch.fft.fft2(x, norm="ortho").real)
        return F.cross_entropy(out(x)[:, :-1].flatten(0, 1), words[:, 1:].flatten())
    return train(loss, nn.ModuleList([table, norm, out]).parameters())


@program(by_cpu=("_fft_c2c", "_fft_r2c", "abs", "mul.Tensor", "sgn", "zero_"))
def losses_of_spectrograms(place):
    """A vocoder's loss: magnitudes at several resolutions, and their logarithms."""
    net = place(nn.Sequential(nn.Conv1d(1, 4, 9, padding=4), nn.Tanh(), nn.Conv1d(4, 1, 9, padding=4)))
    time = torch.linspace(0, 40, 200)
    given, wanted = place(torch.randn(2, 1, 200), torch.stack((time.sin(), (2 * time).cos())))

    def magnitudes(x, size):
        made = torch.stft(x, size, size // 4, window=torch.hann_window(size, device=x.device), return_complex=True)
        return made.abs().clamp(min=0.1)

    def loss(step):
        made, sum_of_losses = net(given).squeeze(1), 0
        for size in (16, 32):
            a, b = magnitudes(made, size), magnitudes(wanted, size)
            sum_of_losses = sum_of_losses + (a - b).norm() / b.norm() + F.l1_loss(a.log(), b.log())
        return sum_of_losses
    return train(loss, net.parameters(), steps=3, rate=0.002)


@program(by_cpu=("mul.Tensor",))
def rotary_positions_by_complex_numbers(place):
    """As the first Llama had them."""
    angles = torch.outer(torch.arange(5.0), 100 ** -torch.arange(0, 4, 2).div(4))
    turns = place(torch.polar(torch.ones_like(angles), angles))
    query, key = place(nn.Linear(8, 8), nn.Linear(8, 8))
    x = place(torch.randn(2, 5, 8))

    def turned(x):
        pairs = torch.view_as_complex(x.float().reshape(*x.shape[:-1], -1, 2))
        return torch.view_as_real(pairs * turns[:, None, :]).flatten(3).type_as(x)

    def loss(step):
        q, k = (turned(layer(x).view(2, 5, 2, 4)).transpose(1, 2) for layer in (query, key))
        scores = (q @ k.mT / math.sqrt(4)).softmax(-1)
        return -scores.diagonal(dim1=-2, dim2=-1).log().mean()
    return train(loss, [*query.parameters(), *key.parameters()])


@program(by_cpu=("_fft_c2c", "_fft_c2r", "_fft_r2c", "bmm.out", "mul.out", "zero_"))
def operator_in_frequencies(place):
    """A Fourier neural operator: a few frequencies are multiplied by complex weights, which are trained."""
    scale = 1 / 16
    weight = nn.Parameter(place(scale * torch.rand(4, 4, 3, dtype=torch.cfloat)))
    lift, beside, drop = place(nn.Linear(2, 4), nn.Conv1d(4, 4, 1), nn.Linear(4, 1))
    grid = torch.linspace(0, 1, 12)
    x = torch.stack((torch.sin(2 * math.pi * grid), grid), -1).expand(3, 12, 2) * torch.tensor([1, 2, 3.0]).view(3, 1, 1)
    x, y = place(x.contiguous(), x[..., :1].cumsum(1) / 12)

    def loss(step):
        h = lift(x).permute(0, 2, 1)
        frequencies = torch.fft.rfft(h)
        kept = torch.zeros_like(frequencies)
        kept[:, :, :3] = torch.einsum("bix,iox->box", frequencies[:, :, :3], weight)
        h = F.gelu(torch.fft.irfft(kept, n=12) + beside(h)).permute(0, 2, 1)
        return F.mse_loss(drop(h), y)
    parameters = [weight, *nn.ModuleList([lift, beside, drop]).parameters()]
    made = train(loss, parameters, optimizer=torch.optim.Adam(parameters, 0.01))
    return [torch.view_as_real(one.detach()) if one.is_complex() else one for one in made]
