#!/usr/bin/env bash
# A tenth of the corpus, of what the tree's own environment can make, in a folder that is made anew: tenth.sh FOLDER
set -euo pipefail
peers=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
python=${TINY_VENV:-$peers/../../.venv}/bin/python
"$python" -c 'import onnxruntime, torch' 2>/dev/null || { echo "skipped: $python lacks onnxruntime or torch"; exit 77; }
rm -rf "$1"
"$peers/make_corpus" "$1" --here --part 7/10
exec "$peers/run_corpus" "$1" --no-times
