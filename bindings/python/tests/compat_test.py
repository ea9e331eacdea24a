"""tiny.compat: `import tinygrad` is tiny, in a process of its own."""

import os
import subprocess
import sys
import tempfile
import unittest

from model_test import model_bytes


def run(*arguments, **environment):
    """What `python -m tiny.compat ARGUMENTS` prints, and its exit status."""
    done = subprocess.run([sys.executable, "-B", "-m", "tiny.compat", *arguments], capture_output=True, text=True,
                          env={**os.environ, **environment})
    return done.stdout + done.stderr, done.returncode


class Command(unittest.TestCase):
    def test_text_module_and_file(self):
        text = "import sys; from tinygrad import Tensor; print(Tensor([1, 2, 3]).sum().item(), sys.argv[1:])"
        self.assertEqual(run("-c", text, "a"), ("6 ['a']\n", 0))
        with tempfile.TemporaryDirectory() as folder:
            with open(os.path.join(folder, "beside.py"), "w") as file:
                file.write("number = 5\n")
            path = os.path.join(folder, "program.py")
            with open(path, "w") as file:
                file.write("import beside, tinygrad.nn as nn\n"
                           "print(__name__, nn.Linear(2, beside.number).weight.shape)\n")
            self.assertEqual(run(path), ("__main__ (5, 2)\n", 0))

    def test_arguments_by_the_names_of_tinygrad(self):
        self.assertEqual(run("-c", """
from tinygrad import Tensor, dtypes
from tinygrad.helpers import ceildiv, partition, prod
x = Tensor([[1.0, -2.0, 5.0]])
print(x.eq(x=1).tolist(), x.fmod(x=3).tolist(), x.maximum(x=0).tolist(), (x > 0).where(x=1, y=x).tolist())
print(x.flip(axis=1).tolist(), x.full_like(2, buffer=False).tolist(), x.clone().assign(x=x + 1).tolist(), x.const_like(b=3).tolist())
print(prod(x=(2, 3)), ceildiv(num=5, amt=2), partition([1, 2], fxn=lambda n: n > 1), dtypes.is_float(x=dtypes.half))
try:
    x.eq(1, x=2)
except TypeError as error:
    print("x" in str(error))
"""), ("[[True, False, False]] [[1.0, -2.0, 2.0]] [[1.0, 0.0, 5.0]] [[1.0, -2.0, 1.0]]\n"
        "[[5.0, -2.0, 1.0]] [[2.0, 2.0, 2.0]] [[2.0, -1.0, 6.0]] [[3.0, 3.0, 3.0]]\n6 3 ([2], [1]) True\nTrue\n", 0))

    def test_operations_by_name(self):
        self.assertEqual(run("-c", """
import inspect
from tinygrad import Tensor, dtypes, nn
from tinygrad.uop.ops import Ops
x, y = Tensor([7.0, -7.0]), Tensor([2.0, 2.0])
print(x.alu(Ops.ADD, y).tolist(), x.alu(Ops.CMPLT, y).tolist(), (x > 0).alu(Ops.WHERE, x, y).tolist(), x.alu(Ops.NEG).tolist())
i, j = Tensor([7, -7]), Tensor([2, 2])
print(i.alu(Ops.CDIV, j).tolist(), i.alu(Ops.CMOD, j).tolist(), i.alu(Ops.FLOORDIV, j).tolist(), i.alu(Ops.FLOORMOD, j).tolist())
print(x.ufix(y) is y, x.ufix(3).item(), x.alu(Ops.MULACC, y, x).tolist())
u = lambda *numbers: Tensor(list(numbers), dtype=dtypes.uint64)
print([hex(n) for n in u(0, 0xFFFFFFFFFFFFFFFF, 0x85a308d3243f6a88).threefry(u(0, 0xFFFFFFFFFFFFFFFF, 0x0370734413198a2e)).tolist()])
for call in (lambda: x.alu(Ops.REDUCE, y), lambda: x.alu(Ops.ADD), lambda: x.threefry(y), lambda: x.custom_kernel(fxn=abs)):
    try:
        call()
    except (NotImplementedError, RuntimeError) as error:
        print(str(error)[:60])
print(callable(nn.state.fs_load), inspect.isclass(nn.state.fs_load), hasattr(nn.state.fs_load, "_wrapped"))
"""), ("[9.0, -5.0] [False, True] [7.0, 2.0] [-7.0, 7.0]\n[3, -3] [1, -1] [3, -4] [1, 1]\nTrue 3 [21.0, -21.0]\n"
        # The known answers of Random123.
        "['0x99ba4efe6b200159', '0xbb002be71cb996fc', '0x483df7a0c4923a9c']\n"
        "alu: REDUCE is no operation of elements; known: ABS, ADD, AN\nalu: ADD takes 2 operands, not 1\n"
        "threefry: counters and seed are uint64, not dtypes.float and\n"
        "Tensor.custom_kernel: tiny has no nodes of tinygrad's to mak\nTrue True False\n", 0))

    def test_losses_in_the_order_of_tinygrad(self):
        self.assertEqual(run("-c", """
from tinygrad import Tensor
x, y = Tensor([[0.0, 0.0], [0.0, 0.0]]), Tensor([0, 1])
print([round(v, 4) for v in x.cross_entropy(y, "none", 0.5).tolist()], round(x.cross_entropy(Y=y, reduction="sum").item(), 4))
print(x.log_softmax().nll_loss(y, Tensor([1.0, 3.0]), 0, "none").tolist() == [0, -3 * x.log_softmax()[1, 1].item()],
      round(x.log_softmax().nll_loss(Y=y, ignore_index=None).item(), 4))
"""), ("[0.6931, 0.6931] 1.3863\nTrue 0.6931\n", 0))

    def test_lists_of_numpy(self):
        self.assertEqual(run("-c", """
import numpy
from tinygrad import Tensor
print(Tensor([numpy.float64(1.5), 2]).tolist(), Tensor([numpy.arange(2.0, dtype="float32")] * 2).tolist())
try:
    Tensor([numpy.float32(1)])
except RuntimeError as error:
    print(error)
"""), ("[1.5, 2.0] [[0.0, 1.0], [0.0, 1.0]]\n"
        "a list of NumPy's numbers has no element type: say a dtype, or make an array of it\n", 0))

    def test_variables_are_nodes(self):
        self.assertEqual(run("-c", """
from tinygrad import Tensor, TinyJit, UOp, Variable, dtypes
v = Variable("v", 1, 1 << 40)
print(isinstance(v, UOp), isinstance(v.bind(2) // 2, UOp), isinstance(2, UOp), isinstance(Tensor([1]).uop, UOp))
both = TinyJit(lambda x, i, j: x * 0 + (i + j))
w = Variable("w", 1, 1 << 40)
x = Tensor([1], dtype=dtypes.long).realize()
print([both(x, v.bind((1 << 40) - k), w.bind(1 << 40)).item() - (1 << 41) for k in range(4)])
"""), ("True True False True\n[0, -1, -2, -3]\n", 0))

    def test_types_that_are_weak(self):
        self.assertEqual(run("-c", """
from tinygrad import Tensor, TinyJit, dtypes, nn
x, weak = Tensor([0, 2, 1]), dtypes.weakint
print(x.one_hot(3).dtype, (x.one_hot(3) + Tensor([1], dtype=dtypes.int8)).dtype, x.one_hot(3).sum().dtype, x.round().dtype)
w = x.cast(weak)
print([made.dtype == weak for made in (w.cat(w), w.stack(w), w.repeat(2), w.prod())])
print([str((a / b).dtype) for a, b in ((w, 2), (Tensor([True]), 2), (2, w), (w, w), (Tensor(1), 2), (w, 2.5))])
cell = nn.LSTMCell(2, 3)
print(cell((Tensor([[1, 2]]) / 7.0))[0].shape)
add = TinyJit(lambda x: x + 1)
try:
    add(w)
except Exception as error:
    print(type(error).__name__, error)
"""), ("dtypes.weakint dtypes.char dtypes.int dtypes.weakfloat\n[True, True, True, False]\n"
        "['dtypes.float', 'dtypes.float', 'dtypes.float', 'dtypes.float', 'dtypes.float', 'dtypes.weakfloat']\n(1, 3)\n"
        "JitError TinyJit: an argument is of dtypes.weakint, of which there is no memory; use cast() or clone()\n", 0))

    def test_integers_are_logits(self):
        self.assertEqual(run("-c", """
from tinygrad import Tensor
x = Tensor([[-1, 2, -3], [1, -2, 3]])
print(round(x.cross_entropy(Tensor([1, 2])).item(), 4),
      round(x.binary_crossentropy_logits(Tensor([[0, 1, 0], [1, 0, 1]])).item(), 4))
"""), ("0.0939 0.1629\n", 0))

    def test_what_is_said_of_bools_and_classes_that_are_none(self):
        self.assertEqual(run("-c", """
from tinygrad import Tensor
from tinygrad.nn.state import fs_load
print((-Tensor([True, False])).tolist(), Tensor([True]).neg().tolist(), (-Tensor([2, 3])).tolist())
x = Tensor([[1.0, 2.0, 0.5], [0.1, -1.0, 3.0]])
print([round(x.sparse_categorical_crossentropy(Tensor([1, -1]), reduction=kind).item(), 4) for kind in ("mean", "sum")],
      round(x.sparse_categorical_crossentropy(Tensor([1, 2]), ignore_index=2).item(), 4))
try:
    fs_load(x, 3)
except NotImplementedError as error:
    print(error)
"""), ("[False, True] [False] [-2, -3]\n[0.2322, 0.4644] 0.4644\ntinygrad.nn.state.fs_load: tiny has no such part\n", 0))

    def test_what_was_read_has_its_graph(self):
        self.assertEqual(run("-c", """
from tinygrad import Tensor
x = Tensor([2.0])
cube = x ** 3
slope = cube.sum().gradient(x)[0]
print(cube.numpy(), slope.item(), slope.sum().gradient(x)[0].item(), cube.sum().gradient(x)[0].item())
cube.sum().backward()
print(x.grad.item(), cube.realize().sum().gradient(x)[0].item())
state = Tensor([1.0, 2.0]).realize()
before, view = state + 1, state[1:]
print(before.tolist(), view.tolist(), state.assign(Tensor([5.0, 6.0])).tolist(), view.tolist(), before.tolist())
drawn = Tensor.rand(2)
print(drawn.tolist() == drawn.tolist() == (drawn * 1).tolist())
"""), ("[8.] 12.0 12.0 12.0\n12.0 0.0\n[2.0, 3.0] [2.0] [5.0, 6.0] [6.0] [2.0, 3.0]\nTrue\n", 0))

    def test_layers_draw_as_there(self):
        """The numbers are tinygrad's."""
        self.assertEqual(run("-c", """
from tinygrad import Tensor, nn
Tensor.manual_seed(0)
layers = nn.ConvTranspose2d(4, 2, 2, stride=2), nn.Conv2d(4, 4, (3, 1), groups=2, bias=False)
print([[round(v, 6) for v in layer.weight.flatten()[:2].tolist()] for layer in layers])
print(round(nn.Conv2d(2, 3, 2).bias[0].item(), 6))
"""), ("[[-0.035153, 0.007301], [-0.148078, -0.141002]]\n0.109341\n", 0))

    def test_says_what_is_wanted(self):
        self.assertEqual(run("/no/such.py"), ("python -m tiny.compat: /no/such.py: no such file\n", 2))
        self.assertEqual(run("-c")[1], 2)
        self.assertEqual(run("--help")[1], 0)



