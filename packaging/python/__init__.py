"""lrun, a native launcher for distributed training. This package only finds the program: `python -m lrun` is `lrun`."""
