"""Python's functions that the engine calls: what it tells, how far it is, its memory, its threads.

They are called from any thread, with the interpreter's lock, and may not use the context that calls
them.  An exception has nobody to catch it: sys.unraisablehook gets it.  What is set is kept for as long
as something made with the options may call it.
"""

from . import native
from .native import Options


def _checked(function, what):
    if function is not None and not callable(function):
        raise TypeError(f"{what} is to be called, not {type(function).__name__}")
    return function


def _set_log(self, log):
    """What "debug" asks for goes to log(text) instead of stderr; None: to stderr again."""
    native.tiny_set_log(self, _checked(log, "log"))


def _set_allocator(self, allocate, release):
    """Memory of tensors comes from allocate(bytes, alignment), an address, 0 or None if there is none,
    and goes back to release(address, bytes, alignment); both None: the library's own again."""
    if (allocate is None) != (release is None):
        raise TypeError("allocate and release go together")
    pair = (_checked(allocate, "allocate"), _checked(release, "release"))
    native.tiny_set_allocator(self, None if allocate is None else pair)


def _set_thread_pool(self, run):
    """run(task, count) calls task(i) for each i below count, on any threads, and returns when all have:
    `lambda task, count: list(executor.map(task, range(count)))`.  None: the library's own threads again."""
    native.tiny_set_thread_pool(self, _checked(run, "run"))


def _set_progress(self, progress):
    """progress(what, done, total) is called between kernels that are compiled and candidates that a search
    tries, by the thread that builds; a true result, or an exception, ends the call with tiny.Error,
    CANCELLED.  None: nobody is told again."""
    native.tiny_set_progress(self, _checked(progress, "progress"))


def _set_poll(self, poll):
    """poll() is called every few milliseconds in calls that build and in executions, by the thread that
    called; a true result, or an exception, ends the call with tiny.Error, CANCELLED.  None: nobody is asked.
    Handlers of signals are called in any case: Ctrl-C raises KeyboardInterrupt, in the middle of kernels too."""
    native.tiny_set_poll(self, _checked(poll, "poll"))


Options.set_log = _set_log
Options.set_poll = _set_poll
Options.set_progress = _set_progress
Options.set_allocator = _set_allocator
Options.set_thread_pool = _set_thread_pool
