#!/usr/bin/env python3
"""runtime.py [-k ROUNDS] [--try] [FIGURE...]: what the runtime costs, beside the limit programs and torch's own Python.

Figures: first_step, allreduce, step, sharded; all without a name. Programs take turns: they sleep while another one
measures, and every round begins with another one. $LRUN_BUILD is a build folder with benchmarks. Torch's own
figures are left out where $LRUN_TORCH_PYTHON names no Python with torch.

Medians go to bench/runtime.tsv, and plot_runtime.py makes the tables of bench/README.md and the pictures from it."""
import argparse
import contextlib
import os
import pathlib
import statistics
import subprocess
import tempfile
import time

import plot_runtime
from figures import Row, replace, tsv_of
from limit import BUILD, HERE, limit
from ranks import Ranks, free_port
from within import Failed, reporting, run

PYTHON = os.environ.get("LRUN_TORCH_PYTHON")
KILO, MEGA = 1 << 10, 1 << 20
REPETITIONS = {4 * KILO: 200, 64 * KILO: 200, MEGA: 30, 16 * MEGA: 15, 64 * MEGA: 7, 256 * MEGA: 3}  # by bytes
LIMITS = {"in_place": "limit", "copied": "limit with copies", "in_chunks": "limit with copies"}
RUN_WITHIN_S = 120


class Figures:
    """What was measured: {(figure, case, series, unit): [value of each round]}."""

    def __init__(self):
        self.values = {}

    def add(self, figure, case, series, unit, value):
        self.values.setdefault((figure, case, series, unit), []).append(value)

    def rows(self):
        return [Row(*key, statistics.median(values), min(values), max(values), len(values))
                for key, values in self.values.items()]


def bench(name):
    return [str(BUILD / "bench" / f"bench_runtime_{name}")]


def torch_rank(what):
    return [PYTHON, str(HERE / "torch_rank.py"), what]


def in_turn(names, turn):
    """Each round begins with another one: what comes first finds other caches than what comes last."""
    names = list(names)
    return names[turn % len(names):] + names[:turn % len(names)]


def limit_of_allreduce(ranks, size, is_small):
    """\\return {series: microseconds}. With copies there are two ways: the better one counts."""
    output = run("the limit of all-reduce", [limit("limit_allreduce"), str(ranks), str(size), *(["3"] if is_small else [])],
                 RUN_WITHIN_S, text=True, stdout=subprocess.PIPE)
    found = {}
    for way, median in (line.split() for line in output.splitlines()):
        found[LIMITS[way]] = min(float(median), found.get(LIMITS[way], float("inf")))
    return found


def measure_allreduce(figures, options):
    sizes = [4 * KILO, MEGA] if options.small else list(REPETITIONS)
    series = {("shm", "bucket"): "shm, bucket", ("shm", "own"): "shm, own tensor", ("gloo", "own"): "gloo",
              ("torch", "own"): "torch's gloo"}
    for count in (2, 4):
        with contextlib.ExitStack() as stack:
            programs = {backend: stack.enter_context(Ranks(bench("allreduce"), count,
                                                           {"LRUN_PROCESS_GROUP_BACKEND": backend}))
                        for backend in ("shm", "gloo")}
            if PYTHON:
                programs["torch"] = stack.enter_context(Ranks(torch_rank("allreduce"), count))
            for turn in range(-1, options.rounds):
                for size in sizes:
                    found = {}
                    for name in in_turn([*programs, "limit"], turn):
                        if name == "limit":
                            found.update(limit_of_allreduce(count, size, options.small))
                        else:
                            answer = programs[name].order(size, REPETITIONS[size])
                            found.update({series[name, kind]: value for kind, value in answer.items()})
                    for name, value in found.items() if turn >= 0 else ():
                        figures.add("allreduce", f"{count} x {size}", name, "us", value)


def measure_step(figures, options):
    """Two devices in all, and the batch is that of one: dp has both devices in one process, and so the whole batch."""
    two = {"LRUN_DEVICES": "cpu,cpu"}
    one = {"LRUN_DEVICES": "cpu", "LOCAL_RANK": "0", "LOCAL_WORLD_SIZE": "1", "GROUP_RANK": "{rank}",
           "GROUP_WORLD_SIZE": "2", "LRUN_PROCESS_GROUP_BACKEND": "gloo"}
    nets = [("linear", 8, 1)] if options.small else [("linear", 256, 3), ("linear", 64, 3), ("cnn", 64, 7)]
    with contextlib.ExitStack() as stack:
        def start(command, count, variables=None):
            return stack.enter_context(Ranks(command, count, variables))

        programs = {"ddp": start(bench("step"), 2, {"LRUN_STRATEGY": "ddp"}),
                    "dp": start(bench("step"), 1, {"LRUN_STRATEGY": "dp", **two}),
                    "ddp2, 1 x 2": start(bench("step"), 1, {"LRUN_STRATEGY": "ddp2", **two}),
                    "ddp2, 2 x 1": start(bench("step"), 2, {"LRUN_STRATEGY": "ddp2", **one})}
        if PYTHON:
            programs["torch"] = start(torch_rank("step"), 2)
        kinds = {"ddp": ("plain", "no_sync", "synced", "watched", "trained"),
                 "torch": ("plain", "no_sync", "synced", "trained")}
        orders = [(name, kind) for name in programs for kind in kinds.get(name, ("trained",))]
        for net, batch, repetitions in nets:
            for turn in range(-2, options.rounds):
                for name, kind in in_turn(orders, turn):
                    devices = 2 if name in ("dp", "ddp2, 1 x 2") else 1
                    found = programs[name].order(net, batch * devices, kind, repetitions)
                    if turn >= 0:
                        figures.add("step", f"{net} {batch}", f"{name}, {kind}", "ms", found[kind])


