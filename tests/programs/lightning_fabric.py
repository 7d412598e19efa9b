"""Lightning Fabric: the loop is the program's own."""

import lightning
import torch
from torch.utils.data import DataLoader, TensorDataset

import small_problem

asked = small_problem.arguments()
fabric = lightning.Fabric(strategy="ddp", accelerator="cpu", devices=2)
fabric.launch()
trained = small_problem.model()
replica, steps = fabric.setup(trained, small_problem.optimizer(trained))
loader = fabric.setup_dataloaders(
    DataLoader(TensorDataset(*small_problem.data()), batch_size=small_problem.SAMPLES // 2))
for epoch in range(small_problem.EPOCHS):
    for batch in loader:
        small_problem.maybe_fail(asked, fabric.global_rank, epoch)
        steps.zero_grad()
        fabric.backward(small_problem.loss_of(replica, *batch))
        steps.step()
small_problem.tell(trained, fabric.global_rank, fabric.world_size)
torch.distributed.destroy_process_group()
