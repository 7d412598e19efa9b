"""The one training that all programs of this folder do, each with its framework.

The parts of a rank are of equal size, so the mean of the ranks' gradients is the gradient of the whole batch, and every
framework has to come to the loss that one process comes to.
"""

import argparse
import os
import sys

import torch

SAMPLES = 12
EPOCHS = 4
LEARNING_RATE = 0.1

torch.set_default_dtype(torch.float64)


def data():
    inputs = torch.arange(float(SAMPLES * 3)).reshape(SAMPLES, 3).sin()
    return inputs, inputs.sum(dim=1, keepdim=True).square()


def part(rank, world):
    inputs, targets = data()
    return inputs[rank::world], targets[rank::world]


def model():
    torch.manual_seed(1)
    return torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Tanh(), torch.nn.Linear(4, 1))


def optimizer(trained):
    return torch.optim.SGD(trained.parameters(), lr=LEARNING_RATE)


def loss_of(trained, inputs, targets):
    return torch.nn.functional.mse_loss(trained(inputs), targets)


def arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument("--nodes", type=int, default=1)
    parser.add_argument("--fail", choices=("never", "once", "always"), default="never")
    parser.add_argument("--exit-code", type=int, default=0, help="of rank 1, after the training")
    return parser.parse_args()


def maybe_fail(asked, rank, epoch):
    """What happens to real programs: rank 1 raises within the training."""
    first = os.environ["TORCHELASTIC_RESTART_COUNT"] == "0"
    if rank == 1 and epoch == 2 and (asked.fail == "always" or (asked.fail == "once" and first)):
        raise ValueError("bad batch")


def tell(trained, rank, world):
    """One write: what a rank has come to."""
    with torch.no_grad():
        loss = float(loss_of(trained, *data()))
    restart = os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")
    sys.stdout.write(f"result rank={rank} world={world} restart={restart} loss={loss:.12f}\n")
    sys.stdout.flush()


def train_alone():
    trained = model()
    steps = optimizer(trained)
    for _ in range(EPOCHS):
        steps.zero_grad()
        loss_of(trained, *data()).backward()
        steps.step()
    return trained


if __name__ == "__main__":
    tell(train_alone(), 0, 1)
