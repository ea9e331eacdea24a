"""The types that the package tells: mypy --strict finds nothing in a program that uses it, and what is wrong in one."""

import importlib.util
import pathlib
import subprocess
import sys
import unittest

import tiny
from support import Folder

PROGRAM = pathlib.Path(__file__).with_name("typed_program.py")
# The package's own files are not what is checked, as where it is installed.
SETTINGS = b"[mypy]\nstrict = True\n[mypy-tiny.*]\nignore_errors = True\n"


class Types(Folder):
    def checked(self, path):
        settings = self.file("mypy.ini", SETTINGS)
        done = subprocess.run([sys.executable, "-m", "mypy", "--config-file", settings, "--cache-dir", self.folder, path],
                              capture_output=True, text=True, cwd=self.folder,
                              env={"MYPYPATH": str(pathlib.Path(tiny.__file__).parents[1])})
        return done.stdout + done.stderr

    @unittest.skipUnless(importlib.util.find_spec("mypy"), "mypy is not here")
    def test_a_program_is_typed(self):
        self.assertEqual(self.checked(PROGRAM), "Success: no issues found in 1 source file\n")
        wrong = self.file("wrong.py", b"from tiny import Tensor, nn\n\nx: int = Tensor([1]).sum()\nTensor([1]).summ()\n"
                                      b"nn.Linear()\nTensor.stack\n")
        found = [line.partition("wrong.py:")[2].split(":")[0] for line in self.checked(wrong).splitlines()[:-1]]
        self.assertEqual(found, ["3", "4", "5"])

    @unittest.skipUnless(importlib.util.find_spec("mypy"), "mypy is not here")
    def test_the_stub_names_types(self):
        stub = pathlib.Path(tiny.__file__).with_name("__init__.pyi")
        done = subprocess.run([sys.executable, "-m", "mypy", "--follow-imports=silent", "--cache-dir", self.folder, stub],
                              capture_output=True, text=True, cwd=self.folder,
                              env={"MYPYPATH": str(stub.parents[1])})
        self.assertEqual(done.stdout + done.stderr, "Success: no issues found in 1 source file\n")

    def test_it_runs(self):
        done = subprocess.run([sys.executable, "-B", PROGRAM, self.folder], capture_output=True, text=True)
        self.assertEqual((done.stderr, done.stdout.split()[:4], done.stdout.split()[-2:]),
                         ("", ["CPU", "4", "float32", "True"], ["2", "SHAPE"]))


if __name__ == "__main__":
    unittest.main()
