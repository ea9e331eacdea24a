"""Convolutions and pools by keywords."""

import inspect
import unittest

import numpy
import tiny


def counted(*shape):
    return tiny.tensor(numpy.arange(1, numpy.prod(shape) + 1, dtype=numpy.float32).reshape(shape))


class Window(unittest.TestCase):
    def test_one_number_stands_for_every_axis(self):
        x, w = counted(1, 2, 6, 6), counted(2, 2, 3, 3)
        plain = x.conv(w).numpy()
        padded = x.conv(w, padding=1)
        self.assertEqual(padded.shape, (1, 2, 6, 6))
        numpy.testing.assert_array_equal(padded.numpy()[:, :, 1:-1, 1:-1], plain)
        for padding in ([1, 1], [(1, 1), (1, 1)], "same", "SAME_LOWER", tiny.Padding.SAME_UPPER):
            numpy.testing.assert_array_equal(x.conv(w, padding=padding).numpy(), padded.numpy())
        numpy.testing.assert_array_equal(x.conv(w, strides=2).numpy(), plain[:, :, ::2, ::2])
        numpy.testing.assert_array_equal(x.conv(w, strides=[1, 3]).numpy(), plain[:, :, :, ::3])
        self.assertEqual(x.conv(w, padding=[(1, 0), (0, 2)], dilations=[1, 2]).shape, (1, 2, 5, 4))

    def test_a_window_says_it_for_several_calls(self):
        x, w = counted(1, 4, 6), counted(4, 2, 3)
        window = tiny.Window(1, padding="same", groups=2)
        numpy.testing.assert_array_equal(x.conv(w, window=window).numpy(),
                                         x.conv(w, None, padding=1, groups=2).numpy())
        with self.assertRaisesRegex(TypeError, "a window, and groups beside it"):
            x.conv(w, window=window, groups=2)

    def test_channels_lie_last(self):
        x, w = counted(2, 3, 5, 6), counted(4, 3, 3, 2)
        back = [0, 3, 1, 2]
        last = x.permute([0, 2, 3, 1]).conv(w.permute([0, 2, 3, 1]), padding="same", layout="channels_last")
        self.assertEqual(last.shape, (2, 5, 6, 4))
        numpy.testing.assert_array_equal(last.permute(back).numpy(), x.conv(w, padding="same").numpy())
        pooled = x.permute([0, 2, 3, 1]).max_pool(2, strides=2, layout=tiny.Layout.CHANNELS_LAST)
        numpy.testing.assert_array_equal(pooled.permute(back).numpy(), x.max_pool(2, strides=2).numpy())

    def test_a_transposed_convolution(self):
        x, w = counted(1, 1, 3), counted(1, 1, 2)
        self.assertEqual(x.conv_transpose(w, strides=2).tolist(), [[[1, 2, 2, 4, 3, 6]]])
        self.assertEqual(x.conv_transpose(w, strides=2, output_padding=1).shape, (1, 1, 7))

    def test_pools(self):
        x = counted(1, 1, 5)
        self.assertEqual(x.max_pool(2, strides=2).tolist(), [[[2, 4]]])
        one = tiny.tensor([[[5.0]]])
        self.assertEqual(one.max_pool(2, strides=2, ceil_mode=True).tolist(), [[[5]]])
        self.assertEqual(one.avg_pool(2, strides=2, ceil_mode=True).tolist(), [[[5]]])
        with self.assertRaisesRegex(ValueError, "does not fit"):
            one.max_pool(3, strides=2, ceil_mode=True)
        self.assertEqual(x.max_pool(2, strides=2, ceil_mode=True).tolist(), [[[2, 4, 5]]])
        self.assertEqual(x.max_pool_indices([2], strides=2).tolist(), [[[1, 3]]])
        self.assertEqual(x.avg_pool(3, padding=1).tolist(), [[[1.5, 2, 3, 4, 4.5]]])
        self.assertEqual(x.avg_pool(3, padding=1, count_include_pad=True).tolist(), [[[1, 2, 3, 4, 3]]])
        self.assertEqual(x.max_pool(tiny.Window(1, kernel=5)).tolist(), [[[5]]])

    def test_mistakes_are_told(self):
        x, w = counted(1, 1, 5), counted(1, 1, 2)
        with self.assertRaisesRegex(tiny.Error, r"strides \[0\]; each from 1"):
            x.conv(w, strides=0)
        with self.assertRaisesRegex(tiny.Error, "kernel has 2 values for a window of 1"):
            x.max_pool(window=tiny.Window(1, kernel=[2, 2]))
        with self.assertRaisesRegex(ValueError, "padding 'some'; known: explicit, same_upper"):
            x.conv(w, padding="some")
        with self.assertRaisesRegex(ValueError, "layout 'nhcw'; known: channels_first"):
            x.conv(w, layout="nhcw")
        with self.assertRaisesRegex(tiny.Error, "window is NULL|has no kernel"):
            x.max_pool()

    def test_the_keywords_are_there_to_be_seen(self):
        self.assertIn("groups", inspect.signature(tiny.Tensor.conv).parameters)
        self.assertIn("count_include_pad", inspect.signature(tiny.Tensor.avg_pool).parameters)
        self.assertIn("keepdims", inspect.signature(tiny.Tensor.argmax).parameters)
        self.assertTrue(tiny.Tensor.conv.__doc__.startswith("Cross-correlation."))

    def test_flags_are_keywords(self):
        x = tiny.tensor([[3, 1, 3], [2, 2, 0]])
        self.assertEqual(x.argmax(1).tolist(), [0, 0])
        self.assertEqual(x.argmax(1, last=True).tolist(), [2, 1])
        self.assertEqual(x.argmax(1, keepdims=True, last=True).tolist(), [[2], [1]])
        self.assertEqual(x.cumsum(1, exclusive=True).tolist(), [[0, 3, 4], [0, 2, 4]])
        self.assertEqual(x.cumsum(1, reverse=True).tolist(), [[7, 4, 3], [4, 2, 0]])
        self.assertEqual(x.sum(axes=1, keepdims=True).tolist(), [[7], [4]])


if __name__ == "__main__":
    unittest.main()
