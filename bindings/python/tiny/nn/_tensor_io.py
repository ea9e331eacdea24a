"""A tensor of bytes as a file to read, and what archives have in them: .tar and .zip."""

import io
import os
import tarfile
import zipfile
import zlib

from .._disk import open_path
from .._reading import Reading
from ..methods import Dtype
from ..native import Tensor

_LOCAL_HEADER = 30  # bytes before the name of a file in a .zip
_BUFFER = 1 << 20


class TensorIO(io.RawIOBase):
    """The bytes of a tensor, uint8 of one axis, as a file that is read."""

    def __init__(self, t):
        if t.rank != 1 or t.dtype != Dtype.UINT8:
            raise ValueError(f"TensorIO: bytes of one axis are wanted, not {t.dtype!r} of shape {list(t.shape)}")
        self._tensor, self._position = t, 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def readinto(self, buffer) -> int:
        count = max(0, min(len(buffer), self._tensor.shape[0] - self._position))
        if count:
            memoryview(buffer).cast("B")[:count] = bytes_of(self._tensor, self._position, self._position + count)
        self._position += count
        return count

    def seek(self, offset, whence=0) -> int:
        start = (0, self._position, self._tensor.shape[0])[whence]
        self._position = min(self._tensor.shape[0], max(0, start + offset))
        return self._position


def bytes_of(t, begin, end):
    """A part of a tensor of bytes; what lies outside of it is left out."""
    begin, end = max(begin, 0), min(end, t.shape[0])
    content = bytearray(max(0, end - begin))
    if content:
        t[begin:end].read(content)
    return content


def opened(t):
    """A tensor of bytes as it is; of a path, the file's, which assignments leave alone (but of programs of tinygrad's)."""
    return t if isinstance(t, Tensor) else open_path(t, private=not Reading.tinygrad)


def reader(t):
    """The bytes of a tensor, read in large pieces."""
    return io.BufferedReader(TensorIO(t), _BUFFER)


def tar_extract(fn: "Tensor | str | os.PathLike") -> dict[str, Tensor]:
    """The files of a .tar by name, as the parts of its bytes that they are.  tarfile.ReadError for what is none."""
    t = opened(fn)
    found = {}
    with tarfile.open(fileobj=reader(t), mode="r:") as archive:
        for member in archive:
            if member.type in (tarfile.REGTYPE, tarfile.AREGTYPE):
                end = member.offset_data + member.size
                if not 0 <= member.offset_data <= end <= t.shape[0]:
                    raise tarfile.ReadError(f"tar_extract: {member.name!r} ends behind the archive")
                found[member.name] = t[member.offset_data:end]
    return found


def _unpacked(t, entry):
    """A file of a .zip; its header, which lies before it, says where it begins."""
    begin = entry.header_offset
    header = bytes_of(t, begin, begin + _LOCAL_HEADER)
    if len(header) < _LOCAL_HEADER or header[:4] != b"PK\3\4":
        raise zipfile.BadZipFile(f"zip_extract: {entry.filename!r} has no header at byte {begin}")
    begin += _LOCAL_HEADER + int.from_bytes(header[26:28], "little") + int.from_bytes(header[28:30], "little")
    end = begin + entry.compress_size
    if end > t.shape[0]:
        raise zipfile.BadZipFile(f"zip_extract: {entry.filename!r} ends behind the archive")
    if entry.compress_type == zipfile.ZIP_STORED:
        return t[begin:end]
    if entry.compress_type != zipfile.ZIP_DEFLATED:
        raise NotImplementedError(f"zip_extract: {entry.filename!r} is compressed by method {entry.compress_type}; "
                                  "known are 0 (stored) and 8 (deflated)")
    try:
        content = zlib.decompressobj(-15).decompress(bytes(bytes_of(t, begin, end)), entry.file_size + 1)
    except zlib.error as error:
        raise zipfile.BadZipFile(f"zip_extract: {entry.filename!r}: {error}") from error
    if len(content) != entry.file_size:
        raise zipfile.BadZipFile(f"zip_extract: {entry.filename!r} has not the {entry.file_size} bytes that are said")
    return Tensor(content) if content else t[:0]


def zip_extract(fn: "Tensor | str | os.PathLike") -> dict[str, Tensor]:
    """The files of a .zip by name: what is stored as the part of its bytes that it is, what is deflated unpacked.
    zipfile.BadZipFile for what is none."""
    t = opened(fn)
    with zipfile.ZipFile(reader(t)) as archive:
        return {entry.filename: _unpacked(t, entry) for entry in archive.infolist() if not entry.is_dir()}
