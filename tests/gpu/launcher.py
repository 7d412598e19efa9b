#!/usr/bin/env python3
"""launcher.py [CASE...]: which GPUs lrun finds, gives to ranks and refuses, and what its start costs."""
import json
import statistics
import subprocess
import sys
import tempfile
import time

from card import Occupant, expect_free, fact, hint, need_module, read_until, verdict
from kit import LRUN, Skipped, case, environment, expect, gpu_count, main, need_gpu, run

REFUSED = 125
SHOW = ["sh", "-c", 'echo "rank=$RANK local=$LOCAL_RANK devices=$LRUN_DEVICES kind=$LRUN_ACCELERATOR '
        'visible=${CUDA_VISIBLE_DEVICES-unset}"']
TIMES = 7

# Rank 0 computes all the time; rank 1 has computed once, and holds 256 MiB more.
TWO_RANKS = """
import os, time, torch
rank = int(os.environ["RANK"])
kept = torch.ones((1 + rank) << 28, dtype=torch.uint8, device="cuda:0")
work = torch.ones(4096, 4096, device="cuda:0")
work @ work  # takes the memory that products want
torch.cuda.synchronize()
print("rank", rank, "is up", flush=True)
end = time.monotonic() + 60
while time.monotonic() < end:
    if rank == 0:
        for _ in range(20):
            work @ work
        torch.cuda.synchronize()
    else:
        time.sleep(0.1)
"""


class TwoRanks:
    """A run of two ranks that share the first GPU, in a state folder of its own."""

    def __enter__(self):
        self.folder = tempfile.TemporaryDirectory()
        self.state = {"LRUN_STATE": self.folder.name}
        words = [LRUN, "--devices", "2", "--accelerator", "cpu", "--grace", "5s", sys.executable, "-c", TWO_RANKS]
        self.lrun = subprocess.Popen(words, env=environment(**self.state), stdin=subprocess.DEVNULL,
                                     stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True)
        try:
            read_until(self.lrun.stdout, "is up\n", 60, times=2)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        self.lrun.terminate()
        try:
            self.lrun.wait(timeout=30)
        except subprocess.TimeoutExpired:
            self.lrun.kill()
            self.lrun.wait()
        self.lrun.stdout.close()
        self.folder.cleanup()

    def status(self):
        """The two workers as `lrun status` has them, and its text."""
        answer = run([LRUN, "status", "--json"], **self.state)
        expect(answer.returncode == 0, answer.stderr)
        return json.loads(answer.stdout)["runs"][0]["workers"], run([LRUN, "status"], **self.state).stdout


def need_one_gpu():
    """Skips the case where there is not exactly one."""
    need_gpu()
    if gpu_count() > 1:
        raise Skipped(f"is about a machine with one GPU, and there are {gpu_count()}")


def need_no_gpu():
    """Skips the case where there is a GPU."""
    if gpu_count():
        raise Skipped("is about a machine without a GPU")


def shown(options, **variables):
    """What the one worker of a run with these options printed, as a dict."""
    ended = run([LRUN, *options, *SHOW], **variables)
    expect(ended.returncode == 0, f"{options}: code {ended.returncode}: {ended.stderr}")
    lines = [line for line in ended.stdout.splitlines() if "rank=" in line]
    expect(len(lines) == 1, f"{options}: not one worker: {ended.stdout}")
    return dict(word.split("=", 1) for word in lines[0].split() if "=" in word)


def expect_gpu(options, **variables):
    """The one rank is given the first GPU. Returns what it sees."""
    seen = shown(options, **variables)
    expected = {"rank": "0", "local": "0", "devices": "cuda:0", "kind": "gpu"}
    expect({**seen, **expected} == seen, f"{options}: {seen}")
    return seen


def refused(options, words, **variables):
    """lrun starts nothing, and its error has the words. Returns its texts."""
    ended = run([LRUN, *options, *SHOW], **variables)
    expect(ended.returncode == REFUSED, f"{options}: code {ended.returncode}: {ended.stdout}{ended.stderr}")
    expect(ended.stdout == "", f"{options}: a worker ran: {ended.stdout}")
    expect(words in verdict(ended.stderr), f"{options}: no '{words}': {ended.stderr}")
    return ended.stderr


