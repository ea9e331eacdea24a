"""Gradients as tinygrad reads backward(): of every float tensor that is alive and has a part in the loss."""

import gc
import unittest

import tiny
from tiny import Tensor, TinyJit, _tape, nn
from tiny._reading import Reading


class OfTinygrad(unittest.TestCase):
    def setUp(self):
        Reading.tinygrad = True

    def tearDown(self):
        Reading.tinygrad = False


class Backward(OfTinygrad):
    def test_all_that_is_alive(self):
        x, y, apart = Tensor([1.0, 2.0]), Tensor([3.0, 4.0]), Tensor([5.0, 6.0])
        middle = x * y
        middle.sum().backward()
        self.assertEqual((x.grad.tolist(), y.grad.tolist(), middle.grad.tolist()), ([3, 4], [1, 2], [1, 1]))
        self.assertIsNone(apart.grad)
        self.assertIsNone(Tensor([1, 2]).grad)

    def test_it_adds_up_in_place(self):
        x = Tensor([3.0])
        (x * 2)[0].backward()
        first = x.grad
        (x * 3)[0].backward()
        (x * x)[0].backward()
        self.assertIs(x.grad, first)
        self.assertEqual(x.grad.item(), 11)

    def test_views_and_values_that_were_computed(self):
        a = Tensor([3.0])
        wide = a.expand(6)
        x = Tensor.rand(3, 2).realize()
        part = x[1:]
        loss = (wide.reshape(3, 2) * x).sum() + part.sum()
        part.realize()
        wide.realize()
        loss.backward()
        self.assertEqual(x.grad.tolist(), [[3, 3], [4, 4], [4, 4]])
        self.assertEqual(part.grad.tolist(), [[1, 1], [1, 1]])
        self.assertEqual(wide.grad.tolist(), sum(x.tolist(), []))
        made = Tensor.rand(4)
        loss = (made * made).sum()
        values = made.realize().tolist()  # between the forward and the backward pass
        self.assertEqual(loss.gradient(made)[0].tolist(), [value * 2 for value in values])

    def test_what_no_gradient_reaches(self):
        base = Tensor([1.0, 2.0])
        x = base.detach() * 1
        (x * 2).sum().backward()
        self.assertEqual((x.grad.tolist(), base.grad.tolist()), ([2, 2], [0, 0]))
        number = Tensor(2.0)
        (Tensor([1.0]).sum() * number).backward()
        self.assertIsNone(number.grad)

    def test_what_numbers_alone_make_has_none(self):
        places = Tensor.arange(4).float().reshape(2, 2)
        self.assertEqual(places.tolist(), [[0, 1], [2, 3]])  # nor has what was read
        x = places.clone()
        (x * x).sum().backward()
        self.assertIsNone(places.grad)
        self.assertEqual(x.grad.tolist(), [[0, 2], [4, 6]])

    def test_is_param(self):
        x = Tensor([1.0])
        self.assertTrue(x.is_param)
        self.assertFalse(x.is_param_(False).is_param)
        self.assertTrue(Tensor([1.0], requires_grad=True).requires_grad)
        w = tiny.tensor([1.0, 2.0], requires_grad=True, device="cpu")
        (w * w).sum().backward()
        self.assertEqual(w.grad.tolist(), [2.0, 4.0])
        self.assertFalse(tiny.tensor([3.0], requires_grad=False).requires_grad)

    def test_nothing_is_kept(self):
        gc.collect()
        before = len(_tape.alive)
        for _ in range(20):
            x = Tensor([1.0, 2.0])
            (x * x + x).sum().backward()
        del x
        self.assertEqual(len(_tape.alive), before)


