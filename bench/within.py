#!/usr/bin/env python3
"""within.py [-q] SECONDS COMMAND...: runs a program that has so long; then it and all of its process group are ended.

-q keeps back what it writes to stderr, of which the last lines are shown when it fails. Ends with 1 when it failed or did
not end, and says so. Benchmarks of Python use Program and reporting() of this file."""
import os
import signal
import subprocess
import sys
import tempfile
import time

LINES_SHOWN = 10
MOST_BYTES_READ = 1 << 16
GRACE_S = 10


class Failed(Exception):
    """What keeps a figure from being taken, in words for people."""


class Program:
    """A program in a process group of its own that reads nothing. What it writes to stderr is kept."""

    def __init__(self, name, command, **options):
        self.name = name
        self.complaints = tempfile.TemporaryFile()
        options = {"stdout": subprocess.DEVNULL, "stderr": self.complaints, **options}
        self.began = time.monotonic()
        try:
            self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, start_new_session=True, **options)
        except OSError as error:
            raise Failed(f"{name} cannot be started: {error}") from error

    def said_last(self):
        """Its last lines, each below the other; empty where there are none."""
        file = self.complaints.fileno()
        start = max(0, os.fstat(file).st_size - MOST_BYTES_READ)
        # Not by read(), which would move the place where it writes.
        lines = os.pread(file, MOST_BYTES_READ, start).decode(errors="replace").splitlines()
        return "".join(f"\n  | {line}" for line in lines[-LINES_SHOWN:])

    def wait(self, limit_s):
        """\\return what it wrote to stdout=PIPE. \\throws Failed  it failed, or has not ended by then and is killed."""
        try:
            output, _ = self.process.communicate(timeout=limit_s)
        except subprocess.TimeoutExpired:
            self.end()
            raise Failed(f"{self.name} did not end within {limit_s:g} s{self.said_last()}") from None
        except BaseException:
            self.end()
            raise
        if self.process.returncode != 0:
            status = self.process.returncode
            how = f"was ended by {signal.Signals(-status).name}" if status < 0 else f"ended with {status}"
            raise Failed(f"{self.name} {how}{self.said_last()}")
        return output

    def end(self):
        """Ends it and its group, unless it has ended. Those that have to end others have a moment for that."""
        if self.process.poll() is not None:
            return
        os.killpg(self.process.pid, signal.SIGTERM)
        deadline = time.monotonic() + GRACE_S
        # While it is not reaped no other group can get its number.
        while time.monotonic() < deadline and not os.waitid(
                os.P_PID, self.process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT):
            time.sleep(0.01)
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()


def run(name, command, limit_s, **options):
    """\\return what it wrote to stdout=PIPE. \\throws Failed  as Program.wait()."""
    return Program(name, command, **options).wait(limit_s)


def end_by_signal(number, _):
    raise SystemExit(128 + number)


def reporting(main):
    """Calls `main`: a failure is told in words, without where in the source it was met."""
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
        signal.signal(number, end_by_signal)
    try:
        main()
    except Failed as failure:
        sys.exit(f"bench: error: {failure}")


def main(arguments):
    is_quiet = arguments[:1] == ["-q"]
    limit, *command = arguments[is_quiet:]
    options = {} if is_quiet else {"stderr": None}
    run(os.path.basename(command[0]), command, float(limit), stdout=None, **options)


if __name__ == "__main__":
    reporting(lambda: main(sys.argv[1:]))
