"""TinyJit: what is replayed is what a call would do, to the bit, and what could not be is an error or made anew."""

import array
import collections
import gc
import os
import random
import unittest

import tiny
from tiny import JitError, Tensor, TinyJit, nn
from tiny._reading import Reading

try:
    import numpy
except ImportError:
    numpy = None


class Net:
    def __init__(self):
        self.layers = [nn.Conv2d(1, 4, 3), Tensor.relu, nn.BatchNorm(4), Tensor.max_pool2d, lambda x: x.flatten(1),
                       nn.Linear(36, 16), Tensor.tanh, lambda x: x.dropout(0.3), nn.Linear(16, 3)]

    def __call__(self, x):
        return x.sequential(self.layers)


class Steps(unittest.TestCase):
    """A training step with random rows, dropout and running statistics, captured and not."""

    def trained(self, jit, make, count=6):
        Tensor.manual_seed(11)
        net = Net()
        optimizer = make(nn.state.get_parameters(net))
        x, y = Tensor.rand(64, 1, 8, 8).realize(), Tensor.randint(64, high=3).realize()

        @Tensor.train()
        def step():
            optimizer.zero_grad()
            rows = Tensor.randint(16, high=64)
            loss = net(x[rows]).sparse_categorical_crossentropy(y[rows]).backward()
            optimizer.step()
            return loss
        step = TinyJit(step) if jit else step
        losses = [step().item() for _ in range(count)]
        state = {name: value.tolist() for name, value in nn.state.get_state_dict(net).items()}
        return losses, state, Tensor.rand(3).tolist()

    def test_slices_with_steps_of_arguments_have_gradients(self):
        def step(x):
            y = x[:, ::2] * 3 + x[:, 1::2].detach()
            return (y * y).sum().gradient(x)[0] * 1.0
        captured = TinyJit(step)
        for seed in range(3):
            x = numpy.random.default_rng(seed).random((2, 4)).astype("float32")
            numpy.testing.assert_array_equal(captured(Tensor(x).realize()).numpy(), step(Tensor(x)).numpy())

    def test_slices_with_steps_of_what_is_detached_have_none(self):
        x = Tensor([1.0, 2.0, 3.0, 4.0], requires_grad=True).realize()
        (x[::2] * x.detach()[::2]).sum().backward()
        self.assertEqual(x.grad.tolist(), [1, 0, 3, 0])

    def test_the_same_to_the_bit(self):
        for make in (nn.optim.Adam, lambda p: nn.optim.SGD(p, 0.1, 0.9, nesterov=True), nn.optim.LAMB):
            plain, captured = (self.trained(jit, make) for jit in (False, True))
            self.assertEqual(plain[0], captured[0])
            self.assertEqual(plain[1], captured[1])
            self.assertEqual(plain[2], captured[2])  # the random numbers that come next
            self.assertEqual(len(set(plain[0])), len(plain[0]))

    @unittest.skipUnless(os.path.exists("/proc/self/statm"), "no /proc")
    def test_many_steps_keep_no_memory(self):
        """Nor is anything left to the collector of cycles."""
        def resident():
            with open("/proc/self/statm", encoding="ascii") as file:
                return int(file.read().split()[1]) * 4096
        for jit, count in ((True, 3000), (False, 100)):
            net = [nn.Linear(8, 16), nn.BatchNorm(16), Tensor.relu, lambda x: x.dropout(0.2), nn.Linear(16, 3)]
            optimizer = nn.optim.Adam(nn.state.get_parameters(net))
            x, y = Tensor.randn(32, 8).realize(), Tensor.randint(32, high=3).realize()

            @Tensor.train()
            def step():
                optimizer.zero_grad()
                loss = x.sequential(net).sparse_categorical_crossentropy(y).backward()
                optimizer.step()
                return loss
            step = TinyJit(step) if jit else step
            for _ in range(50):
                step()
            gc.collect()
            gc.disable()
            try:
                before = resident()
                for _ in range(count):
                    step().item()
                self.assertLess(resident() - before, 1 << 20)
                self.assertLess(gc.collect(), 100)
            finally:
                gc.enable()

    def test_a_rate_that_changes(self):
        w = Tensor([1.0, 2.0]).realize()
        optimizer = nn.optim.SGD([w], lr=0.5)

        @TinyJit
        @Tensor.train()
        def step():
            optimizer.zero_grad()
            loss = w.sum().backward()
            return loss.realize(*optimizer.schedule_step())
        for _ in range(3):
            step()
        self.assertEqual(w.tolist(), [-0.5, 0.5])
        optimizer.lr = 0.25
        step()
        optimizer.lr.assign(0.125)
        step()
        self.assertEqual(w.tolist(), [-0.875, 0.125])
        self.assertEqual(step.captured and len(step._programs), 1)


