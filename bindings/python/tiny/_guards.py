"""What a captured program took as it was: constants and tensors that its function reaches.

From the arguments, the function's closure, the globals that it names and the attributes of objects, a walk notes each
place and what it held.  Before a replay the places are looked at again: a number that changed, a parameter that was put
in another's place, a layer that was added would otherwise be the program's old ones, silently.
"""

import array
import collections
import dis
import enum
import functools
import sys
import types

from .native import Tensor

_SCALARS = (bool, int, float, complex, str, bytes, type(None))
_GONE = object()
_LOOKED_AT = 1 << 16  # bytes of an array


def _is_scalar(value):
    return isinstance(value, (*_SCALARS, enum.Enum))


def _same(now, was):
    return now is was or (type(now) is type(was) and _is_scalar(was) and now == was)


def _is_walked(kind):
    """Whether an object's attributes are looked at: classes of the user's and of tiny.nn."""
    module = (kind.__module__ or "").partition(".")[0]
    inside = kind.__module__ or ""
    if module == "tiny":
        return inside.startswith("tiny.nn")
    return module not in sys.stdlib_module_names or module == "__main__"


class Guards:
    """Places with what they held, and the tensors among that."""

    def __init__(self, roots):
        self.places = []  # (what it is called, read, what it held)
        self.tensors = {}
        self._seen = {}
        self._globals = set()
        for name, root in roots:
            self._visit(name, root)

    def add(self, name, read, was):
        """One more place."""
        self.places.append((name, read, was))

    def changed(self):
        """The first place that holds something else now, as a text; None if there is none."""
        for name, read, was in self.places:
            now = read()
            if not _same(now, was):
                return f"{name} was {_shown(was)} and is {_shown(now)}"
        return None

    def _place(self, name, read, value):
        self.places.append((name, read, value))
        self._visit(name, value)

    def _visit(self, name, value):
        if _is_scalar(value) or isinstance(value, (types.ModuleType, type)) or id(value) in self._seen:
            return
        self._seen[id(value)] = value  # kept, so that nothing else gets its id
        if isinstance(value, Tensor):
            self.tensors[id(value)] = value
            self.places.append((f"{name}.requires_grad", lambda: value.__dict__.get("_requires_grad"),
                                value.__dict__.get("_requires_grad")))
        elif isinstance(value, (list, tuple, collections.deque)):
            self.places.append((f"the length of {name}", lambda: len(value), len(value)))
            for i, part in enumerate(value):
                self._place(f"{name}[{i}]", lambda i=i: value[i] if i < len(value) else _GONE, part)
        elif isinstance(value, (set, frozenset)):
            was = frozenset(value)
            self.places.append((f"whether {name} is the set it was", lambda: value == was, True))
        elif hasattr(value, "__array_interface__") or isinstance(value, (bytearray, array.array)):
            self._array(name, value)
        elif isinstance(value, dict):
            self._mapping(name, value, lambda key: f"{name}[{key!r}]")
        elif type(value).__module__ == "tiny._jit":  # a TinyJit, which is its function here
            self._visit(name, value.fxn)
        elif isinstance(value, types.FunctionType):
            self._function(name, value)
        elif isinstance(value, types.MethodType):
            self._visit(f"{name}.__self__", value.__self__)
            self._visit(name, value.__func__)
        elif isinstance(value, functools.partial):
            self._visit(f"{name}.func", value.func)
            self._visit(f"{name}.args", value.args)
            self._visit(f"{name}.keywords", value.keywords)
        elif hasattr(value, "__dict__") and _is_walked(type(value)):
            self._mapping(name, vars(value), lambda key: f"{name}.{key}")
            for kind in type(value).__mro__:
                if kind is not object and _is_walked(kind) and not kind.__module__.startswith("tiny."):
                    for member, part in list(vars(kind).items()):
                        if isinstance(part, types.FunctionType):
                            self._visit(f"{kind.__name__}.{member}", part)

    def _array(self, name, value):
        """Elements of a small array; of a large one nobody makes decisions."""
        view = memoryview(value) if not hasattr(value, "dtype") or value.dtype.kind != "O" else None
        if view is not None and view.nbytes <= _LOOKED_AT:
            was = view.tobytes()
            view.release()
            self.places.append((f"whether {name} has the elements it had", lambda: memoryview(value).tobytes() == was, True))

    def _mapping(self, name, mapping, spelt):
        self.places.append((f"the number of entries of {name}", lambda: len(mapping), len(mapping)))
        for key, part in list(mapping.items()):
            self._place(spelt(key), lambda key=key: mapping.get(key, _GONE), part)

    def _function(self, name, function):
        if _of_package(function):
            return
        code = function.__code__
        for variable, cell in zip(code.co_freevars, function.__closure__ or ()):
            def read(cell=cell):
                try:
                    return cell.cell_contents
                except ValueError:  # not assigned yet
                    return _GONE
            self._place(variable, read, read())
        self._visit(f"{name}.__defaults__", function.__defaults__)
        self._visit(f"{name}.__kwdefaults__", function.__kwdefaults__)
        held = function.__globals__
        for variable in _names(code):
            if variable in held and (id(held), variable) not in self._globals:
                self._globals.add((id(held), variable))
                self._place(variable, lambda variable=variable: held.get(variable, _GONE), held[variable])


def _of_package(function):
    module = function.__module__ or ""
    return module.startswith("tiny.") or module.partition(".")[0] in sys.stdlib_module_names - {"__main__"}


def _names(code):
    """The names of globals in a function's code and in that of functions within."""
    for instruction in dis.get_instructions(code):
        if instruction.opname in ("LOAD_GLOBAL", "LOAD_NAME"):
            yield instruction.argval
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _names(constant)


def _shown(value):
    if value is _GONE:
        return "not there"
    return repr(value) if _is_scalar(value) else f"a {type(value).__name__}" if not isinstance(value, Tensor) else (
        f"another tensor of shape {list(value.shape)}")
