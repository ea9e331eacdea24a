"""Debian's packages, as scripts/package.sh has made them: installed in a root of their own beside what
they depend on, used there, removed."""

import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

from support import CONSUMER, DIST, run, stripped_bytes, version

# What any system has before: the packages that ours depend on, and what their scripts run.
PRESENT = ("libc6", "zlib1g", "libc-bin", "dash")
# The limit of the library with everything, in bytes.
LARGEST_LIBRARY = 5_000_000
# A root of its own takes the rights of the administrator, or a namespace where one has them.
AS_ROOT = () if os.geteuid() == 0 else ("unshare", "--map-root-user")


class Packages(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.files = {path.name.split("_")[0]: path for path in (DIST / "packages").glob("*.deb")}
        temporary = tempfile.TemporaryDirectory()
        cls.addClassCleanup(temporary.cleanup)
        cls.folder = pathlib.Path(temporary.name)

    def field(self, package, name):
        return run("dpkg-deb", "--field", self.files[package], name).strip()

    def test_names_and_dependencies(self):
        self.assertEqual(set(self.files), {"libtiny0", "libtiny-dev", "tiny-tools"})
        for package in self.files:
            self.assertTrue(self.field(package, "Version").startswith(version()))
        self.assertRegex(self.field("libtiny0", "Depends"), r"^libc6 \(>= [\d.]+\)$")
        self.assertEqual(self.field("libtiny-dev", "Depends"), f"libtiny0 (= {self.field('libtiny0', 'Version')})")
        self.assertRegex(self.field("tiny-tools", "Depends"), r"libtiny0 \(>= .*libc6 \(>= .*zlib1g")
        shlibs = run("dpkg-deb", "--ctrl-tarfile", self.files["libtiny0"], errors="replace")
        self.assertRegex(shlibs, r"libtiny 0 libtiny0")

    def test_the_library_is_small(self):
        out = self.folder / "unpacked"
        run("dpkg-deb", "--extract", self.files["libtiny0"], out)
        library = next(out.glob("usr/lib/*/libtiny.so.0.*"))
        self.assertLessEqual(library.stat().st_size, LARGEST_LIBRARY)
        self.assertLessEqual(stripped_bytes(library, self.folder), library.stat().st_size)

    def clean_root(self):
        """A root with the libraries and the shell of this system, whose dpkg knows their packages alone."""
        root = self.folder / "root"
        for name in ("usr/bin", "usr/lib", "usr/lib64", "usr/sbin", "etc", "tmp", "var/lib/dpkg/info",
                     "var/lib/dpkg/updates", "var/lib/dpkg/triggers"):
            (root / name).mkdir(parents=True)
        for name in ("bin", "lib", "lib64", "sbin"):
            (root / name).symlink_to(f"usr/{name}")
        programs = [pathlib.Path(shutil.which(name, path="/sbin:/usr/sbin:/bin:/usr/bin"))
                    for name in ("dash", "ldconfig", "cc", "true")]
        needed = set()
        for program in [*programs, *(DIST / "tools").glob("tiny")]:
            listed = subprocess.run(["ldd", program], capture_output=True, text=True).stdout
            needed |= set(re.findall(r"(/\S+)(?= \(0x)", listed))
        for path in [*programs[:2], programs[3], *map(pathlib.Path, needed)]:
            if "libtiny" in path.name:
                continue
            target = root / str(path).lstrip("/")
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, target)
        shutil.copy(programs[0], root / "usr/bin/sh")
        if not (root / "sbin/ldconfig").exists():
            shutil.copy(programs[1], root / "sbin/ldconfig")
        known = [run("dpkg", "--status", package) for package in PRESENT]
        # Present with no dependencies of their own: those are this system's matter.
        known = [re.sub(r"^(?:Pre-)?(?:Depends|Recommends|Suggests|Breaks|Conffiles):.*\n(?: .*\n)*", "", text, flags=re.M)
                 for text in known]
        (root / "var/lib/dpkg/status").write_text("\n".join(known))
        for package in PRESENT:
            name = f"{package}:amd64" if "Multi-Arch: same" in run("dpkg", "--status", package) else package
            (root / f"var/lib/dpkg/info/{name}.list").write_text("/.\n")
        return root

    @unittest.skipUnless(subprocess.run([*AS_ROOT, "true"], capture_output=True).returncode == 0,
                         "neither administrator nor a namespace to be one in")
    def test_installed_used_and_removed(self):
        root = self.clean_root()
        before = {path for path in root.rglob("*") if "var/lib" not in str(path)}
        dpkg = (*AS_ROOT, "dpkg", f"--root={root}", "--force-unsafe-io")
        with self.assertRaisesRegex(AssertionError, "tiny-tools depends on libtiny0"):
            run(*dpkg, "--install", self.files["tiny-tools"])
        run(*dpkg, "--install", *self.files.values())
        self.assertEqual(run(*AS_ROOT, "chroot", root, "/usr/bin/tiny", "--version").split()[-1], version())
        self.assertIn("cpu", run(*AS_ROOT, "chroot", root, "/usr/bin/tiny", "devices"))
        self.assertTrue((root / "usr/share/man/man1/tiny.1").exists())
        for package in self.files:
            self.assertIn("MIT License", (root / f"usr/share/doc/{package}/copyright").read_text())

        # What develops against it finds it by the system's paths.
        library = next(root.glob("usr/lib/*/libtiny.so")).parent
        program = root / "tmp/consumer"
        run("cc", "-I", root / "usr/include", CONSUMER / "consumer.c", "-o", program, "-L", library, "-ltiny")
        lines = run(*AS_ROOT, "chroot", root, "/tmp/consumer").splitlines()
        self.assertEqual(lines[:3], [version(), "6", "IO"])
        program.unlink()
        shutil.rmtree(root / ".cache", ignore_errors=True)
        shutil.rmtree(root / "root", ignore_errors=True)

        run(*dpkg, "--purge", "libtiny-dev", "tiny-tools", "libtiny0")
        left = {path for path in root.rglob("*") if "var/lib" not in str(path)} - before
        self.assertEqual({path.name for path in left} - {"ld.so.cache", "ldconfig", "aux-cache", "cache", "var"}, set())


if __name__ == "__main__":
    unittest.main()
