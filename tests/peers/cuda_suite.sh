#!/bin/sh
# Runs the suite node of the onnx wheel on device cuda over the emulated driver, whose kernels are the
# PTX of the renderer and fault at races and accesses outside of memory:
# cuda_suite.sh TINY EMULATION FOLDER [FILTER].  Fails unless the cases that pass are those that the
# interpreter passes, and no kernel faults.  77: the interpreter $PYTHON lacks onnx.
set -eu
tiny=$1
emulation=$2
folder=$3
filter=${4:-}
python=${PYTHON:-python3}
data=$("$python" -c 'import onnx, os; print(os.path.join(os.path.dirname(onnx.__file__), "backend/test/data"))' \
  2>/dev/null) || { echo "skipped: $python lacks onnx"; exit 77; }
mkdir -p "$folder"
rm -f "$folder"/*

passed() {
  grep -o '"name":"[^"]*","category":"[^"]*","result":"pass"' "$1" | cut -d '"' -f 4 | sort
}
"$tiny" test "$data/node" --filter "$filter" --device interp --no-cache --json \
  > "$folder/interp.jsonl" || true
LD_LIBRARY_PATH=$emulation FAKE_CUDA_LOG=1 \
  "$tiny" test "$data/node" --filter "$filter" --device cuda --no-cache --json \
  > "$folder/cuda.jsonl" 2> "$folder/messages" || true
tail -n 1 "$folder/cuda.jsonl"
passed "$folder/interp.jsonl" > "$folder/interp.txt"
passed "$folder/cuda.jsonl" > "$folder/cuda.txt"
status=0
[ -s "$folder/interp.txt" ] || { echo "nothing passed on the interpreter"; status=1; }
diff "$folder/interp.txt" "$folder/cuda.txt" > "$folder/differ.txt" || {
  echo "passed on the interpreter alone (<) or on cuda alone (>):"
  cat "$folder/differ.txt"
  status=1
}
if grep "^fake cuda:" "$folder/messages" > "$folder/faults"; then
  echo "kernels fault:"
  head -n 20 "$folder/faults"
  status=1
fi
exit $status
