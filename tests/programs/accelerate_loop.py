"""Hugging Face's accelerate."""

from accelerate import Accelerator
from torch.utils.data import DataLoader, TensorDataset

import small_problem

asked = small_problem.arguments()
accelerator = Accelerator(cpu=True)
trained = small_problem.model()
replica, steps, loader = accelerator.prepare(
    trained,
    small_problem.optimizer(trained),
    DataLoader(TensorDataset(*small_problem.data()), batch_size=small_problem.SAMPLES // 2),
)
for epoch in range(small_problem.EPOCHS):
    for batch in loader:
        small_problem.maybe_fail(asked, accelerator.process_index, epoch)
        steps.zero_grad()
        accelerator.backward(small_problem.loss_of(replica, *batch))
        steps.step()
small_problem.tell(accelerator.unwrap_model(replica), accelerator.process_index, accelerator.num_processes)
accelerator.end_training()
