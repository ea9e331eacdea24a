#!/usr/bin/env bash
# Makes the packages that people install, in build/dist/packages, of one build (the preset `dist`).
# package.sh [deb|nuget|wheel|crate ..]: these alone.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

kinds=("$@")
[ ${#kinds[@]} -gt 0 ] || kinds=(deb nuget wheel crate)
# Objects compiled for another build of the same sources are the same objects.
export CCACHE_BASEDIR="$PWD" CCACHE_NOHASHDIR=1
out=build/dist/packages
log=build/dist/package.log
mkdir -p "$out"
: >"$log"
version=$(sed -nE 's/^#define TINY_VERSION_(MAJOR|MINOR|PATCH) ([0-9]+)$/\2/p' include/tiny.h | paste -sd.)

# Runs a step; its output is the log's, and shown where it fails.
step() { "$@" >>"$log" 2>&1 || { tail -n 60 "$log" >&2; exit 1; }; }

make_deb() {
  rm -f "$out"/*.deb
  step cpack --config build/dist/CPackConfig.cmake -G DEB
}

make_nuget() {
  local staged=build/dist/nuget
  rm -rf "$staged" "$out"/*.nupkg
  step cmake --install build/dist --prefix "$staged" --component runtime --strip
  step cmake --install build/dist --prefix "$staged" --component csharp --strip
  step python3 -B bindings/csharp/pack.py "$version" "$staged"/lib/*/tiny/csharp/Tiny.dll "$out" \
    "$staged"/lib/*/libtiny.so.0 "$staged"/lib/*/tiny/csharp/libtinycs.so
}

make_wheel() {
  local made=build/dist/wheel
  rm -rf "$made" "$out"/*.whl
  # By the names that CMake takes for the other builds.
  CC=cc CXX=c++ CMAKE_GENERATOR=Ninja CMAKE_C_COMPILER_LAUNCHER=ccache CMAKE_CXX_COMPILER_LAUNCHER=ccache \
    step .venv/bin/python -m pip wheel . --no-build-isolation --no-deps --no-index \
    --disable-pip-version-check -w "$made" -C build-dir=build/wheel -C cmake.define.TINY_WERROR=ON
  PATH="$PWD/.venv/bin:$PATH" step .venv/bin/python -m auditwheel repair --plat manylinux_2_31_x86_64 \
    -w "$out" "$made"/*.whl
}

# The crate carries the sources that libtiny.a is made of.
make_crate() {
  local staged=build/dist/crate
  rm -rf "$staged" "$out"/*.crate
  mkdir -p "$staged/sources"
  cp -r bindings/rust/{Cargo.toml,README.md,build.rs,src,tests} LICENSE "$staged"
  cp -r --parents CMakeLists.txt LICENSE cmake include src onnx bindings/CMakeLists.txt "$staged/sources"
  step cargo package --offline --no-verify --allow-dirty --manifest-path "$staged/Cargo.toml" \
    --target-dir build/dist/cargo
  cp "build/dist/cargo/package/tiny-engine-$version.crate" "$out"
}

for kind in "${kinds[@]}"; do
  [[ " deb nuget wheel crate " == *" $kind "* ]] ||
    { echo "package.sh: no package is called $kind; known: deb, nuget, wheel, crate" >&2; exit 2; }
done
step cmake --preset dist
step cmake --build --preset dist -j "$(nproc)"
for kind in "${kinds[@]}"; do
  "make_$kind"
done
ls "$out"/*.*
