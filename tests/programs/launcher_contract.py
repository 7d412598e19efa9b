"""What a program sees of its launcher: its arguments, and the variables that programs of DeepSpeed read."""

import os
import sys

NAMES = "RANK WORLD_SIZE LOCAL_RANK LOCAL_SIZE CROSS_RANK CROSS_SIZE MASTER_ADDR".split()
seen = " ".join(f"{name}={os.environ.get(name)}" for name in NAMES)
sys.stdout.write(f"result {sys.argv[1:]} {seen} MASTER_PORT={os.environ['MASTER_PORT'].isdigit()}\n")
