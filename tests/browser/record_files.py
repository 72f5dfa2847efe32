"""Folders of records as `sweep`, `train` and `net` leave them, with every kind of figure in them. Used by the test of
the page, and by who wants to look at one."""

import json
import pathlib

HOST = "</script><b>node"  # a page that trusted it would break


def run_record(speed, config, study, cell, kind, repeat, **results):
    return {
        "schema": "trireme.run/1", "command": ["trireme", "bench"], "started": f"2024-05-01T12:3{repeat}:00Z",
        "build": {"version": "0.1.0", "git": "abc123", "compiler": "GNU 12.2.0"},
        "machine": {"host": HOST, "cpu": "A CPU", "cores": 4, "os": "Debian", "kernel": "Linux 6", "warnings": []},
        "config": {"model": "resnet50", "batch_size": 32, "workers": 1, "servers": 0, "num_intra_threads": 1,
                   "forward_only": False, **config},
        "results": {"images_per_second": speed, **results},
        "study": {"name": study, "kind": kind, "cell": cell, "repeat": repeat,
                  "framework": cell.get("framework", "trireme"), "command": f"trireme bench --study '{study}'"},
    }


def about(speed):
    return [speed * factor for factor in (1, 1.01, 0.985, 1.02, 0.975)]


class Folder:
    def __init__(self, path):
        self.path = pathlib.Path(path)
        (self.path / "runs").mkdir(parents=True)
        self.files = 0

    def write(self, record):
        self.files += 1
        (self.path / "runs" / f"{self.files:03}.json").write_text(json.dumps(record))

    def add(self, study, kind, cell, config, speed, **results):
        for repeat, sample in enumerate(about(speed)):
            self.write(run_record(sample, config, study, cell, kind, repeat, **results))


def breakdown(workers):
    ranks = []
    for rank in range(workers):
        exposed = 0.004 * (workers - 1)
        ranks.append({"compute": 0.08 + 0.002 * rank, "communication": 2 * exposed, "exposed_communication": exposed,
                      "input_wait": 0.001, "optimizer": 0.003, "idle": 0.002 * (workers - 1 - rank)})
    return ranks


def make_records(path, slow_down=1.0):
    folder = Folder(path)
    (folder.path / "plan.json").write_text(json.dumps({
        "schema": "trireme.plan/1", "name": "scaling", "title": "Weak scaling over workers",
        "question": "How much faster are more workers?", "source": "A report found 93 % at 8 nodes.",
        "figure": "scaling", "vary": {"workers": [1, 2, 4, 8], "variable-update": ["all_reduce", "parameter_server"]}}))
    for update, loss in (("all_reduce", 0.03), ("parameter_server", 0.08)):
        for workers in (1, 2, 4, 8):
            speed = slow_down * 100 * workers * (1 - loss) ** (workers - 1)
            folder.add("scaling", "scaling", {"workers": workers, "variable-update": update},
                       {"workers": workers, "variable_update": update}, speed, breakdown=breakdown(workers))
    for threads in (1, 2, 4):
        for batch in (8, 16, 32, 64):
            speed = 60 * threads ** 0.8 * batch / (batch + 6)
            folder.add("threads and batch", "heatmap", {"num-intra-threads": threads, "batch-size": batch},
                       {"num_intra_threads": threads, "batch_size": batch}, speed)
    for batch in (64, 128):
        for label, workers, threads, speed in (("SP", 1, 4, 180), ("MP", 4, 1, 203)):
            folder.add("SP against MP", "bars",
                       {"effective batch": batch, "mode": {"label": label, "workers": workers, "num-intra-threads": threads}},
                       {"workers": workers, "num_intra_threads": threads, "batch_size": batch // workers}, speed + batch / 8)
    for workers in (2, 4):
        for servers in range(1, workers + 1):
            folder.add("servers", "servers", {"workers": workers, "ps": servers}, {"workers": workers, "servers": servers},
                       80 * workers * (1 - 0.3 / servers))
    for workers in (1, 2, 4):
        folder.add("input", "io_overhead", {"workers": workers}, {"workers": workers, "data_name": "tfrecord"},
                   90 * workers, io_overhead_percent_per_repeat=[1.1 * workers, 1.4 * workers, 1.3 * workers])
    for model, speed in (("alexnet", 400), ("overfeat", 150), ("vgg11", 60)):
        for framework, factor in (("trireme", 1.0), ("pytorch", 0.7)):
            for forward, passes in ((True, 3.0), (False, 1.0)):
                folder.add("forward against backward", "forward_backward",
                           {"model": model, "framework": framework, "forward-only": forward},
                           {"model": model, "forward_only": forward}, speed * factor * passes)
    folder.write(training_record())
    folder.write(network_record())
    return folder.files


def machine_and_command(command):
    return {"command": ["trireme", command], "started": "2024-05-01T12:00:00Z",
            "machine": {"host": "node1", "cpu": "A CPU", "cores": 4}, "build": {"version": "0.1.0"}}


def training_record():
    # More points than a drawing has places for.
    curve = [{"step": step, "epoch": step / 100, "loss": 2.4 / (1 + step / 75) + 0.1, "seconds": 0.08 * step}
             for step in range(1, 501)]
    epochs = [{"epoch": epoch, "step": 100 * epoch, "loss": 2.4 / (1 + epoch), "top1": 0.97 - 0.5 / epoch,
               "images_per_second": 150, "train_seconds": 8.0, "evaluation_seconds": 0.5} for epoch in range(1, 6)]
    return {"schema": "trireme.train/1", **machine_and_command("train"), "config": {"model": "mnist"}, "curve": curve,
            "epochs": epochs}


def network_record():
    def message(mode, size, latency, bandwidth):
        seconds = latency + size / bandwidth
        return {"mode": mode, "bytes": size, "bytes_per_second": size / seconds,
                "seconds": {"median": seconds, "samples": [0.95 * seconds, seconds, 1.08 * seconds]}}
    sizes = [2 ** power for power in range(3, 27, 2)]
    pairs = [{"transport": transport, "ranks": [0, 1],
              "messages": [message("one way", size, latency, bandwidth) for size in sizes]}
             for transport, latency, bandwidth in (("mpi", 1e-6, 9e9), ("grpc", 6e-5, 3e9))]
    all_reduce = [{"transport": "mpi", "algorithm": algorithm, "ranks": 4, "bytes": size,
                   "bus_bytes_per_second": size / (latency + size / bandwidth), "seconds": {"samples": [1e-6]}}
                  for algorithm, latency, bandwidth in (("ring", 8e-6, 5e9), ("tree", 3e-6, 2e9)) for size in sizes]
    return {"schema": "trireme.net/1", **machine_and_command("net"), "pairs": pairs, "all_reduce": all_reduce}
