#!/usr/bin/python3
"""Says which frameworks this interpreter has, in which configurations they can run, and what differs between their
networks and Trireme's, as one line of JSON. `trireme compare` asks it and starts the scripts accordingly.
"""

import importlib.metadata
import importlib.util
import json
import os
import pathlib
import platform
import re
import subprocess

import differences
import measure

# What the caller's shell may hold of these would change the peers; each configuration gets what its entry says.
TUNING_VARIABLES = ("LD_PRELOAD", "OMP_NUM_THREADS", "OMP_PROC_BIND", "OMP_PLACES", "GOMP_CPU_AFFINITY",
                    "ATEN_CPU_CAPABILITY", "TF_ENABLE_ONEDNN_OPTS", "TF_XLA_FLAGS", "XLA_FLAGS")  # fmt: skip
NO_TCMALLOC = ("libtcmalloc.so.4 is not installed, and PyTorch is slower without; tools/setup --peers installs it "
               "(Debian: libgoogle-perftools4)")  # fmt: skip


def has_avx512():
    with open("/proc/cpuinfo", encoding="utf-8") as cpuinfo:
        flags = re.search(r"^flags\s*:(.*)$", cpuinfo.read(), re.MULTILINE)
    return flags is not None and {"avx512f", "avx512bw", "avx512dq", "avx512vl"} <= set(flags.group(1).split())


def find_tcmalloc():
    environment = {**os.environ, "PATH": os.environ.get("PATH", "") + ":/usr/sbin:/sbin"}
    listing = subprocess.run(["ldconfig", "-p"], env=environment, capture_output=True, text=True, check=False).stdout
    found = re.search(r"^\s*libtcmalloc\.so\.4 .*=> (\S+)$", listing, re.MULTILINE)
    return found.group(1) if found else None


def configuration(name, what, script, options=(), environment=None, modes=("train", "forward"), precisions=("fp32",),
                  several_workers=False, device="cpu"):  # fmt: skip
    return {"name": name, "what": what, "script": script, "options": list(options), "environment": environment or {},
            "modes": list(modes), "precisions": list(precisions), "several_workers": several_workers,
            "device": device}  # fmt: skip


def tuned_environment(tcmalloc):
    """With threads bound; with tcmalloc too, where it is; and how to say so."""
    bound = {"OMP_PROC_BIND": "close", "OMP_PLACES": "cores"}
    if has_avx512():  # some builds do not find it by themselves
        bound["ATEN_CPU_CAPABILITY"] = "avx512"
    if not tcmalloc:
        return bound, bound, ", threads bound"
    return bound, {**bound, "LD_PRELOAD": tcmalloc}, ", threads bound, tcmalloc"


def pytorch_configurations(tcmalloc, can_compile):
    """The first is the one that was fastest on the networks of docs/performance.md."""
    bound, tuned, suffix = tuned_environment(tcmalloc)
    script = "pytorch_train.py"
    both = ("fp32", "bf16")
    found = [
        configuration("pytorch", "channels_last" + suffix, script, ["--layout", "channels_last"], tuned,
                      precisions=both),
        configuration("pytorch-ddp", "DistributedDataParallel over gloo, channels_last" + suffix,
                      "pytorch_processes.py", ["--layout", "channels_last"], tuned, ("train",), both,
                      several_workers=True),
        configuration("pytorch-as-installed", "NCHW, nothing tuned but the number of threads", script,
                      ["--layout", "nchw"], precisions=both),
        configuration("pytorch-nchw", "NCHW" + suffix, script, ["--layout", "nchw"], tuned, precisions=both),
        configuration("pytorch-mkldnn", "oneDNN's own layouts up to the fully connected layers" + suffix, script,
                      ["--layout", "mkldnn"], tuned),
        configuration("pytorch-jit", "torch.jit.optimize_for_inference" + suffix, script,
                      ["--layout", "nchw", "--jit"], tuned, ("forward",), both),
    ]  # fmt: skip
    if tcmalloc:
        found.append(configuration("pytorch-glibc", "channels_last, threads bound, the system's malloc", script,
                                   ["--layout", "channels_last"], bound, precisions=both))  # fmt: skip
    if can_compile:
        found.append(configuration("pytorch-compile", "torch.compile, channels_last" + suffix, script,
                                   ["--layout", "channels_last", "--compile"], tuned, precisions=both))  # fmt: skip
    return found


