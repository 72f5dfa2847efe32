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
                    "ATEN_CPU_CAPABILITY")  # fmt: skip


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
    return Trireme("trireme", (str(binary), "bench", *options))


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


def probe_torch(python):
    """Version of torch under this interpreter, and whether it has torch.compile."""
    script = "import json, torch; print(json.dumps([torch.__version__, hasattr(torch, 'compile')]))"
    try:
        done = subprocess.run([python, "-c", script], capture_output=True, text=True, check=False)
    except OSError as error:
        raise CompareError(f"--python: cannot run {python}: {error.strerror}") from None
    if done.returncode != 0:
        reason = (done.stderr.strip().splitlines() or ["no message"])[-1]
        raise CompareError(f"{python} cannot import torch ({reason}); tools/setup --peers installs it, or name another "
                           "interpreter with --python")  # fmt: skip
    return json.loads(done.stdout.splitlines()[-1])


def has_avx512():
    with open("/proc/cpuinfo", encoding="utf-8") as cpuinfo:
        flags = re.search(r"^flags\s*:(.*)$", cpuinfo.read(), re.MULTILINE)
    return flags is not None and {"avx512f", "avx512bw", "avx512dq", "avx512vl"} <= set(flags.group(1).split())


def make_pytorch(python, tcmalloc):
    """The configurations in which PyTorch may be at its best, and first of all the one that needs no knowledge."""
    version, can_compile = probe_torch(python)
    name = "torch " + ".".join(version.split(".")[:2])
    script = (python, str(FOLDER / "pytorch_train.py"))
    tuned = {"OMP_PROC_BIND": "close", "OMP_PLACES": "cores"}
    if has_avx512():  # some builds do not find it by themselves
        tuned["ATEN_CPU_CAPABILITY"] = "avx512"

    contestants = [Contestant(f"{name} as installed", (*script, "--layout", "nchw"), as_installed=True)]
    contestants.append(Contestant(f"{name} channels_last", (*script, "--layout", "channels_last"), tuned))
    suffix = ""
    if tcmalloc:
        suffix = " + tcmalloc"
        tuned = {**tuned, "LD_PRELOAD": tcmalloc}
        for layout in ("nchw", "channels_last"):
            contestants.append(Contestant(f"{name} {layout}{suffix}", (*script, "--layout", layout), tuned))
    contestants.append(
        Contestant(f"{name} jit{suffix}", (*script, "--layout", "nchw", "--jit"), tuned, modes=("forward",))
    )
    if can_compile:
        contestants.append(
            Contestant(f"{name} compile{suffix}", (*script, "--layout", "channels_last", "--compile"), tuned)
        )
    return contestants


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
