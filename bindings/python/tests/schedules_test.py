"""tiny.nn.lr_scheduler beside torch.optim's, in TinyJit too; optimisers of one's own; settings that PyTorch has not."""

import unittest

from tiny import Tensor, TinyJit, nn

try:
    import numpy
    import torch
except ImportError:
    torch = None


def one_parameter(rate=0.01):
    w = Tensor([0.5], requires_grad=True)
    return w, nn.optim.SGD([w], rate)


@unittest.skipIf(torch is None, "PyTorch is not here")
class Schedules(unittest.TestCase):
    def rates(self, mine, theirs, steps, metrics=None):
        _, optimizer = one_parameter()
        other = torch.optim.SGD([torch.zeros(1, requires_grad=True)], 0.01)
        schedule, reference = mine(optimizer), theirs(other)
        found, want = [optimizer.lr.item()], [other.param_groups[0]["lr"]]
        for i in range(steps):
            other.step()
            schedule.step(*([metrics[i]] if metrics else []))
            reference.step(*([metrics[i]] if metrics else []))
            found.append(optimizer.lr.item())
            want.append(other.param_groups[0]["lr"])
        numpy.testing.assert_allclose(found, want, rtol=1e-5, atol=2e-8)
        self.assertEqual(schedule.epoch_counter.tolist(), [steps])

    def test_like_those_of_torch(self):
        mine, theirs = nn.lr_scheduler, torch.optim.lr_scheduler
        self.rates(lambda o: mine.MultiStepLR(o, [1, 2, 7], 0.3), lambda o: theirs.MultiStepLR(o, [1, 2, 7], 0.3), 9)
        self.rates(lambda o: mine.CosineAnnealingLR(o, 20, 1e-3), lambda o: theirs.CosineAnnealingLR(o, 20, 1e-3), 20)
        self.rates(lambda o: mine.OneCycleLR(o, 0.1, 25, 1e4, 30, 0.3),
                   lambda o: theirs.OneCycleLR(o, 0.1, 30, pct_start=10 / 30, anneal_strategy="linear", cycle_momentum=False,
                                               div_factor=25, final_div_factor=1e4), 0)
        random = numpy.random.default_rng(2)
        for options in ({}, {"mode": "max", "patience": 2}, {"threshold_mode": "abs", "threshold": 0.1, "factor": 0.5}):
            self.rates(lambda o: mine.ReduceLROnPlateau(o, **options), lambda o: theirs.ReduceLROnPlateau(o, **options), 60,
                       random.normal(size=60).tolist())

    def test_one_cycle(self):
        _, optimizer = one_parameter()
        schedule = nn.lr_scheduler.OneCycleLR(optimizer, 1.0, 10, 100, 20, 0.25)
        found = [optimizer.lr.item()]
        for _ in range(20):
            schedule.step()
            found.append(optimizer.lr.item())
        want = numpy.interp(range(21), [0, 5, 20], [0.1, 1.0, 0.001])
        numpy.testing.assert_allclose(found, want, rtol=1e-4)

    def test_counts_on_in_a_program(self):
        def losses(jit):
            w, optimizer = one_parameter(0.1)
            schedule = nn.lr_scheduler.LRSchedulerGroup(nn.lr_scheduler.OneCycleLR(optimizer, 0.5, 5, 10, 8, 0.5))

            def step():
                optimizer.zero_grad()
                loss = (w * w).sum().backward()
                return loss.realize(*optimizer.schedule_step(), *schedule.schedule_step())
            step = TinyJit(step) if jit else step
            with Tensor.train():
                return [step().item() for _ in range(7)], optimizer.lr.item()
        self.assertEqual(losses(True), losses(False))

    def test_what_is_wrong_is_said(self):
        _, optimizer = one_parameter()
        with self.assertRaisesRegex(ValueError, "mode 'most' is min or max"):
            nn.lr_scheduler.ReduceLROnPlateau(optimizer, "most")
        with self.assertRaisesRegex(ValueError, "anneal_strategy is linear"):
            nn.lr_scheduler.OneCycleLR(optimizer, 1, 1, 1, 1, 1, "cos")
        with self.assertRaisesRegex(NotImplementedError, "LR_Scheduler has no get_lr"):
            nn.lr_scheduler.LR_Scheduler(optimizer).step()


class Own(nn.optim.Optimizer):
    """Signs of gradients."""

    def __init__(self, params, lr):
        super().__init__(params, lr)
        self.kept = self._new_optim_param()

    def _step(self, params, grads):
        for kept, grad in zip(self.kept, grads):
            kept.assign(kept + grad)
        return [grad.sign() * self.lr for grad in grads], self.kept


class Optimisers(unittest.TestCase):
    def steps(self, make, count=3):
        w = Tensor([1.0, -2.0], requires_grad=True)
        optimizer = make([w])
        with Tensor.train():
            for _ in range(count):
                optimizer.zero_grad()
                (w * w).sum().backward()
                optimizer.step()
        return w.tolist(), optimizer

    def test_one_of_ones_own(self):
        found, optimizer = self.steps(lambda p: Own(p, 0.25))
        self.assertEqual(found, [0.25, -1.25])
        self.assertEqual(optimizer.kept[0].tolist(), [2 + 1.5 + 1, -4 - 3.5 - 3])
        with self.assertRaisesRegex(NotImplementedError, "Optimizer has no _step"):
            self.steps(lambda p: nn.optim.Optimizer(p, 0.1))

    def test_classic_momentum(self):
        """Of steps, which had their rate: a rate that changes does not change what is kept."""
        def reference(classic):
            w, b, rate = 1.0, 0.0, 0.1
            for _ in range(3):
                g = 2 * w * (rate if classic else 1)
                b = 0.9 * b + g
                w -= b if classic else rate * b
                rate /= 2
            return w
        for classic in (False, True):
            w = Tensor([1.0], requires_grad=True)
            optimizer = nn.optim.SGD([w], 0.1, 0.9, classic=classic)
            with Tensor.train():
                for _ in range(3):
                    optimizer.zero_grad()
                    (w * w).sum().backward()
                    optimizer.step()
                    optimizer.lr = optimizer.lr / 2
            self.assertAlmostEqual(w.item(), reference(classic), places=5)

    def test_coefficients_of_muon(self):
        """One iteration of a matrix with one row, whose length it has: x * a + b * x + c * x."""
        w = Tensor([[3.0, 4.0]], requires_grad=True)
        optimizer = nn.optim.Muon([w], 0.1, 0, 0, ns_steps=1, ns_coefficients=(2.0, -1.5, 0.25), nesterov=False)
        with Tensor.train():
            (w * Tensor([[0.6, 0.8]])).sum().backward()
            optimizer.step()
        for found, want in zip(w.tolist()[0], (3 - 0.1 * 0.75 * 0.6, 4 - 0.1 * 0.75 * 0.8)):
            self.assertAlmostEqual(found, want, places=5)

    def test_powers_of_the_betas(self):
        _, optimizer = self.steps(lambda p: nn.optim.Adam(p, b1=0.5, b2=0.25))
        self.assertEqual((optimizer.b1_t.tolist(), optimizer.b2_t.tolist()), ([0.125], [0.015625]))
        self.assertEqual((optimizer.device.upper(), optimizer.fused), ("CPU", False))
        with self.assertRaisesRegex(ValueError, "learning rate is 0 at least"):
            nn.optim.Adam([Tensor([1.0])], -1)


if __name__ == "__main__":
    unittest.main()
