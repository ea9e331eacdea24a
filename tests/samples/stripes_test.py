"""The sample of a network as C: exported, compiled without tiny, right about generated pictures."""

import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]

try:
    import numpy  # noqa: F401
    import onnx  # noqa: F401
except ImportError as missing:
    print(f"skipped: this interpreter lacks {missing.name}")
    sys.exit(77)
sys.path.insert(0, str(ROOT / "samples/python"))
import make_stripes  # noqa: E402


def main(tiny):
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        make_stripes.main(folder)
        subprocess.run([tiny, "export", folder / "stripes.onnx", "--c", folder, "--dim", "N=1..16"], check=True)
        program = folder / "stripes"
        subprocess.run(["cc", "-std=c11", "-O2", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-I", folder,
                        ROOT / "samples/c/classify_stripes.c", folder / "stripes.c", "-lm", "-o", program], check=True)
        needed = subprocess.run(["readelf", "-d", program], check=True, capture_output=True, text=True).stdout
        assert "tiny" not in needed, needed
        size, pictures = make_stripes.SIZE, []
        for direction, vector in make_stripes.DIRECTIONS.items():
            grey = (127 + 60 * make_stripes.wave(vector, size, 1))[..., None].repeat(3, axis=2)
            pictures.append(folder / f"{direction}.ppm")
            pictures[-1].write_bytes(b"P6 %d %d 255\n" % (size, size) + grey.astype("uint8").tobytes())
        for chosen in (pictures, pictures[2:3]):
            told = subprocess.run([program, folder / "stripes.weights", *chosen], check=True, capture_output=True,
                                  text=True).stdout.splitlines()
            assert [line.split()[0] for line in told] == [picture.stem for picture in chosen], told
        wrong = subprocess.run([program, pictures[0], pictures[0]], capture_output=True, text=True)
        assert wrong.returncode == 1 and "not the weights" in wrong.stderr, wrong


if __name__ == "__main__":
    main(sys.argv[1])
