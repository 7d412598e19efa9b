#!/bin/bash
#SBATCH --nodes=2
python3 train.py "$@"
