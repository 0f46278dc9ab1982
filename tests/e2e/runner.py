"""Finds the tests, runs each in a process of its own, and reports in TAP.

What a test builds or installs, it does within untimed(): how long that takes, on a machine that is busy
with more, says nothing of what is tested.

A test is a function of test_*.py marked @test("name"); it gets a harness.Case and fails by any
exception but Skip. Its process leads a process group, so that whatever it leaves behind can be
ended. Tests marked beside=True, one after the other, run side by side.
"""

import contextlib
import fcntl
import glob
import importlib
import itertools
import mmap
import os
import re
import selectors
import shutil
import signal
import struct
import subprocess
import tempfile
import time
import traceback

TIMEOUT_S = 60
GRACE_S = 20  # for a test that cannot even fail by itself
BUILD_S = 900  # for a compiler or npm, whatever else the machine does
WIDTH = 2 * (os.cpu_count() or 1)  # tests side by side: they wait, too
NODE_DIR = os.path.dirname(os.path.abspath(__file__))


class Skip(Exception):
    """Raised by a test that has nothing to look at here, with the reason."""


class Test:
    def __init__(self, name, function, timeout, beside):
        self.name, self.function, self.timeout, self.beside = name, function, timeout, beside


REGISTERED = []
SKIPPED = "skipped: "


def test(name, timeout=TIMEOUT_S, beside=False):
    """Marks a test. timeout: seconds; it then fails with a traceback."""
    def register(function):
        topic = function.__module__.split("_", 1)[1]
        REGISTERED.append(Test("%s: %s" % (topic, name), function, timeout, beside))
        return function
    return register


class Clock:
    """Of a test: how long it did not count, known to the runner and to the test's process."""

    def __init__(self):
        self.shared = mmap.mmap(-1, 8)

    def untimed_s(self):
        return struct.unpack("d", self.shared[:])[0]

    def add(self, seconds):
        self.shared[:] = struct.pack("d", self.untimed_s() + seconds)


CLOCK = Clock()  # a test's process has its own


@contextlib.contextmanager
def untimed(limit=BUILD_S):
    """What is within does not count for the test's timeout; limit: seconds that it may take."""
    left = signal.alarm(limit)
    before = time.monotonic()
    CLOCK.add(limit)
    try:
        yield
    finally:
        CLOCK.add(time.monotonic() - before - limit)
        signal.alarm(left)


def discover(directory, substrings):
    for path in sorted(glob.glob(os.path.join(directory, "test_*.py"))):
        importlib.import_module(os.path.basename(path)[:-3])
    names = [t.name for t in REGISTERED]
    assert len(set(names)) == len(names), "expected distinct names of tests"
    return [t for t in REGISTERED if not substrings or any(s in t.name for s in substrings)]


def need_node_modules(directory=NODE_DIR, then=()):
    """Installs what package-lock.json pins, where that has not been done, and runs a command there.
    Called by the tests that need it, so that the others run without a registry."""
    lock = os.path.join(directory, "package-lock.json")
    done = os.path.join(directory, "node_modules", ".package-lock.json")
    with open(lock) as alone, untimed():
        fcntl.flock(alone, fcntl.LOCK_EX)
        if not os.path.exists(done) or os.path.getmtime(done) < os.path.getmtime(lock):
            for argv in filter(None, (["npm", "ci"], list(then))):
                run_in(directory, argv)
            os.utime(done)


