"""Tensors over several devices: what is computed of them equals what one device computes, and so do gradients and steps."""

import os
import pickle
import unittest

import numpy

import tiny
from tiny import Tensor, nn
from tiny._reading import Reading
from tiny.nn import optim

# Names of devices that are there, or contexts of one device: as many partitions of the processor.
NAMES = os.environ.get("SHARDING_DEVICES", "cpu far interp").split()
RANDOM = numpy.random.default_rng(7)


def devices(count):
    if NAMES == ["partitions"]:
        return [tiny.Context(device="cpu", threads=1) for _ in range(count)]
    return [name.upper() for name in NAMES[:count]]


def numbers(*shape):
    return RANDOM.standard_normal(shape).astype(numpy.float32)


class Sharding(unittest.TestCase):
    def setUp(self):
        self.two = devices(2)
        self.many = devices(len(NAMES) if NAMES != ["partitions"] else 4)
        try:
            self.here = tiny.default_context()
            if NAMES != ["partitions"]:
                for name in NAMES[::-1]:
                    self.here = tiny.default_context().on_device(name)
        except RuntimeError as error:  # no driver
            self.skipTest(str(error))

    def over(self, array, axis, over=None):
        return Tensor(array, context=self.here).shard(over or self.two, axis)

    def close(self, made, wanted, tolerance=1e-5):
        numpy.testing.assert_allclose(made.numpy(), wanted, rtol=tolerance, atol=tolerance)
        self.assertEqual(made.shape, wanted.shape)

    def test_parts_and_copies(self):
        array = numbers(12, 4)
        for axis in (0, 1, -1, None):
            x = self.over(array, axis)
            self.assertEqual((x.shape, x.dtype, len(x.device)), ((12, 4), tiny.dtypes.float32, 2))
            self.close(x, array)
            for device in self.two:
                if isinstance(device, str):
                    self.close(x.to(device), array)
                    self.assertEqual(x.to(device).device.upper(), device)
            for other in (0, 1, None):
                self.close(x.shard(None, other), array)
        with self.assertRaisesRegex(RuntimeError, "no multiple of 2"):
            self.over(numbers(3, 4), 0)
        x = self.over(array, 0)
        self.close(x.to(tiny.float64), array.astype("float64"))
        self.close(x.hypot(x).amax(axis=1), numpy.hypot(array, array).max(1))
        with self.assertRaisesRegex(NotImplementedError, "add_ of a tensor over"):
            x.add_(1)
        x = Tensor(array, context=self.here)
        self.assertIs(x.shard_(self.two, 0), x)
        self.close(x, array)

    def test_copies_by_to(self):
        array = numbers(3)
        x = Tensor(array, context=self.here).to(tuple(self.two))
        self.assertEqual((x.axis, len(x.device)), (None, 2))
        self.close(x + 1, array + 1)
        y = Tensor(array, context=self.here)
        self.assertIs(y.to_(tuple(self.two)), y)
        self.close(x + y, 2 * array)
        if NAMES != ["partitions"]:
            self.close(Tensor(array, device=tuple(self.two)) * y, array * array)

    def test_elements(self):
        a, b, row = numbers(4, 6), numbers(4, 6), numbers(6)
        for left in (0, 1, None):
            for right in (0, 1, None):
                x, y = self.over(a, left), self.over(b, right)
                self.close((x * 2 + y).exp(), numpy.exp(a * 2 + b))
                self.close(1 - x / (y * y + 1), 1 - a / (b * b + 1))
                self.close((x > y).where(x, y), numpy.maximum(a, b))
                self.close(x.maximum(y), numpy.maximum(a, b))
            self.close(self.over(a, left) + self.over(row, None), a + row)
            self.close(self.over(row, None) - self.over(a, left).relu(), row - numpy.maximum(a, 0))

    def test_reductions(self):
        array = numbers(12, 6, 2)
        for sharded in (0, None):
            for axis in (None, 0, 1, (0, 2)):
                for keep in (False, True):
                    x = self.over(array, sharded, self.many)
                    for name in ("sum", "mean", "max", "min", "prod"):
                        wanted = getattr(array, name)(axis=axis, keepdims=keep)
                        self.close(getattr(x, name)(axis=axis, keepdim=keep), numpy.asarray(wanted), 1e-4)
            self.close(x.sum(0) * 2 + x.sum(0) - 1, array.sum(0) * 3 - 1, 1e-4)
            self.close(x.var(0), array.var(0, ddof=1))
            self.close(x.softmax(1).sum(1), numpy.ones((12, 2)))
            self.close(x.softmax(0).sum(0), numpy.ones((6, 2)))
            self.assertEqual(x.argmax(0).tolist(), array.argmax(0).tolist())

    def test_products(self):
        a, b = numbers(4, 8), numbers(8, 6)
        for left in (0, 1, None):
            for right in (0, 1, None):
                self.close(self.over(a, left) @ self.over(b, right), a @ b)
        batch = numbers(2, 4, 8)
        self.close(self.over(batch, 0) @ self.over(b, None), batch @ b)
        self.close(self.over(batch, 0) @ self.over(numbers(2, 8, 3) * 0 + 1, 0), batch.sum(-1, keepdims=True).repeat(3, -1))
        self.close(self.over(a, 0) @ self.over(b[:, 0], None), a @ b[:, 0])

    def test_movement(self):
        array = numbers(4, 6, 2)
        x = self.over(array, 1)
        self.close(x.permute(2, 0, 1), array.transpose(2, 0, 1))
        self.close(x.transpose(0, 1), array.swapaxes(0, 1))
        self.close(x.reshape(2, 2, 6, 2), array.reshape(2, 2, 6, 2))
        self.close(x.reshape(4, 12), array.reshape(4, 12))
        self.close(x.unsqueeze(0).expand(3, 4, 6, 2), numpy.broadcast_to(array, (3, 4, 6, 2)))
        self.close(x[1:3], array[1:3])
        self.close(x[2, :, None, 1], array[2, :, None, 1])
        self.close(x[:, 1:4], array[:, 1:4])
        self.close(x.flip(1), numpy.flip(array, 1))
        with self.assertRaisesRegex(RuntimeError, "would go to other devices"):
            x.reshape(24, 2)

    def test_layers(self):
        ids, table = RANDOM.integers(0, 7, (4, 3)), numbers(7, 8)
        x = self.over(table, None)[self.over(ids, 0)]
        self.assertEqual(x.axis, 0)
        self.close(x, table[ids])
        self.close(self.over(table, 1)[self.over(ids, 0)], table[ids])
        layers = [nn.Embedding(7, 8), nn.LayerNorm(8), lambda x: x.scaled_dot_product_attention(x, x, is_causal=True),
                  nn.Linear(8, 5), lambda x: x.log_softmax(-1)]
        wanted = Tensor(ids).sequential(layers).numpy()
        for parameter in nn.state.get_parameters(layers):
            parameter.shard_(self.two)
        for axis in (0, None):
            made = self.over(ids, axis).sequential(layers)
            self.assertEqual(made.axis, axis)
            self.close(made, wanted)
        images, kernel, bias = numbers(4, 2, 5, 5), numbers(3, 2, 3, 3), numbers(3)
        wanted = Tensor(images).conv2d(Tensor(kernel), Tensor(bias)).numpy()
        for axis in (0, None):
            self.close(self.over(images, axis).conv2d(self.over(kernel, None), bias=self.over(bias, None)), wanted)
        with Tensor.train():
            dropped = self.over(numpy.ones((4, 100), numpy.float32), 0).dropout(0.5)
            self.assertEqual(dropped.axis, 0)
            self.assertLess(abs(dropped.mean().item() - 1), 0.3)
            with self.assertRaisesRegex(NotImplementedError, "of copies"):
                self.over(numbers(4), None).dropout(0.5)

    def test_every_device_has_the_same_bits(self):
        x = self.over(numbers(12 * 40, 5), 0, self.many).sum(0)
        parts = [part.numpy().tobytes() for part in x.whole()._parts]
        self.assertEqual(len(set(parts)), 1)

    def gradients(self, function, arrays, axes):
        """Of the function of leaves over devices, and of leaves on one."""
        single = [Tensor(one, requires_grad=True) for one in arrays]
        with Tensor.train():
            function(*single).backward()
        for over in axes:
            leaves = [Tensor(one, context=self.here, requires_grad=True).shard_(self.two, axis)
                      for one, axis in zip(arrays, over)]
            with Tensor.train():
                function(*leaves).backward()
            for leaf, alone in zip(leaves, single):
                self.close(leaf.grad, alone.grad.numpy(), 1e-4)

    def test_gradients(self):
        self.gradients(lambda x, w: (x @ w).relu().square().mean(), [numbers(4, 6), numbers(6, 8)],
                       [(0, None), (None, None), (None, 1), (1, 0), (0, 0), (1, None), (None, 0)])
        # Statistics of all parts in the middle.
        self.gradients(lambda x, w: (((x - x.mean(0)) / (x.var(0) + 1).sqrt()) * w).exp().mean(),
                       [numbers(4, 6), numbers(6)], [(0, None), (1, 0), (None, None)])
        self.gradients(lambda x, w: (x.softmax(0) * w).sum(), [numbers(4, 6), numbers(4, 6)], [(0, 1), (0, 0)])
        self.gradients(lambda x, w: x.sparse_categorical_crossentropy(Tensor([1, 2, 0, 3]).shard_like(x)) + w.square().sum()
                       if hasattr(x, "_parts") and x.axis == 0 else
                       x.sparse_categorical_crossentropy(Tensor([1, 2, 0, 3])) + w.square().sum(),
                       [numbers(4, 5), numbers(2)], [(0, None)])

    # What reached each part of a tensor that was on one device reaches it.
    def test_gradients_of_what_was_spread(self):
        array = numbers(4, 3)
        for axis in (0, None):
            x = Tensor(array, context=self.here, requires_grad=True)
            with Tensor.train():
                (x.shard(self.two, axis) * 3).square().sum().backward()
            self.close(x.grad, 18 * array)

    # In tinygrad's reading gradients reach all floats that are alive, also through what devices exchanged.
    def test_steps_in_tinygrads_reading(self):
        weights, gains, array = numbers(6, 5), numbers(5), numbers(8, 6)

        def steps(devices, jit):
            weight, gain, x = (Tensor(one, context=self.here) for one in (weights, gains, array))
            y = Tensor(numpy.arange(8) % 5, context=self.here)
            if devices:
                weight.shard_(devices), gain.shard_(devices), x.shard_(devices, 0), y.shard_(devices, 0)
            optimizer = optim.SGD([weight, gain], 0.1)

            def step(x, y):
                optimizer.zero_grad()
                made = x @ weight
                made = (made - made.mean(0)) / (made.var(0) + 1).sqrt() * gain
                loss = made.sparse_categorical_crossentropy(y).backward()
                optimizer.step()
                return loss
            function = tiny.TinyJit(step) if jit else step
            with Tensor.train():
                losses = [function(x, y).item() for _ in range(4)]
            return [numpy.array(losses), weight.numpy(), gain.numpy()]
        Reading.tinygrad = True
        try:
            alone = steps(None, False)
            for jit in (False, True):
                for made, wanted in zip(steps(self.two, jit), alone):
                    numpy.testing.assert_allclose(made, wanted, rtol=1e-4, atol=1e-6)
        finally:
            Reading.tinygrad = False

    def train(self, spread, kind, steps=4, jit=lambda step: step):
        """A network with batch norm; its state, and the losses."""
        Tensor.manual_seed(3)
        tiny.Tensor.training = True
        layers = [nn.Conv2d(1, 4, 3, bias=False), nn.BatchNorm(4), Tensor.relu, lambda x: x.flatten(1), nn.Linear(64, 5)]
        rng, losses = numpy.random.default_rng(1), []
        try:
            # Parameters are made in the default context, and go where the data is.
            parameters = nn.state.get_parameters(layers)
            buffers = [layers[1].running_mean, layers[1].running_var, layers[1].num_batches_tracked]
            if spread:
                for one in {id(one): one for one in [*parameters, *buffers]}.values():
                    one.shard_(self.two)
            trained = [one for one in parameters if one.requires_grad is not False]
            optimizer = kind([one for one in trained if all(one is not other for other in buffers)])

            def step(x, y):
                optimizer.zero_grad()
                loss = x.sequential(layers).sparse_categorical_crossentropy(y)
                loss.backward()
                optimizer.step()
                return loss
            step = jit(step)
            for _ in range(steps):
                x = Tensor(rng.standard_normal((8, 1, 6, 6)).astype(numpy.float32))
                y = Tensor(rng.integers(0, 5, 8))
                if spread:
                    x, y = x.shard(self.two, 0), y.shard(self.two, 0)
                losses.append(step(x, y).item())
        finally:
            tiny.Tensor.training = False
        return losses, [one.numpy() for one in [*parameters, *buffers]], parameters

    def equals_one_device(self, kind):
        alone, values, _ = self.train(False, kind)
        losses, spread, parameters = self.train(True, kind)
        numpy.testing.assert_allclose(losses, alone, rtol=1e-4)
        for one, wanted in zip(spread, values):
            numpy.testing.assert_allclose(one, wanted, rtol=2e-3, atol=2e-4)
        # Copies stay copies.
        for one in parameters:
            self.assertEqual(len({part.numpy().tobytes() for part in one._parts}), 1)

    def test_training_by_sgd(self):
        self.equals_one_device(lambda parameters: optim.SGD(parameters, 0.1, momentum=0.9))

    def test_training_by_adamw(self):
        self.equals_one_device(lambda parameters: optim.AdamW(parameters, 0.01))

    # A step is captured once, exchanges and all.  Kernels may be chosen otherwise than for a call: sums agree to rounding.
    def test_steps_as_one_program(self):
        def kind(parameters):
            return optim.SGD(parameters, 0.1, momentum=0.9)
        losses, values, _ = self.train(True, kind)
        captured, same, parameters = self.train(True, kind, jit=tiny.TinyJit)
        numpy.testing.assert_allclose(captured, losses, rtol=1e-5)
        for one, wanted in zip(same, values):
            numpy.testing.assert_allclose(one, wanted, rtol=1e-4, atol=1e-6)
        for one in parameters:
            self.assertEqual(len({part.numpy().tobytes() for part in one._parts}), 1)

    def test_programs_of_tensors_over_devices(self):
        arrays = [numbers(4, 6) for _ in range(4)]
        weight = self.over(numbers(6, 4), 1)
        for axis in (0, 1, None):
            function = tiny.TinyJit(lambda x: {"all": x.softmax(0) @ weight, "top": (x.max(), x.sum(0))})
            for array in arrays:
                made = function(self.over(array, axis))
                rows = numpy.exp(array) / numpy.exp(array).sum(0)
                self.close(made["all"], rows @ weight.numpy())
                self.close(made["top"][0], numpy.asarray(array.max()))
                self.close(made["top"][1], array.sum(0))
            with self.assertRaisesRegex(TypeError, "over several devices cannot be pickled"):
                pickle.dumps(function)
            self.close(function(self.over(arrays[0][:2], axis))["top"][1], arrays[0][:2].sum(0))
            self.assertEqual(len(function._programs), 2)  # another shape

    # What is spread inside of the function, of numbers that each call draws anew.
    def test_samples_that_a_program_spreads(self):
        table = Tensor(numbers(50, 3), context=self.here).realize()
        weight = self.over(numbers(3), None)

        def step():
            at = self.here.arange(tiny.int64, 8) * 5 + counter
            counter.assign((counter + 1) % 7)
            x = table[at].shard(self.two, 0)
            return (x * weight).sum(), x.whole().to(self.two[0]) if isinstance(self.two[0], str) else x.whole()
        results = []
        for function in (step, tiny.TinyJit(step)):
            counter = Tensor(numpy.zeros(1, numpy.int64), context=self.here)
            results.append([[one.numpy() for one in function()] for _ in range(6)])
        for call, replay in zip(*results):
            self.assertEqual(replay[1].tobytes(), call[1].tobytes())
            numpy.testing.assert_allclose(replay[0], call[0], rtol=1e-5, atol=1e-6)
        self.assertEqual(len({rows.tobytes() for _, rows in results[1]}), 6)

    # Parts of one tensor along an axis, which a program needs whole and writes.
    def test_programs_that_write_parts(self):
        array = numbers(4, 2)

        def step(x):
            old = weight.softmax(0).sum(1)
            weight.assign(weight * 0.5 + x)
            x.assign(x + 1)
            return old, weight.softmax(0)
        kept = []
        for function in (step, tiny.TinyJit(step)):
            weight, given = self.over(array, 0), self.over(array * 2, 0)
            results = []
            for _ in range(5):
                results += [one.numpy() for one in function(given)]
                results += [weight.whole().numpy(), given.whole().numpy()]
            kept.append(results)
        for call, replay in zip(*kept):
            numpy.testing.assert_allclose(replay, call, rtol=1e-5)

    def test_steps_of_parts_of_parameters(self):
        array, found = numbers(4, 2), []
        for way in ("one device", "call", "program"):
            weight = Tensor(array, context=self.here, requires_grad=True)
            x = Tensor(numpy.ones((3, 4), numpy.float32), context=self.here)
            if way != "one device":
                weight.shard_(self.two, 0)
                x = x.shard(self.two)
            optimizer = optim.SGD([weight], 0.5)

            def step(x):
                optimizer.zero_grad()
                loss = (x * weight.softmax(0).square().sum(1)).sum()
                loss.backward()
                optimizer.step()
                return loss
            function = tiny.TinyJit(step) if way == "program" else step
            with Tensor.train():
                found.append([function(x).item() for _ in range(4)])
        numpy.testing.assert_allclose(found[1], found[0], rtol=1e-5)
        numpy.testing.assert_allclose(found[2], found[0], rtol=1e-5)

    # Nobody's tensors over devices, but each device's own.
    def test_exchanges_of_a_program(self):
        contexts = [one._parts for one in [self.over(numbers(2), None, self.many)]][0]
        contexts = [part.context for part in contexts]

        def function(*tensors):
            added = tiny.allreduce([one * 2 for one in tensors], tiny.ReduceOp.SUM)
            return tiny.allgather([one + i for i, one in enumerate(added)], 0)
        captured = tiny.TinyJit(function)
        for _ in range(4):
            arrays = [numbers(3, 2) for _ in contexts]
            total = sum(2 * one for one in arrays)
            wanted = numpy.concatenate([total + i for i in range(len(arrays))])
            for one in captured(*(Tensor(array, context=context) for array, context in zip(arrays, contexts))):
                self.close(one, wanted)

    def test_mistakes(self):
        x = self.over(numbers(4, 2), 0)
        with self.assertRaisesRegex(RuntimeError, "shard\\(\\) puts it there too"):
            x + Tensor(numbers(4, 2))
        with self.assertRaisesRegex(RuntimeError, "shard\\(\\) puts it there too"):
            Tensor(numbers(4, 2)) * x
        with self.assertRaisesRegex(NotImplementedError, "to\\(\\) brings it to one device"):
            x.data_ptr()
        with self.assertRaisesRegex(NotImplementedError, "where one device's is wanted"):
            x.context
        with self.assertRaisesRegex(TypeError, "all over the same devices"):
            optim.SGD([x, Tensor([1.0])])
        with self.assertRaisesRegex(RuntimeError, "over"):
            x + self.over(numbers(4, 2), 0, self.two[::-1])
        with self.assertRaises(ValueError):
            Tensor([1.0, 2.0]).shard([])
        with self.assertRaises(Exception):  # made of nobody's handle
            Tensor.cat(Tensor(numbers(4, 2)), x)

    def test_writes(self):
        x = self.over(numbers(4, 2), 0)
        array = numbers(4, 2)
        x.assign(self.over(array, None))
        self.close(x, array)
        for axis in (0, None):
            source = Tensor(array, context=self.here).realize()
            source.shard(self.two, axis).assign(self.over(array + 1, None)).realize()
            self.close(source, array)
        before = x.sum(0).numpy()
        x.assign(x * 2).realize()
        self.close(x.sum(0), before * 2)


if __name__ == "__main__":
    unittest.main()
