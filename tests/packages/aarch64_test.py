"""The library on 64-bit ARM: compiled whole by Debian's cross compiler, its core tested under qemu."""

import json
import os
import pathlib
import shutil
import tempfile
import unittest

from support import BUILD, ROOT, build, run, with_environment

OUT = BUILD.parent / "aarch64"
QEMU = ("qemu-aarch64", "-L", "/usr/aarch64-linux-gnu")


def on_arm(program, **environment):
    return run(*QEMU, OUT / program, env=dict(os.environ, TINY_CACHE="0", **environment))


class Arm(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        missing = [name for name in ("aarch64-linux-gnu-g++", QEMU[0]) if shutil.which(name) is None]
        if missing:
            raise AssertionError(f"no {' and no '.join(missing)} here; scripts/setup.sh installs them")
        run("cmake", "-S", ROOT / "tests/packages/aarch64", "-B", OUT, "-G", "Ninja",
            f"-DCMAKE_TOOLCHAIN_FILE={ROOT / 'cmake/aarch64-linux-gnu.cmake'}", "-DCMAKE_BUILD_TYPE=Debug",
            "-DCMAKE_CXX_FLAGS_DEBUG=-O0", "-DTINY_WERROR=ON", "-DCMAKE_CXX_COMPILER_LAUNCHER=ccache",
            env=with_environment())
        build(OUT)
        temporary = tempfile.TemporaryDirectory()
        cls.addClassCleanup(temporary.cleanup)
        # The cross compiler does not know the processor that it is not on.
        cls.compiler = pathlib.Path(temporary.name) / "cc"
        cls.compiler.write_text('#!/bin/bash\nexec aarch64-linux-gnu-gcc "${@/-march=native/-march=armv8-a}"\n')
        cls.compiler.chmod(0o755)

    def test_it_is_for_arm(self):
        for program in ("tiny/libtiny.so", "core"):
            self.assertIn("Machine:                           AArch64", run("readelf", "-h", OUT / program))
        needed = run("readelf", "-d", OUT / "tiny/libtiny.so")
        self.assertNotIn("libstdc++", needed)

    def test_devices(self):
        devices = {device["name"]: device for device in json.loads(on_arm("devices"))["devices"]}
        self.assertEqual(devices["cpu"]["available"], False)
        self.assertEqual(devices["cpu"]["reason"],
                         "the processor has no instructions of x86-64; kernels are interpreted")
        self.assertTrue(devices["interp"]["available"] and devices["c"]["available"])

    def test_programs_in_c(self):
        for program in ("first_sum", "first_network"):
            for settings in ({}, {"TINY_DEVICE": "interp"}, {"TINY_DEVICE": "c", "TINY_CC": str(self.compiler)}):
                with self.subTest(program, **settings):
                    on_arm(program, **settings)

    def test_the_core(self):
        said = on_arm("core", TINY_CC=str(self.compiler), TINY_SPEC="1")
        self.assertIn("[  PASSED  ]", said)


if __name__ == "__main__":
    unittest.main()
