#!/usr/bin/env bash
# Records the ABI that include/tiny.h declares as what tests/style/abi.py holds libtiny.so to.
# Run it in the commit that changes the header on purpose.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../tests/style"
exec python3 -B abi.py record