class Calls(unittest.TestCase):
    def test_results_are_their_own(self):
        @TinyJit
        def double(x):
            return {"y": [x * 2, None], "x": x}
        results = [double(Tensor([float(i)])) for i in range(5)]
        self.assertEqual([result["y"][0].item() for result in results], [0, 2, 4, 6, 8])
        self.assertEqual([result["x"].item() for result in results], [0, 1, 2, 3, 4])
        self.assertEqual((double.cnt, len(double._programs)), (5, 1))
        double.reset()
        self.assertIsNone(double.captured)

    def test_inputs(self):
        @TinyJit
        def total(parts, scale, *, more):
            return parts[0] * scale + parts[1] + more["m"]
        for i in range(4):
            a, b, m = Tensor([1.0 * i]), Tensor([10.0]), Tensor([100.0])
            self.assertEqual(total([a, b], 2, more={"m": m}).item(), 110 + 2 * i)
            self.assertEqual(total([a, a], 2, more={"m": a}).item(), 4 * i)  # the same one several times
        self.assertEqual(len(total._programs), 1)
        self.assertEqual(total([a, b], 3, more={"m": m}).item(), 119)  # a number that changed has a program of its own
        self.assertEqual(total([Tensor([1.0, 2.0]), b], 3, more={"m": m}).tolist(), [113, 116])
        self.assertEqual(total([a, b], 2, more={"m": m}).item(), 116)
        self.assertEqual(len(total._programs), 3)

    def test_names_in_any_order(self):
        ratio = TinyJit(lambda over, under: over / under)
        a, b = Tensor([6.0]), Tensor([2.0])
        for _ in range(4):
            self.assertEqual((ratio(over=a, under=b).item(), ratio(under=a, over=b).item()), (3.0, Tensor([2.0]).div(6.0).item()))
        self.assertEqual(len(ratio._programs), 1)

    def test_methods_and_captures_within(self):
        inner = TinyJit(lambda x: x + 1)

        class Model:
            def __init__(self, scale):
                self.scale = Tensor([scale])

            @TinyJit
            def run(self, x):
                return inner(x) * self.scale
        a, b = Model(2.0), Model(3.0)
        for i in range(4):
            x = Tensor([float(i)])
            self.assertEqual((a.run(x).item(), b.run(x).item()), (2 * (i + 1), 3 * (i + 1)))
        self.assertEqual(len(Model.run._programs), 2)

    def test_state_goes_on(self):
        total = Tensor([0.0])

        @TinyJit
        def add(x):
            total.assign(total + x)
            return total
        for i in range(5):
            self.assertIs(add(Tensor([1.0 + i])), total)
        self.assertEqual(total.item(), 15)
        total.assign(100.0)
        self.assertEqual(add(Tensor([1.0])).item(), 101)

    def test_random_numbers_are_new_ones(self):
        @TinyJit
        def draw():
            return Tensor.rand(2)
        Tensor.manual_seed(3)
        captured = [draw().tolist() for _ in range(5)]
        Tensor.manual_seed(3)
        self.assertEqual(captured, [Tensor.rand(2).tolist() for _ in range(5)])
        Tensor.manual_seed(3)
        self.assertEqual(draw().tolist(), captured[0])


