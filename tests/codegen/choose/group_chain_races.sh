#!/bin/sh
# Attention in one kernel of groups under oclgrind, which has 32 KB for a group and reports races and
# accesses outside of buffers: group_chain_races.sh codegen_choose_group_chain_test FOLDER.  SEEDS looks
# further.  77: there is no oclgrind.
set -eu
log=$2/group_chain_races.log
command -v oclgrind > /dev/null || { echo "skipped: no oclgrind"; exit 77; }
rm -f "$log"
SEEDS=${SEEDS:-6} oclgrind --num-threads 1 --data-races --check-api --build-options -cl-opt-disable --log "$log" \
  "$1" --gtest_filter='*OnOpenCl'
[ -e "$log" ] && [ ! -s "$log" ] || { echo "oclgrind says:"; head -n 60 "$log"; exit 1; }
