#!/usr/bin/env python3
"""explanations.py [--try] [NAME...]: seeded failures, as `lrun explain` tells them: the right cause, rank, place and fix in at
most 1000 tokens, and beside it the size of what torchrun prints of the same program.

A token is four characters, or a word where there are more words. Needs LRUN_PROGRAM. Programs of torch, and torchrun, run
where LRUN_TEST_PYTHON names a Python that has it. --try leaves torchrun out; NAME... takes only these failures. Ends with 1
when an explanation is wrong or too long."""
import argparse
import dataclasses
import json
import os
import re
import select
import shutil
import signal
import subprocess
import sys
import tempfile

LRUN = os.environ.get("LRUN_PROGRAM", "lrun")
MOST_TOKENS = 1000
MOST_BYTES = 4096
WORKERS = 3
LIMIT_S = 60
TORCHRUN_LIMIT_S = 90

RANK = "import os, sys, time\nrank = int(os.environ['RANK'])\n"
WAIT = "time.sleep(100)\n"


@dataclasses.dataclass
class Failure:
    name: str
    program: str = ""                  # of the file fails.py
    error: str = ""                    # in 'error' or the text, a regular expression
    cause: str = "own_error"
    rank: int = 1                      # -1: nobody is to blame; None: all fail alike, and the first one is
    place: str = ""                    # a text of the program's line, whose place has to be told; empty: there is none
    fix: str = ""                      # in the text, a regular expression; empty: the place says it
    options: tuple = ()                # of lrun
    command: tuple = ("fails.py",)
    reason: str = "worker_failed"
    tried: str = ""
    torch: bool = False
    by_signal: bool = False            # SIGTERM reaches lrun once a rank has said 'ready'
    begins: bool = True                # False: nothing is kept of it; its two lines on stderr are the explanation


FAILURES = [
    Failure("exception", RANK + "def step(batch):\n  raise ValueError('bad batch')\nif rank == 1: step(0)\n" + WAIT,
            "ValueError: bad batch", place="raise ValueError"),
    Failure("segfault", RANK + "import ctypes, faulthandler\nfaulthandler.enable()\nif rank == 1: ctypes.string_at(0)\n" + WAIT,
            "SIGSEGV", "fatal_signal", place="string_at"),
    Failure("killed", RANK + "import signal\nif rank == 1: os.kill(os.getpid(), signal.SIGKILL)\n" + WAIT,
            "SIGKILL", "fatal_signal"),
    Failure("out of memory", RANK + "import resource\nif rank == 1:\n  resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30))\n"
            "  cache = bytearray(8 << 30)\n" + WAIT, "MemoryError", place="bytearray", fix="out of memory"),
    Failure("missing file", RANK + "if rank == 1: open('/data/train.csv')\n" + WAIT, "No such file.*/data/train.csv",
            place="open(", fix="namei"),
    Failure("import error", RANK + "if rank == 1: import no_such_package\n" + WAIT, "No module named 'no_such_package'",
            place="import no_such", fix="install it"),
    Failure("wrong device", RANK + "import torch\nif rank == 1: torch.cuda.set_device(7)\n" + WAIT, "RuntimeError|AcceleratorError",
            place="set_device(", fix="GPU", torch=True),
    Failure("argparse", RANK + "import argparse\np = argparse.ArgumentParser()\np.add_argument('--data', required=rank == 1)\n"
            "p.parse_args()\n" + WAIT, "required: --data"),
    Failure("assertion", RANK + "if rank == 1:\n  assert rank % 2 == 0, 'odd rank'\n" + WAIT, "AssertionError: odd rank",
            place="assert"),
    Failure("exit 7", RANK + "if rank == 1: sys.exit(7)\n" + WAIT, "code 7", fix=r"exit\(7\)"),
    Failure("SIGTERM", "print('ready', flush=True)\nimport time\n" + WAIT, "SIGTERM", "", -1, reason="interrupted",
            by_signal=True),
    Failure("not a number", RANK + "import math\nloss = float('nan')\nif rank == 1 and math.isnan(loss):\n"
            "  raise FloatingPointError('loss is nan at step 3')\n" + WAIT, "loss is nan at step 3", place="raise Floating"),
    Failure("hang", RANK + "import threading\nlock = threading.Lock()\nlock.acquire()\nlock.acquire()\n", "no worker made progress",
            "", -1, "lock.acquire()", "", ("--hang-timeout", "2s", "--grace", "1s"), reason="hang"),
    Failure("time limit", RANK + WAIT, "--timeout", "", -1, options=("--timeout", "1s", "--grace", "1s"), reason="timed_out"),
    Failure("missing program", error="No such file", rank=-1, command=("./no-such-program",), fix="check the path", begins=False),
    Failure("port in use", RANK + "import socket\nif rank == 1:\n  s = socket.create_server(('127.0.0.1', 0))\n"
            "  socket.create_server(s.getsockname())\n" + WAIT, "[Aa]ddress already in use", place="create_server(s.",
            fix="port"),
    Failure("permission", RANK + "import subprocess\nif rank == 1: subprocess.run(['./fails.py'])\n" + WAIT, "PermissionError",
            place="subprocess.run", fix="ls -l"),
    Failure("file too large", RANK + "import resource\nif rank == 1:\n  resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))\n"
            "  with open('checkpoint', 'wb') as f: f.write(bytes(4 << 20))\n" + WAIT, "File too large", place="f.write"),
    Failure("deadlocked barrier", RANK + "import datetime\nimport torch.distributed as dist\n"
            "dist.init_process_group('gloo', timeout=datetime.timedelta(seconds=4))\n"
            "if rank != 1: dist.barrier()\n" + WAIT, r"rank 1 is in [^\n]*fails\.py:7", "watchdog_abort", None, "dist.barrier", torch=True),
    Failure("failed restart", RANK + "if rank == 1: sys.exit('no data')\n" + WAIT, "no data|code 1",
            options=("--max-restarts", "2", "--restart-backoff", "0s"), tried="attempt 0: rank 1: exited with code 1"),
    Failure("missing module", error="No module named", command=("-m", "no_such_package.train"), rank=None, fix="install it"),
]


