"""Ranks of a benchmark that sleep until they get an order: what bench/runtime.py measures with."""
import os
import select
import socket
import subprocess

from within import Failed

ANSWER_WITHIN_S = 120
END_WITHIN_S = 30


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


class Ranks:
    """The ranks of one program, started as a launcher would. All of them read orders from stdin, and rank 0 answers."""

    def __init__(self, command, count, variables=None):
        self.name = f"{os.path.basename(command[-1])} on {count} ranks"
        self.received = b""
        port = free_port()
        self.processes = []
        for rank in range(count):
            environment = {**os.environ, "OMP_NUM_THREADS": "1", "RANK": str(rank), "WORLD_SIZE": str(count),
                           "LOCAL_RANK": str(rank), "LOCAL_WORLD_SIZE": str(count), "MASTER_ADDR": "127.0.0.1",
                           "MASTER_PORT": str(port)}
            for name, value in (variables or {}).items():
                environment[name] = value.replace("{rank}", str(rank))
            self.processes.append(subprocess.Popen(command, env=environment, stdin=subprocess.PIPE,
                                                   stdout=subprocess.PIPE if rank == 0 else subprocess.DEVNULL))

    def order(self, *words):
        """\\return {name: value}, as rank 0 answers."""
        line = (" ".join(map(str, words)) + "\n").encode()
        for process in self.processes:
            process.stdin.write(line)
            process.stdin.flush()
        answer = self._read_line().split()
        return dict(zip(answer[::2], map(float, answer[1::2])))

    def _read_line(self):
        output = self.processes[0].stdout.fileno()
        while b"\n" not in self.received:
            if not select.select([output], [], [], ANSWER_WITHIN_S)[0]:
                raise Failed(f"{self.name}: no answer within {ANSWER_WITHIN_S} s")
            some = os.read(output, 4096)
            if not some:
                raise Failed(f"{self.name}: rank 0 ended instead of answering")
            self.received += some
        line, self.received = self.received.split(b"\n", 1)
        return line.decode()

    def __enter__(self):
        return self

    def __exit__(self, error, *_):
        """Ends the ranks. \\throws Failed  one of them failed, and nothing else had."""
        failed = []
        for process in self.processes:
            if error is not None:
                process.kill()
            try:
                process.stdin.close()
            except BrokenPipeError:
                pass  # the rank ended before it read its order
        for rank, process in enumerate(self.processes):
            try:
                process.wait(END_WITHIN_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            if process.stdout:
                process.stdout.close()
            if process.returncode != 0:
                failed.append(rank)
        if failed and error is None:
            raise Failed(f"{self.name}: failed on {failed}")
