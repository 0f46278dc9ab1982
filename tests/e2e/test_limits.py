"""Out of memory and out of descriptors: at every point of the start, and while serving.

Each allocation is made to fail in turn by a preloaded library (tests/e2e/failing_alloc.c). The
start has some 1,400 with SQLite; all of those up to the keeper's thread are failed, of the others
one in EVERY (a prime: a loop's turns have many allocations). SIDFLAKE_LIMITS_EVERY=1 fails them all.
"""

import os
import re
import resource
import shutil
import signal
import subprocess
import time

import harness
import wire
from harness import until
from runner import test

SHIM_SOURCE = os.path.join(harness.TOP, "tests", "e2e", "failing_alloc.c")
EVERY = int(os.environ.get("SIDFLAKE_LIMITS_EVERY", "31"))
TICKS = os.sysconf("SC_CLK_TCK")
REASON = re.compile(r"memory|Memory|temporarily unavailable")
FAILED = re.compile(r"failing_alloc: \d+, \d+ bytes for (.*)\n")
# hiredis before 1.0 calls abort(3), writes through NULL, or leaks, where it gets no memory; ASan
# itself cannot start a thread without.
HIREDIS = re.compile(r"/libhiredis\.so\.0\.[^/]*$")
ASAN_ITSELF = "AddressSanitizer: CHECK failed: sanitizer_"


# ---- allocations ------------------------------------------------------------------------------


def excused(status, text):
    """Whether it was a library that cannot do without memory which made it die, or leak."""
    told = FAILED.search(text)
    died = status in (-signal.SIGABRT, -signal.SIGSEGV) or harness.CRASH.search(text)
    return bool(told) and (ASAN_ITSELF in text or died and bool(HIREDIS.search(told.group(1))))


def shim(case):
    """The library's path, or None where it has no say: a sanitizer that is part of the program
    comes before whatever is preloaded."""
    if harness.sanitized():
        linked = subprocess.run(["ldd", harness.SIDFLAKE], capture_output=True, text=True,
                                check=True)
        if "libasan" not in linked.stdout:
            return None
    path = case.path("failing_alloc.so")
    case.run(os.environ.get("CC") or "cc", "-std=c11", "-D_GNU_SOURCE", "-O1", "-fno-builtin",
             "-shared", "-fPIC", "-o", path, SHIM_SOURCE, expect=0)
    return path


def env_of(library, n):
    return {"LD_PRELOAD": library, "FAIL_ALLOC": str(n)}


def run_each(case, library, argv, suffix="", step=1, judge=None):
    """Runs a program with its first, second … allocation failing, until it needs no more. A failure
    must end it with status 1 and a reason, or do no harm: then judge(stdout) looks. Returns how many
    there are."""
    n = 1 - step
    while True:
        n += step
        r = case.run(*argv, env=env_of(library, "%d%s" % (n, suffix)), timeout=20)
        told = FAILED.search(r.stderr)
        said = FAILED.sub("", r.stderr)
        what = "%s, allocation %s fails: status %d, %r" % (argv, n, r.returncode, said[-300:])
        assert r.returncode in (0, 1), what
        assert r.returncode == 0 or (told and REASON.search(said)), what
        assert r.returncode != 0 or judge is None or judge(r.stdout), what + r.stdout[-300:]
        if not told:
            return n - 1


@test("-t, each allocation failing: status 1 and a reason, or OK", timeout=120)
def memory_check(case):
    library = shim(case)
    if not library:
        return
    conf = case.path("c.yaml")
    with open(conf, "w") as f:
        f.write("listen: {memcached: ['tcp://127.0.0.1:0', 'unix:///a'], http: []}\n"
                "ids: {names: [orders, users]}\nlimits: {batch: 7}\nlog:\n  level: debug\n")
    argv = (harness.SIDFLAKE, "-t", "-c", conf, "--set", "workers.active=2")
    n = run_each(case, library, argv, judge=lambda out: out == conf + ": OK\n")
    assert n >= 100, "expected some 250 allocations, found %d" % n
    run_each(case, library, argv, "+", 7, judge=lambda out: out == conf + ": OK\n")
    dump = (harness.SIDFLAKE, "--dump-config", "-c", conf)
    full = case.run(*dump, expect=0).stdout
    assert run_each(case, library, dump, step=7, judge=lambda out: out == full) >= 100


