#!/usr/bin/env python3
"""step.py [--try] [CASE...]: milliseconds of a training step of one rank on one GPU: the bare C++ loop, the same under
lrun, and torch's own Python with its DDP over NCCL.

bench_runtime_gpu_step and gpu_step.py take turns: each waits while the other one measures, and every round begins with
another cell. A ratio is the median of the rounds' ratios. A line of JSON for each cell has its row of bench/gpu.tsv;
$LRUN_GPU_TSV names a file that rows are added to. Without a GPU, or with --try, there is small work on CPUs."""
import atexit
import json
import os
import select
import statistics
import subprocess
import sys
import tempfile
import time

from card import need_module
from kit import ROOT, Skipped, case, environment, expect, gpu_count, main, need_gpu, report

PART = "step"
OURS, THEIRS = "lrun", "torch"
COLUMNS = ("card", "model", "dtype", "kind", "ms", "to_bare", "to_python")
CELLS = [(OURS, kind) for kind in ("bare", "ddp", "no_sync", "synced", "summed")] + [
    (THEIRS, kind) for kind in ("bare", "ddp", "ddp_view")]
BARE, PYTHON_DDP = (OURS, "bare"), (THEIRS, "ddp")
MOST_OF_BARE, MOST_OF_PYTHON = 1.02, 1.00
ROUNDS = 7
BLOCK_MS, FEWEST_STEPS, MOST_STEPS = 150, 5, 40
ANSWER_WITHIN_S = 60
ALL_WITHIN_S = 75  # afterwards cells have three rounds, not seven
PROFILED = ("bare", "ddp", "no_sync", "synced", "summed", "bare_kept", "synced_kept")

_begin = time.monotonic()


class Program:
    """One of the two, which obeys one order after the other."""

    def __init__(self, command, **variables):
        self.name = os.path.basename(command[1] if command[0] == sys.executable else command[0])
        self.complaints = tempfile.TemporaryFile()
        self.received = b""
        self.process = subprocess.Popen(command, env=environment(**variables), stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, stderr=self.complaints)
        atexit.register(self.end)

    def order(self, *words):
        """Returns the words of the answer."""
        try:
            self.process.stdin.write((" ".join(map(str, words)) + "\n").encode())
            self.process.stdin.flush()
        except BrokenPipeError:
            pass  # it has ended, and reading says so
        return self.line().split()

    def line(self):
        output = self.process.stdout.fileno()
        deadline = time.monotonic() + ANSWER_WITHIN_S
        while b"\n" not in self.received:
            ready = select.select([output], [], [], max(0.0, deadline - time.monotonic()))[0]
            some = os.read(output, 4096) if ready else b""
            if not some:
                self.end()
                how = f"ended with {self.process.returncode}" if ready else f"gave no answer in {ANSWER_WITHIN_S} s"
                raise AssertionError(f"{self.name} {how}: {self.said_last()}")
            self.received += some
        line, self.received = self.received.split(b"\n", 1)
        return line.decode()

    def said_last(self):
        file = self.complaints.fileno()
        text = os.pread(file, 4000, max(0, os.fstat(file).st_size - 4000)).decode(errors="replace")
        return " | ".join(text.splitlines()[-12:])

    def is_alive(self):
        return self.process.poll() is None

    def end(self):
        """Ends it by the end of its input, or by force."""
        if not self.is_alive():
            return
        try:
            self.process.stdin.close()
            self.process.wait(5 if self.received == b"" else 0)
        except (OSError, subprocess.TimeoutExpired):
            self.process.kill()
            self.process.wait()


