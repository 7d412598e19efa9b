"""Imports modules once and forks a rank for each start: the fork server of --preload.

lrun runs it as 'sitecustomize', which Python imports before its program. In the server this import does not return. In
a rank it returns, and Python goes on as in any other process: it runs the program of its command line as __main__, with
no frame of this file below it, and ends as it always does.

Descriptor 3 is a socket to the launcher, 4 the archive with this file. A request is one byte with descriptors; the
first is a memory file with fields that end with NUL. fork_server_answer.h has the answers. The launcher shares memory in
which unfinished_import.h finds what is imported, should that end this process or never be done.
"""

import gc
import os
import sys
import time

CHANNEL = 3
ARCHIVE = "/proc/self/fd/4"
STAGE = "LRUN_FORK_SERVER"
MOST_OUTPUT = 1 << 20  # bytes that imports print
MOST_LEARNED = 1 << 20  # bytes of a list of modules
PATIENCE_S = 0.5  # with what an import has left
GO = b"g"
NAME_FILE = "/proc/self/comm"  # as top shows it
STANDARD_LIBRARY = os.path.dirname(os.__file__)
IS_OF_PACKAGES = {STANDARD_LIBRARY: True, f"{STANDARD_LIBRARY}/lib-dynload": True}  # by folder


class Imported:
    """What the imports have left for each rank: the lines that they printed, and changes of variables. With `learned`,
    local rank 0 adds to that list."""

    def __init__(self, output, changes, learned):
        self.output = output
        self.changes = changes
        self.learned = learned


class Unfit(Exception):
    """The reason why no rank can be forked from here."""


class Note:
    """Of what is imported, in memory that the launcher has, too."""

    def __init__(self, fd):
        import mmap

        self.memory = mmap.mmap(fd, 0)
        os.close(fd)

    def write(self, name="", path=""):
        """With the file of 'auto' in which it is; without a name: nothing is imported."""
        text = b"%d\0%s\0%s\0" % (time.monotonic_ns(), name.encode("utf-8", "replace"), os.fsencode(path))
        if len(text) <= len(self.memory):
            self.memory[: len(text)] = text

    def close(self):
        self.write()
        self.memory.close()


class Learned:
    """The modules that the first worker of earlier runs has imported: a file with 'NAME<tab>FILE' a line, in their order, and
    '!NAME' for one that no rank may inherit. The worker notes them in memory that it shares with this process."""

    def __init__(self, path):
        import mmap

        self.path = path
        self.noted = mmap.mmap(-1, MOST_LEARNED)
        self.saved = 0  # bytes of it

    def lines(self):
        """None of a file that is not this user's."""
        import stat

        try:
            with open(self.path, "rb", opener=lambda path, flags: os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK)) as file:
                status = os.fstat(file.fileno())
                if not stat.S_ISREG(status.st_mode) or status.st_uid != os.geteuid():
                    return []
                return file.read(MOST_LEARNED).decode("utf-8", "replace").splitlines()
        except OSError:
            return []

    def modules(self):
        """Pairs of name and file, without what is unfit."""
        lines = self.lines()
        unfit = tuple(line[1:] + "." for line in lines if line.startswith("!"))
        pairs = (line.split("\t") for line in lines if line.count("\t") == 1)
        return [(name, file) for name, file in pairs if is_name(name) and not (name + ".").startswith(unfit)]

    def promise(self):
        """What the user is told: empty where earlier runs have learned."""
        if self.modules():
            return ""
        if not self.save(""):
            return f"nothing is learned, as '{self.path}' cannot be written"
        return "the next run imports what this one's first worker does"

    def size(self):
        """Of what was noted, in bytes."""
        return int.from_bytes(self.noted[:4], "little")

    def note(self, name, file):
        """Of the worker."""
        size = self.size()
        line = f"{name}\t{file}\n".encode("utf-8", "replace")
        if is_name(name) and 4 + size + len(line) <= MOST_LEARNED:
            self.noted[4 + size : 4 + size + len(line)] = line
            self.noted[:4] = (size + len(line)).to_bytes(4, "little")

    def save(self, *more):
        """Adds what was noted, and these lines. False: they cannot be written, and are not learned."""
        size = self.size()
        if size == self.saved and not more:
            return True  # a restart does not wait for a file system
        self.saved = size
        noted = self.noted[4 : 4 + size].decode("utf-8", "replace").splitlines()
        before = self.lines()
        lines = [*dict.fromkeys([*more, *before, *noted])]
        if lines == before:
            return True
        part = f"{self.path}.{os.uname().nodename}.{os.getpid()}"  # hosts may share the folder
        try:
            os.makedirs(os.path.dirname(self.path), 0o700, exist_ok=True)
            fd = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600)
            with os.fdopen(fd, "wb") as file:
                file.write("".join(f"{line}\n" for line in lines).encode("utf-8", "replace")[:MOST_LEARNED])
            os.rename(part, self.path)
            return True
        except OSError:
            return False


