#!/usr/bin/env python3
"""hangs.py [--count N] [--seed S] [--healthy N] [--hosts N] [--worker PROGRAM] [KIND...]: seeded hangs of jobs, as lrun tells of
them without any option: the right rank and reason, and how long after the hang began. KIND... takes only these kinds; --healthy
adds runs with slow starts, evaluations and checkpoints, of which lrun must say nothing; --hosts gives each job so many
launchers. Jobs of Python with torch, or of bench_runtime_hang where --worker names it.

Needs LRUN_PROGRAM, and for Python LRUN_TEST_PYTHON, one with torch. Prints a table; ends with 1 when a hang was told wrong or
a healthy run was told of."""
import argparse
import dataclasses
import os
import random
import re
import select
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time

LRUN = os.environ.get("LRUN_PROGRAM", "lrun")
PYTHON = os.environ.get("LRUN_TEST_PYTHON", "python3")
LIMIT_S = 40     # from the hang on, for lrun's note
START_S = 120
HEALTHY_S = 400
GOAL_S = 10

# Ranks train; at STEP the function hang() of the kind is called by all, with the culprit's rank.
PROGRAM = """
import ctypes, os, signal, sys, threading, time
import torch, torch.distributed as dist
CULPRIT, STEP = int(sys.argv[1]), int(sys.argv[2])
rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])

def say(text):
    os.write(1, (text + chr(10)).encode())

{hang}

def step(number):
    gradient = torch.ones(1000) * number
    if number == STEP:
        if rank == CULPRIT:
            say("hangs %f" % time.time())
        gradient = hang(gradient) if rank == CULPRIT or ALL else gradient
    if gradient is not None:
        dist.all_reduce(gradient)

{begin}
for number in range(STEP + 3):
    step(number)
    say("step %d" % number)
dist.barrier()
"""
BEGIN = "dist.init_process_group('gloo')\n"


@dataclasses.dataclass
class Kind:
    name: str
    hang: str         # the function hang(gradient); what it returns is summed, None: nothing
    told: str         # in lrun's note, a regular expression with {rank} and {others}
    begin: str = BEGIN


def hang(body, all_ranks=False):
    return f"ALL = {all_ranks}\ndef hang(gradient):\n" + "".join(f"    {line}\n" for line in body.splitlines())


KINDS = [
    Kind("skipped collective", hang("return None"), r"rank {rank} waits in (all_reduce|barrier)|ranks? {others} waits? in all_reduce"),
    Kind("other shape", hang("dist.all_reduce(torch.ones(1_000_000))\nreturn None"), "tensors of other sizes"),
    Kind("other order", hang("dist.broadcast(gradient, 0)\nreturn gradient"), r"rank {rank} waits in broadcast"),
    Kind("loader", hang("def load_batch():\n    r, w = os.pipe()\n    return os.read(r, 1)\nload_batch()\nreturn gradient"),
         r"rank {rank} is in read\(\)[^\n]*load_batch"),
    Kind("mutex in C++", hang("lock = ctypes.create_string_buffer(64)\nlibc = ctypes.CDLL(None)\nlibc.pthread_mutex_lock(lock)\n"
                              "def compute():\n    libc.pthread_mutex_lock(lock)\ncompute()\nreturn gradient"),
         r"rank {rank} is in futex\(\)[^\n]*compute"),
    Kind("GIL held", hang("def native():\n    ctypes.PyDLL(None).sleep(1000)\nnative()\nreturn gradient"),
         r"rank {rank} [^\n]*(sleep|native)"),
    Kind("exited rank", hang("dist.destroy_process_group = lambda: None\nos._exit(0)"), r"rank {rank} (has ended|exited with code 0: [^\n]*waited for it)"),
    Kind("private store", hang("return gradient"), r"rank {rank} does not use this run's store",
         begin="if rank == CULPRIT:\n    say('hangs %f' % time.time())\n    import socket\n    held = socket.create_server(('127.0.0.1', 0))\n"
               "    os.environ['MASTER_PORT'] = str(held.getsockname()[1])\n" + BEGIN),
    Kind("full disk", hang("def save():\n    while True:\n        try:\n            os.write(os.open('/dev/full', os.O_WRONLY), b'x')\n"
                           "        except OSError:\n            time.sleep(2)\nsave()\nreturn gradient"),
         r"rank {rank} [^\n]*save"),
    Kind("SIGSTOP", hang("os.kill(os.getpid(), signal.SIGSTOP)\nreturn gradient"), r"rank {rank} [^\n]*(SIGSTOP|stopped)"),
]

