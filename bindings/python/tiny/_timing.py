"""How long things take, and what happened when, as programs ask for it."""

import contextlib
import dataclasses
import decimal
import gc
import time


class Timing(contextlib.ContextDecorator):
    """Prints how long a block took, in ms, after `prefix`; on_exit(ns) may add a text."""

    def __init__(self, prefix="", on_exit=None, enabled=True):
        self.prefix, self.on_exit, self.enabled = prefix, on_exit, enabled

    def __enter__(self):
        self.st = time.perf_counter_ns()

    def __exit__(self, *error):
        self.et = time.perf_counter_ns() - self.st
        if self.enabled:
            print(f"{self.prefix}{self.et * 1e-6:6.2f} ms{self.on_exit(self.et) if self.on_exit else ''}")


class Profiling(contextlib.ContextDecorator):
    """Prints which Python functions of a block took longest: the first `frac` of them, or writes them to the file `fn`."""

    def __init__(self, enabled=True, sort="cumtime", frac=0.2, fn=None, ts=1):
        self.enabled, self.sort, self.frac, self.fn, self.ts = enabled, sort, frac, fn, ts

    def __enter__(self):
        import cProfile
        self.profile = cProfile.Profile()
        if self.enabled:
            self.profile.enable()

    def __exit__(self, *error):
        if not self.enabled:
            return
        import pstats
        self.profile.disable()
        if self.fn:
            self.profile.dump_stats(self.fn)
        stats = pstats.Stats(self.profile).strip_dirs().sort_stats(self.sort)
        for name in stats.fcn_list[:int(len(stats.fcn_list) * self.frac)]:
            _, calls, own, total, _ = stats.stats[name]
            print(f"n:{calls:8d}  tm:{own * 1e3 / self.ts:7.2f}ms  tot:{total * 1e3 / self.ts:7.2f}ms  "
                  f"{name[0]}:{name[1]}:{name[2]}")


class disable_gc(contextlib.ContextDecorator):
    """The garbage collector rests within."""

    def _recreate_cm(self):
        return type(self)()

    def __enter__(self):
        self._was_enabled = gc.isenabled()
        gc.disable()

    def __exit__(self, *error):
        if self._was_enabled:
            gc.enable()


def perf_counter_us() -> decimal.Decimal:
    """A time in us."""
    return decimal.Decimal(time.perf_counter_ns()) / 1000


class ProfileEvent:
    """Something that happened."""


@dataclasses.dataclass
class ProfileRangeEvent(ProfileEvent):
    """From one time to another, in us."""
    device: str
    name: str
    st: decimal.Decimal
    en: decimal.Decimal | None = None
    profile_key: bytes | None = None


@dataclasses.dataclass(frozen=True)
class ProfilePointEvent(ProfileEvent):
    """At a time, in us."""
    device: str
    name: str
    key: object
    arg: dict = dataclasses.field(default_factory=dict)
    ts: decimal.Decimal = dataclasses.field(default_factory=perf_counter_us)


cpu_events = []  # of cpu_profile and profile_marker


@contextlib.contextmanager
def cpu_profile(name, device="TINY", display=True, profile_key=None):
    """A ProfileRangeEvent of a block, which is kept in cpu_events while the setting PROFILE is on."""
    from ._settings import settings
    event = ProfileRangeEvent(device, name, perf_counter_us(), profile_key=profile_key)
    try:
        yield event
    finally:
        event.en = perf_counter_us()
        if display and settings["PROFILE"]:
            cpu_events.append(event)


def profile_marker(name, color="gray") -> None:
    """A ProfilePointEvent now."""
    cpu_events.append(ProfilePointEvent("TINY", "marker", None, {"name": name, "color": color}))


def wait_cond(cb, *args, value=True, timeout_ms=10000, msg=""):
    """Calls cb(*args) until it gives `value`; TimeoutError if it does not in so many milliseconds."""
    end = time.perf_counter() + timeout_ms / 1e3
    while True:
        found = cb(*args)
        if found == value:
            return found
        if time.perf_counter() >= end:
            raise TimeoutError(f"{msg}. Timed out after {timeout_ms} ms, condition not met: {found} != {value}")