class Learner:
    """A finder that finds nothing, and notes the installed modules that are imported. Of a process, not of its forks."""

    def __init__(self, learned):
        self.learned = learned
        self.own_pid = os.getpid()
        self.last = ""

    def find_spec(self, name, path=None, target=None):
        if os.getpid() == self.own_pid:
            self.settle()
            self.last = name
        return None

    def settle(self):
        """What was looked for last is imported by now, or was only looked for."""
        name, self.last = self.last, ""
        file = getattr(getattr(sys.modules.get(name), "__spec__", None), "origin", None)
        try:
            if isinstance(file, str) and file.startswith("/") and is_installed(name, file):
                self.learned.note(name, file)
        except OSError:
            pass  # a folder that nobody may list, or an archive


def is_name(text):
    return text.rpartition(".")[2] != "__main__" and all(part.isidentifier() for part in text.split("."))


def is_installed(name, file):
    """In the standard library, or beside the descriptions of packages; any other module is the user's, who may change it."""
    folder = file
    for _ in range(name.count(".") + (2 if file.endswith("/__init__.py") else 1)):
        folder = os.path.dirname(folder)
    if folder not in IS_OF_PACKAGES:
        IS_OF_PACKAGES[folder] = any(entry.endswith(".dist-info") for entry in os.listdir(folder))
    return IS_OF_PACKAGES[folder]


def answer(channel, kind, text=""):
    channel.send((kind + text).encode("utf-8", "replace")[:500])


def receive(channel, learned=None):
    """The fields of the next request, and its descriptors. Without a launcher this process ends."""
    import socket

    byte, fds, _, _ = socket.recv_fds(channel, 1, 8)
    if learned:
        learned.save()
    if not byte:
        os._exit(0)
    with open(fds[0], "rb") as request:
        request.seek(0)
        return request.read().split(b"\0")[:-1], fds[1:]


def leave_archive(pythonpath):
    """Makes sys.path and the environment what they are without this file."""
    os.set_inheritable(CHANNEL, False)
    os.close(4)
    sys.path.remove(ARCHIVE)
    sys.path_importer_cache.pop(ARCHIVE, None)
    del os.environ["PYTHONPATH"]
    if pythonpath:
        os.environb[b"PYTHONPATH"] = pythonpath


def import_own_sitecustomize():
    """That of this Python, if it has one."""
    del sys.modules["sitecustomize"]
    try:
        import sitecustomize  # noqa: F401
    except ImportError as error:
        if error.name != "sitecustomize":
            raise


def list_of(folder, argv):
    """Of this program in this environment of this Python."""
    import zlib

    program = sys.argv[0]
    if program not in ("-c", "-m"):
        program = os.path.realpath(program)
    else:
        at = next((i for i, word in enumerate(argv) if word.startswith(program)), None)  # also '-mNAME'
        words = argv if at is None else argv[at : at + (2 if argv[at] == program else 1)]
        program = "\0".join((*words, os.getcwd()))
    key = "\0".join((sys.prefix, sys.version, program)).encode("utf-8", "replace")
    return Learned(f"{folder}/{zlib.crc32(key):08x}")


def import_all(names, learned, note):
    known = open_files()
    try:
        import_own_sitecustomize()
    except Exception as error:
        raise Unfit(f"its 'sitecustomize' fails: {type(error).__name__}: {error}") from error
    check_fitness(known, "its 'sitecustomize'")
    import_modules(names, learned, known, note)
    note.close()


