#!/usr/bin/env python3
"""notices.py [--notices N] [--seed S] [--lrun PROGRAM]: runs on machines that are about to go. By chance a notice comes as a file or from
the metadata of a cloud, which a server at 169.254.169.254 plays in a network namespace of its own, to a run that is alone or to one node of
an elastic job, while workers start or work; a SIGTERM may follow, as at the end of a machine. Every worker that was ready has to leave a
complete checkpoint, lrun ends as after SIGTERM and says why, and no process is left. Notice I of seed S is notice 0 of seed S + I."""
import argparse
import concurrent.futures
import http.server
import json
import os
import pathlib
import random
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time

PATIENCE_S = 60
PARALLEL = 6
NAMESPACE = ["unshare", "-n"] if os.geteuid() == 0 else ["unshare", "-rn"]
SKIPPED = 77
ADDRESS = "169.254.169.254"
SAYS = {"file": "notice from '", "aws": "notice from AWS: terminate", "azure": "notice from Azure: Preempt",
        "gcp": "notice from Google Cloud: this machine is preempted"}
CHECKPOINT_BYTES = 1 << 20
# A checkpoint is complete once it has its name; one that is cut off never gets it.
WORKER = f"""
import os, pathlib, random, signal, sys, time
folder, save_s = pathlib.Path(sys.argv[1]), float(sys.argv[2])
me = f"{{sys.argv[3]}}.{{os.environ['RANK']}}.{{os.getpid()}}"

def save(*_):
    with open(folder / f"new.{{me}}", "wb") as new:
        for _ in range(8):
            new.write(os.urandom({CHECKPOINT_BYTES} // 8))
            time.sleep(save_s / 8)
        new.flush()
        os.fsync(new.fileno())
    (folder / f"new.{{me}}").rename(folder / f"saved.{{me}}")
    os._exit(0)

signal.signal(signal.SIGTERM, save)
(folder / f"ready.{{me}}").touch()
while not (folder / "end").exists():
    time.sleep(0.02)
"""


class Failure(Exception):
    """Something did not go as it must."""


class Metadata(http.server.BaseHTTPRequestHandler):
    """What the three clouds answer, with the headers that they ask for."""

    noticed = threading.Event()

    def answer(self, status, text=""):
        self.send_response(status)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text.encode())

    def do_PUT(self):
        has_header = "X-aws-ec2-metadata-token-ttl-seconds" in self.headers
        self.answer(200 if has_header and self.path == "/latest/api/token" else 400, "token")

    def do_GET(self):
        noticed = self.noticed.is_set()
        if self.path == "/latest/meta-data/spot/instance-action" and self.headers["X-aws-ec2-metadata-token"] == "token":
            return self.answer(200, '{"action": "terminate", "time": "2026-11-30T08:22:00Z"}') if noticed else self.answer(404)
        if self.path.startswith("/metadata/instance/compute/name?") and self.headers["Metadata"] == "true":
            return self.answer(200, "node1")
        if self.path.startswith("/metadata/scheduledevents?") and self.headers["Metadata"] == "true":
            types = ["Freeze", "Preempt"] if noticed else ["Freeze"]
            events = [{"EventType": it, "Resources": ["node0", "node1"], "NotBefore": ""} for it in types]
            return self.answer(200, json.dumps({"DocumentIncarnation": 1, "Events": events}))
        if self.path == "/computeMetadata/v1/instance/preempted" and self.headers["Metadata-Flavor"] == "Google":
            return self.answer(200, "TRUE" if noticed else "FALSE")
        return self.answer(404)

    def log_message(self, *_):
        pass


