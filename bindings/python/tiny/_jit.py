"""TinyJit: a function of tensors, captured once as a program and then replayed.

The first call with inputs of new shapes runs the function, the second one captures it: the function is called with
placeholders, and what it returns and what it assigns to become one program, which computes nothing meanwhile.  Later
calls execute that.  What would make a replay another thing than a call is an error or has a program of its own: other
shapes and constants, attributes and globals that changed (_guards.py), elements that are read on the way.
"""

import contextlib
import copy
import functools
import json
import sys

from . import _tape
from ._bound import Bound
from ._capture import (Capture, InputItself, Program, described, is_over_devices, is_replaced, placeholder,
                       symbolic_shape)
from ._dtype import WEAK
from ._guards import Guards, is_array
from ._recipe import Recipe
from ._reading import Reading
from ._settings import settings
from ._tape import JitError, State
from .native import Tensor, describe

MOST = 16  # programs of one function
# What the engine says of a part that it has for known sizes alone, and of numbers that no dimension stands for.
_OF_VALUES = ("depends on the free dimension", "at most 2^40 either way")


class _Call:
    """The arguments of a call: its tensors, the values of its variables, and what else tells two calls apart."""

    def __init__(self, args, kwargs, by_value=False):
        self.args, self.kwargs, self.by_value = args, dict(sorted(kwargs.items())), by_value
        self.tensors, self.bindings, self.over = [], {}, []
        self.inputs, self.constants = [], [("Tensor.training", bool, Tensor.training)]
        self._flat("args", args)
        self._flat("kwargs", self.kwargs)
        # Arguments with gradients, to which backward() adds: (where the argument is among the tensors, its gradient).
        self.gradients = [] if Reading.tinygrad else [
            (at, tensor.grad) for at, tensor in enumerate(self.tensors)
            if tensor.__dict__.get("_requires_grad") and tensor.__dict__.get("_gradient") is not None]
        self.tensors += [gradient for _, gradient in self.gradients]
        self.inputs += [("a gradient of argument", at) for at, _ in self.gradients]

    @property
    def key(self):
        return self.inputs, self.constants

    def _flat(self, name, value):
        if is_over_devices(value):
            self.over.append(value)
            self.inputs.append((name, value._axis, tuple(id(part.context) for part in value._parts)))
            for i, part in enumerate(value._parts):
                self._flat(f"{name} on device {i}", part)
        elif isinstance(value, Tensor):
            self.tensors.append(value)
            self.inputs.append((name, *described(value, self.by_value)))
            if value.__dict__.get("_requires_grad") and not Reading.tinygrad:
                self.inputs.append((name, "requires_grad"))
            for size in value.__dict__.get("_dims", ()):
                self._bind(size)
        elif isinstance(value, (list, tuple)):
            self.constants.append((name, type(value), len(value)))
            for i, part in enumerate(value):
                self._flat(f"{name}[{i}]", part)
        elif isinstance(value, dict):
            self.constants.append((name, dict, tuple(value)))
            for key, part in value.items():
                self._flat(f"{name}[{key!r}]", part)
        elif type(value) is Bound and not self.by_value:
            self.inputs.append((name, repr(value.dim), *value.dim.range))
            self._bind(value)
        elif isinstance(value, (bool, int, float, complex, str, bytes, type(None))):
            self.constants.append((name, type(value), value))
        elif is_array(value) or isinstance(value, (bytearray, memoryview)):
            raise JitError(f"TinyJit: {name} is an array, of which the program would keep the elements; pass a tensor")
        else:
            self.constants.append((name, "is", id(value)))

    def _bind(self, number):
        for name, binding in getattr(number, "bindings", {}).items():
            if not self.by_value and self.bindings.setdefault(name, binding)[1] != binding[1]:
                raise JitError(f"TinyJit: the variable {name!r} is {self.bindings[name][1]} and {binding[1]} in one call")

    def forget_wholes(self):
        """Before a program that may write parts of tensors over devices."""
        for one in self.over:
            one.forget()

    def check_as_tinygrad(self):
        """What tinygrad refuses."""
        if _is_refused(self.tensors):
            raise JitError(_is_refused(self.tensors))


def _is_refused(tensors):
    """Why tinygrad takes no such arguments; "" if it does."""
    if any("_is_number" in tensor.__dict__ and tensor._is_number for tensor in tensors):
        return "TinyJit: an argument is a number, which has no memory; use clone()"
    weak = [tensor.dtype for tensor in tensors if tensor.dtype in WEAK]
    if weak:
        return f"TinyJit: an argument is of {weak[0]}, of which there is no memory; use cast() or clone()"
    return "TinyJit: the same tensor is passed twice" if len({id(tensor) for tensor in tensors}) < len(tensors) else ""