def pytorch_gpu_configurations(can_compile):
    """The first is the one that was fastest on the networks of docs/gpu.md."""

    def way(name, what, option, precisions):
        return configuration(name, what, "pytorch_gpu.py", ["--way", option], precisions=precisions, device="cuda")

    wide = ("fp32", "tf32", "bf16")
    found = [
        way("pytorch-cuda-graph", "a step captured as one CUDA graph, channels_last", "graph", wide),
        way("pytorch-cuda", "eager on a GPU, channels_last", "eager", (*wide, "fp16")),
    ]
    if can_compile:
        what = "torch.compile with reduce-overhead on a GPU, channels_last"
        found.insert(0, way("pytorch-cuda-compile", what, "compile", wide))
    return found


def horovod_configurations(tcmalloc):
    """NCHW: it averages contiguous gradients only."""
    _, tuned, suffix = tuned_environment(tcmalloc)
    return [
        configuration("horovod", "Horovod of PyTorch over gloo, NCHW" + suffix, "pytorch_processes.py",
                      ["--exchange", "horovod", "--layout", "nchw"], tuned, ("train",), ("fp32", "bf16"),
                      several_workers=True),
    ]  # fmt: skip


def tensorflow_configurations():
    """Without tcmalloc: it made no difference to the CPU time of a step (2.21, ResNet-50, batch 8)."""
    environment = {"TF_ENABLE_ONEDNN_OPTS": "1"}
    return [
        configuration("tensorflow", "a step is one tf.function, NHWC, oneDNN on", "tensorflow_train.py",
                      environment=environment, precisions=("fp32", "bf16")),
        configuration("tensorflow-xla", "the same with jit_compile", "tensorflow_train.py", ["--xla"], environment),
    ]  # fmt: skip


def find_pytorch(tcmalloc):
    try:
        import torch
    except Exception as error:  # whatever a broken installation raises
        return {"name": "pytorch", "missing": str(error)}
    can_compile = hasattr(torch, "compile")
    found = pytorch_configurations(tcmalloc, can_compile)
    if hasattr(torch, "cuda") and torch.cuda.is_available():
        found += pytorch_gpu_configurations(can_compile)
    return {"name": "pytorch", "version": torch.__version__, "configurations": found}


def find_horovod(tcmalloc):
    """By its files alone: it loads PyTorch, and what it can do was decided when it was compiled."""
    found = importlib.util.find_spec("horovod")
    if found is None:
        return {"name": "horovod", "missing": "No module named 'horovod'"}
    if not any(list(pathlib.Path(folder).glob("torch/mpi_lib*.so")) for folder in found.submodule_search_locations):
        return {"name": "horovod", "missing": "it was compiled without PyTorch"}
    return {"name": "horovod", "version": importlib.metadata.version("horovod"),
            "configurations": horovod_configurations(tcmalloc)}  # fmt: skip


def find_tensorflow():
    """By its files alone, as importing it takes many seconds."""
    if importlib.util.find_spec("tensorflow") is None:
        return {"name": "tensorflow", "missing": "No module named 'tensorflow'"}
    for package in ("tensorflow", "tensorflow-cpu", "tensorflow_cpu"):
        try:
            version = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            continue
        return {"name": "tensorflow", "version": version, "configurations": tensorflow_configurations()}
    return {"name": "tensorflow", "missing": "a module of that name is there, but no package"}


def main():
    tcmalloc = find_tcmalloc()
    description = {
        "schema": "trireme.peers/4",
        "python": platform.python_version(),
        "options": measure.option_names(),
        "unset": TUNING_VARIABLES,
        "frameworks": [find_pytorch(tcmalloc), find_horovod(tcmalloc), find_tensorflow()],
        "networks": {name: differences.of_network(name) for name in differences.NETWORKS},
        "measurement": differences.MEASUREMENT,
        "notes": [] if tcmalloc else [NO_TCMALLOC],
    }
    print(json.dumps(description), file=measure.record_stream(), flush=True)


if __name__ == "__main__":
    main()
