"""A program as people write it for DeepSpeed's launcher: --local_rank, and an engine from a file of settings."""

import argparse

import deepspeed

import small_problem

parser = deepspeed.add_config_arguments(argparse.ArgumentParser())
parser.add_argument("--local_rank", type=int, required=True, help="from the launcher")
asked = parser.parse_args()
trained = small_problem.model().float()  # its engine averages no doubles
engine, _, _, _ = deepspeed.initialize(args=asked, model=trained, optimizer=small_problem.optimizer(trained))
rank, world = deepspeed.comm.get_rank(), deepspeed.comm.get_world_size()
inputs, targets = small_problem.part(rank, world)
for epoch in range(small_problem.EPOCHS):
    engine.backward(small_problem.loss_of(engine, inputs.float(), targets.float()))
    engine.step()
deepspeed.comm.barrier()
small_problem.tell(trained.double(), rank, world)
deepspeed.comm.destroy_process_group()
