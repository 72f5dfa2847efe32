#!/usr/bin/env bash
# tools/testcluster for real: four hosts with ssh, a shaped link, a pulled cable, a crash, Slurm where it is installed,
# and nothing left. Exit code 77 where this machine cannot have one. Usage: testcluster_test.sh path/to/tools/testcluster
set -euo pipefail

tool=$(realpath "$1")
folder=$(mktemp -d)
export trireme_test_mark=$folder
cluster() { "$tool" --folder "$folder" "$@"; }
trap 'cluster down; rm -rf "$folder"' EXIT

problem() { echo "FAILED: $1" >&2; exit 1; }
expect_status() { # code, text in the output, command
  local code=$1 text=$2 status=0 output
  shift 2
  output=$("$@" 2>&1) || status=$?
  [[ "$status" == "$code" && "$output" == *"$text"* ]] || problem "$*: exit code $status, '$output'"
}
within() { # seconds, command: succeeds in that time
  local end=$((SECONDS + $1))
  shift
  until "$@" >/dev/null 2>&1; do ((SECONDS < end)) || problem "$* did not succeed"; done
}
on() { ssh -F "$folder/ssh_config" "$@"; }
bytes_per_second() { # from n1 to n0, of 2 s after the first bytes
  cluster exec n0 python3 -c '
import socket, time
listener = socket.create_server(("", 5001)); listener.settimeout(20)
connection, _ = listener.accept(); connection.settimeout(20)
start = None; count = 0
while True:
    data = connection.recv(1 << 20)
    now = time.monotonic()
    if start is None: start = now + 0.5   # the first burst
    elif now >= start: count += len(data)
    if not data or now >= start + 2: break
print(int(count / (now - start)))' &
  local receiver=$!
  cluster exec n1 python3 -c '
import socket, time
for attempt in range(200):
    try: connection = socket.create_connection(("n0", 5001)); break
    except OSError: time.sleep(0.05)
try:
    while True: connection.sendall(bytes(1 << 20))
except OSError: pass'
  wait "$receiver"
}

slurm=()
if command -v slurmctld slurmd munged srun >/dev/null; then slurm=(--slurm); fi

expect_status 2 "must be from 1 to" cluster up --nodes 0
expect_status 2 "must be a number with" cluster up --rate fast
expect_status 2 "there is no cluster" cluster exec n0 true
touch "$folder/other"
status=0
reason=$(cluster up --nodes 4 2>&1) || status=$?
if [[ "$status" == 77 ]]; then echo "skipped: $reason"; exit 77; fi
[[ "$status" == 2 && "$reason" == *"has other things in it"* ]] || problem "a folder in use: $status, '$reason'"
rm "$folder/other"
status=0
cluster up --nodes 1 --delay 50us >/dev/null || status=$?
if [[ "$status" == 0 ]]; then cluster down; else [[ "$status" == 77 ]] || problem "--delay: exit code $status"; fi

cluster up --nodes 4 "${slurm[@]}"
cluster up --nodes 4 "${slurm[@]}" >/dev/null # again: nothing to do
expect_status 2 "there is another cluster" cluster up --nodes 3
for i in 0 1 2 3; do
  [[ "$(on n$i "ssh n$(((i + 1) % 4)) hostname")" == "n$(((i + 1) % 4))" ]] || problem "ssh from n$i to the next"
done
expect_status 2 "the hosts of this cluster are" cluster exec n7 true
expect_status 3 "" cluster exec n0 sh -c 'exit 3'

# A second cluster beside it.
other=$(mktemp -d)
"$tool" up --nodes 1 --folder "$other"
[[ "$(ssh -F "$other/ssh_config" n0 hostname)" == n0 && "$(on n3 hostname)" == n3 ]] || problem "two clusters"
"$tool" down --folder "$other"
[[ ! -e "$other" && "$(on n0 hostname)" == n0 ]] || problem "down of another cluster"

cluster shape 1gbit
rate=$(bytes_per_second)
echo "shaped to 1 Gbit/s: $rate B/s"
((rate > 110000000 && rate < 125000000)) || problem "1gbit gave $rate B/s"
cluster shape off
rate=$(bytes_per_second)
echo "not shaped: $rate B/s"
((rate > 150000000)) || problem "a link that is not shaped gave $rate B/s"

# A pulled cable, a crash, a boot.
cluster link n2 down
if on -o ConnectTimeout=1 n2 true 2>/dev/null; then problem "n2 answers without its link"; fi
[[ "$(cluster exec n2 hostname)" == n2 ]] || problem "n2 has to run on without its link"
cluster link n2 up
within 10 on n2 true
on n3 'setsid sleep 1000 >/dev/null 2>&1 </dev/null &'
cluster stop n3
if on n3 true 2>/dev/null; then problem "n3 answers after its crash"; fi
expect_status 1 "n3 is not running" cluster exec n3 true
cluster start n3
[[ "$(on n3 hostname)" == n3 ]] || problem "n3 after its boot"
if on n3 pgrep sleep >/dev/null; then problem "a process of n3 has survived its crash"; fi

if ((${#slurm[@]})); then
  within 30 cluster exec head srun --immediate=1 -N 4 true # n3 has to report first
  [[ "$(cluster exec head srun -N 4 hostname | sort | paste -sd,)" == n0,n1,n2,n3 ]] || problem "srun on four nodes"
else
  echo "Slurm (slurmctld, slurmd, munge, slurm-client) is not installed: not tested"
fi

number=$(basename "$(find /run/trireme-testcluster -lname "$folder")")
cluster down
cluster down # again: nothing to do
[[ ! -e "$folder" && ! -L "/run/trireme-testcluster/$number" ]] || problem "files are left"
for left in /run/netns/trm"$number"-* /sys/class/net/trm"$number"*; do
  if [[ -e "$left" ]]; then problem "$left is left"; fi
done
left=$(for process in /proc/[0-9]*; do # in other networks than ours, and begun by this test
  if [[ "$(readlink "$process/ns/net")" != "$(readlink /proc/self/ns/net)" ]] &&
    grep -qza "^trireme_test_mark=$folder\$" "$process/environ"; then basename "$process"; fi
done 2>/dev/null)
[[ -z "$left" ]] || problem "processes are left: $left"

# What a killed `up` has begun goes too.
"$tool" up --nodes 8 --folder "$folder" >/dev/null &
sleep 0.3
kill -9 $!
wait $! 2>/dev/null || true
sleep 0.2 # for what it was just starting
cluster down
[[ ! -e "$folder" ]] && ! find /run/trireme-testcluster -lname "$folder" 2>/dev/null | grep . || problem "a killed up"
echo "all is well"
