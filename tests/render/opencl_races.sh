#!/bin/sh
# What oclgrind says of a kernel whose threads hand each other values: nothing where they meet at a
# barrier, and that they race where it is taken out: opencl_races.sh render_opencl_test FOLDER.  77:
# there is no oclgrind.
set -eu
program=$1
log=$2/opencl_races.log
command -v oclgrind > /dev/null || { echo "skipped: no oclgrind"; exit 77; }

run() {
  rm -f "$log"
  oclgrind --data-races --check-api --log "$log" "$program" --gtest_filter='*ThreadsMeet'
}
run
[ -e "$log" ] && [ ! -s "$log" ] || { echo "with a barrier:"; cat "$log"; exit 1; }
WITHOUT_BARRIER=1 run
grep -q "data race" "$log" || { echo "without a barrier no race is reported"; exit 1; }
