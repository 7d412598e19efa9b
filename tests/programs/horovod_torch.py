"""Horovod: its optimizer averages the gradients during backward, over Gloo and a rendezvous that lrun serves."""

import horovod.torch as hvd

import small_problem

asked = small_problem.arguments()
hvd.init()
rank, world = hvd.rank(), hvd.size()
trained = small_problem.model()
hvd.broadcast_parameters(trained.state_dict(), root_rank=0)
steps = hvd.DistributedOptimizer(small_problem.optimizer(trained), named_parameters=trained.named_parameters())
for epoch in range(small_problem.EPOCHS):
    small_problem.maybe_fail(asked, rank, epoch)
    steps.zero_grad()
    small_problem.loss_of(trained, *small_problem.part(rank, world)).backward()
    steps.step()
small_problem.tell(trained, rank, world)
hvd.barrier()
hvd.shutdown()
