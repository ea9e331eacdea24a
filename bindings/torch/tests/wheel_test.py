"""The wheel installs beside PyTorch's and the engine's; `import torch` has the device, and never fails for it."""

import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

import tiny

MAKE_WHEEL = pathlib.Path(__file__).resolve().parents[1] / "make_wheel.py"
PACKAGE = pathlib.Path(tiny.__file__).parent
BUILD = PACKAGE.parents[2]


class Wheel(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.folder.cleanup)
        cls.site = pathlib.Path(cls.folder.name) / "lib" / f"python3.{sys.version_info.minor}" / "site-packages"
        # As the engine's wheel lays it out.
        shutil.copytree(PACKAGE, cls.site / "tiny", ignore=shutil.ignore_patterns("torch", "__pycache__"))
        for library in BUILD.glob("libtiny.so*"):  # where the package that was built looks for it
            shutil.copy(library, (cls.site / "tiny").parents[2] / library.name)
        wheel = subprocess.run([sys.executable, "-B", str(MAKE_WHEEL), str(BUILD), cls.folder.name], check=True,
                               capture_output=True, text=True).stdout.strip()
        subprocess.run([sys.executable, "-I", "-m", "pip", "install", "--quiet", "--ignore-installed", "--no-deps", "--no-index",
                        "--no-compile", "--disable-pip-version-check", "--prefix", cls.folder.name, wheel], check=True)

    def run_program(self, program):
        return subprocess.run([sys.executable, "-B", "-c", program], capture_output=True, text=True,
                              env={"PYTHONPATH": str(self.site), "PATH": "/usr/bin:/bin"})

    def test_import_torch_has_the_device(self):
        run = self.run_program("import torch; print((torch.ones(2, device='tiny') + 1).tolist(), torch.tiny.__file__)")
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertEqual(run.stdout.split(), ["[2.0,", "2.0]", str(self.site / "tiny/torch/_module.py")])

    def test_import_torch_never_fails_for_it(self):
        built = self.site / "tiny/torch/_built.py"
        kept = built.read_text()
        built.write_text('TORCH = "1.0.0"\n')
        try:
            run = self.run_program("import torch; print(torch.ones(2).tolist())")
            asked = self.run_program("import tiny.torch")
        finally:
            built.write_text(kept)
        self.assertEqual((run.returncode, run.stdout), (0, "[1.0, 1.0]\n"), run.stderr)
        self.assertIn("tiny.torch was built for PyTorch 1.0.0", run.stderr)
        self.assertNotEqual(asked.returncode, 0)


if __name__ == "__main__":
    unittest.main()
