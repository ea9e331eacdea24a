"""Calls as tinygrad reads them: x.eq(x=1), prod(x=(2, 3)), x.cross_entropy(Y, "sum", 0.1), -x of bools."""

import functools

from .. import dtypes
from ..native import Tensor
from ..nn import state
from ._absent import absent

# The arguments of a method by tinygrad's names, in their order, where ours has others.
_METHODS = {"eq": ("x",), "ne": ("x",), "fmod": ("x",), "maximum": ("x",), "minimum": ("x",), "where": ("x", "y"),
            "assign": ("x",), "const_like": ("b",), "shard_like": ("y",)}
# What says how tinygrad stores or counts, and changes no value.
_IGNORED = {"full_like": "buffer", "zeros_like": "buffer", "ones_like": "buffer", "realize": "do_update_stats"}
_HELPERS = {"all_int": ("t",), "all_same": ("items",), "ansilen": ("s",), "ansipad": ("s", "w"), "ansistrip": ("s",),
            "argsort": ("x",), "ceildiv": ("num", "amt"), "colored": ("st",), "data64": ("data",), "data64_le": ("data",),
            "dedup": ("x",), "flat_mv": ("mv",), "flatten": ("l",), "from_mv": ("mv", "to_type"),
            "fromimport": ("mod", "frm"), "fully_flatten": ("l",), "get_child": ("obj", "key"), "get_shape": ("x",),
            "get_single_element": ("x",), "getbits": ("value", "start", "end"), "hi32": ("x",), "lo32": ("x",),
            "make_tuple": ("x", "cnt"), "merge_dicts": ("ds",), "mv_address": ("mv",), "next_power2": ("x",),
            "partition": ("itr", "fxn"), "pluralize": ("st", "cnt"), "polyN": ("x", "p"), "prod": ("x",),
            "round_down": ("num", "amt"), "round_up": ("num", "amt"), "size_to_str": ("s",), "strip_parens": ("fst",),
            "temp": ("x",), "time_to_str": ("t",), "to_function_name": ("s",), "to_mv": ("ptr", "sz"), "to_tuple": ("x",),
            "unwrap": ("x",), "word_wrap": ("x",)}


def _named(function, names, before=0):
    """The function, whose arguments behind the first `before` ones have these names too."""
    @functools.wraps(function)
    def call(*arguments, **keywords):
        given = [keywords.pop(name) for name in names[len(arguments) - before:] if name in keywords] if keywords else ()
        return function(*arguments, *given, **keywords)
    return call


def _without(function, name):
    @functools.wraps(function)
    def call(*arguments, **keywords):
        keywords.pop(name, None)
        return function(*arguments, **keywords)
    return call


def _losses(cross_entropy, nll_loss):
    """What stands where among the arguments of two losses, PyTorch's order being another."""
    @functools.wraps(cross_entropy)
    def of_logits(self, Y, reduction="mean", label_smoothing=0.0, **keywords) -> Tensor:
        return cross_entropy(self, Y, reduction=reduction, label_smoothing=label_smoothing, **keywords)

    @functools.wraps(nll_loss)
    def of_logarithms(self, Y, weight=None, ignore_index=None, reduction="mean") -> Tensor:
        said = {} if ignore_index is None else {"ignore_index": ignore_index}
        return nll_loss(self, Y, weight, reduction=reduction, **said)
    return of_logits, of_logarithms


def _of_other_kinds(neg, round_):
    """What is said of floats, of bools and of integers."""
    @functools.wraps(neg)
    def other(self) -> Tensor:
        return self.logical_not() if self.dtype == dtypes.bool else neg(self)

    @functools.wraps(round_)
    def nearest(self) -> Tensor:
        return round_(self) if self.dtype.is_float else self.cast(dtypes.weakfloat)
    return other, nearest


# Methods that take or make nodes of tinygrad's own.
_GRAPHS = ("as_param", "call", "custom_kernel", "decode_hevc_frame")


def _of_graphs(name):
    def refuse(*arguments, **keywords):
        raise NotImplementedError(f"Tensor.{name}: tiny has no nodes of tinygrad's to make it of; tiny.custom_op takes "
                                  "functions of arrays and their gradients, tiny.function and TinyJit functions of tensors")
    refuse.__name__, refuse.__qualname__ = name, f"Tensor.{name}"
    return refuse


def helpers(module) -> dict:
    """The functions of tiny.helpers that have other names for their arguments."""
    return {name: _named(getattr(module, name), names) for name, names in _HELPERS.items()}


def install():
    """Tensor's methods take tinygrad's names, in the whole process."""
    for name, names in _METHODS.items():
        setattr(Tensor, name, _named(getattr(Tensor, name), names, 1))
    for name, ignored in _IGNORED.items():
        setattr(Tensor, name, _without(getattr(Tensor, name), ignored))
    Tensor.cross_entropy, Tensor.nll_loss = _losses(Tensor.cross_entropy, Tensor.nll_loss)
    Tensor.neg, Tensor.round = _of_other_kinds(Tensor.neg, Tensor.round)
    Tensor.__neg__ = Tensor.neg
    for name in _GRAPHS:
        setattr(Tensor, name, _of_graphs(name))
    for name in ("fs_load", "fs_store"):  # of a server of tinygrad's
        setattr(state, name, absent("tinygrad.nn.state", name))
