"""What the tests of packages share: where things lie, and commands that must succeed."""

import os
import pathlib
import re
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("TINY_BUILD", ROOT / "build" / "release"))
# Folders as deep as BUILD, so that ccache takes their objects for the same.
DIST = BUILD.parent / "dist"
CONSUMER = pathlib.Path(__file__).resolve().parent / "consumer"


def run(*command, **options):
    """What the command prints; its whole output where it fails."""
    options.setdefault("stdin", subprocess.DEVNULL)
    done = subprocess.run(list(map(str, command)), stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          text=True, **options)
    if done.returncode != 0:
        raise AssertionError(f"{command} ended with {done.returncode}\n{done.stdout[-8000:]}{done.stderr[-8000:]}")
    return done.stdout


def with_environment(**changes):
    return dict(os.environ, CCACHE_BASEDIR=str(ROOT), CCACHE_NOHASHDIR="1", **changes)


def version():
    """Of the header's three numbers."""
    header = (ROOT / "include/tiny.h").read_text()
    return ".".join(re.findall(r"^#define TINY_VERSION_(?:MAJOR|MINOR|PATCH) (\d+)$", header, re.M))


def configure(folder, *options, source=ROOT):
    """A release build in `folder` with the objects of the one that is tested."""
    run("cmake", "-S", source, "-B", folder, "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release", "-DTINY_WERROR=ON",
        "-DCMAKE_C_COMPILER_LAUNCHER=ccache", "-DCMAKE_CXX_COMPILER_LAUNCHER=ccache", *options,
        env=with_environment())


def build(folder, *targets):
    run("cmake", "--build", folder, *(["--target", *targets] if targets else []), env=with_environment())


def stripped_bytes(library, folder):
    out = folder / "stripped"
    run("strip", "-o", out, library)
    return out.stat().st_size


def newest_glibc(library):
    """(major, minor) of the newest glibc that a symbol of the library is of."""
    found = re.findall(r"\(?GLIBC_(\d+)\.(\d+)", run("objdump", "-T", library))
    return max(((int(major), int(minor)) for major, minor in found), default=(0, 0))
