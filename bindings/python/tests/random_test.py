"""Random numbers: tinygrad's of the same seed and order of draws, also where programs and calls take turns."""

import unittest

import tiny
from tiny import Tensor, TinyJit
from tiny._reading import Reading

try:
    import numpy
except ImportError:
    numpy = None


class Values(unittest.TestCase):
    # tinygrad at the pinned commit, test_threefry_against_reference_full: JAX's threefry_2x32 with the seed's key.
    TWENTY = [0.45735931396484375, 0.6311527490615845, 0.15571284294128418, 0.8149417638778687, 0.7862188816070557,
              0.8008807897567749, 0.568588376045227, 0.9852620363235474, 0.42314577102661133, 0.9811755418777466,
              0.38059568405151367, 0.09186363220214844, 0.9497315883636475, 0.5826880931854248, 0.3796330690383911,
              0.5610522031784058, 0.16122901439666748, 0.3732343912124634, 0.9795231819152832, 0.3280656337738037]
    NEXT = [0.09199333190917969, 0.9130761623382568, 0.7048608064651489, 0.22254979610443115, 0.0014830827713012695]

    def test_the_bits_of_a_seed(self):
        Tensor.manual_seed(1337)
        self.assertEqual(Tensor.rand(20).tolist(), self.TWENTY)
        self.assertEqual(Tensor.rand(20).tolist()[:5], self.NEXT)

    def test_a_draw_counts_its_words(self):
        def after(draw):
            Tensor.manual_seed(3)
            draw()
            return Tensor.rand(4).tolist()
        for draw, words in ((lambda: Tensor.rand(3, 5), 15), (lambda: Tensor.rand(5, dtype=tiny.float16), 3),
                            (lambda: Tensor.rand(5, dtype=tiny.float64), 10), (lambda: Tensor.randn(6), 12),
                            (lambda: Tensor.randint(7), 7), (lambda: Tensor.rand(0, 4), 0),
                            (lambda: Tensor.randperm(4), 8)):
            self.assertEqual(after(draw), after(lambda words=words: Tensor.rand(words)), words)

    def test_programs_and_calls_take_turns(self):
        def drawn(jit):
            Tensor.manual_seed(9)
            draw = TinyJit(lambda: Tensor.rand(3) + Tensor.randn(3)) if jit else lambda: Tensor.rand(3) + Tensor.randn(3)
            made = []
            for i in range(8):
                made.append(draw().tolist())
                if i % 3 == 2:
                    made.append(Tensor.rand(2).tolist())
                if i == 5:
                    Tensor.manual_seed(10)
            return made
        self.assertEqual(drawn(True), drawn(False))

    def test_the_counter_has_two_words(self):
        Tensor.manual_seed(1)
        counter = Tensor._device_rng_counters["CPU"]
        counter.assign(Tensor([2**32 - 6, 0], dtype=tiny.uint32))
        Tensor.rand(10)
        self.assertEqual(Tensor._device_rng_counters["CPU"].tolist(), [4, 1])
        draw = TinyJit(lambda: Tensor.rand(10))
        Tensor._device_rng_counters["CPU"].assign(Tensor([2**32 - 6, 7], dtype=tiny.uint32))
        first = [draw().tolist() for _ in range(3)]
        self.assertEqual(Tensor._device_rng_counters["CPU"].tolist(), [24, 8])
        Tensor._device_rng_counters["CPU"].assign(Tensor([2**32 - 6, 7], dtype=tiny.uint32))
        self.assertEqual([Tensor.rand(10).tolist() for _ in range(3)], first)

    @unittest.skipIf(numpy is None, "no NumPy")
    def test_normal_numbers(self):
        Tensor.manual_seed(42)
        u, v = Tensor.rand(2, 500).numpy().astype(numpy.float64)
        Tensor.manual_seed(42)
        made = Tensor.randn(500).numpy()
        numpy.testing.assert_allclose(made, numpy.cos(2 * numpy.pi * u) * numpy.sqrt(-2 * numpy.log(1 - v)), atol=5e-7,
                                      rtol=5e-7)


class Arguments(unittest.TestCase):
    def test_what_is_wrong(self):
        for error, call in ((ValueError, lambda: Tensor.rand(2, -1)), (ValueError, lambda: Tensor.rand(2, dtype=tiny.int32)),
                            (ValueError, lambda: Tensor.randint(3, low=5, high=5)),
                            (TypeError, lambda: Tensor.randint(3, low=0.5)),
                            (TypeError, lambda: Tensor.randint(3, dtype=tiny.float32)),
                            (ValueError, lambda: Tensor.uniform(3, low=1, high=1)),
                            (ValueError, lambda: Tensor.normal(3, std=-1)),
                            (ValueError, lambda: Tensor([1.0, 2.0]).multinomial(3)),
                            (AssertionError, lambda: Tensor([1.0, 2.0]).multinomial(0))):
            with self.assertRaises(error):
                call()

    def test_integers_are_as_likely_as_each_other(self):
        """Also in ranges beyond a float's fraction."""
        Tensor.manual_seed(0)
        self.assertGreater(len({value & 1023 for value in Tensor.randint(4000, high=2**31).tolist()}), 900)
        self.assertEqual(set(Tensor.randint(200, low=-2, high=1).tolist()), {-2, -1, 0})

    def test_tinygrads_reading(self):
        Reading.tinygrad = True
        try:
            Tensor.manual_seed(5)
            made = Tensor.randint(100, low=-7, high=30)
            Tensor.manual_seed(5)
            want = [int(value * 37) - 7 for value in Tensor.rand(100).tolist()]
            self.assertEqual((made.dtype, made.tolist()), (tiny.int32, want))
        finally:
            Reading.tinygrad = False


if __name__ == "__main__":
    unittest.main()
