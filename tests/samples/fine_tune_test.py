"""The samples that fine-tune an imported model learn, each in its language and all alike.

Usage: fine_tune_test.py BUILD_DIR csharp|rust"""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

try:
    import onnx  # noqa: F401
except ImportError as missing:
    print(f"skipped: this interpreter lacks {missing.name}")
    sys.exit(77)

ROOT = pathlib.Path(__file__).resolve().parents[2]
DATA = pathlib.Path("/usr/share/datasets/fashion-mnist")  # of Debian's dataset-fashion-mnist
UPSIDE_DOWN, LEARNT = 0.4, 0.8  # at most before, at least after; guessing gives 0.1


def skip(reason):
    """What a machine may lack, CI may not."""
    print(f"skipped: {reason}")
    sys.exit(1 if os.environ.get("CI", "").lower() in ("true", "1") else 77)


def need(*programs):
    for program in programs:
        if shutil.which(program) is None:
            skip(f"no {program} here")


def csharp(build, folder):
    """The command, and what it finds its libraries by."""
    need("mcs", "mono")
    package = build / "bindings/csharp"
    if not (package / "Tiny.dll").exists():
        skip("the C# package is not built")
    program = folder / "finetune.exe"
    subprocess.run(["mcs", "-warnaserror", f"-r:{package / 'Tiny.dll'}", f"-out:{program}",
                    ROOT / "samples/csharp/FineTune.cs"], check=True)
    return ["mono", program], {"MONO_PATH": package, "LD_LIBRARY_PATH": package}


def rust(build, folder):
    need("cargo")
    shutil.copytree(ROOT / "samples/rust", folder / "rust")
    places = {"TINY_LIB_DIR": build, "LD_LIBRARY_PATH": build, "CARGO_TARGET_DIR": build / "bindings/rust/target"}
    subprocess.run(["cargo", "build", "--offline", "--quiet", "--bin", "fine_tune", "--config",
                    f'patch.crates-io.tiny-engine.path="{ROOT / "bindings/rust"}"'], check=True, cwd=folder / "rust",
                   env=dict(os.environ, **{key: str(value) for key, value in places.items()}))
    return [build / "bindings/rust/target/debug/fine_tune"], places


def main(build, language):
    if not DATA.is_dir():
        skip(f"there is no {DATA}")
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        command, places = {"csharp": csharp, "rust": rust}[language](pathlib.Path(build), folder)

        def run(*arguments):
            return subprocess.run([*command, *arguments], capture_output=True, text=True,
                                  env=dict(os.environ, **{key: str(value) for key, value in places.items()}))
        model = folder / "features.onnx"
        subprocess.run([sys.executable, "-B", ROOT / "samples/python/add_features.py",
                        ROOT / "samples/fashion/fashion.onnx", model], check=True)
        told = run(model, DATA)
        found = re.fullmatch(r"before: accuracy ([\d.]+)\n(?:epoch \d: loss [\d.]+\n){5}after: accuracy ([\d.]+)\n",
                             told.stdout)
        assert told.returncode == 0 and found, told
        assert float(found[1]) < UPSIDE_DOWN and float(found[2]) > LEARNT, told.stdout
        wrong = run("/nowhere.onnx", DATA)
        assert wrong.returncode == 1 and "/nowhere.onnx" in wrong.stderr, wrong
        assert run().returncode == 2


if __name__ == "__main__":
    main(*sys.argv[1:])
