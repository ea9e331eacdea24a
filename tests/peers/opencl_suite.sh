#!/bin/sh
# Runs the suite node of the onnx wheel on device opencl under oclgrind, which reports races, accesses
# outside of buffers and wrong calls: opencl_suite.sh TINY FOLDER [FILTER].  Fails unless the cases
# that pass are those that the interpreter passes, and oclgrind has nothing to say.  77: there is no
# oclgrind, or the interpreter $PYTHON lacks onnx.
set -eu
tiny=$1
folder=$2
filter=${3:-}
python=${PYTHON:-python3}
command -v oclgrind > /dev/null || { echo "skipped: no oclgrind"; exit 77; }
data=$("$python" -c 'import onnx, os; print(os.path.join(os.path.dirname(onnx.__file__), "backend/test/data"))' \
  2>/dev/null) || { echo "skipped: $python lacks onnx"; exit 77; }
mkdir -p "$folder"
rm -f "$folder"/*

# The names of what passed.  The wheel's DFT data holds a float32 transform's rounding errors where
# the true value is 0.
passed() {
  grep -o '"name":"[^"]*","category":"[^"]*","result":"pass"' "$1" | cut -d '"' -f 4 | sort
}
"$tiny" test "$data/node" --filter "$filter" --atol 1e-6 --device interp --no-cache --json \
  > "$folder/interp.jsonl" || true
# Without optimisation: what LLVM would make of sums of bytes oclgrind does not know.
oclgrind --data-races --check-api --build-options -cl-opt-disable --log "$folder/oclgrind.log" \
  "$tiny" test "$data/node" --filter "$filter" --atol 1e-6 --device opencl --no-cache --json \
  > "$folder/opencl.jsonl" || true
tail -n 1 "$folder/opencl.jsonl"
passed "$folder/interp.jsonl" > "$folder/interp.txt"
passed "$folder/opencl.jsonl" > "$folder/opencl.txt"
status=0
[ -s "$folder/interp.txt" ] || { echo "nothing passed on the interpreter"; status=1; }
diff "$folder/interp.txt" "$folder/opencl.txt" > "$folder/differ.txt" || {
  echo "passed on the interpreter alone (<) or on opencl alone (>):"
  cat "$folder/differ.txt"
  status=1
}
if [ -s "$folder/oclgrind.log" ]; then
  echo "oclgrind says:"
  head -n 60 "$folder/oclgrind.log"
  status=1
fi
exit $status