def run_in(directory, argv):
    r = subprocess.run(argv, cwd=directory, stdin=subprocess.DEVNULL, text=True,
                       stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    assert r.returncode == 0, "%s: expected exit status 0, found %d\n%s" % (
        " ".join(argv), r.returncode, r.stdout)


def on_alarm(*_):
    raise TimeoutError("the test took too long")


def run_in_child(test, directory, out):
    """Runs one test, its diagnostics, or SKIPPED and why, to out; returns whether it passed."""
    import harness
    signal.signal(signal.SIGALRM, on_alarm)
    signal.alarm(test.timeout)
    case = harness.Case(directory)
    try:
        test.function(case)
        crashes = case.crashes()
        assert not crashes, "; ".join(crashes)
        return True
    except Skip as e:
        out.write(SKIPPED + str(e))
        return True
    except BaseException:
        signal.alarm(0)
        out.write(traceback.format_exc())
        for line in case.diagnostics():
            out.write(line + "\n")
        return False
    finally:
        signal.alarm(0)
        case.close()


def child_main(test, directory, fd, clock):
    global CLOCK
    import harness
    CLOCK = clock
    os.setpgid(0, 0)
    harness.die_with_parent()
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    passed = False
    try:
        with os.fdopen(fd, "w") as out:
            passed = run_in_child(test, directory, out)
    finally:
        os._exit(0 if passed else 1)


def end_group(pid):
    try:
        os.killpg(pid, signal.SIGKILL)
    except ProcessLookupError:
        pass


class Run:
    """A test that runs. finish() gives what came of it, and leaves nothing behind."""

    def __init__(self, test, number):
        self.test, self.number = test, number
        self.started = time.monotonic()
        self.clock = Clock()
        self.directory = tempfile.mkdtemp(prefix="sf-", dir="/tmp")
        self.output = b""
        self.fd, w = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            os.close(self.fd)
            child_main(test, self.directory, w, self.clock)
        os.close(w)

    def deadline(self):
        return self.started + self.clock.untimed_s() + self.test.timeout + GRACE_S

    def read(self):
        """Whether there is more to come."""
        data = os.read(self.fd, 1 << 16)
        self.output += data
        return bool(data)

    def finish(self, hung=False):
        """(passed, text)"""
        os.close(self.fd)
        if hung:
            end_group(self.pid)
        status = os.waitpid(self.pid, 0)[1]
        end_group(self.pid)
        clean_up(self.directory)
        self.seconds = time.monotonic() - self.started
        text = self.output.decode(errors="replace")
        if hung:
            return False, "the test's process hung and was killed"
        if status != 0 and not text:
            text = "the test's process ended with wait status %d" % status
        return status == 0, text


def run_beside(tests, width):
    """Runs up to width tests at a time; yields (run, passed, text) as they end."""
    waiting, running = list(tests), selectors.DefaultSelector()
    try:
        while waiting or running.get_map():
            while waiting and len(running.get_map()) < width:
                run = Run(*waiting.pop(0))
                running.register(run.fd, selectors.EVENT_READ, run)
            ready = {key.data for key, _ in running.select(1)}
            now = time.monotonic()
            for run in [key.data for key in running.get_map().values()]:
                ended, hung = run in ready and not run.read(), now > run.deadline()
                if ended or hung:
                    running.unregister(run.fd)
                    yield (run, *run.finish(hung and not ended))
    finally:
        for key in list(running.get_map().values()):
            key.data.finish(hung=True)


def in_groups(tests):
    """(tests with their numbers, how many at a time)"""
    numbered = [(t, n) for n, t in enumerate(tests, 1)]
    for beside, group in itertools.groupby(numbered, lambda row: row[0].beside):
        yield list(group), WIDTH if beside else 1


def clean_up(directory):
    """Removes a test's files, and what libfaketime leaves of processes that were killed."""
    shutil.rmtree(directory, ignore_errors=True)
    for path in glob.glob("/dev/shm/*faketime_*"):
        pid = re.search(r"_(\d+)$", path)
        if pid and not os.path.exists("/proc/" + pid.group(1)) and os.access(path, os.W_OK):
            os.unlink(path)


def on_term(*_):
    raise KeyboardInterrupt


def report(run, passed, text, verbose):
    skipped = passed and text.startswith(SKIPPED)
    note = " # SKIP " + text[len(SKIPPED):] if skipped else ""
    note += " # %.1f s" % run.seconds if verbose else ""
    print("%s %d - %s%s" % ("ok" if passed else "not ok", run.number, run.test.name, note),
          flush=True)
    for line in [] if skipped else text.splitlines():
        print("# " + line, flush=True)


def run(tests, verbose):
    signal.signal(signal.SIGTERM, on_term)
    print("1..%d" % len(tests), flush=True)
    failed = []
    try:
        for group, width in in_groups(tests):
            for result in run_beside(group, width):
                report(*result, verbose)
                if not result[1]:
                    failed.append(result[0].test.name)
    except KeyboardInterrupt:
        print("Bail out! interrupted", flush=True)
        return 130
    print("# %d passed, %d failed" % (len(tests) - len(failed), len(failed)), flush=True)
    for name in failed:
        print("# failed: " + name, flush=True)
    return 1 if failed else 0
