"""A processor without AVX2, which TINY_ISA=none stands for: the interpreter does the work on the default
device and says so, and the results are those of machine code."""

import os
import unittest
from unittest import mock

import numpy
from support import CliTest


class WithoutAvx2(CliTest):
    def run_sum(self):
        a = self.npy("a.npy", numpy.linspace(-3, 3, 12).reshape(4, 3))
        b = self.npy("b.npy", numpy.linspace(5, 7, 12).reshape(4, 3))
        out = self.folder / "out.npz"
        report = self.json("run", self.arithmetic(), "--input", f"a={a}", "--input", f"b={b}",
                           "--save", out)
        with numpy.load(out) as saved:
            return report, {name: saved[name] for name in saved.files}

    def test_kernels_are_interpreted_and_give_the_same(self):
        with mock.patch.dict(os.environ, {"TINY_ISA": "none"}):
            report, got = self.run_sum()
            text = self.tiny("run", self.arithmetic(), "--synth", "uniform", "--dim", "N=4")
        self.assertEqual(report["device"], "interp")
        self.assertGreater(report["kernels"]["count"], 0)
        self.assertEqual(report["kernels"]["interpreted"], report["kernels"]["count"])
        self.assertRegex(text, r"[1-9]\d* interpreted|interpreted [1-9]")
        fast, want = self.run_sum()
        if fast["device"] == "cpu":
            self.assertEqual(fast["kernels"]["interpreted"], 0)
        self.assertEqual(got.keys(), want.keys())
        for name, values in want.items():
            numpy.testing.assert_array_equal(got[name], values)

    def test_the_device_without_code_is_no_device_for_code(self):
        with mock.patch.dict(os.environ, {"TINY_ISA": "none"}):
            self.tiny("run", self.arithmetic(), "--synth", "uniform", "--dim", "N=4", "--device",
                      "null", code=2)
        self.assertIn("none", self.done.stderr)


if __name__ == "__main__":
    unittest.main(verbosity=2)
