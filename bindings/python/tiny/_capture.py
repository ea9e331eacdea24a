"""What a function does to tensors while TinyJit captures it, and the program that comes of it."""

import itertools
import weakref

from . import _dimension, _tape, native
from ._bound import Bound, set_variables, sized
from ._errors import Error
from ._reading import Reading
from ._tape import Inside, JitError
from ._joint import Joint
from .methods import Program as Compiled
from .methods import Run
from .native import Tensor, made


class Gradient:
    """Of a tensor whose gradient the function reads or sets."""

    def __init__(self, tensor, before):
        self.reference = weakref.ref(tensor)
        self.before = before
        self.was_read = False


class Capture:
    """Noted while the function runs."""

    def __init__(self, inputs):
        self.inputs = {id(one): at for at, one in enumerate(inputs)}
        self.given = [(one, one.uop) for one in inputs]
        self.written_inputs = {}  # where in the inputs: the stand-in that the function assigned to
        self.targets = {}
        self.gradients = {}  # id of a tensor: Gradient
        self.draws = {}  # id of a source of random numbers: Draws
        self.joint = None  # what was captured up to the last exchange between devices
        self.entries = []  # the inputs of the program, before the function has them
        self.ended = []  # losses that were differentiated: computed with the next part, as a step would
        self.wholes = {}  # id of a tensor over devices: (it, all of it on each device)

    def exchange(self, sources, function, kinds):
        """Values that go from device to device in each run, by a function of the sources' values; `kinds` has the context
        and the shape of each result."""
        for one in sources:
            if not all(isinstance(size, int) for size in one.shape):
                raise JitError("TinyJit: a tensor whose size is a variable's goes from device to device")
        ended, self.ended = [one for one in self.ended if id(one) not in self.targets], []
        joint = self._joint()
        # What is written there is seen as it is now, not in its memory.
        sources = [made(one.context, native.tiny_clone(one)) if one.uop.base.op.name == "AFTER" else one for one in sources]
        numbers = joint.compile([*sources, *ended], [], self.context_of)
        for number, one in zip(numbers[len(sources):], ended):
            entry = one.context.input(one.dtype, list(one.shape))
            joint.entry(number, entry)
            one.this = native.tiny_detach(entry).this
        entries = [context.input(sources[0].dtype, shape) for context, shape in kinds]
        joint.exchange(numbers[:len(sources)], function, entries)
        results = []
        for entry in entries:
            one = native.tiny_detach(entry)
            one.context, one._has_memory = entry.context, True
            results.append(one)
        return results

    def _joint(self):
        if self.joint is None:
            self.joint = Joint(self.entries)
        return self.joint

    def context_of(self, tensor):
        """Where the tensor is; the states of random numbers do not know it."""
        found = getattr(tensor, "context", None)
        return found if found is not None else next(
            draws.context for draws in self.draws.values() if draws.source.has(tensor))

    def compiled(self, outputs, targets):
        """The program of what was captured."""
        places = {id(self.context_of(one)) for one in (*outputs, *targets, *self.entries)}
        if self.joint is None and len(places) <= 1:
            return Compiled.compile(self.entries, [*outputs, *targets])
        joint = self._joint()
        joint.outputs = joint.compile(outputs, targets, self.context_of)
        return joint

    def before_write(self, tensor):
        """A tensor is about to be assigned to."""
        if id(tensor) in self.inputs:
            self.written_inputs[self.inputs[id(tensor)]] = tensor

    def written(self, tensor):
        """It has been."""
        self.targets.setdefault(id(tensor), tensor)

    def note_writes_to_parts(self):
        """An input of which a view was assigned to has another value than it had."""
        for at, (tensor, before) in enumerate(self.given):
            if at not in self.written_inputs and tensor.uop is not before:
                self.written_inputs[at] = tensor
                self.written(tensor)

    def written_tensors(self):
        """One that knows its context first, by which a program is made."""
        return sorted(self.targets.values(), key=lambda tensor: not hasattr(tensor, "context"))

    def _gradient(self, tensor):
        if id(tensor) not in self.gradients:
            self.gradients[id(tensor)] = Gradient(tensor, tensor.__dict__.get("_gradient"))
        return self.gradients[id(tensor)]

    def before_gradient(self, tensor):
        """A gradient is about to be set."""
        self._gradient(tensor)

    def gradient_of(self, tensor):
        """A gradient is read: one from before is the program's as it is a tensor that is found elsewhere."""
        is_first = id(tensor) not in self.gradients
        noted = self._gradient(tensor)
        noted.was_read |= is_first
        found = tensor.__dict__.get("_gradient")
        if isinstance(found, Inside):
            raise JitError(found.text)
        return found

    def note_inside(self, tensor):
        """The gradient from before is one that another program keeps: the program is one for that."""
        is_first = id(tensor) not in self.gradients
        self._gradient(tensor).was_read |= is_first

    def is_inside(self, tensor):
        """Whether the tensor's gradient is one that the function made."""
        return tensor.__dict__.get("_gradient") is not self._gradient(tensor).before

    def undo_gradients(self):
        for noted in self.gradients.values():
            tensor = noted.reference()
            if tensor is not None:
                tensor._gradient = noted.before

    def gradients_read(self):
        """(tensor, gradient from before) of those that the program has as they were."""
        for noted in self.gradients.values():
            tensor = noted.reference()
            if noted.was_read and tensor is not None:
                yield tensor, noted.before

    def gradients_made(self, outer):
        """(tensor, its gradient, whether each call gives it) of tensors that were there before, by their id in `outer`,
        or are inputs.  The gradient of a parameter that nothing in the function changes is for who comes after it."""
        for key, noted in self.gradients.items():
            tensor = noted.reference()
            made = None if tensor is None else tensor.__dict__.get("_gradient")
            if made is noted.before or (key not in outer and key not in self.inputs):
                continue
            is_given = tensor.__dict__.get("_requires_grad") and id(tensor) not in self.targets
            if key in outer or is_given:
                yield tensor, made, bool(is_given)


