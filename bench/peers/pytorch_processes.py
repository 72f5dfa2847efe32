#!/usr/bin/python3
"""Trains a network under PyTorch in several processes and prints one record.

The peer of `trireme launch --workers N -- bench`: every process has its share of the processors and a batch of its own,
and gradients are averaged while the backward pass goes on, by DistributedDataParallel or by Horovod, both over gloo. The
other options are those of pytorch_train.py.
"""

import argparse
import contextlib
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
RANK = "PEERS_RANK"  # of a process, in its environment; without it, a process starts the others
MEETING = "PEERS_MEETING"


class Ddp:
    name = "DistributedDataParallel, gloo"

    @staticmethod
    @contextlib.contextmanager
    def meeting(workers):
        """For the process that starts the others: what their environment has to say, by rank."""
        with tempfile.TemporaryDirectory() as folder:
            told = {"GLOO_SOCKET_IFNAME": "lo", MEETING: str(pathlib.Path(folder) / "meeting")}
            yield [told] * workers

    def __init__(self, rank, workers):
        import torch.distributed

        self.distributed, self.workers = torch.distributed, workers
        self.distributed.init_process_group("gloo", init_method=f"file://{os.environ[MEETING]}", rank=rank,
                                            world_size=workers, timeout=TIMEOUT)  # fmt: skip

    def share(self, model):
        import torch

        return torch.nn.parallel.DistributedDataParallel(model)

    def share_optimizer(self, optimizer, model):
        return optimizer

    def broadcast(self, tensor):
        self.distributed.broadcast(tensor, 0)
        return tensor

    def gather(self, value):
        values = [None] * self.workers
        self.distributed.all_gather_object(values, value)
        return values

    def version(self):
        return {}


class Horovod:
    name = "Horovod, gloo"

    @staticmethod
    @contextlib.contextmanager
    def meeting(workers):
        from horovod.runner.common.util.hosts import get_host_assignments, parse_hosts
        from horovod.runner.http.http_server import RendezvousServer

        server = RendezvousServer(verbose=0)
        port = server.start()
        server.init(get_host_assignments(parse_hosts(f"localhost:{workers}"), workers))
        told = {"HOROVOD_CONTROLLER": "gloo", "HOROVOD_CPU_OPERATIONS": "gloo", "HOROVOD_GLOO_IFACE": "lo",
                "HOROVOD_GLOO_RENDEZVOUS_ADDR": "127.0.0.1", "HOROVOD_GLOO_RENDEZVOUS_PORT": str(port),
                "HOROVOD_GLOO_TIMEOUT_SECONDS": str(round(TIMEOUT.total_seconds())), "HOROVOD_HOSTNAME": "localhost",
                "HOROVOD_SIZE": str(workers), "HOROVOD_LOCAL_SIZE": str(workers), "HOROVOD_CROSS_SIZE": "1",
                "HOROVOD_CROSS_RANK": "0"}  # fmt: skip
        try:
            yield [{**told, "HOROVOD_RANK": str(rank), "HOROVOD_LOCAL_RANK": str(rank)} for rank in range(workers)]
        finally:
            server.stop()

    def __init__(self, rank, workers):
        import horovod.torch

        self.horovod = horovod.torch
        self.horovod.init()

    def share(self, model):
        self.horovod.broadcast_parameters(model.state_dict(), 0)
        return model

    def share_optimizer(self, optimizer, model):
        return self.horovod.DistributedOptimizer(optimizer, named_parameters=model.named_parameters())

    def broadcast(self, tensor):
        return self.horovod.broadcast(tensor, 0)

    def gather(self, value):
        return self.horovod.allgather_object(value)

    def version(self):
        import horovod

        return {"framework": "horovod", "version": horovod.__version__}


EXCHANGES = {"ddp": Ddp, "horovod": Horovod}


def make_own_parser():
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--exchange", choices=EXCHANGES, default="ddp")
    return parser


def start_workers(own):
    """Each with its share of the processors. All end when one fails, and when this process does."""
    c_library = ctypes.CDLL(None)

    def prepare(cores):
        c_library.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        os.sched_setaffinity(0, cores)

    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))  # not without tidying up
    share = max(1, len(measure.USABLE_PROCESSORS) // own.workers)
    with EXCHANGES[own.exchange].meeting(own.workers) as told:
        processes = []
        try:
            for rank in range(own.workers):
                first = rank * share % len(measure.USABLE_PROCESSORS)
                cores = set(measure.USABLE_PROCESSORS[first : first + share])
                processes.append(subprocess.Popen(
                    [sys.executable, "-B", *sys.argv], stdout=measure.record_stream(),
                    env={**os.environ, **told[rank], RANK: str(rank)},
                    preexec_fn=lambda cores=cores: prepare(cores)))  # fmt: skip
            return wait_for(processes)
        finally:
            for process in processes:  # before the place where they meet goes
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


def work(own, rank, arguments):
    import torch

    import pytorch_train
    from pytorch_networks import make_network

    parser = pytorch_train.make_parser(__doc__.splitlines()[0])
    options = pytorch_train.check(parser, parser.parse_args(arguments))
    if options.forward_only:
        parser.error("--forward-only: processes that run forward exchange nothing; run pytorch_train.py")
    torch.set_num_threads(options.num_intra_threads)
    exchange = EXCHANGES[own.exchange](rank, own.workers)

    def agree(ends):
        return ends if options.max_seconds is None else bool(exchange.broadcast(torch.tensor(int(ends))))

    torch.manual_seed(1)
    model = make_network(options.model, options.num_classes, not options.no_dropout)
    torch.manual_seed(1 + rank)  # a batch of its own
    model = exchange.share(pytorch_train.prepare(model, options))
    step = pytorch_train.make_step(model, options, exchange.share_optimizer)
    seconds, losses = measure.time_steps(step, options, agree)
    ranks = exchange.gather(measure.rank_part(seconds, losses))
    if rank == 0:
        build = {**pytorch_train.build_part(options), "pytorch": torch.__version__, **exchange.version()}
        measure.print_record(options, {**build, "distributed": exchange.name}, ranks)
    exchange.gather(None)  # nobody leaves before the record is there
    sys.stderr.flush()
    os._exit(0)  # the process group of some versions (1.13) may wait for ever when it is taken down


def main():
    own, arguments = make_own_parser().parse_known_args()
    rank = os.environ.get(RANK)
    if rank is None:
        sys.exit(start_workers(own))
    work(own, int(rank), arguments)


if __name__ == "__main__":
    main()
