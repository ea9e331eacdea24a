"""Compares the ABI of libtiny.so and the numbers of tiny.h with what was recorded and released.

Usage: abi.py check LIBTINY | abi.py record | abi.py release
All is made from tiny.h alone.  tests/abi/tiny.abi has every function and type that a caller sees
(abidw), tests/abi/constants.txt every enumeration value, which no function's type mentions, and
src/api/tiny.map the release that added each function.  A check compares the library and the header
with the record and fails on any change: `record` writes those, in the commit that makes them.
`release` copies the record to tests/abi/released.abi and released_constants.txt, which is what
programs were promised: from then on additions can be recorded once TINY_VERSION_MINOR is raised, and
breaks (what is gone, renumbered or changed) never, until the major version is another.  What a comment that begins with "Unstable"
stands above is not promised.
"""

import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

from repository import ROOT, finish

HEADER = ROOT / "include/tiny.h"
MAP = ROOT / "src/api/tiny.map"
RECORDED = ROOT / "tests/abi/tiny.abi"
CONSTANTS = ROOT / "tests/abi/constants.txt"
RELEASED = ROOT / "tests/abi/released.abi"
RELEASED_CONSTANTS = ROOT / "tests/abi/released_constants.txt"


def preprocessed(header):
    """The header's declarations, without comments and macros."""
    return subprocess.run(["gcc", "-E", "-P", "-x", "c", "-DTINY_API=TINY_API", header], check=True,
                          capture_output=True, text=True).stdout


def functions(header):
    """The declarations of the header's functions: {name: text}."""
    found = re.findall(r"\bTINY_API\s+([^;]+);", preprocessed(header))
    return {re.search(r"\btiny_\w+(?=\s*\()", text)[0]: text for text in found}


def version(header):
    """(major, minor, patch) as the header's macros have it."""
    text = header.read_text()
    return tuple(int(re.search(rf"#define TINY_VERSION_{part} (\d+)", text)[1])
                 for part in ("MAJOR", "MINOR", "PATCH"))


def soname(header):
    return f"libtiny.so.{version(header)[0]}"


def constants(header):
    """'NAME VALUE' of every enumerator of the header, evaluated by the compiler."""
    bodies = re.findall(r"\benum\s*\w*\s*\{([^}]*)\}", preprocessed(header))
    names = [part.split("=")[0].strip() for body in bodies for part in body.split(",")]
    names = [name for name in names if name]
    program = f'#include "{header}"\n#include <stdio.h>\nint main(void) {{\n'
    program += "".join(f'  printf("{name} %lld\\n", (long long){name});\n' for name in names)
    with tempfile.TemporaryDirectory() as folder:
        binary = pathlib.Path(folder) / "constants"
        subprocess.run(["gcc", "-x", "c", "-", "-o", binary], input=program + "}\n", text=True,
                       check=True)
        return subprocess.run([binary], check=True, capture_output=True, text=True).stdout


def nodes(script):
    """{"TINY_0.2": functions} of a version script, oldest first."""
    return {node: re.findall(r"\btiny_\w+(?=;)", body)
            for node, body in re.findall(r"(TINY_[\d.]+) \{(.*?)\}", script, re.S)}


def version_script(header, before):
    """The script `before` with a node for the header's release: all that older ones do not have."""
    major, minor, _ = version(header)
    release = f"TINY_{major}.{minor}"
    kept = {node: names for node, names in nodes(before).items()
            if node != release and node.startswith(f"TINY_{major}.")}
    old = {name for names in kept.values() for name in names}
    kept[release] = sorted(set(functions(header)) - old)
    text = "/* tiny.h's functions by the release that added them; scripts/record-abi.sh writes it. */\n"
    parent = ""
    for node, names in kept.items():
        if names:
            listed = "".join(f"    {name};\n" for name in names)
            hidden = "" if parent else "  local:\n    *;\n"
            text += f"{node} {{\n  global:\n{listed}{hidden}}}{parent};\n"
            parent = f" {node}"
    return text


def misplaced(header, script):
    """Each function of the header is in one node, and nothing else is."""
    listed = [name for names in nodes(script).values() for name in names]
    declared = set(functions(header))
    failures = [f"{name} is in no node of tiny.map" for name in sorted(declared - set(listed))]
    failures += [f"tiny.map has {name}, which tiny.h does not declare"
                 for name in sorted(set(listed) - declared)]
    failures += [f"{name} is in several nodes of tiny.map"
                 for name in sorted({name for name in listed if listed.count(name) > 1})]
    return failures


