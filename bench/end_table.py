#!/usr/bin/env python3
"""end_table.py [-n WORKERS] [-k RUNS] name=template...: from the failure of one worker to the end of its launcher.

'{n}' is the number of workers, '{c}' the worker: crash_once of $LRUN_PERF, whose rank 0 notes the time and fails while
the others sleep until they get SIGTERM, which they note, too. The end is waited for by wait4(), which blocks: who looks
for it in steps, as subprocess does with a time limit, measures up to 50 ms of its own. In turn; minimum and median."""
import argparse
import os
import pathlib
import shlex
import statistics
import tempfile
import time

from within import Failed, Program, reporting

LIMIT_S = 60


def clock():
    return time.clock_gettime(time.CLOCK_MONOTONIC)


def times_of(notes, what):
    return [float(line.split()[1]) for line in notes if line.startswith(what + " ")]


def run_once(name, template, workers, how):
    """\\return (milliseconds to the first signal at a survivor, to the launcher's end)."""
    with tempfile.TemporaryDirectory() as folder:
        notes = os.path.join(folder, "notes")
        worker = f"{os.environ['LRUN_PERF']}/crash_once {notes} 100 {how}"
        command = shlex.split(template.replace("{n}", str(workers)).replace("{c}", worker))
        child = Program(name, ["timeout", "--foreground", "-s", "KILL", str(LIMIT_S), *command])
        child.process.wait()
        end = clock()
        lines = pathlib.Path(notes).read_text().splitlines() if os.path.exists(notes) else []
        if not times_of(lines, "fail"):
            raise Failed(f"{name}: no worker of it failed{child.said_last()}")
        failed = min(times_of(lines, "fail"))
        told = times_of(lines, "term")
        return (min(told) - failed) * 1e3 if told else float("nan"), (end - failed) * 1e3


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-n", type=int, default=8)
    parser.add_argument("-k", type=int, default=15)
    parser.add_argument("--how", default="exit,segv", help="how the worker fails: exit, segv, kill")
    parser.add_argument("commands", nargs="+")
    arguments = parser.parse_args()
    commands = [command.split("=", 1) for command in arguments.commands]
    for how in arguments.how.split(","):
        figures = {name: [] for name, _ in commands}
        for _ in range(arguments.k):
            for name, template in commands:
                figures[name].append(run_once(name, template, arguments.n, how))
        for name, pairs in figures.items():
            first, end = zip(*pairs)
            print(f"n={arguments.n} a worker fails by {how}: {name:14} first signal "
                  f"{min(first):6.1f} / {statistics.median(first):6.1f} ms   launcher's end "
                  f"{min(end):6.1f} / {statistics.median(end):6.1f} ms", flush=True)


if __name__ == "__main__":
    reporting(main)
