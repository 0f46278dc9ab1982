"""What the end-to-end tests stand on: a case, and the servers and sidecars that it owns.

Invariants
  - Everything that a test starts belongs to its Case and dies with it.
  - All files of a case are in one short directory under /tmp: a socket's path has 107 bytes.
"""

import json
import os
import pwd
import re
import subprocess

import wire
from procs import CRASH, Clock, Proc, clean_env, die_with_parent, free_port, until

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.dirname(os.path.dirname(HERE))
BUILD = os.environ.get("SIDFLAKE_BUILD", os.path.join(TOP, "build"))
SIDFLAKE = os.path.join(BUILD, "sidflake")
SIDFLAKECTL = os.path.join(BUILD, "sidflakectl")


class Redis(Proc):
    """A redis-server of its own, on a TCP port and a unix socket. It would save after a year: it
    keeps nothing over a kill, and is none that sidflake warns of."""

    def __init__(self, case, name="redis", port=None, args=(), clock=None):
        self.port = port or free_port()
        self.sock = case.path(name + ".sock")
        super().__init__(case, name, [
            "redis-server", "--port", str(self.port), "--bind", "127.0.0.1",
            "--unixsocket", self.sock, "--dir", case.dir, "--appendonly", "no",
            "--save", "31536000 2000000000",
            "--loglevel", "warning", *args], clock=clock)
        self.url = "redis://127.0.0.1:%d/0" % self.port

    def start(self, extra_args=()):
        super().start(extra_args)
        until("Redis accepts connections", self.up)
        return self

    def clock_env(self):
        """jemalloc, which redis-server is linked with, asks for the time before libfaketime is
        ready; libc's own malloc does not."""
        env = dict(super().clock_env())
        if env:
            env["LD_PRELOAD"] += ":libc.so.6"
        return env

    def up(self):
        try:
            with wire.Resp(self.sock) as r:
                reply = r.ask("PING")
                return reply == b"PONG" or "NOAUTH" in str(reply)
        except OSError:
            assert self.running(), "redis-server ended: " + self.log()[-500:]
            return False

    def ask(self, *args):
        """One command of our own; an error reply is a failed test."""
        with wire.Resp(self.sock) as r:
            reply = r.ask(*args)
        assert not isinstance(reply, wire.Error), "%s: %s" % (args, reply)
        return reply

    def queue(self, pool="default"):
        return [int(w) for w in self.ask("LRANGE", "sidflake:{%s}:free" % pool, "0", "-1")]

    def free(self, pool="default"):
        return self.ask("LLEN", "sidflake:{%s}:free" % pool)

    def record(self, worker, pool="default"):
        """era, hwm, token, t0, n of a workerId, or None."""
        text = self.ask("HGET", "sidflake:{%s}:h" % pool, str(worker))
        if text is None:
            return None
        era, hwm, token, t0, n = text.decode().split()
        return {"era": int(era), "hwm": int(hwm), "token": token, "t0": int(t0), "n": int(n)}

    def held(self, pool="default"):
        return sorted(int(w) for w in self.ask("ZRANGE", "sidflake:{%s}:exp" % pool, "0", "-1"))


class MemcachedServer(Proc):
    """A memcached of its own, on a TCP port."""

    def __init__(self, case, name="memcached", args=()):
        self.port = free_port()
        super().__init__(case, name, [
            "memcached", "-l", "127.0.0.1", "-p", str(self.port), "-U", "0", "-m", "1024", "-u",
            pwd.getpwuid(os.geteuid()).pw_name, *args])

    def start(self, extra_args=()):
        super().start(extra_args)
        until("memcached accepts connections", self.up)
        return self

    def up(self):
        try:
            with wire.Memcached(("127.0.0.1", self.port)) as m:
                return bool(m.ask("version"))  # an error where it requires a login
        except OSError:
            assert self.running(), "memcached ended: " + self.log()[-500:]
            return False


def sanitized():
    """Whether the daemon was built with AddressSanitizer, which multiplies its memory."""
    with open(SIDFLAKE, "rb") as f:
        return b"__asan_init" in f.read()


def yaml_of(options):
    """{"a.b": value} as YAML; JSON's strings, numbers and lists are YAML's, too."""
    groups = {}
    for path, value in options.items():
        group, _, key = path.rpartition(".")
        groups.setdefault(group, []).append((key, value))
    lines = []
    for group in sorted(groups):
        if group:
            lines.append(group + ":")
        for key, value in groups[group]:
            lines.append("%s%s: %s" % ("  " if group else "", key, json.dumps(value)))
    return "\n".join(lines) + "\n"


