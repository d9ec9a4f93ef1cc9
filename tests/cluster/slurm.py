"""A real Slurm of one node in a folder of its own, for tests and for trying the profile.

munged, slurmctld and slurmd run in the foreground as children of this process, on free ports, with
keys, state and logs in a temporary folder; a Slurm of the system is neither used nor touched.

    python -m tests.cluster.slurm make report PROFILE=slurm TIER=quick STUDIES=saxena

brings it up, runs the command with its client commands first in PATH, and takes it down.
"""

import contextlib
import ctypes
import getpass
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import psutil

NEEDED = ("munged", "slurmctld", "slurmd", "sbatch", "squeue", "scancel", "sinfo")
#: Wrapped, because Snakemake's Slurm plugin drops SLURM_CONF from the environment.
CLIENTS = ("sacct", "sacctmgr", "sbatch", "scancel", "scontrol", "sinfo", "squeue", "srun")
#: Of the superuser's too, where the daemons are.
SEARCH = os.pathsep.join([os.environ["PATH"], "/usr/local/sbin", "/usr/sbin", "/sbin"])
START_S = 60
CONFIGURATION = """\
ClusterName=replication
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={controller_port}
SlurmdPort={node_port}
SlurmUser={user}
SlurmdUser={user}
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
CredType=cred/munge
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU_Memory
SwitchType=switch/none
MpiDefault=none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
JobCompType=jobcomp/none
ReturnToService=2
MinJobAge=3600
KillWait=2
NodeName={host} NodeAddr=127.0.0.1 CPUs={cpus} RealMemory={memory_mb} State=UNKNOWN
PartitionName=main Nodes={host} Default=YES MaxTime=INFINITE State=UP
"""


def missing():
    """Return the programs that are not installed."""
    return [name for name in NEEDED if shutil.which(name, path=SEARCH) is None]


class Slurm:
    """One cluster; `bin` holds its client commands."""

    def __init__(self, folder):
        self.folder = folder
        self.bin = folder / "bin"
        self._daemons = []

    def start(self):
        """Start the daemons and wait until the node takes jobs."""
        for name in ("bin", "state", "spool"):
            (self.folder / name).mkdir()
        key = self.folder / "munge.key"
        key.touch(mode=0o600)
        key.write_bytes(os.urandom(128))
        configuration = self.folder / "slurm.conf"
        configuration.write_text(
            CONFIGURATION.format(
                folder=self.folder,
                host=socket.gethostname().split(".")[0],
                user=getpass.getuser(),
                controller_port=_free_port(),
                node_port=_free_port(),
                cpus=os.cpu_count(),
                memory_mb=psutil.virtual_memory().total // 2**20 * 9 // 10,
            )
        )
        for name in CLIENTS:
            wrapper = self.bin / name
            real = shutil.which(name, path=SEARCH)
            wrapper.write_text(f'#!/bin/sh\nSLURM_CONF={configuration} exec {real} "$@"\n')
            wrapper.chmod(0o755)
        self._munge(key)
        self._daemon("slurmctld", "-D", "-f", configuration)
        self._daemon("slurmd", "-D", "-f", configuration)
        self._wait("node", lambda: "idle" in self.ask("sinfo", "--noheader", "--format=%T"))

    def _munge(self, key):
        socket_path = self.folder / "munge.socket"
        options = {
            "socket": socket_path,
            "key-file": key,
            "pid-file": self.folder / "munge.pid",
            "log-file": self.folder / "munge.log",
            "seed-file": self.folder / "munge.seed",
        }
        words = [f"--{name}={value}" for name, value in options.items()]
        self._daemon("munged", "--foreground", "--force", "--num-threads=2", *words)
        self._wait("munge", socket_path.exists)

    def _daemon(self, name, *words):
        log = (self.folder / f"{name}.out").open("wb")
        command = [shutil.which(name, path=SEARCH), *map(str, words)]
        self._daemons.append(
            subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, preexec_fn=_die_with_us
            )
        )

    def _wait(self, what, ready):
        deadline = time.monotonic() + START_S
        while not ready():
            dead = [d.args[0] for d in self._daemons if d.poll() is not None]
            if dead or time.monotonic() > deadline:
                raise RuntimeError(f"Slurm's {what} did not come up ({dead}):\n{self.logs()}")
            time.sleep(0.1)

    def logs(self):
        """Return the last lines of every daemon's log."""
        texts = []
        for path in sorted([*self.folder.glob("*.log"), *self.folder.glob("*.out")]):
            lines = path.read_text(errors="replace").splitlines()[-15:]
            texts += [f"--- {path.name}", *lines]
        return "\n".join(texts)

    def ask(self, name, *words):
        """Return what a client command prints."""
        done = subprocess.run(
            [self.bin / name, *words], stdout=subprocess.PIPE, text=True, check=False
        )
        return done.stdout

    def jobs(self):
        """Return (name, state) of every job since the start."""
        lines = self.ask("squeue", "--states=all", "--noheader", "--format=%j %T").splitlines()
        return [tuple(line.split()) for line in lines]

    def environment(self, base):
        """Return `base` with this cluster's commands first in PATH."""
        return base | {"PATH": f"{self.bin}{os.pathsep}{base['PATH']}"}

    def stop(self):
        """Cancel what runs, stop the daemons, and end what is left of the jobs."""
        with contextlib.suppress(OSError, RuntimeError):
            self.ask("scancel", "--user", getpass.getuser())
            deadline = time.monotonic() + 10
            while self.ask("squeue", "--noheader") and time.monotonic() < deadline:
                time.sleep(0.2)
        for daemon in reversed(self._daemons):
            daemon.terminate()
            try:
                daemon.wait(10)
            except subprocess.TimeoutExpired:
                daemon.kill()
                daemon.wait()
        for process in self._left():
            with contextlib.suppress(psutil.Error):
                process.kill()

    def _left(self):
        """Return what submits to this cluster, its jobs, and what Slurm started to watch them.

        The first two have its commands in their PATH, the last has its log open.
        """
        for process in psutil.process_iter():
            with contextlib.suppress(psutil.Error):
                paths = process.environ().get("PATH", "").split(os.pathsep)
                files = [Path(file.path) for file in process.open_files()]
                ours = str(self.bin) in paths or any(self.folder in f.parents for f in files)
                if ours and process.pid != os.getpid():
                    yield process


def _interrupt(number, frame):
    # As from the keyboard: pytest ends its session on that, but takes SystemExit for a failed test.
    raise KeyboardInterrupt(f"signal {number}")


def _die_with_us():
    ctypes.CDLL(None).prctl(1, signal.SIGTERM, 0, 0, 0)


def _free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@contextlib.contextmanager
def running():
    """Give a running cluster; take it down whatever happens."""
    # Short, for munge's socket: such a path has 107 characters at most.
    folder = Path(tempfile.mkdtemp(prefix="slurm-"))
    cluster = Slurm(folder)
    # A signal that would end us at once is to unwind first.
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _interrupt)
    try:
        cluster.start()
        yield cluster
    finally:
        cluster.stop()
        shutil.rmtree(folder, ignore_errors=True)


def main(command):
    """Run `command` against a cluster of its own; return its exit code."""
    if missing():
        print(f"missing: {', '.join(missing())}: apt-get install slurm-wlm munge", file=sys.stderr)
        return 2
    with running() as cluster:
        return subprocess.run(
            command, env=cluster.environment(dict(os.environ)), check=False
        ).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
