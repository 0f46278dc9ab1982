"""What every topology has: sidecars and the clients that hammer them, clocks, and a record of what
was done to them.

Invariants
  - Everything that a World starts dies with it, and all its files are below one directory.
  - Clocks are moved by clockshim.c alone. Slot 0 is the passing of time, for everybody in the same
    instant; slot 1 is never moved against it; each process that has a clock has a slot of its own.
  - A window is a time in which a sidecar cannot be blamed for giving no IDs: from the beginning of
    a fault that must stop it to its first readiness after that fault is healed.
"""

import collections
import ctypes
import json
import mmap
import os
import re
import signal
import subprocess
import sys
import time

import counting
import procs  # of tests/e2e
import wire
from procs import Proc, until

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.dirname(os.path.dirname(HERE))


BUILD = os.environ.get("SIDFLAKE_BUILD") or os.path.dirname(
    os.path.realpath(os.path.join(TOP, "build", "sidflake")))
BUILD = os.path.abspath(BUILD)
SIDFLAKE = os.path.join(BUILD, "sidflake")
SIDFLAKECTL = os.path.join(BUILD, "sidflakectl")
HAMMER = os.path.join(BUILD, "tests/chaos/hammer")
CHECKER = os.path.join(BUILD, "tests/chaos/checker")
SHIM = os.path.join(BUILD, "tests/chaos/clockshim.so")

# The shortest that a pool takes, so that faults bite within seconds.
HORIZON_S, FIRST_HORIZON_S, MATURE_AFTER_S, SKEW_S, GRACE_S = 60, 16, 21, 1, 1
POOL = ("--horizon", "%ds" % HORIZON_S, "--first-horizon", "%ds" % FIRST_HORIZON_S,
        "--mature-after", "%ds" % MATURE_AFTER_S, "--max-skew", "%ds" % SKEW_S,
        "--grace", "%ds" % GRACE_S)
RANGE = 9  # workerIds of a fresh pool: few, so that they change hands
FORGOTTEN_S = HORIZON_S + 2 * SKEW_S + GRACE_S + 1
RECEIPT_BYTES = 24
SLOTS = 32


class Clocks:
    """The offsets of all wall clocks, in seconds here."""

    def __init__(self, path):
        self.path = path
        with open(path, "wb") as f:
            f.write(bytes(8 * SLOTS))
        with open(path, "r+b") as f:
            self.map = mmap.mmap(f.fileno(), 8 * SLOTS)
        self.cell = (ctypes.c_int64 * SLOTS).from_buffer(self.map)
        self.used = 1

    def slot(self):
        self.used += 1
        assert self.used <= SLOTS, "expected at most %d clocks" % SLOTS
        return self.used - 1

    def env(self, slot):
        return {"LD_PRELOAD": SHIM, "CHAOS_CLOCK_FILE": self.path, "CHAOS_CLOCK_SLOT": str(slot)}

    def set(self, slot, seconds):
        self.cell[slot] = int(seconds * 1000000)

    def get(self, slot):
        return self.cell[slot] / 1000000

    def now(self):
        """What a clock that was never set would show."""
        return time.time() + self.get(0)


class Host:
    """Where a process runs: here, or in a network of its own (netns.py)."""

    address = "127.0.0.1"

    def wrap(self, argv):
        return argv


