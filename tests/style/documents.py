#!/usr/bin/env python3
"""Every command in a document is typed, and every piece of code in it is code that is tested.

usage: documents.py DOCUMENT SOURCE_DIR BUILD_DIR [MOST_WORDS]

A code block has a comment above it that says how it is checked:
  <!-- run -->         each line is run and ends with 0; <!-- run: 0 1 --> allows these codes
  <!-- run beside -->  the same, while a run of two ranks is alive
  <!-- plan -->        each line is run with LRUN_DRY_RUN=1, so that lrun plans it and starts nothing; srun, mpirun and
                       others are stand-ins that start one task, as the first of two nodes
  <!-- prints -->      begins with '$ COMMAND', and the rest is what it prints; a line '...' stands for any lines, and
                       pids, hosts, times and folders may differ. Left out where the command is torchrun and
                       LRUN_TEST_PYTHON names no Python
  <!-- config -->      a lrun.toml
  <!-- ci -->          each line is a command that .ci/run, ./dev check or ./dev soak runs
  <!-- file: PATH -->  stands in that file, word for word
  <!-- diff: OLD NEW -->  its old lines stand in OLD, its new ones in NEW
A block without a comment is refused, unless it has no language and no line of it is a command. Code within a sentence
or a table that begins with 'lrun -', srun, mpirun or horovodrun is planned like a block, and so are the lines of a man
page that begin with '.Dl $ lrun -' or '.It Ic lrun -'.

Commands run on CPUs, in a folder that looks like a clone after './dev demo', with './train', 'train.py' and 'hosts'
added: these stand for a reader's own. A document has no more than MOST_WORDS words. pages.py follows the links."""
import contextlib
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time

COMMAND = re.compile(r"\$ |lrun( |$)(?!: )|(srun|mpirun|mpiexec|torchrun|horovodrun|deepspeed|sbatch|cmake) |\./")
NO_GPU = "names GPUs, and 'LRUN_ACCELERATOR=cpu' excludes them"  # a list of devices is right all the same
KEPT = {"HOME", "LANG", "LC_ALL", "TMPDIR", "USER", "ASAN_OPTIONS", "LSAN_OPTIONS", "TSAN_OPTIONS", "UBSAN_OPTIONS",
        "LRUN_TEST_PYTHON"}
TRAIN = """#!/bin/sh
for word; do
  case $word in --lr | 0.1 | --epochs | 4 | --checkpoint | train.checkpoint | --resume) ;; *) exit 9 ;; esac
done
[ "${RANK:-0}" -lt "${WORLD_SIZE:-1}" ]
"""
TRAIN_PY = """import os
assert int(os.environ.get("RANK", 0)) < int(os.environ.get("WORLD_SIZE", 1))
"""
# Takes the options of srun up to the program, and starts it as the first task of two nodes.
SRUN = """#!/bin/bash
tasks=1
while [[ $1 = -* ]]; do
  case $1 in --ntasks-per-node=*) tasks=${1#*=} ;; -N | -n) shift ;; esac
  shift
done
export SLURM_JOB_ID=7 SLURM_STEP_ID=0 SLURM_STEP_NODELIST=node[0-1] SLURM_STEP_TASKS_PER_NODE="$tasks(x2)"
export SLURM_JOB_NODELIST=node[0-1] SLURM_NODEID=0 SLURM_PROCID=0 SLURM_LOCALID=0
exec "$@"
"""
# In the same way a batch script, as the first node of the job.
SBATCH = """#!/bin/bash
while [[ $1 = -* ]]; do shift; done
export SLURM_JOB_ID=7 SLURM_JOB_NODELIST=node[0-2] SLURM_JOB_NUM_NODES=3 SLURM_NODEID=0 SLURM_ARRAY_TASK_ID=0
exec bash "$@"
"""
MPIRUN = """#!/bin/bash
while [[ $1 = -* ]]; do
  case $1 in
    -x) shift; export "$1" ;;
    -genv) export "$2=$3"; shift 2 ;;
    -np | -H | -f | --map-by) shift ;;
  esac
  shift
done
export OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_SIZE=2 OMPI_COMM_WORLD_LOCAL_RANK=0 OMPI_COMM_WORLD_LOCAL_SIZE=1
exec "$@"
"""
KUBECTL = '#!/bin/sh\n[ "$1 $2" = "apply -f" ] && [ -f "$3" ]\n'
STAND_INS = {"srun": SRUN, "sbatch": SBATCH, "mpirun": MPIRUN, "mpiexec": MPIRUN, "kubectl": KUBECTL,
             "scancel": "#!/bin/sh\n", "status": "#!/bin/sh\n", "scontrol": "#!/bin/sh\necho node0; echo node1\n",
             "torchrun": '#!/bin/sh\nexec "$LRUN_TEST_PYTHON" -m torch.distributed.run "$@"\n'}
