"""Files of the web, kept on disk: fetch(url)."""

import gzip
import hashlib
import os
import pathlib
import shutil
import tempfile

from ._settings import getenv


def cache_dir() -> pathlib.Path:
    """Where what can be made again is kept: $XDG_CACHE_HOME/tiny, or ~/.cache/tiny."""
    return pathlib.Path(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")) / "tiny"


def _place(url, name, subdir, gunzip, headers):
    if name is not None and (isinstance(name, pathlib.Path) or "/" in name):
        return pathlib.Path(name)
    told = "\n".join(f"{key.strip()}:{value.strip()}" for key, value in sorted(headers.items()))
    more = "_" + hashlib.md5(told.encode()).hexdigest() if headers else ""
    plain = name or hashlib.md5(url.encode()).hexdigest()
    return cache_dir() / "downloads" / (subdir or "") / f"{plain}{more}{'.gunzip' if gunzip else ''}"


def _download(url, path, gunzip, headers, sha256):
    import urllib.request
    path.parent.mkdir(parents=True, exist_ok=True)
    request = urllib.request.Request(url, headers={"User-Agent": "tiny", **headers})
    with urllib.request.urlopen(request, timeout=10) as answer:
        if answer.status not in (200, 206):
            raise RuntimeError(f"fetch({url!r}): the server answers {answer.status}")
        wanted = None if gunzip else answer.headers.get("content-length")
        digest, size = hashlib.sha256(), 0
        with tempfile.NamedTemporaryFile(dir=path.parent, delete=False) as file:
            source = gzip.GzipFile(fileobj=answer) if gunzip else answer
            while piece := source.read(1 << 16):
                digest.update(piece)
                size += file.write(piece)
    try:
        if wanted is not None and size < int(wanted):
            raise RuntimeError(f"fetch({url!r}): {size} of {wanted} bytes came")
        if sha256 and digest.hexdigest() != sha256:
            raise RuntimeError(f"fetch({url!r}): its SHA-256 is {digest.hexdigest()}, not {sha256}")
        os.replace(file.name, path)
    except RuntimeError:
        os.unlink(file.name)
        raise


def _extracted(path):
    """The folder of what a tar file has; it is whole or not there."""
    import tarfile
    folder = path.parent / f"{path.name}.extract"
    if folder.is_dir():
        return folder
    made = tempfile.mkdtemp(dir=path.parent)
    try:
        with tarfile.open(path) as archive:
            archive.extractall(made, filter="data")
        os.rename(made, folder)
    except OSError:
        if not folder.is_dir():  # another process was first
            raise
    finally:
        shutil.rmtree(made, ignore_errors=True)
    return folder


def fetch(url, name=None, subdir=None, gunzip=False, allow_caching=None, headers=None, sha256=None,
          extract=False) -> pathlib.Path:
    """The path of the file at `url`, which is downloaded if it is not on disk; a path is its own.

    name, subdir   what it is called in the cache; a path says where it is kept
    gunzip         it is unpacked
    sha256         of what is kept; another one is an error
    extract        of a tar file the folder with what is in it
    """
    if url.startswith(("/", ".")):
        return pathlib.Path(url)
    keep = not getenv("DISABLE_HTTP_CACHE") if allow_caching is None else allow_caching
    path = _place(url, name, subdir, gunzip, headers or {})
    right = path.is_file() and (not sha256 or hashlib.sha256(path.read_bytes()).hexdigest() == sha256)
    if not (right and keep):
        if extract:
            shutil.rmtree(path.parent / f"{path.name}.extract", ignore_errors=True)
        _download(url, path, gunzip, headers or {}, sha256)
    return _extracted(path) if extract else path
