#!/usr/bin/env python3
"""lost_hosts.py [--schedules N | --fixed] [--seed S] [--lrun PROGRAM] [--shortest-step MS] [--keep FOLDER]: jobs on hosts of the lab
(tests/lab) whose workers save a state in LRUN_MEMORY_DIR at every step. A host dies with all its processes, another one comes in its
place, and the workers there must go on from a whole state that is the newest that the lost host had saved, or the one before it. Then
the job must end well, and leave nothing. Schedule I of seed S is schedule 0 of seed S + I. --fixed plays three schedules that are
the same each time. Logs of failed schedules are put in FOLDER. Run it as root."""
import argparse
import collections
import contextlib
import dataclasses
import os
import pathlib
import random
import re
import select
import shutil
import subprocess
import sys
import tempfile
import time

LAB = pathlib.Path(__file__).resolve().parents[1] / "lab" / "lab"
PATIENCE_S = 60  # nothing takes as long, also on a loaded machine
HEARTBEAT_S = 5
FIRST_PORT = 29400
MOST_BYTES_PER_MS = 20_000  # of all workers of a host, so that the copies keep up: 1 MB in 50 ms
MIB = 1 << 20
# Its notes outlive its host: 'start HOST|none STEP whole|torn TIME' says what it found, and 'saved STEP 1|0 TIME' comes after the rename;
# 0: its host has been cut off. The monotonic clock is the same on all hosts.
WORKER = """
import array, fcntl, hashlib, os, pathlib, socket, struct, sys, time
job, step_s, size = pathlib.Path(sys.argv[1]), float(sys.argv[2]), int(sys.argv[3])
host, local_rank = os.uname().nodename, os.environ["LOCAL_RANK"]
state = pathlib.Path(os.environ["LRUN_MEMORY_DIR"]) / f"state{local_rank}"

def content(owner, step):
    return f"{owner} {local_rank} {step}\\n".encode() + hashlib.shake_128(f"{owner} {local_rank} {step}".encode()).digest(size)

def note(text):
    os.write(notes, f"{text} {time.monotonic()}\\n".encode())

def has_link():
    command = array.array("I", [0xA, 0])  # ETHTOOL_GLINK
    fcntl.ioctl(network, 0x8946, struct.pack("16sP16x", b"eth0", command.buffer_info()[0]))  # SIOCETHTOOL
    return command[1]

network = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
notes = os.open(job / f"{host}.{local_rank}", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
owner, step, look = "none", 0, "whole"
if state.exists():
    found = state.read_bytes()
    try:
        owner, rank, step = found.split(b"\\n", 1)[0].decode().split(" ")
        step = int(step)
        look = "whole" if rank == local_rank and found == content(owner, step) else "torn"
    except ValueError:
        look = "torn"
note(f"start {owner} {step} {look}")
due = time.monotonic()
while not (job / "end").exists():
    step += 1
    new = state.with_suffix(".new")
    new.write_bytes(content(host, step))
    new.rename(state)
    note(f"saved {step} {has_link()}")
    due = max(due + step_s, time.monotonic())
    time.sleep(max(0.0, due - time.monotonic()))
"""


class Failure(Exception):
    """A schedule did not go as it must."""


@dataclasses.dataclass
class Loss:
    """A host is lost, and replaced."""

    victim: int  # place among the hosts of the job
    way: str  # as the lab has it: 'kill', of which other hosts hear at once, or 'off'
    after_s: float  # since all workers have saved
    replaced_by: str  # 'spare' waits already, 'rank' is another host with the lost node rank, 'any' one without, 'boot' the same host
    replaced_after_s: float


@dataclasses.dataclass
class Schedule:
    """A job, and what happens to it."""

    members: int
    nodes: str
    workers: int
    size: int
    step_ms: int
    has_ranks: bool  # launchers have --node-rank
    endpoint: int  # place of the host at which they meet, whose launcher leads
    losses: list

    def goes_on(self):
        """With fewer nodes; then a host that comes later is no replacement, and may find nothing."""
        return int(self.nodes.split(":")[0]) < self.members

    def describe(self):
        losses = "; ".join(f"host {loss.victim} {loss.way} after {loss.after_s:.1f} s, replaced by {loss.replaced_by} after "
                           f"{loss.replaced_after_s:.1f} s" for loss in self.losses)
        return (f"--nnodes {self.nodes}, {self.workers} workers a node, {self.size / MIB:.2f} MiB each {self.step_ms} ms, "
                f"{'with' if self.has_ranks else 'without'} node ranks, endpoint on host {self.endpoint}; {losses}")


