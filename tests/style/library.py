"""Looks at libtiny.so and its objects: exports, needs, and what would run before or after main.

Usage: library.py LIBTINY OBJECT_FOLDER TINY_H
"""

import pathlib
import re
import subprocess
import sys

from repository import finish

# All of glibc, of which 2.31 has two parts in libraries of their own.
NEEDED = {"libc.so.6", "libm.so.6", "libpthread.so.0", "libdl.so.2", "ld-linux-x86-64.so.2"}
NEWEST_GLIBC = (2, 31)
AT_EXIT = {"__cxa_atexit", "__cxa_thread_atexit", "atexit", "at_quick_exit", "on_exit"}


def run(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def declared(header):
    """The functions that the header declares, after the preprocessor has taken the comments out."""
    text = run("gcc", "-E", "-P", "-x", "c", str(header))
    return set(re.findall(r"\btiny_\w+(?=\s*\((?!\*))", text))


def exported(library):
    lines = run("nm", "-D", "--defined-only", str(library)).splitlines()
    return {line.split()[2].split("@")[0] for line in lines if line.split()[1] != "A"}


def interface(library, header):
    wanted, found = declared(header), exported(library)
    failures = [f"tiny.h declares {name}, not exported (scripts/record-abi.sh lists it in tiny.map)"
                for name in sorted(wanted - found)]
    failures += [f"{name} is exported, not declared in tiny.h" for name in sorted(found - wanted)]
    if not wanted:
        failures.append("tiny.h declares no function")
    return failures


def dependencies(library):
    dynamic = run("readelf", "-d", str(library))
    failures = [f"the library needs {name}; only libc and libm are allowed"
                for name in re.findall(r"\(NEEDED\).*\[(.*)\]", dynamic) if name not in NEEDED]
    if not re.search(r"\(SONAME\).*\[libtiny\.so\.\d+\]", dynamic):
        failures.append("the library has no SONAME libtiny.so.N")
    return failures


def glibc(library):
    """Nothing is of a newer glibc than the oldest that the library is for."""
    failures = []
    for row in re.finditer(r"\(?GLIBC_([0-9.]+)\)?\s+(\S+)$", run("objdump", "-T", str(library)), re.M):
        if tuple(map(int, row[1].split("."))) > NEWEST_GLIBC:
            failures.append(f"{row[2]} is of glibc {row[1]}; src/api/older_glibc.c gives an older one")
    return failures


def sections(paths):
    """{path: {name: size in bytes}} of the sections of ELF files."""
    found, path = {}, str(paths[0])
    for line in run("readelf", "-S", "-W", *paths).splitlines():
        row = re.match(r"\s*\[\s*\d+\]\s+(\S+)\s+\S+\s+[0-9a-f]+\s+[0-9a-f]+\s+([0-9a-f]+)", line)
        if line.startswith("File: "):
            path = line[len("File: "):]
        elif row:
            found.setdefault(path, {})[row[1]] = int(row[2], 16)
    return found


def exit_code(library):
    """One pointer in .fini_array is the compiler's own; more would be ours."""
    size = sections([library])[str(library)].get(".fini_array", 0)
    return [] if size <= 8 else [f".fini_array holds {size // 8} entries, only crt's is allowed"]


def object_code(paths):
    """No static constructor, and nothing registered to run at the end of a thread or the process."""
    failures = []
    for path, names in sections(paths).items():
        failures += [f"{path}: a static constructor or destructor ({name})" for name in names
                     if re.match(r"\.(?:init_array|fini_array|ctors|dtors)\b", name)]
    for line in run("nm", "-u", "-A", *paths).splitlines():
        path, _, name = line.partition(":")
        if name.split()[-1] in AT_EXIT:
            failures.append(f"{path}: registers a destructor ({name.split()[-1]})")
    return failures


def main(library, folder, header):
    objects = sorted(path for path in pathlib.Path(folder).glob("CMakeFiles/tiny_*.dir/**/*.o"))
    failures = interface(library, header) + dependencies(library) + glibc(library)
    failures += exit_code(library)
    failures += object_code(objects) if objects else []
    return finish("library", failures, len(objects))


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:4]))
