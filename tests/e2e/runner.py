"""Finds the tests, runs each in a process of its own, and reports in TAP.

A test is a function of test_*.py marked @test("name"); it gets a harness.Case and fails by any
exception. Its process leads a process group, so that whatever it leaves behind can be ended.
"""

import glob
import importlib
import os
import re
import shutil
import signal
import subprocess
import tempfile
import time
import traceback

TIMEOUT_S = 60
NODE_DIR = os.path.dirname(os.path.abspath(__file__))


class Test:
    def __init__(self, name, function, timeout):
        self.name, self.function, self.timeout = name, function, timeout


REGISTERED = []


def test(name, timeout=TIMEOUT_S):
    """Marks a test. timeout: seconds; it then fails with a traceback."""
    def register(function):
        topic = function.__module__.split("_", 1)[1]
        REGISTERED.append(Test("%s: %s" % (topic, name), function, timeout))
        return function
    return register


def discover(directory, substrings):
    for path in sorted(glob.glob(os.path.join(directory, "test_*.py"))):
        importlib.import_module(os.path.basename(path)[:-3])
    names = [t.name for t in REGISTERED]
    assert len(set(names)) == len(names), "expected distinct names of tests"
    return [t for t in REGISTERED if not substrings or any(s in t.name for s in substrings)]


def need_node_modules():
    """Installs what package-lock.json pins, where that has not been done. Called by the tests that
    need it, so that the others run without a registry."""
    lock = os.path.join(NODE_DIR, "package-lock.json")
    done = os.path.join(NODE_DIR, "node_modules", ".package-lock.json")
    if os.path.exists(done) and os.path.getmtime(done) >= os.path.getmtime(lock):
        return
    r = subprocess.run(["npm", "ci"], cwd=NODE_DIR, stdin=subprocess.DEVNULL, text=True,
                       stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=300)
    assert r.returncode == 0, "npm ci: expected exit status 0, found %d\n%s" % (
        r.returncode, r.stdout)
    os.utime(done)


def on_alarm(*_):
    raise TimeoutError("the test took too long")


def run_in_child(test, directory, out):
    """Runs one test, its diagnostics to out; returns whether it passed."""
    import harness
    signal.signal(signal.SIGALRM, on_alarm)
    signal.alarm(test.timeout)
    case = harness.Case(directory)
    try:
        test.function(case)
        crashes = case.crashes()
        assert not crashes, "; ".join(crashes)
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


def child_main(test, directory, fd):
    import harness
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


def run_one(test, directory):
    """(passed, diagnostics)"""
    r, w = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(r)
        child_main(test, directory, w)
    os.close(w)
    try:
        signal.alarm(test.timeout + 20)  # for a test that cannot even fail by itself
        with os.fdopen(r, errors="replace") as pipe:
            text = pipe.read()
        status = os.waitpid(pid, 0)[1]
    except TimeoutError:
        end_group(pid)
        os.waitpid(pid, 0)
        return False, "the test's process hung and was killed"
    except BaseException:
        end_group(pid)
        raise
    finally:
        signal.alarm(0)
    end_group(pid)
    if status != 0 and not text:
        text = "the test's process ended with wait status %d" % status
    return status == 0, text


def clean_up(directory):
    """Removes a test's files, and what libfaketime leaves of processes that were killed."""
    shutil.rmtree(directory, ignore_errors=True)
    for path in glob.glob("/dev/shm/*faketime_*"):
        pid = re.search(r"_(\d+)$", path)
        if pid and not os.path.exists("/proc/" + pid.group(1)) and os.access(path, os.W_OK):
            os.unlink(path)


def on_term(*_):
    raise KeyboardInterrupt


def run(tests, verbose):
    signal.signal(signal.SIGALRM, on_alarm)
    signal.signal(signal.SIGTERM, on_term)
    print("1..%d" % len(tests), flush=True)
    failed = []
    for number, t in enumerate(tests, 1):
        started = time.monotonic()
        directory = tempfile.mkdtemp(prefix="sf-", dir="/tmp")
        try:
            passed, text = run_one(t, directory)
        except KeyboardInterrupt:
            print("Bail out! interrupted", flush=True)
            return 130
        finally:
            clean_up(directory)
        took = " # %.1f s" % (time.monotonic() - started) if verbose else ""
        print("%s %d - %s%s" % ("ok" if passed else "not ok", number, t.name, took), flush=True)
        for line in text.splitlines():
            print("# " + line, flush=True)
        if not passed:
            failed.append(t.name)
    print("# %d passed, %d failed" % (len(tests) - len(failed), len(failed)), flush=True)
    for name in failed:
        print("# failed: " + name, flush=True)
    return 1 if failed else 0
