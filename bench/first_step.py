#!/usr/bin/env python3
"""first_step.py FILE: bench_runtime_first_step in Python, with torch's own DDP over gloo."""
import os
import sys
import time

import torch
import torch.distributed as dist

dist.init_process_group("gloo")
total = torch.ones(1, dtype=torch.double)
dist.all_reduce(total)
summed = time.clock_gettime(time.CLOCK_MONOTONIC)
assert total.item() == dist.get_world_size()

net = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(784, 256), torch.nn.ReLU(), torch.nn.Linear(256, 10))
model = torch.nn.parallel.DistributedDataParallel(net)
optimizer = torch.optim.SGD(model.parameters(), 0.1)
labels = torch.randint(0, 10, (64,))
torch.nn.functional.cross_entropy(model(torch.randn(64, 1, 28, 28)), labels).backward()
optimizer.step()
stepped = time.clock_gettime(time.CLOCK_MONOTONIC)

with open(f"{sys.argv[1]}.{os.environ['RANK']}", "w") as file:
    file.write(f"all_reduce {summed:.6f}\nstep {stepped:.6f}\n")
dist.destroy_process_group()
