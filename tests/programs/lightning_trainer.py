"""Lightning's Trainer; its processes come from the launcher, as with torchrun."""

import lightning
import torch
from torch.utils.data import DataLoader, TensorDataset

import small_problem

asked = small_problem.arguments()


class Module(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.trained = small_problem.model()

    def training_step(self, batch, _):
        small_problem.maybe_fail(asked, self.global_rank, self.current_epoch)
        return small_problem.loss_of(self.trained, *batch)

    def configure_optimizers(self):
        return small_problem.optimizer(self.trained)


trainer = lightning.Trainer(
    strategy="ddp",
    accelerator="cpu",
    devices=2 // asked.nodes,
    num_nodes=asked.nodes,
    max_epochs=small_problem.EPOCHS,
    logger=False,
    enable_checkpointing=False,
    enable_progress_bar=False,
    enable_model_summary=False,
)
module = Module()
trainer.fit(module, DataLoader(TensorDataset(*small_problem.data()), batch_size=small_problem.SAMPLES // 2))
small_problem.tell(module.trained, trainer.global_rank, trainer.world_size)
torch.distributed.destroy_process_group()
