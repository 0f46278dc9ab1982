"""The client matrix: which clients there are, how each is driven, and where it gets its IDs.

A driver (clients/README.md) is a long-lived process that is asked for one thing at a time. A setup
is what it is connected to. To add a client is to add a row to CLIENTS; to add a setup, one to SETUPS.
"""

import fcntl
import json
import os
import re
import select
import shutil
import subprocess
import time

import harness
from procs import clean_env, die_with_parent
from runner import Skip, need_node_modules, untimed

DRIVERS = os.path.join(harness.HERE, "clients")
LOCK = os.path.join(harness.HERE, "package-lock.json")
BATCH = 20  # IDs
ANSWER_S = 45  # more than any client's own patience with a server that was away
BUILT = os.path.join(harness.TOP, "build", "clients")
GO_ENV = {"GO111MODULE": "off", "GOPATH": "/usr/share/gocode", "GOFLAGS": "",
          "GOCACHE": os.path.join(BUILT, "go-cache")}
DEBIAN = bool(shutil.which("dpkg-query") and shutil.which("apt-get"))  # as tools/install-deps


class Client:
    """A row. name: as its users call it; driver: a key of ARGV; key: its name there; speaks: the
    protocol; package: Debian's, or npm:ALIAS in package.json. batch: whether it can ask for several
    at once; unix: whether it can use such a socket; lossless: what keeps its INCR exact, None where
    nothing needs it or can; pause: what it waits for before it tries a server again, None where it
    does not."""

    def __init__(self, name, driver, key, speaks, package, batch=True, unix=True, lossless=None,
                 pause=None):
        self.name, self.driver, self.key, self.speaks = name, driver, key, speaks
        self.package, self.unix, self.lossless = package, unix, lossless
        self.pause = pause
        self.server = "redis" if speaks.startswith("RESP") else "memcached"
        self.batch = () if not batch else ("lpop", "mget") if self.server == "redis" else ("mget",)

    def alias(self):
        return self.package.partition("npm:")[2]

    def locked(self):
        with open(LOCK) as f:
            return json.load(f)["packages"]["node_modules/" + self.alias()]

    def origin(self):
        """Where it is from, by the name it has there."""
        if self.alias():
            return "npm: " + self.locked().get("name", self.alias())
        return "Debian: " + self.package

    def version(self):
        """As installed, without Debian's own part; None where there is no telling."""
        if self.alias():
            return self.locked()["version"]
        if not DEBIAN:
            return None
        r = subprocess.run(["dpkg-query", "-W", "-f", "${Version}", self.package], text=True,
                           stdin=subprocess.DEVNULL, capture_output=True)
        assert r.returncode == 0, "expected Debian's package %s, found: %s" % (
            self.package, r.stderr.strip())
        return re.sub(r"^\d+:|-[^-]*$|\+.*", "", r.stdout)


