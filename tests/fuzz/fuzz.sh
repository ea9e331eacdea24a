#!/usr/bin/env bash
# Runs one fuzz target: fuzz.sh TARGET [SECONDS].  It begins with the inputs of tests/fuzz/seeds/TARGET
# and what earlier runs found (build/fuzz/TARGET).  A crash fails and leaves its input in
# build/fuzz/TARGET.crash-*, which `build/sanitize/tests/fuzz/TARGET_fuzz FILE` replays.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
target=$1
seconds=${2:-60}
found=build/fuzz/$target
mkdir -p "$found"
log=build/fuzz/$target.log
status=0
build/sanitize/tests/fuzz/"${target}_fuzz" "$found" "tests/fuzz/seeds/$target" \
  -seed="${FUZZ_SEED:-1}" -max_total_time="$seconds" -timeout=25 -rss_limit_mb=1024 -max_len=4096 -print_final_stats=1 \
  -artifact_prefix="build/fuzz/$target." >"$log" 2>&1 || status=$?
if [ "$status" -ne 0 ]; then
  tail -n 60 "$log"
  exit 1
fi
grep -E '^Done|stat::number_of_executed|INITED|cov:' "$log" | tail -n 3