def import_learned(learned, known, note):
    """Those that are found where they were, one by one."""
    import importlib.util

    for name, file in learned.modules():
        parent = name.rpartition(".")[0]
        if name in sys.modules or (parent and parent not in sys.modules):
            continue
        note.write(name, learned.path)
        try:
            spec = importlib.util.find_spec(name)
        except (ImportError, AttributeError, ValueError):
            continue  # its package is another one now
        if spec is None or spec.origin != file:
            continue
        try:
            import_module(name, known)
        except Unfit as error:
            is_left_out = learned.save(f"!{name}")
            raise Unfit(f"{error}; the next run leaves '{name}' out" if is_left_out else str(error)) from error


def changes_since(before):
    """The variables that the imports have set, and None for those that they have deleted."""
    now = os.environb.copy()
    changed = {name: value for name, value in now.items() if before.get(name) != value}
    return {**changed, **dict.fromkeys(before.keys() - now.keys())}


def import_module(name, known):
    import importlib

    own_pid = os.getpid()
    try:
        importlib.import_module(name)
    except BaseException as error:
        lines = str(error).splitlines()
        text = type(error).__name__ + (f": {lines[0]}" if lines else "")
        raise Unfit(f"'{name}' cannot be imported: {text}") from error
    finally:
        if os.getpid() != own_pid:
            os._exit(0)  # a copy of this process, which the module has made
    check_fitness(known, f"the import of '{name}'")


def import_modules(names, learned, known, note):
    """As the program itself would do it."""
    program = sys.argv[0]
    folder = os.getcwd() if program in ("-c", "-m") else os.path.dirname(os.path.realpath(program))
    first = [] if getattr(sys.flags, "safe_path", False) else [folder]
    sys.path[:0] = first
    for name in names:
        note.write(name)
        import_module(name, known)
    if learned:
        import_learned(learned, known, note)
    for entry in first:
        if entry in sys.path:
            sys.path.remove(entry)


def flush():
    """Every fork would write what is left in a buffer."""
    import ctypes

    for stream in (sys.stdout, sys.stderr):
        if stream is not None and not getattr(stream, "closed", False):  # it may be of any class
            stream.flush()
    ctypes.CDLL(None).fflush(None)


def printed_by(function):
    """Calls it. Returns what it prints on stdout and on stderr."""
    kept = [os.memfd_create(name) for name in ("stdout", "stderr")]
    pipe = os.dup(1)
    for target, fd in enumerate(kept, 1):
        os.dup2(fd, target)
    function()
    flush()
    texts = []
    for target, fd in enumerate(kept, 1):
        os.dup2(pipe, target)
        os.lseek(fd, 0, os.SEEK_SET)
        texts.append(os.read(fd, MOST_OUTPUT))
        os.close(fd)
    os.close(pipe)
    return texts


def open_files():
    """The numbers of its descriptors."""
    folder = "/proc/self/fd"
    return {number for number in os.listdir(folder) if os.path.lexists(f"{folder}/{number}")}  # not that of the list itself


def fork_for_nothing():
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Python 3.12 warns of threads
        copy = os.fork()
    if copy == 0:
        os._exit(0)
    os.waitpid(copy, 0)


def why_unfit(known, files):
    """A fork has none of the threads and children, and shares what the descriptors have, but for those that are known:
    ranks would hang or fail. Some libraries end their threads before a fork, and start them again when they are needed."""
    tasks = "/proc/self/task"
    if len(os.listdir(tasks)) > 1:
        fork_for_nothing()
        files = open_files()
    threads = len(os.listdir(tasks)) - 1
    if threads > 0:
        return f"has left {threads} thread{'s' if threads > 1 else ''} running"
    left = sorted(files - known, key=int)
    if left:
        return f"has left '{os.readlink(f'/proc/self/fd/{left[0]}')}' open"
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return ""
    return "has left a process"


def check_fitness(known, culprit):
    """What goes by itself within a moment is no reason."""
    files = open_files()
    if not known <= files:
        raise Unfit(f"{culprit} has closed descriptors that were open")
    deadline = time.monotonic() + PATIENCE_S
    while reason := why_unfit(known, files):
        if time.monotonic() > deadline:
            raise Unfit(f"{culprit} {reason}")
        gc.collect()  # what is left may be garbage
        time.sleep(0.02)
        files = open_files()


