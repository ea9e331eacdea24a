"""Checks or writes the committed Rust sources that come from include/tiny.h.

Usage: bindings.py check|write
src/ffi.rs is bindgen's, src/generated.rs is bindings/generate.py's.  They are committed so that
users need neither tool; white space aside, which depends on rustfmt, they must be what the tools
make of the header as it is.
"""

import os
import pathlib
import re
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
HEADER = HERE.parents[1] / "include/tiny.h"
LIBCLANG = "/usr/lib/llvm-14/lib"  # later ones name unnamed enumerations as bindgen 0.60 cannot read


def make_ffi(output):
    environment = dict(os.environ)
    if pathlib.Path(LIBCLANG).is_dir():
        environment["LIBCLANG_PATH"] = LIBCLANG
    subprocess.run(["bindgen", HEADER, "-o", output, "--allowlist-file", r".*tiny\.h",
                    "--default-enum-style", "consts", "--size_t-is-usize", "--no-layout-tests"],
                   check=True, env=environment)


def make_generated(output):
    subprocess.run([sys.executable, "-B", HERE.parent / "generate.py", "rust", HEADER, output],
                   check=True)


def plain(text):
    """The text without what a formatter may change."""
    return re.sub(r",(?=[)}\]])", "", re.sub(r"\s+", "", text))


def main(mode):
    wrong = 0
    for name, make in (("ffi.rs", make_ffi), ("generated.rs", make_generated)):
        committed = HERE / "src" / name
        if mode == "write":
            make(committed)
            continue
        with tempfile.TemporaryDirectory() as folder:
            made = pathlib.Path(folder) / name
            make(made)
            if plain(made.read_text()) != plain(committed.read_text()):
                print(f"{committed} is not what include/tiny.h gives; run scripts/generate-bindings.sh")
                wrong += 1
    return wrong


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