class Peers:
    """Both programs, started once for all cases, or again after one has failed; and what runs there."""

    def __init__(self, on_cpu):
        small = ["--try"] if on_cpu else []
        device = "cpu" if on_cpu else "cuda:0"
        threads = {"OMP_NUM_THREADS": 1} if on_cpu else {}
        bench = ROOT / "bench"
        ours = [str(bench / "bench_runtime_gpu_step"), *small, device, "single" if on_cpu else "nccl"]
        theirs = [sys.executable, str(bench / "gpu_step.py"), *small, device, "gloo" if on_cpu else "nccl"]
        self.programs = {OURS: Program(ours, **threads), THEIRS: Program(theirs, **threads)}
        self.about = json.loads(self.programs[THEIRS].line())

    def milliseconds(self, cell, model, dtype, place, steps):
        program, kind = cell
        return float(self.programs[program].order(model, dtype, kind, place, steps)[1])

    def profile(self, model, dtype, kind):
        words = self.programs[OURS].order(model, dtype, kind, "device", "profile")
        return dict(zip(words[::2], map(float, words[1::2])))

    def are_alive(self):
        return all(program.is_alive() for program in self.programs.values())


_peers = {}


def peers(on_cpu=False):
    if on_cpu not in _peers or not _peers[on_cpu].are_alive():
        _peers[on_cpu] = Peers(on_cpu)
    return _peers[on_cpu]


def measure(peer, model, dtype, place, cells, rounds=ROUNDS):
    """Returns {cell: [milliseconds of a step, by rounds]}. A round before them chooses the steps of a block."""
    steps = {}
    for cell in cells:
        taken = peer.milliseconds(cell, model, dtype, place, FEWEST_STEPS)
        steps[cell] = max(FEWEST_STEPS, min(MOST_STEPS, round(BLOCK_MS / taken)))
    fewest = min(steps.values())  # the same for all: a wait for the device is a share of each block
    found = {cell: [] for cell in cells}
    for turn in range(rounds):
        if turn >= 3 and time.monotonic() > _begin + ALL_WITHIN_S:
            break
        first = turn * 3 % len(cells)
        for cell in cells[first:] + cells[:first]:
            found[cell].append(peer.milliseconds(cell, model, dtype, place, fewest))
    return found


def ratio(found, cell, other):
    return statistics.median(mine / its for mine, its in zip(found[cell], found[other]))


def tell(peer, model, dtype, place, found):
    """A line of JSON for each cell, and a row of the table. Returns {cell: (ratio to bare, ratio to Python's DDP)}."""
    ratios = {}
    for cell, values in found.items():
        ratios[cell] = ratio(found, cell, BARE), ratio(found, cell, PYTHON_DDP)
        kind = f"{cell[0]}, {cell[1]}" + ("" if place == "device" else f", {place}")
        milliseconds = statistics.median(values)
        numbers = (f"{value:.3f}" for value in (milliseconds, *ratios[cell]))
        row = (peer.about["device"], model, dtype, kind, *numbers)
        report(PART, f"{model}, {dtype}, {kind}", "passed", sum(values) / 1e3, ms=round(milliseconds, 4),
               fastest_ms=round(min(values), 4), slowest_ms=round(max(values), 4), rounds=len(values),
               to_bare=round(ratios[cell][0], 4), to_python=round(ratios[cell][1], 4), tsv="\t".join(row))
        add_to_table(row)
    return ratios


def add_to_table(row):
    path = os.environ.get("LRUN_GPU_TSV")
    if not path:
        return
    is_new = not os.path.exists(path)
    with open(path, "a", encoding="utf-8") as table:
        if is_new:
            print(*COLUMNS, sep="\t", file=table)
        print(*row, sep="\t", file=table)


def compare(model, dtype, place="device", cells=tuple(CELLS), peer=None):
    """Measures, tells, and holds a world of one under lrun against the goals. Figures are of kind ddp."""
    need_gpu()
    peer = peer or peers()
    found = measure(peer, model, dtype, place, list(cells))
    to_bare, to_python = tell(peer, model, dtype, place, found)[OURS, "ddp"]
    expect(round(to_bare, 2) <= MOST_OF_BARE, f"a step takes {to_bare:.3f} of the bare loop's, not {MOST_OF_BARE}")
    expect(round(to_python, 2) <= MOST_OF_PYTHON, f"a step takes {to_python:.3f} of Python's DDP, not {MOST_OF_PYTHON}")
    return {"to_bare": round(to_bare, 4), "to_python": round(to_python, 4), **peer.about}


