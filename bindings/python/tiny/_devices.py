"""The devices of this machine as programs in tinygrad's style ask for them: Device.DEFAULT, Device["CPU"]."""

import functools

from ._placing import canonical, context_on, name_of

# Of the processor, whose memory is the host's.
_HOST = "CPU"


class Allocator:
    """The memory of a device, which the engine gives and takes itself."""


class Compiler:
    """Machine code of kernels; the engine makes it itself."""


class _Operations:
    """Those that kernels have: whichever tensors have, the engine takes apart what a processor lacks."""

    def __contains__(self, op) -> bool:
        return True


class Renderer:
    """What kernels can be made of on a device."""
    code_for_op = _Operations()
    has_local = has_shared = False
    supports_float4 = True
    tensor_cores = ()
    compiler = Compiler()

    def __init__(self, device=_HOST):
        self.device = device

    @staticmethod
    def supported_dtypes() -> set:
        """The element types that tensors have."""
        from ._dtype import supported
        return set(supported)


class Compiled:
    """A device.

    device     its name, "CPU" or "CPU:1"
    renderer   what kernels can be made of
    """

    graph = None  # programs are one graph of the driver's as they are

    def __init__(self, name):
        self.device = name
        self.renderer = Renderer(name)
        self.compiler = self.renderer.compiler
        self.allocator = Allocator()

    @property
    def arch(self) -> str:
        """The instruction set, such as "avx2"."""
        import json
        return json.loads(self._context().info().text())["isa"]

    def _context(self):
        from ._tensor import default_context
        return context_on(self.device, default_context())

    def count(self) -> int:
        """How many devices of the kind there are."""
        return 1

    def synchronize(self):
        """Waits for all that the device was given."""
        self._context().synchronize()

    def finalize(self):
        """Waits for all work."""
        self.synchronize()


@functools.cache
def _of_drivers():
    """The names of devices with memory of their own that can be used; their drivers are asked once."""
    import json
    from .methods import devices
    return tuple(device["name"].upper() for device in json.loads(devices().text())["devices"]
                 if device["available"] and "units" in device)


class _Devices:
    """Of this machine."""

    def __getitem__(self, name) -> Compiled:
        return _device(self.canonicalize(name))

    @property
    def DEFAULT(self) -> str:
        """Where tensors are that are made without a device."""
        from ._tensor import default_context
        return name_of(default_context()).upper()

    @DEFAULT.setter
    def DEFAULT(self, value):
        from ._tensor import choose_default, default_context
        canonical(value)  # what is no device is told as that
        choose_default(context_on(value, default_context()))

    @property
    def default(self) -> Compiled:
        return self[self.DEFAULT]

    def canonicalize(self, name) -> str:
        """The name in capital letters, without ":0"; of None the default's."""
        if name is None:
            return self.DEFAULT
        kind, colon, which = name.partition(":")
        return kind.upper() + (colon + which if which not in ("", "0") else "")

    def get_available_devices(self):
        """The names of those that can be used: to(..), Tensor(.., device=..) and Context(device=..) take any."""
        yield _HOST
        yield from _of_drivers()


@functools.cache
def _device(name):
    made = Compiled(name)
    try:
        made._context()
    except (ValueError, RuntimeError) as error:
        known = ", ".join(Device.get_available_devices())
        raise RuntimeError(f"Device[{name!r}]: no such device; known: {known}") from error
    return made


Device = _Devices()