def _replaced(value, take, is_one=is_replaced):
    """The same nest with other things in the places of tensors and bound variables, in the order of _Call."""
    if is_one(value):
        return take(value)
    if isinstance(value, (list, tuple)):
        parts = [_replaced(part, take, is_one) for part in value]
        return type(value)(*parts) if hasattr(value, "_fields") else type(value)(parts)
    if isinstance(value, dict):
        made = copy.copy(value)  # of its own class
        made.update((key, _replaced(part, take, is_one)) for key, part in value.items())
        return made
    return value


class _Place:
    """Where a tensor stands in what a program returns; over several devices, one that like() makes of its parts."""

    def __init__(self, like=None):
        self.like, self.count = (like.of, len(like._parts)) if is_over_devices(like) else (None, 1)

    def take(self, made):
        """The tensor, of those that the program gives."""
        return next(made) if self.like is None else self.like([next(made) for _ in range(self.count)])


def _parts(name, value):
    """(name, value) of what is no tensor in nested lists, tuples and dicts."""
    if isinstance(value, (list, tuple)):
        for i, part in enumerate(value):
            yield from _parts(f"{name}[{i}]", part)
    elif isinstance(value, dict):
        for key, part in value.items():
            yield from _parts(f"{name}[{key!r}]", part)
    elif not is_replaced(value):
        yield name, value


def _returned(value, found, name="the result"):
    if is_over_devices(value):
        found.extend(value._parts)
    elif isinstance(value, Tensor):
        found.append(value)
    elif isinstance(value, (list, tuple)):
        for i, part in enumerate(value):
            _returned(part, found, f"{name}[{i}]")
    elif isinstance(value, dict):
        for key, part in value.items():
            _returned(part, found, f"{name}[{key!r}]")
    elif value is not None:
        raise JitError(f"TinyJit: {name} is of type {type(value).__name__}; what a program gives is tensors, and None")


def _built_before(program):
    """The living tensors that are to be computed of memory which the program is about to write, and are not yet: it keeps
    no version from before."""
    lazy = [tensor for tensor in _tape.living() if hasattr(tensor, "context") and "_is_inside" not in tensor.__dict__
            and not tensor.uop.base.is_realized]
    if not lazy:
        return []
    written, clean = program.recipe.written(program.kept), set()
    return [tensor for tensor in lazy if _reads(tensor.uop, written, clean)]


def _reads(root, written, clean):
    """Whether one of the nodes `written` is below this one, or it is one.  `clean`: nodes that are known to read none; those
    of this one are added then, as the next one is mostly made of the same."""
    seen, stack = set(), [root]
    while stack:
        node = stack.pop()
        if node in written:
            return True
        if node not in seen and node not in clean:
            seen.add(node)
            stack.extend(node.src)
    clean |= seen
    return False


class _Method(functools.partial):
    """A TinyJit as a method of an object."""

    def __getattr__(self, name):
        return getattr(self.func.__self__, name)


