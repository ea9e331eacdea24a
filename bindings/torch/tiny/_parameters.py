"""Modules on their way to the device and back: their parameters stay the objects that they are.

PyTorch gives a parameter another tensor where both devices have tensors of one kind, so that layers that share it still do
and an optimiser has it.  Where one device is this one it would put a new parameter into each layer instead.
"""

import functools

import torch


def _keeping(fn):
    """What moves a tensor, for parameters: the same object with the tensor that was moved."""
    def move(tensor):
        moved = fn(tensor)
        if not isinstance(tensor, torch.nn.Parameter) or "tiny" not in (tensor.device.type, moved.device.type):
            return moved
        if type(moved).__torch_dispatch__ is not torch.Tensor.__torch_dispatch__ or torch._has_compatible_shallow_copy_type(tensor, moved):
            return moved
        grad, tensor.grad = tensor.grad, None
        other = torch.nn.Parameter(moved, tensor.requires_grad)
        other.__class__ = type(tensor)
        other.__dict__.update(tensor.__dict__)
        try:
            torch.utils.swap_tensors(tensor, other)
        except RuntimeError:  # someone else has the tensor itself
            tensor.grad = grad
            return moved
        if grad is not None:
            tensor.grad = fn(grad)
        return tensor
    move.keeps = True
    return move


def keep():
    original = torch.nn.Module._apply

    @functools.wraps(original)
    def _apply(self, fn, recurse=True):
        return original(self, fn if getattr(fn, "keeps", False) else _keeping(fn), recurse)
    torch.nn.Module._apply = _apply
