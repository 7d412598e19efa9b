"""The command line: how options are read, defaults from the environment, the program's words, and what is refused."""
import os
import socket
import sys
from pathlib import Path

import pytest

import harness
from harness import LOOPBACK, WORKER, better, codes, free_port, is_listening

USAGE = 2 if harness.IS_TORCHRUN else 125  # lrun's is a code that workers rarely have
C10D = ["--rdzv-backend=c10d", f"--local-addr={LOOPBACK}"]
ANYWHERE = [*C10D, "--rdzv-endpoint=localhost:0"]
BESIDE_WORKER = {"PYTHONPATH": str(WORKER.parent)}
HAS_GPU = os.path.exists("/dev/nvidiactl")


def expect_refused(job, usage=False):
    """The launcher has ended with an error and started nothing."""
    assert job.history == []
    assert job.code == USAGE if usage or not harness.IS_TORCHRUN else job.code in (1, 2), job.stderr


# Values, spellings and endpoints

@pytest.mark.parametrize("count, options, variables", [
    (1, [], {}),
    (4, ["--nproc-per-node=4"], {}),
    (2, ["--nproc_per_node=2"], {}),
    (2, ["--nproc-per-node", "2"], {}),
    (2, ["--nproc_per_node", "2"], {}),
    (2, ["--nproc-p", "2"], {}),
    (2, ["--nproc-per-node=3", "--nproc_per_node=2"], {}),
    (2, ["--start-method=forkserver", "--nproc-per-node=2"], {}),
    (3, [], {"PET_NPROC_PER_NODE": "3"}),
    (1, ["--nproc-per-node=1"], {"PET_NPROC_PER_NODE": "3"}),
    (1, ["--max-restarts=1"], {"PET_MAX_RESTARTS": "x"}),
    (1, [], {"PET_MODULE": "0"}),
    (os.cpu_count(), ["--nproc-per-node=cpu"], {}),
], ids=str)
def test_starts_so_many_workers(bench, count, options, variables):
    job = bench.run(*options, env=variables)
    assert (job.code, sorted(job.workers)) == (0, list(range(count))), job.stderr


@pytest.mark.parametrize("options", [
    [f"--rdzv-endpoint={LOOPBACK}:PORT"],
    ["--rdzv-endpoint=localhost:PORT"],
    [f"--rdzv-endpoint={socket.gethostname()}:PORT"],
    pytest.param(["--rdzv-endpoint=[::1]:PORT"], marks=pytest.mark.skipif(not socket.has_ipv6, reason="no IPv6 here")),
    ["--rdzv-endpoint= localhost:PORT "],
    ["--rdzv-endpoint=localhost:0", "--rdzv-conf="],
    ["--rdzv-endpoint=localhost:0", "--rdzv-conf=  "],
    ["--rdzv-endpoint=localhost:0", "--rdzv-conf= join_timeout = 20 , last_call_timeout=1"],
    ["--rdzv-endpoint=localhost:0", "--rdzv-conf=color=blue=green"],
    ["--rdzv-endpoint=localhost:0", "--nnodes=1:2", "--rdzv-conf=last_call_timeout=1"],
    [f"--rdzv-endpoint={LOOPBACK}:PORT", "--rdzv-conf=is_host=true"],
    [f"--rdzv-endpoint={LOOPBACK}:PORT", "--rdzv-conf=is_host=1"],
    [f"--rdzv-endpoint={LOOPBACK}:PORT", "--rdzv-conf=is_host=Yes"],
], ids=str)
def test_one_node_meets_itself(bench, options):
    job = bench.run(*C10D, *(option.replace("PORT", str(free_port())) for option in options))
    assert (job.code, job.value("WORLD_SIZE")) == (0, {0: "1"}), job.stderr


def test_rendezvous_without_a_port_is_at_29400(bench):
    if is_listening(29400):
        pytest.skip("port 29400 is in use")
    job = bench.start(*C10D, f"--rdzv-endpoint={LOOPBACK}", code="wait('end')")
    job.wait_for_workers(1)
    assert is_listening(29400)
    assert job.let("end").wait().code == 0


# The program and its words

