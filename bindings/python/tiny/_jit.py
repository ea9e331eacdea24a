"""TinyJit: a function of tensors, captured once as a program and then replayed.

The first call with inputs of new shapes runs the function, the second one captures it: the function is called with
placeholders, and what it returns and what it assigns to become one program, which computes nothing meanwhile.  Later
calls execute that.  What would make a replay another thing than a call is an error or has a program of its own: other
shapes and constants, attributes and globals that changed (_guards.py), elements that are read on the way.
"""

import contextlib
import functools
import json
import sys
import types

from . import _tape
from ._guards import Guards
from ._tape import JitError
from .methods import Program, Run
from .native import Tensor

MOST = 16  # programs of one function


def _flat(name, value, tensors, shape):
    """Appends the tensors of nested lists, tuples and dicts, and to `shape` what else tells two calls apart."""
    if isinstance(value, Tensor):
        tensors.append(value)
        shape.append((name, int(value.dtype), value.shape))
    elif isinstance(value, (list, tuple)):
        shape.append((name, type(value), len(value)))
        for i, part in enumerate(value):
            _flat(f"{name}[{i}]", part, tensors, shape)
    elif isinstance(value, dict):
        shape.append((name, dict, tuple(value)))
        for key, part in value.items():
            _flat(f"{name}[{key!r}]", part, tensors, shape)
    elif isinstance(value, (bool, int, float, complex, str, bytes, type(None))):
        shape.append((name, type(value), value))
    elif hasattr(value, "__array_interface__") or isinstance(value, (bytearray, memoryview)):
        raise JitError(f"TinyJit: {name} is an array, of which the program would keep the elements; pass a tensor")
    else:
        shape.append((name, "is", id(value)))


def _replaced(value, take, kind=Tensor):
    """The same nest with other things in the places of tensors, in the order of _flat."""
    if isinstance(value, kind):
        return take()
    if isinstance(value, (list, tuple)):
        parts = [_replaced(part, take, kind) for part in value]
        return type(value)(*parts) if hasattr(value, "_fields") else type(value)(parts)
    if isinstance(value, dict):
        return {key: _replaced(part, take, kind) for key, part in value.items()}
    return value


class _Place:
    """Where a tensor stands in what a program returns."""


def _parts(name, value):
    """(name, value) of what is no tensor in nested lists, tuples and dicts."""
    if isinstance(value, (list, tuple)):
        for i, part in enumerate(value):
            yield from _parts(f"{name}[{i}]", part)
    elif isinstance(value, dict):
        for key, part in value.items():
            yield from _parts(f"{name}[{key!r}]", part)
    elif not isinstance(value, Tensor):
        yield name, value


def _returned(value, found, name="the result"):
    if isinstance(value, Tensor):
        found.append(value)
    elif isinstance(value, (list, tuple)):
        for i, part in enumerate(value):
            _returned(part, found, f"{name}[{i}]")
    elif isinstance(value, dict):
        for key, part in value.items():
            _returned(part, found, f"{name}[{key!r}]")
    elif value is not None:
        raise JitError(f"TinyJit: {name} is of type {type(value).__name__}; what a program gives is tensors, and None")


class _Capture:
    """What a function does to tensors while it is captured."""

    def __init__(self, placeholders):
        self.inputs = {id(one) for one in placeholders}
        self.targets = {}
        self.gradients = {}  # id: (a leaf, its gradient)
        self.draws = {}  # id of a source of random numbers: Draws

    def before_write(self, tensor):
        """A tensor is about to be assigned to."""
        if id(tensor) in self.inputs:
            raise JitError("TinyJit: the function assigns to an argument, which a program does not write; return the "
                           "new value, or let the function reach the tensor in another way than as an argument")

    def written(self, tensor):
        """It has been."""
        self.targets.setdefault(id(tensor), tensor)

    def written_tensors(self):
        """One that knows its context first, by which a program is made."""
        return sorted(self.targets.values(), key=lambda tensor: not hasattr(tensor, "context"))

    def before_gradient(self, tensor):
        """A gradient is about to be set."""
        self.gradients.setdefault(id(tensor), (tensor, tensor.__dict__.get("_gradient")))

    def reads_gradient(self, tensor):
        if id(tensor) not in self.gradients:
            raise JitError("TinyJit: a gradient from before the call is used, and gradients do not go on from replay "
                           "to replay; call zero_grad() in the function first")

    def undo_gradients(self):
        for tensor, gradient in self.gradients.values():
            tensor._gradient = gradient


class _Program:
    """A captured call: the program, and how what it returns is made of its outputs."""

    def __init__(self, run, guards, result, outputs, kept, draws):
        self.run, self.guards, self.result = run, guards, result
        self.outputs = outputs  # for each tensor that is returned the tensor that is written, or an output's number
        self.kept = kept
        self.draws = draws

    def __call__(self, tensors):
        for i, tensor in enumerate(tensors):
            self.run.set_input(i, tensor)
        for one in self.draws:
            one.begin()
        try:
            self.run.execute()
        except BaseException:
            for one in self.draws:
                one.fail()
            raise
        for one in self.draws:
            one.end()
        made = iter([self.run.output_tensor(one) if isinstance(one, int) else one for one in self.outputs])
        return _replaced(self.result, lambda: next(made), _Place)


