#!/usr/bin/env bash
# Records the present ABI of libtiny.so and the numbers of tiny.h as what tests/style/abi.py holds
# later builds to.  Run it in the commit that changes tiny.h on purpose.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
cmake --preset release >/dev/null
cmake --build --preset release --target tiny
cd tests/style
exec python3 -B abi.py record ../../build/release/libtiny.so
