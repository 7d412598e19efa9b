"""The build folder of a benchmark, $LRUN_BUILD, and the limit programs and their workers in it."""
import os
import pathlib

HERE = pathlib.Path(__file__).resolve().parent
BUILD = pathlib.Path(os.environ.get("LRUN_BUILD", HERE.parent / "build/release")).resolve()


def limit(name):
    return str(BUILD / "bench/limits" / name)
