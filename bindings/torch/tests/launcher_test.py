"""`python -m tiny.torch run`: a program that names "cuda" runs on tiny, as it is."""

import pathlib
import subprocess
import sys
import unittest

HERE = pathlib.Path(__file__).parent


class Launcher(unittest.TestCase):
    def run_module(self, *arguments):
        return subprocess.run([sys.executable, "-m", "tiny.torch", *arguments], capture_output=True, text=True)

    def test_a_program_for_cuda(self):
        run = self.run_module("run", str(HERE / "cuda_program.py"), "5")
        self.assertEqual((run.returncode, run.stdout), (0, "device tiny:0 True ms True finite True\n"), run.stderr)

    def test_without_a_script_it_says_how(self):
        run = self.run_module()
        self.assertNotEqual(run.returncode, 0)
        self.assertIn("python -m tiny.torch run SCRIPT ARGS", run.stderr)


if __name__ == "__main__":
    unittest.main()
