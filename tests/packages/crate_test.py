"""The crate, as scripts/package.sh has packed it: its tests, its own sources, an installed library, a dependent."""

import os
import pathlib
import re
import tarfile
import tempfile
import unittest

from support import BUILD, DIST, run, version, with_environment

PACKED = DIST / "packages" / f"tiny-engine-{version()}.crate"
CARGO = """[package]
name = "dependent"
version = "0.0.0"
edition = "2021"

[dependencies]
tiny-engine = {{ path = "{crate}" }}
"""
MAIN = """use tiny::{Context, Tensor};

fn main() -> tiny::Result<()> {
    let context = Context::create(None)?;
    let x = Tensor::of(&context, &[1f32, 2.0, 3.0], &[3])?;
    println!("{} {:?}", tiny::version().unwrap(), x.sum(None, false)?.to_vec::<f32>()?);
    Ok(())
}
"""
# What a dependent of a shared library writes, as the crate's README says.
BUILD_RS = """fn main() {
    println!("cargo:rustc-link-arg=-Wl,-rpath,{}", std::env::var("DEP_TINY_LIBDIR").unwrap_or_default());
}
"""


class Crate(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        temporary = tempfile.TemporaryDirectory()
        cls.addClassCleanup(temporary.cleanup)
        cls.folder = pathlib.Path(temporary.name)
        with tarfile.open(PACKED) as packed:
            packed.extractall(cls.folder)
        cls.crate = cls.folder / f"tiny-engine-{version()}"

    def environment(self, **changes):
        clean = {name: value for name, value in with_environment().items()
                 if not name.startswith(("TINY_", "LD_LIBRARY", "PKG_CONFIG"))}
        return dict(clean, **changes)

    def dependent(self, name, build_rs=""):
        folder = self.folder / name
        (folder / "src").mkdir(parents=True)
        (folder / "Cargo.toml").write_text(CARGO.format(crate=self.crate))
        (folder / "src/main.rs").write_text(MAIN)
        if build_rs:
            (folder / "build.rs").write_text(build_rs)
        return folder

    def check(self, folder, target):
        """The program itself, with nothing in its environment."""
        self.assertEqual(run(target / "debug/dependent", cwd="/", env={}).strip(), f"{version()} [6.0]")

    def test_what_is_packed(self):
        self.assertLess(PACKED.stat().st_size, 10_000_000)
        self.assertIn("MIT License", (self.crate / "LICENSE").read_text())
        manifest = (self.crate / "Cargo.toml").read_text()
        self.assertIn('license = "MIT"', manifest)
        self.assertNotIn("[dependencies", manifest)
        self.assertTrue((self.crate / "sources/include/tiny.h").exists())
        self.assertFalse((self.crate / "sources/tests").exists())

    def test_built_from_its_sources(self):
        """Its tests, and a dependent, which has the library inside.  Objects are those of other builds."""
        sources = self.crate / "sources"
        environment = self.environment(
            PKG_CONFIG="false", TINY_BUILD_DIR=str(sources / "build/crate"), CCACHE_BASEDIR=str(sources),
            TINY_CMAKE_ARGS="-DTINY_WERROR=ON -DCMAKE_CXX_COMPILER_LAUNCHER=ccache", CARGO_TARGET_DIR=str(self.folder / "own"))
        run("cargo", "test", "--offline", "--quiet", "--tests", cwd=self.crate, env=environment)
        folder = self.dependent("from_sources")
        run("cargo", "build", "--offline", "--quiet", cwd=folder, env=environment)
        program = self.folder / "own/debug/dependent"
        self.assertNotIn("libtiny", run("ldd", program))
        self.check(folder, self.folder / "own")

    def test_with_an_installed_library(self):
        prefix = self.folder / "installed"
        for component in ("runtime", "development"):
            run("cmake", "--install", BUILD, "--prefix", prefix, "--component", component)
        target = self.folder / "found"
        environment = self.environment(PKG_CONFIG_PATH=str(prefix / "lib/pkgconfig"), CARGO_TARGET_DIR=str(target))
        run("cargo", "test", "--offline", "--quiet", "--tests", cwd=self.crate, env=environment)
        folder = self.dependent("with_installed", BUILD_RS)
        run("cargo", "build", "--offline", "--quiet", cwd=folder, env=environment)
        self.assertIn(str(prefix), run("ldd", target / "debug/dependent", env={}))
        self.check(folder, target)

    def test_a_missing_header_is_named(self):
        environment = self.environment(PKG_CONFIG="false", CARGO_TARGET_DIR=str(self.folder / "without"),
                                       TINY_BUILD_DIR=str(self.folder / "without/build"))
        # As where they are not installed: CMake looks nowhere.
        environment["CMAKE_TOOLCHAIN_FILE"] = str(self.folder / "nowhere.cmake")
        (self.folder / "nowhere.cmake").write_text("set(CMAKE_FIND_ROOT_PATH /nowhere)\n"
                                                   "set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)\n")
        with self.assertRaises(AssertionError) as failed:
            run("cargo", "build", "--offline", "--quiet", cwd=self.crate, env=environment)
        self.assertRegex(str(failed.exception), re.compile("(libxbyak-dev|libprotozero-dev)"))


if __name__ == "__main__":
    unittest.main()
