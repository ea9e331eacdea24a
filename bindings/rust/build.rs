// Finds libtiny: in the folder that TINY_LIB_DIR names, installed (pkg-config), or built from the sources
// that come with the crate.  Dependents find `libdir` as DEP_TINY_LIBDIR where the library is a shared one.
use std::env;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;

fn main() {
    for name in ["TINY_LIB_DIR", "TINY_BUILD_DIR", "TINY_CMAKE_ARGS", "PKG_CONFIG", "PKG_CONFIG_PATH", "CXX"] {
        println!("cargo:rerun-if-env-changed={name}");
    }
    println!("cargo:rerun-if-changed=build.rs");
    if let Some(folder) = env::var_os("TINY_LIB_DIR") {
        link_shared(Path::new(&folder));
    } else if let Some(folder) = installed() {
        link_shared(&folder);
    } else {
        link_static(&build(&sources()));
    }
}

fn link_shared(folder: &Path) {
    println!("cargo:rustc-link-search=native={}", folder.display());
    println!("cargo:rustc-link-lib=dylib=tiny");
    println!("cargo:rustc-link-arg=-Wl,-rpath,{}", folder.display());
    println!("cargo:libdir={}", folder.display());
}

fn link_static(folder: &Path) {
    println!("cargo:rustc-link-search=native={}", folder.display());
    println!("cargo:rustc-link-lib=static=tiny");
    for library in ["stdc++", "m", "pthread", "dl"] {
        println!("cargo:rustc-link-lib=dylib={library}");
    }
}

/// The folder of an installed libtiny.so that this crate can use.
fn installed() -> Option<PathBuf> {
    let version = env::var("CARGO_PKG_VERSION").expect("cargo sets it");
    let program = env::var_os("PKG_CONFIG").unwrap_or_else(|| "pkg-config".into());
    let ask = |words: &[&str]| -> Option<String> {
        let done = Command::new(&program).args(words).output().ok()?;
        let text = String::from_utf8(done.stdout).ok()?;
        done.status.success().then(|| text.trim().to_string())
    };
    ask(&["--exists", &format!("tiny >= {version}")])?;
    let folder = PathBuf::from(ask(&["--variable=libdir", "tiny"])?);
    folder.join("libtiny.so").exists().then_some(folder)
}

/// The sources of the library: packed into the crate, or the repository around it.
fn sources() -> PathBuf {
    let here = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets it"));
    let places = [here.join("sources"), here.join("../..")];
    let found = places.iter().find(|place| place.join("include/tiny.h").exists());
    found.expect("TINY_LIB_DIR is not set, tiny is not installed, and its sources are not here").clone()
}

fn run(command: &mut Command, package: &str) {
    let name = command.get_program().to_string_lossy().into_owned();
    match command.output() {
        Ok(done) if done.status.success() => {}
        Ok(done) => panic!(
            "{name} could not make libtiny:\n{}{}",
            String::from_utf8_lossy(&done.stdout),
            String::from_utf8_lossy(&done.stderr)
        ),
        Err(error) => panic!("{name}: {error}; it is in Debian's package {package}"),
    }
}

fn is_there(program: &str) -> bool {
    Command::new(program).arg("--version").output().is_ok()
}

/// Builds libtiny.a; the folder that it is in.
fn build(sources: &Path) -> PathBuf {
    println!("cargo:rerun-if-changed={}", sources.join("CMakeLists.txt").display());
    for folder in ["include", "src", "onnx", "cmake"] {
        println!("cargo:rerun-if-changed={}", sources.join(folder).display());
    }
    let out = env::var_os("TINY_BUILD_DIR").map(PathBuf::from);
    let out = out.unwrap_or_else(|| PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets it")).join("build"));
    let off = ["TINY_TESTS", "TINY_TOOLS", "TINY_BINDINGS", "BUILD_SHARED_LIBS"];
    let mut configure = Command::new("cmake");
    configure.arg("-S").arg(sources).arg("-B").arg(&out).arg("-DCMAKE_BUILD_TYPE=Release");
    configure.args(off.iter().map(|name| format!("-D{name}=OFF")));
    configure.args(env::var("TINY_CMAKE_ARGS").unwrap_or_default().split_whitespace());
    if is_there("ninja") {
        configure.args(["-G", "Ninja"]);
    }
    run(&mut configure, "cmake");
    let jobs = env::var("NUM_JOBS").unwrap_or_else(|_| "1".into());
    let words: [&OsStr; 5] =
        ["--build".as_ref(), out.as_os_str(), "--target".as_ref(), "tiny".as_ref(), "-j".as_ref()];
    run(Command::new("cmake").args(words).arg(jobs), "cmake");
    out
}
