"""Where tensors are: the contexts of devices, which programs name as tinygrad does ("CUDA", "OPENCL:1") or as tiny."""

import weakref

from . import native
from ._dtype import configure
from ._reading import Reading
from .native import Context

# Kinds of devices whose memory is the host's: to who places tensors they are one, CPU.
_HOST = ("cpu", "c", "interp", "null")
_KINDS = (*_HOST, "cuda", "opencl", "far")
# What writes the text of other devices and computes nothing: no place to bring a tensor to.
_TEXTS = ("hip", "metal", "wgsl")


def canonical(device) -> str:
    """The name as tiny has it, "cpu" for all of the host's ("CPU:1", "PYTHON"), without ":0"."""
    kind, _, number = str(device).lower().partition(":")
    if kind in _HOST or (Reading.tinygrad and kind == "python"):
        return "cpu"
    if kind not in _KINDS:
        raise ValueError(f"device {device!r}: known are {', '.join(name.upper() for name in _KINDS)}")
    return kind if number in ("", "0") else f"{kind}:{number}"


def name_of(context) -> str:
    """Of the context's device, as canonical() has names."""
    if not hasattr(context, "_device_name"):
        import json
        device = json.loads(context.info().text())["device"]
        context._device_name = device if device in _TEXTS else canonical(device)
    return context._device_name


def context_on(device, context) -> Context:
    """The context on a device, or itself if none is said; one object for all who ask."""
    name = name_of(context) if device is None else canonical(device)
    if name == name_of(context):
        return context
    first = getattr(context, "_first", lambda: None)() or context
    if name == name_of(first):
        return first
    others = first.__dict__.setdefault("_others", {})
    if name not in others:
        made = native.tiny_context_on_device(first, name)
        configure(made)
        made._first = weakref.ref(first)
        others[name] = made
    return others[name]


def is_one_place(tensor, devices) -> bool:
    """Whether the devices, names or contexts of partitions, are all where the tensor is."""
    found = [device if isinstance(device, Context) else context_on(device, tensor.context) for device in devices]
    return all(one is tensor.context for one in found) and (len(found) < 2 or not any(one in found for one in devices))


def on_device(self, device) -> Context:
    """The context on another of its devices: tensors that are made with it lie there."""
    return context_on(device, self)


Context.on_device = on_device