def nearly_full_memory():
    """Where it begins and ends, mapping by mapping, in bytes."""
    with open("/proc/self/smaps", "rb") as file:
        for words in map(bytes.split, file):
            if not words[0].endswith(b":"):
                begin, end = (int(address, 16) for address in words[0].split(b"-"))
            elif words[0] == b"Anonymous:" and int(words[1]) * 1024 > (end - begin) * 3 // 4:
                yield begin, end


def merge_pages():
    """Makes large pages of the memory that is nearly full, for a fork copies an entry of each page. Before Linux 6.1, and
    where memory is in pieces, the small pages stay."""
    import ctypes

    madvise, collapse = ctypes.CDLL(None).madvise, 25
    try:
        with open("/sys/kernel/mm/transparent_hugepage/hpage_pmd_size") as file:
            large = int(file.read())
        for begin, end in list(nearly_full_memory()):
            begin, end = -(-begin // large) * large, end // large * large
            if begin < end:
                madvise(ctypes.c_void_p(begin), ctypes.c_size_t(end - begin), collapse)
    except (OSError, ValueError, IndexError):
        pass  # a kernel without one of the files


def enter_cgroup(folder):
    """Where that is not allowed, the rank stays in the launcher's, as without a fork server."""
    try:
        with open("cgroup.procs", "wb", 0, opener=lambda path, flags: os.open(path, flags, dir_fd=folder)) as file:
            file.write(b"0")
    except OSError:
        pass


def set_up_rank(fields, fds, changes):
    """Session, CPUs, descriptors, environment and arguments of a rank. The imports have made `changes` to variables."""
    flags, cpus, count = fields[0], fields[1].decode(), int(fields[2])
    words, environment = fields[3 : 3 + count], fields[3 + count :]
    os.setsid()
    if cpus:
        os.sched_setaffinity(0, map(int, cpus.split(",")))
    for target in range(3):
        os.dup2(fds[target], target)
    os.close(CHANNEL)
    if b"x" in flags:
        os.dup2(fds[3], CHANNEL)
    for fd in fds:
        os.close(fd)
    os.environb.clear()
    os.environb.update(entry.partition(b"=")[::2] for entry in environment)
    for name, value in changes.items():
        if value is None:
            os.environb.pop(name, None)
        else:
            os.environb[name] = value
    own = len(sys.argv) - 1  # arguments of the program, which may hold the local rank
    for shown in (sys.argv, getattr(sys, "orig_argv", [])):
        if own > 0:
            shown[-own:] = map(os.fsdecode, words[-own:])


def tie_to(launcher):
    """The launcher is the parent now: its death ends the rank, and its helpers may look at the rank (spawn.h)."""
    import ctypes

    set_death_signal, set_tracer, kill = 1, 0x59616D61, 9
    prctl = ctypes.CDLL(None).prctl
    prctl(set_death_signal, ctypes.c_ulong(kill))
    prctl(set_tracer, ctypes.c_ulong(launcher))
    if os.getppid() != launcher:
        os._exit(127)


def begin_program(imported):
    """What each process has of its own after its imports: the buffering that fits its descriptors, the lines that the
    imports print, and seeds from the system. os.fork() has given 'random' one."""
    import atexit

    stdout = sys.__stdout__
    if stdout is not None and not stdout.closed and not stdout.write_through:
        stdout.reconfigure(line_buffering=os.isatty(1))
    for target, text in enumerate(imported.output, 1):
        try:
            while text:
                text = text[os.write(target, text) :]
        except OSError:
            pass  # a closed pipe, a full disk: the program meets it at its own next line
    numpy_random, torch = map(sys.modules.get, ("numpy.random", "torch"))
    if numpy_random is not None:
        numpy_random.seed()
    if hasattr(torch, "default_generator"):
        torch.default_generator.seed()
    if imported.learned and os.environ.get("LOCAL_RANK") == "0":
        learner = Learner(imported.learned)
        sys.meta_path.insert(0, learner)
        atexit.register(learner.settle)


def read_name():
    with open(NAME_FILE) as file:
        return file.read()


def write_name(name):
    with open(NAME_FILE, "w") as file:
        file.write(name.strip())


def run_rank(index, requests, up, go, launcher, imported):
    """Returns when the launcher watches this process."""
    os.close(up[0])
    for fd in (fd for other, (_, fds) in enumerate(requests) if other != index for fd in fds):
        os.close(fd)
    set_up_rank(*requests[index], imported.changes)
    os.write(up[1], b"%d %d\n" % (index, os.getpid()))
    os.close(up[1])
    if os.read(go, 1) != GO:
        os._exit(127)  # the launcher does not wait for this rank any more
    os.close(go)
    tie_to(launcher)
    begin_program(imported)


def fork_ranks(requests, go, launcher, imported):
    """Returns in a rank with None, and in the server with all pids.

    The process between the two ends at once: then the launcher, a subreaper, becomes their parent."""
    up = os.pipe()
    between = os.fork()
    if between == 0:
        try:
            if b"c" in requests[0][0][0]:
                enter_cgroup(requests[0][1][-1])
            for index in range(len(requests)):
                if os.fork() == 0:
                    return run_rank(index, requests, up, go, launcher, imported)
            os._exit(0)
        except BaseException:
            os._exit(127)
    for fd in (up[1], go, *(fd for _, fds in requests for fd in fds)):
        os.close(fd)
    os.waitpid(between, 0)  # before, the launcher cannot wait for the ranks
    with open(up[0], "rb") as pipe:
        pids = dict(line.split() for line in pipe)
    return [pids[b"%d" % index].decode() for index in range(len(requests))]


def receive_ranks(channel, learned):
    """The requests for ranks that are forked together, of which all but the last say that more follow, and the pipe from
    which each reads before it begins."""
    requests = [receive(channel, learned)]
    while b"m" in requests[-1][0][0]:
        requests.append(receive(channel))
    return requests, requests[0][1].pop()


def serve(channel, launcher, imported):
    """Returns in each rank."""
    while pids := fork_ranks(*receive_ranks(channel, imported.learned), launcher, imported):
        answer(channel, "P", " ".join(pids))
    channel.detach()


def main():
    """Returns in each rank. lrun starts this twice: first with a program that does nothing, for only a Python that is
    seen to import this file may be given the user's program."""
    import atexit
    import socket

    stage = os.environ.pop(STAGE)
    channel = socket.socket(fileno=CHANNEL)
    try:
        answer(channel, "H")
        (modules, folder, launcher, pythonpath, program, *argv), (shared,) = receive(channel)
        launcher = int(launcher)
        if os.getppid() != launcher:
            raise Unfit("this Python is started by another program")
        if stage == "probe":
            os.close(shared)
            os.execve(program, argv, {**os.environ, STAGE: "serve"})
        leave_archive(pythonpath)
        before = os.environb.copy()
        names = modules.decode().split(",")
        learned = list_of(os.fsdecode(folder), [os.fsdecode(word) for word in argv]) if "auto" in names else None
        check_fitness({"0", "1", "2", str(CHANNEL), str(shared)}, "the start of this Python")
        note = Note(shared)
        output = printed_by(lambda: import_all([name for name in names if name != "auto"], learned, note))
        changes = changes_since(before)
        own_name = read_name()
        write_name("fork-server")
        gc.collect()
        atexit.register(gc.unfreeze)  # else a rank would not finalise what its program has made, such as open files
        gc.freeze()
        merge_pages()
        answer(channel, "R", learned.promise() if learned else "")
    except BaseException as error:
        try:
            answer(channel, "U", str(error) or type(error).__name__)
        finally:
            os._exit(1)  # else this process would go on with the program
    try:
        serve(channel, launcher, Imported(output, changes, learned))
        write_name(own_name)
    except BaseException:
        os._exit(1)  # the launcher sees the end of the socket


__loader__ = __spec__ = None  # modules that print their stack would look for this source in the archive
if STAGE in os.environ:
    main()
if "sitecustomize" not in sys.modules:
    raise ImportError("this Python has none of its own", name="sitecustomize")
