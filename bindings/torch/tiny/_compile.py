"""torch.compile(model, backend="tiny"): AOTAutograd's graphs, each as one program of the engine.

A graph is recorded at its first call, or its first with given sizes: on placeholders, by the device's own operators,
which compute nothing.  Sizes that PyTorch has symbols for are variables of one program.  What cannot be recorded (numbers
that the graph reads, random numbers, which each call draws anew) is run operator by operator instead.
"""

import functools
import weakref

import torch

from . import _variables

CHANNELS_MIN = 8  # fewer do not fill a vector, whatever is innermost (KernelAxes::kExtentMin)
PROGRAMS_MAX = 16  # of one graph: sizes that it is called with


class _Program:
    """What is executed, which inputs it takes (the tensors), which results are its outputs, and which are inputs."""

    def __init__(self, recording, inputs, outputs, places, result_places, passed):
        self.number = torch.ops.tiny.compile(recording, inputs, outputs)
        self.places, self.result_places, self.passed = places, result_places, passed
        self.least = self.greatest = ()  # of the variables
        weakref.finalize(self, torch.ops.tiny.release, self.number)

    def __call__(self, inputs, results, variables=()):
        made = torch.ops.tiny.execute(self.number, [inputs[i] for i in self.places], variables)
        for places, tensor in zip(self.result_places, made):
            for place in places:
                results[place] = tensor
        for place, (i, view) in self.passed.items():
            if view is None:
                results[place] = inputs[i]
            else:
                sizes, strides, offset = view
                results[place] = inputs[i].as_strided(sizes, strides, inputs[i].storage_offset() + offset)
        return results


def _places(values):
    return [i for i, x in enumerate(values) if isinstance(x, torch.Tensor)]


def _described(value):
    return (tuple(value.shape), value.stride()) if isinstance(value, torch.Tensor) else value


def _elements(tensor):
    """What two tensors that are views of the same elements have in common, while they live."""
    return tensor.untyped_storage()._cdata, tensor.dtype, tensor.shape, tensor.stride(), tensor.storage_offset()


def _channels_last(value):
    return torch.channels_last if value.dim() == 4 else torch.channels_last_3d


def _of_convolutions(graph):
    """Nodes that are made by convolutions, or element by element, by windows and statistics, of what those make."""
    found = set()
    for node in graph.nodes:
        value = node.meta.get("val")
        # Operators with several results (batch norms, pools with places) are followed to the operator.getitem of each.
        ranks = {x.dim() for x in (value if isinstance(value, (tuple, list)) else (value,)) if isinstance(x, torch.Tensor)}
        if node.target is torch.ops.aten.convolution.default or any(
                x in found and (isinstance(x.meta["val"], (tuple, list)) or x.meta["val"].dim() in ranks) for x in node.all_input_nodes):
            found.add(node)
    return found


class _OtherShapes(Exception):
    """With the numbers that stand for sizes something has another shape than the graph says."""


class _OfKnownShapes(torch.fx.Interpreter):
    """Runs a graph whose tensors have these shapes by node: where a slice ends at a size, for one, a number may be beyond what it
    stands for, which PyTorch's guards rule out of the sizes themselves."""

    def __init__(self, module, shapes):
        super().__init__(module)
        self.shapes = shapes

    def run_node(self, node):
        result = super().run_node(node)
        if node in self.shapes and tuple(result.shape) != tuple(self.shapes[node]):
            raise _OtherShapes
        return result


