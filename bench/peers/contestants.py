"""Who takes part in a comparison: the command and environment of each contestant, and how its result is read."""

import dataclasses
import json
import os
import pathlib
import re
import shlex
import subprocess
import time

FOLDER = pathlib.Path(__file__).resolve().parent
# What the caller's shell may hold of these would change the peers; each contestant gets what its entry says.
TUNING_VARIABLES = ("LD_PRELOAD", "OMP_NUM_THREADS", "OMP_PROC_BIND", "OMP_PLACES", "GOMP_CPU_AFFINITY",
                    "ATEN_CPU_CAPABILITY", "TF_ENABLE_ONEDNN_OPTS", "TF_XLA_FLAGS", "XLA_FLAGS")  # fmt: skip


class CompareError(Exception):
    """Something is missing or failed; the message is for the user."""


@dataclasses.dataclass(frozen=True)
class Work:
    model: str
    batch: int
    mode: str  # train or forward

    def __str__(self):
        return f"{self.model}, batch {self.batch}, {'training' if self.mode == 'train' else 'forward only'}"


@dataclasses.dataclass(frozen=True)
class Protocol:
    steps: int
    warmup: int
    threads: int
    timeout: float  # seconds that one run may take


@dataclasses.dataclass(frozen=True)
class Contestant:
    """`command` lacks the work, which `arguments` adds."""

    name: str
    family: str  # framework and version: the best configuration of each is looked for
    command: tuple[str, ...]
    environment: dict[str, str] = dataclasses.field(default_factory=dict)
    modes: tuple[str, ...] = ("train", "forward")
    as_installed: bool = False

    def arguments(self, work, protocol):
        return ["--model", work.model, "--batch-size", str(work.batch), "--steps", str(protocol.steps),
                "--warmup", str(protocol.warmup), "--threads", str(protocol.threads), "--mode", work.mode]  # fmt: skip

    def read(self, stdout):
        return json.loads(stdout.splitlines()[-1])


class Trireme(Contestant):
    def arguments(self, work, protocol):
        forward = ["--forward-only"] if work.mode == "forward" else []
        return ["--model", work.model, "--batch-size", str(work.batch), "--num-batches", str(protocol.steps),
                "--num-warmup-batches", str(protocol.warmup), "--num-intra-threads", str(protocol.threads),
                *forward, "--record", "-"]  # fmt: skip

    def read(self, stdout):
        record = json.loads(stdout)
        return {
            "framework": "trireme",
            "version": record["build"]["version"],
            "model": record["config"]["model"],
            "batch": record["config"]["batch_size"],
            "images_per_second": record["results"]["images_per_second"],
            "step_seconds": [seconds for repeat in record["steps"][0] for seconds in repeat],
            "loss": record["results"]["loss"],
            "peak_rss_bytes": record["results"]["peak_rss_bytes"],
            "record": record,
        }


def make_trireme(binary, options):
    if not os.access(binary, os.X_OK):
        raise CompareError(f"{binary} is not a program; build it (make build) or name it with --trireme")
    return Trireme("trireme", "trireme", (str(binary), "bench", *options))


def find_tcmalloc():
    environment = {**os.environ, "PATH": os.environ.get("PATH", "") + ":/usr/sbin:/sbin"}
    listing = subprocess.run(["ldconfig", "-p"], env=environment, capture_output=True, text=True, check=False).stdout
    found = re.search(r"^\s*libtcmalloc\.so\.4 .*=> (\S+)$", listing, re.MULTILINE)
    if not found:
        raise CompareError(
            "libtcmalloc.so.4 is not installed, and PyTorch is slower without; tools/setup --peers installs it, "
            "--no-tcmalloc compares without"
        )
    return found.group(1)


def probe(python):
    """Which frameworks this interpreter can import: name to version. Only the files of TensorFlow are looked at, as
    importing it takes many seconds."""
    script = """
import importlib.metadata, importlib.util, json
found = {}
try:
    import torch
    found = {"torch": torch.__version__, "compile": hasattr(torch, "compile")}
except ImportError as error:
    found["error"] = str(error)
if importlib.util.find_spec("tensorflow"):
    for package in ("tensorflow", "tensorflow-cpu", "tensorflow_cpu"):
        try:
            found["tensorflow"] = importlib.metadata.version(package)
            break
        except importlib.metadata.PackageNotFoundError:
            pass
print(json.dumps(found))
"""
    try:
        done = subprocess.run([python, "-c", script], capture_output=True, text=True, check=False)
    except OSError as error:
        raise CompareError(f"--python: cannot run {python}: {error.strerror}") from None
    if done.returncode != 0:
        reason = (done.stderr.strip().splitlines() or ["no message"])[-1]
        raise CompareError(f"--python: {python} failed: {reason}")
    return json.loads(done.stdout.splitlines()[-1])


