"""One load of hostile clients: the world it falls upon, who is in it, and what they see.

The sidecar, the real servers behind it and the good clients share one processor, the attackers have
another: what is measured is what sidflake lets one client cost another, not who gets the processor.
With only one processor all share it.
"""

import contextlib
import dataclasses
import json
import os
import select
import subprocess
import time

import harness
import wire
from procs import Proc, clean_env, die_with_parent, free_port, until

PROCESSORS = sorted(os.sched_getaffinity(0))
GOOD, HOSTILE = PROCESSORS[0], PROCESSORS[-1]
MANIFEST = os.path.join(harness.TOP, "packaging", "kubernetes", "base", "sidflake.yaml")
PLACES = ("listen.", "coordinator.url", "coordinator.auto_init", "state_dir", "auth.", "upstream.")
# Cheap, so that checks are quick: both of "secret".
ARGON2 = "$argon2id$v=19$m=64,t=1,p=2$c29tZXNhbHQ$S3Lajg55evZVboE7O39Ij0iCFwMgZQQ4"
CRYPT = "$5$saltsalt$0IyaXrmV7.sGNS6tirgqHLqX/G.FBvgkYA.lpPdS5sA"
PASSWORD = "a-right-password"  # without a space, which would end it for memcached
WRONG = wire.Resp.encode("AUTH", "nobody", "a wrong password")
GONE_S = 10  # until connections that were closed must be gone
QUIET_S = 2  # after the attackers have left, where memory is not what it is about


class NotSupported(Exception):
    """The build under test lacks what this needs; says what."""


def program(name):
    return os.path.join(os.path.dirname(os.path.realpath(harness.SIDFLAKE)), "tests", "hostile", name)


@contextlib.contextmanager
def on(processor):
    """What is started in here runs there."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {processor})
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def options_known():
    """The options that the build under test has."""
    text = subprocess.run([harness.SIDFLAKE, "--help-config"], capture_output=True, text=True,
                          check=True, env=clean_env()).stdout
    return {line.split()[0] for line in text.splitlines() if line and line[0] != "#"}


def need(*options):
    missing = sorted(set(options) - options_known())
    if missing:
        raise NotSupported("no option " + ", ".join(missing))


@dataclasses.dataclass
class Load:
    """What the attackers do, and to whom."""
    name: str
    item: int  # of the list of what was found
    what: str
    to: str = "redis"  # or memcached, http
    connections: int = 4
    first: bytes = b""  # sent once on each connection …
    again: bytes = b""  # … and that for ever after …
    every_ms: int = 0  # … or once in so long, all at the same time
    read: int = -1  # bytes a second that each connection reads; -1: all
    reopen: bool = True  # what is closed comes again
    gone_ms: int = -1  # closes so long after it was opened
    watch: str = ""  # what must never come back
    options: dict = dataclasses.field(default_factory=dict)
    need: tuple = ()  # options without which it makes no sense
    there: tuple = ("redis", "memcached")  # real servers that are behind
    asked: tuple = ()  # those of them that good clients ask; (): all
    users: int = 0  # who may log in, and must; 0: no passwords
    kubernetes: bool = False  # in the configuration of the manifest
    extra: tuple = ()  # further kinds of good clients
    seconds: float = 0  # at least
    stall: bool = False  # a part of the upstream never answers
    idle: bool = False  # nobody is hostile


# ---- the world -----------------------------------------------------------------------------------


def hash_of(case, password):
    """A users file's field, as expensive as sidflakectl makes them."""
    line = case.ctl("passwd", "x", stdin=password + "\n", expect=0).stdout.strip()
    return line.partition(":")[2]


def users_may(case, fields):
    """These fields of a users file, where the build under test knows them, else nothing."""
    path = case.path("probe")
    with open(path, "w") as f:
        os.fchmod(f.fileno(), 0o600)
        f.write("x:%s%s\n" % (CRYPT, fields))
    r = case.sidflake("-t", "--set", "auth.mode=required", "--set", "auth.users_file=" + path)
    return "" if path in r.stdout + r.stderr else fields


def write_users(case, count):
    path = case.path("users")
    line = hash_of(case, PASSWORD) + users_may(case, ":upstream=all")
    with open(path, "w") as f:
        os.fchmod(f.fileno(), 0o600)
        for name in ["good"] + ["u%d" % i for i in range(count)]:
            f.write("%s:%s\n" % (name, line))
    return path


