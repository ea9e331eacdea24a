#!/bin/sh
# Runs the test suites of the onnx wheel through the `tiny` command and keeps a line of JSON for each
# case: onnx_suite.sh [TINY [REPORT [FILTER]]].  Of the suite node only the cases run whose names match
# FILTER (a regular expression), of the others all.  Fails if a case fails or, on device cpu, if a kernel
# was interpreted; what is not supported is counted only.  77: the interpreter $PYTHON lacks onnx.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
tiny=${1:-$here/../../build/release/tools/tiny}
report=${2:-onnx_suite.jsonl}
filter=${3:-}
python=${PYTHON:-python3}
data=$("$python" -c 'import onnx, os; print(os.path.join(os.path.dirname(onnx.__file__), "backend/test/data"))' \
  2>/dev/null) || { echo "skipped: $python lacks onnx"; exit 77; }
status=0
"$tiny" test "$data/node" --filter "$filter" --json > "$report" || status=$?
tail -n 1 "$report"
"$tiny" test "$data/simple" "$data/pytorch-converted" "$data/pytorch-operator" --json \
  > "$report.others" || status=$?
tail -n 1 "$report.others"
cat "$report.others" >> "$report"
rm "$report.others"
if [ "${TINY_DEVICE:-cpu}" = cpu ]; then
  for summary in $(grep -o '"kernels":[0-9]*,"interpreted":[0-9]*,"by_category"' "$report"); do
    case $summary in
      '"kernels":0,'*) echo "no kernel ran: $summary"; status=1 ;;
      *'"interpreted":0,'*) ;;
      *) echo "kernels were interpreted: $summary"; status=1 ;;
    esac
  done
fi
exit $status
