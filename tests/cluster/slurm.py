"""A real Slurm of one node in a temporary folder.

munged, slurmctld and slurmd run in the foreground as children of this process, on free ports, with
keys, state and logs in a temporary folder; a Slurm of the system is neither used nor touched.
"""

import contextlib
import getpass
import os
import shutil
import socket
import subprocess
import tempfile
import time
from pathlib import Path

import psutil

NEEDED = ("munged", "slurmctld", "slurmd", "sbatch", "squeue", "scancel", "sinfo")
#: Wrapped, because Snakemake's Slurm plugin drops SLURM_CONF from the environment.
CLIENTS = ("sacct", "sacctmgr", "sbatch", "scancel", "scontrol", "sinfo", "squeue", "srun")
#: The daemons may be in the superuser's path.
SEARCH = os.pathsep.join([os.environ["PATH"], "/usr/local/sbin", "/usr/sbin", "/sbin"])
START_S = 60
CONFIGURATION = """\
ClusterName=replication
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={controller_port}
SlurmdPort={node_port}
SlurmUser={user}
SlurmdUser={user}
AuthInfo=socket={folder}/munge.socket
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.log
ProctrackType=proctrack/linuxproc
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU_Memory
ReturnToService=2
MinJobAge=3600
KillWait=2
NodeName={host} NodeAddr=127.0.0.1 CPUs={cpus} RealMemory={memory_mb} State=UNKNOWN
PartitionName=main Nodes={host} Default=YES MaxTime=INFINITE State=UP
"""


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
        key, socket_path = self.folder / "munge.key", self.folder / "munge.socket"
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
        files = [
            f"--{kind}-file={self.folder}/munge.{kind}" for kind in ("key", "pid", "log", "seed")
        ]
        words = ("--foreground", "--force", f"--socket={socket_path}", *files)
        self._start("munged", words, socket_path.exists)
        self._start("slurmctld", ("-D", "-f", configuration))
        self._start("slurmd", ("-D", "-f", configuration), self._is_idle)

    def _is_idle(self):
        return "idle" in self.ask("sinfo", "--noheader", "--format=%T")

    def _start(self, name, words, ready=lambda: True):
        """Start a daemon in the foreground, and wait until it is ready."""
        log = self.folder / f"{name}.out"
        with log.open("wb") as out:
            command = [shutil.which(name, path=SEARCH), *words]
            daemon = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=out)
        self._daemons.append(daemon)
        deadline = time.monotonic() + START_S
        while not ready():
            if daemon.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"{name} did not come up:\n{log.read_text()[-2000:]}")
            time.sleep(0.1)

    def ask(self, name, *words):
        """Return what a client command prints."""
        command = [self.bin / name, *words]
        return subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False).stdout

    def jobs(self):
        """Return (name, state) of every job since the start."""
        lines = self.ask("squeue", "--states=all", "--noheader", "--format=%j %T").splitlines()
        return [tuple(line.split()) for line in lines]

    def environment(self, base):
        """Return `base` with this cluster's commands first in PATH."""
        return base | {"PATH": f"{self.bin}{os.pathsep}{base['PATH']}"}

    def stop(self):
        """Cancel running jobs, stop the daemons, and end remaining processes."""
        self.ask("scancel", "--user", getpass.getuser())
        deadline = time.monotonic() + 10
        while self.ask("squeue", "--noheader") and time.monotonic() < deadline:
            time.sleep(0.2)
        for daemon in reversed(self._daemons):
            daemon.terminate()
            daemon.wait(30)
        # Jobs, and processes that submit them, have its commands in their PATH.
        for process in psutil.process_iter():
            with contextlib.suppress(psutil.Error):
                paths = process.environ().get("PATH", "").split(os.pathsep)
                if str(self.bin) in paths and process.pid != os.getpid():
                    process.kill()


def _free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@contextlib.contextmanager
def running():
    """Yield a running cluster, and stop it whatever happens."""
    if missing := [name for name in NEEDED if shutil.which(name, path=SEARCH) is None]:
        raise RuntimeError(f"missing: {', '.join(missing)}: apt-get install slurm-wlm munge")
    # Short, for munge's socket: such a path has 107 characters at most.
    with tempfile.TemporaryDirectory(prefix="slurm-", ignore_cleanup_errors=True) as folder:
        cluster = Slurm(Path(folder))
        try:
            cluster.start()
            yield cluster
        finally:
            cluster.stop()
