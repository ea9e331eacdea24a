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

from .native import Tensor, first_changed

_SCALARS = (bool, int, float, complex, str, bytes, type(None))
_GONE = object()
_LOOKED_AT = 1 << 16  # bytes of an array
_ENTRY, _ITEM, _LENGTH, _CELL, _CALL = range(5)  # of a dictionary, of a list, ..


def _in_cell(cell, _):
    try:
        return cell.cell_contents
    except ValueError:  # not assigned yet
        return _GONE


_READ = {_ENTRY: lambda mapping, key: mapping.get(key, _GONE),
         _ITEM: lambda sequence, index: sequence[index] if index < len(sequence) else _GONE,
         _LENGTH: lambda holder, _: len(holder), _CELL: _in_cell, _CALL: lambda read, _: read()}


def _is_scalar(value):
    return isinstance(value, (*_SCALARS, enum.Enum))


def is_array(value):
    """Whether it is one of NumPy's, or like one.  Its class is asked: an object's own __getattr__ may do anything."""
    return hasattr(type(value), "__array_interface__")


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
        self.names = []  # what each place is called
        self.places = []  # (one of _ENTRY to _CALL, holder, key, what it held): held_in() of replays.inc
        self.tensors = {}
        self.over = []  # tensors over devices, whose parts are among the tensors
        self._seen = {}
        self._globals = set()
        for name, root in roots:
            self._visit(name, root)

    def add(self, name, read, was):
        """One more place."""
        self._note(name, _CALL, read, None, was)

    def has_changed(self):
        return first_changed(self.places, _GONE) >= 0

    def changed(self):
        """The first place that holds something else now, as a text; None if there is none."""
        at = first_changed(self.places, _GONE)
        if at < 0:
            return None
        how, holder, key, was = self.places[at]
        return f"{self.names[at]} was {_shown(was)} and is {_shown(_READ[how](holder, key))}"

    def _note(self, name, how, holder, key, was):
        self.names.append(name)
        self.places.append((how, holder, key, was))

    def _place(self, name, how, holder, key):
        value = _READ[how](holder, key)
        self._note(name, how, holder, key, value)
        if value is not _GONE:
            self._visit(name, value)

    def _visit(self, name, value):
        if _is_scalar(value) or isinstance(value, (types.ModuleType, type)) or id(value) in self._seen:
            return
        self._seen[id(value)] = value  # kept, so that nothing else gets its id
        if isinstance(value, Tensor) and "_parts" in value.__dict__:
            self.over.append(value)
            self._place(f"{name}.devices", _ENTRY, value.__dict__, "_parts")
        elif isinstance(value, Tensor):
            self.tensors[id(value)] = value
            held = value.__dict__
            self._note(f"{name}.requires_grad", _ENTRY, held, "_requires_grad", held.get("_requires_grad"))
        elif isinstance(value, (list, tuple, collections.deque)):
            self._note(f"the length of {name}", _LENGTH, value, None, len(value))
            for i in range(len(value)):
                self._place(f"{name}[{i}]", _ITEM, value, i)
        elif isinstance(value, (set, frozenset)):
            was = frozenset(value)
            self.add(f"whether {name} is the set it was", lambda: value == was, True)
        elif is_array(value) or isinstance(value, (bytearray, array.array)):
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
        elif type(value).__dictoffset__ and _is_walked(type(value)):
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
            self.add(f"whether {name} has the elements it had", lambda: memoryview(value).tobytes() == was, True)

    def _mapping(self, name, mapping, spelt):
        self._note(f"the number of entries of {name}", _LENGTH, mapping, None, len(mapping))
        for key in list(mapping):
            self._place(spelt(key), _ENTRY, mapping, key)

    def _function(self, name, function):
        if _of_package(function):
            return
        code = function.__code__
        for variable, cell in zip(code.co_freevars, function.__closure__ or ()):
            self._place(variable, _CELL, cell, None)
        self._visit(f"{name}.__defaults__", function.__defaults__)
        self._visit(f"{name}.__kwdefaults__", function.__kwdefaults__)
        held = function.__globals__
        for variable in _names(code):
            if variable in held and (id(held), variable) not in self._globals:
                self._globals.add((id(held), variable))
                self._place(variable, _ENTRY, held, variable)


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