def draw(chance, shortest_step_ms):
    members = chance.choice((2, 3))
    workers = chance.choice((1, 2))
    size = int(4096 * (4 * MIB / 4096) ** chance.random())
    step_ms = max(chance.randint(shortest_step_ms, 200), -(-size * workers // MOST_BYTES_PER_MS))
    nodes = chance.choice([str(members)] * 3 + [f"{members}:{members + 1}"] * 2 + ["2:3"] * (members == 3))
    has_ranks = chance.random() < 0.5
    endpoint = chance.randrange(members) if has_ranks else 0
    schedule = Schedule(members, nodes, workers, size, step_ms, has_ranks, endpoint, [])
    victims = [chance.randrange(members)]
    # A second host can be replaced where the endpoint is still there.
    if victims[0] != endpoint and not schedule.goes_on() and chance.random() < 0.3:
        victims.append(chance.choice([place for place in range(members) if place != endpoint]))
    for victim in victims:
        # With two nodes the silence of the leader ends the other one: it may be cut off itself.
        way = "kill" if victim == endpoint and members == 2 else chance.choice(("kill", "kill", "off"))
        replacements = ["boot"]
        if nodes == str(members):  # else it is a member at once
            replacements.append("spare")
        if victim != endpoint:  # a host that comes later finds the job at the endpoint
            replacements += ["any"] + ["rank"] * has_ranks
        replaced_by = chance.choice(replacements)
        schedule.losses.append(Loss(victim, way, 2.5 * chance.random(), replaced_by, 2 * chance.random() * (replaced_by != "spare")))
    return schedule


FIXED = [
    Schedule(3, "3", 2, MIB // 4, 50, True, 0, [Loss(1, "kill", 1, "rank", 0.2)]),
    Schedule(2, "2:3", 1, MIB, 80, False, 0, [Loss(0, "kill", 1, "boot", 0.2)]),
    Schedule(2, "2", 2, MIB // 2, 60, True, 0, [Loss(1, "off", 1, "spare", 0)]),
]


class Lab:
    """Hosts h0 to hN, which end with this process."""

    def __init__(self, folder, hosts):
        self.folder = folder
        self.environment = {name: value for name, value in os.environ.items() if not name.startswith(("LRUN", "PET_", "SLURM"))}
        self.environment["LAB"] = str(folder)
        self.hosts = [f"h{number}" for number in range(hosts)]
        self.call("hosts", "up", str(hosts - 1))

    def call(self, *words):
        done = subprocess.run([LAB, *words], env=self.environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, timeout=PATIENCE_S, check=False)
        if done.returncode != 0:
            raise Failure(f"lab {' '.join(words)}: {done.stdout}")
        return done.stdout

    def start(self, host, command, out, err):
        return subprocess.Popen([LAB, "exec", host, *command], env=self.environment, stdin=subprocess.DEVNULL, stdout=out, stderr=err)

    def lose(self, host, way):
        """\\return the time at which all its processes had died."""
        first_process = os.pidfd_open(int((self.folder / "pids" / host).read_text()))
        try:
            with subprocess.Popen([LAB, "hosts", way, host], env=self.environment, stdin=subprocess.DEVNULL) as process:
                select.select([first_process], [], [], PATIENCE_S)
                died = time.monotonic()
        finally:
            os.close(first_process)
        if process.returncode != 0:
            raise Failure(f"{host} does not die")
        return died

    def is_on(self, host):
        return (self.folder / "pids" / host).exists()


class Job:
    """Launchers on hosts of the lab, and the notes of their workers."""

    def __init__(self, lab, lrun, folder, schedule, port):
        self.lab, self.folder, self.schedule = lab, folder, schedule
        folder.mkdir()
        (folder / "worker.py").write_text(WORKER)
        self.name = f"lost-hosts-{os.getpid()}-{port}"
        self.places = lab.hosts[:schedule.members]  # the host of each member
        self.unused = lab.hosts[schedule.members:]
        self.launchers = {}
        self.command = [lrun, "--rdzv-backend", "c10d", "--rdzv-endpoint", f"{self.places[schedule.endpoint]}:{port}", "--rdzv-id",
                        self.name, "--rdzv-conf", f"heartbeat_timeout={HEARTBEAT_S},join_timeout={PATIENCE_S}", "--nnodes",
                        schedule.nodes, "-n", str(schedule.workers), "--grace", "2s"]
        self.program = [sys.executable, "-S", "-E", folder / "worker.py", folder, str(schedule.step_ms / 1000), str(schedule.size)]

    def start(self, host, *options):
        with open(self.folder / f"out.{host}", "ab") as out, open(self.folder / f"err.{host}", "ab") as err:
            command = ["env", f"LRUN_STATE={self.folder}/logs.{host}", *self.command, *options, *self.program]
            self.launchers[host] = self.lab.start(host, command, out, err)

    def rank_options(self, place):
        return ["--node-rank", str(place)] if self.schedule.has_ranks else []

    def notes(self, host):
        """Of each local rank, as lists of words; the last one is the time."""
        found = []
        for rank in range(self.schedule.workers):
            path = self.folder / f"{host}.{rank}"
            lines = path.read_text().split("\n")[:-1] if path.exists() else []
            found.append([line.split(" ") for line in lines])
        return found

    def errors(self, host):
        path = self.folder / f"err.{host}"
        return path.read_text(errors="replace") if path.exists() else ""

    def wait_until(self, what, condition):
        deadline = time.monotonic() + PATIENCE_S
        while not condition():
            for host, launcher in self.launchers.items():
                if launcher.poll() is not None and not (self.folder / "end").exists():
                    raise Failure(f"lrun on {host} ended with {launcher.returncode} while the test waited for {what}")
            if time.monotonic() > deadline:
                raise Failure(f"not within {PATIENCE_S} s: {what}")
            time.sleep(0.02)

    def wait_for_saves(self, since, count=1):
        """By all members, after that time."""
        def is_there():
            return all(sum(words[0] == "saved" and float(words[-1]) > since for words in notes) >= count
                       for host in self.places for notes in self.notes(host))
        self.wait_until("a save by each worker", is_there)

    def begin(self):
        if self.schedule.losses[0].replaced_by == "spare":
            self.unused, spares = self.unused[1:], self.unused[:1]
        else:
            spares = []
        for place in sorted(range(self.schedule.members), key=lambda place: place != self.schedule.endpoint):
            self.start(self.places[place], *self.rank_options(place))
        self.wait_for_saves(0)
        self.spares = spares
        for host in spares:
            self.start_spare(host)

    def start_spare(self, host):
        self.start(host)
        self.wait_until("a spare", lambda: "waits until it is needed" in self.errors(host))

    def lose(self, loss):
        """\\return what was found of the lost saves, of each worker: Age."""
        if loss.replaced_by == "spare" and not self.spares:
            self.spares = [self.unused.pop(0)]
            self.start_spare(self.spares[0])
        time.sleep(loss.after_s)
        lost = self.places[loss.victim]
        died = self.lab.lose(lost, loss.way)
        self.launchers.pop(lost).wait(PATIENCE_S)
        # With 'off' the cable goes first, and what was saved after it could not be copied.
        before = [[words for words in notes if float(words[-1]) < died and (words[0] == "start" or words[2] == "1")]
                  for notes in self.notes(lost)]
        if self.schedule.goes_on():
            gone = self.places.pop(loss.victim)
            self.wait_until("a round without the lost host", lambda: all(started_after(notes, died) for host in self.places
                                                                         for notes in self.notes(host)))
            self.wait_for_saves(time.monotonic())
            self.places.insert(loss.victim, gone)
        new = self.replace(loss, lost)
        self.wait_until("workers in the place of those that are lost",
                        lambda: all(started_after(notes, died) for notes in self.notes(new)))
        starts = [started_after(notes, died) for notes in self.notes(new)]
        if self.schedule.goes_on():
            self.found_late += [start[1] != "none" for start in starts]
        ages = [] if self.schedule.goes_on() else [age_of(lost, rank, before[rank], start, died) for rank, start in enumerate(starts)]
        self.wait_for_saves(time.monotonic(), 2)
        if ages and not re.search(r"note: .*lost node rank \d+ .*: \d+ file", self.errors(new)):
            raise Failure(f"lrun on {new} has not said that it has the files of the lost node")
        if lost in self.unused and not self.lab.is_on(lost):
            self.lab.call("hosts", "on", lost)
        return ages

    def replace(self, loss, lost):
        """\\return the host that is in the place now."""
        time.sleep(loss.replaced_after_s)
        if loss.replaced_by == "spare":
            new = self.spares.pop()
        elif loss.replaced_by == "boot":
            new = lost
            self.lab.call("hosts", "on", lost)
            self.start(new, *self.rank_options(loss.victim))
        else:
            new = self.unused.pop(0)
            self.start(new, *(self.rank_options(loss.victim) if loss.replaced_by == "rank" else []))
        if new != lost:
            self.unused.append(lost)
        self.places[loss.victim] = new
        return new

    def check_notes(self):
        """No state was ever torn, and a worker that starts again on its host finds what was there last, or what it saved without a note.
        \\return how many times the launchers started the workers anew, beyond once for each loss."""
        most = 0
        for host in self.lab.hosts:
            for rank, notes in enumerate(self.notes(host)):
                starts = [index for index, words in enumerate(notes) if words[0] == "start"]
                if torn := [notes[index] for index in starts if notes[index][3] != "whole"]:
                    raise Failure(f"worker {rank} on {host} found a torn state: {torn}")
                if host in self.lost:
                    continue
                most = max(most, len(starts) - 1)
                for index in starts[1:]:
                    last = notes[index - 1]
                    step = int(last[1] if last[0] == "saved" else last[2])
                    if (found := int(notes[index][2])) not in (step, step + 1) or last[0] == "saved" and notes[index][1] != host:
                        raise Failure(f"worker {rank} on {host} found step {found} of {notes[index][1]}, after {' '.join(last)}")
        return max(0, most - len(self.schedule.losses) * (1 + self.schedule.goes_on()))

    def play(self):
        self.lost, self.found_late = set(), []
        self.begin()
        ages = []
        for loss in self.schedule.losses:
            self.lost.add(self.places[loss.victim])
            ages += self.lose(loss)
        (self.folder / "end").touch()
        for host, launcher in self.launchers.items():
            with contextlib.suppress(subprocess.TimeoutExpired):
                launcher.wait(PATIENCE_S)
            if launcher.poll() != 0:
                raise Failure(f"lrun on {host} ended with {launcher.returncode}")
        self.more_starts = self.check_notes()
        self.check_remains()
        return ages

    def check_remains(self):
        """No process has the names of this job in its command line, and the hosts' own folders in memory are empty."""
        names = (self.name.encode(), bytes(self.folder / "worker.py"))

        def left():
            return [pid for pid, line in command_lines() if any(name in line for name in names)]
        deadline = time.monotonic() + 5
        while left() and time.monotonic() < deadline:
            time.sleep(0.05)
        if left():
            raise Failure(f"processes are left: {[line for _, line in command_lines() if any(name in line for name in names)]}")
        for host in self.lab.hosts:
            if self.lab.is_on(host) and (files := self.lab.call("exec", host, "ls", "-A", "/dev/shm").split()):
                raise Failure(f"in /dev/shm of {host} is left: {files}")

    def stop(self):
        """After a failure: ends what is left of the hosts."""
        for host in self.lab.hosts:
            self.lab.call("hosts", "kill", host)
        for launcher in self.launchers.values():
            launcher.wait(PATIENCE_S)
        for host in self.lab.hosts:
            self.lab.call("hosts", "on", host)


def command_lines():
    for path in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            yield path.parent.name, path.read_bytes()


def started_after(notes, since):
    """The first start of a worker after that time, and its words; None: there is none."""
    return next((words for words in notes if words[0] == "start" and float(words[-1]) > since), None)


@dataclasses.dataclass
class Age:
    """Of the state that a new worker found."""

    saves: int  # that are lost
    lost_ms: float  # from the time of its save until the host died
    missed_ms: float  # how long before its host's death the oldest save that is lost was there; 0: none is


def age_of(lost, rank, before, start, died):
    """\\param before  the notes of the lost worker. \\param start  that of the new one. \\param died  when its host died"""
    _, owner, found, look, _ = start
    if look != "whole":
        raise Failure(f"worker {rank} found a torn state: {start}")
    found = int(found)
    # The state that it had found itself, and those that it saved since.
    begin = max(index for index, words in enumerate(before) if words[0] == "start")
    owners = {int(before[begin][2]): before[begin][1]}
    times = {int(words[1]): float(words[-1]) for words in before[begin + 1:]}
    newest = max(times)
    saves = max(0, newest - found)  # the worker may have been killed between the rename and its note
    missed = [when for saved, when in times.items() if saved > found]
    if saves > 1:
        raise Failure(f"worker {rank} of {lost} had saved step {newest}, and the new one found {found} of {owner}: {saves} saves are "
                      f"lost, of which the first was made {1000 * (died - min(missed)):.0f} ms before its host died")
    if owner != owners.get(found, lost) or found > newest + 1:
        raise Failure(f"worker {rank} in the place of {lost}, which saved step {newest} last, found step {found} of {owner}")
    return Age(saves, 1000 * max(0.0, died - times.get(found, died)), 1000 * max(0.0, died - min(missed)) if missed else 0.0)


def quantiles(numbers):
    numbers = sorted(numbers)
    return ", ".join(f"{name} {numbers[min(len(numbers) - 1, int(share * len(numbers)))]:.0f}"
                     for name, share in (("median", 0.5), ("95 %", 0.95), ("most", 1)))


def report(ages, late):
    if late:
        print(f"{len(late)} workers came when the others had gone on: {sum(late)} found a state of another host")
    if not ages:
        return
    saves = collections.Counter(age.saves for age in ages)
    print(f"{len(ages)} workers were replaced: {saves[0]} found the newest save, {saves[1]} the one before it")
    print(f"ms from the save that was found to the end of all processes of its host: {quantiles([age.lost_ms for age in ages])}")
    if missed := [age.missed_ms for age in ages if age.saves]:
        print(f"ms from the save that was lost to that: {quantiles(missed)}")


def sockets_in(folder, names):
    return [name for name in names if pathlib.Path(folder, name).is_socket()]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--schedules", type=int, default=100)
    parser.add_argument("--fixed", action="store_true")
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--shortest-step", type=int, default=50, metavar="MS")
    parser.add_argument("--keep", type=pathlib.Path)
    parser.add_argument("--lrun", type=pathlib.Path, default="build/dev/lrun")
    options = parser.parse_args()
    schedules = FIXED if options.fixed else [draw(random.Random(options.seed + number), options.shortest_step)
                                             for number in range(options.schedules)]
    ages, late, failed, begun = [], [], [], time.monotonic()
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        lab = Lab(folder / "lab", 6)
        try:
            for number, schedule in enumerate(schedules):
                seed = "fixed" if options.fixed else options.seed + number
                job = Job(lab, options.lrun.resolve(), folder / f"job-{seed}-{number}", schedule, FIRST_PORT + number)
                began = time.monotonic()
                try:
                    found = job.play()
                    ages += found
                    late += job.found_late
                    print(f"seed {seed}: {schedule.describe()}: {time.monotonic() - began:.0f} s, lost saves "
                          f"{[age.saves for age in found]}"
                          + (f", {job.more_starts} starts more than losses" if job.more_starts else ""), flush=True)
                except Failure as failure:
                    failed.append(seed)
                    print(f"FAILED: seed {seed}: {schedule.describe()}: {failure}", flush=True)
                    for path in sorted(job.folder.glob("err.*")):
                        print(f"{path.name}: " + "".join(path.read_text(errors="replace").splitlines(True)[-8:]), flush=True)
                    if options.keep:
                        shutil.copytree(job.folder, options.keep / job.folder.name, ignore=sockets_in, dirs_exist_ok=True)
                    job.stop()
                shutil.rmtree(job.folder)
        finally:
            lab.call("down")
    report(ages, late)
    print(f"{len(schedules) - len(failed)} of {len(schedules)} schedules went well, {time.monotonic() - begun:.0f} s"
          + (f"; failed: {failed}" if failed else ""))
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