@test("-t, a wrong configuration, each allocation failing: a reason, or all that is wrong")
def memory_of_errors(case):
    library = shim(case)
    if not library:
        return
    conf = case.path("c.yaml")
    with open(conf, "w") as f:
        f.write("x: 1\nids: {names: ['', '', '']}\nlimits: {batch: 0}\nlog: {level: loud}\n")
    argv = (harness.SIDFLAKE, "-t", "-c", conf)
    full = case.run(*argv, expect=78).stderr
    assert len(full.splitlines()) == 6, full
    ended = 0
    for n in range(1, 1000):
        r = case.run(*argv, env=env_of(library, n), timeout=20)
        said = FAILED.sub("", r.stderr)
        what = "allocation %d fails: status %d, %r" % (n, r.returncode, said)
        assert r.returncode in (1, 78), what
        assert r.returncode == 1 and REASON.search(said) or said == full, what
        if not FAILED.search(r.stderr):
            break
        ended += r.returncode == 1 and said.count("\n") > 1
    assert n > 50 and ended >= 6, (n, ended)


def is_ready(address, timeout):
    """Whether /readyz says so; false, too, where nobody accepts."""
    try:
        with wire.Stream(address, timeout) as c:
            c.send(b"GET /readyz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
            return c.rest().startswith(b"HTTP/1.1 200 ")
    except OSError:
        return False


class Started:
    """A sidecar whose n-th allocation fails, on sockets of its own."""

    def __init__(self, case, library, url, n):
        self.dir = case.path("run")
        shutil.rmtree(self.dir, ignore_errors=True)
        os.mkdir(self.dir)
        self.n = n
        self.log_path = os.path.join(self.dir, "log")
        conf = os.path.join(self.dir, "c.yaml")
        with open(conf, "w") as f:
            f.write(harness.yaml_of({
                "listen.memcached": ["unix://" + self.path("m"), "tcp://127.0.0.1:0"],
                "listen.redis": ["unix://" + self.path("r")],
                "listen.http": ["unix://" + self.path("h")],
                "ids.names": ["orders", "users"], "coordinator.url": url,
                "state_dir": self.path("state")}))
        with open(self.log_path, "wb") as log:
            self.popen = subprocess.Popen(
                [harness.SIDFLAKE, "-c", conf], stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                env=harness.clean_env(env_of(library, n)), preexec_fn=harness.die_with_parent)

    def path(self, name):
        return os.path.join(self.dir, name)

    def log(self):
        with open(self.log_path, errors="replace") as f:
            return f.read()

    def what(self):
        return "allocation %d fails: status %s, log:\n%s" % (
            self.n, self.popen.poll(), self.log()[-1500:])

    def serves(self):
        """True once it is ready, False if it has ended."""
        end = time.monotonic() + 15
        while self.popen.poll() is None:
            if is_ready(self.path("h"), 10):
                return True
            assert time.monotonic() < end, "neither ready nor ended; " + self.what()
            time.sleep(0.002)
        return False

    def answer(self, cls, name, question):
        """A connection may be refused, or closed unanswered, for want of memory, once."""
        for _ in range(2):
            try:
                with cls(self.path(name)) as c:
                    return question(c)
            except (OSError, wire.Closed, wire.Error):
                pass
        return None

    def stop(self):
        self.popen.send_signal(signal.SIGTERM)
        return self.popen.wait(15)


def number(reply):
    """An error in the place of one is none, once: that there is no memory for the name, say."""
    if isinstance(reply, wire.Error):
        raise reply
    return int(reply)


def start_and_look(case, library, url, n):
    """True if its n-th allocation was one of the start."""
    s = Started(case, library, url, n)
    try:
        served = s.serves()
        told = FAILED.search(s.log())
        if served:
            got = s.answer(wire.Memcached, "m", lambda m: m.id("id:orders")), \
                s.answer(wire.Resp, "r", lambda r: number(r.ask("GET", "id:users")))
            assert None not in got and got[0] != got[1], "%s; %s" % (got, s.what())
            status = s.stop()
            well = status == 0 and not harness.CRASH.search(s.log())
            assert well or excused(status, s.log()), s.what()
        elif not excused(s.popen.returncode, s.log()):
            assert s.popen.returncode == 1 and told, s.what()
            assert REASON.search(FAILED.sub("", s.log())), s.what()
            assert not harness.CRASH.search(s.log()), s.what()
        return told is not None
    finally:
        s.popen.kill()
        s.popen.wait()


def start_each(case, url):
    library = shim(case)
    if not library:
        return
    n = 1
    while start_and_look(case, library, url, n):
        n += 1 if n < 300 else EVERY
    assert n > 300, "expected more than 300 allocations until it serves, found %d" % n


@test("start on SQLite, each allocation failing: ends with a reason, or serves", timeout=900)
def memory_sqlite(case):
    url = "sqlite://" + case.path("pool.db")
    case.ctl("pool", "init", "--coordinator", url, "--fresh", expect=0)
    start_each(case, url)


@test("start on Redis, each allocation failing: ends with a reason, or serves", timeout=300)
def memory_redis(case):
    start_each(case, case.pool().url)


@test("sidflakectl, each allocation failing: status 1 or 3 and a reason, or the answer",
      timeout=240)
def memory_ctl(case):
    library = shim(case)
    if not library:
        return
    ctl = harness.SIDFLAKECTL
    redis = case.pool("--workers", "0-7")
    s = case.sidecar(redis)
    connect = ("--connect", "unix://" + s.mc_sock)
    total = 0
    for argv in (("-V",), ("decode", "940785546685317120"), ("decode", "5", "--json"),
                 ("range", "--from", "2026-02-01T00:00:00Z", "--to", "2026-03-01T00:00:00Z"),
                 ("pool", "status", "--coordinator", redis.url),
                 ("pool", "status", "--coordinator", redis.url, "--json"),
                 ("pool", "check", "--coordinator", redis.url),
                 ("pool", "list", "--coordinator", redis.url, "--sort", "holder"),
                 ("pool", "list", "--coordinator", redis.url, "--json"),
                 ("top", "--connect", "http://127.0.0.1:%d" % s.http_port, "-d", "0.1"),
                 ("top", "--coordinator", redis.url, "-d", "0.1"),
                 ("next", "orders", *connect), ("ping", *connect)):
        total += ctl_each(case, library, (ctl, *argv))
    assert total >= 100, "expected hundreds of allocations, found %d" % total


def ctl_each(case, library, argv):
    n = 0
    while True:
        n += 1
        r = subprocess.run(argv, env=harness.clean_env(env_of(library, n)), text=True,
                           stdin=subprocess.DEVNULL, capture_output=True, timeout=20)
        told = FAILED.search(r.stderr)
        said = FAILED.sub("", r.stderr).strip()
        what = "%s, allocation %d fails: status %d, %r" % (argv, n, r.returncode, r.stderr)
        if excused(r.returncode, r.stderr):
            continue
        assert not harness.CRASH.search(r.stderr), what
        assert r.returncode in (0, 1, 3), what
        assert r.returncode == 0 or said, what + ": expected a reason"
        assert r.returncode != 0 or r.stdout or argv[1] == "ping", what + ": expected an answer"
        if not told:
            assert r.returncode == 0, what
            return n - 1


# ---- descriptors ------------------------------------------------------------------------------


class Limited(harness.Sidecar):
    """With at most n descriptors, and no way to raise that."""

    def __init__(self, case, url, n, options=None):
        super().__init__(case, case.fresh_name("limited"), url, options)
        self.argv = ["prlimit", "--nofile=%d:%d" % (n, n), *self.argv]

    def cpu_s(self):
        with open("/proc/%d/stat" % self.pid) as f:
            words = f.read().rsplit(")", 1)[1].split()
        return (int(words[11]) + int(words[12])) / TICKS

    def ready(self):
        return is_ready(("127.0.0.1", self.http_port), 0.3)

    def squeeze(self, room):
        """Leaves it that many descriptors more than it has, whatever it was started with."""
        n = self.fds() + room
        resource.prlimit(self.pid, resource.RLIMIT_NOFILE, (n, n))

    def fds(self):
        return len(os.listdir("/proc/%d/fd" % self.pid))


def start_with(case, url, n):
    """'ended', 'waits' or 'serves'; what it did must be in order."""
    s = Limited(case, url, n).start(wait=False)
    end = time.monotonic() + 1
    while s.running() and not s.ready() and time.monotonic() < end:
        time.sleep(0.1)  # a probe takes a descriptor, too
    if not s.running():
        status, log = s.popen.returncode, s.log()
        assert status in (1, 127), "%d descriptors: status %s, log:\n%s" % (n, status, log)
        assert re.search("Too many open files|Error 24", log), "%d descriptors:\n%s" % (n, log)
        return "ended"
    served = s.ready()
    if not served:
        assert re.search("error coordinator (refuses|down|not ready) ", s.log()), s.log()
    assert s.cpu_s() < 1, "%d descriptors: %.2f s of processor time" % (n, s.cpu_s())
    assert s.stop() == 0, s.log()
    return "serves" if served else "waits"


def descriptors_from_3(case, url):
    seen = []
    n = 3
    while seen[-3:] != ["serves"] * 3:
        seen.append(start_with(case, url, n))
        n += 1
        assert n < 40, "expected it to serve with 40 descriptors, found %s" % seen
    assert seen[0] == "ended" and seen == sorted(seen, key=["ended", "waits", "serves"].index), seen


@test("start with 3, 4, 5 … descriptors on Redis: ends with a reason, or waits, or serves")
def descriptors_redis(case):
    descriptors_from_3(case, case.pool().url)


@test("start with 3, 4, 5 … descriptors on SQLite: ends with a reason, or waits, or serves")
def descriptors_sqlite(case):
    url = "sqlite://" + case.path("pool.db")
    case.ctl("pool", "init", "--coordinator", url, "--fresh", expect=0)
    descriptors_from_3(case, url)


def fill_up(s):
    """Connections until no descriptor is left, and some that nobody accepts."""
    conns = []
    limit = s.metric("process_max_fds")
    while s.fds() < limit:
        conns.append(s.resp(unix=True))
        until("it is accepted, or there is no room", lambda: s.fds() >= limit or asks(conns[-1]), 2)
    return conns, [s.resp(unix=True) for _ in range(5)]


def asks(conn):
    conn.sock.settimeout(0.2)
    try:
        return conn.ask("PING") == b"PONG"
    except OSError:
        return False
    finally:
        conn.sock.settimeout(10)


class Page:
    """A connection kept for /metrics: another would find no descriptor."""

    def __init__(self, s):
        self.stream = wire.Stream(("127.0.0.1", s.http_port))

    def value(self, family, **labels):
        self.stream.send(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n")
        length = 0
        while True:
            line = self.stream.line()
            if line.lower().startswith(b"content-length:"):
                length = int(line.split(b":")[1])
            if not line:
                break
        return wire.Metrics(self.stream.take(length).decode()).value(family, **labels)


@test("no descriptor left while serving: no busy loop, who is connected is served, then all are")
def descriptors_run_out(case):
    s = Limited(case, case.pool().url, 1000)
    s.start()
    s.wait_held(2)
    page, kept = Page(s), s.resp()
    s.squeeze(20)
    assert int(kept.ask("GET", "id:orders")) > 0
    assert page.value("sidflake_coordinator_up") == 1
    conns, waiting = fill_up(s)
    assert len(conns) >= 10, "expected room for some, found %d" % len(conns)
    up = page.value("sidflake_renewals_total", result="renewed")
    until("coordinator_up 0", lambda: page.value("sidflake_coordinator_up") == 0)
    assert page.value("sidflake_renewals_total", result="failed") >= 1
    cpu, started = s.cpu_s(), time.monotonic()
    served = 0
    while time.monotonic() - started < 2:
        for c in (kept, conns[0], conns[-2]):
            assert int(c.ask("GET", "id:orders")) > 0
            served += 1
        time.sleep(0.01)
    used = s.cpu_s() - cpu
    assert used < 0.5, "%.2f s of processor time in 2 s, for %d requests" % (used, served)
    assert waiting[0].silent(0.05), "expected it to wait to be accepted"
    for c in conns:
        c.close()
    for c in waiting:
        assert int(c.ask("GET", "id:orders")) > 0
    until("coordinator_up 1", lambda: page.value("sidflake_coordinator_up") == 1)
    until("renewed again",
          lambda: page.value("sidflake_renewals_total", result="renewed") > up)
    s.wait_log("coordinator answers again")
    assert s.stop() == 0


@test("no descriptor left: SIGTERM and SIGHUP are obeyed all the same")
def descriptors_signals(case):
    s = Limited(case, case.pool().url, 1000)
    s.start()
    s.squeeze(20)
    conns, waiting = fill_up(s)
    at = len(s.log())
    s.popen.send_signal(signal.SIGHUP)
    s.wait_log("reload refused, nothing changed.*Too many open files", after=at)
    assert int(conns[0].ask("GET", "id:orders")) > 0
    started = time.monotonic()
    assert s.stop() == 0 and time.monotonic() - started < 5
    for c in conns + waiting:
        c.close()


# ---- replies ----------------------------------------------------------------------------------


@test("a reply that is too long is told so in the same words, whatever stands before it")
def long_reply(case):
    s = case.sidecar(case.pool())
    transaction = b"MULTI\r\n" + b"INFO\r\n" * 400 + b"EXEC\r\n"
    told = []
    for before in (0, 1, 300, 1000):
        with s.resp() as r:
            r.send(b"ECHO %s\r\n" % (b"x" * 40) * before + transaction + b"PING\r\n")
            for _ in range(before):
                assert r.reply() == b"x" * 40
            assert r.reply() == b"OK"
            assert [r.reply() for _ in range(400)] == [b"QUEUED"] * 400
            told.append(str(r.reply()))
            assert r.reply() == b"PONG"
    assert len(set(told)) == 1 and "too long" in told[0], told
