#!/usr/bin/python3
"""All-reduce and parameter servers on hosts of a test cluster, over links of several rates.

Makes a cluster (tools/testcluster, as root), and for each rate of its links runs every network in every mode over ssh,
one after the other, in rounds; removes the cluster. The hosts share this machine's cores: what is to be seen is what the
network adds, so a table gives the time of a step beside that of the same mode over links that are not shaped.
"""

import argparse
import json
import pathlib
import shlex
import statistics
import subprocess
import sys
import tempfile

from common import ROOT, parse_work, positive, replace_file, say

# Name, options of launch, options of bench.
MODES = {
    "all_reduce": ([], ["--protocol", "grpc"]),
    "all_reduce ucx": ([], ["--protocol", "grpc+ucx"]),
    "all_reduce mpi": ([], ["--protocol", "mpi"]),
    "1 ps": (["--ps", "1"], ["--variable-update", "parameter_server", "--protocol", "grpc"]),
    "4 ps": (["--ps", "4"], ["--variable-update", "parameter_server", "--protocol", "grpc"]),
    "4 ps ucx": (["--ps", "4"], ["--variable-update", "parameter_server", "--protocol", "grpc+ucx"]),
}


def words(text):
    return [word for word in text.split(",") if word]


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("work", nargs="+", type=parse_work, metavar="MODEL:BATCH", help="the batch is one worker's")
    parser.add_argument("--hosts", type=positive, default=4, help="with a worker of one thread each (default: 4)")
    parser.add_argument("--rates", type=words, default=["off", "1gbit"], help="of the links (default: off,1gbit)")
    parser.add_argument("--modes", type=words, default=list(MODES), help=f"(default: {','.join(MODES)})")
    parser.add_argument("--rounds", type=positive, default=1, help="(default: 1)")
    parser.add_argument("--steps", type=positive, default=3, help="timed steps per run (default: 3)")
    parser.add_argument("--timeout", type=float, default=600, help="seconds that one run may take (default: 600)")
    parser.add_argument("--trireme", type=pathlib.Path, default=ROOT / "build/release/trireme", metavar="PROGRAM")
    parser.add_argument("--json", type=pathlib.Path, metavar="FILE", help="keep the results of every run")
    options = parser.parse_args()
    for mode in options.modes:
        if mode not in MODES:
            parser.error(f"--modes {mode}: must be some of {', '.join(MODES)}")
    return options


class Cluster:
    def __init__(self, folder, hosts):
        self.folder = folder
        self.hosts = [f"n{i}" for i in range(hosts)]
        self.run("up", "--nodes", str(hosts))

    def run(self, *arguments):
        subprocess.run([ROOT / "tools/testcluster", "--folder", self.folder, *arguments], check=True,
                       stdout=subprocess.DEVNULL)  # fmt: skip

    def bench(self, options, work, mode):
        launch, bench = MODES[mode]
        record = pathlib.Path(self.folder).parent / "record.json"
        record.unlink(missing_ok=True)
        command = [str(options.trireme), "launch", "--ssh-config", f"{self.folder}/ssh_config", "--hosts",
                   ",".join(self.hosts), "--workers", str(len(self.hosts)), "--threads-per-worker", "1", *launch, "--",
                   "bench", "--model", work.model, "--batch-size", str(work.batch), "--num-warmup-batches", "1",
                   "--num-batches", str(options.steps), "--no-bind", *bench, "--record", str(record)]  # fmt: skip
        done = subprocess.run(command, capture_output=True, text=True, timeout=options.timeout, check=False)
        if done.returncode != 0:
            raise RuntimeError(f"{shlex.join(command)}: exit code {done.returncode}: {done.stderr.strip()[-500:]}")
        return json.loads(record.read_text(encoding="utf-8"))["results"]


def row_of(rate, work, mode, results):
    breakdown = results["breakdown"]
    return {
        "rate": rate,
        "work": f"{work.model}:{work.batch}",
        "mode": mode,
        "images_per_second": results["images_per_second"],
        "step_seconds": results["step_seconds"]["median"],
        "exposed_seconds": max(rank["exposed_communication"] for rank in breakdown),
        "bus_bytes_per_second": results.get("bus_bytes_per_second"),
    }


def to_text(rows):
    lines = ["| network:batch | mode | link | images/s | step | exposed communication | of the unshaped speed |",
             "|---|---|---|---|---|---|---|"]  # fmt: skip
    cells = {}
    for row in rows:
        cells.setdefault((row["work"], row["mode"], row["rate"]), []).append(row)

    def median(of, key):
        return statistics.median(row[key] for row in of)

    for (work, mode, rate), of in cells.items():
        free = cells.get((work, mode, "off"))
        share = f"{median(of, 'images_per_second') / median(free, 'images_per_second'):.2f}" if free else "-"
        lines.append(f"| {work} | {mode} | {'not shaped' if rate == 'off' else rate} | "
                     f"{median(of, 'images_per_second'):.2f} | {median(of, 'step_seconds'):.2f} s | "
                     f"{median(of, 'exposed_seconds'):.2f} s | {share} |")  # fmt: skip
    return "\n".join(lines)


def measure(options, cluster):
    rows = []
    for number in range(options.rounds):
        for rate in options.rates:
            cluster.run("shape", rate)
            for work in options.work:
                for mode in options.modes:
                    row = row_of(rate, work, mode, cluster.bench(options, work, mode))
                    say(f"round {number + 1}, {rate}, {work}, {mode}: {row['images_per_second']:.2f} images/s, "
                        f"step {row['step_seconds']:.2f} s, exposed {row['exposed_seconds']:.2f} s")  # fmt: skip
                    rows.append(row)
                    if options.json:
                        replace_file(options.json, json.dumps(rows, indent=1) + "\n")
    return rows


def main():
    options = parse_arguments()
    with tempfile.TemporaryDirectory() as temporary:
        cluster = Cluster(f"{temporary}/cluster", options.hosts)
        try:
            print(to_text(measure(options, cluster)))
        except (RuntimeError, subprocess.TimeoutExpired) as error:
            sys.exit(f"hosts: {error}")
        finally:
            cluster.run("down")


if __name__ == "__main__":
    main()
