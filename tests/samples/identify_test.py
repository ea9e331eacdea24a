"""The detectors of samples/, each built against an installed tiny, name files as the package `magika`
does.  Usage: identify_test.py BUILD_DIR; or, with commands in IDENTIFY, set apart by ';', these alone:
identify_test.py Given."""

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

try:
    import magika
except ImportError as missing:
    print(f"skipped: this interpreter lacks {missing.name}; scripts/setup.sh makes one that has it")
    sys.exit(77)

from magika_files import make_files

ROOT = pathlib.Path(__file__).resolve().parents[2]
MODEL = next(pathlib.Path(magika.__file__).parent.glob("models/*/model.onnx")).parent


def run(*command, **options):
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, **options)
    if done.returncode != 0:
        raise AssertionError(f"{command} ended with {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


class Detectors(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        temporary = tempfile.TemporaryDirectory()
        cls.addClassCleanup(temporary.cleanup)
        folder = pathlib.Path(temporary.name)
        (folder / "files").mkdir()
        cls.work, cls.prefix = folder, folder / "installed tiny"
        cls.paths = make_files(folder / "files")
        results = magika.Magika().identify_paths(cls.paths)
        cls.wanted = [str(result.output.label if result.ok else result.status) for result in results]
        if BUILD:
            run("cmake", "--install", BUILD, "--prefix", cls.prefix)
        cls.library = cls.prefix / "lib"

    def lack(self, reason):
        """What a machine may lack, CI may not."""
        if os.environ.get("CI", "").lower() in ("true", "1"):
            self.fail(f"{reason}, and CI wants every language")
        self.skipTest(reason)

    def need(self, *programs):
        for program in programs:
            if shutil.which(program) is None:
                self.lack(f"no {program} here")

    def check(self, *command, **options):
        """The program's lines are what the package says."""
        lines = run(*command, MODEL, *self.paths, **options).splitlines()
        wanted = [f"{path}: {label}" for path, label in zip(self.paths, self.wanted)]
        self.assertEqual(lines, wanted)
        usage = subprocess.run(list(map(str, command)), capture_output=True, **options)
        self.assertEqual(usage.returncode, 2)
        nothing = subprocess.run([*map(str, command), "/nowhere", "x"], capture_output=True, **options)
        self.assertEqual(nothing.returncode, 1, nothing.stderr)

    def test_there_are_many_files_of_many_types(self):
        self.assertGreaterEqual(len(self.paths), 60)
        self.assertGreaterEqual(len(set(self.wanted)), 40)

    def test_c(self):
        self.need("cc", "pkg-config")
        environment = dict(os.environ, PKG_CONFIG_PATH=str(self.library / "pkgconfig"))
        flags = run("pkg-config", "--cflags", "--libs", "tiny", env=environment)
        program = self.work / "identify_c"
        # The shell takes the quoting of the flags apart, as a user's does.
        run("sh", "-c", f'cc -o "$0" "$1" {flags.strip()}', program,
            ROOT / "samples" / "c" / "identify.c")
        self.check(program, env=dict(os.environ, LD_LIBRARY_PATH=str(self.library)))

    def test_cpp(self):
        self.need("c++", "cmake")
        build = self.work / "cpp"
        run("cmake", "-S", ROOT / "samples" / "cpp", "-B", build, f"-DCMAKE_PREFIX_PATH={self.prefix}")
        run("cmake", "--build", build)
        self.check(build / "identify")

    def test_python(self):
        package = self.library / "tiny" / "python"
        if not package.exists():
            self.lack("the Python package is not built")
        self.check(sys.executable, "-B", ROOT / "samples" / "python" / "identify.py",
                   env=dict(os.environ, PYTHONPATH=str(package)))

    def test_csharp(self):
        self.need("mcs", "mono")
        package = self.library / "tiny" / "csharp"
        if not package.exists():
            self.lack("the C# package is not built")
        program = self.work / "identify.exe"
        run("mcs", "-warnaserror", f"-r:{package / 'Tiny.dll'}", f"-out:{program}",
            ROOT / "samples" / "csharp" / "Identify.cs")
        self.check("mono", program, env=dict(os.environ, MONO_PATH=str(package)))

    def test_rust(self):
        self.need("cargo")
        crate = self.prefix / "share" / "tiny" / "rust"
        if not crate.exists():
            self.lack("the Rust crate is not installed")
        source = self.work / "rust"
        shutil.copytree(ROOT / "samples" / "rust", source)
        environment = dict(os.environ, TINY_LIB_DIR=str(self.library),
                           CARGO_TARGET_DIR=str(self.work / "target"),
                           LD_LIBRARY_PATH=str(self.library))
        run("cargo", "build", "--offline", "--quiet", "--config",
            f'patch.crates-io.tiny-engine.path="{crate}"', cwd=source, env=environment)
        self.check(self.work / "target" / "debug" / "identify", env=environment)


@unittest.skipUnless("IDENTIFY" in os.environ, "for trying programs by hand")
class Given(unittest.TestCase):
    """Programs that IDENTIFY names."""

    setUpClass = classmethod(lambda cls: Detectors.setUpClass.__func__(cls))
    check = Detectors.check

    def test_programs(self):
        for command in filter(None, os.environ["IDENTIFY"].split(";")):
            with self.subTest(command=command):
                self.check(*command.split())


BUILD = sys.argv.pop(1) if len(sys.argv) > 1 and os.path.isdir(sys.argv[1]) else ""

if __name__ == "__main__":
    unittest.main(verbosity=2)
