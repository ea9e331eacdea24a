"""What programs in tinygrad's style take from its helpers."""

import os
import sys

from ._counters import GlobalCounters  # noqa: F401
from ._training import train


def getenv(key, default=0):
    """The environment variable in the type of `default`."""
    return type(default)(os.environ.get(key, default))


_COLORS = ("black", "red", "green", "yellow", "blue", "magenta", "cyan", "white")


def colored(text, color=None, background=False) -> str:
    """The text in a colour for terminals; capital letters are bright."""
    if color is None:
        return str(text)
    code = (10 if background else 0) + (60 if color.isupper() else 0) + 30 + _COLORS.index(color.lower())
    return f"\x1b[{code}m{text}\x1b[0m"


def Context(**settings):
    """`with Context(TRAINING=1):`, or as a decorator: Tensor.training is so within."""
    other = set(settings) - {"TRAINING"}
    if other or not settings:
        raise ValueError(f"Context({', '.join(sorted(other))}): known is TRAINING; tiny.Context is something else")
    return train(bool(settings["TRAINING"]))


class _Progress:
    """An iterator that says on stderr how far it is."""

    def __init__(self, items, desc="", disable=False, unit="it", total=None):
        self.items, self.text, self.disable, self.unit = items, desc, disable, unit
        self.total = len(items) if total is None and hasattr(items, "__len__") else total

    def __iter__(self):
        for self.done, item in enumerate(self.items):
            yield item
            self.done += 1
            self._show()
        self._show("\n")

    def set_description(self, desc):
        """What stands in front."""
        self.text = desc

    def write(self, text):
        """A line of its own."""
        print(f"\r\x1b[K{text}", file=sys.stderr)

    def _show(self, end=""):
        if not self.disable and sys.stderr.isatty():
            of = "" if self.total is None else f"/{self.total}"
            print(f"\r\x1b[K{self.text} {self.done}{of} {self.unit}", end=end, file=sys.stderr, flush=True)


def tqdm(iterable, desc="", disable=False, unit="it", total=None) -> _Progress:
    """The items, with how far they are on a terminal."""
    return _Progress(iterable, desc, disable, unit, total)


def trange(n, **options) -> _Progress:
    """tqdm(range(n))."""
    return tqdm(range(n), **options)
