"""What the test cluster needs of this machine, asked and used. See ../testcluster."""

import contextlib
import fcntl
import os
import re
import shlex
import shutil
import stat
import subprocess
import time

FAILED, BAD_INPUT, UNAVAILABLE = 1, 2, 77  # exit codes
PROGRAMS = {"ip": "iproute2", "tc": "iproute2", "sshd": "openssh-server", "ssh": "openssh-client",
            "ssh-keygen": "openssh-client", "unshare": "util-linux", "nsenter": "util-linux"}
SLURM_PROGRAMS = {"munged": "munge", "slurmctld": "slurmctld", "slurmd": "slurmd", "srun": "slurm-client"}


class Problem(Exception):
    def __init__(self, code, text):
        super().__init__(text)
        self.code = code


def run(*command, check=True):
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    if check and done.returncode != 0:
        raise Problem(FAILED, f"{shlex.join(command)}: {(done.stderr or done.stdout).strip()}")
    return done


def wait_until(condition, seconds, what):
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            raise Problem(FAILED, f"{what} did not happen within {seconds} s")
        time.sleep(0.02)


@contextlib.contextmanager
def one_at_a_time(path):
    with open(path, "w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def bits_per_second(rate):
    found = re.fullmatch(r"(\d+(?:\.\d+)?)(k|m|g)bit", rate)
    if not found or float(found[1]) == 0:
        raise Problem(BAD_INPUT, f"rate '{rate}': must be a number with kbit, mbit or gbit, as in 1gbit, or off")
    return float(found[1]) * {"k": 1e3, "m": 1e6, "g": 1e9}[found[2]]


def number_of_cores(text):
    try:
        number = float(text)
    except ValueError:
        number = 0
    if not 0.01 <= number <= 1000:
        raise Problem(BAD_INPUT, f"cores '{text}': must be a number from 0.01 on, as in 0.5, or off")
    return number


class CpuGroup:
    """A control group that limits the cores of the processes in it; of either version of cgroups."""
    PERIOD = 20000  # us: shorter than steps and messages of a training, so that they take as long as on slower cores

    def __init__(self, name):
        old = "/sys/fs/cgroup/cpu"
        self.is_old = os.path.isdir(old)
        self.folder = f"{old if self.is_old else '/sys/fs/cgroup'}/{name}"

    def limit(self, cores, processes):
        os.makedirs(self.folder, exist_ok=True)
        quota = int(cores * self.PERIOD)
        limits = {"cpu.cfs_period_us": self.PERIOD, "cpu.cfs_quota_us": quota} if self.is_old else {
            "cpu.max": f"{quota} {self.PERIOD}"}
        try:
            for file, value in limits.items():
                self.write(file, value)
            for process in processes:
                with contextlib.suppress(ProcessLookupError):
                    self.write("cgroup.procs", process)
        except OSError as error:
            raise Problem(UNAVAILABLE, f"this machine lets us limit no cores: {error}")

    def write(self, file, value):
        with open(f"{self.folder}/{file}", "w") as out:
            out.write(str(value))

    def remove(self):
        """Of processes that still run, the group above takes over; some may be about to end."""
        if os.path.isdir(self.folder):
            wait_until(self.is_removed, 10, f"the end of the processes in {self.folder}")

    def is_removed(self):
        with open(f"{self.folder}/cgroup.procs") as file:
            left = file.read().split()
        for process in left:
            with contextlib.suppress(ProcessLookupError), open(f"{os.path.dirname(self.folder)}/cgroup.procs", "w") as out:
                out.write(process)
        with contextlib.suppress(OSError):
            os.rmdir(self.folder)
        return not os.path.isdir(self.folder)


def check_machine(slurm):
    for program, package in {**PROGRAMS, **(SLURM_PROGRAMS if slurm else {})}.items():
        if not shutil.which(program):
            raise Problem(UNAVAILABLE, f"there is no {program} here; install the package {package}")
    tried = run("unshare", "--net", "--uts", "--ipc", "--pid", "--mount", "--fork", "--mount-proc",
                "ip", "link", "set", "lo", "up", check=False)
    if tried.returncode != 0:
        raise Problem(UNAVAILABLE, f"this machine lets us make no namespaces: {tried.stderr.strip()}")


def has_own_clocks():
    """Time namespaces came with Linux 5.6, and with util-linux 2.36."""
    return run("unshare", "--time", "--monotonic=1", "--fork", "true", check=False).returncode == 0


def own_clock(pid):
    """Whether the process has a clock that is not ours; where hosts have none, nsenter may not know of clocks."""
    try:
        return os.readlink(f"/proc/{pid}/ns/time") != os.readlink("/proc/self/ns/time")
    except FileNotFoundError:
        return False


def check_folder(folder):
    """Root follows what is in it, and in /tmp anybody may have made it."""
    try:
        found = os.lstat(folder)
    except FileNotFoundError:
        return
    if not stat.S_ISDIR(found.st_mode):
        raise Problem(BAD_INPUT, f"--folder {folder}: is not a folder, or a link to one; give a new one")
    if found.st_uid != 0 or found.st_mode & 0o022:
        raise Problem(BAD_INPUT, f"--folder {folder}: must be root's and writable for nobody else; give a new one")


def check_delay(delay):
    if delay is None:
        return
    if not re.fullmatch(r"\d+(\.\d+)?(us|ms|s)", delay):
        raise Problem(BAD_INPUT, f"--delay '{delay}': must be a number with us, ms or s, as in 50us")
    tried = run("unshare", "--net", "tc", "qdisc", "add", "dev", "lo", "root", "netem", "delay", delay, check=False)
    if tried.returncode != 0:
        raise Problem(UNAVAILABLE, "--delay: this kernel cannot delay packets (it has no netem, CONFIG_NET_SCH_NETEM); "
                      "leave the option out")
