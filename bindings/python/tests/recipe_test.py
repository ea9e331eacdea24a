"""Programs of TinyJit that are pickled: the graphs that were captured, with state of their own."""

import copy
import pickle
import subprocess
import sys
import tempfile
import unittest

import tiny
from tiny import JitError, Tensor, TinyJit, Variable, nn


def captured(function, *arguments):
    made = TinyJit(function)
    for _ in range(3):
        made(*(one() if callable(one) else one for one in arguments))
    return made


class Recipes(unittest.TestCase):
    def test_a_function_of_tensors(self):
        weight = Tensor([[1.0, 2.0], [3.0, 4.0]]).realize()
        jit = captured(lambda a, b: {"sum": (a @ weight).sum() + b, "all": [a, b * 2]}, Tensor.ones(2, 2), Tensor.ones(1))
        again = pickle.loads(pickle.dumps(jit))
        a, b = Tensor([[1.0, 0.0], [0.0, 2.0]]), Tensor([5.0])
        want, got = jit(a, b), again(a, b)
        self.assertEqual(got["sum"].tolist(), want["sum"].tolist())
        self.assertEqual([one.tolist() for one in got["all"]], [a.tolist(), [10]])
        weight.assign(weight * 0).realize()  # it has weights of its own
        self.assertEqual(again(a, b)["sum"].tolist(), want["sum"].tolist())
        with self.assertRaisesRegex(JitError, "unpickled without its function"):
            again(Tensor.ones(3, 2), b)

    def test_what_is_written(self):
        def step(x, n):
            x += 1
            x[1:3] = x[0:2] * 2
            n.assign(n + x.sum())
            return x, n
        jit = captured(step, lambda: Tensor([1.0, 2.0, 3.0, 4.0]).realize(), lambda: Tensor([0.0]).realize())
        again = pickle.loads(pickle.dumps(jit))
        results = []
        for one in (jit, again):
            x, n = Tensor([1.0, 2.0, 3.0, 4.0]).realize(), Tensor([0.0]).realize()
            made = [one(x, n) for _ in range(2)][-1]
            self.assertIs(made[0], x)
            results.append([part.tolist() for part in (x, n, *made)])
        self.assertEqual(results[0], results[1])

    def trained(self):
        Tensor.manual_seed(3)
        net = nn.Linear(3, 2)
        optimizer = nn.optim.Adam(nn.state.get_parameters(net), lr=0.1)
        x, y = Tensor.rand(8, 3).realize(), Tensor.rand(8, 2).realize()

        @Tensor.train()
        def step(x, y):
            optimizer.zero_grad()
            loss = (net(x).dropout(0.2) - y).square().mean().backward()
            optimizer.step()
            return loss, net.weight
        return captured(step, x, y), x, y

    def test_a_training_step_goes_on_where_it_was(self):
        jit, x, y = self.trained()
        kept = pickle.dumps(jit)
        source = tiny._random.source(tiny.default_context())
        drawn = source._drawn
        want = [jit(x, y)[0].item() for _ in range(4)]
        source.move(drawn - source._drawn)
        source._is_behind = True
        again = pickle.loads(kept)
        self.assertEqual([again(x, y)[0].item() for _ in range(4)], want)
        self.assertIs(again(x, y)[1], again(x, y)[1])  # the weight that it writes

    def test_in_another_process(self):
        jit = captured(lambda a: (a * 3).sum(0), Tensor.ones(4, 2))
        with tempfile.NamedTemporaryFile(suffix=".pkl") as file:
            pickle.dump(jit, file)
            file.flush()
            text = (f"import pickle, tiny\njit = pickle.load(open({file.name!r}, 'rb'))\n"
                    "print(jit(tiny.Tensor.ones(4, 2) * 2).tolist())")
            found = subprocess.run([sys.executable, "-B", "-c", text], capture_output=True, text=True, check=True)
        self.assertEqual(found.stdout, "[24.0, 24.0]\n")

    def test_variables(self):
        n = Variable("n", 1, 8)
        x = Tensor.arange(16).reshape(8, 2).realize()
        jit = TinyJit(lambda part: part.sum(0))
        for i in (2, 3, 4):
            jit(x[:n.bind(i)])
        again = pickle.loads(pickle.dumps(jit))
        for i in (1, 5, 8):
            self.assertEqual(again(x[:n.bind(i)]).tolist(), x[:i].sum(0).tolist())

    def test_copies(self):
        class Model:
            def __init__(self):
                self.weight = Tensor([2.0]).realize()
                self.step = TinyJit(self.run)

            def run(self, x):
                return x * self.weight
        model = Model()
        for _ in range(3):
            model.step(Tensor([1.0]))
        other = copy.deepcopy(model)
        other.weight.assign(Tensor([5.0])).realize()
        for _ in range(3):
            self.assertEqual((model.step(Tensor([1.0])).item(), other.step(Tensor([1.0])).item()), (2, 5))
        again = pickle.loads(pickle.dumps(captured(lambda a: a + 1, Tensor([1.0]))))
        self.assertEqual(copy.deepcopy(again)(Tensor([1.0])).item(), 2)

    def test_what_cannot_be(self):
        with self.assertRaisesRegex(TypeError, "no program yet"):
            pickle.dumps(TinyJit(lambda x: x))

        class Thing:
            pass
        with self.assertRaisesRegex(TypeError, r"args\[1\] is an object"):
            pickle.dumps(captured(lambda x, thing: x + 1, Tensor([1.0]), Thing()))


if __name__ == "__main__":
    unittest.main()