@pytest.mark.parametrize("words", [
    ["--nproc-per-node=7", "-r", "3", "--help", "plain"],
    ["-1", "-m", "--standalone", "--nnodes", "5", "--", "-x"],
    ["two words", "", "quo'te\"s", "naïve ✓", "a=b"],
], ids=str)
def test_words_after_the_script_are_its_own(bench, words):
    assert bench.run(args=words).workers[0].argv == words


def test_two_dashes_before_the_script_are_dropped(bench):
    assert bench.run("--nproc-per-node=1", "--", args=["a"]).workers[0].argv == ["a"]


def test_local_rank_is_put_into_words(bench):
    words = {"${local_rank}": "1", "log-$local_rank.txt": "log-1.txt", "$$": "$", "$HOME": "$HOME",
             "$local_rank_x": "$local_rank_x"}
    assert bench.run("--nproc-per-node=2", args=words).workers[1].argv == list(words.values())


def test_script_runs_unbuffered_in_the_folder_and_on_the_input_of_the_launcher(bench):
    folder = bench.folder / "elsewhere"
    folder.mkdir()
    worker = bench.run(cwd=folder, stdin="some text\n", setup="report(input=sys.stdin.read())").workers[0]
    assert (worker.is_unbuffered, worker.cwd, worker.input) == (True, str(folder), "some text\n")


def test_python_exec_is_the_interpreter(bench):
    wrapper = bench.folder / "python-of-mine"
    wrapper.write_text(f'#!/bin/sh\nVIA=wrapper exec {sys.executable} "$@"\n', encoding="utf-8")
    wrapper.chmod(0o755)
    assert bench.run(env={"PYTHON_EXEC": str(wrapper)}).value("VIA") == {0: "wrapper"}


@pytest.mark.parametrize("options, script, variables", [
    (["-m"], "worker", BESIDE_WORKER),
    (["--run-path"], WORKER, {}),
], ids=["module", "path"])
def test_script_runs_as_a_main_module(bench, options, script, variables):
    job = bench.run(*options, "--nproc-per-node=2", script=script, args=["--x", "y"], env=variables)
    assert (job.code, [report.argv for report in job.history]) == (0, [["--x", "y"]] * 2), job.stderr


def test_short_options_combine(bench):
    job = bench.run("--log-dir=logs", "-mr", "3", script="worker", env=BESIDE_WORKER)
    assert (job.code, len(list(bench.folder.glob("logs/*/attempt_0/0/std*.log")))) == (0, 2), job.stderr


@pytest.mark.parametrize("options, program, variables", [
    (["--no-python"], "echo", {}),
    (["--no-python"], "/bin/echo", {}),
    ([], "echo", {"PET_NO_PYTHON": "1"}),
], ids=["from PATH", "by its path", "by a variable"])
def test_other_programs_run_as_they_are(bench, options, program, variables):
    job = bench.run(*options, "--nproc-per-node=2", script=program, args=["--lr", "0.1"], env=variables)
    assert (job.code, job.stdout) == (0, "--lr 0.1\n" * 2), job.stderr


# Help and refusals

def test_help_is_on_stdout(bench):
    job = bench.run("--help", script=None)
    assert job.code == 0
    assert "usage" in job.stdout.lower() and "--nproc-per-node" in job.stdout


def test_no_script_is_a_usage_error(bench):
    job = bench.run("--nproc-per-node=2", script=None)
    expect_refused(job, usage=True)
    assert "usage" in job.stderr.lower()


@pytest.mark.parametrize("option", ["--max-restarts=x", "--max-restarts=1.5", "--monitor-interval=soon",
                                    "--start-method=thread", "--wrong=1"])
def test_unreadable_option_is_a_usage_error(bench, option):
    expect_refused(bench.run(option), usage=True)


@pytest.mark.parametrize("name, value", [
    ("PET_MAX_RESTARTS", "x"), ("PET_MAX_RESTARTS", ""), ("PET_MONITOR_INTERVAL", ""), ("PET_NODE_RANK", ""),
    pytest.param("PET_STANDALONE", "maybe", marks=better)])
def test_unreadable_variable_is_a_usage_error(bench, name, value):
    expect_refused(bench.run(env={name: value}), usage=True)