CLIENTS = [
    Client("redis-cli", "tools", "redis-cli", "RESP2", "redis-tools"),
    Client("redis-cli -3", "tools", "redis-cli-3", "RESP3", "redis-tools"),
    Client("hiredis", "hiredis", "hiredis", "RESP2", "libhiredis-dev"),
    Client("redis-py", "python", "redis", "RESP2", "python3-redis"),
    Client("redis-py, asyncio", "python", "redis-asyncio", "RESP2", "python3-redis"),
    Client("ioredis 4", "node", "ioredis4", "RESP2", "npm:ioredis4",
           lossless="`stringNumbers: true`"),
    Client("ioredis 5", "node", "ioredis5", "RESP2", "npm:ioredis",
           lossless="`stringNumbers: true`"),
    Client("ioredis 6", "node", "ioredis6", "RESP3", "npm:ioredis6",
           lossless="`stringNumbers: true`"),
    Client("redis (Node) 3", "node", "redis3", "RESP2", "npm:redis3",
           lossless="`string_numbers: true`"),
    Client("redis (Node) 4", "node", "redis4", "RESP2", "npm:redis4"),
    Client("redis (Node) 5", "node", "redis5", "RESP2", "npm:redis5",
           lossless="`typeMapping`"),
    Client("redis (Node) 6", "node", "redis6", "RESP3", "npm:redis",
           lossless="`typeMapping`"),
    Client("valkey-glide (Node)", "node", "glide", "RESP3", "npm:@valkey/valkey-glide", unix=False),
    Client("redis-rb", "ruby", "redis", "RESP2", "ruby-redis"),
    Client("phpredis", "php", "phpredis", "RESP2", "php-redis"),
    Client("predis", "php", "predis", "RESP2", "php-predis"),
    Client("Redis (Perl)", "perl", "Redis", "RESP2", "libredis-perl"),
    Client("Redis::Fast", "perl", "Redis::Fast", "RESP2", "libredis-fast-perl"),
    Client("redis-lua", "lua", "redis", "RESP2", "lua-redis"),
    Client("redigo", "golang", "redigo", "RESP2", "golang-github-gomodule-redigo-dev"),

    Client("pymemcache", "python", "pymemcache", "text", "python3-pymemcache"),
    Client("python-memcached", "python", "python-memcached", "text", "python3-memcache",
           pause="`dead_retry`, 30 s"),
    Client("pylibmc", "python", "pylibmc", "text", "python3-pylibmc"),
    Client("pylibmc, `binary=True`", "python", "pylibmc-binary", "binary", "python3-pylibmc"),
    Client("python-binary-memcached", "python", "bmemcached", "binary",
           "python3-binary-memcached"),
    Client("libmemcached-tools", "tools", "memccat", "text", "libmemcached-tools"),
    Client("libmemcached-tools, `--binary`", "tools", "memccat-binary", "binary",
           "libmemcached-tools"),
    Client("memcached (Node)", "node", "memcached", "text", "npm:memcached", unix=False),
    Client("memcache-client (Node)", "node", "memcache-client", "text", "npm:memcache-client",
           unix=False),
    Client("memcache-plus (Node)", "node", "memcache-plus", "text", "npm:memcache-plus",
           unix=False),
    Client("memjs", "node", "memjs", "binary", "npm:memjs", batch=False, unix=False),
    Client("dalli 3.0", "ruby", "dalli", "binary", "ruby-dalli"),
    Client("php-memcached", "php", "memcached", "text", "php-memcached"),
    Client("php-memcached, `OPT_BINARY_PROTOCOL`", "php", "memcached-binary", "binary",
           "php-memcached"),
    Client("php-memcache", "php", "memcache", "text", "php-memcache",
           pause="`retry_interval`, 15 s"),
    Client("Cache::Memcached", "perl", "Cache::Memcached", "text", "libcache-memcached-perl"),
    Client("Cache::Memcached::Fast", "perl", "Cache::Memcached::Fast", "text",
           "libcache-memcached-fast-perl"),
    Client("gomemcache", "golang", "gomemcache", "text", "golang-github-bradfitz-gomemcache-dev"),
]


# ---- drivers ------------------------------------------------------------------------------------


def source(name):
    return os.path.join(DRIVERS, name)


def built(name, *compiler, env=None):
    """The program of clients/NAME, made where it is older than its source."""
    os.makedirs(BUILT, exist_ok=True)
    program = os.path.join(BUILT, name.partition(".")[0])
    with open(source(name)) as alone, untimed():
        fcntl.flock(alone, fcntl.LOCK_EX)
        if not os.path.exists(program) or os.path.getmtime(program) < os.path.getmtime(alone.name):
            r = subprocess.run([a.format(program, alone.name) for a in compiler], text=True,
                               capture_output=True, env=dict(os.environ, **(env or {})))
            assert r.returncode == 0, "%s: %s" % (name, r.stderr)
    return program


def go_driver():
    return [built("golang.go", "go", "build", "-o", "{0}", "{1}", env=GO_ENV)]


def c_driver():
    cc = os.environ.get("CC") or "cc"
    return [built("hiredis.c", cc, "-O1", "-Wall", "-Wextra", "-o", "{0}", "{1}", "-lhiredis")]


def node_driver():
    need_node_modules()
    return ["node", source("node.js")]


