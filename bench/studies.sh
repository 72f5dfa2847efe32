#!/usr/bin/env bash
# Runs the documents' studies that fit a machine of two cores, shortened, and keeps their records and what they say in a
# folder: docs/studies was made with it. About 40 minutes; started again it goes on where it was. Nothing else should run.
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

run() {  # name of the folder, options of sweep
  local name=$1
  shift
  wanted "$name" || return 0
  trireme sweep "$@" --out "$name"
  report "$name"
}

report() {
  trireme report "$1" --out "$1/report.html"
  trireme report "$1" --format markdown --out "$1/report.md"
}

if wanted io-overhead && [[ ! -d shapes ]]; then
  trireme data make --format tfrecord --samples 2048 --validation-samples 0 --classes 10 --out shapes
fi
run threads-and-batch threads-and-batch "${short[@]}" --set batch-size=8,16,32
run sp-or-mp sp-or-mp "${short[@]}" --set effective-batch=16,32
run servers servers "${short[@]}"
run placement placement "${short[@]}"
run io-overhead io-overhead "${short[@]}" --set data-dir=shapes
if wanted forward-backward; then
  trireme compare --study cineca --batch-size 16 --rounds 5 --max-seconds 6 --num-warmup-batches 1 --out forward-backward
  report forward-backward
fi