# Of bench_runtime_hang, by the same names. liblrun tells of the first three and of an exited rank itself.
WORKER_KINDS = {
    "skipped collective": r"rank {rank} [^\n]*(called|calls|waits in) ",
    "other shape": r"rank {rank} [^\n]*1000000|1000000[^\n]*rank {rank}",
    "other order": r"rank {rank} called barrier|barrier[^\n]*rank {rank}",
    "loader": r"rank {rank} is in read\(\) of a pipe, called from load_batch\(\)",
    "socket": r"rank {rank} is in recv\w*\(\) of a socket, called from fetch_batch\(\)",
    "mutex": r"rank {rank} is in futex\(\), called from compute\(\)",
    "queue": r"rank {rank} is in futex\(\), called from take_from_queue\(\)",
    "exited rank": r"rank {rank} (has ended|exited with code 0: [^\n]*waited for it)",
    "full disk": r"rank {rank} is in \w*nanosleep\(\), called from save\(\)",
    "SIGSTOP": r"rank {rank} [^\n]*(SIGSTOP|stopped)",
}

HEALTHY = """
import os, random, subprocess, sys, time
import torch, torch.distributed as dist
rank = int(os.environ["RANK"])
chance = random.Random(int(sys.argv[1]))
turn = chance.randrange(4)
time.sleep(chance.uniform(0, 12) if rank == chance.randrange(int(os.environ["WORLD_SIZE"])) else 0)
dist.init_process_group('gloo')
def evaluate(seconds):
    end = time.time() + seconds
    while time.time() < end:
        torch.ones(300, 300) @ torch.ones(300, 300)
def save(seconds):
    with open(os.path.join(sys.argv[2], f"checkpoint{rank}"), "wb") as file:
        end = time.time() + seconds
        while time.time() < end:
            file.write(bytes(1 << 20)); file.flush(); os.fsync(file.fileno()); file.seek(0)
def fetch(seconds):
    subprocess.run(["sleep", str(min(seconds, 4))], stdout=subprocess.PIPE)
def look_for_a_file(seconds):
    end = time.time() + seconds
    while time.time() < end:
        os.path.exists("/nowhere")
        time.sleep(0.2)
for number in range(5):
    dist.all_reduce(torch.ones(1000))
    if rank == 0:
        [evaluate, save, fetch, look_for_a_file][(number + turn) % 4](chance.uniform(2, 12))
    dist.barrier()
"""


