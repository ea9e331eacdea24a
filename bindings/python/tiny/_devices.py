"""The devices of this machine as programs in tinygrad's style ask for them: Device.DEFAULT, Device["CPU"]."""

import functools

# Where all tensors are.
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
    device = _HOST
    code_for_op = _Operations()
    has_local = has_shared = False
    supports_float4 = True
    tensor_cores = ()
    compiler = Compiler()

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

    graph = None  # programs are one batch as they are

    def __init__(self, name):
        self.device = name
        self.renderer = Renderer()
        self.compiler = self.renderer.compiler
        self.allocator = Allocator()

    @property
    def arch(self) -> str:
        """The instruction set, such as "avx2"."""
        import json
        from ._tensor import default_context
        return json.loads(default_context().info().text())["isa"]

    def count(self) -> int:
        """How many devices of the kind there are."""
        return 1

    def synchronize(self):
        """Waits for all work, which is done by the time that a call returns."""

    def finalize(self):
        """Waits for all work."""


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
        return _HOST

    @DEFAULT.setter
    def DEFAULT(self, value):
        if self.canonicalize(value) != _HOST:
            raise ValueError(f"Device.DEFAULT = {value!r}: tensors are on the CPU")

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
        """The names of those that can be used: Context(device=..) takes any."""
        yield _HOST
        yield from _of_drivers()


@functools.cache
def _device(name):
    if name.partition(":")[0] != _HOST and name not in _of_drivers():
        raise RuntimeError(f"Device[{name!r}]: no such device; known: {', '.join(Device.get_available_devices())}")
    return Compiled(name)


Device = _Devices()
