#!/usr/bin/env python3
"""memory_folder.py [-n WORKERS] [-k ROUNDS] [--mib MIB] [--lrun PROGRAM]: workers that have saved a state in LRUN_MEMORY_DIR
are killed, all at once. How long until the last one has read its state again? Beside that: the reading alone, by as many processes
that run already; and the same with a state that was saved on a disk whose cache is cold (root only)."""
import argparse
import os
import pathlib
import signal
import statistics
import subprocess
import sys
import tempfile
import time

WORKER = r"""
import os, pathlib, sys, time
attempt, rank = os.environ["TORCHELASTIC_RESTART_COUNT"], os.environ["RANK"]
folder, mib, times = pathlib.Path(sys.argv[1] or os.environ["LRUN_MEMORY_DIR"]), int(sys.argv[2]), pathlib.Path(sys.argv[3])
state = folder / f"state.{rank}"
def read():
    buffer = bytearray(mib << 20)
    with open(state, "rb", buffering=0) as file:
        view = memoryview(buffer)
        while view:
            view = view[file.readinto(view):]
def tell(what, seconds):
    (times / f"{what}.{rank}.new").write_text(f"{seconds} {os.getpid()}")
    (times / f"{what}.{rank}.new").rename(times / f"{what}.{rank}")
if attempt == "0":
    new = folder / f"new.{rank}"
    with open(new, "wb", buffering=0) as file:
        file.write(bytes(4096) + os.urandom((mib << 20) - 4096))
        os.fsync(file.fileno())
    new.rename(state)
    tell("saved", 0)
    while not (times / "read").exists():
        time.sleep(0.001)
    began = time.monotonic()
    read()
    tell("warm", time.monotonic() - began)
else:
    read()
    tell("again", time.clock_gettime(time.CLOCK_MONOTONIC))
time.sleep(600)
"""


def wait_for(times, what, workers, lrun):
    paths = [times / f"{what}.{rank}" for rank in range(workers)]
    deadline = time.monotonic() + 120
    while not all(path.exists() for path in paths):
        if lrun.poll() is not None or time.monotonic() > deadline:
            sys.exit(f"memory_folder.py: error: no '{what}' of all workers")
        time.sleep(0.002)
    return [path.read_text().split() for path in paths]


def one_run(arguments, place, cold):
    """Milliseconds from the kill to the last state that is read again, and of the reading alone."""
    with tempfile.TemporaryDirectory() as folder:
        times = pathlib.Path(folder) / "times"
        times.mkdir()
        script = pathlib.Path(folder) / "worker.py"
        script.write_text(WORKER)
        disk = pathlib.Path(folder) / "disk" if place == "disk" else ""
        if disk:
            disk.mkdir()
        lrun = subprocess.Popen([arguments.lrun, "-n", str(arguments.n), "--max-restarts", "1", "--restart-backoff", "0s", "--output",
                                 "quiet", "--memory-dir", "unlimited", str(script), str(disk), str(arguments.mib), str(times)],
                                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            wait_for(times, "saved", arguments.n, lrun)
            (times / "read").touch()
            warm = wait_for(times, "warm", arguments.n, lrun)
            if cold:
                pathlib.Path("/proc/sys/vm/drop_caches").write_text("1")
            began = time.clock_gettime(time.CLOCK_MONOTONIC)
            for _, pid in warm:
                os.kill(int(pid), signal.SIGKILL)
            again = wait_for(times, "again", arguments.n, lrun)
        finally:
            lrun.terminate()
            lrun.wait()
    return 1000 * (max(float(at) for at, _ in again) - began), 1000 * max(float(took) for took, _ in warm)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("-n", type=int, default=4)
    parser.add_argument("-k", type=int, default=7)
    parser.add_argument("--mib", type=int, default=256, help="of each worker")
    parser.add_argument("--lrun", default="build/release/lrun")
    arguments = parser.parse_args()
    places = {"memory": False, "disk": os.geteuid() == 0}
    found = {place: [] for place in places}
    for _ in range(arguments.k):
        for place, cold in places.items():
            found[place].append(one_run(arguments, place, cold))
    print(f"{arguments.n} workers with {arguments.mib} MiB each, medians of {arguments.k}, milliseconds")
    print("| state in | from the kill to the last state read again | the reading alone | difference |\n|---|---|---|---|")
    for place, runs in found.items():
        name = f"{place}, its cache cold" if places[place] else place
        again, alone = statistics.median(run[0] for run in runs), statistics.median(run[1] for run in runs)
        difference = statistics.median(run[0] - run[1] for run in runs)
        print(f"| {name} | {again:.0f} | {alone:.0f} | {difference:.0f} |")


if __name__ == "__main__":
    main()
