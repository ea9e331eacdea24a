"""The sample that trains a GPT learns within a few steps, and writes characters of its text.

Usage: gpt_test.py BUILD_DIR"""

import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
STEPS = 60  # of a network that begins at the logarithm of 100 characters, 4.6
LEARNT = 3.0  # in the last 10; who knows only how common each character is has 3.5


def main(build):
    environment = dict(os.environ, PYTHONPATH=os.path.join(build, "bindings/python"))
    sample = [sys.executable, "-B", ROOT / "samples/python/train_gpt.py"]

    def run(*arguments):
        return subprocess.run([*sample, *arguments], capture_output=True, text=True, env=environment)
    told = run(str(STEPS))
    assert told.returncode == 0, told.stderr
    losses = [float(loss) for loss in re.findall(r"^step \d+: loss ([\d.]+), \d+ ms a step$", told.stdout, re.M)]
    assert len(losses) == 3 and losses[0] > 4 and losses[-1] < LEARNT, told.stdout
    written = told.stdout.split(" ms a step\n")[-1].strip("\n")
    assert len(written) >= 250 and len(set(written)) > 5, written
    wrong = run("2", "/nowhere.md")
    assert wrong.returncode == 1 and "/nowhere.md" in wrong.stderr, wrong
    assert run("many").returncode == 2


if __name__ == "__main__":
    main(sys.argv[1])
