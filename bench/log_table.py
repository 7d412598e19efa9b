#!/usr/bin/env python3
"""log_table.py [-n WRITERS] [-k ROUNDS] [-m MIB] name=template...: how fast launchers forward what their workers print.

Each run is made with a quarter of MIB MiB a writer and with all of it, to a file; the speed is the difference of bytes by
that of the median times, so that starting and the last bytes drop out. Once with 4096 bytes a write, and once with a line
a write. A torn line is one that is not a prefix and a whole line of a writer; the worst run counts."""
import os
import statistics
import tempfile
import time

import commands
from limit import limit
from within import Program, reporting

LINE = 100
LONGEST_PREFIX = 40
LIMIT_S = 120
MB_OF_MIB = 1.048576


def seconds_of(name, words, file):
    with open(file, "wb") as output:
        program = Program(name, words, stdout=output)
        program.wait(LIMIT_S)
        return time.monotonic() - program.began


def torn_lines(file):
    wanted = b"x" * (LINE - 1) + b"\n"
    with open(file, "rb") as lines:
        return sum(1 for line in lines if not (line.endswith(wanted) and len(line) < LINE + LONGEST_PREFIX))


def measure(arguments, workers, chunk, file):
    """Prints a line a command."""
    times, torn = {}, {}
    sizes = (arguments.m // 4, arguments.m)
    for _ in range(arguments.k):
        for name, template in commands.templates(arguments).items():
            for size in sizes:
                words = commands.words(template, workers, f"{limit('worker_lines')} {size} {LINE} {chunk}")
                times.setdefault((name, size), []).append(seconds_of(name, words, file))
            torn[name] = max(torn.get(name, 0), torn_lines(file))
    for name, worst in torn.items():
        part, whole = (statistics.median(times[name, size]) for size in sizes)
        speed = (sizes[1] - sizes[0]) * workers * MB_OF_MIB / max(whole - part, 1e-9)
        print(f"chunk={chunk or LINE:<5} {name:20} quarter={part * 1e3:8.1f} ms  whole={whole * 1e3:8.1f} ms  "
              f"{speed:8.1f} MB/s  torn lines {worst}", flush=True)


def main():
    parser = commands.parser(__doc__, "8", 3)
    parser.add_argument("-m", type=int, default=32, help="MiB of each writer [32]")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        for chunk in (4096, 0):
            for workers in commands.numbers(arguments.n):
                commands.say_load()
                measure(arguments, workers, chunk, os.path.join(folder, "output"))


if __name__ == "__main__":
    reporting(main)
