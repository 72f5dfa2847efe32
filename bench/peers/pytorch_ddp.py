#!/usr/bin/python3
"""Trains a network under PyTorch in several processes (DistributedDataParallel over gloo) and prints one record.

The peer of `trireme launch --workers N -- bench`: every process has its share of the processors and a batch of its own,
and gradients are averaged while the backward pass goes on. The options are those of pytorch_train.py.
"""

import argparse
import ctypes
import datetime
import os
import pathlib
import signal
import subprocess
import sys
import tempfile

import measure  # before torch: see there

TIMEOUT = datetime.timedelta(minutes=5)  # of a collective: for compilers
PR_SET_PDEATHSIG = 1  # sys/prctl.h


def make_own_parser():
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--rank", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--meeting", help=argparse.SUPPRESS)
    return parser


def start_workers(workers):
    """Each with its share of the processors. All end when one fails, and when this process does."""
    c_library = ctypes.CDLL(None)

    def prepare(cores):
        c_library.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        os.sched_setaffinity(0, cores)

    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))  # not without tidying up
    share = max(1, len(measure.USABLE_PROCESSORS) // workers)
    environment = {"GLOO_SOCKET_IFNAME": "lo", **os.environ}
    with tempfile.TemporaryDirectory() as folder:
        meeting = str(pathlib.Path(folder) / "meeting")
        processes = []
        try:
            for rank in range(workers):
                first = rank * share % len(measure.USABLE_PROCESSORS)
                cores = set(measure.USABLE_PROCESSORS[first : first + share])
                command = [sys.executable, "-B", *sys.argv, "--rank", str(rank), "--meeting", meeting]
                processes.append(subprocess.Popen(
                    command, stdout=measure.record_stream(), env=environment,
                    preexec_fn=lambda cores=cores: prepare(cores)))  # fmt: skip
            return wait_for(processes)
        finally:
            for process in processes:  # before the folder goes, into which they write
                process.kill()
                process.wait()


def wait_for(processes):
    running = {process.pid: process for process in processes}
    failure = 0
    while running:
        pid, status = os.wait()
        process = running.pop(pid, None)
        if process is None:
            continue
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode != 0 and failure == 0:
            failure = process.returncode
            for other in running.values():
                other.terminate()
    return failure


def work(own, arguments):
    import torch
    import torch.distributed

    import pytorch_train
    from pytorch_networks import make_network

    parser = pytorch_train.make_parser(__doc__.splitlines()[0])
    options = pytorch_train.check(parser, parser.parse_args(arguments))
    if options.forward_only:
        parser.error("--forward-only: processes that run forward exchange nothing; run pytorch_train.py")
    torch.set_num_threads(options.num_intra_threads)
    torch.distributed.init_process_group("gloo", init_method=f"file://{own.meeting}", rank=own.rank,
                                         world_size=own.workers, timeout=TIMEOUT)  # fmt: skip

    def agree(ends):
        if options.max_seconds is None:
            return ends
        vote = torch.tensor(int(ends))
        torch.distributed.broadcast(vote, 0)
        return bool(vote)

    torch.manual_seed(1)
    model = make_network(options.model, options.num_classes, not options.no_dropout)
    torch.manual_seed(1 + own.rank)  # a batch of its own
    model = torch.nn.parallel.DistributedDataParallel(pytorch_train.prepare(model, options))
    seconds, losses = measure.time_steps(pytorch_train.make_step(model, options), options, agree)
    ranks = [None] * own.workers
    torch.distributed.all_gather_object(ranks, measure.rank_part(seconds, losses))
    if own.rank == 0:
        build = {**pytorch_train.build_part(options), "distributed": "DistributedDataParallel, gloo"}
        measure.print_record(options, build, ranks)
    torch.distributed.barrier()
    sys.stderr.flush()
    os._exit(0)  # the process group of some versions (1.13) may wait for ever when it is taken down


def main():
    own, arguments = make_own_parser().parse_known_args()
    if own.rank is None:
        sys.exit(start_workers(own.workers))
    work(own, arguments)


if __name__ == "__main__":
    main()