@pytest.mark.parametrize("options", [
    *([f"--nproc-per-node={value}"] for value in ("unknown", "0", "2.5", "")),
    pytest.param(["--nproc-per-node=gpu"], marks=pytest.mark.skipif(HAS_GPU, reason="there is a GPU")),
    *([f"--nnodes={value}"] for value in ("2:20:30", "0:1", "3:2", "x")),
    ["--max-restarts=-1"],
    ["--monitor-interval=0"],
    pytest.param(["--shutdown-timeout=-1"], marks=pytest.mark.since("2.12")),
    ["--no-python", "-m"],
    *([f"--redirects={value}"] for value in ("4", "-1", "0:4", "all", "0:1;1:2", ",0:1", "")),
    ["--local-ranks-filter=0,x"],
    [f"--log-dir={WORKER}"],
    *([*C10D, f"--rdzv-endpoint={value}"] for value in (
        ":123", "~:29400", "localhost:", "localhost:65536", "localhost:x", "a b:1", "local/host:1", "[::1")),
    *([*ANYWHERE, f"--rdzv-conf={value}"] for value in (
        "join_timeout", "join_timeout=", "=5", "join_timeout=5,", " , ", "join_timeout=0", "last_call_timeout=0",
        "read_timeout=0", "is_host=maybe")),
    *([*C10D, f"--rdzv-endpoint={LOOPBACK}:PORT", f"--rdzv-conf=is_host={value},read_timeout=1"] for value in (
        "false", "0", "N", "False")),
    [*ANYWHERE, "--nnodes=2", "--rdzv-conf=join_timeout=2"],
], ids=str)
def test_impossible_options_are_refused(bench, options):
    expect_refused(bench.run(*(option.replace("PORT", str(free_port())) for option in options)))


@pytest.mark.parametrize("options, word", [
    (["--rdzv-backend=pigeon", "--rdzv-endpoint=localhost:1"], "pigeon"),
    (["--rdzv-backend=static", f"--rdzv-endpoint={LOOPBACK}"], "--master-port"),
    pytest.param(["--nnodes=3:2"], "nnodes", marks=better),
    pytest.param(["--nproc-per-node=unknown"], "nproc-per-node", marks=better),
    pytest.param(["--max-restarts=-1"], "max-restarts", marks=better),
], ids=str)
def test_refusal_names_its_reason(bench, request, options, word):
    job = bench.run(*options)
    expect_refused(job)
    assert word in job.stderr.replace("_", "-")
    assert "Traceback" not in job.stderr or not request.node.get_closest_marker("better")


@better
def test_misspelt_detail_of_the_rendezvous_is_named(bench):
    assert "join_timout" in bench.run(*ANYWHERE, "--rdzv-conf=join_timout=5").stderr


# Several launchers on one host

def test_standalone_jobs_do_not_meet(bench):
    others = ["--rdzv-id=mine", "--rdzv-endpoint=no.such.host:1", "--rdzv-backend=etcd"]
    jobs = [bench.start("--standalone", *options, "--nproc-per-node=2", code="wait('end')") for options in ([], others)]
    for job in jobs:
        job.wait_for_workers(2)
    assert codes(*(job.let("end") for job in jobs)) == [0, 0]
    assert len({job.value("TORCHELASTIC_RUN_ID")[0] for job in jobs} | {"mine"}) == 3


def test_second_job_with_the_same_port_is_refused(bench):
    port = free_port()
    first = bench.start(f"--master-port={port}", code="wait('end')")
    first.wait_for_workers(1)
    expect_refused(bench.run(f"--master-port={port}"))
    other = bench.run(f"--master-port={free_port()}", "--nproc-per-node=2")
    assert codes(first.let("end"), other) == [0, 0]


@better
def test_launcher_takes_little_memory(bench):
    job = bench.start("--nproc-per-node=2", code="wait()")
    job.wait_for_workers(2)
    pages = int(Path(f"/proc/{job.process.pid}/statm").read_text(encoding="utf-8").split()[1])
    assert pages * os.sysconf("SC_PAGESIZE") < 64 << 20
