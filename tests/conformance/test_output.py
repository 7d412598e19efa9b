"""What workers print: files, console, prefixes, filters, and the folders of runs and attempts."""
import re

import pytest

from harness import SOON, better, free_port, until

SPEAK = "say('to stdout\\n')\nsay('to stderr\\n', 2)\n"
BOTH = {"0/stdout.log", "0/stderr.log", "1/stdout.log", "1/stderr.log"}


def run_two(bench, *options, code=SPEAK, env=()):
    """Two workers that end well."""
    job = bench.run("--nproc-per-node=2", "--log-dir=logs", *options, code=code, env=env)
    assert job.code == 0, job.stderr
    return job


def log_files(bench, attempt=0):
    """{'0/stdout.log': text} of the one run in logs/."""
    (run,) = (entry for entry in (bench.folder / "logs").iterdir() if entry.is_dir())
    folder = run / f"attempt_{attempt}"
    return {str(file.relative_to(folder)): file.read_text(encoding="utf-8") for file in folder.rglob("*.log")}


def lines(text, word="to std"):
    """The lines with this word, sorted."""
    return sorted(line for line in text.splitlines() if word in line)


# Files and console

OUT, ERR = "to stdout", "to stderr"


@pytest.mark.parametrize("options, files, stdout, stderr", [
    ([], set(), [OUT] * 2, [ERR] * 2),
    (["-r", "0"], set(), [OUT] * 2, [ERR] * 2),
    (["-r", "1"], {"0/stdout.log", "1/stdout.log"}, [], [ERR] * 2),
    (["-r", "2"], {"0/stderr.log", "1/stderr.log"}, [OUT] * 2, []),
    (["-r", "3"], BOTH, [], []),
    (["-r", "0:3,1:0"], {"0/stdout.log", "0/stderr.log"}, [OUT], [ERR]),
    (["-r", "1:2"], {"1/stderr.log"}, [OUT] * 2, [ERR]),
    (["-t", "3"], BOTH, [f"[default0]:{OUT}", f"[default1]:{OUT}"], [f"[default0]:{ERR}", f"[default1]:{ERR}"]),
    (["--tee=1:1"], {"1/stdout.log"}, [f"[default1]:{OUT}", OUT], [ERR] * 2),
    (["-r", "0:2,1:0", "-t", "0:1,1:2"], BOTH - {"1/stdout.log"}, [f"[default0]:{OUT}", OUT], [f"[default1]:{ERR}"]),
    (["-t", "1", "--role=trainer"], {"0/stdout.log", "1/stdout.log"}, [f"[trainer0]:{OUT}", f"[trainer1]:{OUT}"],
     [ERR] * 2),
    (["-t", "3", "--local-ranks-filter=0"], BOTH, [f"[default0]:{OUT}"], [f"[default0]:{ERR}"]),
    (["--local-ranks-filter=1"], set(), [OUT], [ERR]),
], ids=lambda value: " ".join(value) if isinstance(value, list) else "")
def test_streams_go_to_files_and_console(bench, options, files, stdout, stderr):
    job = run_two(bench, *options)
    written = log_files(bench)
    assert set(written) == files
    assert all(text == f"to {name[2:8]}\n" for name, text in written.items())
    assert (lines(job.stdout), lines(job.stderr)) == (stdout, stderr)


def test_local_ranks_filter_shows_the_ranks_it_names(bench):
    assert run_two(bench, "--local-ranks-filter=1", code="say(f'rank {rank}\\n')").stdout == "rank 1\n"


@better
def test_ranks_of_two_digits_can_be_redirected(bench):
    assert bench.run("--nproc-per-node=11", "--log-dir=logs", "-r", "10:1", code=SPEAK).code == 0
    assert set(log_files(bench)) == {"10/stdout.log"}


@pytest.mark.parametrize("template, line", [
    ("<${role_name} ${local_rank} ${rank} ${other}> ", f"<default 1 1 ${{other}}> {OUT}"),
    ("worker says: ", f"worker says: {OUT}")])
def test_prefix_may_come_from_a_template(bench, template, line):
    job = run_two(bench, "-t", "1", env={"TORCHELASTIC_LOG_LINE_PREFIX_TEMPLATE": template})
    assert line in job.stdout.splitlines()


# Lines

# torchrun prints with a thread a worker, and lines of one may be repeated while another one prints. The output of a worker
# that is not teed goes past the launcher, in blocks that may end within a line: it prints nothing.
@pytest.mark.parametrize("tee, ranks", [
    ("0:1", [0]), pytest.param("1", [0, 1], marks=pytest.mark.mostly_better)], ids=["of one worker", "of two"])
