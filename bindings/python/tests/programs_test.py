"""Programs in tinygrad's style, in processes of their own: one of the surface of its CIFAR-10 example, which is ours, and
its own, unmodified, where TINYGRAD names a checkout."""

import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

try:
    import numpy
except ImportError:
    numpy = None

PEERS = pathlib.Path(__file__).resolve().parents[3] / "tests" / "peers"
CHECKOUT = os.environ.get("TINYGRAD", "")

# A small residual network with frozen normalisation weights, patches' whitening, crops, flips and mixed pictures, two
# optimisers under one cycle: what its CIFAR-10 example is made of.
PROGRAM = '''
import numpy as np
from extra.lr_scheduler import OneCycleLR
from tinygrad import nn, dtypes, Tensor, Device, GlobalCounters, TinyJit, Variable
from tinygrad.helpers import Context, getenv, prod, TRAINING
from tinygrad.nn import optim
from tinygrad.nn.state import get_state_dict

BATCH, STEPS = getenv("BS", 64), getenv("STEPS", 40)

class Norm:
    def __init__(self, size):
        self.weight, self.bias = Tensor.ones(size, dtype=dtypes.float32).is_param_(False), Tensor.zeros(size)

    def __call__(self, x):
        mean = x.mean(axis=(0, 2, 3))
        y = x - mean.detach().reshape(shape=[1, -1, 1, 1])
        return x.batchnorm(self.weight, self.bias, mean, (y * y).mean(axis=(0, 2, 3)).add(1e-12).pow(-0.5))

class Group:
    def __init__(self, before, after):
        self.conv1 = nn.Conv2d(before, after, kernel_size=3, padding=1, bias=False)
        self.conv2 = nn.Conv2d(after, after, kernel_size=3, padding=1, bias=False)
        self.norm1, self.norm2 = Norm(after), Norm(after)

    def __call__(self, x):
        x = self.norm1(self.conv1(x).max_pool2d(2).float()).cast(dtypes.default_float).quick_gelu()
        return self.norm2(self.conv2(x)).quick_gelu() + x

class Net:
    def __init__(self, white):
        self.white = white
        self.net = [nn.Conv2d(12, 8, kernel_size=1, bias=False), lambda x: x.quick_gelu(), Group(8, 16), Group(16, 32),
                    lambda x: x.max((2, 3)), nn.Linear(32, 10, bias=False), lambda x: x / 3.]

    def __call__(self, x, training=True):
        forward = lambda x: x.conv2d(self.white).pad((1, 0, 0, 1)).sequential(self.net)
        return forward(x) if training else (forward(x) + forward(x[..., ::-1])) / 2.

def whitening(X):
    patches = X.float()._pool((2, 2)).permute(1, 4, 5, 0, 3, 2).reshape(12, -1)
    values, vectors = np.linalg.eigh(((patches @ patches.T) / (patches.shape[1] - 1)).numpy(), UPLO="U")
    white = np.flip(vectors.T.reshape(12, 3, 2, 2), 0) / np.sqrt(np.flip(values, 0) + 1e-2)[:, None, None, None]
    return Tensor(white.astype(np.float32)).is_param_(False)

def cross_entropy(x, y):
    y = 0.8 * y + 0.2 / y.shape[1]
    return -x.log_softmax(axis=1).mul(y).sum(axis=1)

def pad_reflect(X, size=2):
    X = X[..., :, 1:size + 1].flip(-1).cat(X, X[..., :, -(size + 1):-1].flip(-1), dim=-1)
    return X[..., 1:size + 1, :].flip(-2).cat(X, X[..., -(size + 1):-1, :].flip(-2), dim=-2)

@TinyJit
def augmentations(X, Y):
    perms = Tensor.randperm(X.shape[0], device=X.device)
    low = Tensor.randint(X.shape[0], low=0, high=X.shape[-1] - 32).reshape(X.shape[0], 1, 1, 1)
    columns = Tensor.arange(32, dtype=dtypes.int32).reshape((1, 1, 1, 32))
    X = X.gather(-1, (low + columns).expand(-1, 3, X.shape[2], -1))
    X = X.gather(-2, (low + columns.reshape((1, 1, 32, 1))).expand(-1, 3, 32, 32))
    X = (Tensor.rand(X.shape[0], 1, 1, 1) < 0.5).where(X.flip(-1), X).contiguous()
    X, Y = X[perms], Y[perms]
    mask = (columns >= low) * (columns < low + 2)
    return X, Y, mask.where(X[perms], X), 0.1 * Y[perms] + 0.9 * Y

def batches(X_in, Y_in, train):
    while True:
        X, Y = augmentations(X_in, Y_in)[:2] if train else (X_in, Y_in)
        full = X.shape[0] // BATCH * BATCH
        place = Variable("i", 0, full - BATCH)
        for i in range(0, full, BATCH):
            at = place.bind(i)
            yield X[at:at + BATCH], Y[at:at + BATCH]
        if not train:
            return

Tensor.manual_seed(2)
X_train, Y_train, X_test, Y_test = nn.datasets.cifar()
Y_train, Y_test = (y.one_hot(10).cast(dtypes.default_float) for y in (Y_train, Y_test))
scale = lambda x: (x.float() / 255.0 - Tensor([0.5, 0.5, 0.5], device=x.device).reshape((1, 3, 1, 1))) / 0.25
X_train, X_test = scale(X_train), scale(X_test)
model = Net(whitening(X_train))
X_train = pad_reflect(X_train).cast(dtypes.default_float)
named = {name: one for name, one in get_state_dict(model).items() if one.is_param}
biases = optim.SGD([one for name, one in named.items() if "bias" in name], lr=0.01, momentum=0.85, nesterov=True)
others = optim.SGD([one for name, one in named.items() if "bias" not in name], lr=0.01, momentum=0.85, nesterov=True,
                   weight_decay=1e-3)
Tensor.realize(*named.values(), *biases.b, *others.b)
schedules = [OneCycleLR(one, max_lr=most, pct_start=0.25, div_factor=100, final_div_factor=1, total_steps=STEPS)
             for one, most in ((biases, 0.1), (others, 0.05))]

@TinyJit
def train_step(model, optimizer, schedules, X, Y):
    loss = cross_entropy(model(X), Y).mul(1 / 128).sum().div(BATCH / 128)
    optimizer.zero_grad()
    loss.backward()
    return loss.realize(*optimizer.schedule_step(), *schedules[0].schedule_step(), *schedules[1].schedule_step())

@TinyJit
def eval_step(model, X, Y):
    out = model(X, training=False)
    return (out.argmax(axis=1) == Y.argmax(axis=1)).realize()

batch = batches(X_train, Y_train, True)
with Context(TRAINING=1):
    assert TRAINING
    for i in range(STEPS):
        GlobalCounters.reset()
        X, Y = next(batch)
        loss = train_step(model, optim.OptimizerGroup(biases, others), schedules, X, Y)
        print(f"{i} {loss.numpy():.4f} loss, {others.lr.numpy()[0]:.6f} LR, {GlobalCounters.mem_used / 1e6:.1f} MB")
right = [one for X, Y in batches(X_test, Y_test, False) for one in eval_step(model, X, Y).numpy().tolist()]
print(f"eval {sum(right)}/{len(right)} on {Device.DEFAULT}")
'''


