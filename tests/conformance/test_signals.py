"""Signals to the launcher."""
import signal

import pytest

import harness
from harness import PATIENCE, SOON, Rendezvous, better, codes, until

IGNORES = "note('SIGTERM', stops=False)"


def signalled(bench, name, *options, setup=None, **details):
    """A launcher of two waiting workers, which has been sent the signal."""
    setup = "note('SIGTERM', 'SIGINT', 'SIGHUP', 'SIGQUIT', 'SIGUSR1')" if setup is None else setup
    job = bench.start("--nproc-per-node=2", *options, setup=setup, code="wait()", **details)
    job.wait_for_workers(2)
    return job.signal(getattr(signal, name))


@pytest.mark.parametrize("name, options", [
    ("SIGTERM", []), ("SIGINT", []), ("SIGHUP", []), ("SIGQUIT", []),
    ("SIGUSR1", ["--signals-to-handle=SIGTERM,SIGUSR1"]), ("SIGTERM", ["--max-restarts=3"])])
def test_signal_goes_to_all_workers_and_ends_the_job(bench, name, options):
    job = signalled(bench, name, *options).wait()
    assert job.code != 0
    assert [report.signals for report in job.history] == [[name], [name]]


@better
def test_signal_is_the_launchers_end_and_no_crash(bench):
    job = signalled(bench, "SIGTERM").wait()
    assert job.code in (-signal.SIGTERM, 128 + signal.SIGTERM)
    assert "Traceback" not in job.stderr


def test_signal_ends_children_of_workers(bench):
    assert signalled(bench, "SIGTERM", setup="child()").wait().processes() == []


def test_unknown_signal_is_warned_of(bench):
    job = bench.run("--signals-to-handle=SIGTERM,SIGNONE")
    assert job.code == 0 and "SIGNONE" in job.stderr


def test_signals_may_come_from_a_variable(bench):
    job = bench.run(env={"PET_SIGNALS_TO_HANDLE": "SIGTERM,SIGUSR2"})
    assert job.value("TORCHELASTIC_SIGNALS_TO_HANDLE") == {0: "SIGTERM,SIGUSR2"}


@pytest.mark.parametrize("seconds, options, variables", [
    (PATIENCE, [], {}),
    pytest.param(SOON, ["--shutdown-timeout=1"], {}, marks=pytest.mark.since("2.12")),
    pytest.param(SOON, [], {"TORCH_ELASTIC_SHUTDOWN_TIMEOUT": "1"}, marks=pytest.mark.since("2.12")),
], ids=["30 seconds", "option", "variable"])
def test_workers_that_ignore_a_signal_are_killed(bench, seconds, options, variables):
    job = signalled(bench, "SIGTERM", *options, setup=IGNORES, env=variables).wait(seconds)
    assert [report.signals for report in job.history] == [["SIGTERM"], ["SIGTERM"]]
    assert job.processes() == []


@better
def test_second_signal_kills_at_once(bench):
    job = signalled(bench, "SIGTERM", setup=IGNORES)
    until(lambda: all(report.signals for report in job.history), "no signal came to the workers")
    assert job.signal(signal.SIGTERM).wait(SOON).processes() == []


@better
@pytest.mark.parametrize("setup", ["", "child()\nchild(start_new_session=True)"], ids=["workers", "their children"])
def test_killed_launcher_leaves_nothing(bench, setup):
    signalled(bench, "SIGKILL", setup=setup).wait_for_nothing_left()


@better
def test_signalled_launcher_leaves_a_rendezvous(bench):
    rendezvous = Rendezvous(bench, 3)
    host = rendezvous.start_host()
    leaver = rendezvous.start()
    rendezvous.wait_until_joined(leaver)
    assert leaver.signal(signal.SIGTERM).wait(SOON).code != 0
    jobs = [host, rendezvous.start(), rendezvous.start()]
    assert [job.wait(15).code for job in jobs] == [0, 0, 0]
    assert [len(job.history) for job in jobs] == [1, 1, 1]


def test_signalled_launcher_can_be_replaced(bench):
    rendezvous = Rendezvous(bench, "1:2", conf=f"last_call_timeout={harness.ARRIVAL_S},{Rendezvous.HEARTBEAT}")
    details = {"code": "wait('end')", **Rendezvous.STORE_OF_RANK_0}
    first, second = rendezvous.start_two(**details)
    second.signal(signal.SIGTERM).wait()
    successor = rendezvous.start(**details)
    successor.wait_for_workers(1)
    first.wait_for_workers(2)
    assert codes(first.let("end"), successor.let("end")) == [0, 0]
