"""Workers that fail: exit codes, restarts, the end of the others, the summary of failures, error files."""
import json
import re

import pytest

from harness import PATIENCE, SOON, better, failure_summary, is_alive, until

CRASH = "os.kill(os.getpid(), signal.{})".format
TIME = "1700000000"


def fails(statement, rank=1):
    """Code of workers: this rank fails, the others wait."""
    return f"{statement} if rank == {rank} else wait()"


FAILS_WHEN_TOLD = "wait('fail')\n" + fails("sys.exit(1)")


# The end of a job

def test_job_ends_with_its_last_worker(bench):
    job = bench.start("--nproc-per-node=3", code="wait('end') if rank == 2 else None")
    job.wait_for_workers(3)
    until(lambda: len(job.living_workers()) == 1, "ranks 0 and 1 have not ended")
    assert job.code is None
    assert job.let("end").wait().code == 0


def test_failed_worker_fails_the_job(bench):
    assert bench.run("--nproc-per-node=2", code=fails("sys.exit(3)")).code != 0


@better
@pytest.mark.parametrize("statement, code", [("sys.exit(3)", 3), ("sys.exit(85)", 85), (CRASH("SIGSEGV"), 128 + 11)])
def test_job_ends_with_the_code_of_the_first_failure(bench, statement, code):
    assert bench.run("--nproc-per-node=2", code=fails(statement)).code == code


@pytest.mark.parametrize("options, program", [([], "no-such-script.py"), (["--no-python"], "no-such-program"),
                                              (["--no-python"], "./plain.txt")])
def test_program_that_cannot_run_is_named_and_leaves_nothing(bench, options, program):
    (bench.folder / "plain.txt").write_text("no program", encoding="utf-8")
    job = bench.run("--nproc-per-node=2", *options, script=program)
    assert job.code != 0 and program in job.stderr
    assert job.processes() == []


@better
def test_failure_is_noticed_at_once(bench):
    job = bench.start("--monitor-interval=30", code="wait('fail')\nsys.exit(1)")
    job.wait_for_workers(1)
    assert job.let("fail").wait(SOON).code != 0


# Restarts

@pytest.mark.parametrize("options, attempts", [([], 1), (["--max-restarts=3"], 4)], ids=str)
def test_restarts_are_limited_and_counted(bench, options, attempts):
    job = bench.run(*options, code="sys.exit(1)")
    assert job.code != 0
    assert job.values("TORCHELASTIC_RESTART_COUNT") == [str(attempt) for attempt in range(attempts)]
    assert set(job.values("TORCHELASTIC_MAX_RESTARTS")) == {str(attempts - 1)}


def test_restart_begins_when_all_old_workers_have_ended(bench):
    job = bench.start("--nproc-per-node=2", "--max-restarts=1",
                      code=f"wait('end') if attempt else {fails('sys.exit(1)')}")
    reports = job.wait_for_workers(4)
    assert [is_alive(report.pid) for report in reports] == [False, False, True, True]
    assert {report.env["RANK"] for report in reports[2:]} == {"0", "1"}
    assert job.let("end").wait().code == 0


# The others

def test_every_worker_leads_a_session(bench):
    for report in bench.run("--nproc-per-node=2").history:
        assert report.session == report.group == report.pid


def test_others_get_sigterm_and_end_with_their_children(bench):
    job = bench.start("--nproc-per-node=3", setup="note('SIGTERM')\nchild()", code=FAILS_WHEN_TOLD)
    job.wait_for_workers(3)
    job.let("fail").wait()
    assert [job.workers[rank].signals for rank in (0, 2)] == [["SIGTERM"], ["SIGTERM"]]
    assert not any(is_alive(pid) for rank in (0, 2) for pid in job.workers[rank].children)


def test_others_that_ignore_sigterm_are_killed(bench):
    job = bench.start("--nproc-per-node=2", setup="note('SIGTERM', stops=False)",
                      code=FAILS_WHEN_TOLD)
    job.wait_for_workers(2)
    assert job.let("fail").wait(PATIENCE).code != 0
    assert job.workers[0].signals == ["SIGTERM"]
    assert job.processes() == []


@better
def test_children_in_a_session_of_their_own_end_too(bench):
    job = bench.start("--nproc-per-node=2", setup="child(start_new_session=True)",
                      code=FAILS_WHEN_TOLD)
    job.wait_for_workers(2)
    assert job.let("fail").wait().code != 0
    job.wait_for_nothing_left(2)


# The summary

@pytest.fixture(scope="module")
def failed(module_bench):
    """A job of which rank 1 failed, without an error file."""
    return module_bench.run("--nproc-per-node=2", code=fails("sys.exit(41)"))


