"""tiny in other people's builds: inside a project, installed, shared and static, with and without ONNX."""

import pathlib
import re
import tempfile
import unittest

from support import BUILD, CONSUMER, ROOT, build, configure, run, stripped_bytes, version, with_environment

# The limit of a build for size (MinSizeRel) without ONNX, in bytes.
SMALL_LIBRARY = 2_500_000
NOT_THERE = ["IO", "tiny_model_load: cannot open no.onnx"]
NO_ONNX = ["UNSUPPORTED", "tiny_model_load: this build of the library has no ONNX importer (TINY_ONNX was OFF)"]


class Consumers(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.folder = pathlib.Path(temporary.name)

    def check(self, program, wanted, **options):
        lines = run(program, **options).splitlines()
        self.assertEqual(lines[:3], [version(), "6", wanted[0]])
        self.assertTrue(lines[3].startswith(wanted[1]), lines[3])

    def exported(self, library):
        """Functions with their versions; the versions themselves are symbols to some linkers alone."""
        names = run("nm", "-D", "--defined-only", "--format=just-symbols", library).splitlines()
        return [name for name in names if not name.startswith("TINY_")]

    def install(self, folder):
        prefix = self.folder / "a prefix"
        run("cmake", "--install", folder, "--prefix", prefix)
        moved = prefix.rename(self.folder / "moved there")
        return moved

    def by_cmake(self, prefix, wanted):
        out = self.folder / "found"
        run("cmake", "-S", CONSUMER, "-B", out, "-G", "Ninja", "-DFOUND=find_package", f"-DCMAKE_PREFIX_PATH={prefix}",
            f"-DWANTED_VERSION={'.'.join(version().split('.')[:2])}")
        run("cmake", "--build", out)
        self.check(out / "consumer", wanted)

    def by_pkg_config(self, prefix, wanted, *static):
        environment = with_environment(PKG_CONFIG_PATH=str(prefix / "lib/pkgconfig"))
        flags = run("pkg-config", "--cflags", "--libs", *static, "tiny", env=environment).strip()
        program = self.folder / "by_pkg_config"
        run("sh", "-c", f'cc -o "$0" "$1" {flags}', program, CONSUMER / "consumer.c")
        self.check(program, wanted, env=with_environment(LD_LIBRARY_PATH=str(prefix / "lib")))

    def test_inside_a_project(self):
        """In its smallest form, compiled as any project would: both ways to have it, static and shared."""
        out = BUILD.parent / "consumer"
        for found, shared in (("add_subdirectory", "OFF"), ("FetchContent", "ON")):
            with self.subTest(found):
                run("cmake", "-S", CONSUMER, "-B", out, "-G", "Ninja", f"-DFOUND={found}", f"-DTINY_SOURCE={ROOT}",
                    "-DCMAKE_BUILD_TYPE=MinSizeRel", "-DTINY_ONNX=OFF", "-DTINY_C=OFF", "-DTINY_CUDA=OFF", "-DTINY_NODES=OFF",
                    f"-DBUILD_SHARED_LIBS={shared}", "-DGIVEN_KIND=ON", "-DCMAKE_CXX_COMPILER_LAUNCHER=ccache", env=with_environment())
                build(out)
                self.check(out / "consumer", NO_ONNX)
        library = out / "_deps/tiny-build/libtiny.so"
        self.assertLessEqual(stripped_bytes(library, self.folder), SMALL_LIBRARY)
        self.assertEqual(self.exported(library), self.exported(BUILD / "libtiny.so"))

    def test_installed_and_shared(self):
        prefix = self.install(BUILD)
        self.by_cmake(prefix, NOT_THERE)
        self.by_pkg_config(prefix, NOT_THERE)

    def test_installed_and_static(self):
        out = BUILD.parent / "static"
        configure(out, "-DBUILD_SHARED_LIBS=OFF", "-DTINY_TOOLS=OFF")
        build(out)
        prefix = self.install(out)
        self.assertEqual(list(prefix.glob("lib/*.so*")), [])
        self.by_cmake(prefix, NOT_THERE)
        self.by_pkg_config(prefix, NOT_THERE, "--static")
        self.by_pkg_config(prefix, NOT_THERE)

        # Names that could meet those of a program: C++'s own templates are the same everywhere.
        listed = run("nm", "--extern-only", "--defined-only", "--no-sort", prefix / "lib/libtiny.a")
        names = {line.split()[2] for line in listed.splitlines() if re.match(r"[0-9a-f]+ [A-TX-Z] ", line)}
        strangers = [name for name in names if "tiny" not in name]
        self.assertEqual(strangers, [])
        self.assertIn("tiny_context_create", names)

    def test_tests_need_the_whole_library(self):
        with self.assertRaisesRegex(AssertionError, "TINY_TESTS needs TINY_ONNX, TINY_C, TINY_CUDA, TINY_NODES"):
            configure(self.folder / "no", "-DTINY_ONNX=OFF", "-DTINY_TESTS=ON")


if __name__ == "__main__":
    unittest.main()
