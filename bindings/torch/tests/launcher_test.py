"""`python -m tiny.torch run`: a program that names "cuda" runs on tiny, as it is."""

import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

import numpy

HERE = pathlib.Path(__file__).parent


class Launcher(unittest.TestCase):
    def run_module(self, *arguments):
        return subprocess.run([sys.executable, "-m", "tiny.torch", *arguments], capture_output=True, text=True)

    def test_a_program_for_cuda(self):
        run = self.run_module("run", str(HERE / "cuda_program.py"), "5")
        self.assertEqual((run.returncode, run.stdout), (0, "device tiny:0 True ms True finite True\n"), run.stderr)

    def run_script(self, folder, script, **environment):
        return subprocess.run([sys.executable, "-B", str(script)], capture_output=True, text=True, cwd=folder,
                              env={**os.environ, "TINY_BACKEND": "1", **environment})

    def test_a_program_and_its_data_set(self):
        with tempfile.TemporaryDirectory() as folder:
            files = pathlib.Path(folder, "cifar10", "cifar-10-batches-bin")
            files.mkdir(parents=True)
            random = numpy.random.default_rng(1)
            for name in (*(f"data_batch_{i}" for i in range(1, 6)), "test_batch"):
                rows = random.integers(0, 256, [20, 3073], numpy.uint8)
                rows[:, 0] %= 10
                (files / f"{name}.bin").write_bytes(rows.tobytes())
            for _ in range(2):  # the second time from the file that the first one saved
                run = self.run_script(folder, HERE / "cifar_program.py", STEPS="2", BS="8")
                self.assertEqual(run.returncode, 0, run.stderr)
                lines = run.stdout.splitlines()
                self.assertEqual(lines[0], "batch 8 tiny:0 True True")
                self.assertEqual([line.split()[:3] for line in lines[1:]], [["step", "1", "loss"], ["step", "2", "loss"]])

    def test_a_loss_that_is_not_finite_is_an_error(self):
        with tempfile.TemporaryDirectory() as folder:
            script = pathlib.Path(folder, "program.py")
            script.write_text("import torch\nx = torch.ones(1, device='cuda', requires_grad=True)\n"
                              "for step in range(3):\n  (x / step).sum().backward()\n")
            run = self.run_script(folder, script, STEPS="2")
            self.assertEqual((run.returncode, run.stdout), (1, "step 1 loss inf\n"))
            self.assertIn("not finite", run.stderr)

    def test_constants_have_other_values(self):
        with tempfile.TemporaryDirectory() as folder:
            script = pathlib.Path(folder, "program.py")
            script.write_text("import sys\nwidth = 5\nprint(width, sys.argv[1:], __name__)\n")
            run = self.run_module("run", "--set", "width=2 + 1", str(script), "a", "--b")
            self.assertEqual((run.returncode, run.stdout), (0, "3 ['a', '--b'] __main__\n"), run.stderr)
            run = self.run_module("run", "--set", "height=2", str(script))
            self.assertIn("assigns no height", run.stderr)

    def test_without_a_script_it_says_how(self):
        run = self.run_module()
        self.assertNotEqual(run.returncode, 0)
        self.assertIn("usage: python -m tiny.torch", run.stderr)


if __name__ == "__main__":
    unittest.main()
