#!/usr/bin/env bash
# How long a clean build takes: everything, without ccache, in a folder of its own (default
# build/cold, which is emptied first).  Prints the wall time and the ten slowest translation units,
# and keeps them in that folder's times.txt for scripts/figures.py.  cold-build.sh [FOLDER]
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

folder=${1:-build/cold}
rm -rf "$folder"
mkdir -p "$folder"
export CCACHE_DISABLE=1
started=$(date +%s)
if ! { cmake --preset release -B "$folder" && cmake --build "$folder" -j "$(nproc)"; } \
  >"$folder/build.log" 2>&1; then
  tail -n 60 "$folder/build.log" >&2
  exit 1
fi
seconds=$(($(date +%s) - started))
{
  echo "cold build on $(date +%F), $(nproc) cores: $seconds s"
  python3 -B scripts/figures.py --slowest "$folder"
} | tee "$folder/times.txt"