def tokens(text):
    return max((len(text) + 3) // 4, len(text.split()))


def has_torch(python):
    return bool(python) and subprocess.run([python, "-c", "import torch"], stderr=subprocess.DEVNULL, check=False).returncode == 0


def place_of(failure):
    """'fails.py:3', as the program's line is told."""
    wanted = failure.place
    lines = [number for number, line in enumerate(failure.program.splitlines(), 1) if wanted and wanted in line]
    return f"fails.py:{lines[-1]}" if lines else ""


def run(words, folder, environment, limit_s, by_signal=False):
    """All that it prints; it has a process group of its own, which is ended with it."""
    with tempfile.TemporaryFile("w+", errors="replace") as output:
        child = subprocess.Popen(words, cwd=folder, env=environment, stdin=subprocess.DEVNULL, start_new_session=True,
                                 stdout=subprocess.PIPE if by_signal else output, stderr=output)
        try:
            if by_signal:
                if select.select([child.stdout], [], [], limit_s)[0]:
                    child.stdout.readline()
                child.send_signal(signal.SIGTERM)
            child.communicate(timeout=limit_s)
        except subprocess.TimeoutExpired:
            os.killpg(child.pid, signal.SIGTERM)
            try:
                child.communicate(timeout=limit_s)
            except subprocess.TimeoutExpired:
                os.killpg(child.pid, signal.SIGKILL)
                child.communicate(timeout=limit_s)
        output.seek(0)
        return output.read()


def explain(folder, environment, *options):
    return subprocess.run([LRUN, "explain", *options], cwd=folder, env=environment, check=True, timeout=LIMIT_S,
                          stdout=subprocess.PIPE, text=True).stdout


def faults_of(failure, text, found):
    """The faults of an explanation, in words."""
    wrong = []
    told = text + found["error"]
    if not re.search(failure.error, told):
        wrong.append(f"'{failure.error}' is not in it")
    if not re.search(failure.fix, text):
        wrong.append(f"the fix '{failure.fix}' is not in it")
    for key in ("cause", "rank", "reason"):
        if getattr(failure, key) not in (None, found[key]):
            wrong.append(f"{key} is {found[key]!r}, not {getattr(failure, key)!r}")
    place = place_of(failure)
    if place and place not in (text if failure.rank == -1 else found["place"]):
        wrong.append(f"place is {found['place']!r}, not {place!r}")
    if failure.tried and not any(failure.tried in line for line in found["tried"]):
        wrong.append(f"'{failure.tried}' is not in {found['tried']}")
    if not found["next"].startswith("lrun "):
        wrong.append(f"next is {found['next']!r}")
    if tokens(text) > MOST_TOKENS or len(text.encode()) > MOST_BYTES:
        wrong.append(f"{tokens(text)} tokens, {len(text.encode())} bytes")
    return wrong


def told_by_lrun(failure, folder, environment):
    """(text, what is wrong with it)"""
    words = [LRUN, "-n", str(WORKERS), *failure.options, *failure.command]
    printed = run(words, folder, environment, LIMIT_S, failure.by_signal)
    if not failure.begins:
        wrong = [word for word in (failure.error, failure.fix) if not re.search(word, printed)]
        return printed, [f"'{word}' is not in it" for word in wrong]
    text = explain(folder, environment)
    as_json = explain(folder, environment, "--json")
    wrong = faults_of(failure, text, json.loads(as_json))
    if tokens(as_json) > MOST_TOKENS or len(as_json.encode()) > MOST_BYTES:
        wrong.append(f"as JSON: {tokens(as_json)} tokens, {len(as_json.encode())} bytes")
    return text, wrong


def told_by_torchrun(failure, folder, python):
    if any(word.startswith("--hang") or word == "--timeout" for word in failure.options):
        return None  # it has no such limit
    restarts = ["--max-restarts", "2"] if "--max-restarts" in failure.options else []
    environment = {name: value for name, value in os.environ.items() if not name.startswith("LRUN_")}
    return run([python, "-m", "torch.distributed.run", "--nproc-per-node", str(WORKERS), *restarts, *failure.command], folder,
               environment, TORCHRUN_LIMIT_S, failure.by_signal)


def row(name, text, wrong, others):
    size = f"{len(text.encode()):5} {tokens(text):6}"
    beside = "        –      –" if others is None else f"{len(others.encode()):9} {tokens(others):6}"
    return f"{name:20} {size} {beside}  " + ("right" if not wrong else "WRONG: " + "; ".join(wrong))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--try", action="store_true", dest="small")
    parser.add_argument("--show", action="store_true", help="also print each explanation")
    parser.add_argument("names", nargs="*")
    arguments = parser.parse_args()
    python = os.environ.get("LRUN_TEST_PYTHON", "")
    torch = has_torch(python)
    failed = 0
    print(f"{'failure':20} {'bytes':>5} {'tokens':>6} {'torchrun':>9} {'tokens':>6}", flush=True)
    for failure in FAILURES:
        if arguments.names and failure.name not in arguments.names:
            continue
        if failure.torch and not torch:
            print(f"{failure.name:20} left out: no torch", flush=True)
            continue
        folder = tempfile.mkdtemp(prefix="lrun-explanations-")
        try:
            with open(os.path.join(folder, "fails.py"), "w", encoding="utf-8") as file:
                file.write(failure.program)
            environment = dict(os.environ, LRUN_STATE=os.path.join(folder, "state"), LRUN_ACCELERATOR="cpu")
            if torch:
                environment["LRUN_PYTHON"] = python
            text, wrong = told_by_lrun(failure, folder, environment)
            others = told_by_torchrun(failure, folder, python) if torch and not arguments.small else None
        finally:
            shutil.rmtree(folder, ignore_errors=True)
        failed += bool(wrong)
        print(row(failure.name, text, wrong, others), flush=True)
        if arguments.show or wrong:
            print("".join(f"  {line}\n" for line in text.splitlines()), flush=True)
    sys.exit(failed > 0)


if __name__ == "__main__":
    main()
