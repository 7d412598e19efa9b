#!/usr/bin/env python3
"""faults.py [CASE...]: how lrun explains failures of a Python worker on a GPU, and that nothing is left there."""
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from card import end_of_rank, expect_free, hint, need_module, read_until, verdict
from kit import LRUN, case, environment, expect, main, need_gpu, run

HERE = "# here"  # marks the line that the verdict has to name
GRACE_S = 3
HANG_S = 8

OUT_OF_MEMORY = """
import torch
kept = torch.empty(1 << 42, dtype=torch.uint8, device="cuda")  # here
"""

ILLEGAL_ADDRESS = """
import cupy
import numpy
import torch
torch.ones(1, device="cuda")
spoil = cupy.RawKernel('extern "C" __global__ void spoil(unsigned long long at) { *(volatile int*)at = 1; }', "spoil")
spoil((1,), (1,), (numpy.uint64(16),))
torch.cuda.synchronize()  # here
"""

TRAP = """
import cupy
import torch
torch.ones(1, device="cuda")
cupy.RawKernel('extern "C" __global__ void stop() { asm("trap;"); }', "stop")((1,), (1,), ())
torch.cuda.synchronize()  # here
"""

ASSERT = """
import torch
classes = torch.zeros(4, device="cuda")
picked = classes[torch.tensor([9], device="cuda")]
torch.cuda.synchronize()  # here
"""

WRONG_DEVICE = """
import torch
model = torch.nn.Linear(4, 4).cuda()
model(torch.ones(4, 4))  # here
"""

NOT_A_NUMBER = """
import torch
weight = torch.ones(4, device="cuda", requires_grad=True)
for step in range(3):
    loss = (weight * (float("nan") if step == 2 else 1.0)).sum()
    if torch.isnan(loss):
        raise ValueError(f"the loss is {loss.item()} in step {step}")  # here
    loss.backward()
"""

# Every later call has the error too: Python ends with it, and NCCL's watchdog aborts with it, whichever is the first.
ASSERT_UNDER_NCCL = """
import atexit
import time
import torch
import torch.distributed as dist
torch.cuda.set_device(0)
dist.init_process_group("nccl")
classes = torch.ones(4, device="cuda")
dist.all_reduce(classes)
torch.cuda.synchronize()
atexit.register(time.sleep, 2)
index = torch.tensor([9], device="cuda")
torch.cuda._sleep(1 << 29)
dist.all_reduce(torch.ones(4, device="cuda"), async_op=True)
picked = classes[index]
torch.cuda.synchronize()  # here
"""

ONE_OF_TWO = """
import torch
import torch.distributed as dist
dist.init_process_group("gloo")
weight = torch.ones(4, device="cuda:0")
dist.all_reduce(weight)
if dist.get_rank() == 1:
    kept = torch.empty(1 << 42, dtype=torch.uint8, device="cuda:0")  # here
dist.all_reduce(weight)
"""

ENDLESS = """
import os
import signal
import sys
import threading
import torch
torch.ones(1, device="cuda")
for _ in range(4):
    torch.cuda._sleep(1 << 62)
if "kill" in sys.argv:
    threading.Timer(1, os.kill, (os.getpid(), signal.SIGKILL)).start()
print("waits", flush=True)
torch.cuda.synchronize()  # here
"""


def written(folder, script):
    """The file of the script, and 'file:line' of its marked line."""
    path = Path(folder) / "program.py"
    path.write_text(script, encoding="utf-8")
    marked = [number for number, line in enumerate(script.splitlines(), 1) if HERE in line]
    return path, f"{path.name}:{marked[0]}"


def expect_words(text, words, all_text):
    """Every one of the words is in the text."""
    for word in words:
        expect(word in text, f"no '{word}' in: {text}\nof: {all_text}")


def run_to_the_end(script, code, options=(), arguments=()):
    """Runs the script as the one worker on a GPU that is free. Returns how it ended, which is with the code, 'file:line' of
    its marked line, and the seconds until the GPU was free again."""
    need_gpu()
    expect_free()
    with tempfile.TemporaryDirectory() as folder:
        path, place = written(folder, script)
        ended = run([LRUN, "--devices", "1", *options, sys.executable, path, *arguments])
    expect(ended.returncode == code, f"code {ended.returncode}: {ended.stderr}")
    return ended, place, expect_free()


def expect_explained(script, exception, hinted=""):
    """The program fails with the exception, the verdict names rank, exception and line, and a note the GPU; nothing is
    left."""
    ended, place, free_after = run_to_the_end(script, 1)
    told = verdict(ended.stderr)
    expect_words(told, ["rank 0 failed: ", "(exit 1)", exception, f" at {place}"], ended.stderr)
    expect_words(end_of_rank(ended.stderr), ["rank 0 ", "GPU 0 on "], ended.stderr)
    expect(hinted in hint(ended.stderr), f"no '{hinted}' in the hint: {ended.stderr}")
    return {"verdict": told, "hint": hint(ended.stderr), "free_after_s": free_after, "text": ended.stderr}


@case
def explains_that_the_gpu_is_out_of_memory():
    return expect_explained(OUT_OF_MEMORY, "OutOfMemoryError: CUDA out of memory", "the GPU is out of memory")


@case
def explains_an_illegal_address():
    need_gpu()
    need_module("cupy")
    return expect_explained(ILLEGAL_ADDRESS, "an illegal memory access was encountered", "CUDA_LAUNCH_BLOCKING=1")


