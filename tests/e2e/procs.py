"""Processes and clocks of the end-to-end tests.

Invariants
  - A process dies with the test's own process, even when that one is killed (PR_SET_PDEATHSIG).
  - Nothing is waited for by a fixed sleep: until() polls a condition and says what it waited for.
"""

import ctypes
import glob
import itertools
import mmap
import os
import random
import re
import signal
import socket
import subprocess
import time

CRASH = re.compile(r"(Address|Leak|Thread)Sanitizer|runtime error:|Assertion .* failed")
PR_SET_PDEATHSIG = 1
LIBC = ctypes.CDLL(None)


def until(what, condition, timeout=10.0, step=0.005):
    """Polls until the condition is true, and returns what it came to."""
    end = time.monotonic() + timeout
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > end:
            raise AssertionError("not within %g s: %s" % (timeout, what))
        time.sleep(step)


FIRST, LAST = 15000, 31000  # ports, below those that the kernel gives to clients
GIVEN = mmap.mmap(-1, LAST + 1)  # 1: that port was, in this process or one that was forked from it


def free_port():
    """A TCP port that no client is given by the kernel; never the same twice, also by tests beside
    each other, of which one may have been given it and not listen yet."""
    for _ in range(200):
        port = random.choice([p for p in range(FIRST, LAST + 1) if not GIVEN[p]])
        GIVEN[port] = 1
        with socket.socket() as s:
            s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                s.bind(("127.0.0.1", port))
                return port
            except OSError:
                continue
    raise AssertionError("no free port from %d to %d" % (FIRST, LAST))


def die_with_parent():
    LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


def clean_env(extra=None):
    env = {k: v for k, v in os.environ.items()
           if not k.startswith(("SIDFLAKE_", "FAKETIME", "LD_PRELOAD", "NOTIFY_", "JOURNAL_"))}
    # libfaketime may come before the sanitizer's library, and what that one keeps of freed memory
    # must not look like growth.
    env.setdefault("ASAN_OPTIONS", "verify_asan_link_order=0:quarantine_size_mb=8")
    env.update(extra or {})
    return env


class Clock:
    """A wall clock that can be set for the processes which were started with it (libfaketime). The
    monotonic one stays true, as on a real machine."""

    def __init__(self, case, name="clock"):
        found = glob.glob("/usr/lib/*/faketime/libfaketimeMT.so.1")
        assert found, "expected libfaketimeMT.so.1 (Debian's package libfaketime), found none"
        self.path = case.path(name)
        self.env = {"LD_PRELOAD": found[0], "FAKETIME_TIMESTAMP_FILE": self.path,
                    "FAKETIME_NO_CACHE": "1", "FAKETIME_DONT_FAKE_MONOTONIC": "1",
                    "DONT_FAKE_MONOTONIC": "1", "FAKETIME_FORCE_MONOTONIC_FIX": "0",
                    "NO_FAKE_STAT": "1",
                    # It waits on condition variables behind ThreadSanitizer's back, which then
                    # sees races where there are none.
                    "TSAN_OPTIONS": "report_bugs=0"}
        self.set(0)

    def set(self, offset_s):
        """Seconds ahead of the true time; negative: behind."""
        self.offset_s = offset_s
        with open(self.path + ".new", "w") as f:
            f.write("%+.6f" % offset_s)
        os.rename(self.path + ".new", self.path)

    def step(self, seconds):
        self.set(self.offset_s + seconds)

    def ms(self):
        return (time.time() + self.offset_s) * 1000


