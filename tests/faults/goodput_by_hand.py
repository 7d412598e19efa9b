#!/usr/bin/env python3
"""goodput_by_hand.py [--schedules N] [--seed S] [--lrun PROGRAM]: jobs whose workers start, work, save, fail and are stopped by a random
schedule, and write down when. What their time was spent on is counted from these notes, and 'lrun report --goodput --json' must say the
same: each use of the time within 1 % of the whole. Schedule I of seed S is schedule 0 of seed S + I. Several are played at once."""
import argparse
import concurrent.futures
import dataclasses
import json
import os
import pathlib
import random
import select
import signal
import subprocess
import sys
import tempfile
import time

PATIENCE_S = 60
PARALLEL = 4
LAST_S = 12  # so that 1 % of the shortest job is more than a loaded machine needs to start lrun
USES = ("useful", "starting", "lost", "waiting", "stopping")
MOST_OFF = 0.01
# Times are of the wall clock. The shell's note comes before Python has started. A rank's step is told as liblrun does it: three numbers in
# the memory of LRUN_PROGRESS_FD, 64 bytes a rank.
WORKER = """
import json, os, pathlib, signal, struct, sys, time
plan, notes = json.loads(sys.argv[1]), open(sys.argv[2], "a", buffering=1)
attempt, rank = int(os.environ["TORCHELASTIC_RESTART_COUNT"]), os.environ["RANK"]
plan = plan[attempt]

def note(what):
    notes.write(f"{time.time()} {attempt} {rank} {what}\\n")

def end(code):
    note("end")
    os._exit(code)

def stop(*_):
    if plan["saves_at_stop"] and rank == "0":
        save()
    time.sleep(plan["stop_s"])
    end(0)

def save():
    new = pathlib.Path(sys.argv[3] + ".tmp")
    new.write_text("state")
    new.rename(sys.argv[3])
    note("save")

signal.signal(signal.SIGTERM, stop)
time.sleep(plan["start_s"])
failure = 3 + attempt  # the same twice would not be started again
if plan["fails_at_start"] and rank == "1":
    end(failure)
fd, offset = map(int, os.environ["LRUN_PROGRESS_FD"].split(":"))
now = time.monotonic_ns()
note("step")
os.pwrite(fd, struct.pack("QQQ", 1, now, now), offset)
for pause in plan["saves_s"]:
    time.sleep(pause)
    if rank == "0":
        save()
time.sleep(plan["rest_s"])
if plan["is_stopped"]:
    note("ready")
    time.sleep(1000)
if rank == "1" or plan["succeeds"]:
    end(0 if plan["succeeds"] else failure)
time.sleep(1000)
"""


class Failure(Exception):
    """A schedule did not go as it must."""


@dataclasses.dataclass
class Attempt:
    """One start of the workers."""

    start_s: float
    saves_s: list
    rest_s: float
    stop_s: float
    fails_at_start: bool = False
    saves_at_stop: bool = False
    is_stopped: bool = False  # lrun gets SIGTERM, as a job that is requeued does
    succeeds: bool = False


def attempts_of(chance, is_last):
    """Of one run: some fail, the last one succeeds or is stopped."""
    attempts = []
    count = chance.randint(1, 3)
    for number in range(count):
        attempt = Attempt(start_s=chance.uniform(0.5, 1.5), saves_s=[chance.uniform(0.5, 1.5) for _ in range(chance.randint(0, 2))],
                          rest_s=chance.uniform(0.5, 2), stop_s=chance.uniform(0, 1), saves_at_stop=chance.random() < 0.4)
        if number + 1 < count:
            attempt.fails_at_start = chance.random() < 0.2
        else:
            attempt.is_stopped, attempt.succeeds = not is_last, is_last
            attempt.rest_s += is_last * LAST_S
        attempts.append(attempt)
    return attempts


@dataclasses.dataclass
class Note:
    """A line that a worker wrote down."""

    time: float
    attempt: int
    rank: str
    what: str


def notes_in(path):
    """In order of their times."""
    notes = []
    for line in path.read_text().splitlines() if path.exists() else []:
        words = line.split()
        notes.append(Note(float(words[0]), int(words[1]), words[2], words[3]))
    return sorted(notes, key=lambda it: it.time)


def count_attempt(attempt, notes, signalled):
    """The times of one attempt: when it began, what it was spent on, and its end."""
    at = {(it.rank, it.what): it.time for it in notes}
    began = min(it.time for it in notes)
    ends = [at[rank, "end"] for rank in "01"]
    stop = signalled if attempt.is_stopped else max(ends) if attempt.succeeds else at["1", "end"]
    ready = stop if attempt.fails_at_start else max(at[rank, "step"] for rank in "01")
    saves = [it.time for it in notes if it.what == "save"]
    kept = stop if attempt.succeeds else min(stop, max([ready, *saves]))
    return began, {"starting": ready - began, "useful": kept - ready, "lost": stop - kept, "stopping": max(ends) - stop}, max(ends)


