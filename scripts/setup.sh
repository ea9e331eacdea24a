#!/usr/bin/env bash
# Installs what building, testing and the bindings need, on Debian 12: Debian's packages that are
# missing, and a Python environment in .venv with the versions of scripts/requirements.txt.
# Does nothing, in well under a second, where all of it is there already.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

packages=(
  # The build.
  g++ gcc libc6-dev binutils cmake ninja-build ccache git ca-certificates
  pkg-config libgtest-dev libdlpack-dev libxbyak-dev libprotozero-dev libcli11-dev libstb-dev zlib1g-dev
  # The second compiler, the formatter, the sanitizers' and fuzzer's run time.
  clang-19 clang-format-19 clang-tidy-19 libclang-rt-19-dev
  # The bindings and the ABI check.  bindgen reads headers through libclang 14 (a newer one
  # names unnamed enumerations in a way that it cannot read) and that version's stddef.h.
  swig mono-mcs mono-runtime libmono-system-core4.0-cil bindgen libclang1-14 libclang-common-14-dev abigail-tools
  # Packages as their users have them: Debian's and NuGet's tools.
  dpkg-dev nuget mono-xbuild
  # A browser, and what tests drive it by.
  chromium chromium-driver
  # What samples train on.
  dataset-fashion-mnist
  # 64-bit ARM: the cross compiler, and what runs its programs.
  g++-aarch64-linux-gnu qemu-user
  # OpenCL without a GPU: the header (the build), the loader, PoCL for results, oclgrind for races and bounds.
  opencl-c-headers ocl-icd-libopencl1 pocl-opencl-icd oclgrind
  # Vulkan without a GPU: where WGSL is run.
  libvulkan1 mesa-vulkan-drivers
  # Processes that compute together: libtiny_mpi.so, and what starts them in tests.
  libopenmpi-dev openmpi-bin
)

say() { printf 'setup: %s\n' "$*"; }
fail() { printf 'setup: %s\n' "$*" >&2; exit 1; }

# True if the command prints a version of at least $2.
at_least() {
  local found
  found=$("$1" --version 2>/dev/null | grep -oE '[0-9]+\.[0-9]+(\.[0-9]+)?' | head -n 1) || return 1
  [ -n "$found" ] && [ "$(printf '%s\n%s\n' "$2" "$found" | sort -V | head -n 1)" = "$2" ]
}

# True if the interpreter is at least 3.11, makes virtual environments and has its C headers.
python_serves() {
  "$1" - 2>/dev/null <<'PYTHON'
import ensurepip, os, sys, sysconfig, venv
headers = os.path.join(sysconfig.get_paths()["include"], "Python.h")
sys.exit(not (sys.version_info >= (3, 11) and os.path.exists(headers)))
PYTHON
}

command -v dpkg >/dev/null ||
  fail "this script knows Debian 12; elsewhere install by hand: ${packages[*]}"
at_least cargo 1.63 && at_least rustc 1.63 || packages+=(cargo rustc)
python=python3
python_serves "$python" || { python=/usr/bin/python3; packages+=(python3 python3-venv python3-dev); }

missing=()
for package in "${packages[@]}"; do
  case "$(dpkg -s "$package" 2>/dev/null | sed -n 's/^Status: //p')" in
    "install ok installed") ;;
    *) missing+=("$package") ;;
  esac
done
if [ ${#missing[@]} -gt 0 ]; then
  as_root=()
  if [ "$(id -u)" -ne 0 ]; then
    command -v sudo >/dev/null ||
      fail "not root and no sudo; let an administrator install: ${missing[*]}"
    as_root=(sudo)
  fi
  say "installing ${missing[*]}"
  quiet=(-qq -o DPkg::Lock::Timeout=600)
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get "${quiet[@]}" update </dev/null ||
    fail "apt-get update failed: is the package mirror reachable?"
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get "${quiet[@]}" install -y \
    --no-install-recommends "${missing[@]}" </dev/null >/dev/null ||
    fail "apt-get could not install: ${missing[*]}"
fi

# The environment is made anew when the versions or the interpreter behind it change.
stamp=.venv/made-from
wanted="$(cat scripts/requirements.txt scripts/requirements-alone.txt; "$python" --version; command -v "$python")"
if [ ! -x .venv/bin/python ] || [ "$(cat "$stamp" 2>/dev/null)" != "$wanted" ]; then
  say "making .venv with scripts/requirements.txt"
  rm -rf .venv
  "$python" -m venv .venv || fail "$python cannot make a virtual environment"
  .venv/bin/python -m pip install --quiet --disable-pip-version-check --no-input \
    --only-binary=:all: -r scripts/requirements.txt </dev/null ||
    fail "pip could not install scripts/requirements.txt"
  .venv/bin/python -m pip install --quiet --disable-pip-version-check --no-input --no-deps \
    --only-binary=:all: -r scripts/requirements-alone.txt </dev/null ||
    fail "pip could not install scripts/requirements-alone.txt"
  printf '%s\n' "$wanted" >"$stamp"
fi
say "ready ($(.venv/bin/python --version), $(cargo --version | cut -d' ' -f1,2))"
