#!/usr/bin/env python3
"""The answers of lrun to mistakes that newcomers make: those in tests/golden/mistakes.txt, beside those of now.

usage: mistakes.py LRUN [--update | WORD...]    WORD: only rows that have it

A row is a title, what is typed (one script of bash, in a copy of mistakes/project), and lrun's own lines on stderr with
its exit code. What differs from run to run stands there as …
"""
import difflib
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

HERE = Path(__file__).resolve().parent
TABLE = HERE / "mistakes.txt"
LIMIT = 60  # seconds for a row on a busy machine


def rows(text):
    """(title, typed lines, answer) of each row."""
    for block in re.split(r"^# ", text, flags=re.M)[1:]:
        title, *lines = block.rstrip("\n").split("\n")
        typed = [line[2:] for line in lines if line.startswith("$ ")]
        yield title, typed, "".join(line + "\n" for line in lines if line and not line.startswith("$ "))


def without_chance(text, work):
    """The text without what belongs to this run, folder and machine."""
    text = text.replace(str(work / "project"), "/project").replace(str(work / "state"), "/state")
    for pattern, calm in (
        (r"\d{8}-\d{6}-[a-z0-9]{6}", "…"),
        (r"\bpid \d+ on [^ );]+", "pid … on …"),
        (r"\b(ran for|ended|ago:|took) \d[\d.]*m?s", r"\1 …"),
        (r"/\S*/(python3?[.\d]*)(?=[' ])", r"…/\1"),
        (rf"'{re.escape(socket.gethostname())}'", "'HOST'"),
    ):
        text = re.sub(pattern, calm, text)
    return text


def answer_to(typed, lrun):
    with tempfile.TemporaryDirectory(prefix="lrun-mistakes.") as folder:
        work = Path(folder)
        shutil.copytree(HERE / "mistakes" / "project", work / "project")
        (work / "bin").mkdir()
        (work / "bin" / "lrun").symlink_to(lrun)
        environment = {
            "PATH": f"{work}/bin:{os.path.dirname(sys.executable)}:/usr/bin:/bin",
            "HOME": folder,
            "XDG_STATE_HOME": f"{work}/state",
            "LANG": "C.UTF-8",
        } | {name: value for name, value in os.environ.items() if name.endswith("SAN_OPTIONS")}
        shell = subprocess.Popen(
            ["bash", "-c", "\n".join(["ulimit -c 0", *typed])],
            cwd=work / "project",
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
        try:
            printed = shell.communicate(timeout=LIMIT)[1].decode(errors="replace")
        except subprocess.TimeoutExpired:
            os.killpg(shell.pid, signal.SIGKILL)
            shell.wait()
            return f"no end within {LIMIT} s\n"
        own = [line for line in printed.split("\n") if line.startswith("lrun: ") and "usable CPU" not in line]
        return "".join(without_chance(line, work) + "\n" for line in own) + f"exit {shell.returncode}\n"


def main():
    updates = sys.argv[2:] == ["--update"]
    words = [] if updates else sys.argv[2:]
    lrun = Path(sys.argv[1]).resolve()
    table = TABLE.read_text()
    asked = [row for row in rows(table) if not words or any(word in row[0] + "".join(row[1]) for word in words)]
    with ThreadPoolExecutor(max_workers=os.cpu_count()) as pool:
        answers = list(pool.map(lambda row: answer_to(row[1], lrun), asked))
    head = table[: table.index("\n# ") + 1]
    blocks = ["# " + title + "\n" + "".join(f"$ {line}\n" for line in typed) for title, typed, _ in asked]
    now = head + "\n".join(block + answer for block, answer in zip(blocks, answers))
    if updates:
        TABLE.write_text(now)
        return 0
    golden = head + "\n".join(block + row[2] for block, row in zip(blocks, asked))
    sys.stdout.writelines(difflib.unified_diff(golden.splitlines(True), now.splitlines(True), "mistakes.txt", "now"))
    return 0 if golden == now else 1


if __name__ == "__main__":
    sys.exit(main())
