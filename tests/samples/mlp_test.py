"""The sample that trains with tiny.hpp learns in one epoch, and says what is wrong."""

import pathlib
import re
import subprocess
import sys

DATA = pathlib.Path("/usr/share/datasets/fashion-mnist")  # of Debian's dataset-fashion-mnist
LEARNT = 0.82  # after one epoch; guessing gives 0.1


def main(program):
    if not DATA.is_dir():
        print(f"skipped: there is no {DATA}")
        sys.exit(77)
    told = subprocess.run([program, DATA, "1"], check=True, capture_output=True, text=True).stdout
    found = re.fullmatch(r"epoch 1: loss ([\d.]+), accuracy ([\d.]+)\n", told)
    assert found and float(found[2]) > LEARNT, told
    wrong = subprocess.run([program, "/nowhere"], capture_output=True, text=True)
    assert wrong.returncode == 1 and "cannot open /nowhere/train-images" in wrong.stderr, wrong
    assert subprocess.run([program], capture_output=True).returncode == 2


if __name__ == "__main__":
    main(sys.argv[1])
