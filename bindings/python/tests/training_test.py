"""Gradients, random numbers and optimisers: a network that learns, one by one and as a program."""

import copy
import unittest

import numpy as np
import torch

import tiny
from tiny import Tensor, nn


def points(context):
    """Two inputs, and whether their signs differ."""
    x = context.random_key(1).random_uniform(tiny.float32, [64, 2]) * 2 - 1
    y = ((x.slice([0, 0], [64, 1]) * x.slice([0, 1], [64, 2])) < 0).cast(tiny.float32)
    return x, y


class Network:
    def __init__(self, context):
        keys = context.random_key(2).random_split(2)
        normal = lambda i, dims: keys.slice([i, 0], [i + 1, 2]).reshape([2]).random_normal(tiny.float32, dims)  # noqa: E731
        self.parameters = [normal(0, [2, 16]), context.full(tiny.float32, [16], 0),
                           normal(1, [16, 1]), context.full(tiny.float32, [1], 0)]

    def loss(self, x, y):
        w, b, v, c = self.parameters
        error = ((x @ w + b).tanh() @ v + c).sigmoid() - y
        return (error * error).mean()


class Training(unittest.TestCase):
    def setUp(self):
        self.context = tiny.Context(cache=0)
        self.x, self.y = points(self.context)
        tiny.realize([self.x, self.y])
        self.network = Network(self.context)
        self.optimizer = tiny.Optimizer.create(self.context, tiny.OptimizerKind.ADAM)
        self.optimizer.add(self.network.parameters)
        self.optimizer.set(0, "lr", 0.05)

    def step(self, x, y):
        loss = self.network.loss(x, y)
        self.optimizer.step(tiny.gradient([loss], self.network.parameters))
        return loss

    def test_a_program_of_whole_steps(self):
        x, y = (self.context.input(tiny.float32, t.shape) for t in (self.x, self.y))
        loss = self.step(x, y)
        run = tiny.Run.create(tiny.Program.compile([x, y], [loss, *self.network.parameters]))
        run.set_input(0, self.x)
        run.set_input(1, self.y)
        losses = []
        for _ in range(200):
            run.execute()
            losses.append(run.output_tensor(0).item())
        self.assertLess(losses[-1], losses[0] / 10)

        again = Network(self.context)
        optimizer = tiny.Optimizer.create(self.context, tiny.OptimizerKind.ADAM)
        optimizer.add(again.parameters)
        optimizer.set(0, "lr", 0.05)
        for wanted in losses[:5]:
            loss = again.loss(self.x, self.y)
            optimizer.step(tiny.gradient([loss], again.parameters))
            tiny.realize([loss, *again.parameters])
            self.assertEqual(loss.item(), wanted)

    def test_steps_that_a_parameter_has_no_gradient_in_are_none_of_its(self):
        kinds = ((nn.optim.AdamW, torch.optim.AdamW, {"weight_decay": 0.01}),
                 (nn.optim.SGD, torch.optim.SGD, {"momentum": 0.9, "nesterov": True}))
        for ours, theirs, settings in kinds:
            starts = [np.array([1.0, -2.0]), np.array([0.5, 3.0, -1.0])]
            mine, yours = [Tensor(a) for a in starts], [torch.tensor(a, requires_grad=True) for a in starts]
            one, other = ours(mine, lr=0.1, **settings), theirs(yours, lr=0.1, **settings)
            for step, takes_part in enumerate((False, True, True, False, True, True)):
                one.zero_grad()
                other.zero_grad()
                for (x, y), is_tiny in ((mine, True), (yours, False)):
                    loss = (x * x * (step + 1)).sum()
                    loss = loss + (y * y * y).sum() if takes_part else loss
                    loss.backward()
                with Tensor.train():
                    one.step()
                other.step()
                if step == 3:
                    one = copy.deepcopy(one)
                    mine = one.params
                for got, want in zip(mine, yours):
                    np.testing.assert_allclose(got.numpy(), want.detach().numpy(), rtol=1e-6)

    def test_what_an_optimizer_keeps(self):
        self.step(self.x, self.y)
        names = [self.optimizer.state_name(i) for i in range(self.optimizer.state_count())]
        self.assertEqual(names[:3], ["lr.0", "step", "exp_avg.0"])
        self.assertEqual(self.optimizer.state(1).item(), 1)
        self.assertAlmostEqual(self.optimizer.rate(0).item(), 0.05, places=6)
        self.assertEqual(self.optimizer.get(0, "beta2"), 0.999)
        with self.assertRaisesRegex(tiny.Error, 'no setting "betas"; did you mean "beta'):
            self.optimizer.set(0, "betas", 0.5)

    def test_gradients(self):
        x = tiny.tensor([1.0, 2.0], context=self.context)
        y = tiny.tensor([5.0], context=self.context)
        with self.assertRaisesRegex(tiny.Error, "no part in the losses"):
            tiny.gradient([x.sum()], [x, y])
        of_x, of_y = tiny.gradient([x.sum()], [x, y], allow_unused=True)
        self.assertEqual((of_x.tolist(), of_y.tolist()), ([1.0, 1.0], [0.0]))
        with self.assertRaisesRegex(tiny.Error, "one element"):
            tiny.gradient([x * x], [x])
        self.assertEqual(tiny.gradient([x * x], [x], [x])[0].tolist(), [2.0, 8.0])

    def test_losses_and_rates(self):
        logits = tiny.tensor([[0.0, 0.0], [0.0, 0.0]], context=self.context)
        classes = tiny.tensor([1, -100], context=self.context)
        self.assertAlmostEqual(logits.cross_entropy(classes).item(), 0.6931472, places=6)
        none = logits.cross_entropy(classes, reduction=tiny.Reduction.NONE)
        self.assertEqual(none.tolist()[1], 0.0)
        zeros, twos = (self.context.full(tiny.float32, [3], v) for v in (0, 2))
        self.assertEqual(zeros.mse_loss(twos).item(), 4.0)
        self.assertEqual(zeros.l1_loss(twos, tiny.Reduction.SUM).item(), 6.0)
        with self.assertRaisesRegex(tiny.Error, "reduction is 9"):
            zeros.mse_loss(twos, 9)
        norm = tiny.gradient_norm([zeros, twos])
        self.assertAlmostEqual(tiny.clip_by_norm([zeros, twos], norm, 1.0)[1].tolist()[0], 0.5773503, places=5)
        self.assertAlmostEqual(tiny.rate_step(0.5, 60, 30, 0.1), 0.005)
        self.assertAlmostEqual(tiny.rate_multi_step(0.5, 40, [30, 80], 0.1), 0.05)
        self.assertAlmostEqual(tiny.rate_cosine(1.0, 5, 10, 0.0), 0.5)
        with self.assertRaisesRegex(tiny.Error, "counted from 0"):
            tiny.rate_warm_up(1.0, -1, 10, 0.0)

    def test_layers(self):
        module = tiny.Module.create(self.context, 3)

        def network(x):
            h = module.linear("fc1", x, 16)
            h = module.batch_norm("bn", h).tanh()
            return module.linear("fc2", module.dropout(h, 0.1), 1).sigmoid()

        def loss(x, y):
            return network(x).binary_cross_entropy(y)
        loss(self.x, self.y)
        parameters = [module.parameter_at(i) for i in range(module.parameter_count)]
        self.assertEqual([module.parameter_name(i) for i in range(module.parameter_count)],
                         ["fc1.weight", "fc1.bias", "bn.weight", "bn.bias", "fc2.weight", "fc2.bias"])
        optimizer = tiny.Optimizer.create(self.context, tiny.OptimizerKind.ADAMW)
        optimizer.add(parameters)
        optimizer.set(0, "lr", 0.05)
        optimizer.set(0, "ema_decay", 0.9)
        x, y = (self.context.input(tiny.float32, t.shape) for t in (self.x, self.y))
        value = loss(x, y)
        optimizer.step(tiny.gradient([value], parameters))
        run = tiny.Run.create(tiny.Program.compile([x, y], [value, *parameters]))
        run.set_input(0, self.x)
        run.set_input(1, self.y)
        losses = []
        for _ in range(200):
            run.execute()
            losses.append(run.output_tensor(0).item())
        self.assertLess(losses[-1], losses[0] / 3)
        state = module.state()
        self.assertEqual(state.get("bn.num_batches_tracked").item(), 200)
        names = [optimizer.state_name(i) for i in range(optimizer.state_count())]
        self.assertEqual(optimizer.state(names.index("ema.0")).shape, parameters[0].shape)
        module.set_training(False)
        self.assertFalse(module.is_training)
        shares = network(self.x)
        right = ((shares > 0.5).cast(tiny.float32) - self.y).abs().mean().item()
        self.assertLess(right, 0.05)
        # Another process' network goes on where this one stands.
        other = tiny.Module.create(self.context, 4)
        place = other.child("encoder")
        place.linear("fc1", self.x, 16)
        place.state().assign(state, partial=True)
        self.assertEqual(other.state().get("encoder.fc1.weight").tolist(), parameters[0].tolist())
        with self.assertRaisesRegex(tiny.Error, r'"fc1.weight" has the shape \[16, 2\]; wanted \[8, 2\]'):
            module.linear("fc1", self.x, 8)
        with self.assertRaisesRegex(tiny.Error, "recurrent kind 7"):
            module.recurrent("rnn", 7, self.x, 4, 1)
        steps = self.context.full(tiny.float32, [5, 2, 3], 0.5)
        y, h = module.recurrent("gru", tiny.RecurrentKind.GRU, steps, 4, 2, bidirectional=True)
        self.assertEqual((list(y.shape), list(h.shape)), ([5, 2, 8], [2, 2, 4]))
        seen = module.attention("mha", y, y, y, 2, causal=True)
        self.assertEqual(list(seen.shape), [5, 2, 8])
        picture = self.context.full(tiny.float32, [1, 3, 8, 8], 1)
        made = module.conv("conv", picture, 4, tiny.Window(2, kernel=3, strides=2), no_bias=True)
        self.assertEqual(list(made.shape), [1, 4, 3, 3])

    def test_generators(self):
        numbers = tiny.Generator.create(self.context, 5)
        first = numbers.next().random_uniform(tiny.float32, [4]).tolist()
        self.assertNotEqual(numbers.next().random_uniform(tiny.float32, [4]).tolist(), first)
        again = tiny.Generator.create(self.context, 5)
        self.assertEqual(again.next().random_uniform(tiny.float32, [4]).tolist(), first)
        weight = again.next().initialize(tiny.Initial.KAIMING_UNIFORM, tiny.float32, [8, 6], a=1)
        self.assertLessEqual(max(map(abs, sum(weight.tolist(), []))), (3 / 6) ** 0.5)

    def test_values_that_are_computed_again(self):
        """A deep network in a program of whole steps: the same losses, in less memory."""
        def steps(again):
            keys = self.context.random_key(5).random_split(12)
            weights = [keys[i].random_normal(tiny.float32, [32, 32]) * 0.2 for i in range(12)]
            tiny.realize(weights)
            optimizer = tiny.Optimizer.create(self.context, tiny.OptimizerKind.ADAM)
            optimizer.add(weights)
            x = self.context.input(tiny.float32, [256, 32])
            y = x
            for i, w in enumerate(weights):
                y = y + keys[i].dropout((y @ w).gelu().sin(), 0.1)
                y = y.recompute() if again else y
            loss = (y * y).mean()
            optimizer.step(tiny.gradient([loss], weights))
            program = tiny.Program.compile([x], [loss, *weights])
            run = tiny.Run.create(program)
            run.set_input(0, self.context.random_key(6).random_normal(tiny.float32, [256, 32]))
            losses = []
            for _ in range(10):
                run.execute()
                losses.append(run.output_tensor(0).item())
            return losses, program.memory[0]
        kept, memory_kept = steps(False)
        again, memory_again = steps(True)
        self.assertLess(kept[-1], kept[0])
        for a, b in zip(kept, again):
            self.assertAlmostEqual(a, b, delta=1e-4 * a)
        self.assertLess(memory_again, memory_kept * 2 / 3)

    def test_many_steps_keep_no_memory(self):
        """10,000 steps of a program, and 300 whose graphs are built each time."""
        def resident():
            with open("/proc/self/statm", encoding="ascii") as file:
                return int(file.read().split()[1]) * 4096
        x, y = (self.context.input(tiny.float32, t.shape) for t in (self.x, self.y))
        loss = self.step(x, y)
        run = tiny.Run.create(tiny.Program.compile([x, y], [loss, *self.network.parameters]))
        run.set_input(0, self.x)
        run.set_input(1, self.y)
        for _ in range(500):
            run.execute()
        before = resident()
        for _ in range(10_000):
            run.execute()
        self.assertLess(resident() - before, 1 << 20)

        def build():
            made = [self.step(self.x, self.y), *self.network.parameters]
            tiny.realize(made)
        for _ in range(50):
            build()
        before = resident()
        for _ in range(300):
            build()
        self.assertLess(resident() - before, 1 << 20)


if __name__ == "__main__":
    unittest.main()
