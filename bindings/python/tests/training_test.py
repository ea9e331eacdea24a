"""Gradients, random numbers and optimisers: a network that learns, one by one and as a program."""

import unittest

import tiny


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


if __name__ == "__main__":
    unittest.main()