class Proc:
    """A process whose output goes to a file; a second start continues the same file."""

    def __init__(self, case, name, argv, env=None, clock=None):
        self.case, self.name, self.argv, self.clock = case, name, argv, clock
        self.env = dict(env or {})
        self.log_path = case.path(name + ".log")
        self.popen = None
        self.ended_by_us = False
        case.procs.append(self)

    def start(self, extra_args=()):
        env = clean_env(self.env)
        env.update(self.clock_env())
        self.ended_by_us = False
        with open(self.log_path, "ab") as log:
            self.popen = subprocess.Popen(
                self.argv + list(extra_args), env=env, stdin=subprocess.DEVNULL, stdout=log,
                stderr=log, cwd=self.case.dir, preexec_fn=die_with_parent)
        return self

    def clock_env(self):
        return self.clock.env if self.clock else {}

    @property
    def pid(self):
        return self.popen.pid

    def running(self):
        return self.popen is not None and self.popen.poll() is None

    def send(self, signo):
        self.ended_by_us = True
        self.popen.send_signal(signo)

    def wait(self, timeout=10):
        try:
            return self.popen.wait(timeout)
        except subprocess.TimeoutExpired:
            raise AssertionError("%s: expected it to end within %g s" % (self.name, timeout))

    def kill(self):
        if self.running():
            self.send(signal.SIGKILL)
            self.wait()

    def stop(self, timeout=15):
        """SIGTERM; returns the exit status."""
        self.send(signal.SIGTERM)
        return self.wait(timeout)

    def pause(self):
        self.popen.send_signal(signal.SIGSTOP)
        until(self.name + " stopped", lambda: self.state() == "T")

    def resume(self):
        self.popen.send_signal(signal.SIGCONT)

    def state(self):
        with open("/proc/%d/stat" % self.pid) as f:
            return f.read().rsplit(")", 1)[1].split()[0]

    def peak_kib(self):
        """The most that rss_kib ever was."""
        with open("/proc/%d/status" % self.popen.pid) as f:
            return int(re.search(r"VmHWM:\s+(\d+)", f.read()).group(1))

    def rss_kib(self):
        with open("/proc/%d/status" % self.pid) as f:
            return int(re.search(r"VmRSS:\s+(\d+)", f.read()).group(1))

    def log(self):
        with open(self.log_path, errors="replace") as f:
            return f.read()

    def wait_log(self, pattern, timeout=10, after=0):
        """Waits for a match in the log, from character `after` on."""
        return until("%s logs /%s/" % (self.name, pattern),
                     lambda: re.search(pattern, self.log()[after:]), timeout)

    def crashed(self):
        """What went wrong in a way that no test may overlook, or None."""
        if self.popen is None:
            return None
        found = CRASH.search(self.log())
        if found:
            return "%s reports: %s" % (self.name, found.group(0))
        status = self.popen.poll()
        if status is not None and status < 0 and not self.ended_by_us:
            return "%s was ended by signal %d" % (self.name, -status)
        return None


class Manager:
    """A service manager's socket, as systemd's NOTIFY_SOCKET is."""

    def __init__(self, case):
        self.path = case.path("notify")
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(self.path)
        self.heard = []

    def listen(self, seconds=0.0):
        self.socket.settimeout(seconds or 0.001)
        try:
            while True:
                self.heard.append(self.socket.recv(4096).decode())
        except OSError:
            return self.heard

    def wait(self, what, timeout=10):
        until("the service manager hears " + what,
              lambda: [m for m in self.listen() if m.startswith(what)], timeout)


class Answers:
    """A server that answers each connection with the next of some texts, at last always with the last;
    with a pause behind each character, if so asked."""

    def __init__(self, *texts, pause=0):
        self.texts, self.pause = texts, pause

    def __enter__(self):
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.pid = os.fork()
        if self.pid == 0:
            for text in itertools.chain(self.texts, itertools.repeat(self.texts[-1])):
                c, _ = self.listener.accept()
                try:
                    c.recv(65536)
                    for part in text if self.pause else [text]:
                        c.sendall(part.encode())
                        time.sleep(self.pause)
                except OSError:
                    pass
                c.close()
        return "http://127.0.0.1:%d" % self.listener.getsockname()[1]

    def __exit__(self, *_):
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        self.listener.close()
