#!/usr/bin/env bash
# Runs every `trireme` command of the README's text blocks with the given binary, shortened: benchmarks to one step of one
# image on a small network (tests/slow runs the large ones; that there is such a network is asked first), the network's
# sizes to a moment each. Usage: readme_commands.sh README.md path/to/trireme
set -euo pipefail
readme=$(realpath "$1")
binary=$(realpath "$2")
cd "$(mktemp -d)"
trap 'rm -rf "$PWD"' EXIT

ran=0
while read -r line; do
  command=${line%%#*}
  if [[ $command == "trireme bench"* || $command == *" -- bench "* ]]; then
    [[ $command != *--model* ]] || "$binary" models --model "$(sed -E 's/.*--model ([^ ]+).*/\1/' <<<"$command")" >/dev/null
    command=$(sed -E 's/--(batch-size|num-batches|repeats) [0-9]+//g; s/--model [^ ]+/--model mnist/' <<<"$command")
    command+=" --batch-size 1 --num-batches 1 --num-warmup-batches 0 --autotune off"
  fi
  [[ $command == "trireme net"* ]] && command+=" --seconds-per-size 0.001"
  echo "+ $command"
  # Words of the README are options, not shell.
  read -ra words <<<"$command"
  if ! "$binary" "${words[@]:1}" >output 2>&1; then
    # Other frameworks are not installed everywhere.
    [[ $command == "trireme compare"* ]] && grep -q "nothing to compare with" output && continue
    cat output
    echo "failed: $line"
    exit 1
  fi
  ran=$((ran + 1))
done < <(sed -n '/^```$/,/^```$/p' "$readme" | grep -E '^trireme ')
((ran >= 4)) || { echo "only $ran commands found in $readme"; exit 1; }
echo "$ran commands ran"
