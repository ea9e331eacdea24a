"""tiny.compat: `import tinygrad` is tiny, in a process of its own."""

import os
import subprocess
import sys
import tempfile
import unittest


def run(*arguments, **environment):
    """What `python -m tiny.compat ARGUMENTS` prints, and its exit status."""
    done = subprocess.run([sys.executable, "-B", "-m", "tiny.compat", *arguments], capture_output=True, text=True,
                          env={**os.environ, **environment})
    return done.stdout + done.stderr, done.returncode


class Command(unittest.TestCase):
    def test_text_module_and_file(self):
        text = "import sys; from tinygrad import Tensor; print(Tensor([1, 2, 3]).sum().item(), sys.argv[1:])"
        self.assertEqual(run("-c", text, "a"), ("6 ['a']\n", 0))
        with tempfile.TemporaryDirectory() as folder:
            with open(os.path.join(folder, "beside.py"), "w") as file:
                file.write("number = 5\n")
            path = os.path.join(folder, "program.py")
            with open(path, "w") as file:
                file.write("import beside, tinygrad.nn as nn\n"
                           "print(__name__, nn.Linear(2, beside.number).weight.shape)\n")
            self.assertEqual(run(path), ("__main__ (5, 2)\n", 0))

    def test_says_what_is_wanted(self):
        self.assertEqual(run("/no/such.py"), ("python -m tiny.compat: /no/such.py: no such file\n", 2))
        self.assertEqual(run("-c")[1], 2)
        self.assertEqual(run("--help")[1], 0)


if __name__ == "__main__":
    unittest.main()