class Graph:
    """One graph, with a program for all sizes or for each combination of sizes and numbers that it was called with.

    Results from `saved` on are what the backward graph will be given, and nobody else sees.  Those that are inputs, or views
    of them, are not computed, and what is between convolutions has its channels innermost, as the engine would store it if
    both graphs were one."""

    def __init__(self, module, saved=None, written=()):
        self.module = module
        self.outputs = next(reversed(module.graph.nodes)).args[0]
        self.inputs = [node for node in module.graph.nodes if node.op == "placeholder"]
        self.saved = len(self.outputs) if saved is None else saved
        self.written = frozenset(written)  # inputs that have other elements after the call
        self.programs = {}  # by sizes: and results that are no tensors
        self.is_recorded = not any(isinstance(node.target, torch._ops.OpOverload) and
                                   torch.Tag.nondeterministic_seeded in node.target.tags for node in module.graph.nodes)
        self.variables = self._variables() if self.is_recorded else None
        self.variable_programs = {}  # by the values of symbols that do not vary
        self.channels_last = self._channels_last() if self.is_recorded else ()
        self.varying = 0  # so many symbols, the first ones, are variables

    def _variables(self):
        if not any(_variables.has_symbols(node.meta.get("val")) for node in self.module.graph.nodes):
            return None
        try:
            return _variables.Variables(self.module)
        except (ValueError, SyntaxError, NameError):
            return None

    def _channels_last(self):
        """Places of results that shall have their channels innermost."""
        found = _of_convolutions(self.module.graph)
        shown = set(self.outputs[:self.saved])

        def is_one(node):
            value = node.meta.get("val") if isinstance(node, torch.fx.Node) and node in found and node not in shown else None
            return isinstance(value, torch.Tensor) and value.dim() in (4, 5) and value.shape[1] >= CHANNELS_MIN and \
                value.is_contiguous()
        return [place for place in range(self.saved, len(self.outputs)) if is_one(self.outputs[place])]

    def strides(self):
        """For each result its strides if they are others than the graph says."""
        made = [None] * len(self.outputs)
        for place in self.channels_last:
            value = self.outputs[place].meta["val"]
            made[place] = tuple(torch._prims_common.make_channels_last_strides_for(value.shape))
        return made

    def record(self, inputs):
        """(program, its results but for outputs), or None."""
        tiny = torch.ops.tiny
        recording = tiny.record((), ())
        try:
            tiny.begin_recording(recording, (), (), ())
            stand_ins, results = self.run_module(recording, inputs, [_described(x) for x in inputs])
            program = self._program(recording, inputs, stand_ins, results)
            return program, [None if isinstance(x, torch.Tensor) else x for x in results]
        except (RuntimeError, NotImplementedError):
            return None
        finally:
            tiny.end_recording()
            tiny.release_recording(recording)

    def run_module(self, recording, inputs, expected, shapes=None):
        """Placeholders of the sizes and numbers that are expected, and the results of them."""
        places = _places(inputs)
        stand_ins = [torch.ops.tiny.placeholder(recording, i, inputs[i].dtype, *expected[i]) for i in places]
        given = list(expected)
        for i, stand_in in zip(places, stand_ins):
            given[i] = stand_in
        with torch.no_grad():
            results = list(self.module(*given) if shapes is None else _OfKnownShapes(self.module, shapes).run(*given))
            turned = {}
            for place in self.channels_last:
                key = _elements(results[place])
                if key not in turned:
                    turned[key] = results[place].contiguous(memory_format=_channels_last(results[place])), results[place]
                results[place] = turned[key][0]
            return stand_ins, results

    def _program(self, recording, inputs, stand_ins, results):
        places = _places(inputs)
        given = {x.untyped_storage()._cdata: (i, x) for i, x in zip(places, stand_ins)
                 if i not in self.written and x.stride() == inputs[i].stride() and x.shape == inputs[i].shape and
                 not _variables.has_symbols(self.inputs[i].meta.get("val"))}
        outputs, result_places, passed = [], {}, {}
        for place in _places(results):
            result = results[place]
            i, source = given.get(result.untyped_storage()._cdata, (None, None)) if place >= self.saved else (None, None)
            # Views that depend on variables (weights that are expanded) are the program's.
            if source is not None and source.dtype == result.dtype and not _variables.has_symbols(self.outputs[place].meta.get("val")):
                view = result.shape, result.stride(), result.storage_offset()
                passed[place] = i, None if result is source else view
            elif place >= self.saved and _elements(result) in result_places:
                result_places[_elements(result)].append(place)
            else:
                # A result that the caller sees twice is two tensors.
                key = _elements(result) if _elements(result) not in result_places else place
                result_places[key] = [place]
                outputs.append(result)
        torch.ops.tiny.signature(outputs)  # sizes and strides of what is compiled
        return _Program(recording, stand_ins, outputs, places, list(result_places.values()), passed)

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
            # Their order is that of what they stand for: what is a part of another size is smaller.
            ranked = sorted(range(self.varying), key=lambda i: values[i])
            numbers, fixed = [numbers[ranked.index(i)] for i in range(self.varying)], values[self.varying:]
            tiny.begin_recording(recording, numbers, *self.variables.sizes_and_dimensions(
                [*numbers, *fixed], [*tiny.variables(recording), *fixed]))
            try:
                shapes = dict(zip(self.variables.tensors, self.variables.shapes(*numbers, *fixed)))
                stand_ins, results = self.run_module(recording, inputs, self.variables.inputs(*numbers, *fixed), shapes)
            except _OtherShapes:
                return None
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
    # Saved results have the strides that the forward graph reported, of which the graph itself does not know.
    for node, value in zip((node for node in module.graph.nodes if node.op == "placeholder"), example_inputs):
        if isinstance(value, torch.Tensor) and isinstance(node.meta.get("val"), torch.Tensor):
            node.meta["val"] = value
    graph = Graph(module)
    graph._boxed_call = True
    return graph


def _compile_forward(module, example_inputs):
    context = torch._guards.TracingContext.try_get()
    if context is None or context.fw_metadata is None or context.output_strides is None:
        return _compile_graph(module, example_inputs)
    metadata = context.fw_metadata
    graph = Graph(module, metadata.num_forward, metadata.mutated_inp_runtime_indices)
    context.output_strides.extend(graph.strides())
    graph._boxed_call = True
    return graph


def backend(module, example_inputs):
    """The entry point of group torch_dynamo_backends."""
    return _aot()(module, example_inputs)


@functools.cache
def _aot():
    from torch._dynamo.backends.common import aot_autograd

    return aot_autograd(fw_compiler=_compile_forward, bw_compiler=_compile_graph, inference_compiler=_compile_graph)
