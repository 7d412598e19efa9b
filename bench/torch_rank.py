#!/usr/bin/env python3
"""torch_rank.py allreduce|step|sharded: what bench_runtime_* measure, with torch's own Python over gloo. A rank of
runtime.py, with the same orders; see those programs."""
import contextlib
import statistics
import sys
import time

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.optim import ZeroRedundancyOptimizer
from torch.nn.parallel import DistributedDataParallel

LARGEST = 256 << 20  # bytes


def slowest(seconds):
    time_of_all = torch.tensor([seconds], dtype=torch.double)
    dist.all_reduce(time_of_all, dist.ReduceOp.MAX)
    return time_of_all.item()


def timed(call):
    """\\return seconds of the slowest rank."""
    dist.barrier()
    begin = time.perf_counter()
    call()
    return slowest(time.perf_counter() - begin)


class AllReduce:
    def __init__(self):
        self.tensor = torch.zeros(LARGEST // 4)

    def measure(self, size, repetitions):
        tensor = self.tensor[:int(size) // 4]
        tensor.fill_(dist.get_rank() + 1)
        dist.all_reduce(tensor)
        assert tensor[0] == tensor[-1] == dist.get_world_size() * (dist.get_world_size() + 1) / 2
        tensor.zero_()
        return {"own": 1e6 * statistics.median(timed(lambda: dist.all_reduce(tensor)) for _ in range(int(repetitions)))}


def linear_net():
    return nn.Sequential(*(layer for _ in range(12) for layer in (nn.Linear(1024, 1024), nn.ReLU())))


def convolution_net():
    return nn.Sequential(nn.Conv2d(1, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
                         nn.Conv2d(32, 64, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
                         nn.Flatten(), nn.Linear(64 * 7 * 7, 128), nn.ReLU(), nn.Linear(128, 10))


class Step:
    SAMPLES = {"linear": (1024,), "cnn": (1, 28, 28)}

    def __init__(self):
        self.plain = {"linear": linear_net(), "cnn": convolution_net()}
        self.models = {"linear": DistributedDataParallel(linear_net()), "cnn": DistributedDataParallel(convolution_net())}
        self.optimizers = {net: torch.optim.SGD(model.parameters(), 1e-4) for net, model in self.models.items()}
        self.batches = {}

    def step(self, net, batch, kind):
        model = self.plain[net] if kind == "plain" else self.models[net]
        model.zero_grad()
        model(batch).square().mean().backward()
        if kind == "trained":
            self.optimizers[net].step()

    def measure(self, net, size, kind, repetitions):
        batch = self.batches.setdefault((net, size), torch.randn(int(size), *self.SAMPLES[net]))
        with self.models[net].no_sync() if kind == "no_sync" else contextlib.nullcontext():
            seconds = [timed(lambda: self.step(net, batch, kind)) for _ in range(int(repetitions))]
        return {kind: 1e3 * statistics.median(seconds)}


class Sharded:
    def __init__(self):
        net = nn.Sequential(*(nn.Linear(1024, 1024) for _ in range(12)))
        for parameter in net.parameters():
            parameter.grad = torch.ones_like(parameter)
        self.optimizer = ZeroRedundancyOptimizer(net.parameters(), torch.optim.Adam, lr=1e-3)

    def measure(self, *_):
        milliseconds = 1e3 * timed(self.optimizer.step)
        state = sum(tensor.nbytes for state in self.optimizer.optim.state.values()
                    for name, tensor in state.items() if name != "step")
        return {"ddp_sharded": milliseconds, "ddp_sharded_bytes": slowest(state)}


def main():
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank = {"allreduce": AllReduce, "step": Step, "sharded": Sharded}[sys.argv[1]]()
    for order in sys.stdin:
        figures = rank.measure(*order.split())
        if dist.get_rank() == 0:
            print(*(word for figure in figures.items() for word in figure), flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
