"""tiny --device opencl: what a new user does, and what there is to say where no driver is, or none that
will do."""

import os
import subprocess
import unittest
from unittest import mock

import numpy
from onnx import helper
from support import TINY, CliTest, port, save_model

# A library of the name that the loader opens, which says that it was.
OLD_LIBRARY = r"""
#include <stdio.h>
#include <stdlib.h>
__attribute__((constructor)) static void opened(void) {
  FILE *file = fopen(getenv("OPENED"), "w");
  if (file) fclose(file);
}
int clGetPlatformIDs(unsigned count, void *platforms, unsigned *found) {
  if (found) *found = 0;
  return 0;
}
"""


class OpenCl(CliTest):
    def devices(self):
        return {device["name"]: device for device in self.json("devices")["devices"]}

    def require_driver(self):
        if not self.devices()["opencl"]["available"]:
            self.skipTest("no driver of OpenCL has a device here")

    def library(self, source):
        """The folder of a library by the name of OpenCL's loader."""
        folder = self.folder / "lib"
        folder.mkdir()
        (self.folder / "library.c").write_text(source)
        subprocess.run([os.environ.get("TINY_CC", "cc"), *os.environ.get("TINY_CFLAGS", "").split(), "-shared",
                        "-fPIC", "-o", folder / "libOpenCL.so.1", self.folder / "library.c"], check=True)
        return folder

    def test_a_model_runs_as_it_does_on_the_processor(self):
        self.require_driver()
        a = self.npy("a.npy", numpy.linspace(-3, 3, 12).reshape(4, 3))
        b = self.npy("b.npy", numpy.linspace(5, 7, 12).reshape(4, 3))

        def run(*flags):
            return self.json("run", self.arithmetic(), "--input", f"a={a}", "--input", f"b={b}", *flags)
        want, got = run(), run("--device", "opencl")
        self.assertEqual((got["device"], got["kernels"]["interpreted"]), ("opencl", 0))
        self.assertEqual(got["outputs"], want["outputs"])
        with mock.patch.dict(os.environ, {"TINY_DEVICE": "opencl:0"}):
            by_environment = run()
        self.assertEqual((by_environment["device"], by_environment["outputs"]), ("opencl", want["outputs"]))

    def test_a_measurement_waits_for_the_device(self):
        self.require_driver()
        product = save_model(self.folder / "product.onnx", [helper.make_node("MatMul", ["x", "x"], ["y"])],
                             [port("x", [384, 384])], [port("y", [384, 384])])
        result = self.json("bench", product, "--synth", "ones", "--device", "opencl", "--runs", "9",
                           "--profile")["results"][0]
        spent = sum(kernel["ms"] for kernel in result["kernels"])
        self.assertGreater(result["ms"]["min"], spent / 4)

    def test_devices_have_their_limits(self):
        self.require_driver()
        device = self.devices()["opencl"]
        for key in ("memory", "buffer_memory", "group_memory", "group_threads", "units"):
            self.assertGreater(device[key], 0, key)
        line = next(text for text in self.tiny("devices").splitlines() if text.startswith("opencl "))
        self.assertIn(f"groups of up to {device['group_threads']}", line)

    def test_a_number_that_is_not_there(self):
        self.require_driver()
        error = self.json("run", self.negation(), "--synth", "ones", "--device", "opencl:99", code=4)["error"]
        self.assertIn("opencl:99", error["message"])

    def test_nothing_is_opened_before_it_is_asked_for(self):
        opened = self.folder / "opened"
        with mock.patch.dict(os.environ, {"LD_LIBRARY_PATH": str(self.library(OLD_LIBRARY)),
                                          "OPENED": str(opened)}):
            self.json("run", self.negation(), "--synth", "ones")
            self.tiny("run", self.negation(), "--synth", "ones", "--device", "interp", "-v")
            self.assertFalse(opened.exists())
            reason = self.devices()["opencl"]["reason"]
            self.assertTrue(opened.exists())
            self.assertIn("older than version 1.2", reason)
            error = self.json("run", self.negation(), "--synth", "ones", "--device", "opencl", code=4)["error"]
            self.assertIn("older than version 1.2", error["message"])

    def test_no_driver(self):
        with mock.patch.dict(os.environ, {"OCL_ICD_VENDORS": str(self.folder / "none")}):
            self.assertIn("no driver has a device", self.devices()["opencl"]["reason"])
            error = self.json("run", self.negation(), "--synth", "ones", "--device", "opencl", code=4)["error"]
        self.assertIn("pocl-opencl-icd", error["message"])

    def test_no_library(self):
        folder = self.library(OLD_LIBRARY)
        (folder / "libOpenCL.so.1").write_bytes(b"")
        with mock.patch.dict(os.environ, {"LD_LIBRARY_PATH": str(folder)}):
            error = self.json("run", self.negation(), "--synth", "ones", "--device", "opencl", code=4)["error"]
        self.assertIn("libOpenCL.so.1 cannot be opened", error["message"])


class WithoutOpenCl(CliTest):
    def test_the_other_devices_do_not_ask(self):
        done = subprocess.run([TINY, "run", self.negation(), "--synth", "ones"], capture_output=True, text=True,
                              env={**os.environ, "LD_DEBUG": "files"}, cwd=self.folder)
        self.assertEqual(done.returncode, 0)
        self.assertNotIn("libOpenCL", done.stderr)


if __name__ == "__main__":
    unittest.main()
