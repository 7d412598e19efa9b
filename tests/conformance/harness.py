"""Starts launchers, reads what their workers report, and ends whatever they leave behind."""
import contextlib
import json
import os
import random
import re
import signal
import socket
import subprocess
import sys
import time
import uuid
from pathlib import Path
from types import SimpleNamespace

import pytest

better = pytest.mark.better

LAUNCHER = []  # the words that begin every command line; conftest.py sets both
IS_TORCHRUN = False
ARRIVAL_S = 2  # in which launchers that are started together have all joined; torchrun first loads torch

WORKER = Path(__file__).resolve().parent / "worker.py"
PATIENCE = 60  # seconds that anything may take that has to happen
SOON = 6  # seconds within which a launcher that reacts to something has reacted
LOOPBACK = "127.0.0.1"
KEPT = ("HOME", "LANG", "LD_LIBRARY_PATH", "ASAN_OPTIONS", "LSAN_OPTIONS", "UBSAN_OPTIONS")


class TooLate(AssertionError):
    """What a case waited for did not happen."""


def until(condition, what, seconds=PATIENCE):
    """Waits until the condition is true, and returns its value."""
    end = time.monotonic() + seconds
    while not (value := condition()):
        if time.monotonic() > end:
            raise TooLate(what() if callable(what) else what)
        time.sleep(0.02)
    return value


def free_port():
    """A free port below those that the kernel gives to connections."""
    while True:
        port = random.randrange(10000, 30000)
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("", port))
            return port


def is_listening(port):
    with socket.socket() as probe:
        return probe.connect_ex((LOOPBACK, port)) == 0


def is_alive(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


class Job:
    """A launcher that was started, on a cluster that of one node, and its workers."""

    def __init__(self, words, folder, environment, cwd, stdin):
        self.folder = folder
        folder.mkdir()
        self.mark = uuid.uuid4().hex
        environment = {**environment, "WORKER_REPORTS": str(folder), "CONFORMANCE_JOB": self.mark}
        (folder / "stdin").write_text(stdin, encoding="utf-8")
        with (open(folder / "stdin", "rb") as given, open(folder / "stdout", "wb") as out,
              open(folder / "stderr", "wb") as err):
            self.process = subprocess.Popen(words, env=environment, cwd=cwd, stdin=given, stdout=out, stderr=err,
                                            start_new_session=True)

    @property
    def code(self):
        return self.process.poll()

    @property
    def stdout(self):
        return (self.folder / "stdout").read_text(encoding="utf-8", errors="replace")

    @property
    def stderr(self):
        return (self.folder / "stderr").read_text(encoding="utf-8", errors="replace")

    @property
    def history(self):
        """The reports of all workers that have been started, the oldest first."""
        reports = [SimpleNamespace(**json.loads(file.read_text(encoding="utf-8")))
                   for file in self.folder.glob("*.json")]
        return sorted(reports, key=lambda report: report.started)

    @property
    def workers(self):
        """{rank: its newest report}"""
        return {int(report.env["RANK"]): report for report in self.history}

    def values(self, name):
        """The environment variable of every worker that has been started, the oldest first."""
        return [report.env.get(name) for report in self.history]

    def value(self, name):
        """{rank: the environment variable of its newest worker}"""
        return {rank: report.env.get(name) for rank, report in sorted(self.workers.items())}

    def wait(self, seconds=PATIENCE):
        """Waits for the launcher's end."""
        until(lambda: self.code is not None, lambda: f"the launcher has not ended:\n{self.stderr[-3000:]}", seconds)
        return self

    def wait_for_workers(self, count, seconds=PATIENCE):
        """Waits until so many workers have been started, earlier attempts counted, and returns their reports."""
        def enough():
            found = self.history
            assert len(found) >= count or self.code is None, f"the launcher has ended:\n{self.stderr[-3000:]}"
            return found if len(found) >= count else None
        return until(enough, lambda: f"there are not {count} workers:\n{self.stderr[-3000:]}", seconds)

    def let(self, name):
        """Ends wait(name) in the workers."""
        (self.folder / name).touch()
        return self

    def signal(self, number):
        self.process.send_signal(number)
        return self

    def processes(self):
        """The pids of all that the launcher has started, and its own."""
        mark = f"CONFORMANCE_JOB={self.mark}".encode()
        found = []
        for entry in Path("/proc").iterdir():
            with contextlib.suppress(OSError):
                if entry.name.isdigit() and mark in (entry / "environ").read_bytes().split(b"\0"):
                    found.append(int(entry.name))
        return found

    def is_connected_to(self, port):
        """Whether the launcher itself has a connection to this port of the host."""
        rows = [line.split() for table in Path("/proc/net").glob("tcp*")
                for line in table.read_text(encoding="utf-8").splitlines()[1:]]
        inodes = {f"socket:[{row[9]}]" for row in rows
                  if int(row[2].rpartition(":")[2], 16) == port and row[3] == "01"}
        with contextlib.suppress(OSError):
            return any(os.readlink(entry) in inodes for entry in os.scandir(f"/proc/{self.process.pid}/fd"))
        return False

    def living_workers(self):
        return [report.pid for report in self.history if is_alive(report.pid)]

    def wait_for_nothing_left(self, seconds=SOON):
        until(lambda: not self.processes(), "processes of the job are left", seconds)

    def signal_all(self, number):
        """Sends the signal to launcher and workers, and returns how many there were."""
        pids = self.processes()
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)
        return len(pids)

    def lose_power(self):
        """Ends launcher and workers so that none of them can say or do anything about it."""
        self.signal_all(signal.SIGSTOP)
        until(lambda: self.signal_all(signal.SIGKILL) == 0 and self.code is not None, "the job is not dead", SOON)


