#!/bin/sh
# Random graphs on device opencl under oclgrind, which compiles faster than a driver does and reports
# races and accesses outside of buffers: opencl_graphs.sh engine_random_graph_test FOLDER.  GRAPHS and
# GRAPH_SEED look further.  77: there is no oclgrind.
set -eu
log=$2/opencl_graphs.log
command -v oclgrind > /dev/null || { echo "skipped: no oclgrind"; exit 77; }
rm -f "$log"
GRAPHS=${GRAPHS:-300} oclgrind --num-threads 1 --data-races --check-api --build-options -cl-opt-disable --log "$log" \
  "$1" --gtest_filter='*opencl*'
[ -e "$log" ] && [ ! -s "$log" ] || { echo "oclgrind says:"; head -n 60 "$log"; exit 1; }
