#!/usr/bin/env bash
# Runs a program alone and on two workers: both must print the same lines, numbers up to rounding.
set -euo pipefail
program=$1 trireme=$2
command -v mpirun >/dev/null || exit 77
alone=$("$program")
together=$("$trireme" launch --workers 2 --oversubscribe --program "$program" | sed 's/^\[0\] //')
paste <(tr ' ' '\n' <<<"$alone") <(tr ' ' '\n' <<<"$together") | awk '
  $1 != $2 && !($1 + 0 > 0 && ($1 - $2) ^ 2 < 1e-6 * $1 ^ 2) { print "differs: " $0; bad = 1 }
  END { exit bad || NR < 10 }'
