#!/usr/bin/env bash
# Runs the documents' studies that fit a machine of two cores, shortened, and writes what they say as one page and as
# markdown: docs/studies/2-cores was made with it. About 45 minutes; started again it goes on where it was. Nothing else
# should run meanwhile.
#   bench/studies.sh [FOLDER (default: studies)] [STUDY...]
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
folder=${1:-studies}
shift || true
export PATH=$root/build/release:$PATH
mkdir -p "$folder"
cd "$folder"
short=(--set max-seconds=6 --set num-warmup-batches=1)

wanted() { [[ ${#studies[@]} == 0 || " ${studies[*]} " == *" $1 "* ]]; }
studies=("$@")

run() {  # name of a plan, options of sweep
  if wanted "$1"; then trireme sweep "$@" "${short[@]}" --out "$1"; fi
}

if wanted io-overhead && [[ ! -d shapes ]]; then
  trireme data make --format tfrecord --samples 2048 --validation-samples 0 --classes 10 --out shapes
fi
run threads-and-batch --set batch-size=8,16,32
run sp-or-mp --set effective-batch=16,32
run servers
run placement
run io-overhead --set data-dir=shapes
if wanted forward-backward; then
  trireme compare --study cineca --batch-size 16 --rounds 4 --max-seconds 6 --num-warmup-batches 1 --out forward-backward
fi
mapfile -t finished < <(find . -mindepth 2 -maxdepth 2 -name plan.json -printf '%h\n' | sort)
trireme report "${finished[@]}" --out report.html