# Parts of lines that differ between two runs, and how the comparison writes them.
VARIES = [(r"\S*/([^/\s]+\.py)", r"\1"), (r"pid \d+ on [\w.-]+", "pid N on HOST"), (r"[\d.]+ ?s\b", "TIME"),
          (r"logs: \S+", "logs: FOLDER"), (r"\d{8}-\d{6}-\w{6}", "RUN"), (r"\d{4}-\d\d-\d\d[ _]\d\d:\d\d:\d\d", "DATE"),
          (r"\bpid:? \d+", "pid N"), (r"\bhost +: \S+", "host : HOST"), (r"\b\d+\.\d{3}\b", "TIME"),
          (r"[A-Z]\d{4} [\d:.]+ \d+ ", "LOG "), (r"binary: \S+", "binary: PYTHON"), (r"\S*/(torch/\S+)", r"\1")]


def blocks(text):
    """(mark, language, [line]) of every code block; the mark is empty where the line above is no comment."""
    found, mark, block = [], "", None
    for line in text.splitlines():
        if block is not None:
            if line.startswith("```"):
                found.append(block)
                block, mark = None, ""
            else:
                block[2].append(line)
        elif line.startswith("```"):
            block = (mark, line[3:], [])
        elif re.fullmatch(r"<!-- .* -->", line):
            mark = line[5:-4]
        elif line.strip():
            mark = ""
    return found


def joined(lines):
    """Lines of a shell; one that ends with a backslash goes on."""
    return [line for line in re.sub(r"\\\n\s*", "", "\n".join(lines)).splitlines() if line.strip()]


def sentences_of(text):
    """The document without its code blocks and comments."""
    text = re.sub(r"^```.*?^```", "", text, flags=re.M | re.S)
    return re.sub(r"<!--.*?-->", "", text, flags=re.S)


def plain(line):
    for pattern, written in VARIES:
        line = re.sub(pattern, written, line)
    return line.rstrip()


def matches(wanted, printed):
    """Whether the printed lines are the wanted ones, where '...' stands for any."""
    if not wanted:
        return not printed
    if wanted[0] == "...":
        return any(matches(wanted[1:], printed[at:]) for at in range(len(printed) + 1))
    return bool(printed) and wanted[0] == printed[0] and matches(wanted[1:], printed[1:])