class TinyJit:
    """@TinyJit: the function's tensors as one program.  Arguments are tensors, in lists, tuples and dicts too, which a
    program takes anew with each call, and anything else, of which a program has the values that it was captured with:
    calls with others have programs of their own, up to 16.  It returns tensors, or None.

    Tensors that it assigns to, weights and an optimiser's state, are written by each call.  Gradients are of the
    inside: `grad` is afterwards what it was before.  Random numbers go on from call to call."""

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
        self._programs = []  # (shape, program)
        self._called = False

    @property
    def captured(self):
        """The program that was captured last; None if there is none."""
        return self._programs[-1][1] if self._programs else None

    def __get__(self, instance, owner=None):
        return self if instance is None else types.MethodType(self, instance)

    def __call__(self, *args, **kwargs):
        if _tape.State.capture is not None:  # part of another's program
            return self.fxn(*args, **kwargs)
        tensors, shape = [], [("Tensor.training", bool, Tensor.training)]
        _flat("args", args, tensors, shape)
        _flat("kwargs", dict(sorted(kwargs.items())), tensors, shape)
        kwargs = dict(sorted(kwargs.items()))
        self.cnt += 1
        if not self._called:
            return self._first(args, kwargs)
        changed = None
        for known, program in self._programs:
            if known == shape:
                changed = program.guards.changed()
                if changed is None:
                    _tape.realize(_tape.waiting())
                    return program(tensors)
        if len(self._programs) >= MOST:
            why = changed or f"its arguments were {[one for one in shape if one not in self._programs[-1][0]]}"
            raise JitError(f"TinyJit: {MOST} programs of {self.__name__} are captured, and this call needs another: "
                           f"{why}. What changes from call to call is to be a tensor that is passed, or assigned to")
        program = self._capture(args, kwargs, tensors)
        self._programs.append((shape, program))
        return program(tensors)

    def _first(self, args, kwargs):
        """The call that runs: what the function makes on first use is made."""
        result = self.fxn(*args, **kwargs)
        found = []
        _returned(result, found)
        _tape.realize([*found, *_tape.waiting()])
        self._called = True
        return result

    def _capture(self, args, kwargs, tensors):
        guards = self._guards(args, kwargs)
        # What is computed now is memory for the program, and what is pending now would be its write of each run.
        _tape.realize([*tensors, *guards.tensors.values(), *_tape.waiting()])
        inputs = [tensor.context.input(tensor.dtype, tensor.shape) for tensor in tensors]
        for placeholder, tensor in zip(inputs, tensors):
            placeholder._requires_grad = tensor.__dict__.get("_requires_grad")
        capture = _tape.State.capture = _Capture(inputs)
        try:
            given = iter(inputs)
            result = self.fxn(*_replaced(args, lambda: next(given)), **_replaced(kwargs, lambda: next(given)))
            found = []
            _returned(result, found)
            self._check(guards)
            return self._compiled(capture, guards, inputs, result, found)
        except BaseException:
            self._drop_writes(capture, inputs)
            raise
        finally:
            capture.undo_gradients()
            _tape.State.capture = None

    def _guards(self, args, kwargs):
        return Guards([(self.__name__, self.fxn), *_parts("args", args), *_parts("kwargs", kwargs)])

    def _check(self, guards):
        changed = guards.changed()
        if changed:
            raise JitError(f"TinyJit: {self.__name__} changes what it was captured with, which a replay would not do: "
                           f"{changed}. Tensors are changed with assign()")

    def _compiled(self, capture, guards, inputs, result, found):
        targets = capture.written_tensors()
        written = {id(tensor): tensor for tensor in targets}
        outputs, places = [], []
        for tensor in found:
            if id(tensor) in written:
                places.append(tensor)
            else:
                places.append(len(outputs))
                outputs.append(tensor)
        if not any(hasattr(tensor, "context") for tensor in (*outputs, *targets)):
            raise JitError(f"TinyJit: {self.__name__} returns no tensor and assigns to none: there is nothing to run")
        program = Program.compile(inputs, [*outputs, *targets])
        self._tell(next(tensor.context for tensor in (*outputs, *targets) if hasattr(tensor, "context")), program)
        return _Program(Run.create(program), guards, _replaced(result, _Place), places, targets,
                        list(capture.draws.values()))

    @staticmethod
    def _tell(context, program):
        """The line of DEBUG=1."""
        if json.loads(context.info().text())["debug"] >= 1:
            print(f"jit execs {program.kernel_count} kernels", file=sys.stderr)

    @staticmethod
    def _drop_writes(capture, inputs):
        """A capture that ends early leaves tensors as they were: its writes become those of a program that never
        runs."""
        targets = capture.written_tensors()
        if targets and hasattr(targets[0], "context"):
            with contextlib.suppress(RuntimeError):  # what ends the capture is told
                Program.compile(inputs, targets)


def function(fxn=None, **options):
    """@function, of a part of a model, as tinygrad's programs mark it: the engine finds equal parts by itself, and the
    function is what it was."""
    if options.get("grad_fxn") is not None:
        raise ValueError("function: grad_fxn: a gradient of your own is tiny.custom_op's `gradient`")
    return fxn if fxn is not None else lambda one: function(one, **options)
