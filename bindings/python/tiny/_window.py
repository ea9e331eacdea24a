"""Windows by keywords: Window(2, kernel=3, strides=2), x.conv(w, padding="same"), x.max_pool(2)."""

from . import native
from ._dimension import is_dimension
from .methods import Layout, Padding
from .native import Tensor, Window


def _each(value, axes):
    """One number stands for every axis."""
    return [value] * axes if is_dimension(value) else value


def _named(kind, value):
    """A member of the enumeration by its name, in any case."""
    if not isinstance(value, str):
        return value
    known = {member.name.lower(): member for member in kind}
    if value.lower() not in known:
        raise ValueError(f"{kind.__name__.lower()} {value!r}; known: {', '.join(known)}")
    return known[value.lower()]


def _set_padding(window, padding, axes):
    """A number, one for each axis, a (before, after) for each axis, or a Padding or its name."""
    padding = Padding.SAME_UPPER if padding == "same" else _named(Padding, padding)
    if isinstance(padding, Padding):
        window.set_auto_padding(padding)
        return
    sides = [_each(side, 2) for side in _each(padding, axes)]
    window.set_padding([side[0] for side in sides], [side[1] for side in sides])


def _new_window(self, axes, *, kernel=None, strides=None, dilations=None, padding=None,
                output_padding=None, groups=None, layout=None, ceil_mode=False, count_include_pad=False):
    """Of `axes` spatial axes.  Lists have a number for each; one number stands for all.  `padding`: numbers,
    (before, after) for each axis, or "same" ("same_upper"), "same_lower", "valid"; `layout`: "channels_first"
    or "channels_last"."""
    self.this = native.tiny_window_create(axes).this
    self.this.own(True)
    for name, numbers in (("kernel", kernel), ("strides", strides), ("dilations", dilations),
                          ("output_padding", output_padding)):
        if numbers is not None:
            getattr(self, f"set_{name}")(_each(numbers, axes))
    if padding is not None:
        _set_padding(self, padding, axes)
    if groups is not None:
        self.set_groups(groups)
    if layout is not None:
        self.set_layout(_named(Layout, layout))
    self.set_flags(ceil_mode, count_include_pad)


Window.__init__ = _new_window


def _window(axes, window, **said):
    """The window, or one of these keywords; None if nothing is said."""
    said = {name: value for name, value in said.items() if value is not None and value is not False}
    if window is None:
        return Window(axes, **said) if said else None
    if said:
        raise TypeError(f"a window, and {', '.join(said)} beside it: one of the two says it")
    return window


def _pooled(self, kernel, window, **said):
    """The window of a pool, whose first argument may be a kernel or a window."""
    if isinstance(kernel, Window):
        kernel, window = None, kernel
    axes = self.rank - 2 if kernel is None or is_dimension(kernel) else len(kernel)
    return _window(axes, window, kernel=kernel, **said)


def _convolution(plain):
    def conv(self, weight, bias=None, window=None, *, strides=None, dilations=None, padding=None,
             groups=None, layout=None) -> Tensor:
        return plain(self, weight, bias, _window(
            self.rank - 2, window, strides=strides, dilations=dilations, padding=padding, groups=groups,
            layout=layout))
    return conv


def _transposed(plain):
    def conv_transpose(self, weight, bias=None, window=None, *, strides=None, dilations=None, padding=None,
                       output_padding=None, groups=None, layout=None) -> Tensor:
        return plain(self, weight, bias, _window(
            self.rank - 2, window, strides=strides, dilations=dilations, padding=padding,
            output_padding=output_padding, groups=groups, layout=layout))
    return conv_transpose


def _pooling(plain):
    def pool(self, kernel=None, *, window=None, strides=None, dilations=None, padding=None, layout=None,
             ceil_mode=False) -> Tensor:
        return plain(self, _pooled(self, kernel, window, strides=strides, dilations=dilations,
                                   padding=padding, layout=layout, ceil_mode=ceil_mode))
    return pool


def _averaging(plain):
    def avg_pool(self, kernel=None, *, window=None, strides=None, dilations=None, padding=None, layout=None,
                 ceil_mode=False, count_include_pad=False) -> Tensor:
        return plain(self, _pooled(self, kernel, window, strides=strides, dilations=dilations,
                                   padding=padding, layout=layout, ceil_mode=ceil_mode,
                                   count_include_pad=count_include_pad))
    return avg_pool


# Where the header takes a window, Python takes one or what it would say.
for _name, _form in (("conv", _convolution), ("conv_transpose", _transposed), ("max_pool", _pooling),
                     ("max_pool_indices", _pooling), ("windows", _pooling), ("avg_pool", _averaging)):
    _plain = getattr(Tensor, _name)
    _method = _form(_plain)
    _method.__name__, _method.__qualname__, _method.__doc__ = _name, f"Tensor.{_name}", _plain.__doc__
    setattr(Tensor, _name, _method)
