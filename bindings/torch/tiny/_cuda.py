"""Programs that name the device "cuda" run on "tiny": what they ask of torch.cuda is answered by it."""

import functools

import torch
from torch.overrides import TorchFunctionMode


def mapped(value):
    """cuda and cuda:0 as tiny; anything else as it is."""
    if isinstance(value, str) and (value == "cuda" or value.startswith("cuda:")):
        return "tiny"
    if isinstance(value, torch.device) and value.type == "cuda":
        return torch.device("tiny")
    return value


class Mapping(TorchFunctionMode):
    """Devices among the arguments of every function of PyTorch."""

    def __torch_function__(self, function, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        args = tuple(mapped(x) if isinstance(x, (str, torch.device)) else x for x in args)
        if "device" in kwargs:
            kwargs = dict(kwargs, device=mapped(kwargs["device"]))
        return function(*args, **kwargs)


def _moves(self, device=None, *args, **kwargs):
    return self.to("tiny")


def _device_named(function):
    return functools.wraps(function)(lambda device: function(mapped(device)))


def _device_first(function):
    """The first argument, or device_type=, names a device."""
    @functools.wraps(function)
    def wrapper(self, *args, **kwargs):
        for name in ("device", "device_type"):
            if name in kwargs:
                kwargs[name] = mapped(kwargs[name])
        return function(self, *(mapped(x) for x in args), **kwargs)
    return wrapper


class _OfAnyDevice(type(torch.Generator)):
    def __instancecheck__(cls, value):
        return isinstance(value, _Generator)


_Generator = torch.Generator


class Generator(_Generator, metaclass=_OfAnyDevice):
    def __new__(cls, device="cpu"):
        return _Generator(mapped(device))


def _compile(compile):
    """The compiler of PyTorch's own devices stands for ours."""
    @functools.wraps(compile)
    def wrapper(*args, backend="inductor", mode=None, options=None, **kwargs):
        if backend != "inductor":
            return compile(*args, backend=backend, mode=mode, options=options, **kwargs)
        return compile(*args, backend="tiny", **kwargs)
    return wrapper


def _event(enable_timing=False, blocking=False, interprocess=False):
    return torch.Event("tiny", enable_timing=enable_timing)


def install():
    """Once for the process."""
    if getattr(torch.cuda, "_is_tiny", False):
        return
    torch.cuda._is_tiny = True
    module = torch.tiny
    for name in ("is_available", "is_initialized", "device_count", "current_device", "set_device", "synchronize", "manual_seed",
                 "manual_seed_all", "get_rng_state", "set_rng_state", "seed", "initial_seed", "get_device_name",
                 "current_stream", "default_stream", "memory_allocated", "max_memory_allocated", "memory_reserved",
                 "max_memory_reserved", "empty_cache", "reset_peak_memory_stats", "is_bf16_supported",
                 "get_device_properties", "get_device_capability", "Stream", "stream", "device"):
        setattr(torch.cuda, name, getattr(module, name))
    torch.cuda.Event = _event
    torch.Tensor.cuda = _moves
    torch.Tensor.is_cuda = property(lambda self: self.device.type == "tiny")
    torch.nn.Module.cuda = _moves
    torch.Generator = Generator
    torch.compile = _compile(torch.compile)
    torch.set_default_device = _device_named(torch.set_default_device)
    for kind in (torch.autocast, torch.amp.GradScaler):
        kind.__init__ = _device_first(kind.__init__)
    torch.serialization.register_package(
        0, lambda storage: None, lambda storage, location: storage.tiny() if location.startswith("cuda") else None)
    Mapping().__enter__()
