#!/usr/bin/env bash
# Builds one client program with the thread sanitizer, in build/tsan, and runs it.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
mkdir -p build/tsan
if ! { cmake --preset tsan && cmake --build --preset tsan --target "$1" -j "$(nproc)"; } \
  >build/tsan/build.log 2>&1; then
  tail -n 60 build/tsan/build.log
  exit 1
fi
# Without address randomisation: the sanitizer of gcc 12 does not know the kernel's newer layouts.
fixed=()
setarch -R true 2>/dev/null && fixed=(setarch -R)
TSAN_OPTIONS=halt_on_error=1 exec "${fixed[@]}" "build/tsan/tests/client/$1"
