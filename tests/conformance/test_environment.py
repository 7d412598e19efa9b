"""What workers find in their environment, on one node and on several."""
import socket
from pathlib import Path

import pytest

from harness import LOOPBACK, Rendezvous, better, codes, free_port, value_of, workers_of
from store_client import address_of


@pytest.fixture(scope="module")
def job(module_bench):
    """A finished run of three workers, with a name, a role, restarts and a log folder."""
    return module_bench.run(
        "--nproc-per-node=3", "--role=trainer", "--max-restarts=2", "--rdzv-backend=c10d",
        f"--rdzv-endpoint={LOOPBACK}:{free_port()}", "--rdzv-id=my-job", f"--local-addr={LOOPBACK}", "--log-dir=logs",
        env={"OF_CALLER": "seen", "RANK": "77", "WORLD_SIZE": "99", "CUDA_VISIBLE_DEVICES": "5,6,7"})


@pytest.mark.parametrize("name", ["RANK", "LOCAL_RANK", "ROLE_RANK"])
def test_ranks_count_from_zero_whatever_the_caller_has(job, name):
    assert job.value(name) == {0: "0", 1: "1", 2: "2"}


@pytest.mark.parametrize("name, value", [
    ("WORLD_SIZE", "3"),
    ("LOCAL_WORLD_SIZE", "3"),
    ("ROLE_WORLD_SIZE", "3"),
    ("GROUP_RANK", "0"),
    ("GROUP_WORLD_SIZE", "1"),
    ("ROLE_NAME", "trainer"),
    ("MASTER_ADDR", LOOPBACK),
    ("TORCHELASTIC_RESTART_COUNT", "0"),
    ("TORCHELASTIC_MAX_RESTARTS", "2"),
    ("TORCHELASTIC_RUN_ID", "my-job"),
    ("TORCHELASTIC_USE_AGENT_STORE", "True"),
    ("TORCHELASTIC_SIGNALS_TO_HANDLE", "SIGTERM,SIGINT,SIGHUP,SIGQUIT"),
    ("TORCH_NCCL_ASYNC_ERROR_HANDLING", "1"),
    ("OMP_NUM_THREADS", "1"),
    ("OF_CALLER", "seen"),
    ("CUDA_VISIBLE_DEVICES", "5,6,7"),
])
def test_all_workers_have(job, name, value):
    assert set(job.values(name)) == {value}


def test_threads_that_were_reduced_are_reported(job):
    assert "OMP_NUM_THREADS" in job.stderr


def test_error_file_is_in_an_existing_log_folder(job):
    for rank, path in job.value("TORCHELASTIC_ERROR_FILE").items():
        path = Path(job.workers[rank].cwd, path)
        assert path.parts[-3:] == ("attempt_0", str(rank), "error.json")
        assert path.parts[-4].startswith("my-job_") and path.parent.is_dir()


@pytest.fixture(scope="module")
def plain(module_bench):
    """A run without options but for a master of its own."""
    port = free_port()
    return port, module_bench.run(f"--master-addr={LOOPBACK}", f"--master-port={port}", "--log-dir=/dev/null", env={
        "TORCH_NCCL_ASYNC_ERROR_HANDLING": "0", "PET_NPROC_PER_NODE": "1"})


def test_worker_of_a_plain_run(plain):
    port, job = plain
    expected = {
        "MASTER_ADDR": LOOPBACK, "MASTER_PORT": str(port), "TORCHELASTIC_RUN_ID": "none", "ROLE_NAME": "default",
        "TORCHELASTIC_ERROR_FILE": "", "TORCH_NCCL_ASYNC_ERROR_HANDLING": "0", "PET_NPROC_PER_NODE": "1"}
    found = job.workers[0].env
    assert {name: found.get(name) for name in expected} == expected
    assert "OMP_NUM_THREADS" not in found


def test_endpoint_of_the_static_backend_is_the_master(bench):
    port = free_port()
    job = bench.run(f"--rdzv-endpoint={LOOPBACK}:{port}")
    assert (job.value("MASTER_ADDR"), job.value("MASTER_PORT")) == ({0: LOOPBACK}, {0: str(port)})


def test_run_without_a_name_is_called_none(bench):
    job = bench.run("--rdzv-backend=c10d", "--rdzv-endpoint=localhost:0")
    assert job.value("TORCHELASTIC_RUN_ID") == {0: "none"}


def test_master_listens_at_the_local_address_when_workers_start(bench):
    job = bench.start("--standalone", "--local-addr=127.0.0.2", code="wait('end')")
    worker = job.wait_for_workers(1)[0]
    assert worker.env["MASTER_ADDR"] == "127.0.0.2"
    socket.create_connection(address_of(worker), timeout=5).close()
    assert job.let("end").wait().code == 0


def test_given_number_of_threads_is_kept(bench):
    assert bench.run("--nproc-per-node=2", env={"OMP_NUM_THREADS": "6"}).value("OMP_NUM_THREADS") == {0: "6", 1: "6"}


