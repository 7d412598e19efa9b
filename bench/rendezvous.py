#!/usr/bin/env python3
"""rendezvous.py [--try]: how long launchers of one job take to meet, and to go on without one of them.

  meet    N launchers started together on this machine, one worker each: from the start of the first to the first
          instruction of the last worker. Beside them the same worker N times under the limit program, without any
          rendezvous, and torchrun, where LRUN_TORCH_PYTHON names a Python with torch.
  loss    three launchers of --nnodes 2:3 and a heartbeat of 1 s: from the kill -9 of one of them, or from the SIGSTOP
          after which it is silent, to the first instruction of the last worker of the new world.

Needs LRUN_PROGRAM, and LRUN_BUILD (a build folder with lrun_limits); ./dev bench sets them. All kinds in turn. Writes
rendezvous.tsv, and from it the table of README.md and the picture (plot_rendezvous.py); --try does each once, writes
nothing and only says whether everything worked."""
import os
import shlex
import signal
import statistics
import subprocess
import sys
import tempfile
import time

from limit import limit
from plot import HERE
from ranks import free_port
from within import Failed, Program, reporting

NODES, ROUNDS, LIMIT_S = (2, 4, 16), 15, 120
TORCH_ROUNDS = {2: 3, 4: 3, 16: 1}  # it takes its time
LAST_CALL_S = 1.2
LRUN = "{lrun} --num_nodes {nodes} --rdzv-endpoint 127.0.0.1:{port} --devices 1 "
TORCHRUN = "{python} -m torch.distributed.run --nnodes {nodes} --nproc-per-node 1 --no-python "
MEET = {
    "limit": "{limit} 1 {worker}",
    "lrun static": LRUN + "--node-rank {node} {worker}",
    "lrun c10d": LRUN + "--rdzv-backend c10d {worker}",
    "torchrun static": TORCHRUN + "--node-rank {node} --master-addr 127.0.0.1 --master-port {port} {worker}",
    "torchrun c10d": TORCHRUN + "--rdzv-backend c10d --rdzv-endpoint 127.0.0.1:{port} --rdzv-id x {worker}",
}
ELASTIC = ("{lrun} --nnodes 2:3 --rdzv-backend c10d --rdzv-endpoint 127.0.0.1:{port} --rdzv-id loss --devices 1 "
           "--grace 1s --rdzv-conf heartbeat_timeout=1,is_host={is_host} ")


def clock():
    return time.clock_gettime(time.CLOCK_MONOTONIC)


def stamps(file):
    """The times that workers have written."""
    try:
        with open(file) as lines:
            return [float(line) for line in lines]
    except FileNotFoundError:
        return []


def start(words, state):
    return Program(" ".join(words), words, env={**os.environ, "OMP_NUM_THREADS": "1", "LRUN_STATE": state})


def wait_for(condition, what, launchers):
    end = clock() + LIMIT_S
    while not condition():
        if clock() > end:
            said = "".join(f"\n{launcher.name}{launcher.said_last()}" for launcher in launchers)
            raise Failed(f"{what}: not within {LIMIT_S} s{said}")
        time.sleep(0.001)


def meet(template, nodes):
    """\\return milliseconds."""
    with tempfile.TemporaryDirectory() as folder:
        file, port, launchers = os.path.join(folder, "stamps"), free_port(), []
        worker = f"{limit('worker_stamp')} {file}"
        commands = [template.format(lrun=os.environ["LRUN_PROGRAM"], limit=limit("limit_launch"), nodes=nodes,
                                    node=node, port=port, worker=worker,
                                    python=os.environ.get("LRUN_TORCH_PYTHON", "")) for node in range(nodes)]
        begin = clock()
        try:
            for command in commands:
                launchers.append(start(shlex.split(command), folder))
            for launcher in launchers:
                launcher.wait(LIMIT_S)
        finally:
            for launcher in launchers:
                launcher.end()
        times = stamps(file)
        if len(times) != nodes:
            raise Failed(f"{commands[0]}: {len(times)} of {nodes} workers ran")
        return (max(times) - begin) * 1e3


def launcher_of(guard):
    with open(f"/proc/{guard}/task/{guard}/children") as children:
        return int(children.read().split()[0])


def loss(how):
    """\\return milliseconds."""
    with tempfile.TemporaryDirectory() as folder:
        file, port, launchers = os.path.join(folder, "stamps"), free_port(), []
        worker = ["sh", "-c", f"{limit('worker_stamp')} {file}; exec sleep 1000"]
        try:
            for is_host in ("true", "false", "false"):
                options = ELASTIC.format(lrun=os.environ["LRUN_PROGRAM"], port=port, is_host=is_host)
                launchers.append(start([*shlex.split(options), *worker], folder))
            wait_for(lambda: len(stamps(file)) == 3, "a world of three", launchers)
            time.sleep(LAST_CALL_S)  # nobody has come a moment ago, for whom others would be waited for
            victim = launchers[-1].process.pid
            processes = [victim, launcher_of(victim)]
            for process in processes:
                os.kill(process, signal.SIGSTOP)  # the one would end by itself between the two
            begin = clock()
            if how == "killed":
                for process in reversed(processes):
                    os.kill(process, signal.SIGKILL)
            wait_for(lambda: len(stamps(file)) == 5, "a world of two", launchers)
            if how != "killed":
                for process in processes:
                    os.kill(process, signal.SIGCONT)
            return (max(stamps(file)) - begin) * 1e3
        finally:
            for launcher in launchers:
                launcher.end()


def measure(rounds, with_torch):
    """{(figure, nodes, kind): [milliseconds]}, all kinds in turn."""
    found = {}
    for k in range(rounds):
        for nodes in NODES:
            for kind, template in MEET.items():
                is_torch = kind.startswith("torchrun")
                if is_torch and not (with_torch and k < TORCH_ROUNDS[nodes]):
                    continue
                found.setdefault(("meet", nodes, kind), []).append(meet(template, nodes))
        for how in ("killed", "silent"):
            found.setdefault(("loss", 3, how), []).append(loss(how))
    return found


def tsv_of(found, load):
    lines = ["figure\tnodes\tkind\tmedian_ms\tleast_ms\trounds"]
    for (figure, nodes, kind), times in found.items():
        lines.append(f"{figure}\t{nodes}\t{kind}\t{statistics.median(times):.1f}\t{min(times):.1f}\t{len(times)}")
    return "\n".join([*lines, f"load\t-\t{load}\t-\t-\t-"]) + "\n"


def main(arguments):
    is_try = "--try" in arguments
    with open("/proc/loadavg") as file:
        load = file.read().split()[0]
    found = measure(1 if is_try else int(os.environ.get("LRUN_ROUNDS", ROUNDS)),
                    not is_try and "LRUN_TORCH_PYTHON" in os.environ)
    table = tsv_of(found, load)
    print(table, end="", flush=True)
    if not is_try:
        (HERE / "rendezvous.tsv").write_text(table)
        subprocess.run([sys.executable, HERE / "plot_rendezvous.py"], check=True)


if __name__ == "__main__":
    reporting(lambda: main(sys.argv[1:]))
