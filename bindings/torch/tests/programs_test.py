"""Programs of other people's kind (the folder programs): on device "tiny" what they are on the CPU, and what the CPU computed of it."""

import unittest
import warnings

import torch

import programs
import tiny.torch as tiny


class Programs(unittest.TestCase):
    def test_programs(self):
        for name, one in programs.PROGRAMS.items():
            with self.subTest(name=name), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                want = one(programs.Place("cpu"))
                tiny.clear_fallbacks()
                got = one(programs.Place("tiny"))
                torch.testing.assert_close(got, want, rtol=one.tolerance, atol=one.tolerance)
                used = {begin for begin in one.by_cpu for key in tiny.fallbacks() if key.startswith(begin)}
                self.assertEqual(used, set(one.by_cpu))
                self.assertEqual([key for key in tiny.fallbacks() if not any(map(key.startswith, used))], [])


if __name__ == "__main__":
    unittest.main()