class Clone:
    """A folder that looks like a clone after './dev demo', in which commands are typed."""

    def __init__(self, work, source, build):
        self.folder = work / "clone"
        self.bin = work / "bin"
        self.stand_ins = work / "stand-ins"
        for folder in (self.folder / "build", self.bin, self.stand_ins):
            folder.mkdir(parents=True)
        (self.folder / "build/dev").symlink_to(build)
        (self.folder / "examples").symlink_to(source / "examples")
        self.write(self.folder / "train", TRAIN)
        self.write(self.folder / "train.py", TRAIN_PY)
        self.write(self.folder / "hosts", "node0 slots=4\nnode1 slots=4\n")
        for name in ("lrun", "horovodrun"):
            (self.bin / name).symlink_to(build / "lrun")
        for name, script in STAND_INS.items():
            self.write(self.stand_ins / name, script)
        self.environment = {name: value for name, value in os.environ.items() if name in KEPT}
        self.environment |= {"PATH": f"{self.bin}:{self.stand_ins}:{os.environ['PATH']}",
                             "LRUN_STATE": str(work / "state"), "LRUN_ACCELERATOR": "cpu"}

    @staticmethod
    def write(path, text):
        path.write_text(text)
        path.chmod(0o755)

    def type(self, command, **variables):
        """(code, output) of a line that is typed in the clone."""
        done = subprocess.run(["bash", "-c", command], cwd=self.folder, env=self.environment | variables,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              errors="replace")
        return done.returncode, done.stdout

    @contextlib.contextmanager
    def run_beside(self):
        run = subprocess.Popen(["lrun", "--devices", "2", "sleep", "100"], cwd=self.folder, env=self.environment,
                               stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            while "world size 2" not in self.type("lrun status")[1]:
                if run.poll() is not None:
                    sys.exit("the run that was to be looked at has ended")
                time.sleep(0.01)
            yield
        finally:
            run.terminate()
            run.wait()


class Document:
    def __init__(self, name, source, clone):
        self.name, self.source, self.clone = name, source, clone
        self.text = (source / name).read_text()
        self.problems = []

    def complain(self, problem):
        self.problems.append(f"{self.name}: {problem}")

    def check(self, most_words):
        for mark, language, lines in blocks(self.text):
            self.check_block(mark, language, lines)
        codes = re.findall(r"`((?:lrun|srun|mpirun|horovodrun) -[^`\n]*)`", sentences_of(self.text).replace("\\|", "|"))
        codes += re.findall(r"^\.(?:It Ic|Dl \$) ((?:lrun|srun|horovodrun) -.*)$", self.text.replace("\\", ""), re.M)
        self.run(codes, {0}, LRUN_DRY_RUN="1")
        words = len(self.text.split())
        if most_words and words > most_words:
            self.complain(f"{words} words, of {most_words} that it may have")
        return self.problems

    def check_block(self, mark, language, lines):
        kind, _, rest = mark.partition(":")
        if kind == "run":
            self.run(joined(lines), {int(code) for code in rest.split() or ["0"]})
        elif kind == "run beside":
            with self.clone.run_beside():
                self.run(joined(lines), {0})
        elif kind == "plan":
            self.run(joined(lines), {0}, LRUN_DRY_RUN="1")
        elif kind == "prints":
            self.check_output(lines)
        elif kind == "config":
            self.check_config(lines)
        elif kind == "ci":
            self.check_ci(lines)
        elif kind == "file":
            self.require_in(rest.strip(), lines)
        elif kind == "diff":
            old, new = rest.split()
            self.require_in(old, [line[1:] for line in lines if not line.startswith("+")])
            self.require_in(new, [line[1:] for line in lines if not line.startswith("-")])
        elif language or any(COMMAND.match(line) for line in lines):
            self.complain(f"a code block that nothing checks: {lines[0] if lines else ''}")

    def run(self, commands, codes, **variables):
        for command in commands:
            code, output = self.clone.type(command, **variables)
            if NO_GPU in output:
                continue
            if code not in codes or "this run would fail" in output:
                self.complain(f"'{command}' ended with {code}:\n{output[-2000:]}")

    def check_output(self, lines):
        command = lines[0].removeprefix("$ ")
        if command.startswith("torchrun") and not os.environ.get("LRUN_TEST_PYTHON"):
            return
        _, output = self.clone.type(command)
        if not matches([plain(line) for line in lines[1:]], [plain(line) for line in output.splitlines()]):
            self.complain(f"'{command}' printed something else:\n{output}")

    def check_config(self, lines):
        settings = self.clone.folder / "lrun.toml"
        settings.write_text("\n".join(lines) + "\n")
        self.run(["lrun ./train"], {0}, LRUN_DRY_RUN="1")
        settings.unlink()

    def check_ci(self, lines):
        """Arguments of ./dev commands are free (./dev test -R NAME is ./dev test); scripts call dev_NAME."""
        names = (".ci/run", "tools/dev/check.sh", "tools/dev/packages.sh", "tools/dev/soak.sh")
        scripts = "".join((self.source / name).read_text() for name in names)
        for command in joined(lines):
            word = re.match(r"\./dev (\w+)", command)
            known = re.search(rf'/dev"? {word[1]}|\bdev_{word[1]}\b', scripts) if word else command in scripts
            if not known:
                self.complain(f"nothing runs '{command}'")

    def require_in(self, path, lines):
        file = self.source / path
        if not file.is_file() or "\n".join(lines) not in file.read_text():
            self.complain(f"a block differs from {path}:\n" + "\n".join(lines))


def main():
    name, source, build = sys.argv[1], pathlib.Path(sys.argv[2]).resolve(), pathlib.Path(sys.argv[3]).resolve()
    most_words = int(sys.argv[4]) if len(sys.argv) > 4 else 0
    work = pathlib.Path(tempfile.mkdtemp(prefix="lrun-documents."))
    try:
        found = Document(name, source, Clone(work, source, build)).check(most_words)
    finally:
        shutil.rmtree(work)
    print(*found, sep="\n", end="\n" if found else "")
    sys.exit(1 if found else 0)


main()
