"""The files of a test cluster, as texts. See ../testcluster."""

import os
import shutil


# Of name and address of each host; all hosts have the same key. Programs built with sanitizers have the same options on
# all of them.
def ssh_files(folder, addresses, host_key, slurm):
    names = list(addresses.items())
    variables = [f'"{name}={os.environ[name]}"' for name in ("ASAN_OPTIONS", "LSAN_OPTIONS", "UBSAN_OPTIONS") if name in os.environ]
    if slurm:
        variables.append(f"SLURM_CONF={folder}/slurm/slurm.conf")
    return {
        "hosts": "127.0.0.1 localhost\n" + "".join(f"{address} {host}\n" for host, address in names),
        "known_hosts": "".join(f"{host},{address} {host_key}" for host, address in names),
        "sshd_config": f"""HostKey {folder}/host_key
AuthorizedKeysFile {folder}/authorized_keys
StrictModes no
UsePAM no
PasswordAuthentication no
PermitRootLogin prohibit-password
PidFile none
PrintMotd no
MaxStartups 100:30:200
LogLevel ERROR
""" + (f"SetEnv {' '.join(variables)}\n" if variables else ""),
        "ssh_config": "".join(f"Host {host}\n  HostName {address}\n" for host, address in names) + f"""Host *
  User root
  IdentityFile {folder}/id
  IdentitiesOnly yes
  UserKnownHostsFile {folder}/known_hosts
  StrictHostKeyChecking yes
  KexAlgorithms curve25519-sha256
  BatchMode yes
  ConnectTimeout 5
  LogLevel ERROR
"""}


# No cgroups and no accounting: what a container without systemd can do. Hosts share /tmp, so what is each one's own is
# in /run.
def slurm_files(folder, head, addresses):
    nodes = "".join(f"NodeName={node} NodeAddr={address} CPUs={os.cpu_count()} RealMemory=1000\n"
                    for node, address in addresses.items())
    return {
        "slurm.conf": f"""ClusterName=testcluster
SlurmctldHost={head[0]}({head[1]})
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
CredType=cred/munge
StateSaveLocation={folder}/slurm/state
SlurmctldPidFile=/run/slurmctld.pid
SlurmctldLogFile={folder}/slurm/slurmctld.log
SlurmdPidFile=/run/slurmd.pid
SlurmdLogFile={folder}/slurm/slurmd-%n.log
SlurmdSpoolDir=/run/slurmd
SlurmdParameters=config_overrides
SlurmdTimeout=10
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SchedulerParameters=batch_sched_delay=0
AccountingStorageType=accounting_storage/none
JobAcctGatherType=jobacct_gather/none
JobCompType=jobcomp/none
ReturnToService=2
KillWait=10
PropagateResourceLimits=NONE
{nodes}PartitionName=test Nodes={','.join(addresses)} Default=YES MaxTime=INFINITE State=UP OverSubscribe=YES
""",
        "cgroup.conf": "CgroupPlugin=cgroup/v1\n",
        "mpi.conf": "PMIxCliTmpDirBase=/run\n"}


# What a host's first process does before it becomes sshd. The daemon is Slurm's, or none.
def init_script(folder, host, daemon):
    script = f"""set -e
hostname {host}
mount -t tmpfs tmpfs /dev/shm
mount -t tmpfs tmpfs /run
mkdir /run/sshd
mount --bind {folder}/hosts /etc/hosts
mount --bind {folder}/ssh_config /etc/ssh/ssh_config
"""
    if daemon:
        script += f"""mkdir -m 755 /run/munge /run/slurmd
munged --key-file={folder}/munge.key --log-file=/run/munge/log --seed-file=/run/munge/seed
{daemon} -f {folder}/slurm/slurm.conf
"""
    return script + f"exec {shutil.which('sshd')} -D -f {folder}/sshd_config\n"