def measure_sharded(figures, options):
    for count in (1, 2, 4):
        with contextlib.ExitStack() as stack:
            programs = {"lrun": stack.enter_context(Ranks(bench("sharded"), count))}
            if PYTHON and not options.small:
                programs["torch"] = stack.enter_context(Ranks(torch_rank("sharded"), count))
            for turn in range(-1, options.rounds):
                for name in in_turn(programs, turn):
                    for kind, value in programs[name].order("step").items() if turn >= 0 else ():
                        is_bytes = kind.endswith("_bytes")
                        figures.add("sharded", str(count), f"{name}, {kind.removesuffix('_bytes')}",
                                    "MiB" if is_bytes else "ms", value / MEGA if is_bytes else value)


def first_step_of(name, command):
    """Milliseconds from the command to the slowest rank's first all-reduce and first step."""
    with tempfile.TemporaryDirectory() as folder:
        begin = time.clock_gettime(time.CLOCK_MONOTONIC)
        run(name, [*command, f"{folder}/rank"], RUN_WITHIN_S,
            env={**os.environ, "OMP_NUM_THREADS": "1", "LRUN_STATE": f"{folder}/state"})
        lines = [line.split() for file in pathlib.Path(folder).glob("rank.*") for line in file.read_text().splitlines()]
        if len(lines) != 4:
            raise Failed(f"{name}: its ranks wrote {lines} and not two times each")
        return {what: 1e3 * (max(float(time) for name, time in lines if name == what) - begin)
                for what in ("all_reduce", "step")}


def measure_first_step(figures, options):
    lrun = [os.environ.get("LRUN_PROGRAM", str(BUILD / "lrun")), "-n", "2"]
    commands = {"lrun, C++": lrun + bench("first_step")}
    if PYTHON:
        script = str(HERE / "first_step.py")
        commands["lrun, Python"] = [*lrun, PYTHON, script]
        commands["torchrun, Python"] = [PYTHON, "-m", "torch.distributed.run", "--nproc-per-node", "2",
                                        "--master-port", "{port}", script]
    if options.small:
        commands = {"lrun, C++": commands["lrun, C++"]}
    for turn in range(-1, options.rounds):
        for name in in_turn(commands, turn):
            found = first_step_of(name, [word.replace("{port}", str(free_port())) for word in commands[name]])
            for what, value in found.items() if turn >= 0 else ():
                figures.add("first_step", what, name, "ms", value)


MEASURES = {"first_step": measure_first_step, "allreduce": measure_allreduce, "step": measure_step,
            "sharded": measure_sharded}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-k", type=int, default=7, dest="rounds", help="rounds, at least 7 for what is published [7]")
    parser.add_argument("--real-time", action="store_true", help="before all other programs of a busy machine")
    parser.add_argument("--try", action="store_true", dest="small", help="small work, nothing is written")
    parser.add_argument("names", nargs="*", metavar="FIGURE")
    options = parser.parse_args()
    if options.small:
        options.rounds = 1
    unknown = set(options.names) - set(MEASURES)
    if unknown:
        parser.error(f"unknown figure '{unknown.pop()}': {', '.join(MEASURES)}")
    if not PYTHON:
        print("LRUN_TORCH_PYTHON names no Python: torch's figures are left out", flush=True)
    if options.real_time:
        os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(1))
    measured = Figures()
    measured.add("run", "real-time", "priority", "-", float(options.real_time))
    measured.add("run", "load", "before", "-", os.getloadavg()[0])
    for name in options.names or MEASURES:
        begin = time.monotonic()
        MEASURES[name](measured, options)
        print(f"{name}: {time.monotonic() - begin:.0f} s", flush=True)
    rows = measured.rows()
    print(tsv_of(rows), end="")
    if options.small:
        return
    if not PYTHON:
        print("bench/runtime.tsv is left as it was: it is to have all peers of one run")
        return
    replace(rows)
    plot_runtime.main([])


if __name__ == "__main__":
    reporting(main)
