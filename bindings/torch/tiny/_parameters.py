"""Modules on their way to the device and back: their parameters stay the objects that they are.

PyTorch gives a parameter other memory where both devices have tensors of one kind, so that layers that share it still do,
an optimiser has it, and so does a script that keeps it in a list.  Where one device is this one it would put a new
parameter into each layer instead.
"""

import functools

import torch


def _keeping(fn, module):
    """What moves a tensor; the module's parameters and their gradients become what was made of them."""
    kept = [one for p in module.parameters() for one in (p, p.grad) if one is not None]
    kept = {id(one): one for one in kept}  # who keeps it: a name of an object is its own as long as that is there

    def move(tensor):
        moved = fn(tensor)
        is_wrapped = type(moved).__torch_dispatch__ is not torch.Tensor.__torch_dispatch__
        if id(tensor) not in kept or tensor.device.type == moved.device.type or "tiny" not in (tensor.device.type, moved.device.type) or is_wrapped:
            return moved
        with torch._C.DisableTorchFunctionSubclass():  # parameters without sizes yet refuse operators
            torch.ops.tiny.become(tensor, moved)
        return tensor
    move.keeps = True
    return move


def keep():
    original = torch.nn.Module._apply

    @functools.wraps(original)
    def _apply(self, fn, recurse=True):
        is_as_it_is = getattr(fn, "keeps", False) or torch.__future__.get_overwrite_module_params_on_conversion()
        return original(self, fn if is_as_it_is else _keeping(fn, self), recurse)
    torch.nn.Module._apply = _apply