class Sidecar(Proc):
    """A sidflake of its own. options: {"workers.spare": 0}, over the defaults below."""

    def __init__(self, case, name, coordinator, options=None, state=None, **kwargs):
        self.mc_port, self.resp_port, self.http_port = free_port(), free_port(), free_port()
        self.mc_sock, self.resp_sock = case.path(name + ".m"), case.path(name + ".r")
        self.state_dir = state or case.path(name + ".d")
        self.options = {
            "listen.memcached": ["tcp://127.0.0.1:%d" % self.mc_port, "unix://" + self.mc_sock],
            "listen.redis": ["tcp://127.0.0.1:%d" % self.resp_port, "unix://" + self.resp_sock],
            "listen.http": ["tcp://127.0.0.1:%d" % self.http_port],
            "coordinator.url": coordinator,
            "coordinator.timeout": "250ms",
            "lease.renew_every": "1s",
            "state_dir": self.state_dir,
            "log.level": "debug",
        }
        self.options.update(options or {})
        self.conf = case.path(name + ".yaml")
        self.write_conf()
        super().__init__(case, name, [SIDFLAKE, "-c", self.conf], **kwargs)

    def write_conf(self):
        with open(self.conf, "w") as f:
            f.write(yaml_of(self.options))

    def start(self, extra_args=(), wait=True):
        super().start(extra_args)
        if wait:
            self.wait_ready()
        return self

    def assert_running(self):
        assert self.running(), "%s: expected it to run, found that it ended with status %s" % (
            self.name, self.popen.returncode)

    def wait_ready(self, timeout=10):
        def ready():
            self.assert_running()
            return self.ready_status() == 200
        until(self.name + ": /readyz answers 200", ready, timeout)

    def wait_listening(self, timeout=10):
        def listening():
            self.assert_running()
            return self.ready_status() is not None
        until(self.name + ": HTTP answers", listening, timeout)

    def ready_status(self):
        try:
            return self.http("/readyz").status
        except OSError:
            return None

    def mc(self, unix=False):
        return wire.Memcached(self.mc_sock if unix else ("127.0.0.1", self.mc_port))

    def resp(self, unix=False):
        return wire.Resp(self.resp_sock if unix else ("127.0.0.1", self.resp_port))

    def http(self, path, headers=None, method="GET"):
        return wire.http(("127.0.0.1", self.http_port), path, headers, method)

    def metrics(self):
        return wire.Metrics(self.http("/metrics").text)

    def metric(self, family, /, **labels):
        return self.metrics().value(family, **labels)

    def worker(self):
        """The workerId that is issued from, of a sidecar with workers.active 1."""
        return int(self.metric("sidflake_worker_id", slot="0"))

    def held(self):
        return int(self.metric("sidflake_workers_held"))

    def wait_held(self, n, timeout=10):
        until("%s holds %d workerIds" % (self.name, n), lambda: self.held() == n, timeout)

    def id(self):
        """A fresh ID, by RESP."""
        with self.resp() as r:
            reply = r.ask("GET", "id:orders")
        assert isinstance(reply, bytes), "expected an ID, found %r" % (reply,)
        return int(reply)


def rest_ms(sidecar, then="", timeout=10):
    """How long a sidecar's log says that every free workerId rests; `then`: what follows there."""
    rest = sidecar.wait_log(r"rests for ((?:\d+ (?:h|min|s) )+)more" + then, timeout).group(1)
    units = {"h": 3600_000, "min": 60_000, "s": 1000}
    return sum(int(n) * units[unit] for n, unit in re.findall(r"(\d+) (\w+)", rest))


class Case:
    """One test's world. The directory is the runner's, which removes it however the test ends."""

    def __init__(self, directory):
        self.dir = directory
        self.procs = []
        self.names = {}

    def path(self, name):
        return os.path.join(self.dir, name)

    def fresh_name(self, stem):
        n = self.names.get(stem, 0)
        self.names[stem] = n + 1
        return stem + (str(n) if n else "")

    def clock(self):
        return Clock(self, self.fresh_name("clock"))

    def redis(self, **kwargs):
        return Redis(self, self.fresh_name("redis"), **kwargs).start()

    def memcached(self, **kwargs):
        return MemcachedServer(self, self.fresh_name("memcached"), **kwargs).start()

    def pool(self, *args, **kwargs):
        """A Redis with a fresh pool."""
        redis = self.redis(**kwargs)
        self.ctl("pool", "init", "--coordinator", redis.url, *(args or ("--fresh",)), expect=0)
        return redis

    def sidecar(self, coordinator, options=None, wait=True, **kwargs):
        url = coordinator if isinstance(coordinator, str) else coordinator.url
        return Sidecar(self, self.fresh_name("sidecar"), url, options, **kwargs).start(wait=wait)

    def run(self, *argv, env=None, expect=None, stdin=None, timeout=30):
        """Runs a program to its end."""
        r = subprocess.run(argv, env=clean_env(env), input=stdin, text=True, cwd=self.dir,
                           stdin=subprocess.DEVNULL if stdin is None else None,
                           capture_output=True, timeout=timeout, preexec_fn=die_with_parent)
        assert not CRASH.search(r.stderr), r.stderr
        assert expect is None or r.returncode == expect, \
            "%s: expected exit status %d, found %d\n%s%s" % (
                " ".join(argv), expect, r.returncode, r.stdout, r.stderr)
        return r

    def ctl(self, *args, **kwargs):
        return self.run(SIDFLAKECTL, *args, **kwargs)

    def sidflake(self, *args, **kwargs):
        return self.run(SIDFLAKE, *args, **kwargs)

    def crashes(self):
        return [c for c in (p.crashed() for p in self.procs) if c]

    def diagnostics(self, lines=50):
        """The end of each log, for a test that failed."""
        for p in self.procs:
            status = "never started" if p.popen is None else \
                "running" if p.running() else "ended with %s" % p.popen.returncode
            yield "%s (%s): %s" % (p.name, status, " ".join(p.argv))
            if p.popen is None:
                continue
            log = p.log()
            crash = CRASH.search(log)
            text = log[crash.start():].splitlines()[:lines] if crash else log.splitlines()[-lines:]
            for line in text:
                yield "  " + line[:400]

    def close(self):
        for p in reversed(self.procs):
            p.kill()