def build_hollow(header, script, library):
    """Builds a library that does nothing, but has every function of the header and tells types."""
    program = f'#include "{header}"\n'
    program += "".join(f"{text} {{ __builtin_trap(); }}\n" for text in functions(header).values())
    with tempfile.NamedTemporaryFile("w", suffix=".map") as versions:
        versions.write(script)
        versions.flush()
        subprocess.run(["gcc", "-x", "c", "-", "-g", "-fPIC", "-shared",
                        f"-Wl,-soname,{soname(header)}", f"-Wl,--version-script={versions.name}",
                        "-o", library], input=program, text=True, check=True)


def record(header, script, recorded):
    """Writes the ABI that the header says."""
    with tempfile.TemporaryDirectory() as folder:
        library = pathlib.Path(folder) / "libtiny.so"
        build_hollow(header, script, library)
        subprocess.run(["abidw", "--no-show-locs", "--no-corpus-path", "--no-comp-dir-path",
                        "--short-locs", "--no-elf-needed", "--out-file", recorded, library],
                       check=True)


def differences(recorded, library, headers, *options):
    """What abidiff says of the library, a line for each; types outside of the headers are private."""
    run = subprocess.run(["abidiff", "--headers-dir2", headers, "--drop-private-types", *options,
                          recorded, library], capture_output=True, text=True)
    return [f"abidiff says {run.returncode}:\n{run.stdout}{run.stderr}"] if run.returncode else []


def unstable(header):
    """The functions that are promised to nobody, as abidiff's suppressions."""
    found = re.findall(r"/\*\s*Unstable\b(?:(?!\*/).)*\*/\s*TINY_API[^;(]*?\b(tiny_\w+)\(",
                       header.read_text(), re.S)
    return "".join(f"[suppress_function]\n  name = {name}\n" for name in found)


def additions(header, released, released_constants):
    """What the header has and its release, which is out, has not: that is of the next one."""
    node = "TINY_{}.{}".format(*version(header))
    promised = released.read_text()
    if f"version='{node}'" not in promised:
        return []
    new = {name for name in functions(header) if f"name='{name}'" not in promised}
    before = set(released_constants.read_text().splitlines())
    names = {line.split()[0] for line in before}
    new |= {line.split()[0] for line in constants(header).splitlines()} - names
    return [f"{name} is new, and {node} is released: raise TINY_VERSION_MINOR" for name in sorted(new)]


def breaks(header, script, released, released_constants):
    """Where the header is not what programs were promised; nothing before the first release."""
    if not released.exists() or f"soname='{soname(header)}'" not in released.read_text():
        return []
    with tempfile.TemporaryDirectory() as folder:
        hollow = pathlib.Path(folder) / "libtiny.so"
        build_hollow(header, script, hollow)
        promised_to_nobody = pathlib.Path(folder) / "unstable"
        promised_to_nobody.write_text(unstable(header))
        failures = differences(released, hollow, header.parent, "--no-added-syms",
                               "--suppressions", promised_to_nobody)
    before = set(released_constants.read_text().splitlines())
    failures += [f"gone or renumbered: {line}"
                 for line in sorted(before - set(constants(header).splitlines()))]
    if failures:
        failures.append("these break programs that are linked with a release: never within "
                        f"{version(header)[0]}.x; additions can be recorded")
    return failures + additions(header, released, released_constants)


def unrecorded(library):
    """Where the header and the library differ from the record."""
    script = MAP.read_text()
    failures = misplaced(HEADER, script)
    with tempfile.TemporaryDirectory() as folder:
        hollow = pathlib.Path(folder) / "libtiny.so"
        build_hollow(HEADER, script, hollow)
        failures += differences(RECORDED, hollow, HEADER.parent)
    if library:
        failures += differences(RECORDED, library, HEADER.parent)
    before = CONSTANTS.read_text().splitlines()
    after = constants(HEADER).splitlines()
    failures += [f"gone or renumbered: {line}" for line in sorted(set(before) - set(after))]
    failures += [f"new and not recorded: {line}" for line in sorted(set(after) - set(before))]
    if failures:
        failures.append("if the change is meant: scripts/record-abi.sh, and say [abi] in the commit")
    return failures


def main(mode, *arguments):
    count = len(constants(HEADER).splitlines())
    script = version_script(HEADER, MAP.read_text()) if mode == "record" else MAP.read_text()
    failures = breaks(HEADER, script, RELEASED, RELEASED_CONSTANTS)
    if mode != "record":
        failures += unrecorded(*arguments or [None])
    if failures or mode == "check":
        return finish("abi", failures, count)
    if mode == "release":
        shutil.copy(RECORDED, RELEASED)
        shutil.copy(CONSTANTS, RELEASED_CONSTANTS)
    else:
        MAP.write_text(script)
        record(HEADER, script, RECORDED)
        CONSTANTS.write_text(constants(HEADER))
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
