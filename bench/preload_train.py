#!/usr/bin/env python3
"""preload_train.py FILE: one step of torch's DDP over gloo. In the first attempt the last rank then kills itself. Each rank
writes FILE.ATTEMPT.RANK: the times when it had imported and when it had stepped, and rank 0 the memory of all."""
import os
import pathlib
import signal
import sys
import time

import torch
import torch.distributed as dist


def now():
    return time.clock_gettime(time.CLOCK_MONOTONIC)


def proportional_set_kb(pid):
    for line in pathlib.Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
        if line.startswith("Pss:"):
            return int(line.split()[1])
    return 0


def memory_of_all():
    """Of the launcher's children: the ranks, and a fork server."""
    launcher = os.getppid()
    children = pathlib.Path(f"/proc/{launcher}/task/{launcher}/children").read_text().split()
    return sum(proportional_set_kb(child) for child in children)


imported = now()
attempt = os.environ["TORCHELASTIC_RESTART_COUNT"]
dist.init_process_group("gloo")
rank, world_size = dist.get_rank(), dist.get_world_size()
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(256, 256))
optimizer = torch.optim.AdamW(model.parameters())
model(torch.randn(16, 256)).sum().backward()
optimizer.step()
stepped = now()

dist.barrier()
words = {"imported": imported, "stepped": stepped}
if rank == 0:
    words["kb"] = memory_of_all()
dist.barrier()
dies = attempt == "0" and rank == world_size - 1
if dies:
    time.sleep(0.5)  # until the others have left the barrier, which would fail otherwise
    words["died"] = now()
path = f"{sys.argv[1]}.{attempt}.{rank}"
with open(path + ".new", "w") as file:
    file.write("".join(f"{name} {value}\n" for name, value in words.items()))
os.rename(path + ".new", path)
if dies:
    os.kill(os.getpid(), signal.SIGKILL)
time.sleep(60 if attempt == "0" else 1)  # until it is stopped, or the others have left the barrier
dist.destroy_process_group()