class Run:
    """A job of lrun, whose output is read as it comes."""

    def __init__(self, ranks, words, folder, hosts):
        environment = dict(os.environ, PATH=os.path.dirname(PYTHON) + ":" + os.environ["PATH"], XDG_STATE_HOME=folder,
                           OMP_NUM_THREADS="1")
        for name in [name for name in environment if name.startswith("LRUN_")]:
            del environment[name]
        self.text = ""
        self.output, theirs = os.pipe()
        port = free_port()
        self.children = []
        for host in range(hosts):
            place = ["--rdzv-endpoint", f"127.0.0.1:{port}", "--rdzv-id", "hangs", "--nnodes", str(hosts), "--node-rank", str(host),
                     "--local-addr", f"127.0.0.{host + 1}"] if hosts > 1 else []
            self.children.append(subprocess.Popen([LRUN, "-n", str(ranks // hosts), *place, *words], cwd=folder, env=environment,
                                                  stdin=subprocess.DEVNULL, stdout=theirs, stderr=subprocess.STDOUT))
        os.close(theirs)

    def read_until(self, pattern, limit_s):
        """The match, or None when the run ended or the time is over."""
        end = time.monotonic() + limit_s
        while not (found := re.search(pattern, self.text)):
            left = end - time.monotonic()
            if left <= 0 or not select.select([self.output], [], [], left)[0]:
                return None
            data = os.read(self.output, 1 << 16)
            if not data:
                return re.search(pattern, self.text)
            self.text += data.decode(errors="replace")
        return found

    def ends_well(self):
        """Waits a moment for an end whose output is over."""
        try:
            return all(child.wait(2) == 0 for child in self.children)
        except subprocess.TimeoutExpired:
            return False

    def end(self):
        for _ in range(2):  # the second one: at once
            for child in self.children:
                if child.poll() is None:
                    child.send_signal(signal.SIGINT)
            time.sleep(0.1)
        self.read_until("(?!)", 30)
        for child in self.children:
            child.wait(30)
        os.close(self.output)


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as server:
        return server.getsockname()[1]


def others_of(rank, world):
    others = [other for other in range(world) if other != rank]
    return r"[0-9, \-and]+" if len(others) > 1 else str(others[0])


def words_of(kind, numbers, worker, text, folder):
    """The command, after the options that all jobs have."""
    if worker:
        return [worker, kind, *map(str, numbers)]
    with open(os.path.join(folder, "train.py"), "w") as file:
        file.write(text)
    return ["--preload", "torch,torch.distributed", "train.py", *map(str, numbers)]


def try_hang(kind, chance, hosts, worker):
    """The fault, or empty; the seconds from the hang to the note; the note."""
    world = chance.randrange(2, 5)
    world += -world % hosts
    rank = chance.randrange(world)
    step = chance.randrange(2, 8)
    with tempfile.TemporaryDirectory() as folder:
        program = "" if worker else PROGRAM.format(hang=kind.hang, begin=kind.begin)
        run = Run(world, words_of(kind.name, [rank, step], worker, program, folder), folder, hosts)
        try:
            began = run.read_until(r"hangs ([0-9.]+)", START_S)
            if not began:
                return "it did not come to its hang", None, run.text
            told = run.read_until(r"lrun: (?:error: |note: no rank has moved)[^\n]*\n", LIMIT_S)
            took = time.time() - float(began.group(1))
            if not told:
                return f"nothing within {LIMIT_S} s", None, run.text
            run.read_until(r"lrun: hint: [^\n]*\n", 3)  # it comes with the note, or at the end of a run that ended
            words = "".join(line + "\n" for line in run.text.splitlines() if line.startswith("lrun: "))
            if not re.search(kind.told.format(rank=rank, others=others_of(rank, world)), words):
                return f"not about rank {rank} of {world}", took, words
            return "", took, words
        finally:
            run.end()


def try_healthy(chance, hosts, worker):
    """The fault of a healthy run; empty: it ended well, and lrun said nothing."""
    world = chance.randrange(2, 5)
    world += -world % hosts
    with tempfile.TemporaryDirectory() as folder:
        seed = chance.randrange(10**6)
        run = Run(world, words_of("healthy", [seed, 0] if worker else [seed, folder], worker, HEALTHY, folder), folder, hosts)
        try:
            run.read_until("(?!)", HEALTHY_S)
            if not run.ends_well():
                return "it did not end well: " + run.text[-1500:]
            return "\n".join(line for line in run.text.splitlines() if line.startswith("lrun: ") and "no rank " in line)
        finally:
            run.end()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=10, help="hangs of each kind")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--healthy", type=int, default=0)
    parser.add_argument("--hosts", type=int, default=1)
    parser.add_argument("--worker", metavar="PROGRAM", default="")
    parser.add_argument("kinds", nargs="*", metavar="KIND")
    arguments = parser.parse_args()
    signal.signal(signal.SIGINT, signal.default_int_handler)  # lrun heeds it also where a shell's job ignores it
    failed = False
    print("| hang | right | within 10 s | seconds, median and most |\n|---|---|---|---|")
    kinds = [Kind(name, "", told) for name, told in WORKER_KINDS.items()] if arguments.worker else KINDS
    for kind in kinds:
        if arguments.kinds and kind.name not in arguments.kinds:
            continue
        right, times = 0, []
        for number in range(arguments.count):
            chance = random.Random(f"{arguments.seed} {kind.name} {number}")
            wrong, took, text = try_hang(kind, chance, arguments.hosts, arguments.worker)
            if wrong:
                print(f"{kind.name} {number}: {wrong}: {text[-1500:]}", file=sys.stderr)
            right += not wrong
            if took is not None:
                times.append(took)
        failed = failed or right < arguments.count
        seconds = f"{statistics.median(times):.1f} and {max(times):.1f}" if times else "–"
        quick = sum(took <= GOAL_S for took in times)
        print(f"| {kind.name} | {right} of {arguments.count} | {quick} | {seconds} |", flush=True)
    alarms = 0
    for number in range(arguments.healthy):
        text = try_healthy(random.Random(f"{arguments.seed} healthy {number}"), arguments.hosts, arguments.worker)
        alarms += bool(text)
        if text:
            print(f"healthy {number}: {text}", file=sys.stderr)
    if arguments.healthy:
        print(f"| healthy | {alarms} alarms of {arguments.healthy} | | |")
    return 1 if failed or alarms else 0


if __name__ == "__main__":
    sys.exit(main())
