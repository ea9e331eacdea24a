"""A process may end right after a backward pass.

PyTorch computes backward passes of devices in a thread of its own, which gives the pass's Python objects back after it has woken who
waits for the gradients.  If the interpreter ends before that, Python ends the thread where it asks for the interpreter's lock, inside
a destructor, and C++ aborts the process ("terminate called without an active exception").
"""

import atexit
import pathlib
import time

THREADS = pathlib.Path("/proc/self/task")
LOOK_EVERY = 0.005  # s: Python's own interval of handing its lock on
LOOKS_MAX = 200  # a second: a process is not kept from ending


def _are_idle():
    """Whether the threads of backward passes, if there are any, wait for work: nobody holds Python's lock while this thread sleeps."""
    for thread in THREADS.iterdir():
        try:
            if (thread / "comm").read_text().startswith("pt_autograd") and " S " not in (thread / "stat").read_text():
                return False
        except OSError:  # it has ended
            continue
    return True


def _has_passes():
    return any((thread / "comm").read_text().startswith("pt_autograd") for thread in THREADS.iterdir())


def let_passes_end():
    try:
        if not _has_passes():
            return
        for _ in range(LOOKS_MAX):
            time.sleep(LOOK_EVERY)
            if _are_idle():
                time.sleep(LOOK_EVERY)  # one that was on its way to ask for the lock has it now
                if _are_idle():
                    return
    except OSError:  # no such folder here
        time.sleep(4 * LOOK_EVERY)


def register():
    atexit.register(let_passes_end)
