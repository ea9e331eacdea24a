"""Operators that have neither a row in src nor a decomposition of PyTorch's: made of others here."""

import math

import torch


# ---- Distances of rows -------------------------------------------------------------------------------------------------------


def _apart(x1, x2):
    return x1.unsqueeze(-2) - x2.unsqueeze(-3)


def cdist_forward(x1, x2, p, compute_mode=None):
    apart = _apart(x1, x2).abs()
    if apart.numel() == 0:
        return apart.sum(-1)
    if p == 0:
        return (apart != 0).sum(-1).to(apart.dtype)
    if p == 1:
        return apart.sum(-1)
    if p == 2:
        return apart.square().sum(-1).sqrt()
    if p == math.inf:
        return apart.amax(-1)
    return apart.pow(p).sum(-1).pow(1 / p)


def cdist_backward(grad, x1, x2, p, cdist):
    apart, distance = _apart(x1, x2), cdist.unsqueeze(-1)
    if p == 0 or apart.numel() == 0:
        return torch.zeros_like(x1)
    if p == 1:
        slope = apart.sign()
    elif p == math.inf:
        slope = apart.sign() * (apart.abs() == distance)
    else:  # of the p-th root of the sum of |a|^p; none where nothing is apart
        share = torch.where((distance == 0) | (apart == 0), 1, apart.abs() / distance)
        slope = apart.sign() * share.pow(p - 1)
    return (grad.unsqueeze(-1) * slope).sum(-2).sum_to_size(x1.shape)


# ---- Others ------------------------------------------------------------------------------------------------------------------


def rrelu_with_noise(self, noise, lower=1 / 8, upper=1 / 3, training=False, generator=None):
    if not training:
        return torch.nn.functional.leaky_relu(self, (lower + upper) / 2)
    drawn = torch.empty_like(self).uniform_(lower, upper, generator=generator)
    noise.copy_(torch.where(self <= 0, drawn, 1))
    return self * noise


def register(library):
    for name, function in {
        "_cdist_forward": cdist_forward,
        "_cdist_backward": cdist_backward,
        "rrelu_with_noise": rrelu_with_noise,
        "_weight_norm_interface_backward": torch.ops.aten._weight_norm_differentiable_backward.default,
    }.items():
        library.impl(name, function, "PrivateUse1")
