"""torch.compile(model, backend="tiny"): AOTAutograd's graphs, each as one program of the engine.

A graph is recorded at its first call, or its first with given sizes: on placeholders, by the device's own operators,
which compute nothing.  Sizes that PyTorch has symbols for are variables of one program.  What cannot be recorded (numbers
that the graph reads, random numbers, which each call draws anew) is run operator by operator instead.
"""

import functools
import weakref

import torch

from . import _variables

PROGRAMS_MAX = 16  # of one graph: sizes that it is called with


class _Program:
    """What is executed, which inputs it takes (the tensors), and which results are its outputs."""

    def __init__(self, recording, inputs, outputs, places, result_places):
        self.number = torch.ops.tiny.compile(recording, inputs, outputs)
        self.places, self.result_places = places, result_places
        self.least = self.greatest = ()  # of the variables
        weakref.finalize(self, torch.ops.tiny.release, self.number)

    def __call__(self, inputs, results, variables=()):
        made = torch.ops.tiny.execute(self.number, [inputs[i] for i in self.places], variables)
        for place, tensor in zip(self.result_places, made):
            results[place] = tensor
        return results


def _places(values):
    return [i for i, x in enumerate(values) if isinstance(x, torch.Tensor)]


def _described(value):
    return (tuple(value.shape), value.stride()) if isinstance(value, torch.Tensor) else value


class Graph:
    """One graph, with a program for all sizes or for each combination of sizes and numbers that it was called with."""

    def __init__(self, module):
        self.module = module
        self.programs = {}  # by sizes: and results that are no tensors
        self.is_recorded = not any(isinstance(node.target, torch._ops.OpOverload) and
                                   torch.Tag.nondeterministic_seeded in node.target.tags for node in module.graph.nodes)
        self.variables = self._variables() if self.is_recorded else None
        self.variable_programs = {}  # by the values of symbols that do not vary
        self.varying = 0  # so many symbols, the first ones, are variables

    def _variables(self):
        if not any(_variables.has_symbols(node.meta.get("val")) for node in self.module.graph.nodes):
            return None
        try:
            return _variables.Variables(self.module)
        except (ValueError, SyntaxError, NameError):
            return None

    def record(self, inputs):
        """(program, its results but for outputs), or None."""
        tiny = torch.ops.tiny
        recording = tiny.record((), ())
        try:
            tiny.begin_recording(recording, (), (), ())
            stand_ins, results = self.run_module(recording, inputs, [_described(x) for x in inputs])
            tiny.signature([results[i] for i in _places(results)])
            program = self._program(recording, inputs, stand_ins, results)
            return program, [None if isinstance(x, torch.Tensor) else x for x in results]
        except (RuntimeError, NotImplementedError):
            return None
        finally:
            tiny.end_recording()
            tiny.release_recording(recording)

    def run_module(self, recording, inputs, expected):
        """Placeholders of the sizes and numbers that are expected, and the results of them."""
        places = _places(inputs)
        stand_ins = [torch.ops.tiny.placeholder(recording, i, inputs[i].dtype, *expected[i]) for i in places]
        given = list(expected)
        for i, stand_in in zip(places, stand_ins):
            given[i] = stand_in
        with torch.no_grad():
            return stand_ins, list(self.module(*given))

    def _program(self, recording, inputs, stand_ins, results):
        outputs = _places(results)
        return _Program(recording, stand_ins, [results[i] for i in outputs], _places(inputs), outputs)

    def record_variables(self, inputs, values):
        """The program for all values of the symbols that are variables, or None."""
        # Some graphs are the same for larger sizes alone, such as those whose windows fit into what others leave.
        for least in self.variables.least, [max(few, value // 2) for few, value in zip(self.variables.least, values)]:
            try:
                # What one order of stand-ins tells wrongly first the other one may tell rightly.
                return self._record_from(least, inputs, values, _variables.STAND_INS) or \
                    self._record_from(least, inputs, values, _variables.STAND_INS[::-1])
            except NotImplementedError:
                continue
        return None

    def _record_from(self, least, inputs, values, order):
        tiny = torch.ops.tiny
        for most in _variables.GREATEST:
            greatest = self.variables.greatest_within(least, most)[:self.varying]
            recording = tiny.record(least[:self.varying], greatest)
            try:
                program = self._same_program(recording, inputs, values, order)
                if program:
                    program.least, program.greatest = least[:self.varying], greatest
                return program
            except NotImplementedError:
                raise
            except RuntimeError:
                continue  # more elements than what depends on variables may have, perhaps
            finally:
                tiny.end_recording()
                tiny.release_recording(recording)
        return None

    def _same_program(self, recording, inputs, values, order):
        tiny, found = torch.ops.tiny, []
        for numbers in order:
            numbers, fixed = numbers[:self.varying], values[self.varying:]
            tiny.begin_recording(recording, numbers, *self.variables.sizes_and_dimensions(
                [*numbers, *fixed], [*tiny.variables(recording), *fixed]))
            stand_ins, results = self.run_module(recording, inputs, self.variables.inputs(*numbers, *fixed))
            found.append(tiny.signature([results[i] for i in _places(results)]))
        return self._program(recording, inputs, stand_ins, results) if found[0] == found[1] else None

    def program_for(self, inputs, values):
        if not self.varying:
            self.varying = len(values)
            program = self.record_variables(inputs, values)
            if program or self.varying == 1:
                self.variable_programs[()] = program
            else:
                self.varying = 1  # the first symbol, a batch most often; the others keep their values
        fixed = tuple(values[self.varying:])
        if fixed not in self.variable_programs and len(self.variable_programs) < PROGRAMS_MAX:
            self.variable_programs[fixed] = self.record_variables(inputs, values)
        return self.variable_programs.get(fixed)

    def with_variables(self, inputs):
        """The results of the program for all sizes; None for inputs that it is not for."""
        if self.variables is None or any(x.device.type != "tiny" for x in inputs if isinstance(x, torch.Tensor)):
            return None
        values = self.variables.of(inputs)
        if any(_described(x) != expected for x, expected in zip(inputs, self.variables.inputs(*values))):
            return None
        program = self.program_for(inputs, values)
        varied = values[:self.varying]
        if program is None or any(not least <= value <= most for least, value, most in
                                  zip(program.least, varied, program.greatest)):
            return None
        return program(inputs, list(self.variables.results(*values)), varied)

    def key(self, inputs):
        return tuple((*_described(x), x.dtype, x.device.type) if isinstance(x, torch.Tensor) else x for x in inputs)

    def with_sizes(self, inputs):
        """The results of the program for these very sizes; None if there is none."""
        key = self.key(inputs)
        if key not in self.programs:
            is_ours = all(x.device.type == "tiny" for x in inputs if isinstance(x, torch.Tensor))
            self.programs[key] = self.record(inputs) if is_ours and len(self.programs) < PROGRAMS_MAX else None
        if self.programs[key] is None:
            return None
        program, results = self.programs[key]
        return program(inputs, list(results))

    def __call__(self, inputs):
        inputs, given = list(inputs), inputs
        given.clear()  # boxed: what only the graph needs is free before its end
        results = None
        if self.is_recorded:
            results = self.with_variables(inputs)
            if results is None:
                results = self.with_sizes(inputs)
        return self.module(*inputs) if results is None else results


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
