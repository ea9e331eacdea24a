"""What programs keep between runs, by a table and a key: helpers.diskcache_get and its like."""

import contextlib
import functools
import hashlib
import os
import pathlib
import pickle
import tempfile

from ._fetch import cache_dir
from ._settings import CACHELEVEL


def _folder() -> pathlib.Path:
    """One file for each value: a name is as good as a database, and what is written in one step is never seen in part."""
    return cache_dir() / "values"


def _place(table, key) -> pathlib.Path:
    if not isinstance(key, dict):
        key = {"key": str(key)}
    said = "\n".join(f"{name}={key[name]!r}" for name in sorted(key))
    return _folder() / hashlib.sha256(f"{table}\n{said}".encode()).hexdigest()


def diskcache_get(table, key):
    """What was put there, by this process or another; None if nothing was, or CACHELEVEL is 0.  A key is a text, a number
    or a dict of such."""
    if CACHELEVEL < 1:
        return None
    try:
        return pickle.loads(_place(table, key).read_bytes())
    except (FileNotFoundError, EOFError, pickle.UnpicklingError):
        return None


def diskcache_put(table, key, val, prepickled=False):
    """Keeps a value, or with `prepickled` the bytes of one, and gives it back."""
    if CACHELEVEL < 1:
        return val
    place = _place(table, key)
    place.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile(dir=place.parent, delete=False) as file:
        file.write(val if prepickled else pickle.dumps(val))
    os.replace(file.name, place)
    return val


def diskcache_clear() -> None:
    """Forgets all that was put."""
    for place in _folder().glob("*"):
        with contextlib.suppress(FileNotFoundError):  # another process was first
            place.unlink()


def diskcache(func):
    """The function, whose results are kept between runs by its name and arguments."""
    @functools.wraps(func)
    def kept(*arguments, **keywords):
        table, key = f"cache_{func.__name__}", hashlib.sha256(pickle.dumps((arguments, keywords))).hexdigest()
        found = diskcache_get(table, key)
        return diskcache_put(table, key, func(*arguments, **keywords)) if found is None else found
    return kept
