"""NumPy's functions of tensors: a tensor of what NumPy has of the array, an array, or an error that says what to write."""

import unittest

import numpy as np

from tiny import Tensor


def numbers(*shape):
    return np.random.default_rng(0).uniform(0.1, 0.9, shape).astype(np.float32)


# Functions that give tensors, and their arguments behind the first.
TENSORS = [
    ("sum",), ("sum", 1), ("prod",), ("mean",), ("mean", 0), ("max",), ("min", 1), ("amax",), ("amin", 0), ("any",), ("all", 1),
    ("std",), ("var", 0), ("reshape", (4, 3)), ("ravel",), ("transpose",), ("transpose", (1, 0)), ("swapaxes", 0, 1),
    ("moveaxis", 0, 1), ("squeeze",), ("expand_dims", 1), ("broadcast_to", (2, 3, 4)), ("flip",), ("flip", 0), ("clip", 0.2, 0.5),
    ("cumsum",), ("cumsum", 1), ("trace",), ("zeros_like",), ("ones_like",)]
ELEMENTS = ("exp exp2 expm1 log log2 log10 log1p sqrt square reciprocal sin cos tan arcsin arccos arctan sinh cosh tanh arcsinh "
            "arctanh floor ceil trunc rint sign absolute fabs negative positive isnan isinf isfinite signbit deg2rad rad2deg "
            "degrees radians logical_not").split()
PAIRS = ("add subtract multiply divide true_divide floor_divide remainder mod fmod power maximum minimum fmax fmin arctan2 hypot "
         "logaddexp logaddexp2 copysign heaviside less less_equal greater greater_equal equal not_equal logical_and logical_or "
         "logical_xor").split()
ARRAYS = [("sort",), ("argmax",), ("unique",), ("diff",), ("round", 1), ("median",), ("percentile", 50), ("repeat", 2), ("tile", 2),
          ("pad", 1), ("count_nonzero",), ("linalg.norm",), ("argsort", 0), ("full_like", 3)]


class Functions(unittest.TestCase):
    def same(self, made, want, text):
        self.assertIsInstance(made, Tensor, text)
        self.assertEqual(tuple(made.shape), np.shape(want), text)
        np.testing.assert_allclose(np.asarray(made), want, rtol=2e-5, atol=1e-6, err_msg=str(text))

    def test_tensors_of_tensors(self):
        x = numbers(3, 4)
        for name, *arguments in TENSORS:
            self.same(getattr(np, name)(Tensor(x), *arguments), getattr(np, name)(x, *arguments), (name, arguments))
        for name, keywords in (("sum", {"axis": 0, "keepdims": True}), ("mean", {"dtype": "float64"}), ("std", {"ddof": 1}),
                               ("concatenate", {"axis": 1}), ("stack", {"axis": 1}), ("concatenate", {"axis": None})):
            given = (Tensor(x), x) if name in ("concatenate", "stack") else Tensor(x)
            plain = (x, x) if name in ("concatenate", "stack") else x
            self.same(getattr(np, name)(given, **keywords), getattr(np, name)(plain, **keywords), (name, keywords))

    def test_of_elements(self):
        x, y = numbers(3, 4), numbers(4)
        for name in ELEMENTS:
            self.same(getattr(np, name)(Tensor(x)), getattr(np, name)(x), name)
        for name in PAIRS:
            for a, b in ((Tensor(x), Tensor(y)), (x, Tensor(y)), (Tensor(x), y)):
                self.same(getattr(np, name)(a, b), getattr(np, name)(x, y), name)
        for name in ("bitwise_and", "bitwise_or", "bitwise_xor", "left_shift", "right_shift"):
            self.same(getattr(np, name)(Tensor([5, 3]), 2), getattr(np, name)(np.array([5, 3]), 2), name)
        self.same(np.invert(Tensor([5])), [-6], "invert")

    def test_of_several(self):
        x, y = numbers(3, 4), numbers(4, 2)
        self.same(np.matmul(Tensor(x), y), x @ y, "matmul")
        self.same(x @ Tensor(y), x @ y, "@")
        self.same(np.outer(Tensor(x), x[0]), np.outer(x, x[0]), "outer")
        self.same(np.where(Tensor(x) > 0.5, x, 0.0), np.where(x > 0.5, x, 0.0), "where")
        self.same(np.where(x > 0.5, Tensor(x), -1.0), np.where(x > 0.5, x, -1.0), "where")

    def test_shapes_compute_nothing(self):
        x = Tensor.zeros(2, 3) + 1
        self.assertEqual((np.shape(x), np.ndim(x), np.size(x), np.size(x, 1)), ((2, 3), 2, 6, 3))
        self.assertFalse(x.uop.op.name == "BUFFER")

    def test_arrays_of_what_tensors_have_not(self):
        x = numbers(3, 4)
        for name, *arguments in ARRAYS:
            function = np
            for part in name.split("."):
                function = getattr(function, part)
            made, want = function(Tensor(x), *arguments), function(x, *arguments)
            self.assertNotIsInstance(made, Tensor)
            np.testing.assert_array_equal(made, want, err_msg=name)
        self.assertEqual([part.tolist() for part in np.split(Tensor(x), 3)], [part.tolist() for part in np.split(x, 3)])
        self.assertEqual([part.tolist() for part in np.where(Tensor(x) > 0.5)], [part.tolist() for part in np.where(x > 0.5)])
        self.assertTrue(np.allclose(Tensor(x), x) and np.array_equal(x, Tensor(x)))
        np.testing.assert_array_equal(np.einsum("ij,kj->ik", Tensor(x), x), np.einsum("ij,kj->ik", x, x))

    def test_what_is_written_to_arrays(self):
        x, out = numbers(3, 4), np.zeros(4, np.float32)
        self.assertIs(np.sum(Tensor(x), axis=0, out=out), out)
        np.testing.assert_allclose(out, x.sum(0), rtol=1e-6)
        whole = np.zeros((3, 4), np.float32)
        self.assertIs(np.exp(Tensor(x), out=whole), whole)
        np.testing.assert_allclose(whole, np.exp(x), rtol=1e-6)
        np.copyto(whole, Tensor(x))
        np.testing.assert_array_equal(whole, x)

    def test_errors_name_the_call(self):
        x = Tensor(numbers(3))
        for call, text in ((lambda: np.add.reduce(x), r"numpy\.add\.reduce\(\) takes no tensors: numpy\.asarray"),
                           (lambda: np.cbrt(x), r"numpy\.cbrt\(\) takes no tensors"),
                           (lambda: np.add(x, 1, dtype="float64"), r"numpy\.add\(dtype=\) takes no tensors"),
                           (lambda: np.exp(numbers(3), out=x), r"numpy\.exp\(\.\., out=x\) of a tensor: write x\.assign"),
                           (lambda: np.sum(x, initial=3), r"numpy\.sum of a tensor: .*initial.*; numpy\.asarray")):
            with self.assertRaisesRegex(TypeError, text):
                call()

    def test_slopes_go_through(self):
        x = Tensor(numbers(2, 3))
        self.assertEqual(np.sum(np.concatenate([x, x * 2])).gradient(x)[0].tolist(), [[3.0] * 3] * 2)


if __name__ == "__main__":
    unittest.main()
