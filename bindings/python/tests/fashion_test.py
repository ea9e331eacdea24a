"""A program of tinygrad's style on tiny: a convolutional network learns Fashion-MNIST in seventy steps."""

import pathlib
import unittest

from tiny import GlobalCounters, Tensor, TinyJit, function, nn
from tiny.helpers import Context, colored, getenv, trange

FILES = pathlib.Path("/usr/share/datasets/fashion-mnist")


class Model:
    def __init__(self):
        self.layers = [
            nn.Conv2d(1, 32, 5), Tensor.relu,
            nn.Conv2d(32, 32, 5), Tensor.relu,
            nn.BatchNorm(32), Tensor.max_pool2d,
            nn.Conv2d(32, 64, 3), Tensor.relu,
            nn.Conv2d(64, 64, 3), Tensor.relu,
            nn.BatchNorm(64), Tensor.max_pool2d,
            lambda x: x.flatten(1), nn.Linear(576, 10)]

    @function
    def __call__(self, x: Tensor) -> Tensor:
        return x.sequential(self.layers)


@unittest.skipUnless(FILES.exists(), "Debian's dataset-fashion-mnist is not here")
class Fashion(unittest.TestCase):
    def test_seventy_steps(self):
        Tensor.manual_seed(1)
        X_train, Y_train, X_test, Y_test = nn.datasets.mnist(fashion=True)
        self.assertEqual((X_train.shape, Y_train.shape, X_test.shape, Y_test.shape),
                         ((60000, 1, 28, 28), (60000,), (10000, 1, 28, 28), (10000,)))
        X_test, Y_test = X_test[:500], Y_test[:500]
        model = Model()
        kind = nn.optim.Muon if getenv("MUON") else nn.optim.SGD if getenv("SGD") else nn.optim.Adam
        opt = kind(nn.state.get_parameters(model))

        @TinyJit
        @Context(TRAINING=1)
        def train_step() -> Tensor:
            opt.zero_grad()
            samples = Tensor.randint(getenv("BS", 128), high=int(X_train.shape[0]))
            loss = model(X_train[samples]).sparse_categorical_crossentropy(Y_train[samples]).backward()
            return loss.realize(*opt.schedule_step())

        @TinyJit
        def get_test_acc() -> Tensor:
            return (model(X_test).argmax(axis=1) == Y_test).mean() * 100

        losses, accuracies = [], []
        for i in (t := trange(getenv("STEPS", 70))):
            GlobalCounters.reset()
            loss = train_step()
            if i % 20 == 9:
                accuracies.append(get_test_acc().item())
            losses.append(loss.item())
            accuracy = colored(f"{accuracies[-1]:5.2f}" if accuracies else "?", "green")
            t.set_description(f"loss: {losses[-1]:6.2f} test_accuracy: {accuracy}%")
        self.assertGreater(GlobalCounters.kernel_count, 0)
        self.assertGreater(losses[0], 2)
        self.assertLess(sum(losses[-10:]) / 10, 0.8)
        self.assertLess(sum(losses[-10:]), sum(losses[10:20]))
        self.assertGreater(accuracies[-1], 70)
        self.assertEqual((len(train_step._programs), len(get_test_acc._programs)), (1, 1))
        self.assertEqual(model.layers[4].num_batches_tracked.item(), 70)


if __name__ == "__main__":
    unittest.main()
