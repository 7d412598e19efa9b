#!/usr/bin/env python3
"""Runs the kit's parts on this machine, goes on after a failure, and writes results.jsonl and a table.

It needs Python 3.9 and that Python's torch, whose libraries the kit's programs load. Without a GPU the cases that need one
are skipped. The exit code is 1 where a case failed.
"""
import argparse
import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE / "parts"))
import kit  # noqa: E402  pylint: disable=wrong-import-position

TESTS = str(HERE / "tests/test_runtime_cuda")
# Name, what it shows, seconds after which it is ended.
PARTS = {
    "facts": ("the card, its driver, and the libraries", 120),
    "runtime": ("every strategy, NCCL, streams and checkpoints on the GPU", 300),
    "examples": ("the examples that people copy", 180),
    "launcher": ("which GPUs lrun finds, gives to ranks and refuses", 120),
    "faults": ("how lrun explains failures on a GPU, and that nothing is left there", 180),
    "frameworks": ("Python programs with DDP, Lightning and accelerate", 180),
    "step": ("milliseconds of a training step beside the bare loop and Python's DDP", 240),
}


def facts():
    """One row of what the figures depend on."""
    begin = time.monotonic()
    query = "name,driver_version,memory.total,compute_mode,mig.mode.current"
    row = {"gpus": kit.gpu_count(), "cores": os.cpu_count(), "python": sys.version.split()[0], "kernel": os.uname().release}
    if row["gpus"]:
        values = subprocess.run(["nvidia-smi", f"--query-gpu={query}", "--format=csv,noheader"], capture_output=True,
                                text=True, timeout=60, check=False).stdout.splitlines()
        row["cards"] = [dict(zip(query.split(","), (part.strip() for part in line.split(",")))) for line in values]
    script = ("import json, torch; print(json.dumps({'torch': torch.__version__, 'cuda': torch.version.cuda, 'nccl': "
              "'.'.join(map(str, torch.cuda.nccl.version())) if torch.cuda.is_available() else None}))")
    try:
        row.update(json.loads(kit.run([sys.executable, "-c", script]).stdout or "{}"))
    except (AssertionError, ValueError) as error:
        row["torch"] = str(error)
    kit.report("facts", "facts", "passed", time.monotonic() - begin, **row)


def test_names():
    """The tests of the program, as 'Suite.Name'."""
    names, suite = [], ""
    for line in kit.run([TESTS, "--gtest_list_tests"]).stdout.splitlines():
        line = line.split("#")[0].rstrip()
        if not line.startswith(" "):
            suite = line
        elif suite.endswith("."):
            names.append(suite + line.strip())
    return names


def runtime(limit):
    """Each test in a process of its own, so that one that crashes or hangs is one result."""
    end = time.monotonic() + limit
    names = test_names()
    if not names:
        text = kit.run([TESTS, "--gtest_list_tests"]).stderr.strip()
        kit.report("runtime", "loads", "failed", 0, text or "the program lists no tests")
    for name in names:
        begin = time.monotonic()
        left = end - begin
        if left <= 0:
            kit.report("runtime", name, "failed", 0, f"not begun within the part's {limit} s")
            continue
        try:
            done = kit.run([TESTS, f"--gtest_filter={name}"], seconds=min(150, left), OMP_NUM_THREADS=1,
                           LRUN_TEST_TORCHS_DATA_PARALLEL=HERE / "lib/libtorchs_data_parallel.so")
        except AssertionError as error:
            kit.report("runtime", name, "failed", time.monotonic() - begin, str(error))
            continue
        result, detail = "passed", ""
        if done.returncode != 0:
            result, detail = "failed", (done.stdout + done.stderr)[-3000:]
        elif "[  SKIPPED ]" in done.stdout:
            result = "skipped"
            found = re.search(r": Skipped\n(.*)", done.stdout)
            detail = found.group(1) if found else ""
        kit.report("runtime", name, result, time.monotonic() - begin, detail)


def rows_of(part, limit):
    """The rows of one part, as they come. A part that is ended or prints no row is a failed row of its own."""
    limit *= 1 if kit.gpu_count() else 2  # what CPUs do in place of a GPU takes longer
    argv = [sys.executable, str(HERE / "parts" / f"{part}.py")]
    if part in ("facts", "runtime"):
        argv = [sys.executable, str(Path(__file__).resolve()), "--inside", part]
    process = subprocess.Popen(["timeout", "-k", "10", str(limit), *argv], stdout=subprocess.PIPE, text=True,
                               env=kit.environment(), stdin=subprocess.DEVNULL)
    count = 0
    for line in process.stdout:
        try:
            yield json.loads(line)
            count += 1
        except ValueError:
            print(line, end="", file=sys.stderr)
    code = process.wait()
    if code >= 124 or count == 0:
        what = f"was ended after {limit} s" if code in (124, 137) else f"ended with code {code}"
        yield {"part": part, "name": "(the part)", "result": "failed", "seconds": 0, "detail": what}


def line_of(row):
    known = ("part", "name", "result", "seconds", "detail")
    figures = "  ".join(f"{key}={value}" for key, value in row.items() if key not in known)
    text = f"{row['part']:<11}{row['result']:<8}{row['seconds']:>7.1f} s  {row['name']}  {figures}".rstrip()
    if row["detail"]:
        text += "\n" + "\n".join("    " + line for line in row["detail"].strip().splitlines()[-25:])
    return text


def main():
    lines = "\n".join(f"  {name:<11}{text}" for name, (text, _) in PARTS.items())
    parser = argparse.ArgumentParser(prog="run-gpu", description=__doc__.split("\n")[0], epilog="parts:\n" + lines,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", default="gpu-results", metavar="DIR", help="a folder for the results [gpu-results]")
    parser.add_argument("--inside", help=argparse.SUPPRESS)
    parser.add_argument("parts", nargs="*", metavar="PART", help="run these parts only")
    options = parser.parse_args()
    if options.inside:
        return facts() if options.inside == "facts" else runtime(PARTS["runtime"][1] - 10)
    unknown = [part for part in options.parts if part not in PARTS]
    if unknown:
        parser.error(f"there is no part '{unknown[0]}'; the parts are {', '.join(PARTS)}")
    folder = Path(options.output)
    folder.mkdir(parents=True, exist_ok=True)
    counts = {"passed": 0, "failed": 0, "skipped": 0}
    with open(folder / "results.jsonl", "w", encoding="utf-8") as results, \
            open(folder / "table.txt", "w", encoding="utf-8") as table:
        for part in options.parts or PARTS:
            for row in rows_of(part, PARTS[part][1]):
                counts[row["result"]] += 1
                results.write(json.dumps(row) + "\n")
                results.flush()
                print(line_of(row), flush=True)
                table.write(line_of(row) + "\n")
        summary = ", ".join(f"{count} {result}" for result, count in counts.items())
        table.write(summary + "\n")
        print(summary)
    return 1 if counts["failed"] else 0


if __name__ == "__main__":
    sys.exit(main())
