"""Workers that use torch.distributed, with what the launcher gives them."""
import json

import pytest

from harness import Rendezvous, codes, failure_summary, workers_of

pytestmark = pytest.mark.torch

BEGIN = """
import torch
import torch.distributed as dist
def sum_of_ranks():
    total = torch.tensor([float(dist.get_rank())])
    dist.all_reduce(total)
    return int(total.item())
"""
ALL_REDUCE = BEGIN + """
dist.init_process_group("gloo")
report(total=sum_of_ranks(), launched=dist.is_torchelastic_launched())
dist.destroy_process_group()
"""
ALL_REDUCE_OVER_TCP = BEGIN + """
dist.init_process_group("gloo", init_method="tcp://{MASTER_ADDR}:{MASTER_PORT}".format(**os.environ), rank=rank,
                        world_size=int(os.environ["WORLD_SIZE"]))
report(total=sum_of_ranks(), launched=dist.is_torchelastic_launched())
dist.destroy_process_group()
"""
STORE = BEGIN + """
from datetime import timedelta
dist.init_process_group("gloo")
store = dist.distributed_c10d._get_default_store()
store.set(f"key of {rank}", f"value of {rank}")
values = [store.get(f"key of {other}").decode() for other in range(dist.get_world_size())]
store.add("counter", rank + 1)
dist.barrier()
try:
    store.wait(["never"], timedelta(milliseconds=300))
except dist.DistStoreError:
    report(values=values, counter=store.add("counter", 0))
dist.barrier()
dist.destroy_process_group()
"""
RANK_0_LEAVES = BEGIN + """
store = dist.TCPStore(os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]), 2, is_master=False)
if rank == 0:
    store.set("pid", str(os.getpid()))
    sys.exit()
pid = int(store.get("pid"))
while os.path.exists(f"/proc/{pid}"):
    time.sleep(0.01)
report(answer=store.add("after", 1))
"""
FAILS_ONCE = BEGIN + """
dist.init_process_group("gloo")
total = sum_of_ranks()
if attempt == 0 and rank == 1:
    os._exit(1)
report(total=total)
dist.barrier()
dist.destroy_process_group()
"""
RECORDED = """
from torch.distributed.elastic.multiprocessing.errors import record
@record
def train():
    if rank == 1:
        raise ValueError("wrong on purpose")
    wait()
train()
"""


def torch_job(code, **variables):
    """The details of a job whose workers run the code."""
    return {"code": code, "env": {"GLOO_SOCKET_IFNAME": "lo", **variables}}


@pytest.mark.parametrize("options", [["--standalone"], []], ids=["standalone", "static"])
@pytest.mark.parametrize("code", [ALL_REDUCE, ALL_REDUCE_OVER_TCP], ids=["env", "tcp"])
def test_process_group_on_one_node(bench, options, code):
    job = bench.run("--nproc-per-node=3", *options, **torch_job(code))
    assert job.code == 0, job.stderr
    assert [(worker.total, worker.launched) for worker in job.history] == [(3, True)] * 3


def test_process_group_of_two_nodes(bench):
    rendezvous = Rendezvous(bench, 2)
    jobs = [rendezvous.start(f"--nproc-per-node={count}", **torch_job(ALL_REDUCE)) for count in (1, 2)]
    assert codes(*jobs) == [0, 0]
    assert {rank: worker.total for rank, worker in workers_of(*jobs).items()} == {0: 3, 1: 3, 2: 3}


def test_store_of_the_process_group(bench):
    job = bench.run("--standalone", "--nproc-per-node=2", **torch_job(STORE))
    assert job.code == 0, job.stderr
    assert [(worker.values, worker.counter) for worker in job.history] == [(["value of 0", "value of 1"], 3)] * 2


def test_store_outlives_rank_0(bench):
    job = bench.run("--standalone", "--nproc-per-node=2", **torch_job(RANK_0_LEAVES))
    assert job.code == 0, job.stderr
    assert job.workers[1].answer == 1


def test_worker_may_host_the_store(bench):
    job = bench.run("--standalone", "--nproc-per-node=2", **torch_job(
        ALL_REDUCE, **Rendezvous.STORE_OF_RANK_0["env"]))
    assert [worker.total for worker in job.history] == [1, 1]
    assert set(job.values("TORCHELASTIC_USE_AGENT_STORE")) == {"False"}


@pytest.mark.parametrize("store", [
    pytest.param(Rendezvous.STORE_OF_RANK_0["env"], id="store of rank 0"),
    pytest.param({}, id="store of the launcher", marks=pytest.mark.mostly_better)])
def test_process_group_after_a_restart(bench, store):
    job = bench.run("--standalone", "--nproc-per-node=2", "--max-restarts=1", **torch_job(FAILS_ONCE, **store))
    assert job.code == 0, job.stderr
    assert {rank: worker.total for rank, worker in job.workers.items()} == {0: 1, 1: 1}
    assert set(job.value("TORCHELASTIC_RESTART_COUNT").values()) == {"1"}


def test_recorded_exception_is_shown_and_handed_to_the_caller(bench):
    path = bench.folder / "launcher.json"
    job = bench.run("--nproc-per-node=2", code=RECORDED, env={"TORCHELASTIC_ERROR_FILE": str(path)})
    assert failure_summary(job.stderr)["root"]["rank"] == "1 (local_rank: 1)"
    assert "ValueError: wrong on purpose" in job.stderr[job.stderr.rindex("Root Cause"):]
    message = json.loads(path.read_text(encoding="utf-8"))["message"]
    assert (message["message"], message["errorCode"]) == ("ValueError: wrong on purpose", 1)
