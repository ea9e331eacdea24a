"""Settings that programs read and change: ContextVar("DEBUG", 0), Context(DEBUG=2).

A setting has the environment's value if there is one.  What a change of one does to the engine, its `on_change` does.
"""

import collections
import contextlib
import functools
import os

from . import _dtype
from .native import Tensor


@functools.lru_cache(maxsize=None)
def getenv(key, default=0):
    """The environment variable in the type of `default`, as it was when it was first asked for."""
    return type(default)(os.environ.get(key, default))


class ContextVar:
    """A setting of the process.  It compares as its value does, and is true as its value is."""

    _cache = {}

    def __init__(self, key, default_value, on_change=None):
        if key in ContextVar._cache:
            raise RuntimeError(f"ContextVar({key!r}) is there already")
        self.key = key
        self.on_change = on_change
        self._value = getenv(key, default_value)
        ContextVar._cache[key] = self
        if on_change is not None and key in os.environ:
            on_change(self._value)

    @property
    def value(self):
        return self._value

    @value.setter
    def value(self, value):
        self._value = value
        if self.on_change is not None:
            self.on_change(value)

    def __bool__(self):
        return bool(self.value)

    def __eq__(self, other):
        return self.value == other

    def __ge__(self, other):
        return self.value >= other

    def __gt__(self, other):
        return self.value > other

    def __le__(self, other):
        return self.value <= other

    def __lt__(self, other):
        return self.value < other

    __hash__ = object.__hash__

    def __repr__(self):
        return f"{self.key}={self.value!r}"

    def tolist(self, within=None):
        """The parts of a value with commas; with an object, its attributes of those names."""
        parts = [part for part in self.value.split(",") if part]
        return parts if within is None else [getattr(within, part) for part in parts]


class Context(contextlib.ContextDecorator):
    """`with Context(TRAINING=1, DEBUG=2):`, or as a decorator: settings have these values within."""

    def __init__(self, **settings):
        unknown = sorted(set(settings) - set(ContextVar._cache))
        if unknown:
            raise KeyError(f"Context({', '.join(unknown)}): no such setting; tiny.Context is something else")
        self.settings, self._before = settings, []

    def __enter__(self):
        self._before.append({key: ContextVar._cache[key].value for key in self.settings})
        for key, value in self.settings.items():
            ContextVar._cache[key].value = value

    def __exit__(self, *error):
        for key, value in self._before.pop().items():
            ContextVar._cache[key].value = value


class Target(collections.namedtuple("Target", "device renderer arch interface indices", defaults=("",) * 5)):
    """A device, how code for it is written, and its architecture: "CPU:LLVM:x86_64"; before a "+" the interface to it
    and which ones."""
    __slots__ = ()

    @staticmethod
    def parse(text):
        front, plus, rest = text.rpartition("+")
        if "+" in front:
            raise RuntimeError(f"target {text!r}: one + at most")
        interface, _, indices = front.rpartition(":") if ":" in front else (front, "", "")
        parts = rest.split(":")
        if len(parts) > 3:
            raise RuntimeError(f"target {text!r}: three parts at most, DEVICE:RENDERER:ARCH")
        parts = [part.upper() if place < 2 else part for place, part in enumerate(parts)] + [""] * (3 - len(parts))
        return Target(*parts, interface, indices)

    def __repr__(self):
        front = ":".join((self.interface, self.indices)).rstrip(":")
        return (front + "+" if front else "") + ":".join((self.device, self.renderer, self.arch)).rstrip(":")

    def replacedefault(self, **parts):
        """With these parts where nothing was said."""
        return self._replace(**{key: value for key, value in parts.items() if not getattr(self, key)})


class _Devices(ContextVar):
    """The setting DEV: the targets in order, of a text with a ";" between them."""

    @property
    def value(self):
        return self._targets

    @value.setter
    def value(self, value):
        if isinstance(value, str):
            value = [Target.parse(text) for text in value.split(";")]
        self._targets = value if isinstance(value, list) else [value]

    def __init__(self, key):
        super().__init__(key, "")
        self.value = self._value

    def __getattr__(self, name):
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self._targets[0], name)

    def __repr__(self):
        return ";".join(map(repr, self._targets))

    def target(self, device, **parts):
        """The target that is said for a device."""
        found = next((one for one in self._targets if one.device in ("", device)), Target(device))
        return dataclasses.replace(found.replacedefault(**parts), device=device)


class _Training(ContextVar):
    """The setting TRAINING is Tensor.training."""

    @property
    def value(self):
        return int(Tensor.training)

    @value.setter
    def value(self, value):
        Tensor.training = bool(value)

    def __init__(self, key):
        super().__init__(key, int(Tensor.training))
        self.value = self._value


DEV, TRAINING = _Devices("DEV"), _Training("TRAINING")

# Those that tinygrad has, which programs mention.  Whatever none of the engine's parts asks for changes nothing.
_NUMBERS = {"DEBUG": 0, "BEAM": 0, "NOOPT": 0, "IMAGE": 0, "FLOAT16": 0, "OPENPILOT_HACKS": 0, "JIT": 1,
            "JIT_BATCH_SIZE": 32, "WINO": 0, "CAPTURING": 1, "TRACEMETA": 1, "NO_COLOR": 0, "TC": 1, "TC_SELECT": -1,
            "TC_OPT": 0, "TRANSCENDENTAL": 1, "NOLOCALS": 0, "SPLIT_REDUCEOP": 1, "NO_MEMORY_PLANNER": 0, "LRU": 1,
            "RING": 1, "ALL2ALL": 0, "ALLREDUCE_CAST": 1, "CACHELEVEL": 2, "IGNORE_BEAM_CACHE": 0,
            "VALIDATE_WITH_CPU": 0, "DISABLE_FAST_IDIV": 1, "FUSE_OPTIM": 0, "ALLOW_DEVICE_USAGE": 1,
            "MAX_BUFFER_SIZE": 0, "MAX_KERNEL_BUFFERS": 0, "CAPTURE_PROCESS_REPLAY": 0, "NULL_ALLOW_COPYOUT": 0,
            "VIZ": 0, "SPEC": 1, "CHECK_OOB": 0, "PCONTIG": 0, "DEBUG_RANGEIFY": 0, "TUPLE_ORDER": 1, "CCACHE": 1,
            "ALLOW_TF32": 0, "SCACHE": 1, "USE_ATOMICS": 0, "DISALLOW_BROADCAST": 0, "PROFILE": 0,
            "TRACK_MATCH_STATS": 0, "REWRITE_STACK_LIMIT": 250000, "PMA": 0, "PMC": 0, "SQTT": 0,
            "NUM_CPU_THREADS": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1}
_TEXTS = {"EMULATED_DTYPES": ""}
settings = {key: ContextVar(key, default) for key, default in {**_NUMBERS, **_TEXTS}.items()}
# A dtype or its name; "": as the reading has it.
settings["DEFAULT_FLOAT"] = ContextVar("DEFAULT_FLOAT", "", lambda kind: _dtype.set_default_float(kind or None))
settings["DEFAULT_INT"] = ContextVar("DEFAULT_INT", "", lambda kind: _dtype.set_default_int(kind or None))
settings["PARALLEL"] = ContextVar("PARALLEL", settings["NUM_CPU_THREADS"].value)
settings["USE_TC"] = settings["TC"]
globals().update(settings)
