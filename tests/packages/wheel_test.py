"""The wheel, as scripts/package.sh has made it: its tags and parts, and used in a clean environment."""

import os
import pathlib
import re
import sys
import tempfile
import unittest
import zipfile

from support import DIST, ROOT, newest_glibc, run, version

WHEELS = list((DIST / "packages").glob("*.whl"))
SCRIPT = """
import tiny
a = tiny.tensor([[1.0, 2.0], [3.0, 4.0]])
print(tiny.__version__, (a * 2 + 1).sum(axes=-1).tolist(), tiny.__file__)
"""


class Wheel(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        temporary = tempfile.TemporaryDirectory()
        cls.addClassCleanup(temporary.cleanup)
        cls.folder = pathlib.Path(temporary.name)

    def test_its_name(self):
        python = f"cp{sys.version_info.major}{sys.version_info.minor}"
        self.assertEqual(len(WHEELS), 1)
        self.assertRegex(WHEELS[0].name, rf"^tiny_engine-{re.escape(version())}-{python}-{python}-"
                                         r"(?:manylinux_2_\d+_x86_64\.)*manylinux_2_31_x86_64\.whl$")

    def test_its_parts(self):
        with zipfile.ZipFile(WHEELS[0]) as wheel:
            names = wheel.namelist()
            self.assertEqual([name for name in names if "libtiny" in name], ["tiny/libtiny.so.0"])
            self.assertLessEqual({"tiny/__init__.py", "tiny/__init__.pyi", "tiny/py.typed", "tiny/methods.py",
                                  "tiny/_native.so", "tiny/uop/__init__.py", "tiny/viz/index.html", "tiny/viz/viz.js",
                                  "tiny/viz/viz.css"}, set(names))
            told = f"tiny_engine-{version()}.dist-info/"
            self.assertIn("MIT License", wheel.read(told + "licenses/LICENSE").decode())
            metadata = wheel.read(told + "METADATA").decode()
            self.assertIn("License-Expression: MIT", metadata)
            self.assertNotIn("Requires-Dist", metadata)
            self.assertEqual({name.split("/")[0] for name in names}, {"tiny", told[:-1]})
            for name in ("tiny/libtiny.so.0", "tiny/_native.so"):
                wheel.extract(name, self.folder)
                self.assertLessEqual(newest_glibc(self.folder / name), (2, 31), name)

    def test_in_a_clean_environment(self):
        clean = {name: value for name, value in os.environ.items()
                 if not name.startswith(("PYTHON", "TINY_", "LD_", "VIRTUAL_ENV"))}
        run(sys.executable, "-m", "venv", self.folder / "venv", env=clean)
        python = self.folder / "venv/bin/python"
        run(python, "-m", "pip", "install", "--no-index", "--disable-pip-version-check", WHEELS[0], env=clean)
        first, sums, place = run(python, "-c", SCRIPT, cwd="/", env=clean).strip().replace("] /", "]; /").replace(
            " [", "; [", 1).split("; ")
        self.assertEqual((first, sums), (version(), "[8.0, 16.0]"))
        self.assertTrue(place.startswith(str(self.folder)), place)
        # The package's own tests, those that need nothing but it.
        for name in ("stubs_test", "names_test"):
            run(python, "-B", ROOT / f"bindings/python/tests/{name}.py", cwd="/", env=clean)
        run(python, "-m", "pip", "uninstall", "--yes", "--disable-pip-version-check", "tiny-engine", env=clean)
        with self.assertRaisesRegex(AssertionError, "No module named 'tiny'"):
            run(python, "-c", "import tiny", cwd="/", env=clean)


if __name__ == "__main__":
    unittest.main()
