#!/usr/bin/env python3
"""Trains a small convolutional network on Fashion-MNIST with torch's own DDP: nothing in it knows lrun.

python3 train.py                      one rank
lrun --devices 2 train.py             two ranks
torchrun --nproc-per-node 2 train.py  the same
"""

import argparse
import gzip
import math
import os
import struct
import sys

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


def read_idx(folder, name, dimensions):
    """The unsigned bytes of an idx file, plain or .gz, as a tensor."""
    path = os.path.join(folder, name)
    if not os.path.exists(path):
        path += ".gz"
    try:
        with (gzip.open if path.endswith(".gz") else open)(path, "rb") as file:
            content = file.read()
    except FileNotFoundError:
        sys.exit(f"train.py: error: no file '{path}': install 'dataset-fashion-mnist', or name its folder with --data")
    except (OSError, EOFError) as error:
        sys.exit(f"train.py: error: cannot read '{path}': {error}")
    header = 4 + 4 * dimensions
    shape = struct.unpack(f">{dimensions}I", content[4:header]) if len(content) >= header else ()
    if content[:4] != bytes([0, 0, 8, dimensions]) or header + math.prod(shape) != len(content):
        sys.exit(f"train.py: error: '{path}' is not a whole idx file of {dimensions} dimensions")
    return torch.frombuffer(bytearray(content[header:]), dtype=torch.uint8).view(shape)


def read_part(folder, prefix, limit=None):
    images = read_idx(folder, f"{prefix}-images-idx3-ubyte", 3)[:limit]
    classes = read_idx(folder, f"{prefix}-labels-idx1-ubyte", 1)[:limit]
    return TensorDataset(images.unsqueeze(1).float().div_(255), classes.long())


def network():
    return nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(32 * 7 * 7, 128), nn.ReLU(), nn.Linear(128, 10))


def test_accuracy(model, images, classes):
    """Every rank looks at its own share of the images, each of which is counted once."""
    rank, world_size = dist.get_rank(), dist.get_world_size()
    counts = torch.zeros(2, dtype=torch.float64)
    with torch.no_grad():
        for part in torch.arange(rank, len(images), world_size).split(500):
            counts[0] += model(images[part]).argmax(1).eq(classes[part]).sum()
            counts[1] += len(part)
    dist.all_reduce(counts)
    return (counts[0] / counts[1]).item()


def train(options):
    train_images = read_part(options.data, "train", options.limit)
    test_images = read_part(options.data, "t10k")
    torch.manual_seed(options.seed)
    model = DistributedDataParallel(network())
    optimizer = torch.optim.SGD(model.parameters(), options.learning_rate, momentum=0.9)
    sampler = DistributedSampler(train_images, seed=options.seed)
    loader = DataLoader(train_images, options.batch_size, sampler=sampler)

    accuracy = 0.0
    for epoch in range(options.epochs):
        sampler.set_epoch(epoch)
        for images, classes in loader:
            optimizer.zero_grad()
            F.cross_entropy(model(images), classes).backward()
            optimizer.step()
        accuracy = test_accuracy(model.module, *test_images.tensors)
        if dist.get_rank() == 0:
            print(f"epoch {epoch + 1}  test accuracy {100 * accuracy:.2f} %", flush=True)
    if dist.get_rank() == 0:
        print(f"final test accuracy: {100 * accuracy:.2f} %", flush=True)
    dist.barrier()  # gloo's threads are done with our tensors before Python ends


def main():
    parser = argparse.ArgumentParser(description="Trains a small convolutional network on Fashion-MNIST.")
    parser.add_argument("--data", default="/usr/share/datasets/fashion-mnist", help="folder of the four idx files")
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--batch-size", type=int, default=64, help="images of one rank in one step")
    parser.add_argument("--learning-rate", type=float, default=0.05)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--limit", type=int, help="train on the first N images only")
    options = parser.parse_args()

    if "RANK" in os.environ:
        dist.init_process_group("gloo")
    else:  # started alone
        dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    try:
        train(options)
    finally:
        dist.destroy_process_group()


if __name__ == "__main__":
    main()