class Program:
    """A captured call: what is executed, and how what the function did is made of it."""

    def __init__(self, compiled, guards, result, outputs):
        self.compiled, self.guards, self.result = compiled, guards, result
        self.run = self._begin()
        self.outputs = outputs  # for each tensor that is returned the tensor that is written, or an output's number
        self.draws = []  # of random numbers
        self.gradients = []  # (tensor or the number of an input, an output's number or what stands for the gradient)
        self.written_inputs = []  # (number of an input, the tensor that has its new elements)
        self.kept = []
        self.over = []  # tensors over devices of which the program writes parts
        self.shapes = {}  # of outputs that depend on variables: number: dimensions
        self.recipe = None  # what it was compiled of
        self._known = {}  # names of variables
        self.name = "the function"
        self._numbers = None  # of the outputs that are returned or are gradients, once it is complete
        self._is_bare = False  # they are all that a call gives

    def _begin(self):
        return self.compiled.begin() if isinstance(self.compiled, Joint) else Run.create(self.compiled)

    def described(self, key):
        """What restored() makes it of, for a call of this key."""
        from ._recipe import described
        return described(self, key)

    @staticmethod
    def restored(told):
        """The program in this process, with state of its own; random numbers are the default context's."""
        from ._recipe import restored
        return restored(told)

    def free_intermediates(self):
        """Lets go of the memory between kernels; the next call takes it again."""
        self.run = None

    def replay(self, tensors, bindings):
        """What the call returns, of these arguments and variables."""
        if self.run is None:
            self.run, self._known = self._begin(), {}
        if self._numbers is None:
            self._numbers = [one for one in (*self.outputs, *(made for _, made in self.gradients)) if isinstance(one, int)]
            self._is_bare = self._numbers == self.outputs and not (
                self.draws or self.written_inputs or self.shapes or self.gradients)
        if bindings:
            set_variables(self.run, bindings, self._known)
        for one in self.over:
            one.forget()
        if self._is_bare:
            return self._execute(tensors)
        self._check_apart(tensors)
        made = dict(zip(self._numbers, self._with_draws(tensors)))
        for at, memory in self.written_inputs:
            tensors[at].assign(memory)
            tensors[at].realize()
        for number, dims in self.shapes.items():
            if bindings:
                made[number] = sized(made[number], [size if isinstance(size, int) else Bound(value, size, bindings)
                                                    for size, value in zip(dims, made[number].shape)])
        for owner, gradient in self.gradients:
            owner = tensors[owner] if isinstance(owner, int) else owner
            owner._gradient = made[gradient] if isinstance(gradient, int) else gradient
        return [made[one] if isinstance(one, int) else tensors[one.at] if isinstance(one, InputItself) else one
                for one in self.outputs]

    def _check_apart(self, tensors):
        """What the program writes of an argument, no other argument has: to the program they are several tensors."""
        owners = [owner for owner, _ in self.gradients if isinstance(owner, int)]
        for at, other in itertools.product(owners, range(len(tensors))):
            if at != other and tensors[at] is tensors[other]:
                raise JitError(f"TinyJit: {self.name} sets the gradient of argument {at}, which is argument {other} too: "
                               "pass it once")
        if not self.written_inputs or len(tensors) == 1:
            return
        spans = [_span(tensor) for tensor in tensors]
        for (at, _), other in itertools.product(self.written_inputs, range(len(tensors))):
            (memory, first, end), (another, start, stop) = spans[at], spans[other]
            if at != other and memory is another and first < stop and start < end:
                raise JitError(f"TinyJit: {self.name} assigns to argument {at}, of which argument {other} has the memory: "
                               "pass it once")

    def _execute(self, tensors):
        if isinstance(self.compiled, Joint):
            return self.run.replay(tensors, self._numbers)
        return native.replay(self.run, tensors, self._numbers)

    def _with_draws(self, tensors):
        for one in self.draws:
            one.begin()
        try:
            made = self._execute(tensors)
        except BaseException:
            for one in self.draws:
                one.fail()
            raise
        for one in self.draws:
            one.end()
        return made


