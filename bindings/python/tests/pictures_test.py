"""Pictures sampled at places, and channels as pixels, against PyTorch: values, slopes, what is refused."""

import itertools
import unittest

import hypothesis
import hypothesis.strategies as st
import numpy as np
import torch
from torch.nn import functional

import tiny
from compared import BOX, Case, numbers
from tiny import Tensor


class Pixels(Case):
    @hypothesis.settings(**BOX)
    @hypothesis.given(st.lists(st.integers(1, 3), max_size=2), st.integers(1, 3), st.integers(1, 3), st.integers(1, 4),
                      st.integers(1, 4))
    def test_channels_become_pixels_and_back(self, batch, factor, channels, height, width):
        few = numbers((*batch, channels * factor ** 2, height, width))
        many = numbers((*batch, channels, height * factor, width * factor))
        self.same(lambda x: x.pixel_shuffle(factor), lambda x: functional.pixel_shuffle(x, factor), few)
        self.same(lambda x: x.pixel_unshuffle(factor), lambda x: functional.pixel_unshuffle(x, factor), many)
        np.testing.assert_array_equal(Tensor(few).pixel_shuffle(factor).pixel_unshuffle(factor).numpy(), few)

    def test_a_convolution_before(self):
        self.same(lambda x, w: x.conv2d(w, padding=1).relu().pixel_shuffle(2),
                  lambda x, w: functional.pixel_shuffle(functional.conv2d(x, w, padding=1).relu(), 2),
                  numbers((2, 3, 6, 5)), numbers((8, 3, 3, 3), 1), rtol=1e-4, atol=1e-5)

    def test_no_pictures(self):
        self.assertEqual(Tensor.zeros(0, 4, 2, 3).pixel_shuffle(2).shape, (0, 1, 4, 6))
        self.assertEqual(Tensor.zeros(0, 1, 4, 6).pixel_unshuffle(2).shape, (0, 4, 2, 3))

    def test_what_is_refused(self):
        x = Tensor.zeros(2, 6, 3, 4)
        for call in (lambda: x.pixel_shuffle(2), lambda: x.pixel_shuffle(0), lambda: x.pixel_shuffle(1.5),
                     lambda: x[0, 0].pixel_shuffle(1), lambda: x.pixel_unshuffle(2), lambda: x.pixel_unshuffle(-1),
                     lambda: x[0, 0].pixel_unshuffle(1)):
            with self.assertRaises(ValueError):
                call()


class Places(Case):
    def sampled(self, x, grid, *options):
        if options[0] == "nearest":  # places have no slope
            self.same(lambda x: x.grid_sample(Tensor(grid), *options),
                      lambda x: functional.grid_sample(x, torch.tensor(grid), *options), x)
        else:
            self.same(lambda x, grid: x.grid_sample(grid, *options),
                      lambda x, grid: functional.grid_sample(x, grid, *options), x, grid, rtol=1e-4, atol=1e-4)

    def test_modes_and_paddings(self):
        modes, paddings = ("bilinear", "nearest", "bicubic"), ("zeros", "border", "reflection")
        x, grid = numbers((2, 3, 5, 6)), numbers((2, 4, 7, 2), 1, -1.6, 1.6)
        for mode, padding, corners in itertools.product(modes, paddings, (False, True)):
            with self.subTest(mode=mode, padding=padding, corners=corners):
                self.sampled(x, grid, mode, padding, corners)

    def test_three_axes(self):
        x, grid = numbers((2, 2, 3, 4, 5)), numbers((2, 2, 3, 2, 3), 1, -1.3, 1.3)
        for mode, padding in itertools.product(("bilinear", "nearest"), ("zeros", "border")):
            with self.subTest(mode=mode, padding=padding):
                self.sampled(x, grid, mode, padding, False)

    def test_doubles(self):
        x, grid = numbers((1, 2, 4, 5)).astype(np.float64), numbers((1, 3, 3, 2), 1, -1.2, 1.2).astype(np.float64)
        self.same(lambda x, grid: x.grid_sample(grid), lambda x, grid: functional.grid_sample(x, grid, align_corners=False),
                  x, grid, rtol=1e-12, atol=1e-12)

    def test_places_of_a_movement(self):
        for size in ((2, 3, 4, 5), (2, 1, 3, 1, 4)):
            axes = len(size) - 2
            theta = numbers((2, axes, axes + 1))
            for corners in (False, True):
                with self.subTest(size=size, corners=corners):
                    self.same(lambda x: x.affine_grid(size, corners), lambda x: functional.affine_grid(x, size, corners), theta)

    def test_a_picture_is_turned(self):
        """A spatial transformer: what the movement's slopes are told by the picture."""
        def ours(x, theta):
            return x.grid_sample(theta.affine_grid((2, 3, 6, 5)), padding_mode="border")

        def theirs(x, theta):
            grid = functional.affine_grid(theta, (2, 3, 6, 5), False)
            return functional.grid_sample(x, grid, padding_mode="border", align_corners=False)
        theta = np.array([[[0.8, -0.3, 0.1], [0.2, 0.9, -0.2]], [[1.1, 0.1, 0.0], [-0.4, 0.7, 0.3]]], np.float32)
        self.same(ours, theirs, numbers((2, 3, 4, 7)), theta, rtol=1e-4, atol=1e-4)

    def test_what_is_refused(self):
        x, grid = Tensor.zeros(2, 3, 4, 5), Tensor.zeros(2, 6, 6, 2)
        for call in (lambda: x.grid_sample(grid, "cubist"), lambda: x.grid_sample(grid, padding_mode="wrap"),
                     lambda: x.grid_sample(grid[:1]), lambda: x.grid_sample(Tensor.zeros(2, 6, 6, 3)),
                     lambda: x[0].grid_sample(grid[0], "bicubic"), lambda: Tensor.zeros(2, 2, 3).affine_grid((2, 3)),
                     lambda: Tensor.zeros(2, 2, 3).affine_grid(4), lambda: Tensor.zeros(2, 3, 3).affine_grid((2, 3, 4, 5))):
            with self.assertRaises((ValueError, tiny.Error)):
                call()


if __name__ == "__main__":
    unittest.main()
