"""GlobalCounters: what the default context has done since reset(), from counts that the engine keeps."""

from ._tensor import default_context


class _PerDevice(dict):
    """Bytes by the device's name; 0 of one that is not there."""

    def __missing__(self, device):
        return 0


class _Counters:
    """Kernels that ran, their arithmetic operations and the bytes of their buffers, by the sizes that they ran with;
    the seconds of those that were timed, which DEBUG=2 does; and bytes of all buffers now, which reset() leaves."""

    def __init__(self):
        self._before = (0, 0.0, 0.0, 0.0)

    def _since(self, place):
        return default_context().totals()[place] - self._before[place]

    def reset(self) -> None:
        """Counts from 0 again."""
        self._before = default_context().totals()[:4]

    @property
    def kernel_count(self) -> int:
        return self._since(0)

    @property
    def global_ops(self) -> int:
        return int(self._since(1))

    @property
    def global_mem(self) -> int:
        return int(self._since(2))

    @property
    def time_sum_s(self) -> float:
        return self._since(3)

    @property
    def mem_used(self) -> int:
        return default_context().totals()[4]

    @property
    def mem_used_per_device(self) -> dict:
        from ._devices import Device
        return _PerDevice({Device.DEFAULT: self.mem_used})


GlobalCounters = _Counters()