class Gradient(OfTinygrad):
    def test_targets(self):
        x, apart = Tensor([1.0, 2.0, 3.0]), Tensor([1.0, 1.0])
        loss = (x * x).sum()
        self.assertEqual([one.tolist() for one in loss.gradient(x, apart)], [[2, 4, 6], [0, 0]])
        self.assertEqual(loss.gradient(x, gradient=Tensor([3.0]))[0].tolist(), [6, 12, 18])
        self.assertEqual((x * x).gradient(x, gradient=Tensor([1.0, 0.0, 2.0]))[0].tolist(), [2, 0, 12])
        second = loss.gradient(x)[0]
        self.assertEqual(second.sum().gradient(x)[0].tolist(), [2, 2, 2])

    def test_equal_constants_and_clones_are_targets_of_their_own(self):
        for make in (lambda: Tensor.ones(3), lambda: Tensor([1.0, 1.0, 1.0]).realize(), lambda: Tensor(1.0).clone()):
            one, other = make(), make()
            slopes = (one * one * other * 3 + other).sum().gradient(one, other)
            self.assertEqual([slope.flatten().tolist()[0] for slope in slopes], [6, 4])
        x = Tensor([2.0, 3.0])
        copy = x.clone()
        self.assertEqual([one.tolist() for one in (x * copy + x).sum().gradient(x, copy)], [[5, 7], [2, 3]])

    def test_targets_that_were_computed_in_another_order(self):
        x = Tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
        turned, flipped = (x * 2).T, (x * 3).flip(1)
        loss = (turned * turned).sum() + (flipped * flipped).sum()
        turned.realize(flipped)
        self.assertEqual([one.tolist() for one in loss.gradient(turned, flipped)],
                         [[[4, 16], [8, 20], [12, 24]], [[18, 12, 6], [36, 30, 24]]])

    def test_what_is_wrong(self):
        x = Tensor([1.0, 2.0])
        for error, call in ((AssertionError, lambda: (x * x).gradient(x)), (ValueError, lambda: (x * x).backward()),
                            (RuntimeError, lambda: Tensor([1, 2]).sum().gradient(x)),
                            (RuntimeError, lambda: x.sum().gradient(Tensor([1, 2]))),
                            (RuntimeError, lambda: (Tensor(2.0) * 2).gradient(Tensor(2.0)))):
            with self.assertRaises(error):
                call()

    def test_no_grad(self):
        x = Tensor([1.0])
        with Tensor.no_grad(), self.assertRaisesRegex(RuntimeError, "no_grad"):
            (x * 2).sum().backward()
        with Tensor.inference_mode():
            self.assertTrue(Tensor.no_grad)
        self.assertFalse(Tensor.no_grad)


class Leaves(unittest.TestCase):
    def test_equal_expressions_are_leaves_of_their_own(self):
        base = Tensor([1.0, 2.0]).realize()
        for make in (lambda: Tensor.ones(2, requires_grad=True), lambda: (base + 1).requires_grad_()):
            one, other = make(), make()
            (one * 2 + other * 3).sum().backward()
            self.assertEqual((one.grad.tolist(), other.grad.tolist()), ([2, 2], [3, 3]))


class Steps(OfTinygrad):
    def test_a_captured_step_is_a_step(self):
        def trained(jit):
            Tensor.manual_seed(2)
            net = [nn.Linear(6, 8), Tensor.tanh, nn.Linear(8, 1)]
            optimizer = nn.optim.Adam(nn.state.get_parameters(net))
            x, y = Tensor.rand(32, 6).realize(), Tensor.rand(32, 1).realize()

            def step(rows):
                optimizer.zero_grad()
                loss = (x[rows].sequential(net) - y[rows]).square().mean().backward()
                return loss.realize(*optimizer.schedule_step())
            step = TinyJit(step) if jit else step
            with Tensor.train():
                return [step(Tensor([i, i + 1, i + 2])).item() for i in range(6)]
        self.assertEqual(trained(True), trained(False))

    def test_what_tinygrad_refuses(self):
        add = TinyJit(lambda a, b: a + b)
        x = Tensor([1.0, 2.0])
        for _ in range(3):
            add(x, Tensor([1.0, 1.0]))
        for call in (lambda: add(x, x), lambda: add(x, Tensor([1.0])), lambda: add(x, Tensor(1.0)),
                     lambda: add(a=x, b=Tensor([1.0, 2.0]))):
            with self.assertRaises((_tape.JitError, TypeError)):
                call()


if __name__ == "__main__":
    unittest.main()
