"""Jobs of several launchers whose nodes come, end and are lost."""
import shutil
import subprocess
from pathlib import Path

import pytest

import harness
from harness import SOON, Rendezvous, better, codes, until, workers_of

WAIT = {"code": "wait('end')"}
WAIT_BESIDE_RANK_0 = {**WAIT, **Rendezvous.STORE_OF_RANK_0}
STORES = pytest.mark.parametrize("details", [
    pytest.param(WAIT_BESIDE_RANK_0, id="store of rank 0"),
    pytest.param(WAIT, id="store of the launcher", marks=better)])
SHIFTED_CLOCK = Path(__file__).resolve().parent.parent / "support/shifted_clock.cc"


def elastic(bench, nodes, last_call=2):
    return Rendezvous(bench, nodes, conf=f"last_call_timeout={last_call},{Rendezvous.HEARTBEAT}")


def above_the_minimum(bench):
    """Two nodes of a job that can do with one."""
    rendezvous = elastic(bench, "1:2", last_call=harness.ARRIVAL_S)
    return rendezvous.start_two(**WAIT)


def worlds(job):
    """The world sizes that the worker of this launcher had, one after the other."""
    return [int(size) for size in job.values("WORLD_SIZE")]


def end(*jobs):
    return codes(*(job.let("end") for job in jobs))


# Nodes that come

@STORES
def test_late_node_is_taken_in_and_costs_no_restart(bench, details):
    rendezvous = elastic(bench, "1:2")
    first = rendezvous.start_host(**details)
    first.wait_for_workers(1)
    late = rendezvous.start(**details)
    late.wait_for_workers(1, seconds=20)
    first.wait_for_workers(2)
    assert (worlds(first), worlds(late)) == ([1, 2], [2])
    assert first.values("TORCHELASTIC_RESTART_COUNT") == ["0", "0"]
    assert sorted(workers_of(first, late)) == [0, 1]
    assert end(first, late) == [0, 0]


@better
def test_late_node_leaves_earlier_logs_alone(bench):
    rendezvous = elastic(bench, "1:2")
    details = {"code": "say('here\\n')\nwait('end')", **Rendezvous.STORE_OF_RANK_0}
    first = rendezvous.start_host("--log-dir=logs", "-r", "1", **details)
    first.wait_for_workers(1)
    late = rendezvous.start(**details)
    first.wait_for_workers(2)
    assert end(first, late) == [0, 0]
    logs = [file.read_text(encoding="utf-8") for file in (bench.folder / "logs").rglob("stdout.log")]
    assert "".join(logs) == "here\n" * 2


def test_jobs_of_two_names_share_an_endpoint(bench):
    first = Rendezvous(bench, 1)
    second = Rendezvous(bench, 1, conf="is_host=false", port=first.port)
    jobs = [first.start_host(**WAIT)]
    jobs[0].wait_for_workers(1)
    jobs.append(second.start(**WAIT))
    jobs[1].wait_for_workers(1)
    assert [worlds(job) for job in jobs] == [[1], [1]]
    assert end(*reversed(jobs)) == [0, 0]


@better
@pytest.mark.parametrize("seconds", [60, -60])
def test_clocks_may_differ_by_a_minute(bench, seconds):
    if not shutil.which("c++"):
        pytest.skip("no C++ compiler: 'apt-get install g++'")
    library = bench.folder / "libshifted_clock.so"
    subprocess.run(["c++", "-std=c++20", "-shared", "-fPIC", "-o", library, SHIFTED_CLOCK], check=True)
    rendezvous = elastic(bench, "2:3", last_call=3)
    shifted = {"LD_PRELOAD": str(library), "TEST_CLOCK_SHIFT": str(seconds)}
    jobs = [rendezvous.start_host(**WAIT), rendezvous.start(**WAIT, env=shifted)]
    for job in jobs:
        job.wait_for_workers(1, seconds=20)
    assert [worlds(job) for job in jobs] == [[2], [2]]
    assert end(*jobs) == [0, 0]


# Nodes that are lost

@better
def test_node_that_ends_its_work_does_not_wait_for_a_lost_one(bench):
    first, second = above_the_minimum(bench)
    second.lose_power()
    assert first.let("end").wait(15).code == 0


@better
@pytest.mark.parametrize("lost", [0, 1], ids=["host", "other"])
def test_loss_of_a_node_restarts_the_rest(bench, lost):
    jobs = above_the_minimum(bench)
    jobs[lost].lose_power()
    rest = jobs[1 - lost]
    rest.wait_for_workers(2, seconds=15)
    assert worlds(rest) == [2, 1]
    assert end(rest) == [0]