@case
def takes_the_gpu_for_auto_and_for_all_and_for_a_count():
    need_one_gpu()
    for options in ([], ["--devices", "auto"], ["--devices", "-1"], ["--devices", "1"], ["--accelerator", "gpu"],
                    ["--nproc-per-node", "gpu"]):
        expect_gpu(options)


@case
def takes_the_gpu_that_a_list_names():
    need_gpu()
    seen = expect_gpu(["--devices", "0,"])
    expect(seen["visible"] in ("0", fact("uuid")), str(seen))


@case
def takes_the_gpu_of_a_uuid_and_of_its_beginning():
    need_gpu()
    uuid = fact("uuid")
    for named in (uuid, uuid[:12]):
        seen = expect_gpu(["--devices", named])
        expect(seen["visible"] == uuid, f"--devices {named}: {seen}")


@case
def refuses_more_gpus_than_there_are():
    need_one_gpu()
    text = refused(["--devices", "2"], "has 1 GPU")
    expect("--devices 1" in hint(text), text)


@case
def refuses_a_list_with_a_gpu_that_is_not_there():
    need_one_gpu()
    refused(["--devices", "0,1"], "there is no GPU '1'")
    refused(["--devices", "GPU-00000000-0000"], "GPU-00000000-0000")


@case
def keeps_to_what_the_caller_has_made_visible():
    need_gpu()
    uuid = fact("uuid")
    for visible in ("0", uuid):
        seen = expect_gpu(["--devices", "auto"], CUDA_VISIBLE_DEVICES=visible)
        expect(seen["visible"] in (visible, uuid), f"CUDA_VISIBLE_DEVICES={visible}: {seen}")


@case
def runs_on_the_cpu_where_the_caller_hides_the_gpus():
    need_gpu()
    seen = shown(["--devices", "auto"], CUDA_VISIBLE_DEVICES="")
    expect(seen["kind"] == "cpu" and seen["devices"] == "cpu", str(seen))
    refused(["--devices", "-1"], "has no GPU", CUDA_VISIBLE_DEVICES="")
    refused(["--devices", "0,"], "has no GPU", CUDA_VISIBLE_DEVICES="")


@case
def isolates_a_worker_with_its_gpu():
    need_gpu()
    seen = expect_gpu(["--isolate-gpus", "--devices", "1"])
    expect(seen["visible"] in ("0", fact("uuid")), str(seen))
    look = "import torch; print('sees', torch.cuda.device_count(), torch.cuda.get_device_name(0))"
    ended = run([LRUN, "--isolate-gpus", "--devices", "1", sys.executable, "-c", look])
    expect(ended.returncode == 0, ended.stderr)
    expect(f"sees 1 {fact('name')}" in ended.stdout, ended.stdout)


@case
def shows_the_gpu_in_the_plan():
    need_one_gpu()
    shown_plan = run([LRUN, "--dry-run", "--devices", "auto", "/bin/true"])
    expect(shown_plan.returncode == 0, shown_plan.stderr)
    rows = {line.split()[0]: line for line in shown_plan.stdout.splitlines() if line.split()}
    expect("GPU 0" in rows.get("devices", "") and " gpu " in rows.get("accelerator", ""), shown_plan.stdout)
    expect(" nccl " in rows.get("backend", "") and "LRUN_DEVICES=cuda:0" in shown_plan.stdout, shown_plan.stdout)
    plan = json.loads(run([LRUN, "--dry-run=json", "--devices", "auto", "/bin/true"]).stdout)
    expect(plan["accelerator"]["value"] == "gpu" and plan["process_group_backend"]["value"] == "nccl", str(plan))
    expect_free()


@case
def refuses_a_busy_gpu_and_names_who_has_it():
    need_one_gpu()
    expect_free()
    with Occupant() as other:
        program = f"process {other.process.pid} (python"
        text = refused(["--devices", "1"], program)
        expect("is busy" in text and "--share-gpus" in hint(text), text)
        refused(["--accelerator", "gpu"], program)
        refused(["--devices", "0,"], program)
        expect_gpu(["--share-gpus", "--devices", "1"])
        # GPUs were not asked for: it is a warning.
        warned = run([LRUN, *SHOW])
        expect(warned.returncode == 0 and program in warned.stderr, f"code {warned.returncode}: {warned.stderr}")
        doctor = run([LRUN, "doctor"])
        expect(doctor.returncode == 1 and program in doctor.stdout + doctor.stderr,
               f"doctor: code {doctor.returncode}: {doctor.stdout}{doctor.stderr}")
    expect_free()
    expect_gpu(["--devices", "1"])