@pytest.mark.parametrize("field, shown", [
    ("rank", r"1 \(local_rank: 1\)"),
    ("exitcode", r"41 \(pid: PID\)"),
    ("error_file", "<N/A>"),
    ("traceback", "To enable traceback see:.*"),
    ("time", r"\d{4}-\d\d-\d\d_\d\d:\d\d:\d\d"),
])
def test_summary_of_the_root_cause(failed, field, shown):
    pid = str(failed.workers[1].pid)
    assert re.fullmatch(shown.replace("PID", pid), failure_summary(failed.stderr)["root"][field])


def test_summary_lists_the_others_that_were_ended(failed):
    assert failure_summary(failed.stderr)[0]["exitcode"].startswith("-15 ")


def test_summary_has_the_script_as_its_title(failed):
    assert "worker.py FAILED" in failed.stderr


@pytest.mark.parametrize("statement, code", [
    ("sys.exit(138)", 138), ("sys.exit(255)", 255), (CRASH("SIGABRT"), -6), ("1 / 0", 1)])
def test_summary_shows_codes_as_they_are_and_signals_as_negative(bench, statement, code):
    summary = failure_summary(bench.run("--nproc-per-node=2", code=fails(statement)).stderr)
    assert summary["root"]["exitcode"].startswith(f"{code} (")
    assert summary["root"]["rank"] == "1 (local_rank: 1)"


def test_summary_of_a_crash_without_other_failures(bench):
    job = bench.run(code=CRASH("SIGSEGV"))
    pid = job.workers[0].pid
    root = failure_summary(job.stderr)["root"]
    assert root["exitcode"] == f"-11 (pid: {pid})"
    assert root["traceback"] == f"Signal 11 (SIGSEGV) received by PID {pid}"
    assert "<NO_OTHER_FAILURES>" in job.stderr


# Error files

def error_of(text, timestamp=TIME):
    """Code that leaves the error file of an exception."""
    content = {"message": text, "extraInfo": {"py_callstack": f"stack of {text}", "timestamp": timestamp}}
    return f"leave_error({json.dumps(json.dumps({'message': content}))})"


def test_call_stack_of_an_error_file_is_shown(bench):
    job = bench.run("--log-dir=logs", code=f"{error_of('ValueError: bad')}\nsys.exit(1)")
    root = failure_summary(job.stderr)["root"]
    assert root["error_file"].endswith("/attempt_0/0/error.json")
    assert root["traceback"] == "stack of ValueError: bad"


def test_earliest_error_file_is_the_root_cause(bench):
    early, late = error_of("early", "1700000001"), error_of("late", "1700000009")
    job = bench.run("--nproc-per-node=2", code=f"{early} if rank else {late}\nmake(f'left{{rank}}')\n"
                                               "wait('left0')\nwait('left1')\nsys.exit(1)")
    summary = failure_summary(job.stderr)
    assert summary["root"]["rank"].startswith("1 ") and 0 in summary


@pytest.mark.parametrize("timestamp", [int(TIME), TIME], ids=["number", "text"])
def test_error_file_may_be_a_plain_text(bench, timestamp):
    content = json.dumps({"message": "out of luck", "timestamp": timestamp})
    job = bench.run(code=f"leave_error({content!r})\nsys.exit(1)")
    assert failure_summary(job.stderr)["root"]["traceback"] == "out of luck"


@better
@pytest.mark.parametrize("content", ["not json", "{}", ""], ids=["not JSON", "no message", "empty"])
def test_broken_error_file_hides_no_summary(bench, content):
    job = bench.run(code=f"leave_error({content!r})\nsys.exit(5)")
    assert failure_summary(job.stderr)["root"]["exitcode"].startswith("5 ")


def error_of_launcher(bench, *options, code=""):
    """What the launcher leaves in an error file of its own."""
    path = bench.folder / "launcher.json"
    bench.run(*options, code=code, env={"TORCHELASTIC_ERROR_FILE": str(path)})
    assert path.exists()
    return json.loads(path.read_text(encoding="utf-8"))["message"]


def test_error_of_a_worker_is_handed_to_the_caller(bench):
    message = error_of_launcher(bench, code=f"{error_of('ValueError: bad')}\nsys.exit(9)")
    assert (message["message"], message["errorCode"]) == ("ValueError: bad", 9)


@better
def test_failure_without_an_error_file_is_handed_to_the_caller(bench):
    assert error_of_launcher(bench, code="sys.exit(9)")["errorCode"] == 9


def test_error_of_the_launcher_is_handed_to_the_caller(bench):
    message = error_of_launcher(bench, "--nnodes=3:2")
    assert any(words in message["message"] for words in ("min_nodes", "'--nnodes 3:2'"))
    assert message["extraInfo"]["timestamp"].isdigit()
