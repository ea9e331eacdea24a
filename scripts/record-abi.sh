#!/usr/bin/env bash
# Records the ABI that include/tiny.h declares as what tests/style/abi.py holds libtiny.so to, and
# lists new functions in src/api/tiny.map.  Run it in the commit that changes the header on purpose.
# `record-abi.sh release`: what is recorded is what programs are promised from now on.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../tests/style"
exec python3 -B abi.py "${1:-record}"
