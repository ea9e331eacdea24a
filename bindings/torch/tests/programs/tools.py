"""Tools around models and tensors: schedules of rates, statistics, places, strides, masks as functions, rows of several lengths."""

import io

import torch
from torch import nn
from torch.func import vmap
from torch.nn import functional as F
from torch.nn.attention import flex_attention
from torch.optim import lr_scheduler

from . import program


def schedules_of(optimizer):
    yield lr_scheduler.StepLR(optimizer, 2)
    yield lr_scheduler.CosineAnnealingWarmRestarts(optimizer, 2)
    yield lr_scheduler.CyclicLR(optimizer, 0.01, 0.1, 2)
    yield lr_scheduler.PolynomialLR(optimizer, 5)
    yield lr_scheduler.SequentialLR(optimizer, [lr_scheduler.LinearLR(optimizer, 0.1, total_iters=2),
                                                lr_scheduler.CosineAnnealingLR(optimizer, 5)], [2])


@program()
def schedules(place):
    found = []
    x, kinds = place(torch.randn(12, 6), torch.randint(3, (12,)))
    for which in range(5):
        net = place(nn.Linear(6, 3))
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
        schedule = list(schedules_of(optimizer))[which] if which else next(schedules_of(optimizer))
        for _ in range(4):
            optimizer.zero_grad()
            F.cross_entropy(net(x), kinds).backward()
            optimizer.step()
            schedule.step()
        found += [net.weight, torch.tensor(optimizer.param_groups[0]["lr"])]
    return found


@program()
def statistics(place):
    x, counts, shares = place(torch.randn(5, 7), torch.randint(0, 6, (20,)), torch.rand(20))
    edges = place(torch.tensor([-1.0, 0, 1]))
    return [x.quantile(0.3), torch.quantile(x, edges.abs() / 2, dim=1, keepdim=True), torch.nanquantile(x, 0.4, 0), torch.histc(x, 10, -2, 2),
            torch.bincount(counts), torch.bincount(counts, shares, minlength=9), x.median(1).values, x.mode(1).values, torch.corrcoef(x),
            x.kthvalue(3, 1).values, torch.var_mean(x, 1)[0], x.cummax(1).values, x.logcumsumexp(1), torch.diff(x, n=2),
            torch.cumulative_trapezoid(x), torch.bucketize(x, edges), torch.searchsorted(x.sort(1).values, x),
            *torch.unique(counts, return_inverse=True, return_counts=True), torch.isin(counts, counts[:2]), torch.cdist(x, x),
            *torch.unique_consecutive(counts.view(4, 5).t(), return_inverse=True), x.renorm(2, 0, 1.0), torch.gradient(x, dim=0)[0]]


@program()
def places_of_elements(place):
    x = place(torch.randn(6, 5)).requires_grad_()
    rows, index = place(torch.tensor([0, 2, 2, 5]), torch.randint(6, (4, 5)))
    source = place(torch.randn(4, 5)).requires_grad_()
    found = []
    for kind in ("sum", "prod", "mean", "amax", "amin"):
        for with_self in (True, False):
            found.append(x.scatter_reduce(0, index, source, kind, include_self=with_self))
    found += [x.index_add(0, rows, source, alpha=0.5), x.index_copy(0, rows[[0, 1, 3]], source[:3]), x.take(index), x.masked_scatter(x > 0, source.repeat(2, 1)),
              x.select_scatter(source[0], 0, 1), x.slice_scatter(source[:, :2].repeat(2, 1)[:6], 1, 0, 4, 2), x.diagonal_scatter(source[0]),
              x.index_put((rows, rows[:4] % 5), source[:, 0], accumulate=True), x[rows, :, None].squeeze(-1), x[x > 0.5]]
    sum(y.square().sum() for y in found).backward()
    return [*found, x.grad, source.grad, torch.argwhere(x > 0.5), torch.where(x > 0)[0]]


