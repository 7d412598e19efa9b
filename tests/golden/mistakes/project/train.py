import argparse
import os

parser = argparse.ArgumentParser()
parser.add_argument("--epochs", type=int, default=1)
parser.add_argument("--lr", type=float, default=0.1)
arguments = parser.parse_args()

rank, world = os.environ["RANK"], os.environ["WORLD_SIZE"]
print(f"rank {rank} of {world}: {arguments.epochs} epochs")