@case
def resnet18_bfloat16():
    return compare("resnet18", "bfloat16")


@case
def resnet18_float32():
    return compare("resnet18", "float32")


@case
def batches_from_pinned_memory():
    """The batch is moved in every step: by the session, and by the program where there is none."""
    return compare("resnet18", "float32", "pinned", [BARE, (OURS, "ddp"), (THEIRS, "bare"), PYTHON_DDP])


@case
def encoder_bfloat16():
    return compare("encoder", "bfloat16")


@case
def encoder_float32():
    return compare("encoder", "float32")


@case
def steps_of_libtorchs_own_optimizer():
    """torch::optim::SGD starts three kernels a parameter, Python's a few for all: seen where kernels are short."""
    own = [(OURS, "bare_torch"), (OURS, "ddp_torch")]
    return compare("encoder", "bfloat16", cells=[BARE, (OURS, "ddp"), *own, PYTHON_DDP])


@case
def mlp_bfloat16():
    return compare("mlp", "bfloat16")


@case
def mlp_float32():
    return compare("mlp", "float32")


def tell_profile(model, dtype, profiles):
    for kind, figures in profiles.items():
        report(PART, f"{model}, {dtype}, {kind}: the GPU's work in a step", "passed", 0, **figures)


@case
def buckets_cost_no_copy():
    """Last: what watches the GPU may slow what comes after. All counts are of one step."""
    need_gpu()
    problems = []
    for model, parameters in (("mlp", 8), ("encoder", 48), ("resnet18", 62)):
        of = {kind: peers().profile(model, "float32", kind) for kind in PROFILED}
        tell_profile(model, "float32", of)
        expect(of["bare"]["kernels"] > 0, "the profiler saw no kernel: CUPTI does not work here")

        def more(kind, bare, what, of=of):
            return sum(of[kind][name] - of[bare][name] for name in what)

        for kind in ("ddp", "no_sync"):
            if more(kind, "bare", of["bare"]) != 0:
                problems.append(f"{model}: {kind} in a world of one is not the work of the bare loop")
        buffers = 60 if model == "resnet18" else 0  # packed for rank 0's broadcast
        moved = more("synced", "bare", ("copies",))
        if moved > parameters + buffers:
            problems.append(f"{model}: {moved:.1f} copies more for {parameters} gradients and {buffers} buffers")
        if more("synced_kept", "bare_kept", ("copies",)) > buffers:
            problems.append(f"{model}: gradients that lie in their buckets are copied")
    expect(not problems, "; ".join(problems))


@case
def both_programs_obey_on_cpus():
    """Small work, and what it takes is nobody's concern: that all orders are obeyed."""
    if gpu_count() > 0 and not _is_try:
        raise Skipped("there is a GPU: the other cases run both programs on it")
    need_module("torch")
    peer = peers(on_cpu=True)
    for model in ("mlp", "encoder", "resnet18"):
        for dtype in ("float32", "bfloat16"):
            tell(peer, model, dtype, "device", measure(peer, model, dtype, "device", CELLS, rounds=1))
    tell(peer, "mlp", "float32", "pinned", measure(peer, "mlp", "float32", "pinned", CELLS, rounds=1))
    for kind in ("bare_torch", "ddp_torch"):
        peer.milliseconds((OURS, kind), "encoder", "bfloat16", "device", 1)
    profiles = {kind: peer.profile("mlp", "float32", kind) for kind in PROFILED}
    tell_profile("mlp", "float32", profiles)
    expect(all(value == 0 for figures in profiles.values() for value in figures.values()), "a CPU had a GPU's work")
    return peer.about


if __name__ == "__main__":
    _is_try = "--try" in sys.argv
    if _is_try:
        sys.argv.remove("--try")
    main(PART)
