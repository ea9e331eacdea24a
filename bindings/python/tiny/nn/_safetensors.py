"""The .safetensors format over mapped files: eight bytes with the length of a header, the header, the elements.

safe_load gives tensors that lie in the file and are read when they are needed.  They are values of their own: an
assignment gives a tensor memory, and leaves the file alone (but for programs of tinygrad's, whose tensors are the file).
"""

import json
import math
import os
import pathlib

from .. import dtypes
from .._operands import want_list
from .._tensor import default_context
from ..native import Tensor
from ._tensor_io import bytes_of, opened

_NAMES = {"BOOL": dtypes.bool, "I8": dtypes.int8, "U8": dtypes.uint8, "I16": dtypes.int16, "U16": dtypes.uint16,
          "I32": dtypes.int32, "U32": dtypes.uint32, "I64": dtypes.int64, "U64": dtypes.uint64,
          "F8_E4M3": dtypes.fp8e4m3, "F8_E5M2": dtypes.fp8e5m2, "F16": dtypes.float16, "BF16": dtypes.bfloat16,
          "F32": dtypes.float32, "F64": dtypes.float64}
_SPELLED = {dtype: name for name, dtype in _NAMES.items()}
_MOST = 100_000_000  # bytes of a header, as elsewhere
_PIECE = 1 << 24


def _name(t, fn):
    return "the tensor" if t is fn else fn


def _header(t, name):
    """Where the elements begin, and what the header says of them."""
    size = t.shape[0]
    length = int.from_bytes(bytes_of(t, 0, 8), "little")
    if size < 8 or length > size - 8 or length > _MOST:
        raise ValueError(f"safe_load: {name}: a header of {length} bytes is in none of its {size} bytes")
    try:
        found = json.loads(bytes_of(t, 8, 8 + length).decode())
    except (ValueError, RecursionError) as error:
        raise ValueError(f"safe_load: {name}: the header is no JSON: {error}") from error
    if not isinstance(found, dict):
        raise ValueError(f"safe_load: {name}: the header is no JSON object")
    return 8 + length, found


def _sizes(value):
    return isinstance(value, list) and all(type(one) is int and one >= 0 for one in value)


def _entries(header, room, name):
    """(name, dtype, shape, where it begins) of each tensor; they share the `room` bytes behind the header."""
    found, last = [], 0
    for key, said in header.items():
        if key == "__metadata__":
            continue
        where = f"safe_load: {name}: tensor {key!r}"
        if not isinstance(said, dict) or not _sizes(said.get("shape")) or not _sizes(said.get("data_offsets")):
            raise ValueError(f"{where}: a dtype, a shape and data_offsets are wanted, not {str(said)[:200]}")
        if said.get("dtype") not in _NAMES:
            raise ValueError(f"{where}: dtype {said.get('dtype')!r}; known: {', '.join(_NAMES)}")
        dtype, shape, offsets = _NAMES[said["dtype"]], tuple(said["shape"]), said["data_offsets"]
        if len(shape) > 16 or len(offsets) != 2 or offsets[1] > room or (
                offsets[1] - offsets[0] != math.prod(shape) * dtype.itemsize):
            raise ValueError(f"{where}: {list(shape)} elements of {dtype.itemsize} bytes are not bytes {offsets} of {room}")
        found.append((key, dtype, shape, offsets[0], offsets[1]))
    for key, *_, begin, end in sorted(found, key=lambda entry: entry[3:]):
        if begin != last:
            raise ValueError(f"safe_load: {name}: tensor {key!r} begins at byte {begin}, the one before ends at {last}")
        last = end
    if last != room:
        raise ValueError(f"safe_load: {name}: {room - last} bytes behind the last tensor")
    return [entry[:4] for entry in found]


def safe_load_metadata(fn) -> tuple[Tensor, int, dict]:
    """The bytes of a .safetensors as a tensor, where in them the elements begin, and the header."""
    t = opened(fn)
    begin, header = _header(t, _name(t, fn))
    return t, begin, header


def safe_load(fn) -> dict[str, Tensor]:
    """The tensors of a .safetensors, of a path or of a tensor with its bytes, by name."""
    t, begin, header = safe_load_metadata(fn)
    elements = t[begin:]
    return {key: elements[start:start + math.prod(shape) * dtype.itemsize].bitcast(dtype).reshape(shape)
            for key, dtype, shape, start in _entries(header, t.shape[0] - begin, _name(t, fn))}


def _write(path, header, tensors):
    """To another file, which takes the place of the old one when it is whole."""
    path = os.path.abspath(path)
    beside = f"{path}.{os.getpid()}"
    try:
        with open(beside, "wb") as file:
            file.write(len(header).to_bytes(8, "little") + header)
            for one in tensors:
                content = memoryview(bytearray(one.numel * one.dtype.itemsize))
                if content:
                    one.read(content)
                for begin in range(0, len(content), _PIECE):
                    file.write(content[begin:begin + _PIECE])
        os.replace(beside, path)
    finally:
        pathlib.Path(beside).unlink(missing_ok=True)


def safe_save(tensors, fn, metadata=None) -> None:
    """Writes a dict of tensors, and one of texts, as a .safetensors: the widest elements first, so that all lie at
    multiples of their size.  The file is replaced as a whole."""
    want_list("safe_save", "a dict of tensors", tensors, dict)
    context = next((one.context for one in tensors.values() if isinstance(one, Tensor)), None) or default_context()
    tensors = {key: one if isinstance(one, Tensor) else Tensor(one, context=context) for key, one in tensors.items()}
    header, end = {}, 0
    if metadata:
        header["__metadata__"] = dict(metadata)
    order = sorted(tensors, key=lambda key: -tensors[key].dtype.itemsize)
    for key in order:
        if not isinstance(key, str) or key == "__metadata__":
            raise ValueError(f"safe_save: {key!r}: names are texts, and none is __metadata__")
        one = tensors[key]
        if one.dtype not in _SPELLED:
            raise TypeError(f"safe_save: {key!r} is of {one.dtype}; the format has {', '.join(_NAMES)}")
        size = one.numel * one.dtype.itemsize
        header[key] = {"dtype": _SPELLED[one.dtype], "shape": list(one.shape), "data_offsets": [end, end + size]}
        end += size
    text = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()
    _write(fn, text + b" " * (-len(text) % 8), [tensors[key] for key in order])
