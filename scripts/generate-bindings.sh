#!/usr/bin/env bash
# Writes the committed sources that come from include/tiny.h: the bindings' and those of a build without
# ONNX.  Run it in the commit that changes the header.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
python3 -B scripts/make-without.py write
exec python3 -B bindings/rust/bindings.py write