ARGV = {
    "golang": go_driver,
    "hiredis": c_driver,
    "lua": lambda: ["lua5.1", source("lua.lua")],
    "node": node_driver,
    "perl": lambda: ["perl", source("perl.pl")],
    "php": lambda: ["php", source("php.php")],
    "python": lambda: ["/usr/bin/python3", source("python.py")],
    "ruby": lambda: ["ruby", source("ruby.rb")],
    "tools": lambda: ["sh", source("tools.sh")],
}
EVERYWHERE = ("hiredis", "node", "tools")  # what tools/install-deps has on other systems, too


class Driver:
    """A client, connected to an address."""

    def __init__(self, case, client, address):
        if client.driver not in EVERYWHERE and not DEBIAN:
            raise Skip("needs Debian's " + client.package)
        self.name, self.buffer = client.name, b""
        self.errors = open(case.path(case.fresh_name("driver") + ".err"), "w+")
        self.popen = subprocess.Popen(
            ARGV[client.driver]() + [client.key, address], env=clean_env(), cwd=case.dir,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.errors,
            preexec_fn=die_with_parent)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.popen.kill()
        self.popen.wait()
        for f in (self.popen.stdin, self.popen.stdout, self.errors):
            f.close()

    def fail(self, request, what):
        self.errors.seek(0)
        raise AssertionError("%s, asked for %r: %s\n%s" % (
            self.name, request, what, self.errors.read()[-2000:]))

    def line(self, request):
        end = time.monotonic() + ANSWER_S
        while b"\n" not in self.buffer:
            left = end - time.monotonic()
            if left <= 0 or not select.select([self.popen.stdout], [], [], left)[0]:
                self.fail(request, "no answer within %d s" % ANSWER_S)
            data = os.read(self.popen.stdout.fileno(), 1 << 16)
            if not data:
                self.fail(request, "the driver ended")
            self.buffer += data
        line, _, self.buffer = self.buffer.partition(b"\n")
        return line.decode()

    def ask(self, *words):
        """[(kind, text)], as clients/README.md has them."""
        request = " ".join(map(str, words))
        try:
            self.popen.stdin.write(request.encode() + b"\n")
            self.popen.stdin.flush()
        except BrokenPipeError:
            self.fail(request, "the driver ended")
        line = self.line(request)
        fields = [f.partition(":")[::2] for f in line.split("\t")]
        if not all(len(kind) == 1 for kind, _ in fields):
            self.fail(request, "expected fields KIND:TEXT, found %r" % line)
        return fields


# ---- setups -------------------------------------------------------------------------------------


class Sidecar:
    """Our own. ids and values: whether it has IDs, and whether it keeps what is written. A setup with
    a column of its own says there that all went well; the others' rows are those of CLIENTS.md."""

    ids, values, column = True, False, None

    def __init__(self, case, client, options=None):
        self.proc = case.sidecar("static:%d" % (len(client.name) + 1), {"workers.spare": 0,
                                                                       **(options or {})})
        mc = client.server == "memcached"
        self.port = self.proc.mc_port if mc else self.proc.resp_port
        self.sock = self.proc.mc_sock if mc else self.proc.resp_sock

    def restart(self):
        self.proc.stop()
        self.proc.start()


class Real:
    """The server that the client was made for."""

    ids, values, column = False, True, None

    def __init__(self, case, client):
        self.proc = case.memcached() if client.server == "memcached" else case.redis()
        self.port = self.proc.port

    def restart(self):
        self.proc.kill()
        self.proc.start()


class Through(Sidecar):
    """Ours in front of the real server: IDs from the one, values from the other."""

    values, column = True, "real server behind"

    def __init__(self, case, client):
        self.real = Real(case, client)
        super().__init__(case, client, {
            "upstream." + client.server: "tcp://127.0.0.1:%d" % self.real.port})


SETUPS = (Real, Sidecar, Through)


def connected(port):
    """The ports of those who are connected to a port of this machine: which connections there are."""
    with open("/proc/net/tcp") as f:
        rows = [line.split()[1:4] for line in f]
    return {there for here, there, state in rows
            if state == "01" and here.endswith(":%04X" % port)}
