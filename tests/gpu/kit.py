"""What the parts of the GPU kit share: where its files are, and how a case reports its result.

A part is a program whose cases are functions with the decorator @case. It prints one JSON object a line for each case:
{"part", "name", "result": "passed" | "failed" | "skipped", "seconds", "detail", and figures of the case's own}.
The kit's folder has bin/lrun, lib/liblrun*.so, tests/, bench/ and parts/, where this file is.
"""
import importlib.util
import json
import os
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LRUN = str(ROOT / "bin/lrun")

_cases = []


class Skipped(Exception):
    """What the case needs is not here; the text says what."""


def case(function):
    """Makes the function a case of this part. It fails by an exception, and may return a dict of figures to report."""
    _cases.append(function)
    return function


def expect(condition, message):
    """Fails the case with the message unless the condition holds."""
    if not condition:
        raise AssertionError(message)


def library_folders():
    """The folders of torch's libraries and of CUDA's, as this Python has them; found without loading torch."""
    spec = importlib.util.find_spec("torch")
    if spec is None or not spec.submodule_search_locations:
        return []
    torch = Path(next(iter(spec.submodule_search_locations)))
    return [str(torch / "lib"), *sorted(str(folder) for folder in torch.parent.glob("nvidia/*/lib"))]


def environment(**extra):
    """The environment of this process, in which the kit's programs find its libraries and torch's."""
    folders = [str(ROOT / "lib"), *library_folders()]
    if os.environ.get("LD_LIBRARY_PATH"):
        folders.append(os.environ["LD_LIBRARY_PATH"])
    return {**os.environ, "LD_LIBRARY_PATH": ":".join(folders), **{name: str(value) for name, value in extra.items()}}


def run(argv, seconds=60, **extra):
    """Runs a program to its end: a CompletedProcess with its texts. At the limit it is killed, and the case fails."""
    argv = [str(word) for word in argv]
    try:
        return subprocess.run(argv, env=environment(**extra), timeout=seconds, capture_output=True, text=True,
                              errors="replace", stdin=subprocess.DEVNULL, check=False)
    except subprocess.TimeoutExpired as expired:
        raise AssertionError(f"{' '.join(argv)} had not ended after {seconds} s") from expired


def gpu_count():
    """How many GPUs the driver names here; 0 without a driver."""
    try:
        listed = subprocess.run(["nvidia-smi", "-L"], capture_output=True, text=True, timeout=60, check=False).stdout
    except (OSError, subprocess.TimeoutExpired):
        return 0
    return sum(line.startswith("GPU ") for line in listed.splitlines())


def need_gpu(count=1):
    """Skips the case where there are fewer GPUs."""
    there = gpu_count()
    if there < count:
        raise Skipped(f"needs {count} GPU{'s' if count > 1 else ''}, and there {'is' if there == 1 else 'are'} {there}")


def report(part, name, result, seconds, detail="", **figures):
    """Prints the line of one case."""
    row = {"part": part, "name": name, "result": result, "seconds": round(seconds, 2), "detail": detail, **figures}
    print(json.dumps(row), flush=True)


def main(part):
    """Runs the cases that the arguments name, or all. Exits with 1 where one failed; the others run all the same."""
    wanted = sys.argv[1:]
    failed = False
    for function in _cases:
        if wanted and function.__name__ not in wanted:
            continue
        begin = time.monotonic()
        result, detail, figures = "passed", "", {}
        try:
            figures = function() or {}
        except Skipped as why:
            result, detail = "skipped", str(why)
        except Exception as error:  # pylint: disable=broad-except  # whatever it is, the next case runs
            result, detail = "failed", f"{type(error).__name__}: {error}"
            failed = True
        report(part, function.__name__, result, time.monotonic() - begin, detail, **figures)
    sys.exit(1 if failed else 0)