class Stall(Proc):
    """A relay to a real server that swallows all of a connection on which SELECT 9 was asked for."""

    def __init__(self, case, server):
        self.port = free_port()
        super().__init__(case, "stall", ["/usr/bin/python3", os.path.join(
            os.path.dirname(os.path.abspath(__file__)), "stall.py"), str(self.port), str(server.port)])

    def start(self, extra_args=()):
        super().start(extra_args)
        until("the relay accepts connections", self.up)
        return self

    def up(self):
        try:
            wire.Stream(("127.0.0.1", self.port)).close()
            return True
        except OSError:
            return False


class World:
    """Real servers, and a sidecar in front of them."""

    def __init__(self, case, load):
        self.case, self.load = case, load
        options = {"log.level": "info", "coordinator.auto_init": True, "coordinator.timeout": "1s",
                   "lease.renew_every": "20s", **load.options}
        options.update(self.behind())
        if load.users:
            options["auth.mode"] = "required"
            options["auth.users_file"] = write_users(case, load.users)
        with on(GOOD):
            self.sidecar = Sidecar(case, load, options).start()
        self.warm_up()

    def behind(self):
        options = {}
        with on(GOOD):
            if "redis" in self.load.there:
                server = self.case.redis()
                if self.load.stall:
                    server = Stall(self.case, server).start()
                options["upstream.redis"] = "tcp://127.0.0.1:%d" % server.port
            if "memcached" in self.load.there:
                server = self.case.memcached()
                options["upstream.memcached"] = "tcp://127.0.0.1:%d" % server.port
        return options

    def warm_up(self):
        """What is shared is opened, so that it does not count as left over."""
        unix = self.load.kubernetes
        if "redis" in self.load.there:
            with self.sidecar.resp(unix) as r:
                r.ask("GET", "nothing")
        if "memcached" in self.load.there:
            with self.sidecar.mc(unix) as m:
                m.get("nothing")

    def place(self, what):
        """As the programs take it."""
        s = self.sidecar
        if what == "http":
            return "tcp:%d" % s.http_port
        if self.load.kubernetes:
            return "unix:" + (s.resp_sock if what == "redis" else s.mc_sock)
        return "tcp:%d" % (s.resp_port if what == "redis" else s.mc_port)


class Sidecar(harness.Sidecar):
    """Either with options as usual, or as in the manifest for Kubernetes, which keeps its own word
    on everything but the places of things."""

    def __init__(self, case, load, options):
        self.load = load
        super().__init__(case, "sidecar", "sqlite://" + case.path("pool.db"), options)
        if load.kubernetes:
            self.argv = [harness.SIDFLAKE, "-c", MANIFEST]
            places = {k: v for k, v in self.options.items() if k.startswith(PLACES) or k in load.options}
            places.update({"coordinator.password_file": "", "listen.memcached": "unix://" + self.mc_sock,
                           "listen.redis": "unix://" + self.resp_sock})
            for key, value in places.items():
                text = ",".join(value) if isinstance(value, list) else str(value)
                self.argv += ["--set", "%s=%s" % (key, "true" if value is True else text)]

    def descriptors(self):
        return len(os.listdir("/proc/%d/fd" % self.pid))

    def connections(self):
        """Of all protocols, that of the question not counted; None: no answer. Those that go on for a
        while, since they have asked for much, get that while."""
        end = time.monotonic() + GONE_S
        while True:
            try:
                count = int(self.metric("sidflake_connections")) - 1
            except (OSError, AssertionError, wire.Closed):
                count = None
            if count == 0 or time.monotonic() > end:
                return count
            time.sleep(0.2)


# ---- who is in it --------------------------------------------------------------------------------


