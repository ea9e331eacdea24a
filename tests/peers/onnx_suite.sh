#!/bin/sh
# Runs the test suites of the onnx wheel through the `tiny` command and keeps a line of JSON for each
# case: onnx_suite.sh [TINY [REPORT]].  Fails if a case fails; what is not supported is counted only.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
tiny=${1:-$here/../../build/release/tools/tiny}
report=${2:-onnx_suite.jsonl}
python=${PYTHON:-python3}
data=$("$python" -c 'import onnx, os; print(os.path.join(os.path.dirname(onnx.__file__), "backend/test/data"))')
# The wheel's DFT data holds a float32 transform's rounding errors where the true value is 0.
status=0
"$tiny" test "$data/node" "$data/simple" "$data/pytorch-converted" "$data/pytorch-operator" \
  --atol 1e-6 --json > "$report" || status=$?
tail -n 1 "$report"
exit $status
