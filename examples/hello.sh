#!/bin/sh
# Any program can be a worker: it finds who it is in its environment.
#   lrun --devices 2 ./hello.sh
echo "hello from rank ${RANK:-0} of ${WORLD_SIZE:-1}, local rank ${LOCAL_RANK:-0}"
