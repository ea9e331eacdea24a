#!/usr/bin/env bash
# Formats every C and C++ file of the repository with the pinned clang-format-19.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
git ls-files -z --cached --others --exclude-standard '*.h' '*.c' '*.cpp' |
  xargs -0 --no-run-if-empty clang-format-19 -i
