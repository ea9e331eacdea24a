// Links libtiny.so from the folder that TINY_LIB_DIR names, or from the repository's release build.
use std::path::PathBuf;

fn main() {
    let folder = match std::env::var_os("TINY_LIB_DIR") {
        Some(folder) => PathBuf::from(folder),
        None => PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../build/release"),
    };
    println!("cargo:rustc-link-search=native={}", folder.display());
    println!("cargo:rustc-link-lib=dylib=tiny");
    println!("cargo:rustc-link-arg=-Wl,-rpath,{}", folder.display());
    println!("cargo:rerun-if-env-changed=TINY_LIB_DIR");
    println!("cargo:rerun-if-changed=build.rs");
}
