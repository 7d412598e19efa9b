#!/usr/bin/env python3
"""clusters.py [--try]: how long 12 workers on 3 hosts take to start, beside what the cluster itself needs for them.

  slurm   plain `srun ./worker`, `srun lrun ./worker`, and `lrun ./worker` as in a batch script, all as steps of one
          allocation.
  ssh     three ssh at once, each of which starts its four workers, and `lrun -H`.

From the first instruction of the command to that of the last worker; and the whole, to the command's end. The hosts are
those of the tests' lab on this machine. LRUN_PROGRAM names lrun, LRUN_BUILD a build folder with lrun_limits; ./dev bench
sets them. All kinds in turn. Writes clusters.tsv, and from it the table of README.md (plot_clusters.py);
--try does each once, writes nothing and only says whether everything worked."""
import os
import statistics
import subprocess
import sys
import tempfile
import time

from limit import limit
from plot import HERE
from within import Failed, Program, reporting, run

LAB = str(HERE.parent / "tests/lab/lab")
HOSTS, WORKERS, ROUNDS, LIMIT_S = 3, 4, 15, 120
NAMES = [f"h{i}" for i in range(1, HOSTS + 1)]
SSH_ALL = "for host in " + " ".join(NAMES) + "; do ssh $host {each} & done; wait"


def lab(*words, **options):
    run(f"lab {' '.join(words)}", [LAB, *words], LIMIT_S, **options)


class Allocation:
    """All hosts of the lab's Slurm, for as long as this lives, and the variables of a batch script in it."""

    def __init__(self, folder):
        file = os.path.join(folder, "allocation")
        script = f"env -0 > {file}.new && mv {file}.new {file} && exec sleep 3600"
        self.salloc = Program("salloc", [LAB, "exec", "h0", "salloc", "-N", str(HOSTS), "sh", "-c", script])
        try:
            self.wait_for(file)
        except BaseException:
            self.end()
            raise
        with open(file, "rb") as variables:
            self.variables = dict(os.fsdecode(each).split("=", 1) for each in variables.read().split(b"\0") if each)

    def wait_for(self, file):
        end = time.monotonic() + LIMIT_S
        while not os.path.exists(file):
            if time.monotonic() > end or self.salloc.process.poll() is not None:
                raise Failed(f"no allocation of Slurm{self.salloc.said_last()}")
            time.sleep(0.01)

    def end(self):
        self.salloc.end()


def commands(worker):
    """{(figure, kind): words}"""
    program, tasks = os.environ["LRUN_PROGRAM"], [f"--ntasks-per-node={WORKERS}", "--overcommit"]
    each = " & ".join([" ".join(worker)] * WORKERS) + " & wait"
    devices = ["--devices", str(WORKERS)]
    return {
        ("slurm", "srun"): ["srun", "-N", str(HOSTS), *tasks, *worker],
        ("slurm", "srun lrun"): ["srun", "-N", str(HOSTS), "--ntasks-per-node=1", program, *devices, *worker],
        ("slurm", "lrun"): [program, *devices, *worker],
        ("ssh", "ssh"): ["sh", "-c", SSH_ALL.format(each=f"'{each}'")],
        ("ssh", "lrun -H"): [program, "-H", ",".join(f"{name}:{WORKERS}" for name in NAMES), *worker],
    }


def stamps(file):
    with open(file) as lines:
        return [float(line) for line in lines]


def start(figure, kind, allocation):
    """\\return milliseconds to the last worker's first instruction, and to the command's end."""
    with tempfile.TemporaryDirectory() as folder:
        begin, file, stamp = f"{folder}/begin", f"{folder}/stamps", limit("worker_stamp")
        words = commands([stamp, file])[figure, kind]
        environment = {**(allocation.variables if figure == "slurm" else os.environ), "OMP_NUM_THREADS": "1",
                       "LRUN_STATE": folder}
        after_stamp = ["sh", "-c", '"$0" "$1"; shift; exec "$@"', stamp, begin, *words]
        lab("exec", "h0", *after_stamp, env=environment)
        end = time.clock_gettime(time.CLOCK_MONOTONIC)
        times = stamps(file)
        if len(times) != HOSTS * WORKERS:
            raise Failed(f"{' '.join(words)}: {len(times)} of {HOSTS * WORKERS} workers ran")
        first = stamps(begin)[0]
        return (max(times) - first) * 1e3, (end - first) * 1e3


def measure(rounds, allocation):
    """{(figure, kind): [(start, whole)]}, all kinds in turn, each round beginning with another one."""
    kinds = list(commands([]))
    found = {kind: [] for kind in kinds}
    for k in range(rounds):
        for kind in kinds[k % len(kinds):] + kinds[:k % len(kinds)]:
            found[kind].append(start(*kind, allocation))
    return found


def tsv_of(found, load):
    lines = ["figure\tkind\tmedian_ms\tleast_ms\twhole_median_ms\trounds"]
    for (figure, kind), pairs in found.items():
        starts, wholes = zip(*pairs)
        lines.append(f"{figure}\t{kind}\t{statistics.median(starts):.1f}\t{min(starts):.1f}\t"
                     f"{statistics.median(wholes):.1f}\t{len(pairs)}")
    return "\n".join([*lines, f"load\t{load}\t-\t-\t-\t-"]) + "\n"


def main(arguments):
    is_try = "--try" in arguments
    with open("/proc/loadavg") as file:
        load = file.read().split()[0]
    with tempfile.TemporaryDirectory() as folder:
        os.environ["LAB"] = os.path.join(folder, "lab")
        try:
            lab("slurm", "up", str(HOSTS), "--cpus", str(WORKERS))
            allocation = Allocation(folder)
            try:
                found = measure(1 if is_try else int(os.environ.get("LRUN_ROUNDS", ROUNDS)), allocation)
            finally:
                allocation.end()
        finally:
            lab("down")
    table = tsv_of(found, load)
    print(table, end="", flush=True)
    if not is_try:
        (HERE / "clusters.tsv").write_text(table)
        subprocess.run([sys.executable, HERE / "plot_clusters.py"], check=True)


if __name__ == "__main__":
    reporting(lambda: main(sys.argv[1:]))