class InputItself:
    """Among what is returned: the argument that was assigned to."""

    def __init__(self, at):
        self.at = at


def placeholder(tensor, by_value):
    """(the input of a program, what the function gets for it): another tensor, which it may assign to."""
    context = tensor.context
    dims = [size.dim if type(size) is Bound and not by_value else size for size in tensor.shape]
    entry = context.input(tensor.dtype, dims)
    given = native.tiny_detach(entry)
    given.context = context
    given._requires_grad = tensor.__dict__.get("_requires_grad")
    if Reading.tinygrad:
        _tape.note(given)
    return entry, given


def _span(tensor):
    """(memory of a device, None: the host's; the first byte of its elements there, that behind the last one); computes
    it, as the call does."""
    size = tensor.dtype.itemsize
    try:
        memory, first = None, tensor.data_ptr()
    except Error:
        _tape.realize([tensor])
        memory, first = tensor.uop.base, tensor.offset * size
    steps = [stride * (length - 1) * size for stride, length in zip(tensor.strides, tensor.shape)]
    return memory, first + sum(step for step in steps if step < 0), first + sum(step for step in steps if step > 0) + size


def described(tensor, by_value):
    """What tells tensors apart that need programs of their own."""
    sizes = tensor.shape
    return int(tensor.dtype), tuple(map(int, sizes) if by_value else map(_dimension_of, sizes))


def _dimension_of(size):
    return (repr(size.dim), *size.dim.range) if type(size) is Bound else size


def symbolic_shape(tensor):
    """The sizes, if one of them depends on variables; None otherwise."""
    shape = _dimension.shape(tensor)
    return None if all(isinstance(size, int) for size in shape) else shape


def is_over_devices(value):
    return isinstance(value, Tensor) and "_parts" in value.__dict__


def is_replaced(value):
    return isinstance(value, (Tensor, Bound))
