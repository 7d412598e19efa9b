"""The first GPU of this machine as nvidia-smi tells of it, a process that keeps it busy, and what lrun said of a run.

The setting of the card is read and never changed.
"""
import os
import select
import subprocess
import sys
import time
from importlib.util import find_spec

from kit import Skipped, environment, expect

OCCUPANT = """import sys, torch
kept = torch.ones(1 << 28, dtype=torch.uint8, device="cuda")
torch.cuda.synchronize()
print("up", flush=True)
sys.stdin.read()
"""


def told(*arguments):
    """The lines of nvidia-smi."""
    asked = subprocess.run(["nvidia-smi", *arguments], capture_output=True, text=True, timeout=60, check=False)
    return [line.strip() for line in asked.stdout.splitlines() if line.strip()]


def fact(name):
    """One property of the first GPU, such as 'uuid'."""
    return told(f"--query-gpu={name}", "--format=csv,noheader", "--id=0")[0]


def processes():
    """The ids of the processes that compute on GPUs."""
    return told("--query-compute-apps=pid", "--format=csv,noheader")


def expect_free(seconds=20):
    """Fails the case unless every GPU is left by all processes within the time. Returns how long that took."""
    begin = time.monotonic()
    while left := processes():
        expect(time.monotonic() - begin < seconds, f"after {seconds} s process {', '.join(left)} is still on a GPU")
        time.sleep(0.1)
    return round(time.monotonic() - begin, 2)


def read_until(stream, words, seconds, times=1):
    """Reads a pipe until the words have come so many times. Fails the case where it ends, or the time is over, before
    that."""
    end, text = time.monotonic() + seconds, b""
    while text.count(words.encode()) < times:
        ready = select.select([stream], [], [], max(0.0, end - time.monotonic()))[0]
        expect(ready, f"no '{words}' after {seconds} s: {text.decode(errors='replace')}")
        piece = os.read(stream.fileno(), 65536)
        expect(piece, f"it ended without '{words}': {text.decode(errors='replace')}")
        text += piece


class Occupant:
    """A process of torch that computes on the GPU for as long as the block lasts."""

    def __enter__(self):
        # One pipe for both, so that a failure to start is told.
        self.process = subprocess.Popen([sys.executable, "-c", OCCUPANT], env=environment(), stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        try:
            read_until(self.process.stdout, "up\n", 60)
        except BaseException:
            self.process.kill()
            self.process.wait()
            raise
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        try:
            self.process.wait(timeout=30)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.process.stdout.close()


def need_module(name):
    """Skips the case where this Python has no such module."""
    if find_spec(name) is None:
        raise Skipped(f"this Python has no {name}")


def verdict(stderr):
    """The last error of lrun, which is the verdict's."""
    errors = [line for line in stderr.splitlines() if line.startswith("lrun: error: ")]
    return errors[-1] if errors else ""


def hint(stderr):
    """The last hint of lrun."""
    hints = [line for line in stderr.splitlines() if line.startswith("lrun: hint: ")]
    return hints[-1] if hints else ""


def end_of_rank(stderr):
    """The last note of lrun that says how long a rank ran, and where."""
    notes = [line for line in stderr.splitlines() if line.startswith("lrun: note: rank ") and " ran for " in line]
    return notes[-1] if notes else ""
