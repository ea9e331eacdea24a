"""How far a loop is, on stderr."""

import math
import shutil
import sys
import time

from ._text import ansilen

_EIGHTHS = " ▏▎▍▌▋▊▉"


def _clock(seconds):
    """[hours:]minutes:seconds."""
    seconds = int(seconds)
    hours, minutes = divmod(seconds // 60, 60)
    return (f"{hours}:" if hours else "") + f"{minutes:02d}:{seconds % 60:02d}"


def _scaled(number):
    """In k, M, G, .., three digits."""
    if not number:
        return "0.00"
    number = float(f"{number:.3g}")
    power = max(0, int(math.log(number, 1000) + 1e-6))
    return f"{number / 1000 ** power:.2f}"[:4].rstrip(".") + " kMGTPEZY"[power].strip()


class tqdm:
    """An iterator over items, or a counter that update() moves on, that says on stderr how far it is.

    disable     None: where stderr is no terminal
    unit_scale  numbers in k, M, ..
    rate        the bar is written at most so many times a second
    """

    def __init__(self, iterable=None, desc="", disable=False, unit="it", unit_scale=False, total=None, rate=100):
        self.disable = not sys.stderr.isatty() if disable is None else disable
        self.iterable, self.unit, self.unit_scale, self.rate = iterable, unit, unit_scale, rate
        self.t = total if total is not None else len(iterable) if hasattr(iterable, "__len__") else 0
        self.n, self.i, self.skip, self.st = 0, -1, 1, time.perf_counter()
        self.set_description(desc)
        self.update(0)

    def __iter__(self):
        if self.iterable is None:
            raise TypeError("tqdm: nothing to iterate over was given")
        for item in self.iterable:
            yield item
            self.update(1)
        self.update(close=True)

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.update(close=True)

    def set_description(self, desc):
        """What stands in front."""
        self.desc = f"{desc}: " if desc else ""

    def update(self, n=0, close=False):
        """`n` more are done; with `close` the line ends."""
        self.n, self.i = self.n + n, self.i + 1
        if self.disable or (not close and self.i % self.skip):
            return
        elapsed = time.perf_counter() - self.st
        if elapsed and self.i / elapsed > self.rate:
            self.skip = max(1, int(self.i / elapsed) // self.rate)
        print("\r" + self._line(elapsed), end="\n" if close else "", file=sys.stderr, flush=True)

    def _line(self, elapsed):
        show = _scaled if self.unit_scale else str
        done = self.n / self.t if self.t else 0
        left = f"<{_clock(elapsed / done - elapsed) if self.n else '?'}" if self.t else ""
        pace = "?" if not self.n else _scaled(self.n / elapsed) if self.unit_scale else f"{self.n / elapsed:5.2f}"
        text = f"{show(self.n)}{'/' + show(self.t) if self.t else self.unit} [{_clock(elapsed)}{left}, {pace}{self.unit}/s]"
        if not self.t:
            return self.desc + text
        width = max(1, shutil.get_terminal_size().columns - ansilen(self.desc) - len("| ") - 5 - len(text))
        full = width * done
        bar = "█" * int(full) + _EIGHTHS[int(8 * full) % 8].strip()
        return f"{self.desc}{100 * done:3.0f}%|{bar.ljust(width)}| {text}"

    @classmethod
    def write(cls, text):
        """A line of its own."""
        print(f"\r\x1b[K{text}", file=sys.stderr, flush=True)


def trange(n, **options) -> tqdm:
    """tqdm(range(n))."""
    return tqdm(range(n), total=n, **options)
