"""DeepSpeed's init_distributed, and the gradients summed by its own communication."""

import deepspeed
import deepspeed.comm as comm

import small_problem

asked = small_problem.arguments()
deepspeed.init_distributed(dist_backend="gloo")
rank, world = comm.get_rank(), comm.get_world_size()
trained = small_problem.model()
steps = small_problem.optimizer(trained)
for epoch in range(small_problem.EPOCHS):
    small_problem.maybe_fail(asked, rank, epoch)
    steps.zero_grad()
    small_problem.loss_of(trained, *small_problem.part(rank, world)).backward()
    for parameter in trained.parameters():
        comm.all_reduce(parameter.grad)
        parameter.grad /= world
    steps.step()
small_problem.tell(trained, rank, world)
comm.barrier()
comm.destroy_process_group()
