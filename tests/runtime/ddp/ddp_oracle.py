"""Trains the perceptron of networks.h under torch's own DistributedDataParallel and prints its parameters.

usage: ddp_oracle.py WORLD_SIZE STEPS ACCUMULATED FOLDER

One line a parameter: its name, then its elements as hexadecimal doubles. FOLDER is empty; the ranks meet in it.
"""

import contextlib
import os
import sys

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

FEATURES, HIDDEN, CLASSES, GLOBAL_BATCH = 16, 32, 5, 12


class Perceptron(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(FEATURES, HIDDEN)
        self.shared = nn.Linear(HIDDEN, HIDDEN)
        self.expert = nn.Linear(HIDDEN, HIDDEN)
        self.frozen = nn.Linear(HIDDEN, HIDDEN)
        self.never = nn.Linear(3, 3)
        self.last = nn.Linear(HIDDEN, CLASSES)
        for parameter in self.frozen.parameters():
            parameter.requires_grad_(False)

    def forward(self, x):
        hidden = torch.relu(self.first(x))
        hidden = torch.tanh(self.shared(torch.tanh(self.shared(hidden))))
        chosen = torch.nonzero(x[:, 0] > 1).squeeze(1)
        if chosen.numel() > 0:
            hidden = hidden.index_add(0, chosen, torch.tanh(self.expert(hidden.index_select(0, chosen))))
        return self.last(hidden + self.frozen(hidden))


def wave(count, frequency, shape):
    return torch.sin(torch.arange(count, dtype=torch.float64) * frequency).reshape(shape)


def batch(index):
    x = wave(GLOBAL_BATCH * FEATURES, 0.7 + 0.01 * index, (GLOBAL_BATCH, FEATURES)) * 2
    if index % 4 < 2:
        x[:, 0].clamp_(-1, 1)
    if index % 4 == 1:
        x[0, 0] = 2
    return x, wave(GLOBAL_BATCH * CLASSES, 1.3 + 0.01 * index, (GLOBAL_BATCH, CLASSES))


def train(rank, world_size, steps, accumulated, folder):
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{folder}/meet", rank=rank, world_size=world_size)
    net = Perceptron().double()
    with torch.no_grad():
        for index, parameter in enumerate(net.parameters()):
            parameter.copy_(wave(parameter.numel(), 0.3 + 0.1 * index, parameter.shape) * 0.2)
    ddp = DistributedDataParallel(net, find_unused_parameters=True)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9, weight_decay=1e-3)
    part = slice(rank * GLOBAL_BATCH // world_size, (rank + 1) * GLOBAL_BATCH // world_size)
    for step in range(steps):
        optimizer.zero_grad()
        for micro in range(accumulated):
            x, y = batch(step * accumulated + micro)
            with contextlib.nullcontext() if micro + 1 == accumulated else ddp.no_sync():
                (nn.functional.mse_loss(ddp(x[part]), y[part]) / accumulated).backward()
        optimizer.step()
    if rank == 0:
        for name, parameter in net.named_parameters():
            print(name, *(value.hex() for value in parameter.detach().flatten().tolist()))
    dist.barrier()
    dist.destroy_process_group()


def main():
    world_size, steps, accumulated = map(int, sys.argv[1:4])
    children = []
    for rank in range(1, world_size):
        child = os.fork()
        if child == 0:
            train(rank, world_size, steps, accumulated, sys.argv[4])
            os._exit(0)
        children.append(child)
    train(0, world_size, steps, accumulated, sys.argv[4])
    sys.stdout.flush()
    os._exit(0 if all(os.waitpid(child, 0)[1] == 0 for child in children) else 1)


main()
