#!/usr/bin/env python3
"""idle_table.py [-n 8,256] [-k ROUNDS] [-t SECONDS] name=template...: what a launcher costs while its workers sleep.

Of its processes, without the workers: memory (resident, proportional, its own) in MiB, processor time a minute, and
wake-ups a second over so many seconds; medians of the rounds."""
import os
import pathlib
import signal
import statistics
import time

import commands
from within import Failed, Program, reporting

START_LIMIT_S = 90
SETTLED_AFTER_S = 2


def read(path):
    """Nothing where the process has ended."""
    try:
        return pathlib.Path(path).read_text()
    except (FileNotFoundError, ProcessLookupError):
        return ""


def children_of():
    """{pid: [pids of its children]}"""
    found = {}
    for pid in filter(str.isdigit, os.listdir("/proc")):
        if stat := read(f"/proc/{pid}/stat"):
            parent = int(stat[stat.rindex(")") + 2:].split()[1])
            found.setdefault(parent, []).append(int(pid))
    return found


def processes_of(launcher, worker):
    """Its processes that are no workers, and the workers: those whose command line is that of `worker`."""
    children, left, own, workers = children_of(), [launcher], [], []
    while left:
        pid = left.pop()
        left += children.get(pid, [])
        is_worker = read(f"/proc/{pid}/cmdline").split("\0")[:-1] == worker
        (workers if is_worker else own).append(pid)
    return own, workers


def memory_of(pids):
    """MiB: resident, proportional, its own."""
    fields = {"Rss:": 0, "Pss:": 1, "Private_Clean:": 2, "Private_Dirty:": 2}
    found = [0.0, 0.0, 0.0]
    for pid in pids:
        for line in read(f"/proc/{pid}/smaps_rollup").splitlines():
            name, *value = line.split()
            if name in fields:
                found[fields[name]] += int(value[0]) / 1024
    return found


def work_of(pids):
    """Seconds of processor time, and how often a thread was taken from a processor or gave it back."""
    seconds, switches = 0.0, 0
    for task in (task for pid in pids for task in pathlib.Path(f"/proc/{pid}/task").glob("*")):
        seconds += int((read(task / "schedstat").split() or [0])[0]) / 1e9
        switches += sum(int(line.split()[1]) for line in read(task / "status").splitlines() if "ctxt_switches" in line)
    return seconds, switches


def wait_for_workers(launcher, worker, count):
    end = time.monotonic() + START_LIMIT_S
    while len(processes_of(launcher.process.pid, worker)[1]) < count:
        if time.monotonic() > end or launcher.process.poll() is not None:
            raise Failed(f"{launcher.name}: its {count} workers do not run{launcher.said_last()}")
        time.sleep(0.1)
    time.sleep(SETTLED_AFTER_S)


def run_once(name, template, workers, seconds):
    worker = ["/bin/sleep", f"{1000 + os.getpid()}"]
    launcher = Program(name, commands.words(template, workers, " ".join(worker)))
    try:
        wait_for_workers(launcher, worker, workers)
        own, _ = processes_of(launcher.process.pid, worker)
        before = work_of(own)
        time.sleep(seconds)
        after = work_of(own)
        return (*memory_of(own), len(own), (after[0] - before[0]) * 60 / seconds, (after[1] - before[1]) / seconds)
    finally:
        _, left = processes_of(launcher.process.pid, worker)
        launcher.end()
        end_all(left, worker)


def end_all(pids, worker):
    """Workers that their launcher left behind."""
    for pid in pids:
        if read(f"/proc/{pid}/cmdline").split("\0")[:-1] == worker:
            os.kill(pid, signal.SIGKILL)


def main():
    parser = commands.parser(__doc__, "8,256", 1)
    parser.add_argument("-t", type=float, default=10, help="seconds of sleep [10]")
    arguments = parser.parse_args()
    for workers in commands.numbers(arguments.n):
        commands.say_load()
        found = {}
        for _ in range(arguments.k):
            for name, template in commands.templates(arguments).items():
                found.setdefault(name, []).append(run_once(name, template, workers, arguments.t))
        for name, runs in found.items():
            resident, proportional, own, processes, processor, switches = map(statistics.median, zip(*runs))
            print(f"n={workers:<4} {name:14} resident={resident:6.1f} proportional={proportional:6.1f} own={own:6.1f} MiB"
                  f"  processes={processes:.0f}  cpu={processor:.4f} s/min  wake-ups={switches:.1f}/s", flush=True)


if __name__ == "__main__":
    reporting(main)
