#!/usr/bin/env bash
# Runs the MNIST example on a few drawn digits: in one process in both formats, on two workers, and with a server. It
# learns everywhere alike, all workers train, and the first one alone evaluates. Usage: mnist_example.sh PROGRAM TRIREME
# [TRANSPORT ...], the transports (mpi, grpc) being those of the build.
set -euo pipefail
program=$1 trireme=$2
shift 2
transports=" $* "
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"$trireme" data make --out "$folder/digits" --samples 1280 --validation-samples 200 >"$folder/made"
epochs=2

fail() { echo "mnist example: $*" >&2; exit 1; }

# The accuracy after the last epoch, of a run of so many workers.
check() {
  local what=$1 workers=$2 out=$3 accuracy
  [[ $(grep -c 'train accuracy' <<<"$out") == $((workers * epochs)) ]] || fail "$what: not all workers train: $out"
  [[ $(grep -c 'test accuracy' <<<"$out") == "$epochs" ]] || fail "$what: one worker evaluates: $out"
  accuracy=$(sed -n "s/.*epoch $epochs: test accuracy \([0-9.]*\) %/\1/p" <<<"$out")
  echo "$what: $accuracy %"
  awk -v a="$accuracy" 'BEGIN { exit !(a > 75) }' || fail "$what: did not learn: $out"
  # Sums in another order: a few images near the border between two digits may fall on its other side.
  expected=${expected:-$accuracy}
  awk -v a="$accuracy" -v b="$expected" 'BEGIN { exit !(a - b < 2.1 && b - a < 2.1) }' || fail "$what: not $expected %"
}

if said=$("$program" "$folder/nowhere" 2>&1); then fail "there is no data, and it ran"; fi
[[ $said == *"trireme data make"* ]] || fail "no word on how to get data: $said"

check "nchw" 1 "$("$program" "$folder/digits" --epochs $epochs --data-format nchw)"
check "nhwc" 1 "$("$program" "$folder/digits" --epochs $epochs --data-format nhwc)"
launch() { "$trireme" launch --oversubscribe "$@" --program "$program" -- "$folder/digits" --epochs $epochs; }
if [[ $transports == *" mpi "* ]]; then
  check "two workers" 2 "$(launch --workers 2)"
fi
if [[ $transports == *" grpc "* ]]; then
  check "two workers and a server" 2 "$(launch --workers 2 --ps 1)"
fi