@STORES
def test_new_launcher_takes_the_place_of_a_lost_one(bench, details):
    rendezvous = elastic(bench, "2")
    first, second = rendezvous.start_two(**details)
    second.lose_power()
    third = rendezvous.start(**details)
    third.wait_for_workers(1, seconds=25)
    assert worlds(first)[-1] == worlds(third)[-1] == 2
    assert end(first, third) == [0, 0]


def test_node_beyond_the_maximum_waits_and_takes_a_place(bench):
    rendezvous = elastic(bench, "2")
    first, second = rendezvous.start_two(**WAIT_BESIDE_RANK_0)
    spare = rendezvous.start(**WAIT_BESIDE_RANK_0)
    rendezvous.wait_until_joined(spare)
    assert spare.history == []
    second.lose_power()
    spare.wait_for_workers(1, seconds=25)
    assert end(first, spare) == [0, 0]


@better
def test_node_beyond_the_maximum_succeeds_with_the_job(bench):
    rendezvous = elastic(bench, "2")
    jobs = rendezvous.start_two(**WAIT)
    spare = rendezvous.start()
    rendezvous.wait_until_joined(spare)
    assert end(*jobs) == [0, 0]
    assert spare.wait(20).code == 0


# Nodes that end

def test_node_that_has_succeeded_waits_for_the_others(bench):
    first, second = elastic(bench, "2").start_two(**WAIT)
    second.let("end")
    until(lambda: not second.living_workers(), "the second node's worker has not ended")
    assert second.code is None
    assert end(first, second) == [0, 0]


@pytest.mark.parametrize("same", [False, pytest.param(True, marks=better)], ids=["all restart", "all count alike"])
def test_failure_on_one_node_restarts_all(bench, same):
    rendezvous = elastic(bench, "2")
    jobs = [rendezvous.start_host("--max-restarts=1", code="wait('end') if attempt else wait('fail')\n"
                                                           "sys.exit(attempt == 0)"),
            rendezvous.start("--max-restarts=1", **WAIT)]
    for job in jobs:
        job.wait_for_workers(1)
    jobs[0].let("fail")
    for job in jobs:
        job.wait_for_workers(2)
    if same:
        assert {job.values("TORCHELASTIC_RESTART_COUNT")[-1] for job in jobs} == {"1"}
    assert end(*jobs) == [0, 0]
    assert [worlds(job) for job in jobs] == [[2, 2], [2, 2]]


FAILS = "wait('fail')\nsys.exit(41)"


@better
@pytest.mark.parametrize("has_node_ranks", [False, True], ids=["met", "with node ranks"])
def test_failed_node_ends_all_and_each_names_the_failure(bench, has_node_ranks):
    code = f"if node == 0:\n    wait()\n{FAILS}"
    if has_node_ranks:
        good, bad = bench.start_nodes([[], []], code=code)
    else:
        rendezvous = elastic(bench, "2")
        good, bad = rendezvous.start_host(code="wait()"), rendezvous.start(code=FAILS)
    for job in (good, bad):
        job.wait_for_workers(1)
    assert bad.let("fail").wait().code != 0
    assert good.wait(SOON).code != 0
    assert "41" in good.stderr


@better
def test_node_that_has_succeeded_ends_when_another_fails(bench):
    rendezvous = elastic(bench, "2")
    good, bad = rendezvous.start_host(), rendezvous.start(code=FAILS)
    bad.wait_for_workers(1)
    until(lambda: good.history and not good.living_workers(), "the good node's worker has not ended")
    bad.let("fail").wait()
    good.wait(SOON)


def test_newcomer_to_a_job_that_has_failed_starts_nothing(bench):
    rendezvous = elastic(bench, "1:2", last_call=harness.ARRIVAL_S)
    # The host is there until its worker has been let go: torchrun lets it run, lrun waits for its end.
    host = rendezvous.start_host(setup="note('SIGTERM', stops=False)", **WAIT)
    failing = rendezvous.start(code=FAILS)
    for job in (host, failing):
        job.wait_for_workers(1)
    assert worlds(failing) == [2]
    failing.let("fail")
    until(lambda: failing.code is not None or host.history[-1].signals, "no launcher has seen the failure")
    newcomer = rendezvous.start()
    rendezvous.wait_until_joined(newcomer)
    host.let("end")
    assert newcomer.wait().code != 0
    assert newcomer.history == []
