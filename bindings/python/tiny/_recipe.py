"""A captured program as bytes, and again as a program: what pickle makes of a TinyJit.

Writes in place become values: each memory that the program writes, a weight, an optimiser's state, the counter of the
random numbers, is an input of a model and an output of it.  The model is ONNX's, with the other tensors as its weights.
Who reads it has the same graph, whose states are tensors of its own.
"""

import json
import os
import tempfile

from . import native
from ._capture import InputItself
from ._capture import Program as Captured
from ._dtype import of as dtype_of
from ._guards import Guards
from ._joint import Joint
from ._operator import op
from ._random import source as random_source
from ._random_source import Draws
from ._tensor import default_context
from .methods import Dtype, Program, export_onnx
from .native import Model, Tensor, Variable

_OF_RANDOM = ("key", "counter")  # states that are the context's


def _number_of_writes(program):
    """How many memories a program writes that are there before it."""
    return len({buffer["buffer"] for kernel in json.loads(program.kernels().text()) for buffer in kernel["buffers"]
                if buffer["kind"] == "weights" and buffer["access"] != "read"})


def _root(node):
    """The memory that a node sees, and how: the views from it on."""
    from .uop import Ops
    views = []
    while node.op is not Ops.BUFFER:
        if node.op is not Ops.AFTER:
            views.append((node.op.name, node.arg, node.shape))
        node = node.src[0]
    return node, views[::-1]


def _seen(tensor, views):
    """The tensor through such views."""
    for name, argument, shape in views:
        if name == "ASSTRIDED":
            tensor = tensor.as_strided(list(argument[0]), list(argument[1]), argument[2])
        elif name == "RESHAPE":
            tensor = tensor.reshape(list(shape))
        elif name != "ALIAS":
            raise TypeError(f"TinyJit: a write through {name} cannot be pickled")
    return tensor


def _written(memory, view, value):
    """The elements of a flat memory once the value is written to a view of it."""
    views = _root(view)[1]
    memory, value = memory.tensor(), value.tensor()
    count = memory.numel
    if value.numel == count and all(name != "ASSTRIDED" for name, _, _ in views):
        return value.reshape([count]).uop
    places = _seen(memory.context.arange(Dtype.INT64, count), views)
    return op("ScatterND", memory, places.reshape([value.numel, 1]), value.reshape([value.numel])).uop


class Recipe:
    """What a program was compiled of: handles of inputs, outputs and of what it writes, before they were compiled."""

    def __init__(self, context_of, inputs, outputs, targets):
        self.inputs, self._context_of = inputs, context_of
        self._context = next(map(context_of, (*outputs, *targets)))
        self._outputs = [self._node(one) for one in outputs]
        self._targets = [self._node(one) for one in targets]

    def _node(self, tensor):
        node = native.tiny_tensor_node(tensor)
        node.context = self._context_of(tensor)
        return node

    def written(self, targets) -> set:
        """The memories of the program's targets, as nodes."""
        from .uop._node import wrap
        return {_root(wrap(self._node(one)))[0] for one in targets}

    def _states(self, order):
        """The memories that are written, and those of the random numbers."""
        from .uop import Ops
        states = list(dict.fromkeys(_root(node)[0] for node in order if node.op is Ops.AFTER))
        tensors = random_source(self._context).tensors(self._context)
        known = {_root(one.uop)[0]: name for name, one in zip(_OF_RANDOM, tensors)}
        return states + [node for node in known if node in order and node not in states], known

    def described(self, compiled) -> dict:
        """The program as numbers, texts and bytes."""
        from .uop import Ops
        from .uop._node import wrap
        outputs, targets = list(map(wrap, self._outputs)), list(map(wrap, self._targets))
        order = dict.fromkeys(node for root in (*outputs, *targets) for node in root.toposort())
        states, known = self._states(order)
        if _number_of_writes(compiled) != len({_root(node)[0] for node in order if node.op is Ops.AFTER}):
            raise TypeError("TinyJit: the program writes memory that none of its tensors is made of, such as a layer's "
                            "running values: it cannot be pickled")
        given = [self._context.input(node.dtype, list(node.shape)) for node in states]
        now = _without_writes(order, dict(zip(states, (one.uop for one in given))))
        last = {}  # the value of each memory after all writes
        for node in order:
            if node.op is Ops.AFTER:
                last[_root(node)[0]] = now[node]
        written = [node for node in states if node in last]
        model = _model(self.inputs + given, [now[one].tensor() for one in outputs] + [last[one].tensor() for one in written])
        return {"model": model, "variables": _variables(self.inputs),
                "inputs": len(self.inputs), "outputs": len(outputs),
                "states": [known.get(node) or (node.dtype.name, bytes(node.tensor())) for node in states],
                "written": [states.index(node) for node in written],
                "targets": [(states.index(_root(one)[0]), _root(one)[1]) for one in targets]}


