#!/usr/bin/env bash
# Builds what the arguments name with clang, under the address and undefined-behaviour sanitizers,
# in build/sanitize: the fuzz targets, and the tests whose inputs are hostile.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
mkdir -p build/sanitize
started=$SECONDS
if ! { cmake --preset sanitize "-DTINY_VENV=${TINY_VENV:-}" &&
  cmake --build --preset sanitize -j "$(nproc)" --target "$@"; } >build/sanitize/build.log 2>&1; then
  grep -E -A 20 'FAILED|error' build/sanitize/build.log | head -n 60
  exit 1
fi
echo "sanitized: built in $((SECONDS - started)) s"