class Models(unittest.TestCase):
    """tinygrad.nn.onnx."""
    maxDiff = None

    def test_runner(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "model.onnx")
            with open(path, "wb") as file:
                file.write(model_bytes())
            self.assertEqual(run("-c", f"""
import pathlib, warnings
from tinygrad import Tensor, TinyJit, dtypes
from tinygrad.nn.onnx import OnnxRunner
of_path, of_bytes = OnnxRunner(pathlib.Path({path!r})), OnnxRunner(Tensor(open({path!r}, "rb").read()))
print({{name: (value.shape, value.dtype) for name, value in of_path.graph_inputs.items()}}, of_path.graph_outputs)
a, inputs = Tensor([1.0, 2.0, 3.0]), {{"b": [4, 5, 6], "i": Tensor([1, 2], dtype=dtypes.int64)}}
for runner in (of_path, of_bytes.to(None)):
    print({{name: value.tolist() for name, value in runner({{"a": a, **inputs}}).items()}})
print(of_path({{"a": a, **inputs}})["product"].sum().gradient(a)[0].tolist())
jit = TinyJit(lambda a: of_path({{"a": a, **inputs}})["sum"])
print([jit(Tensor([0.0 + k, 1.0, 2.0]).realize()).tolist() for k in range(3)])
for given in ({{"a": a}}, {{**inputs, "a": Tensor([1.0])}}):
    try:
        of_path(given)
    except (RuntimeError, ValueError) as error:
        print(error)
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    print(of_path({{"a": a.half(), **inputs}})["sum"].tolist(), caught[0].message)
"""), ("{'a': ((3,), dtypes.float), 'b': ((3,), dtypes.float), 'i': ((2,), dtypes.long)} ('sum', 'product', 'n')\n"
     + 2 * "{'sum': [5.0, 7.0, 9.0], 'product': [4.0, 10.0, 18.0], 'n': [-1, -2]}\n" +
     "[4.0, 5.0, 6.0]\n[[4.0, 6.0, 8.0], [5.0, 6.0, 8.0], [6.0, 6.0, 8.0]]\n"
     "OnnxRunner: inputs are missing: b, i; given: a\n"
     "tiny_model_apply: input \"a\" has the shape [3]; got [1]: dimension 0 must be 3\n"
     "[5.0, 7.0, 9.0] OnnxRunner: input a is dtypes.half and becomes dtypes.float, which the model takes\n", 0))


if __name__ == "__main__":
    unittest.main()
