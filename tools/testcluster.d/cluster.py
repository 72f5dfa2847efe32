"""The cluster itself: what there is of it, how it is made, changed and removed. See ../testcluster."""

import glob
import json
import os
import re
import shutil
import subprocess

import config
from system import (BAD_INPUT, FAILED, CpuGroup, Problem, bits_per_second, check_delay, check_folder, check_machine,
                    has_own_clocks, one_at_a_time, own_clock, run, wait_until)

CLAIMS = "/run/trireme-testcluster"
LOCK = "/run/trireme-testcluster.lock"  # of whoever makes or removes a cluster on this machine
MARK = "testcluster.json"  # in the folder of a cluster: what `up` was asked for
HEAD = "head"  # the host of Slurm's controller


class Cluster:
    def __init__(self, folder):
        self.folder = os.path.abspath(folder)
        check_folder(self.folder)

    # --- what there is

    def number(self):
        for claim in glob.glob(f"{CLAIMS}/*"):
            try:
                if os.readlink(claim) == self.folder:
                    return int(os.path.basename(claim))
            except FileNotFoundError:  # another cluster has just gone
                pass
        return None

    def settings(self):
        try:
            with open(f"{self.folder}/{MARK}") as file:
                return json.load(file)
        except (FileNotFoundError, ValueError):
            return None

    def exists(self):
        number, settings = self.number(), self.settings()
        if number is None or not settings or not settings["complete"]:
            return False
        self.prefix, self.settings_now = f"trm{number}", settings
        return True

    def require(self):
        if not self.exists():
            raise Problem(BAD_INPUT, f"there is no cluster in {self.folder}; make one with: testcluster up --nodes 4")

    def nodes(self):
        return [f"n{i}" for i in range(self.settings_now["nodes"])]

    def hosts(self):
        return self.nodes() + ([HEAD] if self.settings_now["slurm"] else [])

    def check_host(self, host):
        if host not in self.hosts():
            raise Problem(BAD_INPUT, f"'{host}': the hosts of this cluster are {', '.join(self.hosts())}")

    def address(self, host):
        last = 2 if host == HEAD else 10 + int(host[1:])
        return f"10.77.{self.number()}.{last}"

    def namespace(self, host):
        return f"{self.prefix}-{host}"

    def interface(self, host):  # of the cable to this host, the end in the switch
        return f"{self.prefix}v{host}"

    def processes(self, host):
        return [int(pid) for pid in run("ip", "netns", "pids", self.namespace(host), check=False).stdout.split()]

    def first_process(self, host):
        """That of the host, not of a container on it, which is deeper in namespaces."""
        first, depth = None, None
        for pid in self.processes(host):
            try:
                with open(f"/proc/{pid}/status") as file:
                    ids = re.search(r"^NSpid:\s+(.*)$", file.read(), re.M)[1].split()
            except (FileNotFoundError, ProcessLookupError):
                continue
            if len(ids) > 1 and ids[-1] == "1" and (depth is None or len(ids) < depth):
                first, depth = pid, len(ids)
        return first

    def command_in(self, host, command):
        pid = self.first_process(host)
        if pid is None:
            raise Problem(FAILED, f"{host} is not running; start it with: testcluster start {host}")
        environment = ["env", f"SLURM_CONF={self.folder}/slurm/slurm.conf"] if self.settings_now["slurm"] else []
        clock = ["-T"] if own_clock(pid) else []
        return ["nsenter", "-t", str(pid), "-m", "-u", "-i", "-n", "-p", *clock, f"--wd={os.getcwd()}", *environment,
                *command]

    # --- making one

    def up(self, nodes, rate, delay, slurm):
        asked = {"nodes": nodes, "slurm": slurm, "rate": rate, "delay": delay, "complete": False}
        check_machine(slurm)
        check_delay(delay)
        is_new = False
        try:
            with one_at_a_time(LOCK):
                if not self.exists():
                    self.check_vacant()
                    is_new = True
                    self.remove()  # what an earlier one has left
                    self.make(asked)
            if [self.settings_now["nodes"], self.settings_now["slurm"]] != [nodes, slurm]:
                raise Problem(BAD_INPUT, f"there is another cluster in {self.folder}; end it with `testcluster down`")
            self.shape(rate, delay)
            for host in self.hosts():
                self.start(host)
            if slurm:
                self.wait_for_slurm()
        except BaseException:  # also Ctrl-C: what was begun goes
            if is_new:
                self.down()
            raise

    def check_vacant(self):
        found = os.listdir(self.folder) if os.path.isdir(self.folder) else []
        if MARK not in found and set(found) - {f"{MARK}.new"}:
            raise Problem(BAD_INPUT, f"--folder {self.folder}: has other things in it; give an empty or a new one")

    def make(self, asked):
        number = self.claim()
        self.prefix = f"trm{number}"
        os.makedirs(self.folder, mode=0o711, exist_ok=True)
        check_folder(self.folder)
        self.save(asked)
        run("ip", "link", "add", f"{self.prefix}br", "type", "bridge")
        run("ip", "addr", "add", f"10.77.{number}.1/24", "dev", f"{self.prefix}br")
        run("ip", "link", "set", f"{self.prefix}br", "up")
        for host in self.hosts():
            self.connect(host)
        self.write_files()
        if asked["slurm"]:
            self.write_slurm_files()
        self.save({**asked, "complete": True})

    def save(self, settings):
        self.settings_now = settings
        self.write(MARK, json.dumps(settings))

    def write(self, name, text, mode=0o644):
        path = f"{self.folder}/{name}"
        with open(f"{path}.new", "w") as file:
            os.fchmod(file.fileno(), mode)
            file.write(text)
        os.rename(f"{path}.new", path)

    def claim(self):
        os.makedirs(CLAIMS, exist_ok=True)
        for number in range(250):
            taken = run("ip", "route", "show", "root", f"10.77.{number}.0/24").stdout
            if taken or os.path.exists(f"/sys/class/net/trm{number}br"):
                continue
            try:
                os.symlink(self.folder, f"{CLAIMS}/{number}")
                return number
            except FileExistsError:
                continue
        raise Problem(FAILED, f"all networks 10.77.*.0/24 are in use; see {CLAIMS}")

    # TCP over the cable is cubic: other kinds (bbr) take the short queue of a veth for congestion. A host's route says so,
    # because its sysctl takes only what the whole machine allows.
    def connect(self, host):
        namespace, interface, address = self.namespace(host), self.interface(host), self.address(host)
        network = f"10.77.{self.number()}.0/24"
        run("ip", "netns", "add", namespace)
        run("ip", "link", "add", interface, "type", "veth", "peer", "name", "eth0", "netns", namespace)
        run("ip", "link", "set", interface, "master", f"{self.prefix}br", "up")
        run("ip", "-n", namespace, "addr", "add", f"{address}/24", "dev", "eth0", "noprefixroute")
        run("ip", "-n", namespace, "link", "set", "eth0", "up")
        run("ip", "-n", namespace, "route", "add", network, "dev", "eth0", "src", address, "congctl", "cubic")
        run("ip", "-n", namespace, "link", "set", "lo", "up")

    def write_files(self):
        for key in ("id", "host_key"):
            run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "testcluster", "-f", f"{self.folder}/{key}")
        shutil.copy(f"{self.folder}/id.pub", f"{self.folder}/authorized_keys")
        with open(f"{self.folder}/host_key.pub") as file:
            host_key = file.read()
        addresses = {host: self.address(host) for host in self.hosts()}
        for name, text in config.ssh_files(self.folder, addresses, host_key, self.settings_now["slurm"]).items():
            self.write(name, text)
        self.write("hostfile", "".join(f"{node}\n" for node in self.nodes()))

    def write_slurm_files(self):
        os.makedirs(f"{self.folder}/slurm/state")
        with open(os.open(f"{self.folder}/munge.key", os.O_WRONLY | os.O_CREAT, 0o400), "wb") as file:
            file.write(os.urandom(128))
        addresses = {node: self.address(node) for node in self.nodes()}
        for name, text in config.slurm_files(self.folder, (HEAD, self.address(HEAD)), addresses).items():
            self.write(f"slurm/{name}", text)

    # --- a host's power and cables

    def start(self, host):
        if self.first_process(host):
            return
        daemon = "slurmctld" if host == HEAD else "slurmd"
        init = config.init_script(self.folder, host, daemon if self.settings_now["slurm"] else None)
        log = f"{self.folder}/{host}.log"
        # Hosts were not switched on at the same moment: what compares their clocks should notice.
        switched_on = 1000 * self.hosts().index(host)
        clock = ["--time", f"--monotonic={switched_on}", f"--boottime={switched_on}"] if has_own_clocks() else []
        with open(log, "w") as output:
            host_process = subprocess.Popen(
                ["ip", "netns", "exec", self.namespace(host), "unshare", "--uts", "--ipc", "--pid", "--mount", *clock,
                 "--fork", "--kill-child", "--mount-proc", "sh", "-c", init],
                stdin=subprocess.DEVNULL, stdout=output, stderr=output, cwd="/", start_new_session=True)

        def answers():
            if host_process.poll() is not None:
                with open(log) as said:
                    raise Problem(FAILED, f"{host} did not start: {said.read().strip()}")
            probe = ["bash", "-c", "exec 3<>/dev/tcp/127.0.0.1/22"]
            return run("ip", "netns", "exec", self.namespace(host), *probe, check=False).returncode == 0
        wait_until(answers, 20, f"the start of {host}")
        self.limit_host(host)

    def limit_host(self, host):
        group, cores = CpuGroup(self.namespace(host)), self.settings_now.get("cores")
        if cores:
            group.limit(cores, self.processes(host))
        else:
            group.remove()

    def limit_cores(self, cores):
        self.save({**self.settings_now, "cores": cores})
        for host in self.hosts():
            self.limit_host(host)

    def stop(self, host):
        def is_gone():
            for pid in self.processes(host):
                try:
                    os.kill(pid, 9)
                except ProcessLookupError:
                    pass
            return not self.processes(host)
        wait_until(is_gone, 10, f"the end of {host}")

    def link(self, host, state):
        run("ip", "link", "set", self.interface(host), state)

    # Each direction at the interface that sends it. What may go at once, a millisecond, hides the timer's
    # coarseness; more of it would show as a faster link in short transfers.
    def shape(self, rate, delay=None):
        for host in self.hosts():
            ends = [["tc", "-n", self.namespace(host), "qdisc"], ["tc", "qdisc"]]
            for tc, device in zip(ends, ["eth0", self.interface(host)]):
                run(*tc, "del", "dev", device, "root", check=False)
                parent = ["root"]
                if delay and device == "eth0":  # one way: on one of the two
                    run(*tc, "add", "dev", device, "root", "handle", "1:", "netem", "delay", delay, "limit", "100000")
                    parent = ["parent", "1:1"]
                if rate != "off":
                    burst = max(131072, int(bits_per_second(rate) / 8 * 0.001))
                    run(*tc, "add", "dev", device, *parent, "tbf", "rate", rate, "burst", str(burst), "latency", "20ms")
        self.save({**self.settings_now, "rate": rate, "delay": delay})

    def wait_for_slurm(self):
        ask = self.command_in(HEAD, ["sinfo", "-h", "-N", "-o", "%N", "-t", "idle,alloc,mix"])
        wait_until(lambda: run(*ask, check=False).stdout.split() == self.nodes(), 30, "the start of Slurm on all nodes")

    # --- removing it

    def down(self):
        with one_at_a_time(LOCK):
            self.remove()

    def remove(self):
        number = self.number()
        if number is not None:
            self.prefix = f"trm{number}"
            for path in glob.glob(f"/run/netns/{self.prefix}-*"):
                self.stop(os.path.basename(path).split("-")[1])
                CpuGroup(os.path.basename(path)).remove()
                run("ip", "netns", "del", os.path.basename(path))
            for path in glob.glob(f"/sys/class/net/{self.prefix}v*") + glob.glob(f"/sys/class/net/{self.prefix}br"):
                run("ip", "link", "del", os.path.basename(path), check=False)  # a cable may go with its namespace
        is_ours = number is not None or os.path.exists(f"{self.folder}/{MARK}")
        if is_ours and os.path.isdir(self.folder):
            shutil.rmtree(self.folder)
        if number is not None:
            os.unlink(f"{CLAIMS}/{number}")

    def status(self):
        for host in self.hosts():
            state = "running" if self.first_process(host) else "stopped"
            with open(f"/sys/class/net/{self.interface(host)}/operstate") as file:
                link = file.read().strip()
            print(f"{host}  {self.address(host)}  {state}, link {link}, {len(self.processes(host))} processes")
        settings = self.settings_now
        print(f"rate {settings['rate']}, delay {settings['delay'] or 'none'}, cores {settings.get('cores') or 'all'}")

    def print_usage(self):
        print(f"{len(self.nodes())} hosts: {self.nodes()[0]} to {self.nodes()[-1]}\n"
              f"  ssh -F {self.folder}/ssh_config n0        (on a host: ssh n1)\n"
              f"  host file: {self.folder}/hostfile")
        if self.settings_now["slurm"]:
            print(f"  Slurm: testcluster exec {HEAD} srun -N {len(self.nodes())} hostname")