class Bench:
    """The folder of a case, and the launchers that it started there."""

    def __init__(self, folder):
        self.folder = folder
        self.jobs = []
        (folder / "tmp").mkdir()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for job in self.jobs:
            with contextlib.suppress(AssertionError):
                job.lose_power()

    def environment(self, changes):
        made = {name: os.environ[name] for name in KEPT if name in os.environ}
        made["PATH"] = os.path.dirname(sys.executable) + os.pathsep + os.environ["PATH"]
        made["TMPDIR"] = str(self.folder / "tmp")
        made["LRUN_STATE"] = str(self.folder / "state")
        made["PET_MASTER_PORT"] = str(free_port())  # of jobs that run at the same time
        return {**made, **changes}

    def start(self, *options, script=WORKER, args=(), setup="", code="", env=(), cwd=None, stdin=""):
        """Starts a launcher. setup and code are statements for worker.py."""
        environment = self.environment({"WORKER_SETUP": setup, "WORKER_CODE": code, **dict(env)})
        words = [str(word) for word in (*LAUNCHER, *options, *([script] if script else []), *args)]
        self.jobs.append(Job(words, self.folder / f"job{len(self.jobs)}", environment, cwd or self.folder, stdin))
        return self.jobs[-1]

    def run(self, *options, **details):
        """Starts a launcher and waits for its end."""
        return self.start(*options, **details).wait()

    def start_nodes(self, options_of_nodes, **details):
        """Starts a launcher a node, the last one first, with node ranks and the address of a master."""
        port = free_port()
        jobs = []
        for node, options in reversed(list(enumerate(options_of_nodes))):
            jobs.insert(0, self.start(f"--nnodes={len(options_of_nodes)}", f"--node-rank={node}",
                                      f"--master-addr={LOOPBACK}", f"--master-port={port}", *options, **details))
        return jobs


class Rendezvous:
    """Where the launchers of a job find each other, with the c10d backend."""

    # Four seconds until a silent node is lost; torchrun loses nodes that are well if there are fewer attempts.
    HEARTBEAT = "keep_alive_interval=1,keep_alive_max_attempt=4"
    # The store of the workers is then that of rank 0 and not of its launcher, where torchrun's next round may find
    # what the last one left.
    STORE_OF_RANK_0 = {"env": {"TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1"}}

    def __init__(self, bench, nodes, conf="", port=None):
        self.bench = bench
        self.nodes = nodes
        self.conf = conf
        self.port = port or free_port()
        self.run_id = f"job-{uuid.uuid4().hex[:8]}"

    def start(self, *options, address=LOOPBACK, conf=None, **details):
        """Starts the launcher of a node."""
        return self.bench.start(f"--nnodes={self.nodes}", "--rdzv-backend=c10d", f"--rdzv-id={self.run_id}",
                                f"--rdzv-endpoint={LOOPBACK}:{self.port}", f"--local-addr={address}",
                                f"--rdzv-conf={self.conf if conf is None else conf}", *options, **details)

    def start_host(self, *options, **details):
        """Starts the launcher that hosts the rendezvous, and waits until others can connect."""
        job = self.start(*options, **details)
        until(lambda: is_listening(self.port), lambda: f"nothing listens at the endpoint:\n{job.stderr}")
        return job

    def start_two(self, **details):
        """Starts two launchers, and waits until their workers, one each, have begun together."""
        jobs = [self.start_host(**details), self.start(**details)]
        for job in jobs:
            job.wait_for_workers(1)
        assert [job.values("WORLD_SIZE")[-1] for job in jobs] == ["2", "2"]
        return jobs

    def wait_until_joined(self, job):
        """Nothing outside shows that a launcher has joined: a moment after it has connected it has."""
        until(lambda: job.is_connected_to(self.port) or job.code is not None, "the launcher does not connect")
        time.sleep(1.5)


def codes(*jobs):
    """Waits for the jobs, and returns their exit codes."""
    return [job.wait().code for job in jobs]


def workers_of(*jobs):
    """{rank: its newest report} of a job of several launchers."""
    merged = {}
    for job in jobs:
        assert not merged.keys() & job.workers.keys(), "a rank is there twice"
        merged.update(job.workers)
    return dict(sorted(merged.items()))


def value_of(workers, name):
    """{rank: the environment variable}"""
    return {rank: report.env.get(name) for rank, report in workers.items()}


def failure_summary(text):
    """torchrun's block of failures: {rank: {'exitcode': '3 (pid: 42)', ...}}, and the root cause as 'root'."""
    root_title = "Root Cause (first observed failure):"
    assert root_title in text, f"no summary of failures in:\n{text[-3000:]}"
    found = {}
    for block in re.split(r"^\[\d+\]:$", text[text.rindex("Failures:"):], flags=re.M)[1:]:
        fields = dict(re.findall(r"^  (\w+) *: (.*)$", block, flags=re.M))
        found[int(fields["rank"].split()[0])] = fields
    root = re.search(r"rank +: (\d+)", text[text.rindex(root_title):])
    return {**found, "root": found[int(root.group(1))]}
