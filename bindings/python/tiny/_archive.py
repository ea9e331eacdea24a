"""What Python users expect of files of tensors and of states beside the header's functions: dicts."""

import collections.abc
import enum
import os

from ._operands import want_list, want_tensors
from ._reading import Reading
from .native import Archive, Tensor
from ._tensor import default_context


def _names(self) -> list[str]:
    return [self.name(i) for i in range(self.count)]


def load(path, context=None) -> dict[str, Tensor]:
    """The tensors of a .safetensors, .npy, .npz or .pb file as a dict by name."""
    if str(path).endswith(".npz"):
        from . import _npz
        return _npz.load(path, context)
    archive = Archive.load(context or default_context(), str(path))
    return {name: archive.get(name) for name in _names(archive)}


def save(path, tensors, metadata=None) -> None:
    """Writes a dict of tensors, and one of texts, as a .safetensors file, without texts also as .npz; one tensor also as
    .npy or .pb."""
    if str(path).endswith(".npz"):
        from . import _npz
        if metadata:
            raise ValueError("save: a .npz file has no metadata; a .safetensors file has")
        _npz.save(path, tensors)
        return
    archive = _state_of("save", tensors)
    for key, value in (metadata or {}).items():
        archive.set_metadata(key, value)
    archive.save(str(path))


def get_state_dict(obj, prefix="", tensor_type=Tensor) -> dict[str, Tensor]:
    """The tensors of an object by dotted names: of its attributes, of lists and tuples by position, of dicts by
    key; a tensor that is reached by several ways, by each of them.  What an object has of itself is passed over."""
    _want_model("get_state_dict", obj)
    return _state_within(obj, prefix, tensor_type, ())


def _want_model(call, obj):
    """Numbers and texts hold no tensors; tinygrad gives an empty dict of them."""
    if (obj is None or isinstance(obj, (int, float, str, bytes))) and not Reading.tinygrad:
        want_list(call, "a model, a list or a dict", obj, ())


def _state_within(obj, prefix, tensor_type, around):
    if isinstance(obj, tensor_type):
        return {prefix.strip("."): obj}
    if isinstance(obj, (type, enum.Enum)) or any(obj is one for one in around):
        return {}
    if hasattr(obj, "_state_parts"):
        parts = obj._state_parts()
    elif hasattr(obj, "_asdict"):  # a named tuple
        parts = obj._asdict()
    elif isinstance(obj, (list, tuple)):
        parts = dict(enumerate(obj))
    elif isinstance(obj, dict):
        parts = obj
    else:
        parts = getattr(obj, "__dict__", {})
    found = {}
    for name, part in parts.items():
        found.update(_state_within(part, f"{prefix}{name}.", tensor_type, (*around, obj)))
    return found


def get_parameters(obj) -> list[Tensor]:
    """The tensors of an object, in the order of get_state_dict, each once."""
    _want_model("get_parameters", obj)
    return list({id(tensor): tensor for tensor in get_state_dict(obj).values()}.values())


def _state_of(call, tensors) -> Archive:
    want_list(call, "a dict of tensors", tensors, collections.abc.Mapping)
    want_tensors(call, **{str(name): tensor for name, tensor in tensors.items()})
    context = next((tensor.context for tensor in tensors.values()), None) or default_context()
    state = Archive.create(context)
    for name, tensor in tensors.items():
        state.set(name, tensor)
    return state


def load_state_dict(model, state_dict, strict=True) -> None:
    """Puts a state (a dict of tensors by name, an Archive, or the path of a file) back into the tensors of `model`.
    Where `strict` is false, names that only one of them has are passed over."""
    target = _state_of("load_state_dict", get_state_dict(model))
    if isinstance(state_dict, dict):
        state_dict = _state_of("load_state_dict", state_dict)
    want_list("load_state_dict", "a dict of tensors, or a file's path,", state_dict, (Archive, str, os.PathLike))
    if not isinstance(state_dict, Archive):
        state_dict = Archive.load(target.context, str(state_dict))
    target.assign(state_dict, partial=not strict)


safe_load = load


def safe_save(tensors, path, metadata=None) -> None:
    """save(path, tensors, metadata), in the order of arguments that tinygrad and safetensors have."""
    save(path, tensors, metadata)


Archive.names = _names
Archive.__len__ = lambda self: self.count
Archive.__iter__ = lambda self: iter(_names(self))
Archive.__contains__ = lambda self, name: name in _names(self)
Archive.__getitem__ = lambda self, name: self.get(name)
Archive.__setitem__ = lambda self, name, tensor: self.set(name, tensor)
Archive.__delitem__ = lambda self, name: self.remove(name)
