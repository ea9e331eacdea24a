#!/usr/bin/env bash
# Random kernels against the interpreter, many more than the tests try:
#   scripts/many-kernels.sh [KERNELS [FIRST_SEED]]
# Ten thousand by default, each under the options that strategies propose, under random lists and under lists
# that a search tries, on every instruction set here, and kernels with run-time sizes, sums of words
# and rows that are multiplied, weighed and multiplied again; wants scripts/check to have built the
# tests.
# What fails names its seed, KERNEL_SEED, for the same test.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
export KERNELS=${1:-10000} KERNEL_SEED=${2:-1} TINY_SPEC=1
export SEEDS=$((KERNELS / 10))
for test in codegen_random_kernels_test codegen_random_sizes_test codegen_dot_products_test \
  codegen_choose_row_tiles_test codegen_options_stream_test; do
  "build/release/tests/$test"
done