def _without_writes(order, states):
    """Each node as a value of what is given in the place of the states."""
    from .uop import Ops
    now = {}
    for node in order:
        if node in states:
            now[node] = states[node]
        elif node.op is Ops.AFTER:
            now[node] = now[node.src[0]]
            for write in node.src[1:]:
                now[node] = _written(now[node], write.src[0], now[write.src[1]])
        elif node.op is not Ops.ASSIGN:
            now[node] = node.replace(src=tuple(now[one] for one in node.src))
    return now


def _model(inputs, outputs):
    descriptor, path = tempfile.mkstemp(suffix=".onnx")
    os.close(descriptor)
    try:
        export_onnx(inputs, outputs, path)
        with open(path, "rb") as file:
            return file.read()
    finally:
        os.unlink(path)


def _variables(inputs):
    """(name, least, greatest) of the variables that sizes of the inputs are."""
    from .uop import Ops
    return sorted({tuple(node.arg) for one in inputs for node in one.uop.toposort() if node.op is Ops.VARIABLE})


def described(program, key) -> dict:
    """A captured program as numbers, texts and bytes; `key` is what tells its calls apart."""
    for name, kind, *_ in key[1]:
        if kind == "is":
            raise TypeError(f"TinyJit: {name} is an object, by which the program is told: it cannot be pickled")
    if program.shapes:
        raise TypeError("TinyJit: a program whose results have sizes that depend on variables cannot be pickled")
    if isinstance(program.compiled, Joint):
        raise TypeError("TinyJit: a program over several devices cannot be pickled")
    told = program.recipe.described(program.compiled)
    targets = {id(one): at for at, one in enumerate(program.kept)}
    told["places"] = [one if isinstance(one, int) else ("input", one.at) if hasattr(one, "at") else ("target", targets[id(one)])
                      for one in program.outputs]
    told["written_inputs"] = [(at, targets[id(memory)]) for at, memory in program.written_inputs]
    told["gradients"] = [pair for pair in program.gradients if isinstance(pair[0], int)]
    told["words"] = sum(one.words for one in program.draws)
    told["result"] = program.result
    return told


def restored(told) -> Captured:
    """The program again."""
    compiled, targets, recipe = _compiled(told)
    places = [one if isinstance(one, int) else InputItself(one[1]) if one[0] == "input" else targets[one[1]]
              for one in told["places"]]
    made = Captured(compiled, Guards([]), told["result"], places)
    made.kept, made.gradients, made.recipe = targets, told["gradients"], recipe
    made.written_inputs = [(at, targets[number]) for at, number in told["written_inputs"]]
    if told["words"]:
        context = default_context()
        made.draws = [Draws(random_source(context), context)]
        made.draws[0].words = told["words"]
    return made


def _compiled(told):
    """(the compiled program, tensors that it writes as its function's targets were, its recipe)."""
    context = default_context()
    model = Model.load_memory(context, told["model"])
    sizes = {name: Variable(name, low, high).dim for name, low, high in told["variables"]}
    given = model.placeholders(sizes)
    inputs = given[:told["inputs"]]
    random = dict(zip(_OF_RANDOM, random_source(context).tensors(context)))
    states = [random[one] if isinstance(one, str) else _flat(context, *one) for one in told["states"]]
    made = model.apply([*inputs, *states])
    outputs = made[:told["outputs"]]
    for at, value in zip(told["written"], made[told["outputs"]:]):
        native.tiny_assign(states[at], value)
    targets = [_seen(states[at], views) for at, views in told["targets"]]
    recipe = Recipe(lambda _: context, inputs, outputs, targets)
    return Program.compile(inputs, [*outputs, *(states[at] for at in told["written"])]), targets, recipe


def _flat(context, dtype, content) -> Tensor:
    kind = dtype_of(dtype)
    return Tensor.from_data(context, kind, [len(content) // kind.itemsize], content)
