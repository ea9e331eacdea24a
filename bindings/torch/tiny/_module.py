"""torch.tiny: what PyTorch asks of the module of a device."""

import contextlib
import json

import torch

__all__ = ["is_available", "is_initialized", "device_count", "current_device", "set_device", "device", "synchronize",
           "manual_seed", "manual_seed_all", "seed", "initial_seed", "get_rng_state", "set_rng_state", "flush_count",
           "get_amp_supported_dtype", "get_device_name", "counters", "fallbacks", "clear_fallbacks", "Stream", "Event", "current_stream", "default_stream"]

Event = torch.Event
Stream = torch.Stream


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
