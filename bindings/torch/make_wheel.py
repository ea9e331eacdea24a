"""The wheel of device "tiny" for the PyTorch that BUILD was made with, beside tiny-engine's and PyTorch's own.

usage: make_wheel.py BUILD FOLDER     FOLDER/tiny_torch-VERSION-py3-none-linux_x86_64.whl
"""

import base64
import hashlib
import pathlib
import subprocess
import sys
import tempfile
import zipfile

TAG = "py3-none-linux_x86_64"


def _record(name, content):
    digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
    return f"{name},sha256={digest},{len(content)}\n"


def make(build, folder):
    with tempfile.TemporaryDirectory() as staged:
        subprocess.run(["cmake", "--install", build, "--component", "torch_wheel", "--prefix", staged, "--strip"],
                       check=True, stdout=subprocess.DEVNULL)
        root = pathlib.Path(staged)
        described = next(root.glob("*.dist-info")).name
        wheel = pathlib.Path(folder) / f"{described.removesuffix('.dist-info')}-{TAG}.whl"
        wheel.parent.mkdir(parents=True, exist_ok=True)
        files = {str(path.relative_to(root)): path.read_bytes() for path in sorted(root.rglob("*")) if path.is_file()}
        record = "".join(_record(*item) for item in files.items()) + f"{described}/RECORD,,\n"
        with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, content in {**files, f"{described}/RECORD": record.encode()}.items():
                archive.writestr(name, content)
    return wheel


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    print(make(*sys.argv[1:]))
