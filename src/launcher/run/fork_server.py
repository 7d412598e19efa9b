"""Imports modules once and forks a rank for each start: the fork server of --preload.

lrun runs it as 'sitecustomize', which Python imports before its program. In the server this import does not return. In
a rank it returns, and Python goes on as in any other process: it runs the program of its command line as __main__, with
no frame of this file below it, and ends as it always does.

Descriptor 3 is a socket to the launcher, 4 the archive with this file. A request is one byte with descriptors; the
first is a memory file with fields that end with NUL. fork_server_answer.h has the answers.
"""

import os
import sys

CHANNEL = 3
ARCHIVE = "/proc/self/fd/4"
STAGE = "LRUN_FORK_SERVER"
MOST_OUTPUT = 1 << 20  # bytes that imports print
GO = b"g"
NAME_FILE = "/proc/self/comm"  # as top shows it


class Imported:
    """What the imports have left for each rank: the lines that they printed, and changes of variables."""

    def __init__(self, output, changes):
        self.output = output
        self.changes = changes


class Unfit(Exception):
    """The reason why no rank can be forked from here."""


def answer(channel, kind, text=""):
    channel.send((kind + text).encode("utf-8", "replace")[:500])


def receive(channel):
    """The fields of the next request, and its descriptors. Without a launcher this process ends."""
    import socket

    byte, fds, _, _ = socket.recv_fds(channel, 1, 8)
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


def import_all(names):
    try:
        import_own_sitecustomize()
    except Exception as error:
        raise Unfit(f"its 'sitecustomize' fails: {type(error).__name__}: {error}") from error
    import_modules(names)


def changes_since(before):
    """The variables that the imports have set, and None for those that they have deleted."""
    now = os.environb.copy()
    changed = {name: value for name, value in now.items() if before.get(name) != value}
    return {**changed, **dict.fromkeys(before.keys() - now.keys())}


def import_modules(names):
    """As the program itself would do it."""
    import importlib

    program = sys.argv[0]
    folder = os.getcwd() if program in ("-c", "-m") else os.path.dirname(os.path.realpath(program))
    own_pid = os.getpid()
    first = [] if getattr(sys.flags, "safe_path", False) else [folder]
    sys.path[:0] = first
    for name in names:
        try:
            importlib.import_module(name)
        except BaseException as error:
            lines = str(error).splitlines()
            text = type(error).__name__ + (f": {lines[0]}" if lines else "")
            raise Unfit(f"'{name}' cannot be imported: {text}") from error
        finally:
            if os.getpid() != own_pid:
                os._exit(0)  # a copy of this process, which the module has made
    for entry in first:
        if entry in sys.path:
            sys.path.remove(entry)


def flush():
    """Every fork would write what is left in a buffer."""
    import ctypes

    for stream in (sys.stdout, sys.stderr):
        if stream is not None:
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


def check_fitness():
    """A fork has none of the threads and children, and shares what the descriptors have: ranks would hang or fail."""
    threads = len(os.listdir("/proc/self/task")) - 1
    if threads > 0:
        raise Unfit(f"its import has left {threads} thread{'s' if threads > 1 else ''} running")
    for number in sorted(map(int, os.listdir("/proc/self/fd"))):
        if number > CHANNEL and os.path.lexists(f"/proc/self/fd/{number}"):  # not that of the list itself
            raise Unfit(f"its import has left '{os.readlink(f'/proc/self/fd/{number}')}' open")
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return
    raise Unfit("its import has left a process")


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
        fd = os.open("cgroup.procs", os.O_WRONLY, dir_fd=folder)
    except OSError:
        return
    try:
        os.write(fd, b"0")
    except OSError:
        pass
    os.close(fd)


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
    for entry in environment:
        name, _, value = entry.partition(b"=")
        os.environb[name] = value
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


def begin_program(output):
    """What each process has of its own after its imports: the buffering that fits its descriptors, the lines that the
    imports print, and seeds from the system. os.fork() has given 'random' one."""
    stdout = sys.__stdout__
    if stdout is not None and not stdout.write_through:
        stdout.reconfigure(line_buffering=os.isatty(1))
    for target, text in enumerate(output, 1):
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


def read_name():
    with open(NAME_FILE) as file:
        return file.read()


def write_name(name):
    with open(NAME_FILE, "w") as file:
        file.write(name.strip())


def run_rank(fields, fds, up, go, launcher, imported):
    """Returns when the launcher knows this process."""
    os.close(up[0])
    os.close(go[1])
    set_up_rank(fields, fds, imported.changes)
    os.write(up[1], b"%d" % os.getpid())
    os.close(up[1])
    if os.read(go[0], 1) != GO:
        os._exit(127)  # the server was ended, and the launcher does not wait for this rank
    os.close(go[0])
    tie_to(launcher)
    begin_program(imported.output)


def fork_rank(fields, fds, launcher, imported):
    """Returns in the rank with None, and in the server with the rank's pid and the pipe that lets it go on.

    The process between the two ends at once: then the launcher, a subreaper, becomes the rank's parent."""
    up, go = os.pipe(), os.pipe()
    between = os.fork()
    if between == 0:
        try:
            if b"c" in fields[0]:
                enter_cgroup(fds[-1])
            if os.fork() != 0:
                os._exit(0)
            run_rank(fields, fds, up, go, launcher, imported)
        except BaseException:
            os._exit(127)
        return None
    for fd in (up[1], go[0], *fds):
        os.close(fd)
    os.waitpid(between, 0)  # before, the launcher cannot wait for the rank
    pid = os.read(up[0], 32)
    os.close(up[0])
    return pid.decode(), go[1]


def serve(channel, launcher, imported):
    """Returns in each rank."""
    while True:
        forked = fork_rank(*receive(channel), launcher, imported)
        if forked is None:
            channel.detach()
            return
        pid, go = forked
        answer(channel, "P", pid)
        os.write(go, GO)
        os.close(go)


def main():
    """Returns in each rank. lrun starts this twice: first with a program that does nothing, for only a Python that is
    seen to import this file may be given the user's program."""
    import atexit
    import gc
    import socket

    stage = os.environ.pop(STAGE)
    channel = socket.socket(fileno=CHANNEL)
    try:
        answer(channel, "H")
        (modules, launcher, pythonpath, program, *argv), _ = receive(channel)
        launcher = int(launcher)
        if os.getppid() != launcher:
            raise Unfit("this Python is started by another program")
        if stage == "probe":
            os.execve(program, argv, {**os.environ, STAGE: "serve"})
        leave_archive(pythonpath)
        before = os.environb.copy()
        output = printed_by(lambda: import_all(modules.decode().split(",")))
        changes = changes_since(before)
        check_fitness()
        own_name = read_name()
        write_name("fork-server")
        gc.collect()
        atexit.register(gc.unfreeze)  # else a rank would not finalise what its program has made, such as open files
        gc.freeze()
        merge_pages()
        answer(channel, "R")
    except BaseException as error:
        answer(channel, "U", str(error) or type(error).__name__)
        os._exit(1)
    try:
        serve(channel, launcher, Imported(output, changes))
        write_name(own_name)
    except BaseException:
        os._exit(1)  # the launcher sees the end of the socket


__loader__ = __spec__ = None  # modules that print their stack would look for this source in the archive
if STAGE in os.environ:
    main()
if "sitecustomize" not in sys.modules:
    raise ImportError("this Python has none of its own", name="sitecustomize")