@pytest.mark.parametrize("given, seen", [
    ({}, {0: "0", 1: "1"}),
    ({"CUDA_VISIBLE_DEVICES": "3, 5"}, {0: "3", 1: "5"}),
    ({"CUDA_VISIBLE_DEVICES": "GPU-aa,GPU-bb,GPU-cc"}, {0: "GPU-aa", 1: "GPU-bb"}),
], ids=str)
def test_virtual_local_rank_leaves_each_worker_one_device(bench, given, seen):
    job = bench.run("--virtual-local-rank", "--nproc-per-node=2", env=given)
    assert job.value("CUDA_VISIBLE_DEVICES") == seen
    assert (job.value("LOCAL_RANK"), job.value("LOCAL_WORLD_SIZE")) == ({0: "0", 1: "0"}, {0: "2", 1: "2"})


def test_virtual_local_rank_needs_a_device_for_each_worker(bench):
    job = bench.run("--virtual-local-rank", "--nproc-per-node=2", env={"CUDA_VISIBLE_DEVICES": "3"})
    assert job.code != 0 and job.history == []


# Several nodes

@pytest.fixture(scope="module")
def placed(module_bench):
    """Finished nodes with node ranks: one, two and two workers of two roles."""
    jobs = module_bench.start_nodes(
        [["--role=ps"], ["--role=trainer", "--nproc-per-node=2"], ["--role=ps", "--nproc-per-node=2"]])
    assert codes(*jobs) == [0, 0, 0]
    return jobs


@pytest.mark.parametrize("name, values", [
    ("RANK", "01234"),
    ("WORLD_SIZE", "55555"),
    ("LOCAL_RANK", "00101"),
    ("LOCAL_WORLD_SIZE", "12222"),
    ("GROUP_RANK", "01122"),
    ("GROUP_WORLD_SIZE", "33333"),
    ("ROLE_RANK", "00112"),
    ("ROLE_WORLD_SIZE", "32233"),
])
def test_nodes_with_node_ranks(placed, name, values):
    assert [sorted(job.workers) for job in placed] == [[0], [1, 2], [3, 4]]
    assert value_of(workers_of(*placed), name) == dict(enumerate(values))


@pytest.fixture(scope="module")
def met(module_bench):
    """Finished nodes that found their order themselves: one, two and three workers, roles a, b and a."""
    rendezvous = Rendezvous(module_bench, 3)
    jobs = [rendezvous.start(f"--nproc-per-node={count}", f"--role={role}") for count, role in zip((1, 2, 3), "aba")]
    assert codes(*jobs) == [0, 0, 0]
    return jobs


def test_nodes_in_any_order_have_consecutive_ranks(met):
    assert list(workers_of(*met)) == [0, 1, 2, 3, 4, 5]
    in_order = sorted(met, key=lambda job: min(job.workers))
    assert [set(job.values("GROUP_RANK")) for job in in_order] == [{"0"}, {"1"}, {"2"}]
    for count, job in zip((1, 2, 3), met):
        assert max(job.workers) - min(job.workers) == count - 1
        assert list(job.value("LOCAL_RANK").values()) == [str(rank) for rank in range(count)]


def test_sizes_of_nodes_in_any_order(met):
    assert [set(job.values("LOCAL_WORLD_SIZE")) for job in met] == [{"1"}, {"2"}, {"3"}]
    assert {value for job in met for value in job.values("WORLD_SIZE")} == {"6"}


def test_roles_have_ranks_of_their_own(met):
    for jobs, size in (([met[0], met[2]], 4), ([met[1]], 2)):
        workers = workers_of(*jobs)
        assert list(value_of(workers, "ROLE_RANK").values()) == [str(rank) for rank in range(size)]
        assert set(value_of(workers, "ROLE_WORLD_SIZE").values()) == {str(size)}


@pytest.mark.parametrize("nodes", ["placed", "met"])
def test_all_workers_of_a_job_have_one_master(request, nodes):
    assert len({address_of(worker) for worker in workers_of(*request.getfixturevalue(nodes)).values()}) == 1


def test_nodes_that_are_told_to_be_alike_have_the_same_ranks(bench):
    jobs = bench.start_nodes([["--nproc-per-node=2"]] * 2, env={"TORCH_ELASTIC_WORKER_IDENTICAL": "1"})
    assert codes(*jobs) == [0, 0]
    assert [sorted(job.workers) for job in jobs] == [[0, 1], [2, 3]]
    assert set(value_of(workers_of(*jobs), "WORLD_SIZE").values()) == {"4"}


@better
@pytest.mark.parametrize("first, last", [
    (["127.0.0.3", "--node-rank=0"], ["127.0.0.2", "--node-rank=1"]),
    (["127.0.0.2"], ["127.0.0.10"]),
], ids=["by node rank", "by address as numbers"])
def test_nodes_that_meet_are_ordered(bench, first, last):
    rendezvous = Rendezvous(bench, 2)
    jobs = [rendezvous.start_host(*last[1:], address=last[0]), rendezvous.start(*first[1:], address=first[0])]
    assert codes(*jobs) == [0, 0]
    assert [sorted(job.workers) for job in jobs] == [[1], [0]]


@pytest.mark.parametrize("is_late", [False, True], ids=["host first", "host last"])
def test_host_is_the_node_that_may_be_it(bench, is_late):
    rendezvous = Rendezvous(bench, 2)
    roles = ["is_host=false", "is_host=true"] if is_late else ["is_host=true", "is_host=false"]
    assert codes(*(rendezvous.start(conf=conf) for conf in roles)) == [0, 0]
