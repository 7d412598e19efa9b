"""pytest tests/conformance [--launcher PROGRAM]: black-box cases for a launcher that behaves as torchrun does.

PROGRAM is lrun (build/dev/lrun by default), which is started with --compat=torchrun, or the word torchrun: that of the
Python that runs pytest. Only command lines, environments, files, signals, exit codes and sockets are looked at; all on
this host, over loopback addresses. A case marked 'better' says what lrun does and torchrun does not.
"""
import importlib.metadata
import importlib.util
import os
import shutil
import sys
from pathlib import Path

import harness
import pytest

NO_TORCH = "this Python has no torch: './dev python' makes one that has"


def pytest_addoption(parser):
    built = Path(__file__).resolve().parents[2] / "build/dev/lrun"
    parser.addoption("--launcher", metavar="PROGRAM", default=str(built), help="a path of lrun, or 'torchrun'")


def has_torch():
    return importlib.util.find_spec("torch") is not None


def pytest_configure(config):
    program = config.getoption("--launcher")
    harness.IS_TORCHRUN = program == "torchrun"
    if harness.IS_TORCHRUN:
        if not has_torch():
            raise pytest.UsageError(NO_TORCH)
        harness.LAUNCHER = [sys.executable, "-m", "torch.distributed.run"]
        harness.ARRIVAL_S = 6
        return
    found = shutil.which(program)
    if found is None:
        raise pytest.UsageError(f"there is no program '{program}': './dev build' makes build/dev/lrun")
    harness.LAUNCHER = [os.path.abspath(found), "--compat=torchrun"]


def is_older_torch(version):
    numbers = [[int(part) for part in text.split("+")[0].split(".")[:2]]
               for text in (importlib.metadata.version("torch"), version)]
    return numbers[0] < numbers[1]


def pytest_collection_modifyitems(items):
    for item in items:
        if item.get_closest_marker("torch") and not has_torch():
            item.add_marker(pytest.mark.skip(reason=NO_TORCH))
        if not harness.IS_TORCHRUN:
            continue
        for name in ("better", "mostly_better"):
            if item.get_closest_marker(name):
                item.add_marker(pytest.mark.xfail(strict=name == "better", raises=AssertionError))
        since = item.get_closest_marker("since")
        if since and is_older_torch(since.args[0]):
            item.add_marker(pytest.mark.skip(reason=f"torchrun does this since torch {since.args[0]}"))


@pytest.fixture
def bench(tmp_path):
    """Starts launchers in a folder of the case's own, and ends what they leave."""
    with harness.Bench(tmp_path) as made:
        yield made


@pytest.fixture(scope="module")
def module_bench(tmp_path_factory):
    """The same for a run that several cases of a module look at."""
    with harness.Bench(tmp_path_factory.mktemp("module")) as made:
        yield made
