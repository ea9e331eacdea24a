"""Operators of models by name, with keywords for attributes."""

import unittest

import tiny

try:
    import numpy
except ImportError:
    numpy = None


class Operator(unittest.TestCase):
    def test_one_output_or_several(self):
        x = tiny.tensor([3.0, 1.0, 4.0, 1.5])
        values, indices = tiny.op("TopK", x, [2], axis=-1, outputs=2)
        self.assertEqual(values.tolist(), [4.0, 3.0])
        self.assertEqual(indices.tolist(), [2, 0])
        self.assertEqual(tiny.op("Asinh", tiny.tensor([0.0])).tolist(), [0.0])

    def test_inputs_left_out_and_numbers(self):
        x = tiny.tensor([-2.0, 0.5, 9.0])
        self.assertEqual(tiny.op("Clip", x, None, 1.0).tolist(), [-2.0, 0.5, 1.0])

    def test_kinds_of_attributes(self):
        x = tiny.tensor([[1.5, -2.5]])
        self.assertEqual(tiny.op("Cast", x, to=tiny.int32).tolist(), [[1, -2]])
        self.assertEqual(tiny.op("LeakyRelu", x, alpha=1).tolist(), [[1.5, -2.5]])
        self.assertEqual(tiny.op("Constant", value=x).tolist(), [[1.5, -2.5]])
        self.assertEqual(tiny.op("Constant", value_floats=[1.0, float("inf")]).tolist(), [1.0, float("inf")])
        padded = tiny.op("Pad", x, [0, 1, 0, 0], 7.0, mode="constant")
        self.assertEqual(padded.tolist(), [[7.0, 1.5, -2.5]])

    @unittest.skipUnless(numpy, "NumPy is not here")
    def test_arrays(self):
        x = numpy.array([1, 2], "int64")
        self.assertEqual(tiny.op("Add", x, x).tolist(), [2, 4])
        self.assertEqual(tiny.op("ConstantOfShape", [2], value=numpy.array([3], "int32")).tolist(), [3, 3])

    def test_mistakes_are_named(self):
        x = tiny.tensor([1.0])
        with self.assertRaisesRegex(tiny.Error, "TopKK.*not supported"):
            tiny.op("TopKK", x)
        with self.assertRaisesRegex(tiny.Error, '"axes".*axis'):
            tiny.op("Softmax", x, axes=0)
        with self.assertRaisesRegex(TypeError, "JSON"):
            tiny.op("Softmax", x, axis=object())


if __name__ == "__main__":
    unittest.main()
