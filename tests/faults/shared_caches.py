#!/usr/bin/env python3
"""shared_caches.py [--rounds N] [--ranks N] [--seed S] [--lrun PROGRAM]: eight ranks at once put the same entries into Triton's
cache and read them back, in a home folder on a network file system: FUSE, which answers EBUSY and ESTALE now and then, as NFS does
where processes meet. Each round has new entries, once under torchrun and once under lrun, each with a home of its own; lrun's ranks
must not fail. Run it as root with a Python that has torch, triton and mfusepy."""
import argparse
import collections
import contextlib
import errno
import os
import pathlib
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time

MOUNT_LIMIT_S = 20
ROUND_LIMIT_S = 300
FAULT_SHARE = 0.005  # of the operations that may fail
# The ranks meet, so that all of them miss the entries; then each does what a compilation does with its results.
WORKER = """
import json, os, pathlib, sys, time
from triton.runtime.cache import get_cache_manager

meeting, number, ranks = pathlib.Path(sys.argv[1]), int(sys.argv[2]), int(os.environ["WORLD_SIZE"])
(meeting / os.environ["RANK"]).touch()
deadline = time.monotonic() + 120
while len(os.listdir(meeting)) < ranks:
    assert time.monotonic() < deadline, "the other ranks did not come"
    time.sleep(0.001)
for kernel in range(4):
    cache = get_cache_manager(f"{number:08x}{kernel:08x}" * 4)
    files = cache.get_group("kernel.json")
    if files is None:
        files = {name: cache.put(name.encode() * 1000, name) for name in ("kernel.ttir", "kernel.ptx", "kernel.cubin")}
        cache.put_group("kernel.json", files)
    for name in ("kernel.ttir", "kernel.ptx", "kernel.cubin"):
        assert pathlib.Path(files[name]).read_bytes() == name.encode() * 1000
"""


def serve(source, mount_point, seed):
    """Serves `source` at `mount_point` until it is unmounted."""
    import mfusepy

    class NetworkFolder(mfusepy.Operations):
        """By chance a file that was replaced is stale, and a folder that is to be removed is busy."""

        use_ns = True

        def __init__(self):
            self.chance = random.Random(seed)
            self.replaced = set()

        def path(self, path):
            return source + path

        def fail_by_chance(self, number):
            if self.chance.random() < FAULT_SHARE:
                raise mfusepy.FuseOSError(number)

        def getattr(self, path, fh=None):
            status = os.lstat(self.path(path))
            names = ("st_mode", "st_nlink", "st_size", "st_uid", "st_gid")
            times = {f"st_{name}": getattr(status, f"st_{name}_ns") for name in ("atime", "mtime", "ctime")}
            return {name: getattr(status, name) for name in names} | times

        def readdir(self, path, fh):
            return [".", "..", *os.listdir(self.path(path))]

        def mkdir(self, path, mode):
            os.mkdir(self.path(path), mode)

        def rmdir(self, path):
            self.fail_by_chance(errno.EBUSY)
            os.rmdir(self.path(path))

        def unlink(self, path):
            os.unlink(self.path(path))

        def rename(self, old, new):
            if os.path.exists(self.path(new)):
                self.replaced.add(new)
            os.rename(self.path(old), self.path(new))

        def create(self, path, mode, fi=None):
            return os.open(self.path(path), os.O_RDWR | os.O_CREAT, mode)

        def open(self, path, flags):
            if path in self.replaced:
                self.fail_by_chance(errno.ESTALE)
            return os.open(self.path(path), flags)

        def read(self, path, size, offset, fh):
            return os.pread(fh, size, offset)

        def write(self, path, data, offset, fh):
            return os.pwrite(fh, data, offset)

        def truncate(self, path, length, fh=None):
            os.truncate(self.path(path), length)

        def release(self, path, fh):
            os.close(fh)

        def chmod(self, path, mode):
            os.chmod(self.path(path), mode)

        def chown(self, path, uid, gid):
            os.chown(self.path(path), uid, gid)

        def utimens(self, path, times=None):
            os.utime(self.path(path), ns=times)

    mfusepy.FUSE(NetworkFolder(), mount_point, foreground=True, nothreads=True, fsname="network-folder")


@contextlib.contextmanager
def network_folder(folder, seed):
    """The path of an empty folder on the network file system."""
    source, mount_point = folder / "source", folder / "home"
    source.mkdir()
    mount_point.mkdir()
    server = subprocess.Popen([sys.executable, __file__, "--serve", source, mount_point, "--seed", str(seed)])
    try:
        deadline = time.monotonic() + MOUNT_LIMIT_S
        while not os.path.ismount(mount_point):
            if server.poll() is not None or time.monotonic() > deadline:
                sys.exit("shared_caches.py: FUSE cannot be mounted here")
            time.sleep(0.01)
        yield mount_point
    finally:
        subprocess.run(["umount", "--lazy", mount_point], check=False)
        server.terminate()
        server.wait(MOUNT_LIMIT_S)


class Launcher:
    """Runs rounds, and counts those in which a rank failed."""

    def __init__(self, name, command, folder, home):
        self.name, self.command, self.folder, self.home = name, command, folder, home / name
        self.home.mkdir()
        self.failed_rounds = 0
        self.errors = collections.Counter()
        self.seconds = 0.0
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("TRITON", "LRUN", "XDG"))}
        self.environment = kept | {"HOME": str(self.home), "TMPDIR": str(folder), "OMP_NUM_THREADS": "1"}

    def play(self, number, ranks):
        meeting = self.folder / f"{self.name}-{number}"
        meeting.mkdir()
        began = time.monotonic()
        run = subprocess.run([*self.command(ranks), self.folder / "worker.py", meeting, str(number)], env=self.environment,
                             stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=ROUND_LIMIT_S, check=False)
        self.seconds += time.monotonic() - began
        shutil.rmtree(meeting)
        if run.returncode == 0:
            return
        self.failed_rounds += 1
        found = set(re.findall(r"\b(?:[A-Z]\w*Error: .*?(Device or resource busy|Stale file handle|No such file))", run.stdout))
        self.errors.update(found or {run.stdout[-2000:]})


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=50)
    parser.add_argument("--ranks", type=int, default=8)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--lrun", default="lrun")
    parser.add_argument("--serve", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        return serve(*options.serve, options.seed)
    print(f"seed {options.seed}", flush=True)
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        (folder / "worker.py").write_text(WORKER)
        with network_folder(folder, options.seed) as home:
            torchrun = Launcher("torchrun", lambda ranks: [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", str(ranks)],
                                folder, home)
            lrun = Launcher("lrun", lambda ranks: [options.lrun, "-n", str(ranks), "--python", sys.executable], folder, home)
            for number in range(options.rounds):
                for launcher in (torchrun, lrun):
                    launcher.play(number, options.ranks)
            lrun_used_home = (lrun.home / ".triton").exists()
    for launcher in (torchrun, lrun):
        print(f"{launcher.name}: {launcher.failed_rounds} of {options.rounds} rounds of {options.ranks} ranks failed, "
              f"{launcher.seconds / options.rounds:.1f} s a round")
        for error, count in launcher.errors.most_common():
            print(f"  {count} with '{error}'")
    if lrun_used_home:
        print("lrun's ranks have a cache in their home folder")
    if torchrun.failed_rounds * 10 < options.rounds:
        sys.exit("shared_caches.py: torchrun's ranks hardly failed, so this shows nothing")
    sys.exit(1 if lrun.failed_rounds or lrun_used_home else 0)


if __name__ == "__main__":
    main()
