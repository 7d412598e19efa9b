#!/usr/bin/env python3
"""frameworks.py [CASE...]: Python programs of other people's frameworks under lrun, with one rank on a GPU over NCCL.

All do the training of small_problem.py, which the kit has in parts/programs, and have to come to its loss.
"""
import os
import sys
import tempfile
from pathlib import Path

from card import expect_free, hint, need_module, verdict
from kit import LRUN, ROOT, case, expect, main, need_gpu, run

PROGRAMS = ROOT / "parts/programs"

DDP = """
import torch
import torch.distributed as dist
import small_problem as problem
device = torch.device("cuda", torch.cuda.current_device())
dist.init_process_group("nccl", device_id=device)
trained = problem.model().to(device)
replica = torch.nn.parallel.DistributedDataParallel(trained, device_ids=[device.index])
steps = problem.optimizer(replica)
inputs, targets = (part.to(device) for part in problem.part(dist.get_rank(), dist.get_world_size()))
for _ in range(problem.EPOCHS):
    steps.zero_grad()
    problem.loss_of(replica, inputs, targets).backward()
    steps.step()
print("ran on", next(trained.parameters()).device, "over", dist.get_backend(), flush=True)
problem.tell(trained.cpu(), dist.get_rank(), dist.get_world_size())
dist.destroy_process_group()
"""

TRAINER = """
import lightning
import torch
from torch.utils.data import DataLoader, TensorDataset
import small_problem as problem


class Module(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.trained = problem.model()

    def training_step(self, batch, _):
        if self.global_step == 0:
            print("ran on", batch[0].device, "over", torch.distributed.get_backend(), flush=True)
        return problem.loss_of(self.trained, *batch)

    def configure_optimizers(self):
        return problem.optimizer(self.trained)


trainer = lightning.Trainer(strategy="ddp", accelerator="gpu", devices=1, precision="64-true",
                            max_epochs=problem.EPOCHS, logger=False, enable_checkpointing=False,
                            enable_progress_bar=False, enable_model_summary=False)
module = Module()
trainer.fit(module, DataLoader(TensorDataset(*problem.data()), batch_size=problem.SAMPLES))
problem.tell(module.trained.cpu(), trainer.global_rank, trainer.world_size)
torch.distributed.destroy_process_group()
"""

FABRIC = """
import lightning
import torch
from torch.utils.data import DataLoader, TensorDataset
import small_problem as problem

fabric = lightning.Fabric(strategy="ddp", accelerator="gpu", devices=1, precision="64-true")
fabric.launch()
trained = problem.model()
replica, steps = fabric.setup(trained, problem.optimizer(trained))
loader = fabric.setup_dataloaders(DataLoader(TensorDataset(*problem.data()), batch_size=problem.SAMPLES))
for _ in range(problem.EPOCHS):
    for batch in loader:
        steps.zero_grad()
        fabric.backward(problem.loss_of(replica, *batch))
        steps.step()
print("ran on", next(trained.parameters()).device, "over", torch.distributed.get_backend(), flush=True)
problem.tell(trained.cpu(), fabric.global_rank, fabric.world_size)
torch.distributed.destroy_process_group()
"""

ACCELERATE = """
import torch
from accelerate import Accelerator
from torch.utils.data import DataLoader, TensorDataset
import small_problem as problem

accelerator = Accelerator()
trained = problem.model()
replica, steps, loader = accelerator.prepare(
    trained, problem.optimizer(trained), DataLoader(TensorDataset(*problem.data()), batch_size=problem.SAMPLES))
for _ in range(problem.EPOCHS):
    for batch in loader:
        steps.zero_grad()
        accelerator.backward(problem.loss_of(replica, *batch))
        steps.step()
print("ran on", accelerator.device, "over", torch.distributed.get_backend(), flush=True)
problem.tell(accelerator.unwrap_model(replica).cpu(), accelerator.process_index, accelerator.num_processes)
accelerator.end_training()
"""

ONE_CARD = """
import torch
import torch.distributed as dist
torch.cuda.set_device(0)
dist.init_process_group("nccl")
dist.all_reduce(torch.ones(1, device="cuda:0"))
torch.cuda.synchronize()
"""


def run_script(script, options, seconds=90):
    """Runs the script, which finds small_problem, under lrun. Nothing is looked for in the network."""
    expect((PROGRAMS / "small_problem.py").exists(), f"the kit has no {PROGRAMS}/small_problem.py")
    paths = [str(PROGRAMS), *filter(None, [os.environ.get("PYTHONPATH")])]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "train.py"
        path.write_text(script, encoding="utf-8")
        return run([LRUN, *options, sys.executable, path], seconds, PYTHONPATH=":".join(paths), HF_HUB_OFFLINE="1",
                   PYTHONDONTWRITEBYTECODE="1", PYTHONWARNINGS="ignore")


def loss_in(text):
    """The loss that the one rank told."""
    told = [line for line in text.splitlines() if "result rank=0 world=1 " in line]
    expect(len(told) == 1, f"not one result of a world of one: {text}")
    return float(told[0].split("loss=")[1])


def expect_trained(script, module="torch"):
    """The program runs on cuda over NCCL, and comes to the loss of the same training on the CPU."""
    need_gpu()
    need_module(module)
    expect_free()
    ended = run_script(script, ["--devices", "1"])
    expect(ended.returncode == 0, f"code {ended.returncode}: {ended.stdout}{ended.stderr}")
    expect("ran on cuda:0 over" in ended.stdout and "nccl" in ended.stdout, f"not on cuda over nccl: {ended.stdout}")
    alone = run([sys.executable, PROGRAMS / "small_problem.py"], PYTHONDONTWRITEBYTECODE="1")
    expected, loss = loss_in(alone.stdout), loss_in(ended.stdout)
    expect(abs(loss - expected) < 1e-6, f"the loss is {loss}, and {expected} on the CPU")
    return {"loss": loss, "loss_on_cpu": expected, "free_after_s": expect_free()}


@case
def torchs_ddp_trains_over_nccl():
    return expect_trained(DDP)


@case
def lightnings_trainer_trains_over_nccl():
    return expect_trained(TRAINER, "lightning")


@case
def lightnings_fabric_trains_over_nccl():
    return expect_trained(FABRIC, "lightning")


@case
def accelerate_trains_on_the_gpu():
    return expect_trained(ACCELERATE, "accelerate")


@case
def two_ranks_on_one_gpu_are_told_that_nccl_refuses_them():
    need_gpu()
    expect_free()
    ended = run_script(ONE_CARD, ["--devices", "2", "--accelerator", "cpu", "--grace", "5s"])
    expect(ended.returncode == 1, f"code {ended.returncode}: {ended.stdout}{ended.stderr}")
    told = verdict(ended.stderr)
    expect("NCCL: Duplicate GPU detected" in told, f"the verdict does not say why NCCL refuses: {ended.stderr}")
    expect("two ranks use the same GPU" in hint(ended.stderr), ended.stderr)
    return {"verdict": told, "hint": hint(ended.stderr), "free_after_s": expect_free()}


if __name__ == "__main__":
    main("frameworks")
