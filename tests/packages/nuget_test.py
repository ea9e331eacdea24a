"""The NuGet package, as scripts/package.sh has made it: its parts, restored from a folder, built and run with Mono."""

import os
import pathlib
import shutil
import tempfile
import unittest
import xml.etree.ElementTree
import zipfile

from support import CONSUMER, DIST, newest_glibc, run, version

PACKAGE = DIST / "packages" / f"Tiny.Engine.{version()}.nupkg"
NATIVE = "runtimes/linux-x64/native/"


def parsed(package, path):
    return xml.etree.ElementTree.fromstring(package.read(path))


class Package(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.folder = pathlib.Path(temporary.name)

    def test_parts(self):
        with zipfile.ZipFile(PACKAGE) as package:
            names = package.namelist()
            self.assertEqual(package.testzip(), None)
            self.assertEqual(names[0], "[Content_Types].xml")
            self.assertEqual(len(names), len(set(names)))
            self.assertLessEqual({"Tiny.Engine.nuspec", "LICENSE", "lib/net461/Tiny.dll", "build/Tiny.Engine.targets",
                                  NATIVE + "libtiny.so.0", NATIVE + "libtinycs.so"}, set(names))
            # Every part has a content type, every relationship a target.
            kinds = parsed(package, names[0])
            suffixes = {kind.get("Extension") for kind in kinds if kind.get("Extension")}
            bare = {kind.get("PartName") for kind in kinds if kind.get("PartName")}
            for name in names[1:]:
                self.assertTrue(name.rpartition(".")[2] in suffixes or f"/{name}" in bare, name)
            for relationship in parsed(package, "_rels/.rels"):
                self.assertIn(relationship.get("Target")[1:], names)
            told = {node.tag.partition("}")[2]: node.text for node in parsed(package, "Tiny.Engine.nuspec")[0]}
            self.assertEqual((told["id"], told["version"], told["license"]), ("Tiny.Engine", version(), "MIT"))

    def test_libraries_serve_older_systems(self):
        with zipfile.ZipFile(PACKAGE) as package:
            for name in ("libtiny.so.0", "libtinycs.so"):
                library = self.folder / name
                library.write_bytes(package.read(NATIVE + name))
                self.assertLessEqual(newest_glibc(library), (2, 31), name)

    def test_restored_built_and_run(self):
        environment = dict(os.environ, HOME=str(self.folder), XDG_CONFIG_HOME=str(self.folder))
        run("nuget", "install", "Tiny.Engine", "-Source", PACKAGE.parent, "-OutputDirectory", self.folder / "packages",
            "-NonInteractive", "-NoCache", cwd=self.folder, env=environment)
        restored = self.folder / "packages" / f"Tiny.Engine.{version()}"
        self.assertTrue((restored / "lib/net461/Tiny.dll").exists())
        for name in ("Consumer.cs", "Consumer.csproj"):
            shutil.copy(CONSUMER / name, self.folder)
        run("xbuild", "/nologo", "/verbosity:minimal", f"/p:Package={restored}", "Consumer.csproj", cwd=self.folder,
            env=environment)
        made = self.folder / "bin"
        for name in ("Consumer.exe", "Tiny.dll", "libtiny.so.0", "libtinycs.so"):
            self.assertTrue((made / name).exists(), name)
        shutil.rmtree(restored)
        environment.pop("LD_LIBRARY_PATH", None)
        said = run("mono", made / "Consumer.exe", cwd="/", env=environment)
        self.assertEqual(said.split(), [version(), "6"])


if __name__ == "__main__":
    unittest.main()