class Machine:
    """One run, and its end. Below it everything is in one network namespace."""

    def __init__(self, lrun, folder, seed):
        self.lrun, self.folder = lrun, folder
        chance = random.Random(seed)
        self.where = chance.choice(list(SAYS))
        self.is_elastic = chance.random() < 0.4
        self.ranks = chance.randint(1, 4)
        self.notice_s = chance.uniform(0, 2.5)
        self.save_s = chance.uniform(0, 2)
        self.term_s = chance.uniform(0, 1) if chance.random() < 0.5 else None
        self.token = f"TEST_OF_NOTICES={os.getpid()}.{seed}"
        self.env = {name: text for name, text in os.environ.items() if not name.startswith(("LRUN_", "SLURM_"))}
        self.env["LRUN_STATE"] = str(folder / "state")
        self.env.update([self.token.split("=")])
        (folder / "worker.py").write_text(WORKER)

    def start(self, name, options):
        job = ["--rdzv-endpoint", "127.0.0.1:29400", "--rdzv-id", "job", "--nnodes", "1:2"] if self.is_elastic else []
        words = [self.lrun, *job, *options, "-n", str(self.ranks), "--grace", "20s", sys.executable, "worker.py", str(self.folder),
                 str(self.save_s), name]
        return subprocess.Popen(words, cwd=self.folder, env=self.env, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                stderr=(self.folder / f"err.{name}").open("w"))

    def text(self, name):
        return (self.folder / f"err.{name}").read_text()

    def play(self):
        """Returns how long it took from the notice to the end of lrun."""
        stays = self.start("stays", []) if self.is_elastic else None
        goes = self.start("goes", ["--notice", str(self.folder / "going") if self.where == "file" else self.where])
        try:
            time.sleep(self.notice_s)
            took = self.give_notice(goes)
            if stays is not None:
                self.let_end(stays)
        finally:
            for run in (goes, stays):
                if run is not None:
                    run.kill()
                    run.wait()
        self.check_checkpoints()
        self.check_nothing_left()
        return took

    def give_notice(self, goes):
        began = time.monotonic()
        Metadata.noticed.set()
        (self.folder / "going").touch()
        deadline = began + PATIENCE_S
        signalled = False
        while goes.poll() is None:
            if time.monotonic() > deadline:
                raise Failure("lrun did not end: " + self.text("goes"))
            if self.term_s is not None and not signalled and SAYS[self.where] in self.text("goes"):
                time.sleep(self.term_s)
                goes.send_signal(signal.SIGTERM)
                signalled = True
            time.sleep(0.01)
        if goes.returncode != -signal.SIGTERM or SAYS[self.where] not in self.text("goes"):
            raise Failure(f"lrun ended with {goes.returncode}: " + self.text("goes"))
        return time.monotonic() - began

    def let_end(self, stays):
        """The job goes on, or begins, with one node."""
        deadline = time.monotonic() + PATIENCE_S
        while sum(it.name.startswith("ready.stays.") for it in self.folder.iterdir()) < self.ranks:
            if time.monotonic() > deadline or stays.poll() is not None:
                raise Failure("the other node does not go on: " + self.text("stays"))
            time.sleep(0.01)
        (self.folder / "end").touch()
        if stays.wait(PATIENCE_S) != 0:
            raise Failure(f"the other node ended with {stays.returncode}: " + self.text("stays"))

    def check_checkpoints(self):
        ready = {it.name.partition(".")[2] for it in self.folder.glob("ready.goes.*")}
        saved = {it.name.partition(".")[2] for it in self.folder.glob("saved.goes.*") if it.stat().st_size == CHECKPOINT_BYTES}
        if not ready <= saved:
            raise Failure(f"no complete checkpoint of {sorted(ready - saved)}: " + self.text("goes"))

    def check_nothing_left(self):
        for process in pathlib.Path("/proc").glob("[0-9]*"):
            try:
                if self.token.encode() in (process / "environ").read_bytes().split(b"\0"):
                    raise Failure("left: " + (process / "cmdline").read_bytes().replace(b"\0", b" ").decode())
            except OSError:
                pass  # it has ended, or is another user's


def play_here(lrun, seed):
    """In a network namespace of its own. Prints what was played, and how long it took."""
    subprocess.run(["ip", "address", "add", ADDRESS + "/32", "dev", "lo"], check=True)
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    server = http.server.ThreadingHTTPServer((ADDRESS, 80), Metadata)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    with tempfile.TemporaryDirectory() as folder:
        machine = Machine(lrun, pathlib.Path(folder), seed)
        try:
            took = machine.play()
        except Failure as failure:
            sys.exit(str(failure))
        ready = sum(1 for _ in pathlib.Path(folder).glob("ready.goes.*"))
    print(json.dumps({"where": machine.where, "took_s": took - machine.save_s, "checkpoints": ready}))


def play(lrun, seed):
    """Returns what was played, or why it failed."""
    words = [*NAMESPACE, sys.executable, __file__, "--here", "--seed", str(seed), "--lrun", lrun]
    try:
        played = subprocess.run(words, capture_output=True, text=True, timeout=4 * PATIENCE_S, check=False)
    except subprocess.TimeoutExpired:
        return f"seed {seed}: did not end"
    return json.loads(played.stdout) if played.returncode == 0 else f"seed {seed}: {played.stdout}{played.stderr}"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--notices", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--lrun", default="build/dev/lrun")
    parser.add_argument("--here", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    lrun = str(pathlib.Path(arguments.lrun).resolve())
    if arguments.here:
        return play_here(lrun, arguments.seed)
    if subprocess.run([*NAMESPACE, "ip", "link", "set", "lo", "up"], check=False).returncode != 0:
        print("skipped: no network namespace can be made here")
        return SKIPPED
    with concurrent.futures.ThreadPoolExecutor(PARALLEL) as pool:
        results = list(pool.map(lambda at: play(lrun, arguments.seed + at), range(arguments.notices)))
    failures = [it for it in results if isinstance(it, str)]
    played = [it for it in results if not isinstance(it, str)]
    for failure in failures:
        print(failure)
    for where in SAYS:
        took = [it["took_s"] for it in played if it["where"] == where]
        if took:
            print(f"{where:6} {len(took):4} notices, from the notice to the end without the time to save: "
                  f"median {statistics.median(took):.1f} s, longest {max(took):.1f} s")
    print(f"{len(played)} of {len(results)} notices ended well, with {sum(it['checkpoints'] for it in played)} complete checkpoints")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
