"""A state into a model."""

import os
import time

from .. import _archive, _tape
from .._reading import Reading
from ..helpers import GlobalCounters
from ..native import Tensor
from ._safetensors import safe_load


def load_state_dict(model, state_dict, strict=True, verbose=None, consume=False, realize=True) -> list[Tensor]:
    """Puts a state (a dict of tensors by name, an Archive, or the path of a file) back into the tensors of `model`, which
    are given back.  Shapes agree; a dtype may differ between floats, which are converted.  Where `strict` is false, names
    that only one of them has are passed over.  With `consume` the dict has none of them any more; `verbose` prints how
    long it took.

    Programs of tinygrad's have it as there: names that the model has not are passed over, dtypes become those of the
    state, one element may have an axis or none, and with `realize` false the tensors are computed later."""
    begun, before = time.perf_counter(), GlobalCounters.mem_used
    if isinstance(state_dict, (str, os.PathLike)):
        state_dict = safe_load(state_dict)
    if Reading.tinygrad and isinstance(state_dict, dict):
        loaded = _replaced(model, state_dict, strict, consume, realize)
    else:
        _archive.load_state_dict(model, state_dict, strict)
        loaded = [one for name, one in _archive.get_state_dict(model).items() if strict or name in state_dict]
        if consume:
            state_dict.clear()
    if Reading.tinygrad if verbose is None else verbose:
        print(f"loaded weights in {(time.perf_counter() - begun) * 1e3:.2f} ms, "
              f"{(GlobalCounters.mem_used - before) / 1e9:.2f} GB loaded")
    return loaded


def _replaced(model, state, strict, consume, realize):
    loaded = []
    for name, one in _archive.get_state_dict(model).items():
        if name not in state and not strict:
            continue
        if name not in state:
            raise KeyError(f"load_state_dict: {name!r} of the model is not in the state; strict=False passes over it")
        new = state[name]
        if one.shape != new.shape:
            if {one.shape, new.shape} != {(), (1,)}:
                raise ValueError(f"load_state_dict: Shape mismatch in layer `{name}`: Expected shape {one.shape}, "
                                 f"but found {new.shape} in state dict.")
            new = new.reshape(one.shape)
        one.replace(new.to(one.device))
        if realize:
            _tape.realize([one])
        if consume:
            del state[name]
        loaded.append(one)
    return loaded
