#!/usr/bin/env bash
# tools/testcluster for real: four hosts with ssh, a shaped link, a pulled cable, a crash, Slurm where it is installed,
# and nothing left. Exit code 77 where this machine cannot have one. Usage: testcluster_test.sh path/to/tools/testcluster
set -euo pipefail

tool=$(realpath "$1")
work=$(mktemp -d)
folder=$work/cluster
export trireme_test_mark=$folder
cluster() { "$tool" --folder "$folder" "$@"; }
clean_up() {
  for name in cluster other first second; do "$tool" down --folder "$work/$name"; done
  rm -rf "$work"
}
trap clean_up EXIT

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
bytes_per_second() { # from n1 to n0, after the first bytes: in 2 s, and in the best of its quarters
  cluster exec n0 python3 -c '
import socket, time
listener = socket.create_server(("", 5001)); listener.settimeout(20)
connection, _ = listener.accept(); connection.settimeout(20)
connection.recv(1)
end_of_burst = time.monotonic() + 0.5
while time.monotonic() < end_of_burst: connection.recv(1 << 20)
marks = [(time.monotonic(), 0)]   # when, and how many bytes until then
count = 0
while len(marks) < 5:
    count += len(connection.recv(1 << 20))
    now = time.monotonic()
    if now >= marks[-1][0] + 0.5: marks.append((now, count))
def rate(begin, end): return int((end[1] - begin[1]) / (end[0] - begin[0]))
print(rate(marks[0], marks[-1]), max(map(rate, marks, marks[1:])))' &
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
mkdir "$folder"
touch "$folder/other"
status=0
reason=$(cluster up --nodes 4 2>&1) || status=$?
if [[ "$status" == 77 ]]; then echo "skipped: $reason"; exit 77; fi
[[ "$status" == 2 && "$reason" == *"has other things in it"* ]] || problem "a folder in use: $status, '$reason'"
rm "$folder/other"
ln -s "$folder" "$work/link"
expect_status 2 "is not a folder, or a link to one" "$tool" up --folder "$work/link"
mkdir -m 777 "$work/open"
expect_status 2 "must be root's" "$tool" up --folder "$work/open"
mkdir "$work/foreign"
chown 1 "$work/foreign"
expect_status 2 "must be root's" "$tool" down --folder "$work/foreign"
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

grep -q cubic <<<"$(on n0 ss -Htin)" || problem "the connection to n0 is not cubic"

# A second cluster beside it, in a folder that is not there yet.
other=$work/other
"$tool" up --nodes 1 --folder "$other"
[[ "$(ssh -F "$other/ssh_config" n0 hostname)" == n0 && "$(on n3 hostname)" == n3 ]] || problem "two clusters"
"$tool" down --folder "$other"
[[ ! -e "$other" && "$(on n0 hostname)" == n0 ]] || problem "down of another cluster"

# A link is never faster than its rate; as fast it is when the machine has time.
cluster shape 1gbit
rates=$(bytes_per_second)
read -r rate best <<<"$rates"
echo "shaped to 1 Gbit/s: $rate B/s, at best $best B/s"
((rate < 125000000 && best > 110000000)) || problem "1gbit gave $rate B/s, at best $best B/s"
cluster shape off
rates=$(bytes_per_second)
read -r rate best <<<"$rates"
echo "not shaped: $rate B/s, at best $best B/s"
((best > 150000000)) || problem "a link that is not shaped gave at best $best B/s"

# A pulled cable, a crash, a boot.
# Three processes together get a quarter of a core. This process's clock may be slow, never fast: no lower bound.
cluster cores 0.25
used=$(on n1 'python3 -c "
import os, time
begin = time.monotonic()
if os.fork() and os.fork(): os.fork()
while time.monotonic() < begin + 1: pass
print(time.process_time())"' | awk '{sum += $1} END {print int(1000 * sum)}')
((used < 500)) || problem "a quarter of a core gave $used ms in a second"
expect_status 2 "must be a number from 0.01 on" cluster cores none
cluster cores off

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
claim() { find /run/trireme-testcluster -lname "$folder" | grep .; }
setsid "$tool" up --nodes 8 --folder "$folder" >/dev/null & # a group of its own, with the command that it runs just then
within 20 claim
kill -9 -- -$!
wait $! 2>/dev/null || true
cluster down
if [[ -e "$folder" ]] || claim; then problem "a killed up has left something"; fi

# And what one that failed has begun.
mkdir "$work/bin"
printf '#!/bin/sh\necho no ssh today; exit 1\n' >"$work/bin/sshd"
chmod +x "$work/bin/sshd"
PATH=$work/bin:$PATH expect_status 1 "n0 did not start: no ssh today" cluster up --nodes 2
if [[ -e "$folder" ]] || claim; then problem "an up that failed has left something"; fi

# Clusters that come and go at the same time.
come_and_go() {
  for _ in 1 2 3; do
    "$tool" up --nodes 1 --folder "$work/$1" >/dev/null || return 1
    "$tool" down --folder "$work/$1" || return 1
  done
}
come_and_go first &
come_and_go second || problem "a cluster beside another"
wait $! || problem "a cluster beside another"
echo "all is well"
