"""The README's program in C: compiled as it stands there, and run with a model."""

import os
import pathlib
import subprocess
import unittest

import numpy
from support import CliTest, TINY

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(TINY).resolve().parents[1]


def block_with(text):
    """The indented block of the README that has this text."""
    blocks = (ROOT / "README.md").read_text().split("\n\n")
    # A program has empty lines of its own: what is indented goes together.
    joined = [""]
    for block in blocks:
        if block.startswith("    "):
            joined[-1] += "\n" + block
        else:
            joined.append("")
    return next("\n".join(line[4:] for line in block.splitlines()) for block in joined if text in block)


class Readme(CliTest):
    def build(self):
        source = self.folder / "program.c"
        source.write_text(block_with("#include <tiny.h>") + "\n")
        subprocess.run([os.environ.get("TINY_CC", "cc"), *os.environ.get("TINY_CFLAGS", "").split(),
                        "-std=c11", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-I", ROOT / "include",
                        source, "-o", self.folder / "program", "-L", BUILD, "-ltiny",
                        f"-Wl,-rpath,{BUILD}"], check=True)

    def run_program(self):
        return subprocess.run(["./program"], cwd=self.folder, capture_output=True, text=True)

    def test_the_program_in_c(self):
        self.build()
        # Of a fixed shape, with a free batch, and with nothing but its rank known.
        for shape in ((2, 3), ("N", 3), ("N", "?"), (None, None)):
            self.negation(shape, name="model.onnx")
            done = self.run_program()
            self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "-6 91\n", ""), shape)
        self.negation((4, 3), name="model.onnx")
        done = self.run_program()
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertRegex(done.stderr, "tiny_model_compile: .*4")
        (self.folder / "model.onnx").unlink()
        done = self.run_program()
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertIn("tiny_model_load: cannot open model.onnx", done.stderr)

    def test_the_commands(self):
        numpy.save(self.folder / "x.npy", numpy.ones((2, 3), "float32"))
        lines = [line.split() for line in block_with("tiny info model.onnx").splitlines()]
        commands = {line[1] for line in lines if line[:1] == ["tiny"]}
        self.assertLessEqual({"run", "info", "bench", "test"}, commands)
        for line in lines:
            for flag in [word for word in line if word.startswith("--")]:
                self.assertIn(flag, self.tiny(line[1], "--help"))


if __name__ == "__main__":
    unittest.main()
