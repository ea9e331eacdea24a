"""The settings DEBUG, BEAM and NOOPT, when a program changes them, are options of the default context."""

from ._settings import settings
from ._tensor import change_default


def _follow(key, most):
    def change(value):
        change_default(key.lower(), min(max(int(value), 0), most))
    settings[key].on_change = change


_follow("DEBUG", 7)
_follow("BEAM", 65536)
_follow("NOOPT", 1)
