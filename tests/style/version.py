"""The header, libtiny.so, its map and the CMake package say the same of versions.

Usage: version.py LIBTINY PACKAGE_VERSION_FILE
"""

import ctypes
import re
import subprocess
import sys
import tempfile

import abi
from repository import ROOT, finish


def accepts(package, request):
    """Whether find_package(tiny REQUEST) takes the package."""
    numbers = request.split(".")
    script = f"set(PACKAGE_FIND_VERSION {request})\nset(PACKAGE_FIND_VERSION_COUNT {len(numbers)})\n"
    for name, number in zip(("MAJOR", "MINOR", "PATCH"), numbers):
        script += f"set(PACKAGE_FIND_VERSION_{name} {number})\n"
    script += f"include({package})\nmessage(\"takes:${{PACKAGE_VERSION_COMPATIBLE}}\")\n"
    with tempfile.NamedTemporaryFile("w", suffix=".cmake") as file:
        # The size of a pointer is not known to a script, and not looked at.
        file.write("set(CMAKE_SIZEOF_VOID_P 8)\n" + script)
        file.flush()
        said = subprocess.run(["cmake", "-P", file.name], check=True, capture_output=True, text=True)
    return re.search(r"takes:(\w*)", said.stderr)[1] in ("TRUE", "1", "ON")


def main(library, package):
    major, minor, patch = abi.version(abi.HEADER)
    failures = []

    def expect(what, got, wanted):
        if got != wanted:
            failures.append(f"{what} is {got}; by tiny.h {wanted} is wanted")

    loaded = ctypes.CDLL(library)
    loaded.tiny_version.restype = ctypes.c_char_p
    expect("tiny_version()", loaded.tiny_version().decode(), f"{major}.{minor}.{patch}")
    expect("tiny_abi_version()", loaded.tiny_abi_version(), major * 1000 + minor)
    dynamic = subprocess.run(["readelf", "-d", library], check=True, capture_output=True, text=True)
    expect("the SONAME", re.search(r"\(SONAME\).*\[(.*)\]", dynamic.stdout)[1], abi.soname(abi.HEADER))
    requests = {f"{major}": True, f"{major}.{minor}": True, f"{major}.{minor}.{patch}": True,
                f"{major}.{minor + 1}": False, f"{major + 1}.0": False}
    if major == 0:
        requests.update({"0.2": True, "0.1": False, "0.1.9": False})
    for request, wanted in requests.items():
        expect(f"what find_package(tiny {request}) gets", accepts(package, request), wanted)
    newest = list(abi.nodes(abi.MAP.read_text()))[-1]
    if tuple(int(n) for n in newest[len("TINY_"):].split(".")) > (major, minor):
        failures.append(f"tiny.map's {newest} is newer than tiny.h")
    crate = re.search(r'^version = "(.*)"', (ROOT / "bindings/rust/Cargo.toml").read_text(), re.M)[1]
    expect("the crate's version", crate, f"{major}.{minor}.{patch}")
    return finish("version", failures, 5 + len(requests))


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