SCALE = 2.0


class Layer:
    def __init__(self):
        self.weight, self.factor, self.parts = Tensor([1.0]), 1.0, [Tensor([0.0])]

    def __call__(self, x):
        return x * self.weight * self.factor * SCALE + self.parts[-1]


class Writes(unittest.TestCase):
    """Arguments that are assigned to, and parts of tensors that variables choose."""

    def test_an_argument(self):
        def grow(x, y):
            view = x[1:]
            x += y
            view[0] = 10.0
            return x, x.sum()
        plain, captured = Tensor([1.0, 2.0, 3.0]), Tensor([1.0, 2.0, 3.0])
        jit = TinyJit(grow)
        for i in range(5):
            y = Tensor([float(i)])
            made, total = jit(captured, y)
            self.assertIs(made, captured)
            self.assertEqual(total.item(), grow(plain, y)[1].item())
            self.assertEqual(captured.tolist(), plain.tolist())
        self.assertEqual(len(jit._programs), 1)

    def test_a_part_of_an_argument(self):
        def setitem(x, y):
            x[:, 1:2] = y
        for write in (lambda x, y: x[:, 1:2].assign(y), lambda x, y: x.shrink((None, (1, 2))).assign(y), setitem,
                      lambda x, y: x[:, 1:2].add_(y), lambda x, y: x[0].T.assign(y[0]), lambda x, y: x.reshape(-1)[2:].mul_(2)):
            plain, captured = (Tensor([[1.0, 2, 3], [4, 5, 6]]) for _ in range(2))
            jit = TinyJit(write)
            for i in range(4):
                y = Tensor([[1.0 + i], [2.0 + i]])
                write(plain, y)
                jit(captured, y)
                self.assertEqual(captured.tolist(), plain.tolist())

    def test_a_part_of_an_argument_that_a_variable_chooses(self):
        i = tiny.Variable("i", 0, 3)
        for over in (None, ("CPU", "INTERP")):
            cache = Tensor.zeros(2, 4).contiguous().realize()
            cache = cache if over is None else cache.shard(over, 0).realize()
            jit = TinyJit(lambda cache, row, i: cache[:, i:i + 1].assign(row))
            for at in range(4):
                row = Tensor([[at + 1.0], [at + 2.0]])
                jit(cache, row if over is None else row.shard(over, 0), i.bind(at))
            self.assertEqual(cache.tolist(), [[1, 2, 3, 4], [2, 3, 4, 5]])

    def test_an_argument_as_tinygrad(self):
        Reading.tinygrad = True
        try:
            def add(x):
                x += 1
                x[0] = x[0] * 2
            plain, captured = Tensor.zeros(2).contiguous().realize(), Tensor.zeros(2).contiguous().realize()
            jit = TinyJit(add)
            for _ in range(4):
                jit(captured)
                add(plain)
            self.assertEqual(captured.tolist(), plain.tolist())
        finally:
            Reading.tinygrad = False

    def test_a_value_from_before_as_tinygrad(self):
        """What is not computed yet when a program writes what it is made of has the elements from before."""
        Reading.tinygrad = True
        try:
            weight = Tensor([1.0, 2.0]).contiguous().realize()

            @TinyJit
            def step(x):
                weight.assign(weight + x.sum())
                return (weight * 2).realize()
            for i in range(5):
                before = weight.tolist()
                old = weight * 10
                after = step(old[0:1].clone() * 0 + 1.0)
                self.assertEqual(weight.tolist(), [value + 1 for value in before], i)
                self.assertEqual(after.tolist(), [2 * value + 2 for value in before], i)
                self.assertEqual(old.tolist(), [10 * value for value in before], i)
        finally:
            Reading.tinygrad = False

    def test_values_from_before_that_share_what_they_are_made_of(self):
        """Of some that read the weight and some that do not, in any order, each has the elements from before."""
        Reading.tinygrad = True
        try:
            weight, other = Tensor([1.0, 2.0]).contiguous().realize(), Tensor([5.0, 6.0]).contiguous().realize()
            step = TinyJit(lambda x: weight.assign(weight + x).realize())
            for i in range(5):
                before, shared = weight.tolist(), other * 3
                old = [shared + 1, shared + weight, shared - 1, (shared + weight) * 2, weight * shared]
                step(Tensor([1.0, 1.0]).realize())
                self.assertEqual(weight.tolist(), [value + 1 for value in before], i)
                self.assertEqual([one.tolist() for one in old],
                                 [[16, 19], [15 + before[0], 18 + before[1]], [14, 17],
                                  [2 * (15 + before[0]), 2 * (18 + before[1])], [15 * before[0], 18 * before[1]]], i)
        finally:
            Reading.tinygrad = False

    def test_a_constant_stays_one(self):
        """Its memory is a tensor's own as soon as it has some."""
        jit = TinyJit(lambda a, b: b.assign(a + 1))
        for i in range(4):
            b = Tensor.zeros(1)
            self.assertEqual(jit(Tensor([float(i)]), b).item(), i + 1)
        self.assertEqual((Tensor([1.0, 2.0]) + Tensor.zeros(1)).tolist(), [1, 2])
        self.assertEqual(Tensor.zeros(1).tolist(), [0])

    def test_a_cache_that_is_filled(self):
        """Keys and values of a model that generates: one program for all positions."""
        cache, plain = Tensor.zeros(2, 8, 3).contiguous().realize(), Tensor.zeros(2, 8, 3).contiguous().realize()

        def step(cache, at, x):
            cache[:, at:at + 1].assign(x)
            return (cache[:, :at + 1] * 2).sum(axis=1)
        jit = TinyJit(lambda at, x: step(cache, at, x))
        position = tiny.Variable("position", 0, 7)
        for i in (0, 1, 2, 3, 5, 4, 7):
            x = Tensor.rand(2, 1, 3).realize()
            got, want = jit(position.bind(i), x).tolist(), step(plain, i, x).tolist()
            for a, b in zip(sum(got, []), sum(want, [])):
                self.assertAlmostEqual(a, b, places=5)
            self.assertEqual(cache.tolist(), plain.tolist())
        self.assertEqual(len(jit._programs), 1)