def test_all_lines_arrive_though_workers_end_after_them(bench, tee, ranks):
    job = run_two(bench, "-t", tee, code=f"for number in range(2000 if rank in {ranks} else 0):\n    print('line', number)")
    for rank in ranks:
        prefix = f"[default{rank}]:"
        assert [line for line in job.stdout.splitlines() if line.startswith(prefix)] == [
            f"{prefix}line {number}" for number in range(2000)]


def test_last_words_before_a_failure_arrive(bench):
    job = bench.run("--nproc-per-node=2", "-t", "3",
                    code="if rank == 0:\n    wait()\nsay('last words\\n', 2)\nsys.exit(1)")
    assert "[default1]:last words" in job.stderr.splitlines()


def test_bytes_that_are_no_text_stop_nothing(bench):
    job = run_two(bench, "-t", "1", code="say(b'a\\xff\\n')\nsay('after\\n')")
    assert "[default0]:after" in job.stdout.splitlines() and "[default0]:a" in job.stdout


@better
def test_line_arrives_while_its_worker_runs(bench):
    job = bench.start("-t", "1", code="say('hello\\n')\nwait('end')")
    until(lambda: "[default0]:hello\n" in job.stdout, "the line is not on the console", SOON)
    assert job.let("end").wait().code == 0


@better
def test_line_written_in_pieces_is_one_line(bench):
    pieces = "for piece in ('one ', 'two ', 'three\\n'):\n    say(piece)\n    time.sleep(0.5)"
    assert lines(run_two(bench, "-t", "1", code=pieces).stdout, "default") == [
        "[default0]:one two three", "[default1]:one two three"]


@better
def test_line_without_an_end_takes_no_other_with_it(bench):
    code = ("if rank == 0:\n    say('open')\n    make('said')\n"
            "else:\n    wait('said')\n    time.sleep(0.5)\n    say('next\\n')")
    assert lines(run_two(bench, "-t", "1", code=code).stdout, "default") == ["[default0]:open", "[default1]:next"]


@pytest.mark.parametrize("stream, words, kept", [
    ("stdout", "apple,pear", "apple pie|my pear"), ("stderr", "a,,b", "a,b")])
def test_filter_copies_lines_with_its_words(bench, stream, words, kept):
    printed = {"stdout": "apple pie\nplum\nmy pear\n", "stderr": "a,b\na\nb\n"}
    run_two(bench, "-t", "3", f"--duplicate-{stream}-filters={words}",
            code="".join(f"say({text!r}, {1 + (name == 'stderr')})\n" for name, text in printed.items()))
    copied = log_files(bench)[f"filtered_{stream}.log"].splitlines()
    assert sorted(copied) == sorted(f"[default{rank}]:{line}" for rank in range(2) for line in kept.split("|"))


# Folders

def test_runs_have_folders_of_their_own_in_one_that_is_made_and_kept(bench):
    logs = bench.folder / "a/b/c"
    for run in range(2):
        job = bench.run("--log-dir=a/b/c", "-r", "1", f"--master-port={free_port()}", "--rdzv-id=exp7", code=SPEAK)
        assert job.code == 0, job.stderr
        (logs / f"mine_{run}").touch()
    names = sorted(entry.name for entry in logs.iterdir())
    assert len(names) == 4 and all(re.fullmatch(r"exp7_\w{8}", name) for name in names[:2])
    assert names[2:] == ["mine_0", "mine_1"]


def test_folder_is_temporary_where_none_is_named(bench):
    bench.run("-r", "1", code=SPEAK)
    assert len(list((bench.folder / "tmp").glob("torchelastic_*/*/attempt_0/0/stdout.log"))) == 1


def test_attempts_have_folders_of_their_own(bench):
    job = bench.run("--max-restarts=1", "--log-dir=logs", "-r", "1", code=SPEAK + "sys.exit(attempt == 0)")
    assert job.code == 0
    assert log_files(bench, 0) == log_files(bench, 1) == {"0/stdout.log": "to stdout\n"}


def test_no_folder_means_no_files_and_hides_nothing(bench):
    job = bench.run("--log-dir=/dev/null", "-r", "1", code=SPEAK)
    assert (job.code, lines(job.stdout)) == (0, ["to stdout"])


@better
def test_name_of_a_run_may_have_a_slash(bench):
    assert bench.run("--log-dir=logs", "-r", "1", "--rdzv-id=user/job", code=SPEAK).code == 0
    assert len(list((bench.folder / "logs").rglob("stdout.log"))) == 1