class TinyJit:
    """@TinyJit: the function's tensors as one program.  Arguments are tensors, in lists, tuples and dicts too, and
    variables with values (Variable.bind), which a program takes anew with each call, and anything else, of which a
    program has the values that it was captured with: calls with others have programs of their own, up to 16.  It returns
    tensors, or None.

    Tensors that it assigns to, weights, an optimiser's state and arguments, are written by each call.  Random numbers go
    on from call to call.  The gradient of a parameter that the function does not change is set by each call; others are
    of the inside, and reading them is an error."""

    def __new__(cls, fxn=None, prune=False):
        if fxn is None:
            return functools.partial(cls, prune=prune)
        return super().__new__(cls)

    def __init__(self, fxn, prune=False):
        if not callable(fxn):
            raise TypeError(f"TinyJit: a function is wanted, not {type(fxn).__name__}")
        self.fxn = fxn
        self.prune = prune  # nothing that a program does not need is part of it in any case
        functools.update_wrapper(self, fxn)
        self.reset()

    def reset(self):
        """Forgets all programs."""
        self.cnt = 0
        self._programs = []  # (key of a call, program)
        self._described = {}  # what describe() says of a call: the program that replayed it last
        self._called = False
        self._by_value = False  # of variables: a program for each, since there cannot be one for all

    def __reduce__(self):
        """The programs without the function: they are the graphs that were captured, with weights and state of their
        own, and who reads them calls them with the shapes that they were captured with."""
        if not self._programs:
            raise TypeError(f"TinyJit: {self._name} has no program yet, and its function is not pickled: call it twice first")
        return _unpickled, (self._name, self.prune, self._by_value,
                            [(key, program.described(key)) for key, program in self._programs])

    def __deepcopy__(self, memo):
        """Of the same function, or that of the copied object, with programs of its own."""
        if self.fxn is None:
            import pickle
            return pickle.loads(pickle.dumps(self))
        made = TinyJit(copy.deepcopy(self.fxn, memo), self.prune)
        memo[id(self)] = made
        return made

    @property
    def captured(self):
        """The program that was captured last; None if there is none."""
        return self._programs[-1][1] if self._programs else None

    def __get__(self, instance, owner=None):
        return self if instance is None else _Method(self.__call__, instance)

    def __call__(self, *args, **kwargs):
        what = None
        if len(kwargs) > 1:  # in any order
            kwargs = dict(sorted(kwargs.items()))
        if self._called and State.capture is None and settings["JIT"]:
            what = describe(Tensor.training, args, kwargs)
            if what is not None:
                program = self._described.get(what[0])
                if program is not None and not program.guards.has_changed() and not (
                        Reading.tinygrad and _is_refused(what[1])):
                    self.cnt += 1
                    return self._replayed(program, what[1], None)
        return self._call(args, kwargs, what)

    def _call(self, args, kwargs, what):
        """A call that is not known by `what` describe() says of it yet."""
        if State.capture is not None:  # part of another's program
            if Reading.tinygrad:
                raise JitError("having TinyJit inside another TinyJit is not supported by tinygrad")
            return self.fxn(*args, **kwargs)
        call = _Call(args, kwargs, self._by_value)
        if Reading.tinygrad:
            call.check_as_tinygrad()
        self.cnt += 1
        if self.fxn is not None and (not self._called or not settings["JIT"]):
            return self._first(call)
        changed = None
        for known, program in self._programs:
            if known == call.key:
                changed = program.guards.changed()
                if changed is None:
                    if what is not None:
                        self._described[what[0]] = program
                    call.forget_wholes()
                    return self._replayed(program, call.tensors, call.bindings)
        if self.fxn is None:
            raise JitError(f"TinyJit: {self._name} was unpickled without its function, and has programs for "
                           f"{[key for key, _ in self._programs]}; it is called with {call.key}")
        self._check_another(call, changed)
        try:
            program = self._capture(call)
        except RuntimeError as error:
            # What the engine cannot do for all values of a variable: a program for each.
            if self._by_value or not call.bindings or not any(text in str(error) for text in _OF_VALUES):
                raise
            self._by_value = True
            call = _Call(args, kwargs, True)
            program = self._capture(call)
        self._programs.append((call.key, program))
        call.forget_wholes()
        return self._replayed(program, call.tensors, call.bindings)

    @staticmethod
    def _replayed(program, tensors, bindings):
        if _tape.pending:
            _tape.realize(_tape.waiting())
        if Reading.tinygrad and program.kept:
            _tape.realize(_built_before(program))
        made = program.replay(tensors, bindings)
        if type(program.result) is _Place and program.result.like is None:
            return made[0]
        made = iter(made)
        return _replaced(program.result, lambda place: place.take(made), lambda value: isinstance(value, _Place))

    def _check_another(self, call, changed):
        """Whether the call may have another program."""
        if Reading.tinygrad and not self._by_value and self._programs and self._programs[0][0][0] != call.inputs:
            raise JitError(f"TinyJit: args mismatch: {self._name} was captured with {self._programs[0][0][0]}, and is "
                           f"called with {call.inputs}")
        if len(self._programs) >= MOST:
            last = self._programs[-1][0][0] + self._programs[-1][0][1]
            why = changed or f"its arguments were {[one for one in call.inputs + call.constants if one not in last]}"
            raise JitError(f"TinyJit: {MOST} programs of {self._name} are captured, and this call needs another: "
                           f"{why}. What changes from call to call is to be a tensor that is passed, or assigned to")

    @property
    def _name(self):
        return self.__dict__.get("_named") or getattr(self.fxn, "__name__", type(self.fxn).__name__)

    def _first(self, call):
        """The call that runs: what the function makes on first use is made."""
        result = self.fxn(*call.args, **call.kwargs)
        found = []
        _returned(result, found)
        _tape.realize([*found, *_tape.waiting()])
        self._called = True
        return result

    def _capture(self, call):
        guards = Guards([(self._name, self.fxn), *_parts("args", call.args), *_parts("kwargs", call.kwargs)])
        # What is computed now is memory for the program, and what is pending now would be its write of each run.
        _tape.realize([*call.tensors, *guards.tensors.values(), *_tape.waiting()])
        pairs = [placeholder(tensor, call.by_value) for tensor in call.tensors]
        inputs, given = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
        for (at, _), gradient in zip(call.gradients, given[len(given) - len(call.gradients):]):
            given[at]._gradient = gradient
        capture = State.capture = Capture(given)
        capture.entries = inputs
        try:
            rest = iter(given)

            def take(value):
                if type(value) is Bound:
                    return int(value) if call.by_value else value.dim
                return value.of([next(rest) for _ in value._parts]) if is_over_devices(value) else next(rest)
            result = self.fxn(*_replaced(call.args, take), **_replaced(call.kwargs, take))
            found = []
            _returned(result, found)
            self._check(guards)
            if call.bindings and capture.joint is not None:
                raise JitError(f"TinyJit: the variables {sorted(call.bindings)} of a function over several devices: a "
                               "number there, int(n), is part of the program")
            return self._compiled(capture, guards, inputs, result, found)
        except BaseException:
            self._drop_writes(capture)
            raise
        finally:
            capture.undo_gradients()
            State.capture = None

    def _check(self, guards):
        changed = guards.changed()
        if changed:
            raise JitError(f"TinyJit: {self._name} changes what it was captured with, which a replay would not do: "
                           f"{changed}. Tensors are changed with assign()")

    def _compiled(self, capture, guards, inputs, result, found):
        capture.note_writes_to_parts()
        targets = capture.written_tensors()
        written = {id(tensor) for tensor in targets}
        outputs, places = [], []
        for tensor in found:
            if id(tensor) in capture.inputs and id(tensor) in written:
                places.append(InputItself(capture.inputs[id(tensor)]))
            elif id(tensor) in written:
                places.append(tensor)
            else:
                places.append(len(outputs))
                outputs.append(tensor)
        gradients = self._gradients(capture, guards, outputs)
        if not any(hasattr(tensor, "context") for tensor in (*outputs, *targets)):
            raise JitError(f"TinyJit: {self._name} returns no tensor and assigns to none: there is nothing to run")
        recipe = Recipe(capture.context_of, inputs, outputs, targets)
        compiled = capture.compiled(outputs, targets)
        self._tell(capture.context_of(next(iter((*outputs, *targets)))), compiled)
        nest = _replaced(result, _Place, lambda value: isinstance(value, Tensor))
        program = Program(compiled, guards, nest, places)
        program.name = self._name
        program.draws, program.gradients, program.kept = list(capture.draws.values()), gradients, targets
        program.recipe = recipe
        program.over = [one for one in guards.over if any(id(part) in written for part in one._parts)]
        program.written_inputs = list(capture.written_inputs.items())
        program.shapes = {number: shape for number, shape in enumerate(map(symbolic_shape, outputs)) if shape is not None}
        return program

    def _gradients(self, capture, guards, outputs):
        """What becomes of gradients that were set: more outputs, or none that can be read."""
        made = []
        inside = _tape.Inside(f"the gradient was made inside of a program of TinyJit ({self._name}), which keeps it there; "
                              "return it from the function")
        for tensor, slope, is_given in capture.gradients_made(guards.tensors):
            owner = capture.inputs.get(id(tensor), tensor)
            if slope is None or not is_given:
                made.append((owner, None if slope is None else inside))
            else:
                made.append((owner, len(outputs)))
                outputs.append(slope)
        for tensor, before in capture.gradients_read():
            guards.add("a gradient", lambda tensor=tensor: tensor.__dict__.get("_gradient"), before)
        return made

    @staticmethod
    def _tell(context, program):
        """The line of DEBUG=1."""
        if json.loads(context.info().text())["debug"] >= 1:
            print(f"jit execs {program.kernel_count} kernels", file=sys.stderr)

    @staticmethod
    def _drop_writes(capture):
        """A capture that ends early leaves tensors as they were: its writes become those of a program that never
        runs."""
        targets = capture.written_tensors()
        if targets and hasattr(targets[0], "context"):
            with contextlib.suppress(RuntimeError):  # what ends the capture is told
                capture.compiled([], targets)


def _unpickled(name, prune, by_value, programs):
    """A TinyJit without its function."""
    made = TinyJit(_gone, prune)
    made.fxn, made.__name__, made._named, made._called, made._by_value = None, name, name, True, by_value
    made._programs = [(key, Program.restored(told)) for key, told in programs]
    made.cnt = 2  # captured
    return made


def _gone(*_, **__):
    """In the place of a function that was not pickled."""


def function(fxn=None, **options):
    """@function, of a part of a model, as tinygrad's programs mark it: the engine finds equal parts by itself, and the
    function is what it was."""
    if options.get("grad_fxn") is not None:
        raise ValueError("function: grad_fxn: a gradient of your own is tiny.custom_op's `gradient`")
    return fxn if fxn is not None else lambda one: function(one, **options)
