"""What Python users expect of files of tensors beside the header's functions: dicts."""

from .native import Archive, Tensor
from ._tensor import default_context


def _names(self) -> list[str]:
    return [self.name(i) for i in range(self.count)]


def load(path, context=None) -> dict[str, Tensor]:
    """The tensors of a .safetensors, .npy or .pb file as a dict by name."""
    archive = Archive.load(context or default_context(), str(path))
    return {name: archive.get(name) for name in _names(archive)}


def save(path, tensors, metadata=None) -> None:
    """Writes a dict of tensors, and one of texts, as a .safetensors file; one tensor also as .npy or .pb."""
    context = next((tensor.context for tensor in tensors.values()), None) or default_context()
    archive = Archive.create(context)
    for name, tensor in tensors.items():
        archive.set(name, tensor)
    for key, value in (metadata or {}).items():
        archive.set_metadata(key, value)
    archive.save(str(path))


Archive.names = _names
Archive.__len__ = lambda self: self.count
Archive.__iter__ = lambda self: iter(_names(self))
Archive.__contains__ = lambda self, name: name in _names(self)
Archive.__getitem__ = lambda self, name: self.get(name)
Archive.__setitem__ = lambda self, name, tensor: self.set(name, tensor)
