"""torch.compile(model, backend="tiny"): AOTAutograd's graphs, each as one program of the engine.

A graph is recorded at its first call with given sizes: on placeholders, by the device's own operators, which compute
nothing. What cannot be recorded (numbers that the graph reads, random numbers, which each call draws anew) is run
operator by operator instead.
"""

import functools
import weakref

import torch

PROGRAMS_MAX = 16  # of one graph: sizes that it is called with


class _Program:
    def __init__(self, inputs, outputs):
        self.number = torch.ops.tiny.compile(inputs, outputs)
        weakref.finalize(self, torch.ops.tiny.release, self.number)


class Graph:
    """One graph, with a program for each combination of sizes and numbers that it was called with."""

    def __init__(self, module):
        self.module = module
        self.programs = {}
        self.is_recorded = not any(isinstance(node.target, torch._ops.OpOverload) and
                                   torch.Tag.nondeterministic_seeded in node.target.tags for node in module.graph.nodes)

    def key(self, inputs):
        return tuple((tuple(x.shape), x.stride(), x.dtype, x.device.type) if isinstance(x, torch.Tensor) else x for x in inputs)

    def record(self, inputs):
        """(program, which results are its outputs, the other results), or None if the graph cannot be one."""
        places = [i for i, x in enumerate(inputs) if isinstance(x, torch.Tensor)]
        if any(inputs[i].device.type != "tiny" for i in places):
            return None
        given = list(inputs)
        stand_ins = [torch.ops.tiny.placeholder(inputs[i]) for i in places]
        for i, stand_in in zip(places, stand_ins):
            given[i] = stand_in
        try:
            with torch.no_grad():
                results = list(self.module(*given))
            outputs = [i for i, x in enumerate(results) if isinstance(x, torch.Tensor)]
            program = _Program(stand_ins, [results[i] for i in outputs])
        except (RuntimeError, NotImplementedError):
            return None
        return program, places, outputs, [None if isinstance(x, torch.Tensor) else x for x in results]

    def __call__(self, inputs):
        inputs, given = list(inputs), inputs
        given.clear()  # boxed: what only the graph needs is free before its end
        if not self.is_recorded:
            return self.module(*inputs)
        key = self.key(inputs)
        if key not in self.programs:
            self.programs[key] = self.record(inputs) if len(self.programs) < PROGRAMS_MAX else None
        if self.programs[key] is None:
            return self.module(*inputs)
        program, places, outputs, rest = self.programs[key]
        results = list(rest)
        for place, tensor in zip(outputs, torch.ops.tiny.execute(program.number, [inputs[i] for i in places])):
            results[place] = tensor
        return results


def _compile_graph(module, example_inputs):
    graph = Graph(module)
    graph._boxed_call = True
    return graph


def backend(module, example_inputs):
    """The entry point of group torch_dynamo_backends."""
    return _aot()(module, example_inputs)


@functools.cache
def _aot():
    from torch._dynamo.backends.common import aot_autograd

    return aot_autograd(fw_compiler=_compile_graph, bw_compiler=_compile_graph)
