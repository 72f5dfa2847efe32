#!/usr/bin/env bash
# Uses the example of a network of one's own as a user would: every command knows the network. Usage:
# custom_network_example.sh PROGRAM TRIREME
set -euo pipefail
program=$1 trireme=$2
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
export XDG_CACHE_HOME=$folder/cache

fail() { echo "custom network: $*" >&2; exit 1; }
has() { [[ $1 == *"$2"* ]] || fail "'$2' is missing in: $1"; }

has "$("$program" models)" mobile
has "$("$program" models --model mobile)" parameters
"$trireme" data make --out digits --samples 1280 --validation-samples 200 >made
has "$("$program" train --model mobile --data-dir digits --epochs 2 --init-learning-rate 0.05 --checkpoint-dir run)" "checkpoint: "
accuracy=$("$program" eval --checkpoint run --data-dir digits | sed -n 's/.*top-1[^0-9]*\([0-9.]*\) %.*/\1/p' | head -n 1)
echo "one process: $accuracy %"
awk -v a="$accuracy" 'BEGIN { exit !(a > 50) }' || fail "did not learn: $accuracy %"
"$program" export --checkpoint run --format safetensors --out mobile.safetensors >/dev/null
"$program" export --checkpoint run --format onnx --out mobile.onnx >/dev/null || [[ $? == 3 ]] || fail "no export"
has "$("$program" bench --model mobile --batch-size 8 --num-batches 3 --num-warmup-batches 1)" "total images/sec"
has "$("$program" launch --workers 2 --oversubscribe -- bench --model mobile --batch-size 4 --num-batches 3)" "total images/sec"
if said=$("$trireme" bench --model mobile 2>&1); then fail "trireme itself knows the network"; fi
has "$said" "unknown model 'mobile'"
