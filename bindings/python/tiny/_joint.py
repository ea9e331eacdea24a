"""A captured function that computes on several devices: programs of one device each, in the order in which the function
needs what they compute, and between them what goes from device to device.

While the function runs, each exchange (_together.py) ends a part: what its sources need is compiled, one program for each
device, and its results are inputs of the parts that follow.  What remains at the end is the last part, with all writes that
no part did before.  A part does what computing its sources at that point would do, so a replay has the bits of a call.
"""

from . import native
from ._placing import name_of
from .methods import Run


class Joint:
    """Programs and exchanges; values are numbered, the inputs first, in the order in which they come to be."""

    def __init__(self, inputs):
        self._entries = list(enumerate(inputs))  # (number of a value, the input of programs that has it)
        self._count = len(inputs)
        self._parts = []  # programs, as (program, numbers of its inputs, how many outputs), or (function, numbers)
        self.outputs = []  # the numbers of the outputs

    @property
    def kernel_count(self):
        return sum(one.kernel_count for part in self._parts if isinstance(part, list) for one, _, _ in part)

    def compile(self, tensors, targets, context_of):
        """Adds the programs of a part, which compute the tensors and write the targets; the number of each tensor."""
        of_devices = {}
        for one in tensors:
            of_devices.setdefault(id(context_of(one)), (context_of(one), {}, []))[1][id(one)] = one
        for one in targets:
            of_devices.setdefault(id(context_of(one)), (context_of(one), {}, []))[2].append(one)
        numbers, part = {}, []
        for context, computed, written in of_devices.values():
            inputs = [(number, entry) for number, entry in self._entries if entry.context is context]
            compiled = native.tiny_program_compile([entry for _, entry in inputs], [*computed.values(), *written])
            compiled.context = context
            part.append((compiled, [number for number, _ in inputs], len(computed)))
            for key in computed:
                numbers[key] = self._next()
        self._parts.append(part)
        return [numbers[id(one)] for one in tensors]

    def exchange(self, numbers, function, made):
        """Adds what goes from device to device; later programs have it as the inputs `made`."""
        self._parts.append((function, numbers))
        self._entries += [(self._next(), one) for one in made]

    def entry(self, number, made):
        """A value that a part computes is an input of later ones."""
        self._entries.append((number, made))

    def _next(self):
        self._count += 1
        return self._count - 1

    def begin(self):
        """What replays it."""
        return Replays(self)


class Replays:
    """The runs of a Joint's programs."""

    def __init__(self, joint):
        self._outputs = joint.outputs
        self._parts = [part if isinstance(part, tuple) else
                       [(Run.create(compiled), numbers, list(range(count))) for compiled, numbers, count in part]
                       for part in joint._parts]
        # Runs on the host return when they are done: those of several partitions have a thread each.
        of_host = max((sum(name_of(one.context) == "cpu" for one, _, _ in part)
                       for part in self._parts if isinstance(part, list)), default=0)
        self._threads = None
        if of_host > 1:  # else an import costs milliseconds
            from concurrent.futures import ThreadPoolExecutor
            self._threads = ThreadPoolExecutor(of_host - 1)

    def replay(self, tensors, numbers):
        """The outputs of these numbers, of an execution with these inputs."""
        values = list(tensors)
        for part in self._parts:
            if isinstance(part, tuple):
                function, given = part
                values += function([values[number] for number in given])
            else:
                for made in self._executed(part, values):
                    values += made
        return [values[self._outputs[number]] for number in numbers]

    def _executed(self, part, values):
        """The outputs of programs, of one device each."""
        calls = [(run, [values[number] for number in given], made) for run, given, made in part]
        if self._threads is None:
            return [native.replay(*one) for one in calls]
        others = [self._threads.submit(native.replay, *one) for one in calls[1:]]
        try:
            results = [native.replay(*calls[0])]
        finally:
            ended = [one.exception() for one in others]  # all have ended, however the first did
        for error in ended:
            if error is not None:
                raise error
        return results + [one.result() for one in others]
