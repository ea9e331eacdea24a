#!/bin/sh
# Runs the suite node of the onnx wheel on a device whose kernels are watched:
# device_suite.sh TINY FOLDER opencl|cuda [FILTER].  Fails unless the cases that pass are those that the
# interpreter passes, and who watches has nothing to say of races, accesses outside of buffers and wrong
# calls: of opencl that is oclgrind, of cuda the emulated driver in $EMULATION, which runs the
# renderer's PTX.  What looks into texts and pictures runs where memory is the host's, and is left out.  FOLDER is emptied.  77: there is no oclgrind, or the interpreter $PYTHON lacks onnx.
set -eu
tiny=$1
folder=$2
device=$3
filter=${4:-}
python=${PYTHON:-python3}
if [ "$device" = opencl ]; then
  command -v oclgrind > /dev/null || { echo "skipped: no oclgrind"; exit 77; }
fi
data=$("$python" -c 'import onnx, os; print(os.path.join(os.path.dirname(onnx.__file__), "backend/test/data"))' \
  2>/dev/null) || { echo "skipped: $python lacks onnx"; exit 77; }
mkdir -p "$folder"
rm -f "$folder"/*

# The suite on a device: suite DEVICE COMMAND.. , where the command runs what follows it.
suite() {
  on=$1
  shift
  "$@" "$tiny" test "$data/node" --filter "$filter" --device "$on" --no-cache --case-timeout 400 --json \
    > "$folder/$on.jsonl" 2> "$folder/$on.messages" || true
  grep -o '"name":"[^"]*","category":"[^"]*","result":"pass"' "$folder/$on.jsonl" | cut -d '"' -f 4 |
    grep -v "^test_\(string\|strnormalizer\|regex\|image_decoder\)_" | sort > "$folder/$on.txt"
}
suite interp env
if [ "$device" = opencl ]; then
  # Without optimisation: what LLVM would make of sums of bytes oclgrind does not know.
  suite opencl oclgrind --data-races --check-api --build-options -cl-opt-disable --log "$folder/faults"
else
  suite "$device" env LD_LIBRARY_PATH="$EMULATION" FAKE_CUDA_LOG=1
  grep "^fake cuda:" "$folder/$device.messages" > "$folder/faults" || true
fi
tail -n 1 "$folder/$device.jsonl"
status=0
[ -s "$folder/interp.txt" ] || { echo "nothing passed on the interpreter"; status=1; }
diff "$folder/interp.txt" "$folder/$device.txt" > "$folder/differ.txt" || {
  echo "passed on the interpreter alone (<) or on $device alone (>):"
  cat "$folder/differ.txt"
  status=1
}
if [ -s "$folder/faults" ]; then
  echo "kernels fault:"
  head -n 60 "$folder/faults"
  status=1
fi
exit $status