def wait_for(process):
    """Returns the moment in which it ended."""
    pidfd = os.pidfd_open(process.pid)
    try:
        if not select.select([pidfd], [], [], PATIENCE_S)[0]:
            raise Failure("lrun did not end")
        return time.time()
    finally:
        os.close(pidfd)


class Job:
    """A job of one or two runs, in a folder of its own."""

    def __init__(self, lrun, folder, seed):
        self.lrun, self.folder = lrun, folder
        self.chance = random.Random(seed)
        self.env = {name: text for name, text in os.environ.items() if not name.startswith(("LRUN_", "SLURM_"))}
        self.env["LRUN_STATE"] = str(folder / "state")
        (folder / "worker.py").write_text(WORKER)
        self.counted = dict.fromkeys(USES, 0.0)
        self.began = self.until = None

    def play(self):
        """Returns how far each use is off, as shares of the whole."""
        runs = self.chance.randint(1, 2)
        for number in range(runs):
            if number > 0:
                time.sleep(self.chance.uniform(0.2, 1))
            self.play_run(number, attempts_of(self.chance, number + 1 == runs))
        report = subprocess.run([self.lrun, "report", "--goodput", "--json", "hand"], env=self.env, capture_output=True, text=True,
                                check=True, timeout=PATIENCE_S)
        told = json.loads(report.stdout)
        whole = self.until - self.began
        off = {use: told[f"{use}_ms"] / 1000 - self.counted[use] for use in USES}
        off["goodput"] = (told["goodput"] - self.counted["useful"] / whole) * whole
        if told["runs"] != runs or max(map(abs, off.values())) > MOST_OFF * whole:
            raise Failure(f"of {whole:.3f} s: {json.dumps({use: round(value, 3) for use, value in off.items()})} s off\\n{report.stdout}")
        return {use: abs(value) / whole for use, value in off.items()}

    def play_run(self, number, attempts):
        notes_path, plan = self.folder / f"notes{number}", json.dumps([dataclasses.asdict(it) for it in attempts])
        words = [self.lrun, "--rdzv-id", "hand", "-n", "2", "--max-restarts", "9", "--restart-backoff", f"{self.chance.randint(0, 500)}ms",
                 "--checkpoint-path", str(self.folder / "state.pt"), "sh", "-c",
                 'echo "$(date +%s.%N) $TORCHELASTIC_RESTART_COUNT $RANK began" >> $2; exec "$0" worker.py "$1" "$2" "$3"',
                 sys.executable, plan, str(notes_path), str(self.folder / "state.pt")]
        launched = time.time()
        run = subprocess.Popen(words, cwd=self.folder, env=self.env, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                               stderr=(self.folder / f"err{number}").open("w"))
        try:
            signalled = self.stop(run, notes_path, len(attempts) - 1) if attempts[-1].is_stopped else None
            ended = wait_for(run)
        finally:
            run.kill()
            run.wait()
        if attempts[-1].succeeds and run.returncode != 0:
            raise Failure((self.folder / f"err{number}").read_text())
        self.began = launched if self.began is None else self.began
        idle_since = launched if self.until is None else self.until
        for at, attempt in enumerate(attempts):
            began, uses, end = count_attempt(attempt, [it for it in notes_in(notes_path) if it.attempt == at], signalled)
            self.counted["waiting"] += began - idle_since
            for use, seconds in uses.items():
                self.counted[use] += seconds
            idle_since = end
        self.counted["stopping"] += ended - idle_since
        self.until = ended

    def stop(self, run, notes_path, attempt):
        """Asks for the end as Slurm does. Returns when."""
        deadline = time.time() + PATIENCE_S
        while sum(it.attempt == attempt and it.what == "ready" for it in notes_in(notes_path)) < 2:
            if time.time() > deadline or run.poll() is not None:
                raise Failure("the last attempt is not ready: " + (self.folder / "err0").read_text())
            time.sleep(0.01)
        signalled = time.time()
        run.send_signal(signal.SIGTERM)
        return signalled


def play(lrun, seed):
    """Returns how far each use is off, or why the schedule failed."""
    with tempfile.TemporaryDirectory() as folder:
        try:
            return Job(lrun, pathlib.Path(folder), seed).play()
        except (Failure, OSError, KeyError, ValueError, subprocess.SubprocessError) as failure:
            return f"seed {seed}: {failure!r}" if not isinstance(failure, Failure) else f"seed {seed}: {failure}"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--schedules", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--lrun", default="build/dev/lrun")
    arguments = parser.parse_args()
    lrun = str(pathlib.Path(arguments.lrun).resolve())
    with concurrent.futures.ThreadPoolExecutor(PARALLEL) as pool:
        results = list(pool.map(lambda at: play(lrun, arguments.seed + at), range(arguments.schedules)))
    failed = [it for it in results if isinstance(it, str)]
    for text in failed:
        print(text)
    passed = [it for it in results if not isinstance(it, str)]
    worst = {use: max(it[use] for it in passed) for use in (*USES, "goodput")} if passed else {}
    print(f"{len(passed)} of {len(results)} schedules within {MOST_OFF:.0%}; most off: " +
          ", ".join(f"{use} {share:.2%}" for use, share in worst.items()))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