@case
def tells_in_status_what_each_rank_uses_of_the_gpu():
    need_gpu()
    need_module("torch")
    expect_free()
    with TwoRanks() as ranks:
        end = time.monotonic() + 10
        while True:  # the driver samples the use of time every now and then
            workers, text = ranks.status()
            uses = [worker["gpus"][0] if worker["gpus"] else {} for worker in workers]
            busy = [use.get("percent") for use in uses]
            if (busy[0] or 0) >= 50 or time.monotonic() > end:
                break
            time.sleep(0.2)
    free_after = expect_free()
    expect([use.get("gpu") for use in uses] == [0, 0], f"not both on GPU 0: {text}")
    memory = [use["memory_mib"] for use in uses]
    expect(memory[0] and 256 <= memory[1] - memory[0] <= 512, f"rank 1 has 256 MiB more than rank 0: {text}")
    expect((busy[0] or 0) >= 50 and (busy[1] or 0) <= 5, f"rank 0 computes, rank 1 does not: {text}")
    return {"text": text, "free_after_s": free_after}


@case
def finds_nothing_wrong_with_a_gpu_that_is_free():
    need_gpu()
    expect_free()
    doctor = run([LRUN, "doctor"])
    expect(doctor.returncode == 0, f"code {doctor.returncode}: {doctor.stdout}{doctor.stderr}")
    said = doctor.stdout + doctor.stderr
    expect(said.startswith("lrun doctor: no problems: ") and said.count("\n") == 1 and "GPU" in said, said)


@case
def refuses_a_taken_gpu_of_exclusive_mode_even_to_share():
    need_one_gpu()
    mode = fact("compute_mode")
    if "Exclusive" not in mode:
        raise Skipped(f"the compute mode is {mode}")
    with Occupant():
        refused(["--share-gpus", "--devices", "1"], "exclusive")
    expect_free()


@case
def gives_instances_of_a_gpu_in_mig_mode():
    need_gpu()
    mode = fact("mig.mode.current")
    if mode != "Enabled":
        raise Skipped(f"MIG is {mode}")
    seen = shown(["--devices", "1"])
    expect(seen["visible"].startswith("MIG-"), str(seen))


@case
def refuses_what_names_a_gpu_where_there_is_none():
    need_no_gpu()
    for options in (["--devices", "0,"], ["--devices", "0,1"], ["--devices", "-1"], ["--devices", "GPU-12"]):
        refused(options, "has no GPU")
    refused(["--accelerator", "gpu"], "is not available")


@case
def runs_on_the_cpu_where_there_is_no_gpu():
    need_no_gpu()
    for options in ([], ["--devices", "auto"], ["--devices", "1"], ["--isolate-gpus", "--devices", "1"]):
        seen = shown(options)
        expect(seen["kind"] == "cpu" and seen["devices"] == "cpu", f"{options}: {seen}")


def milliseconds(command):
    """The median of the wall times of a command that ends well."""
    taken = []
    for _ in range(TIMES):
        begin = time.monotonic()
        ended = subprocess.run(command, env=environment(), stdin=subprocess.DEVNULL, capture_output=True, timeout=60,
                               check=False)
        taken.append((time.monotonic() - begin) * 1000)
        expect(ended.returncode == 0, f"{command}: code {ended.returncode}: {ended.stderr.decode(errors='replace')}")
    return round(statistics.median(taken), 2)


@case
def starts_and_ends_within_two_seconds():
    figures = {"bare_ms": milliseconds(["/bin/true"]),
               "cpu_ms": milliseconds([LRUN, "--accelerator", "cpu", "--devices", "1", "/bin/true"]),
               "auto_ms": milliseconds([LRUN, "--devices", "auto", "/bin/true"]),
               "gpus": gpu_count()}
    expect(max(figures["cpu_ms"], figures["auto_ms"]) < 2000, str(figures))
    return figures


if __name__ == "__main__":
    main("launcher")
