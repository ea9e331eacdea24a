"""Loaders in Python: epochs are iterated over, whatever the arrays are."""

import array
import unittest

import tiny


class Loaders(unittest.TestCase):
    def test_an_epoch_is_an_iteration(self):
        x = tiny.tensor([[float(i), float(-i)] for i in range(10)])
        labels = array.array("q", range(10))
        for ahead in (0, 3):
            loader = tiny.Loader.create([x, labels], 4, shuffle=True, seed=7, ahead=ahead)
            self.assertEqual(len(loader), 3)
            batches = [(pictures.tolist(), names.tolist()) for pictures, names in loader]
            self.assertEqual([names for _, names in batches], [[7, 6, 9, 2], [8, 4, 0, 3], [5, 1]])
            self.assertEqual(batches[2][0], [[5, -5], [1, -1]])
            self.assertNotEqual(next(iter(loader))[1].tolist(), [7, 6, 9, 2])
            self.assertEqual(loader.place, (1, 1))
            loader.seek(0, 2)
            self.assertEqual([names.tolist() for _, names in loader], [[5, 1]])

    def test_what_is_wrong_is_said(self):
        with self.assertRaisesRegex(tiny.Error, "arrays.1. has 3 rows, arrays.0. 2"):
            tiny.Loader.create([tiny.tensor([1.0, 2.0]), tiny.tensor([1.0, 2.0, 3.0])], 1)


if __name__ == "__main__":
    unittest.main()
