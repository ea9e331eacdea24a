"""NumPy's .npz files: archives of .npy files, which need no NumPy here."""

import ast
import io
import math
import zipfile

from . import native
from ._dtype import of as dtype_of
from ._tensor import default_context
from .native import Tensor

_MAGIC = b"\x93NUMPY"
_ALIGNMENT = 64  # of the elements in a .npy file
_LETTERS = {"b1": "bool", "i1": "int8", "i2": "int16", "i4": "int32", "i8": "int64", "u1": "uint8", "u2": "uint16",
            "u4": "uint32", "u8": "uint64", "f2": "float16", "f4": "float32", "f8": "float64"}
_OF_DTYPE = {name: letter for letter, name in _LETTERS.items()}


def _header(data, name):
    """({"descr", "shape", "fortran_order"}, where the elements begin) of a .npy file's bytes."""
    if data[:6] != _MAGIC or len(data) < 12:
        raise ValueError(f"load: {name} of the .npz file is no .npy file")
    wide = data[6] > 1  # the version
    begin = 12 if wide else 10
    end = begin + int.from_bytes(data[8:begin], "little")
    try:
        told = ast.literal_eval(data[begin:end].decode("utf-8" if data[6] > 2 else "latin-1"))
        letter, shape = told["descr"], tuple(map(int, told["shape"]))
    except (SyntaxError, ValueError, KeyError, TypeError) as error:
        raise ValueError(f"load: the header of {name} in the .npz file: {error}") from None
    if not isinstance(letter, str) or letter[:1] not in "<|=>" or letter[1:] not in _LETTERS:
        raise TypeError(f"load: {name} of the .npz file has elements of {letter!r}; known: {', '.join(_LETTERS)}")
    return letter, shape, bool(told.get("fortran_order")), end


def _tensor(data, name, context):
    letter, shape, is_reversed, begin = _header(data, name)
    kind = dtype_of(_LETTERS[letter[1:]])
    count = math.prod(shape) * kind.itemsize
    content = data[begin:begin + count]
    if len(content) != count:
        raise ValueError(f"load: {name} of the .npz file has {len(content)} bytes of elements, not {count}")
    if letter[0] == ">":
        swapped = bytearray(content)
        for at in range(kind.itemsize):
            swapped[at::kind.itemsize] = content[kind.itemsize - 1 - at::kind.itemsize]
        content = bytes(swapped)
    if not is_reversed:
        return Tensor.from_data(context, kind, list(shape), content)
    made = Tensor.from_data(context, kind, list(reversed(shape)), content)
    return made.permute(list(reversed(range(len(shape))))).contiguous()


def load(path, context=None) -> dict[str, Tensor]:
    """The arrays of a .npz file, by name."""
    context = context or default_context()
    with zipfile.ZipFile(path) as archive:
        return {entry.filename.removesuffix(".npy"): _tensor(archive.read(entry), entry.filename, context)
                for entry in archive.infolist()}


def save(path, tensors) -> None:
    """Writes a dict of tensors as a .npz file, uncompressed, as numpy.savez does."""
    with zipfile.ZipFile(path, "w") as archive:
        for name, tensor in tensors.items():
            kind = tensor.dtype
            if kind.name not in _OF_DTYPE:
                raise TypeError(f"save: NumPy has no {kind}; cast {name!r} first")
            letter = _OF_DTYPE[kind.name]
            order = "|" if kind.itemsize == 1 else "<"
            told = f"{{'descr': '{order}{letter}', 'fortran_order': False, 'shape': {tuple(tensor.shape)}, }}"
            told += " " * (-(len(told) + 11) % _ALIGNMENT) + "\n"
            file = io.BytesIO()
            file.write(_MAGIC + b"\1\0" + len(told).to_bytes(2, "little") + told.encode("latin-1"))
            content = bytearray(tensor.numel * kind.itemsize)
            native.tiny_tensor_read(tensor, content)
            file.write(content)
            archive.writestr(f"{name}.npy", file.getvalue())