class Sidecar(Proc):
    def __init__(self, world, index, url, host, options=None, state=None):
        self.world, self.index, self.host = world, index, host
        name = "s%d" % index
        self.slot = world.clocks.slot()
        self.skew = world.skews[index % len(world.skews)]
        self.set_clock(0)
        self.mc, self.resp, self.http = (world.path(name + x) for x in (".m", ".r", ".h"))
        self.mc_port, self.resp_port = world.free_port(), world.free_port()
        self.state_dir = state or world.path(name + ".d")
        self.receipts = world.path(name + ".ids")
        self.options = {
            "listen": {"memcached": ["unix://" + self.mc, "tcp://127.0.0.1:%d" % self.mc_port],
                       "redis": ["unix://" + self.resp, "tcp://127.0.0.1:%d" % self.resp_port],
                       "http": ["unix://" + self.http]},
            "coordinator": {"url": url, "pool": world.pool_of(index), "timeout": "400ms"},
            "lease": {"renew_every": "1s"}, "workers": {"active": 1, "spare": 1},
            "state_dir": self.state_dir}
        if world.numbers:
            self.options["sequences"] = counting.OPTIONS
        self.options.update(options or {})
        self.conf = world.path(name + ".yaml")
        super().__init__(world, name, host.wrap([SIDFLAKE, "-c", self.conf]),
                         env=world.clocks.env(self.slot))
        self.hammer = Proc(world, name + "-hammer", [
            HAMMER, "--out", self.receipts, "--sidecar", str(index), "--resp", self.resp,
            "--memcached", self.mc, "--slow", str(world.slow)] + ([] if world.isolated else [
                "--resp-port", str(self.resp_port), "--memcached-port", str(self.mc_port)]))
        self.numbers = world.path(name + ".numbers")
        self.counter = Proc(world, name + "-counter", [
            sys.executable, counting.__file__, "--out", self.numbers, "--resp", self.resp,
            "--pause", "%g" % (0.002 * world.slow)])

    def start(self, extra_args=()):
        """Unless another fault has started it meanwhile."""
        if self.running():
            return self
        with open(self.conf, "w") as f:
            json.dump(self.options, f)  # JSON is YAML
        return super().start(extra_args)

    def start_clients(self):
        self.hammer.start()
        if self.world.numbers:
            self.counter.start()

    def stop_clients(self):
        for p in (self.hammer, self.counter):
            if p.running():
                p.stop()

    def page(self):
        return os.path.join(self.state_dir, "worker.page")

    def ready(self):
        """Whether it says that IDs can be had; quickly, since it may be stopped."""
        try:
            with wire.Stream(self.http, timeout=0.3) as s:
                s.send(b"GET /readyz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
                return b" 200 " in s.rest()[:20]
        except (OSError, wire.Closed):
            return False

    def gives_id(self):
        try:
            with wire.Resp(self.resp, timeout=2) as r:
                return isinstance(r.ask("GET", "id:chaos"), bytes)
        except (OSError, wire.Closed):
            return False

    def worker(self):
        """The workerId that it issues from, or None."""
        try:
            with wire.Resp(self.resp, timeout=1) as r:
                reply = r.ask("GET", "id:chaos")
        except (OSError, wire.Closed):
            return None
        return int(reply) >> 10 & 0x7fff if isinstance(reply, bytes) else None

    def set_clock(self, seconds):
        """Ahead of what it always shows; a sidecar's clock may be off by S for good."""
        self.world.clocks.set(self.slot, self.skew + seconds)

    def renew_life(self):
        """Killed without a trace, and back: it claims at once."""
        self.world.must_stop(self)
        self.kill()
        if os.path.exists(self.page()):
            os.unlink(self.page())
        self.start()


Window = collections.namedtuple("Window", "sidecar begin end")


class World:
    """One topology. A subclass gives: name, setup(), faults (a list), heal(), url(i), init(mode)."""

    name = "world"
    lane = 0  # 0..7, another one for each topology that runs at the same time
    skews = (0,)  # of the sidecars' clocks, in turn
    numbers = False  # clients count, too (counting.py)
    isolated = False  # sidecars are in networks of their own: TCP to them is not tried
    forgotten_s = FORGOTTEN_S  # after which every range and floor has passed
    hurry_s = (10, 20)  # that time passes for those who wait: while somebody is ready, or nobody
    pools = ("default",)
    next_range = RANGE  # first workerId that was never handed out
    spoil = None  # an option of printed commands, and another value of it

    def __init__(self, directory, rng, say, sidecars, slow, long, only):
        self.dir, self.rng, self.say = directory, rng, say
        self.nsidecars, self.slow, self.long, self.only = sidecars, slow, long, only
        self.procs, self.sidecars, self.clone = [], [], None
        self.clocks = Clocks(self.path("clocks"))
        self.steady = self.clocks.slot()  # slot 1
        self.began = time.time()
        self.log, self.counts, self.skipped = [], collections.Counter(), {}
        self.failures, self.windows, self.open = [], [], {}
        self.checked = {}  # path -> bytes
        self.ids = 0
        self.patience = 0
        self.waiting = []  # sidecars that could be ready and are not
        self.ports = set()
        self.mounts = []

    def path(self, name):
        return os.path.join(self.dir, name)

    def free_port(self):
        """A port stays this world's own while nothing listens on it, too: others have others."""
        port = procs.free_port()
        while port in self.ports or port % 8 != self.lane:
            port = procs.free_port()
        self.ports.add(port)
        return port

    # ---- the record ----------------------------------------------------------------------------

    def note(self, text):
        now = time.time()
        self.log.append("%8.3f  %s  %s" % (
            now - self.began, time.strftime("%H:%M:%S", time.gmtime(now)), text))
        with open(self.path("log"), "a") as f:
            f.write(self.log[-1] + "\n")

    def fail(self, text):
        self.note("FAILURE: " + text)
        self.failures.append(text)

    def must_stop(self, *sidecars, at_least=0):
        """A fault begins that stops these (default: all), not before `at_least` seconds are over
        for the last time."""
        now = time.time()
        for s in sidecars or self.sidecars:
            begin, until_s = self.open.get(s, (now, 0))
            self.open[s] = begin, max(until_s, now + at_least)

    def close_windows(self, ready):
        """Windows of these sidecars end, where enough time is over."""
        now = time.time()
        for s in [s for s, (_, least) in self.open.items() if s in ready and now >= least]:
            self.windows.append(Window(s.index, self.open.pop(s)[0], now))

    def look(self, suffering, coordinator):
        """Who is ready? suffering: sidecars with a fault of their own; coordinator: whether it has
        one."""
        able = [s for s in self.sidecars if s not in suffering and s.running()]
        ready = [s for s in able if s.ready()]
        self.close_windows(ready)
        self.waiting = [s for s in able if s not in ready]
        if not self.waiting or coordinator:
            self.patience = time.monotonic() + 1.2
        elif time.monotonic() >= self.patience:
            self.hurry(len(ready))

    def hurry(self, nready):
        """Whoever has nothing to do but wait for a range or floor to pass shall not wait long: else
        one loss after the other would leave nobody who could be wrong. Little enough at a time for
        those who are ready to renew in between."""
        self.patience = time.monotonic() + (1.2 if nready else 0.6)
        self.must_stop(*self.waiting)
        self.pass_time(self.hurry_s[0 if nready else 1])
        self.counts["time passes, since sidecars wait"] += 1

    def chosen(self):
        return [f for f in self.faults if self.only in f.name]

    def required(self):
        """The faults that this run must have."""
        return self.faults

    def pool_of(self, i):
        """The name of the pool of sidecar i."""
        return self.pools[i % len(self.pools)]

    # ---- processes -----------------------------------------------------------------------------

    def host(self, _index):
        return Host()

    def sidecar_host(self, _index):
        return Host()

    def add_sidecars(self):
        """The last one is the clone, which runs only for moments."""
        for i in range(self.nsidecars + 1):
            state = self.path("full/s0.d") if i == 0 and self.mounts else None
            s = Sidecar(self, i, self.url(i), self.sidecar_host(i), state=state)
            if i == self.nsidecars:
                self.clone = s
            else:
                self.sidecars.append(s.start())
        for s in self.sidecars:
            until(s.name + " is ready", s.ready, 30, 0.05)
            s.start_clients()

    def everyone(self):
        return self.sidecars + ([self.clone] if self.clone else [])

    def ctl(self, *args):
        """sidflakectl on a clock that nobody steps; returns (status, output)."""
        r = subprocess.run([SIDFLAKECTL, *args],
                           env=procs.clean_env(self.clocks.env(self.steady)), text=True,
                           stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                           stderr=subprocess.STDOUT, timeout=30)
        return r.returncode, r.stdout.strip()

    def mount_small(self, name, kib):
        """A tmpfs that can be filled, or None where this process may not mount."""
        path = self.path(name)
        os.mkdir(path)
        r = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=%dk" % kib, "tmpfs", path],
                           stderr=subprocess.PIPE, text=True, check=False)
        if r.returncode == 0:
            self.mounts.append(path)
            return path
        return None

    def pass_time(self, seconds):
        """All clocks go forward together."""
        self.clocks.set(0, self.clocks.get(0) + seconds)

    # ---- the verdict ---------------------------------------------------------------------------

    def check(self):
        """Every receipt since the last check, against all. Returns the checker's words if an ID is
        doubled, else None."""
        ranges = []
        for s in self.everyone():
            if not os.path.exists(s.receipts):
                continue
            size = os.path.getsize(s.receipts) // RECEIPT_BYTES * RECEIPT_BYTES
            ranges.append("%s:%d:%d" % (s.receipts, self.checked.get(s.receipts, 0), size))
            self.checked[s.receipts] = size
        r = subprocess.run([CHECKER, "--seen", self.path("seen"), *ranges],
                           stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        found = re.search(r"^ids (\d+) ", r.stdout, re.M)
        assert found and r.returncode in (0, 1), "checker: status %d: %s" % (r.returncode, r.stdout)
        self.ids += int(found.group(1))
        return r.stdout if r.returncode else None

    def after_loss(self):
        """The pools that were lost are made again, with all workerIds that were ever handed out, and
        no others; yields as faults do."""
        self.init("--after-loss", "--workers", "0-%d" % (self.next_range - 1))
        yield 0

    def made_again(self):
        """After a loss, in one of the two ways that an operator has."""
        if self.rng.random() < 0.7:
            yield from self.after_loss()
        else:
            self.must_stop(at_least=4)
            self.init("--workers", "%d-%d" % (self.next_range, self.next_range + RANGE - 1))
            self.next_range += RANGE

    def recover_now(self):
        for pause in self.after_loss():
            time.sleep(pause)

    def calm(self):
        """After the last fault: everything runs, clocks are right."""
        for slot in range(1, SLOTS):
            self.clocks.set(slot, 0)
        self.heal()
        for s in self.sidecars:
            if not s.running():
                self.fail("%s: expected it to run, found that it ended with status %s: %s" % (
                    s.name, s.popen.returncode, s.log()[-600:]))
                s.start()

    def recovered(self, timeout):
        """Whether every sidecar gives IDs. What was granted before a loss may have to pass first:
        time is made to pass."""
        end = time.monotonic() + timeout
        waiting = set(self.sidecars)
        passed = time.monotonic()
        while waiting and time.monotonic() < end:
            waiting = {s for s in waiting if not s.gives_id()}
            if waiting and time.monotonic() - passed > 5:
                self.must_stop()
                self.pass_time(self.forgotten_s)
                passed = time.monotonic()
            time.sleep(0.1)
        for s in waiting:
            self.fail("%s: expected an ID within %d s of the last fault, found none; log: %s" % (
                s.name, timeout, s.log()[-1500:]))
        return not waiting

    def stop_hammers(self):
        for s in self.everyone():
            s.stop_clients()

    def close(self):
        for p in reversed(self.procs):
            if p.running():
                p.popen.send_signal(signal.SIGCONT)
                p.kill()
        for path in self.mounts:
            subprocess.run(["umount", "-l", path], check=False)
