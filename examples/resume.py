#!/usr/bin/env python3
"""Trains with torch's DDP, and goes on from the newest state when workers were killed: from memory, else from disk.

lrun --devices 2 --max-restarts 3 examples/resume.py state.pt 500
"""

import os
import sys
import zlib

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

STEPS_BETWEEN_FILES = 100


def save(path, state):
    """Replaces the file in one step: a reader finds the old state or the new one, never a part of it."""
    torch.save(state, path + ".new")
    os.replace(path + ".new", path)


def newest(paths):
    """The state with the most steps, and its file; (None, None): there is none yet."""
    found = [(torch.load(path), path) for path in paths if path and os.path.exists(path)]
    return max(found, key=lambda state_and_path: state_and_path[0]["step"], default=(None, None))


def main():
    if len(sys.argv) != 3 or not sys.argv[2].isdigit():
        sys.exit("usage: resume.py STATE STEPS")
    disk, steps = sys.argv[1], int(sys.argv[2])
    folder = os.environ.get("LRUN_MEMORY_DIR")  # outlives the workers, but not the run
    memory = os.path.join(folder, "state.pt") if folder else None

    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(1)
    network = torch.nn.Linear(8, 1)
    optimizer = torch.optim.Adam(network.parameters(), lr=0.01)
    # Rank 0 reads for all: on other nodes the folder in memory is another one.
    shared = [newest([memory, disk]) if rank == 0 else None]
    dist.broadcast_object_list(shared)
    state, path = shared[0]
    first = 0
    if state:
        first = state["step"]
        network.load_state_dict(state["network"])
        optimizer.load_state_dict(state["optimizer"])
        if rank == 0:
            print(f"goes on from step {first} {'in memory' if path == memory else 'on disk'}", flush=True)
    model = DistributedDataParallel(network)
    for step in range(first, steps):
        generator = torch.Generator().manual_seed(step * dist.get_world_size() + rank)
        samples = torch.randn(16, 8, generator=generator)
        optimizer.zero_grad()
        (model(samples) - samples.sum(1, keepdim=True)).square().mean().backward()
        optimizer.step()
        state = {"step": step + 1, "network": network.state_dict(), "optimizer": optimizer.state_dict()}
        if memory and os.environ["LOCAL_RANK"] == "0":  # on each node, as any of them may be the one that is left
            save(memory, state)
        if rank == 0 and ((step + 1) % STEPS_BETWEEN_FILES == 0 or step + 1 == steps):
            save(disk, state)
        if rank == 0 and (step + 1) % 10 == 0:
            print(f"step {step + 1}", flush=True)
    bits = repr([parameter.tolist() for parameter in network.parameters()]).encode()  # exact, and without numpy
    print(f"parameters {zlib.crc32(bits):08x}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