class Guests:
    """The good clients."""

    def __init__(self, world):
        load = world.load
        argv = [program("guests"), "--redis", world.place("redis"), "--memcached",
                world.place("memcached"), "--http", world.place("http")]
        if load.users:
            argv += ["--user", "good", "--password", PASSWORD, "--logins", str(load.users)]
        for kind in ["there-" + t for t in load.asked or load.there] + list(load.extra):
            argv += ["--also", kind]
        with on(GOOD):
            self.popen = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                          preexec_fn=die_with_parent)
        assert self.popen.stdout.readline() == "ready\n", "the good clients did not start"

    def begin(self):
        self.popen.stdin.write("begin\n")
        self.popen.stdin.flush()

    def end(self):
        """What each kind saw. Waits for what is under way."""
        out, _ = self.popen.communicate(timeout=60)
        return json.loads(out)

    def kill(self):
        self.popen.kill()
        self.popen.wait()


def swarm(world, seconds):
    load = world.load
    argv = [program("swarm"), "--to", world.place(load.to), "--connections", str(load.connections),
            "--seconds", "%g" % seconds]
    for name in ("first", "again"):
        if getattr(load, name):
            path = world.case.path(name)
            with open(path, "wb") as f:
                f.write(getattr(load, name))
            argv += ["--" + name, path]
    argv += ["--reopen"] if load.reopen else []
    argv += ["--read", str(load.read)] if load.read >= 0 else []
    argv += ["--gone", str(load.gone_ms)] if load.gone_ms >= 0 else []
    argv += ["--every", str(load.every_ms)] if load.every_ms > 0 else []
    argv += ["--watch", load.watch] if load.watch else []
    with on(HOSTILE):
        return subprocess.Popen(argv, stdout=subprocess.PIPE, text=True, preexec_fn=die_with_parent)


def watch_rss(sidecar, attackers, seconds):
    """The greatest size seen until the attackers have ended, in KiB, and what they report."""
    peak, end = 0, time.monotonic() + seconds + 30
    while attackers.poll() is None and time.monotonic() < end:
        peak = max(peak, sidecar.rss_kib())
        select.select([], [], [], 0.05)
    attackers.kill()
    lines = attackers.communicate()[0].splitlines()
    return peak, json.loads(lines[-1]) if lines and lines[-1].startswith("{") else {}


# ---- what is measured ----------------------------------------------------------------------------


def worst(seen, prefix):
    """The kinds whose name begins so, as one: the worst of each figure."""
    kinds = [v for k, v in seen.items() if k.startswith(prefix) and v["requests"]]
    if not kinds:
        return None
    return {f: max(k[f] for k in kinds) for f in ("p50_us", "p99_us", "max_us")}


def summary(seen):
    clients = {k: v for k, v in seen.items() if k not in ("livez", "login")}
    return {
        "ids": worst(seen, "ids-"), "there": worst(seen, "there-"), "own": worst(seen, "own-"),
        "login": seen.get("login"), "livez": seen["livez"],
        "requests": sum(v["requests"] for v in clients.values()),
        "errors": sum(v["errors"] for v in clients.values()),
        "error_share": max((v["errors"] / v["requests"] for v in clients.values() if v["requests"]),
                           default=0),  # of the kind that fares worst
        "wrong": sum(v["wrong"] for v in clients.values()),
        "first_errors": {k: v["first_error"] for k, v in seen.items() if v["first_error"]},
    }


def log_lines(sidecar):
    return sidecar.log().count("\n")


def measure(case, load, seconds, settle):
    """Runs one load; the row that it makes."""
    need(*load.need)
    world = World(case, load)
    s = world.sidecar
    row = {"name": load.name, "item": load.item, "what": load.what, "kubernetes": load.kubernetes,
           "rss_before_kib": s.rss_kib(), "seconds": seconds}
    descriptors = s.descriptors()
    guests = Guests(world)
    try:
        time.sleep(0.3)
        lines = log_lines(s)
        guests.begin()
        if load.idle:
            time.sleep(seconds)
            peak, row["attack"] = s.rss_kib(), {}
        else:
            peak, row["attack"] = watch_rss(s, swarm(world, seconds), seconds)
        row.update(summary(guests.end()))
    finally:
        guests.kill()
    row["rss_peak_kib"] = max(peak, row["rss_before_kib"])
    row["log_lines"] = log_lines(s) - lines
    quiet = settle if load.kubernetes else min(settle, QUIET_S)
    time.sleep(quiet)
    row.update({"settle_s": quiet, "running": s.running(), "rss_after_kib": s.rss_kib(),
                "connections_left": s.connections()})
    row["descriptors_left"] = s.descriptors() - descriptors
    return row
