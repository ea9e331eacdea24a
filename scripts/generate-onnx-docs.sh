#!/usr/bin/env bash
# Writes the tables of docs/ONNX.md from the importer's.  Run it in the commit that changes a row.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
cmake --preset release >/dev/null
cmake --build --preset release --target onnx_documentation_test >/dev/null
WRITE_DOCUMENTATION=1 build/release/tests/onnx_documentation_test