@program()
def pads_and_sizes(place):
    x = place(torch.randn(2, 3, 7, 9)).requires_grad_()
    grid = place(torch.rand(2, 6, 6, 2) * 2.4 - 1.2)
    found = [F.interpolate(x, size=(11, 5), mode=mode) for mode in ("nearest", "bilinear", "bicubic", "area")]
    found += [F.grid_sample(x, grid, mode, padding, align_corners=False) for mode in ("bilinear", "bicubic")
              for padding in ("zeros", "border", "reflection")]
    found += [F.pad(x, (2, 1, 1, 2), mode) for mode in ("reflect", "replicate", "circular", "constant")]
    found += [F.pad(x, (-9, 4, 0, -7 + 8), "replicate"), F.pixel_unshuffle(x[..., :6, :8], 2), F.unfold(x, 2, 2, 1, 2),
              F.adaptive_avg_pool2d(x, (3, 4)), F.avg_pool2d(x, 3, 2, 1, ceil_mode=True, count_include_pad=False), F.lp_pool2d(x, 2, 2)]
    sum(y.square().mean() for y in found).backward()
    return [*found, x.grad]


@program()
def strides_of_every_kind(place):
    base = place(torch.arange(40.0))
    rows = base.as_strided((5, 4), (3, 2))
    found = [rows.sum(0), rows @ rows.t(), base.as_strided((3, 3), (0, 1), 4) + 1, base.unfold(0, 4, 2).unfold(1, 2, 1).flatten(1).sum(1)]
    x = place(torch.randn(20)).requires_grad_()
    x.as_strided((6, 4), (2, 1), 1).square().sum().backward()
    square = place(torch.zeros(6, 6))
    square.as_strided((6,), (7,)).fill_(1)
    square.t()[1:3] = square[2:4] * 2 + 1
    square[1:] = square[:-1].clone()
    square.diagonal(1).add_(5)
    # Equal values, of which one is written to after both were looked at.
    first, second = base * 2, base * 2
    found += [first.sum(), second.sum()]
    first[::3] += 100
    found += [first.cumsum(0), second.cumsum(0)]
    return [*found, x.grad, square, torch.tensor(torch.empty_strided((3, 4), (1, 5), device=base.device).stride())]


@program()
def attention_with_functions_as_masks(place):
    q, k, v = place(torch.randn(1, 2, 16, 8), torch.randn(1, 2, 16, 8), torch.randn(1, 2, 16, 8))
    causal = flex_attention.create_block_mask(lambda b, h, i, j: i >= j, None, None, 16, 16, device=place.device)
    return [flex_attention.flex_attention(q, k, v), flex_attention.flex_attention(q, k, v, block_mask=causal),
            flex_attention.flex_attention(q, k, v, score_mod=lambda score, b, h, i, j: score + (i - j) * 0.1)]


@program(by_cpu=("_jagged_to_padded_dense",))
def rows_of_several_lengths(place):
    rows = torch.nested.nested_tensor([torch.ones(2, 3), torch.ones(4, 3)], layout=torch.jagged, device=place.device)
    sequences = [place(torch.randn(n, 5)) for n in (7, 3, 5)]
    net = place(nn.LSTM(5, 6, 2, bidirectional=True, batch_first=True))
    padded = nn.utils.rnn.pad_sequence(sequences, True)
    packed = nn.utils.rnn.pack_padded_sequence(padded, torch.tensor([7, 3, 5]), batch_first=True, enforce_sorted=False)
    y, lengths = nn.utils.rnn.pad_packed_sequence(net(packed)[0], True, padding_value=-1.0, total_length=8)
    y.square().sum().backward()
    return [(rows * 2).values(), torch.nested.to_padded_tensor(rows, 0.0), y, lengths, *(p.grad for p in net.parameters())]


@program()
def scripts_and_exports(place):
    net = place(nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3)))
    x = place(torch.randn(2, 4))
    file = io.BytesIO()
    torch.jit.save(torch.jit.script(net), file)
    file.seek(0)
    exported = torch.export.export(net, (x,)).module()
    each = vmap(lambda row: F.layer_norm(net(row), (3,)))(x)
    return [torch.jit.load(file, map_location=place.device)(x), torch.jit.trace(net, x)(x * 2), exported(x), torch.fx.symbolic_trace(net)(x), each]
