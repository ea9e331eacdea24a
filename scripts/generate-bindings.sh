#!/usr/bin/env bash
# Writes the committed sources of the bindings that come from include/tiny.h.  Run it in the commit
# that changes the header.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
exec python3 -B bindings/rust/bindings.py write
