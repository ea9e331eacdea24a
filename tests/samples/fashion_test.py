"""The sample that trains on Fashion-MNIST: it learns, goes on where it stopped, and its model runs elsewhere."""

import gzip
import os
import pathlib
import subprocess
import sys
import tempfile

try:
    import numpy
    import onnx
    import onnxruntime
except ImportError as missing:
    print(f"skipped: this interpreter lacks {missing.name}")
    sys.exit(77)

DATA = pathlib.Path("/usr/share/datasets/fashion-mnist")  # of Debian's dataset-fashion-mnist
KEPT = pathlib.Path(__file__).resolve().parents[2] / "samples/fashion"
PICTURES = 6000  # of the training set, so that it takes seconds
FEW = 400  # pictures whose training is compared between numbers of threads
LEARNT = 0.78  # after two epochs of them; guessing gives 0.1


def images(name, header):
    return numpy.frombuffer(gzip.decompress((DATA / f"{name}-ubyte.gz").read_bytes()), numpy.uint8, offset=header)


def train(program, folder, epochs, pictures=PICTURES, threads=0):
    folder.mkdir(exist_ok=True)
    told = subprocess.run([program, DATA, folder, str(epochs), str(pictures)], check=True, capture_output=True, text=True,
                          env=os.environ | {"TINY_THREADS": str(threads)})
    return told.stdout.splitlines()


def check_pictures(folder):
    """samples/fashion is what its script makes."""
    subprocess.run([sys.executable, "-B", KEPT / "make_pictures.py", DATA, folder], check=True)
    names = sorted(path.name for path in folder.iterdir())
    assert len(names) == 11 and set(names) <= {path.name for path in KEPT.iterdir()}, names
    for name in names:
        assert (folder / name).read_bytes() == (KEPT / name).read_bytes(), name


def main(program):
    if not DATA.is_dir():
        print(f"skipped: there is no {DATA}")
        sys.exit(77)
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / "pictures").mkdir()
        check_pictures(folder / "pictures")
        told = train(program, folder / "whole", 2)
        accuracy = float(told[-1].split()[-1])
        assert accuracy > LEARNT, told
        # A second process goes on to the same bits.
        train(program, folder / "parts", 1)
        assert train(program, folder / "parts", 2) == told[1:]
        states = [(folder / part / "checkpoint.safetensors").read_bytes() for part in ("whole", "parts")]
        assert states[0] == states[1]
        # Any number of threads makes the same bits.
        for threads in (1, 2, 3):
            train(program, folder / f"threads{threads}", 2, FEW, threads)
        states = {(folder / f"threads{n}/checkpoint.safetensors").read_bytes() for n in (1, 2, 3)}
        assert len(states) == 1
        # The exported model is as good in onnxruntime.
        path = folder / "whole/fashion.onnx"
        assert path.stat().st_size <= 400_000, path.stat()
        onnx.checker.check_model(onnx.load(path), full_check=True)
        session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
        pictures = images("t10k-images-idx3", 16).reshape(-1, 28, 28)
        labels = images("t10k-labels-idx1", 8)
        found = numpy.concatenate([session.run(None, {"pictures": pictures[i:i + 1000]})[0].argmax(1)
                                   for i in range(0, len(pictures), 1000)])
        assert abs((found == labels).mean() - accuracy) <= 2e-4, ((found == labels).mean(), accuracy)
        assert "<polyline" in (folder / "whole/loss.svg").read_text()
        # What is there but no checkpoint is told.
        (folder / "parts/checkpoint.safetensors").write_bytes(b"nothing of the kind")
        wrong = subprocess.run([program, DATA, folder / "parts", "3", "100"], capture_output=True, text=True)
        assert wrong.returncode == 1 and "checkpoint.safetensors" in wrong.stderr, wrong


if __name__ == "__main__":
    main(sys.argv[1])
