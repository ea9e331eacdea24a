"""torch.tiny: what PyTorch asks of the module of a device."""

import collections
import contextlib
import json
import os

import torch

__all__ = ["is_available", "is_initialized", "device_count", "current_device", "set_device", "device", "synchronize",
           "manual_seed", "manual_seed_all", "seed", "initial_seed", "get_rng_state", "set_rng_state", "flush_count",
           "get_amp_supported_dtype", "get_device_name", "counters", "memory_allocated", "max_memory_allocated",
           "memory_reserved", "max_memory_reserved", "empty_cache", "reset_peak_memory_stats", "is_bf16_supported",
           "fallbacks", "clear_fallbacks", "Stream", "Event", "current_stream", "default_stream",
           "stream", "get_device_capability", "get_device_properties"]

Event = torch.Event
Stream = torch.Stream


# What torch.utils.checkpoint asks before it keeps the state of random numbers for what is computed again.
_initialized = True


def is_available():
    return True


def is_initialized():
    return True


def _is_in_bad_fork():
    return False


def _lazy_init():
    pass


def device_count():
    return 1


def current_device():
    return 0


def get_device_name(device=None):
    _check(device)
    return "tiny"


def _check(device):
    index = device if isinstance(device, int) or device is None else torch.device(device).index
    if index not in (None, 0, -1):
        raise RuntimeError(f"tiny: there is one device, tiny:0; got {device!r}")


def set_device(device):
    _check(device)


@contextlib.contextmanager
def device(device):
    _check(device)
    yield


@contextlib.contextmanager
def stream(stream):
    """There is one."""
    yield


Properties = collections.namedtuple("Properties", "name total_memory multi_processor_count major minor")


def get_device_capability(device=None):
    """CUDA's, of which this device has none."""
    _check(device)
    return 0, 0


def get_device_properties(device=None):
    _check(device)
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return Properties("tiny", memory, os.cpu_count(), 0, 0)


def synchronize(device=None):
    """Computes all that waits."""
    _check(device)
    torch.ops.tiny.flush()


def flush_count():
    """How often what waited was computed since the process began."""
    return torch.ops.tiny.flush_count()


def current_stream(device=None):
    _check(device)
    return torch.Stream(device="tiny:0")


default_stream = current_stream


default_generators = (torch.ops.tiny.default_generator(),)


def _generator():
    return default_generators[0]


def manual_seed(seed):
    _generator().manual_seed(int(seed))


def manual_seed_all(seed):
    manual_seed(seed)


def seed():
    return _generator().seed()


def initial_seed():
    return _generator().initial_seed()


def get_rng_state(device="tiny"):
    _check(device)
    return _generator().get_state()


def set_rng_state(state, device="tiny"):
    _check(device)
    _generator().set_state(state)


def get_amp_supported_dtype():
    return [torch.float16, torch.bfloat16]


def fallbacks():
    """How often the CPU computed an operator instead, by its name."""
    return dict(zip(*torch.ops.tiny.fallbacks()))


def clear_fallbacks():
    torch.ops.tiny.clear_fallbacks()


def counters():
    """What the engine did since the process began: kernels, copies, memory (tiny_context_counters)."""
    return json.loads(torch.ops.tiny.counters())


def memory_allocated(device=None):
    """Bytes of the engine's buffers now."""
    _check(device)
    return torch.ops.tiny.memory_used()


_peak = 0


def max_memory_allocated(device=None):
    """The most that memory_allocated was when it was asked for."""
    global _peak
    _peak = max(_peak, memory_allocated(device))
    return _peak


memory_reserved = memory_allocated
max_memory_reserved = max_memory_allocated


def reset_peak_memory_stats(device=None):
    global _peak
    _check(device)
    _peak = 0


def empty_cache():
    """Nothing is kept here that the engine does not limit itself (its option memory_kept)."""


def is_bf16_supported(including_emulation=True):
    return True
