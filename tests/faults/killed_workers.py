#!/usr/bin/env python3
"""killed_workers.py [--minutes M] [--every SECONDS] [--seed S] [--lrun PROGRAM]: examples/resume.py with four workers, of which two
are killed by chance again and again. Each time the workers must go on from the newest state in memory, and the parameters at the end
must be those of a run that nobody disturbs, bit by bit. Run it with a Python that has torch."""
import argparse
import contextlib
import os
import pathlib
import random
import re
import signal
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
WORKERS = 4
LIMIT_S = 120
# The example, with a pause after each save; it tells its pids, and the step that is saved in memory. After its first step DDP would
# order its buckets anew, and gloo would add the same gradients in another order: with more than two ranks other bits.
WORKER = """
import functools, os, pathlib, sys, time
sys.path.insert(0, sys.argv.pop(1))
pause, notes = float(sys.argv.pop(1)), pathlib.Path(sys.argv.pop(1))
import resume

def tell(name, number):
    (notes / f"{name}.new").write_text(str(number))
    (notes / f"{name}.new").rename(notes / name)

def save_and_tell(path, state, save=resume.save):
    save(path, state)
    if path.startswith(os.environ["LRUN_MEMORY_DIR"]):
        tell("step", state["step"])
        time.sleep(pause)

tell("pid." + os.environ["RANK"], os.getpid())
resume.save = save_and_tell
resume.DistributedDataParallel = functools.partial(resume.DistributedDataParallel, find_unused_parameters=True)
resume.main()
"""


class Run:
    """lrun with the workers."""

    def __init__(self, lrun, folder, steps, pause):
        self.folder = pathlib.Path(folder)
        self.folder.mkdir()
        script = self.folder / "worker.py"
        script.write_text(WORKER)
        self.output = open(self.folder / "output", "wb")
        self.process = subprocess.Popen(
            [lrun, "-n", str(WORKERS), "--max-restarts", "1000000", "--restart-backoff", "0s", "--python", sys.executable,
             "--preload", "torch,torch.distributed,torch.optim,torch._dynamo", script, ROOT / "examples", str(pause), self.folder,
             self.folder / "state.pt", str(steps)], stdout=self.output, stderr=subprocess.STDOUT)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        try:
            self.process.wait(LIMIT_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
        self.output.close()

    def text(self):
        return (self.folder / "output").read_text(errors="replace")

    def number(self, name):
        """What a worker has told; 0 before."""
        path = self.folder / name
        return int(path.read_text()) if path.exists() else 0

    def fail(self, text):
        sys.exit(f"killed_workers.py: error: {text}\n{self.text()[-4000:]}")

    def wait_until(self, condition, what):
        """Or until lrun has ended."""
        deadline = time.monotonic() + LIMIT_S
        while not condition() and self.process.poll() is None:
            if time.monotonic() > deadline:
                self.fail(f"{what} not within {LIMIT_S} s")
            time.sleep(0.01)

    def begins(self):
        """The steps from which rank 0 went on."""
        return [int(step) for step in re.findall(r"goes on from step (\d+) in memory", self.text())]

    def kill_two(self):
        """\\return how many steps had been saved when they were killed, and from which step all went on: (0, 0) if the run has
        ended."""
        before = len(self.begins())
        pids = [self.number(f"pid.{rank}") for rank in random.sample(range(WORKERS), 2)]
        saved = self.number("step")
        if self.process.poll() is not None:
            return 0, 0
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):  # lrun may have ended the second one because of the first
                os.kill(pid, signal.SIGKILL)
        self.wait_until(lambda: len(self.begins()) > before, "a restart")
        if len(self.begins()) == before:
            return 0, 0
        self.wait_until(lambda: self.number("step") > self.begins()[-1], "a step after a restart")
        return saved, self.begins()[-1]

    def parameters(self):
        """Of all ranks, when the run is over."""
        while self.process.poll() is None:
            step = self.number("step")
            self.wait_until(lambda: self.number("step") > step, "another step, or the end,")
        code = self.process.returncode
        found = re.findall(r"parameters ([0-9a-f]{8})", self.text())
        if code != 0 or len(found) != WORKERS or len(set(found)) != 1:
            self.fail(f"code {code}, parameters {found}")
        return found[0]


def disturbed(arguments, folder, steps):
    """\\return the number of kills, and the parameters at the end."""
    kills = 0
    end = time.monotonic() + 60 * arguments.minutes
    with Run(arguments.lrun, folder, steps, arguments.pause) as run:
        run.wait_until(lambda: run.number("step") > 0, "the first step")
        while time.monotonic() < end - arguments.every:
            time.sleep(arguments.every)
            saved, begin = run.kill_two()
            if begin == 0:
                run.fail("the run ended before its time")
            if begin < saved:
                run.fail(f"step {saved} was saved, but the workers went on from {begin}")
            kills += 1
        return kills, run.parameters()


def undisturbed(arguments, folder, steps):
    with Run(arguments.lrun, folder, steps, 0) as run:
        return run.parameters()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--every", type=float, default=15, help="seconds between kills")
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--pause", type=float, default=0.1, help="seconds after each step")
    parser.add_argument("--lrun", default="build/dev/lrun")
    arguments = parser.parse_args()
    if 60 * arguments.minutes < 2 * arguments.every:
        parser.error("there is no time for a kill")
    random.seed(arguments.seed)
    steps = int(60 * arguments.minutes / arguments.pause * 1.1)
    with tempfile.TemporaryDirectory() as work:
        kills, found = disturbed(arguments, f"{work}/disturbed", steps)
        wanted = undisturbed(arguments, f"{work}/undisturbed", steps)
    if found != wanted:
        sys.exit(f"killed_workers.py: error: the parameters are {found} after {kills} kills, and {wanted} without")
    print(f"{kills} times two of {WORKERS} workers were killed in {steps} steps, seed {arguments.seed}: no saved step was lost, and the "
          f"parameters are {found} as without")


if __name__ == "__main__":
    main()
