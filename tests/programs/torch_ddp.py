"""torch's own DistributedDataParallel on gloo."""

import sys

import torch
import torch.distributed as dist

import small_problem

asked = small_problem.arguments()
dist.init_process_group("gloo")
rank, world = dist.get_rank(), dist.get_world_size()
trained = small_problem.model()
replica = torch.nn.parallel.DistributedDataParallel(trained)
steps = small_problem.optimizer(replica)
for epoch in range(small_problem.EPOCHS):
    small_problem.maybe_fail(asked, rank, epoch)
    steps.zero_grad()
    small_problem.loss_of(replica, *small_problem.part(rank, world)).backward()
    steps.step()
small_problem.tell(trained, rank, world)
dist.barrier()
dist.destroy_process_group()
if rank == 1:
    sys.exit(asked.exit_code)