def program(arguments, **settings):
    """What `python -m tiny.compat ARGUMENTS` prints."""
    done = subprocess.run([sys.executable, "-B", "-m", "tiny.compat", *arguments], text=True, capture_output=True,
                          env={**os.environ, "NO_COLOR": "1", **settings}, timeout=600)
    if done.returncode:
        raise AssertionError(f"{arguments[0][:80]}: {done.stdout[-2000:]}{done.stderr[-4000:]}")
    return done.stdout + done.stderr


@unittest.skipIf(numpy is None, "NumPy is not here")
class Programs(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        sys.path.insert(0, str(PEERS))
        import make_cifar
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = pathlib.Path(folder.name)
        make_cifar.write(cls.folder / "cifar-10", 320)

    def test_ours_learns(self):
        text = program(["-c", PROGRAM], TINY_DATASETS=str(self.folder))
        losses = [float(one) for one in re.findall(r"([\d.]+) loss", text)]
        rates = [float(one) for one in re.findall(r"([\d.]+) LR", text)]
        memory = [float(one) for one in re.findall(r"([\d.]+) MB", text)]
        self.assertEqual(len(losses), 40)
        self.assertLess(sum(losses[-5:]) / 5, 0.7 * losses[0])
        self.assertAlmostEqual(max(rates), 0.05, places=3)
        self.assertAlmostEqual(memory[-1], memory[30], delta=2)  # the second epoch has begun
        right, count = map(int, re.search(r"eval (\d+)/(\d+) on CPU", text).groups())
        self.assertGreater(right / count, 0.5)

    @unittest.skipUnless(CHECKOUT, "TINYGRAD names no checkout of tinygrad: its own programs are not run")
    def test_those_of_tinygrad(self):
        import tinygrad_programs
        self.assertEqual(tinygrad_programs.main(CHECKOUT, ["beautiful_mnist.py", "hlb_cifar10"], pictures=400), 0)


if __name__ == "__main__":
    unittest.main()
