#!/usr/bin/env bash
# Makes the packages that people install, in build/dist/packages, of one build (the preset `dist`).
# package.sh [deb ..]: these alone.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

kinds=("$@")
[ ${#kinds[@]} -gt 0 ] || kinds=(deb)
# Objects compiled for another build of the same sources are the same objects.
export CCACHE_BASEDIR="$PWD" CCACHE_NOHASHDIR=1
log=build/dist/package.log
mkdir -p build/dist
: >"$log"

# Runs a step; its output is the log's, and shown where it fails.
step() { "$@" >>"$log" 2>&1 || { tail -n 60 "$log" >&2; exit 1; }; }

step cmake --preset dist
step cmake --build --preset dist -j "$(nproc)"
for kind in "${kinds[@]}"; do
  case "$kind" in
    deb)
      rm -f build/dist/packages/*.deb
      step cpack --config build/dist/CPackConfig.cmake -G DEB
      ;;
    *)
      echo "package.sh: no package is called $kind; known: deb" >&2
      exit 2
      ;;
  esac
done
ls build/dist/packages/*.*
