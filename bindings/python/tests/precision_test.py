"""Networks of 16-bit floats: float32 masters, scaled losses, steps that overflow, in programs too."""

import unittest

import tiny

SCALE = 2.0 ** 15


class Precision(unittest.TestCase):
    def setUp(self):
        self.context = tiny.Context(cache=0)
        keys = self.context.random_key(3).random_split(3)
        key = lambda i: keys.slice([i, 0], [i + 1, 2]).reshape([2])  # noqa: E731
        self.x = key(0).random_normal(tiny.float32, [64, 8])
        self.y = (self.x.sum(axes=1, keepdims=True) > 0).cast(tiny.float32)
        self.first = key(1).random_normal(tiny.float32, [8, 32]) * 0.35
        self.last = key(2).random_normal(tiny.float32, [32, 1]) * 0.2
        tiny.realize([self.x, self.y, self.first, self.last])

    def network(self, dtype):
        parameters = [self.first.cast(dtype), self.last.cast(dtype)]
        optimizer = tiny.Optimizer.create(self.context, tiny.OptimizerKind.SGD)
        optimizer.add(parameters)
        optimizer.set(0, "momentum", 0.9)
        optimizer.set(0, "lr", 0.1)
        return parameters, optimizer

    def loss(self, parameters, x, y, dtype):
        logits = (x.cast(dtype) @ parameters[0]).tanh() @ parameters[1]
        return logits.cast(tiny.float32).binary_cross_entropy_with_logits(y)

    def state(self, optimizer):
        return {optimizer.state_name(i): optimizer.state(i) for i in range(optimizer.state_count())}

    def train(self, dtype, in_program, steps=150):
        """The losses, the parameters, the optimiser's state and the scaler after steps, of which one overflows."""
        parameters, optimizer = self.network(dtype)
        scaler = tiny.LossScaler.create(self.context, SCALE, 40)
        x, y = self.x, self.y
        if in_program:
            x, y = (self.context.input(tiny.float32, t.shape) for t in (self.x, self.y))

        def step():
            loss = self.loss(parameters, x, y, dtype)
            scaled = tiny.gradient([scaler.scale(loss)], parameters)
            optimizer.step(scaler.unscale(scaled), scaler.skip())
            return [loss, *parameters, scaler.factor()]

        infinite = self.context.full(tiny.float32, self.x.shape, float("inf"))
        losses, factors = [], []
        if in_program:
            run = tiny.Run.create(tiny.Program.compile([x, y], step()))
            run.set_input(1, self.y)
        for i in range(steps):
            batch = infinite if i == 10 else self.x
            if in_program:
                run.set_input(0, batch)
                run.execute()
                losses.append(run.output_tensor(0).item())
            else:
                x = batch
                made = step()
                tiny.realize(made)
                losses.append(made[0].item())
            factors.append(scaler.factor().item())
            if i == 9:
                before = [p.tolist() for p in [*parameters, *self.state(optimizer).values()]]
            if i == 10:
                after = [p.tolist() for p in [*parameters, *self.state(optimizer).values()]]
                self.assertEqual(after, before)
        return losses, factors, parameters, self.state(optimizer)

    def check(self, dtype):
        losses, factors, parameters, state = self.train(dtype, in_program=False)
        self.assertLess(losses[-1], losses[0] / 3)
        self.assertNotEqual(losses[10], losses[10])  # NaN, and nothing of it stays
        # Halved by the step that failed, doubled after 40 good ones in a row.
        self.assertEqual([factors[i] for i in (9, 10, 49, 50, 90, 130)],
                         [SCALE, SCALE / 2, SCALE / 2, SCALE, 2 * SCALE, 4 * SCALE])
        # Parameters are what their masters round to, which they are more than.
        for i, parameter in enumerate(parameters):
            master = state[f"master.{i}"]
            self.assertEqual(master.dtype, tiny.float32)
            self.assertEqual(parameter.dtype, dtype)
            self.assertEqual(master.cast(dtype).tolist(), parameter.tolist())
            self.assertNotEqual(master.tolist(), parameter.cast(tiny.float32).tolist())
        of_program = self.train(dtype, in_program=True)
        self.assertEqual(of_program[1], factors)
        self.assertEqual([x for x in of_program[0] if x == x], [x for x in losses if x == x])

    def test_float16(self):
        self.check(tiny.float16)

    def test_bfloat16(self):
        self.check(tiny.bfloat16)

    def test_gradients_that_float16_loses(self):
        w = self.context.full(tiny.float16, [1], 1)
        tiny.realize([w])
        loss = lambda: (w * 2.0 ** -14).cast(tiny.float32).sum() * 2.0 ** -14  # noqa: E731
        self.assertEqual(tiny.gradient([loss()], [w])[0].tolist(), [0.0])
        scaler = tiny.LossScaler.create(self.context, SCALE, 10)
        scaled = tiny.gradient([scaler.scale(loss())], [w])
        self.assertEqual(scaler.unscale(scaled)[0].tolist(), [2.0 ** -28])

    def test_what_a_scaler_refuses(self):
        with self.assertRaisesRegex(tiny.Error, "tiny_loss_scaler_create: .*-1"):
            tiny.LossScaler.create(self.context, -1.0, 10)
        scaler = tiny.LossScaler.create(self.context, SCALE, 10)
        with self.assertRaisesRegex(tiny.Error, "tiny_loss_scaler_skip: no gradients"):
            scaler.skip()
        with self.assertRaisesRegex(tiny.Error, "tiny_loss_scaler_scale: a loss of int64"):
            scaler.scale(tiny.tensor([1], context=self.context))
        stranger = tiny.tensor([1.0], context=tiny.Context(cache=0))
        with self.assertRaisesRegex(tiny.Error, "tiny_loss_scaler_scale: loss is of another context"):
            scaler.scale(stranger)
        with self.assertRaisesRegex(tiny.Error, "tiny_loss_scaler_unscale: gradients of another context"):
            scaler.unscale([stranger])

    def test_a_plateau(self):
        plateau = tiny.Plateau.create(1.0, 0.5, 1, 1e-4, 0, 0.1)
        self.assertEqual([plateau.next(m) for m in (2.0, 1.0, 1.0, 1.0, 1.0)], [1.0, 1.0, 1.0, 0.5, 0.5])
        again = tiny.Plateau.create(9.0, 0.5, 1, 1e-4, 0, 0.1)
        for name in ("rate", "best", "bad_steps", "cooling"):
            again.set(name, plateau.get(name))
        self.assertEqual([again.next(1.0) for _ in range(4)], [plateau.next(1.0) for _ in range(4)])
        with self.assertRaisesRegex(tiny.Error, 'no "bad_step"; did you mean "bad_steps"'):
            plateau.get("bad_step")


if __name__ == "__main__":
    unittest.main()
