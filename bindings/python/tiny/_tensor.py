"""The default context, and how contexts are made."""

import atexit
import contextlib
import os
import threading

from . import native
from . import _dimension, _dtype
from ._data import LETTERS, from_buffer, from_dlpack, tensor, wrap  # noqa: F401  from here on
from ._dimension import Dim
from .native import Context, Tensor, Variable

_default = None
_chosen = None  # of its other devices, the one where tensors are made
_changed = {}  # options that were set before there was one, or since
_lock = threading.Lock()


def default_context() -> Context:
    """The context of tensors made without one; created on first use."""
    global _default
    with _lock:
        if _default is None:
            _default = Context()
            for option, value in _changed.items():
                _default.set_int(option, value)
        return _chosen or _default


def choose_default(context):
    """Tensors without a context are made in this one from now on, the default context on one of its devices."""
    global _chosen
    with _lock:
        _chosen = context


def change_default(option, value):
    """Sets an option of the default context, now or when it is made."""
    with _lock:
        _changed[option] = value
        for context in (_default, _chosen):
            if context is not None:
                context.set_int(option, value)


def _drop_default():
    """At exit: what a context tells at its end (DEBUG=2, PROFILE=1) it tells when it is released."""
    global _default, _chosen
    viz = os.environ.get("VIZ", "")
    if _default is not None and viz.isdecimal() and int(viz) > 0 and "TINY_VIZ" not in os.environ:
        from . import viz
        viz.at_exit()
    _default = _chosen = None


atexit.register(_drop_default)

# DEBUG=2, NOOPT=1, ..: the names that people know from elsewhere, where TINY_* does not speak.
_BARE_NAMES = ("DEBUG", "BEAM", "NOOPT", "GRAPH", "GRAPHUOPS", "PROFILE", "TRACK_MATCH_STATS", "VIZ")


def _set_bare_names(settings):
    for name in _BARE_NAMES:
        value = os.environ.get(name, "")
        if value.isdecimal() and "TINY_" + name not in os.environ:
            with contextlib.suppress(RuntimeError):  # a number that we do not take
                native.tiny_options_set_int(settings, name.lower(), int(value))


def _new_context(self, **options):
    """Context(threads=2, device="interp", ..): the options of tiny_options_set_int and _string; log, poll,
    progress, thread_pool and allocator=(allocate, release) are functions, as Options.set_log takes them."""
    settings = native.tiny_options_create()
    _set_bare_names(settings)
    settings.set_poll(None)  # signals
    for key, value in options.items():
        if key in ("log", "poll", "progress", "thread_pool"):
            getattr(settings, f"set_{key}")(value)
        elif key == "allocator":
            settings.set_allocator(*(value or (None, None)))
        elif isinstance(value, str):
            native.tiny_options_set_string(settings, key, value)
        else:
            native.tiny_options_set_int(settings, key, value)
    self.this = native.tiny_context_create(settings)
    _dtype.configure(self)


Context.__init__ = _new_context
Context.context = property(lambda self: self)


Tensor.name = Tensor.name.setter(lambda self, text: self.set_name(text))
Tensor.shape = property(native.shape)
Variable.dim = property(lambda self: Dim(self.context, _dimension.number(self)))
