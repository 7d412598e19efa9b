#!/usr/bin/env python3
"""launch_table.py [-n 1,8,64] [-k ROUNDS] name=template...: how long whole commands take whose workers are /bin/true.

From the start of the command to its end, and the processor time of it and all that it reaped; the first round is not
counted. The ratios are those to the first command's median and minimum."""
import os
import statistics
import time

import commands
from within import Program, reporting


def run_once(name, words):
    """\\return seconds, and seconds of processor time. \\throws Failed  it failed."""
    program = Program(name, words)
    _, status, usage = os.wait4(program.process.pid, 0)
    seconds = time.monotonic() - program.began
    program.process.returncode = os.waitstatus_to_exitcode(status)
    program.wait(0)
    return seconds, usage.ru_utime + usage.ru_stime


def measure(templates, workers, rounds):
    """{name: [run]}"""
    found = {name: [] for name in templates}
    for turn in range(rounds + 1):
        for name, template in templates.items():
            run = run_once(name, commands.words(template, workers, "/bin/true"))
            if turn > 0:
                found[name].append(run)
    return found


def main():
    arguments = commands.parser(__doc__, "1,2,8,32", 7).parse_args()
    for workers in commands.numbers(arguments.n):
        commands.say_load()
        first = None
        for name, runs in measure(commands.templates(arguments), workers, arguments.k).items():
            walls, processor = zip(*runs)
            median, least = statistics.median(walls), min(walls)
            first = first or (median, least)
            print(f"n={workers:<4} {name:16} wall med={median * 1e3:9.1f} ms  min={least * 1e3:9.1f}  "
                  f"max={max(walls) * 1e3:9.1f}  cpu={statistics.median(processor) * 1e3:8.1f} ms  "
                  f"x{median / first[0]:7.1f} x{least / first[1]:7.1f}", flush=True)


if __name__ == "__main__":
    reporting(main)