def has_avx512():
    with open("/proc/cpuinfo", encoding="utf-8") as cpuinfo:
        flags = re.search(r"^flags\s*:(.*)$", cpuinfo.read(), re.MULTILINE)
    return flags is not None and {"avx512f", "avx512bw", "avx512dq", "avx512vl"} <= set(flags.group(1).split())


def make_peers(python, tcmalloc):
    """The configurations of every framework that this interpreter has."""
    found = probe(python)
    if "torch" not in found and "tensorflow" not in found:
        raise CompareError(f"{python} has neither PyTorch nor TensorFlow ({found['error']}); tools/setup --peers "
                           "installs them, or name another interpreter with --python")  # fmt: skip
    peers = []
    if "torch" in found:
        peers += make_pytorch(python, family("torch", found["torch"]), tcmalloc, found["compile"])
    if "tensorflow" in found:
        peers += make_tensorflow(python, family("tensorflow", found["tensorflow"]))
    return peers


def family(framework, version):
    return f"{framework} " + ".".join(version.split(".")[:2])


def make_pytorch(python, name, tcmalloc, can_compile):
    """The configurations in which PyTorch may be at its best, and first of all the one that needs no knowledge."""
    script = (python, str(FOLDER / "pytorch_train.py"))
    tuned = {"OMP_PROC_BIND": "close", "OMP_PLACES": "cores"}
    if has_avx512():  # some builds do not find it by themselves
        tuned["ATEN_CPU_CAPABILITY"] = "avx512"

    def make(configuration, *options, environment, **settings):
        return Contestant(f"{name} {configuration}", name, (*script, *options), environment, **settings)

    contestants = [
        make("as installed", "--layout", "nchw", environment={}, as_installed=True),
        make("channels_last", "--layout", "channels_last", environment=tuned),
    ]
    suffix = ""
    if tcmalloc:
        suffix = " + tcmalloc"
        tuned = {**tuned, "LD_PRELOAD": tcmalloc}
        for layout in ("nchw", "channels_last"):
            contestants.append(make(layout + suffix, "--layout", layout, environment=tuned))
    contestants.append(make("mkldnn" + suffix, "--layout", "mkldnn", environment=tuned))
    contestants.append(make("jit" + suffix, "--layout", "nchw", "--jit", environment=tuned, modes=("forward",)))
    if can_compile:
        contestants.append(make("compile" + suffix, "--layout", "channels_last", "--compile", environment=tuned))
    return contestants


def make_tensorflow(python, name):
    """Without tcmalloc: it made no difference to the CPU time of a step (2.21, ResNet-50, batch 8)."""
    script = (python, str(FOLDER / "tensorflow_train.py"))
    return [
        Contestant(name, name, script, {"TF_ENABLE_ONEDNN_OPTS": "1"}),
        Contestant(f"{name} xla", name, (*script, "--xla"), {"TF_ENABLE_ONEDNN_OPTS": "1"}),
    ]


def run(contestant, work, protocol):
    """Runs a contestant once. Returns what it measured, with command, environment and date."""
    command = [*contestant.command, *contestant.arguments(work, protocol)]
    environment = {key: value for key, value in os.environ.items() if key not in TUNING_VARIABLES}
    environment.update(contestant.environment)
    started = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    failed = f"{contestant.name} failed on {work}: {shell_text(contestant, work, protocol)}"
    try:
        done = subprocess.run(
            command, env=environment, capture_output=True, text=True, timeout=protocol.timeout, check=False
        )
    except subprocess.TimeoutExpired:
        raise CompareError(f"{failed}\nnot finished after {protocol.timeout:.0f} s (--timeout)") from None
    if done.returncode != 0:
        status = f"exit code {done.returncode}" if done.returncode > 0 else f"signal {-done.returncode}"
        raise CompareError("\n".join([failed, status, *done.stderr.strip().splitlines()[-5:]]))
    try:
        result = contestant.read(done.stdout)
    except (ValueError, LookupError) as error:
        raise CompareError(f"{failed}\nits output is not what was expected: {error!r}") from None
    return {
        "contestant": contestant.name,
        "started": started,
        "command": command,
        "environment": contestant.environment,
        **result,
    }


def shell_text(contestant, work, protocol):
    settings = [f"{key}={value}" for key, value in contestant.environment.items()]
    return shlex.join([*settings, *contestant.command, *contestant.arguments(work, protocol)])