@case
def explains_a_kernel_that_traps():
    need_gpu()
    need_module("cupy")
    return expect_explained(TRAP, "unspecified launch failure", "CUDA_LAUNCH_BLOCKING=1")


@case
def explains_an_assertion_on_the_device():
    figures = expect_explained(ASSERT, "device-side assert triggered", "CUDA_LAUNCH_BLOCKING=1")
    expect("index out of bounds" in figures["text"], f"what the kernel asserted is not shown: {figures['text']}")
    return figures


@case
def explains_a_tensor_on_another_device():
    return expect_explained(WRONG_DEVICE, "RuntimeError: Expected all tensors to be on the same device", ".to(device)")


@case
def explains_a_loss_that_is_not_a_number():
    return expect_explained(NOT_A_NUMBER, "ValueError: the loss is nan in step 2")


@case
def explains_an_error_of_cuda_after_which_nccl_aborts():
    need_gpu()
    expect_free()
    with tempfile.TemporaryDirectory() as folder:
        path, place = written(folder, ASSERT_UNDER_NCCL)
        ended = run([LRUN, "--devices", "1", sys.executable, path])
    aborted = ended.returncode == 128 + signal.SIGABRT
    expect(aborted or ended.returncode == 1, f"code {ended.returncode}: {ended.stderr}")
    free_after = expect_free()
    told = verdict(ended.stderr)
    expect_words(told, ["rank 0 failed: ", "CUDA error: device-side assert triggered"], ended.stderr)
    expect_words(end_of_rank(ended.stderr), ["rank 0 ", "GPU 0 on "], ended.stderr)
    if "torch.AcceleratorError" in ended.stderr:  # else the watchdog came before Python could say where
        expect_words(told, [f" at {place}"], ended.stderr)
    return {"verdict": told, "hint": hint(ended.stderr), "aborted": aborted, "free_after_s": free_after,
            "text": ended.stderr}


@case
def names_the_one_of_two_ranks_on_a_gpu_that_fails():
    need_gpu()
    expect_free()
    with tempfile.TemporaryDirectory() as folder:
        path, place = written(folder, ONE_OF_TWO)
        ended = run([LRUN, "--devices", "2", "--accelerator", "cpu", "--grace", "5s", sys.executable, path])
    expect(ended.returncode == 1, f"code {ended.returncode}: {ended.stderr}")
    free_after = expect_free()
    told = verdict(ended.stderr)
    expect_words(told, ["rank 1 failed: ", "OutOfMemoryError: CUDA out of memory", f" at {place}"], ended.stderr)
    return {"verdict": told, "free_after_s": free_after}


@case
def names_where_a_rank_waits_for_a_kernel_that_never_ends():
    options = ["--hang-timeout", f"{HANG_S}s", "--grace", f"{GRACE_S}s"]
    ended, place, free_after = run_to_the_end(ENDLESS, 124, options)
    expect("waits" in ended.stdout, f"it hung before the kernel began: {ended.stderr}")
    told = verdict(ended.stderr)
    expect_words(told, ["no worker made progress", "rank 0"], ended.stderr)
    expect_words(ended.stderr, [place], ended.stderr)
    return {"verdict": told, "names_the_line": place in told, "free_after_s": free_after, "text": ended.stderr}


@case
def leaves_nothing_of_a_worker_that_is_killed_in_a_kernel():
    ended, _, free_after = run_to_the_end(ENDLESS, 128 + signal.SIGKILL, ["--grace", f"{GRACE_S}s"], ["kill"])
    told = verdict(ended.stderr)
    expect_words(told, ["rank 0 died of SIGKILL"], ended.stderr)
    expect_words(end_of_rank(ended.stderr), ["rank 0 ", "GPU 0 on "], ended.stderr)
    return {"verdict": told, "free_after_s": free_after}


def interrupted(path, folder):
    """Interrupts lrun while its worker waits for a kernel. Returns its code, the seconds that it took to end and its
    text."""
    with open(Path(folder) / "stderr", "w+b") as complaints:
        lrun = subprocess.Popen([LRUN, "--devices", "1", "--grace", f"{GRACE_S}s", sys.executable, str(path)],
                                env=environment(), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=complaints,
                                start_new_session=True)
        try:
            read_until(lrun.stdout, "waits\n", 60)
            begin = time.monotonic()
            lrun.send_signal(signal.SIGINT)
            lrun.wait(timeout=30)
            seconds = time.monotonic() - begin
        finally:
            if lrun.poll() is None:
                lrun.kill()
                lrun.wait()
            lrun.stdout.close()
        complaints.seek(0)
        return lrun.returncode, seconds, complaints.read().decode(errors="replace")


@case
def ends_by_ctrl_c_within_the_grace_while_a_kernel_runs():
    need_gpu()
    expect_free()
    with tempfile.TemporaryDirectory() as folder:
        path, _ = written(folder, ENDLESS)
        code, seconds, text = interrupted(path, folder)
    expect(code == -signal.SIGINT, f"code {code}: {text}")
    expect(seconds < GRACE_S + 5, f"it took {seconds:.1f} s: {text}")
    return {"ended_after_s": round(seconds, 2), "free_after_s": expect_free(), "text": text}


if __name__ == "__main__":
    main("faults")
