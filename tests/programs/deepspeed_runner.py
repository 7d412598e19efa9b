"""DeepSpeed's own launcher."""

from deepspeed.launcher.runner import main

main()
