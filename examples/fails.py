#!/usr/bin/env python3
"""A run that fails: rank 1 gets a bad batch in step 40, and the other ranks would go on for ever.

lrun --devices 4 examples/fails.py
"""

import os
import time


def step(number):
    time.sleep(0.01)
    if number == 40 and os.environ.get("RANK") == "1":
        raise ValueError("bad batch")


number = 0
while True:
    step(number)
    number += 1