class Variables(unittest.TestCase):
    def test_one_program_for_all_sizes(self):
        a, b = Tensor.rand(3, 10).realize(), Tensor.rand(10, 5).realize()
        for function in (lambda x, y: x @ y, lambda x, y: x.sum() + y.mean(axis=0), lambda x, y: (x + 1).softmax(-1).sum(0),
                         lambda x, y: y.cat(y, dim=0).max(axis=0), lambda x, y: x.pad(((1, 0), (0, 10 - x.shape[1])))):
            jit = TinyJit(function)
            for i in (2, 5, 1, 10, 7, 5, 2):
                n = tiny.Variable("n", 1, 10).bind(i)
                got, want = jit(a[:, :n], b[:n]), function(a[:, :i], b[:i])
                self.assertEqual(got.shape, want.shape)
                for x, y in zip(got.flatten().tolist(), want.flatten().tolist()):
                    self.assertAlmostEqual(x, y, places=5)
            self.assertEqual(len(jit._programs), 1)

    def test_functions_of_any_kind(self):
        """Chains of operations in any order: of all sizes what a call gives, by one program."""
        steps = (lambda x: x + 1, lambda x: x * x, lambda x: x.sum(0), lambda x: x.mean(axis=-1), lambda x: x.max(axis=0),
                 lambda x: x.pad(tuple((1, 2) for _ in x.shape)), lambda x: x.cat(x, dim=0), lambda x: x.flip(0),
                 lambda x: (x - 0.3).relu(), lambda x: x.transpose(0, 1), lambda x: x[:1], lambda x: x.flatten())
        draw = random.Random(3)
        a = Tensor.rand(6, 9).realize()
        for _ in range(12):
            chain = [draw.choice(steps) for _ in range(draw.randint(1, 4))]

            def function(x, chain=chain):
                for step in chain:
                    x = step(x) if x.rank > 1 else x
                return x
            jit = TinyJit(function)
            for i in (4, 1, 6, 2, 4):
                got, want = jit(a[:tiny.Variable("i", 1, 6).bind(i)]), function(a[:i])
                self.assertEqual(got.shape, want.shape)
                for x, y in zip(got.flatten().tolist(), want.flatten().tolist()):
                    self.assertAlmostEqual(x, y, places=4)
            self.assertEqual(len(jit._programs), 1)

    def test_positions_and_numbers(self):
        x = Tensor([1.0, 2.0, 3.0, 4.0])
        jit = TinyJit(lambda at, factor: x[at:at + 2] * factor)
        at, factor = tiny.Variable("at", 0, 2), tiny.Variable("factor", -5, 5)
        for i, k in ((0, 1), (1, -5), (2, 5), (1, 0)):
            self.assertEqual(jit(at.bind(i), factor.bind(k)).tolist(), [(i + 1.0) * k, (i + 2.0) * k])
        self.assertEqual(len(jit._programs), 1)
        with self.assertRaisesRegex(ValueError, "from 0 to 2"):
            at.bind(3)
        with self.assertRaisesRegex(RuntimeError, "unbound"):
            Tensor(at).item()

    def test_sizes_that_go_on(self):
        """From result to argument."""
        first, second = TinyJit(lambda x: x * 2), TinyJit(lambda x: x.sum())
        for i in (1, 4, 2, 3):
            x = Tensor.arange(6)[:tiny.Variable("n", 1, 6).bind(i)]
            self.assertEqual(second(first(x + 1)).item(), i * (i + 1))
        self.assertEqual((len(first._programs), len(second._programs)), (1, 1))

    def test_a_number_that_is_bound(self):
        n, m = tiny.Variable("n", 0, 9).bind(3), tiny.Variable("m", 1, 4).bind(2)
        self.assertEqual((n + m * 2, n - n, n // 2, 10 - n, n % 2, -n, n == 3, [0] * m), (7, 0, 1, 7, 1, -3, True, [0, 0]))
        self.assertEqual((n + m * 2).expr, "2*m + n")
        self.assertEqual((n.val, (n + 1).vmax, n.unbind()[1], n.unbind()[0] == n.unbind()[0]), (3, 10, 3, True))
        self.assertIs(type(n - n), int)
        x = Tensor.ones(4, 9)[:m, :n]
        self.assertEqual((x.shape, repr(x.shape)), ((2, 3), "(m=2, n=3)"))
        self.assertEqual(repr((x + 1).reshape(1, m, n).shape), "(1, m=2, n=3)")
        self.assertEqual(tiny.Variable("z", 5, 5).bind(5) + 1, 6)


class Stale(unittest.TestCase):
    """What a program would go on with as it was."""

    def test_what_changed_outside(self):
        global SCALE
        layer, rate = Layer(), [1.0]
        run = TinyJit(lambda x: layer(x) * rate[0])

        def check():
            x = Tensor([3.0])
            self.assertEqual(run(x).item(), (layer(x) * rate[0]).item())
        for _ in range(3):
            check()
        self.assertEqual(len(run._programs), 1)
        layer.factor = 5.0
        check()
        layer.weight = Tensor([7.0])  # in another's place
        check()
        layer.parts.append(Tensor([9.0]))
        check()
        rate[0] = 0.5
        check()
        try:
            SCALE = 3.0
            check()
        finally:
            SCALE = 2.0
        self.assertEqual(len(run._programs), 6)
        layer.weight.assign(Tensor([8.0]))  # its elements are no constant
        check()

        @TinyJit
        def mode(x):
            return x.dropout(0.999)
        x = Tensor.ones(50)
        for _ in range(3):
            self.assertEqual(sum(mode(x).tolist()), 50)
        with Tensor.train():
            self.assertNotEqual(sum(mode(x).tolist()), 50)

    def test_containers_and_arrays(self):
        queue, names, numbers = collections.deque([1.0]), {1}, array.array("d", [2.0])
        run = TinyJit(lambda x: x * queue[0] * len(names) * numbers[0])

        def check():
            self.assertEqual(run(Tensor([3.0])).item(), 3 * queue[0] * len(names) * numbers[0])
        for _ in range(3):
            check()
        for change in (lambda: queue.appendleft(5.0), lambda: names.add(7), lambda: numbers.__setitem__(0, 4.0)):
            change()
            check()
            check()
        self.assertEqual(len(run._programs), 4)

    def test_a_dict_whose_entries_are_attributes(self):
        class Parameters(dict):
            __getattr__ = dict.__getitem__  # which raises KeyError, where others raise AttributeError

        held = Parameters(w=Tensor([2.0], requires_grad=True), scale=3.0)
        run = TinyJit(lambda x, held: x * held.w * held.scale)
        within = TinyJit(lambda x: x * held.w * held.scale)
        for scale in (3.0, 3.0, 5.0, 5.0):
            held["scale"] = scale
            self.assertEqual(run(Tensor([1.5]), held).item(), 3 * scale)
            self.assertEqual(within(Tensor([1.5])).item(), 3 * scale)

    def test_a_layer_that_is_frozen(self):
        w, v = Tensor([1.0], requires_grad=True), Tensor([1.0], requires_grad=True)
        optimizer = nn.optim.SGD([w, v], lr=0.5)

        @TinyJit
        @Tensor.train()
        def step():
            optimizer.zero_grad()
            loss = (w + v).sum().backward()
            optimizer.step()
            return loss
        for _ in range(3):
            step()
        self.assertEqual((w.item(), v.item()), (-0.5, -0.5))
        v.requires_grad = False
        step()
        self.assertEqual((w.item(), v.item()), (-1.0, -0.5))

    def fails(self, text, function, *arguments, first=True):
        """The first call runs the function; the second one captures it."""
        jit = TinyJit(function)
        if first:
            jit(*arguments)
        with self.assertRaisesRegex(JitError, text):
            jit(*arguments)
        self.assertIsNone(tiny._tape.State.capture)

    def test_what_is_refused(self):
        x, holder, count = Tensor([1.0]), Layer(), []
        self.fails("elements are read", lambda x: x * (2 if x.item() > 0 else 3), x)
        self.fails("elements are read", lambda x: x * holder.weight.tolist()[0], x)
        self.fails("is of type float; what a program gives", lambda x: 1.0, x, first=False)
        self.fails("nothing to run", lambda x: None, x)
        self.fails("would not seed again", lambda x: (Tensor.manual_seed(1), x * Tensor.rand(1))[1], x)
        self.fails("the length of count was 1 and is 2", lambda x: (count.append(1), x * 2)[1], x)

        def keep(x):
            holder.factor = x * 2
            return x
        self.fails("holder.factor was another tensor .* and is another tensor", keep, x)
        if numpy is not None:
            array = numpy.ones(1, "float32")
            self.fails("args.0. is an array", lambda a: Tensor(a) * 2, array, first=False)
            self.fails("an array becomes a tensor", lambda x: x * array, x)
            self.fails("an array becomes a tensor", lambda x: x * Tensor(array), x)

    def test_constants_of_every_call(self):
        @TinyJit
        def scaled(x, n):
            return x * n
        x = Tensor([2.0])
        for n in range(17):
            self.assertEqual(scaled(x, n).item(), 2 * n)
        with self.assertRaisesRegex(JitError, "16 programs of scaled.*is to be a tensor that is passed"):
            scaled(x, 17)

    def test_gradients_for_who_comes_after(self):
        """Of a parameter that the function does not change."""
        w = Tensor([2.0], requires_grad=True)

        @TinyJit
        def slope(x):
            w.grad = None
            (w * w * x).sum().backward()
            return w.grad * 1
        for i in range(4):
            self.assertEqual(slope(Tensor([float(i)])).item(), 4 * i)
            self.assertEqual(w.grad.item(), 4 * i)

    def test_gradients_add_up(self):
        plain, captured = Tensor([2.0], requires_grad=True), Tensor([2.0], requires_grad=True)

        def more(w, x):
            return (w * w * x).sum().backward()
        jit = TinyJit(lambda x: more(captured, x))
        for i in range(5):
            x = Tensor([1.0 + i])
            self.assertEqual(jit(x).item(), more(plain, x).item())
            self.assertEqual(captured.grad.item(), plain.grad.item())
            if i == 3:
                plain.grad = captured.grad = None

    def test_gradients_of_arguments_add_up(self):
        """As in calls of the function: in place where there is one, for those tensors alone that require gradients, and
        not where the function begins anew."""
        def more(w, x):
            return (w * w * x).sum().backward()

        def anew(w, x):
            w.grad = None
            more(w, x)
            return w.grad * 2
        for function in (more, anew):
            jit = TinyJit(function)
            plain, captured = ([Tensor([2.0 + i], requires_grad=bool(i)).realize() for i in range(3)] for _ in range(2))
            for i in range(12):
                x, y = (Tensor([1.0 + i], requires_grad=i % 2 == 1).realize() for _ in range(2))
                at = 1 + i % 5 % 2
                self.assertEqual(jit(captured[at], x).item(), function(plain[at], y).item())
                for one, other in ((captured[at], plain[at]), (x, y)):
                    self.assertEqual(one.grad is None, other.grad is None)
                    if one.grad is not None:
                        self.assertEqual(one.grad.item(), other.grad.item())
                if i == 6:
                    plain[1].grad = captured[1].grad = None
            with self.assertRaisesRegex(RuntimeError, "made of no tensor that requires gradients"):
                jit(captured[0], Tensor([1.0]))

    def test_arguments_that_share_memory_which_is_written(self):
        """The program has each as it was at the call: an error instead of a stale element."""
        @TinyJit
        def both(a, b):
            a.assign(a + 1)
            return a + b
        x = Tensor([1.0, 2.0]).realize()
        self.assertEqual(both(x, x).tolist(), [4, 6])
        for other in (x, x[:1]):
            with self.assertRaisesRegex(JitError, "both assigns to argument 0, of which argument 1 has the memory"):
                both(x, other)
        self.assertEqual(x.tolist(), [2, 3])
        self.assertEqual(both(x, x.clone()).tolist(), [5, 7])
        far = tiny.tensor([1.0, 2.0, 3.0, 4.0], context=tiny.Context(device="far", cache=0)).realize()  # no memory of the host's
        both.reset()
        for i in range(3):
            self.assertEqual(both(far[:2], far[2:]).tolist(), [5 + i, 7 + i])
        with self.assertRaisesRegex(JitError, "of which argument 1 has the memory"):
            both(far[:2], far[1:3])
        read = TinyJit(lambda a, b: a * b)
        for _ in range(3):
            self.assertEqual(read(x, x).tolist(), [9, 16])

        @TinyJit
        def slope(a, b):
            return (a * b).sum().backward()
        w = Tensor([1.0, 2.0], requires_grad=True).realize()
        slope(w, w)
        self.assertEqual(w.grad.tolist(), [2, 4])
        with self.assertRaisesRegex(JitError, "slope .* argument .*pass it once"):
            slope(w, w)

    def test_a_gradient_inside(self):
        """What an optimiser of the function took is nobody's afterwards, and says so."""
        w = Tensor([2.0], requires_grad=True)
        optimizer = nn.optim.SGD([w], lr=0.5)

        @TinyJit
        @Tensor.train()
        def step():
            optimizer.zero_grad()
            loss = (w * 2).sum().backward()
            optimizer.step()
            return loss
        step()
        self.assertEqual(w.grad.item(), 2)
        step()
        with self.assertRaisesRegex(JitError, "inside of a program .*step.*return it"):
            print(w.grad)
        step()
        self.assertEqual(w.item(), -1.0)
        w.grad = None
        self.assertIsNone(w.grad)

    def test_two_programs_that_share_parameters(self):
        """As of a generator and what judges it: backward() of one goes through the other's parameters, whose gradients
        were made inside of its program.  What is added to those is nobody's as well."""
        def train(wrap):
            g, d = Tensor([0.5, -1.0], requires_grad=True), Tensor([1.0, 2.0], requires_grad=True)
            of_g, of_d = nn.optim.SGD([g], lr=0.1), nn.optim.SGD([d], lr=0.1)

            def judge(x):
                of_d.zero_grad()
                loss = ((d * g.detach()).sum() - (d * x).sum()).square().backward()
                of_d.step()
                return loss

            def make(x):
                of_g.zero_grad()
                loss = ((d * g).sum() - x.sum()).square().backward()
                of_g.step()
                return loss
            judge, make = wrap(judge), wrap(make)
            with Tensor.train():
                losses = [[judge(x).item(), make(x).item()] for x in (Tensor([0.1 * i, 0.2]) for i in range(6))]
            return losses, d, of_d
        (losses, d, optimizer), (want, *_) = train(TinyJit), train(lambda one: one)
        for got, wanted in zip(sum(losses, []), sum(want, [])):
            self.assertAlmostEqual(got, wanted, delta=1e-5 * (1 + wanted))
        with self.assertRaisesRegex(JitError, "inside of a program"):
            print(d.grad)
        (d * d).sum().backward()
        with self.assertRaisesRegex(JitError, "inside of a program"):
            print(d.grad)
        with Tensor.train(), self.assertRaisesRegex(JitError, "inside of a program"):
            optimizer.step()
        d.grad = None
        (d * 2).sum().backward()
        self.assertEqual(d.grad.tolist(), [2, 2])

    def test_a_capture_that_fails_leaves_what_was(self):
        w = Tensor([1.0, 2.0], requires_grad=True).realize()
        optimizer = nn.optim.SGD([w], lr=0.5, momentum=0.5)

        @TinyJit
        @Tensor.train()
        def step(x, fail):
            optimizer.zero_grad()
            loss = (w * x).sum().backward()
            optimizer.step()
            if fail:
                raise ValueError("on the way")
            return loss
        x = Tensor([1.0, 1.0])
        step(x, False)
        self.assertEqual((w.tolist(), optimizer.b[0].tolist()), ([0.5, 1.5], [1.0, 1.0]))
        with self.assertRaisesRegex(ValueError, "on the way"):
            step(x, True)
        self.assertEqual((w.tolist(), optimizer.b[0].tolist()), ([0.5, 1.5], [1.0, 1.0]))
        step(x, False)
        self.assertEqual(w.tolist(), [-0.25, 0.75])

    def test_lanes_of_a_padded_window_and_of_its_softmax(self):
        def step(x, w, b):
            y = (-x.conv2d(w, b, stride=2, padding=2)).softmax(0)
            return [y, *[g * 1 for g in tiny.gradient([(y * y).sum()], [x, w, b])]]
        x = Tensor.arange(16).reshape(4, 1, 4).float().sin().realize()
        w, b = Tensor([[[0.7]]]).realize(), Tensor([0.3]).realize()
        want = [v.tolist() for v in step(x, w, b)]
        captured = TinyJit(step)
        for _ in range(3):
            for got, value in zip(captured(x, w, b), want, strict=True):
                self.assertLess((got - Tensor(value)).abs().max().item(), 1e-6)

    def test_an_input_that_the_program_writes(self):
        w = Tensor([1.0, 2.0])

        @TinyJit
        def grow(x):
            w.assign(w + x)
            return w.sum()
        self.assertEqual(grow(Tensor([1.0, 1.0])).item(), 5)
        self.assertEqual(grow(Tensor([1.0, 1.0])).item(), 7)
        with self.assertRaisesRegex(tiny.Error, "memory is that of a tensor which the program writes: pass a copy"):
            grow(w)


if __name__ == "__main__":
    unittest.main()
