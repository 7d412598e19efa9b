#!/usr/bin/env python3
"""end_table.py [-n WORKERS] [-k ROUNDS] [--how exit,segv] name=template...: what follows a worker's failure.

The worker is worker_fails, whose rank 0 notes the time and fails while the others wait for SIGTERM, which they note, too:
the first of these signals, the launcher's end, and where it starts all workers again, the first instruction of the last
one. The end is waited for by wait4(), which blocks: looking for it in steps, as subprocess does with a time limit,
measures up to 50 ms of its own. In turn; minimum and median."""
import os
import pathlib
import statistics
import tempfile
import time

import commands
from limit import limit
from within import Failed, Program, reporting

LIMIT_S = 60
DELAY_MS = 100


def clock():
    return time.clock_gettime(time.CLOCK_MONOTONIC)


def times_of(notes, what):
    return [float(line.split()[1]) for line in notes if line.startswith(what + " ")]


def run_once(name, template, workers, how):
    """{what: milliseconds after the failure}"""
    with tempfile.TemporaryDirectory() as folder:
        notes = os.path.join(folder, "notes")
        words = commands.words(template, workers, f"{limit('worker_fails')} {notes} {DELAY_MS} {how}")
        child = Program(name, ["timeout", "--foreground", "-s", "KILL", str(LIMIT_S), *words])
        child.process.wait()
        end = clock()
        lines = pathlib.Path(notes).read_text().splitlines() if os.path.exists(notes) else []
        if not times_of(lines, "fail"):
            raise Failed(f"{name}: no worker of it failed{child.said_last()}")
        failed = min(times_of(lines, "fail"))
        told, started = times_of(lines, "term"), times_of(lines, "start")
        found = {"first signal": min(told)} if told else {}
        if started and len(started) != workers:
            raise Failed(f"{name}: {len(started)} of {workers} workers ran again{child.said_last()}")
        if started:
            found["all run again"] = max(started)
        found["launcher's end"] = end
        return {what: (at - failed) * 1e3 for what, at in found.items()}


def main():
    parser = commands.parser(__doc__, "8", 15)
    parser.add_argument("--how", default="exit,segv", help="how the worker fails: exit, segv, kill")
    arguments = parser.parse_args()
    templates = commands.templates(arguments)
    for workers in commands.numbers(arguments.n):
        for how in arguments.how.split(","):
            found = {}
            for _ in range(arguments.k):
                for name, template in templates.items():
                    for what, value in run_once(name, template, workers, how).items():
                        found.setdefault(name, {}).setdefault(what, []).append(value)
            for name, figures in found.items():
                print(f"n={workers} a worker fails by {how}: {name:14}" + "".join(
                    f"  {what} {min(values):6.1f} / {statistics.median(values):6.1f} ms"
                    for what, values in figures.items()), flush=True)


if __name__ == "__main__":
    reporting(main)
