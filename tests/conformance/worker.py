"""A worker: it reports how it was started, then runs the Python statements in WORKER_CODE.

The report is a JSON file in WORKER_REPORTS. Statements in WORKER_SETUP run before it is written, so that a case that
sees the report can rely on them. Both use the names of this file.
"""
import json
import os
import signal
import subprocess
import sys
import time

FOLDER = os.environ["WORKER_REPORTS"]
rank, local_rank, node, attempt = (
    int(os.environ.get(name, "0")) for name in ("RANK", "LOCAL_RANK", "GROUP_RANK", "TORCHELASTIC_RESTART_COUNT"))
facts = {
    "env": dict(os.environ),
    "argv": sys.argv[1:],
    "cwd": os.getcwd(),
    "pid": os.getpid(),
    "group": os.getpgid(0),
    "session": os.getsid(0),
    "is_unbuffered": sys.stdout.write_through,
    "started": time.monotonic(),
    "signals": [],
    "children": [],
}
is_told_to_stop = False


def report(**more):
    """Writes the report, with these facts added."""
    facts.update(more)
    path = f"{FOLDER}/{rank}.{os.getpid()}.json"
    with open(path + ".new", "w", encoding="utf-8") as file:
        json.dump(facts, file)
    os.replace(path + ".new", path)


def note(*names, stops=True):
    """From now on these signals are reported, and end wait() unless stops is False."""
    def noted(number, _):
        global is_told_to_stop
        is_told_to_stop = is_told_to_stop or stops
        report(signals=[*facts["signals"], signal.Signals(number).name])
    for name in names:
        signal.signal(getattr(signal, name), noted)


def wait(name="never"):
    """Waits until the case makes the file of this name."""
    while not is_told_to_stop and not os.path.exists(f"{FOLDER}/{name}"):
        time.sleep(0.01)


def make(name):
    """Makes a file, for which other workers of this launcher may wait."""
    with open(f"{FOLDER}/{name}", "w", encoding="utf-8"):
        pass


def child(**options):
    """Starts a child that sleeps."""
    facts["children"].append(subprocess.Popen(["sleep", "600"], **options).pid)


def say(text, stream=1):
    """Writes at once to stdout (1) or stderr (2)."""
    os.write(stream, text if isinstance(text, bytes) else text.encode())


def leave_error(content):
    """Leaves an error file, as a main() of Python that is decorated with @record does."""
    with open(os.environ["TORCHELASTIC_ERROR_FILE"], "w", encoding="utf-8") as file:
        file.write(content)


exec(os.environ.get("WORKER_SETUP", ""))
report()
exec(os.environ.get("WORKER_CODE", ""))
