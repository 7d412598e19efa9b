#!/usr/bin/env python3
"""preload.py [-n WORKERS] [-k ROUNDS] [--lrun PROGRAM] [--python PYTHON]: workers of Python that import torch, their start and
their restart after a kill -9, under torchrun, lrun, and lrun with --preload, also auto. Beside them: one interpreter that imports the
same modules. The commands take turns."""
import argparse
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

import commands

MODULES = "torch,torch.distributed,torch.optim,torch._dynamo,torch.nn.parallel"
PROGRAM = str(pathlib.Path(__file__).resolve().parent / "preload_train.py")
LIMIT_S = 600


def now():
    return time.clock_gettime(time.CLOCK_MONOTONIC)


def commands_of(arguments):
    lrun = [arguments.lrun, "-n", str(arguments.n), "--max-restarts", "1", "--restart-backoff", "0s", "--grace", "1s",
            "--python", arguments.python]
    torchrun = [arguments.python, "-m", "torch.distributed.run", "--nproc-per-node", str(arguments.n), "--max-restarts", "1",
                "--monitor-interval", "0.1", "--standalone"]
    return {"torchrun": torchrun, "lrun": lrun, "lrun --preload": [*lrun, "--preload", MODULES],
            "lrun --preload auto": [*lrun, "--preload", "auto"]}


def read(folder, attempt, workers):
    """\\return one {name: value} for each rank; empty where the attempt did not come to its first step."""
    paths = [pathlib.Path(folder) / f"times.{attempt}.{rank}" for rank in range(workers)]
    if not all(path.exists() for path in paths):
        return []
    return [{name: float(value) for name, value in (line.split() for line in path.read_text().splitlines())} for path in paths]


def one_run(command, workers):
    """Milliseconds from the command to the last import and step, from the death to those of the restart; MiB of all."""
    with tempfile.TemporaryDirectory() as folder:
        began = now()
        subprocess.run([*command, PROGRAM, f"{folder}/times"], env={**os.environ, "OMP_NUM_THREADS": "1"}, timeout=LIMIT_S,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
        first, second = read(folder, 0, workers), read(folder, 1, workers)
    if not first:
        return {}
    last = lambda ranks, what, since: 1000 * (max(rank[what] for rank in ranks) - since)
    figures = {"start: imported": last(first, "imported", began), "start: stepped": last(first, "stepped", began),
               "memory of all": first[0]["kb"] / 1024}
    if second:
        figures["restart: imported"] = last(second, "imported", first[-1]["died"])
        figures["restart: stepped"] = last(second, "stepped", first[-1]["died"])
    return figures


def one_import(python):
    began = now()
    subprocess.run([python, "-c", f"import {MODULES}"], check=True, timeout=LIMIT_S)
    return {"start: imported": 1000 * (now() - began)}


def cell(ones, figure, unit):
    """The median, and how often the workers did not come so far."""
    values = [one[figure] for one in ones if figure in one]
    if not values:
        return "–"
    failed = f" ({len(ones) - len(values)} of {len(ones)} failed)" if len(values) < len(ones) else ""
    return f"{statistics.median(values):,.0f} {unit}{failed}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-n", type=int, default=8)
    parser.add_argument("-k", type=int, default=7)
    parser.add_argument("--lrun", default="build/release/lrun")
    parser.add_argument("--python", default=sys.executable)
    arguments = parser.parse_args()
    commands.say_load()
    compared = commands_of(arguments)
    rounds = {name: [] for name in ["one import", *compared]}
    for _ in range(arguments.k):
        rounds["one import"].append(one_import(arguments.python))
        for name, command in compared.items():
            rounds[name].append(one_run(command, arguments.n))
    print("| | " + " | ".join(rounds) + " |\n|---|" + "---|" * len(rounds))
    for figure in ("start: imported", "start: stepped", "restart: imported", "restart: stepped", "memory of all"):
        unit = "MiB" if figure.startswith("memory") else "ms"
        print(f"| {figure} | " + " | ".join(cell(ones, figure, unit) for ones in rounds.values()) + " |")


if __name__ == "__main__":
    main()
