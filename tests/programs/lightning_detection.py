"""How Lightning finds the launcher that it runs under, before anything is trained."""

import sys

import lightning

trainer = lightning.Trainer(strategy="ddp", accelerator="cpu", devices=2, logger=False, enable_checkpointing=False,
                            enable_progress_bar=False, enable_model_summary=False)
environment = trainer.strategy.cluster_environment
environment.validate_settings(num_devices=2, num_nodes=1)
sys.stdout.write(f"result {type(environment).__name__} rank={trainer.global_rank} local={trainer.local_rank} "
                 f"world={trainer.world_size} started={environment.creates_processes_externally}\n")
