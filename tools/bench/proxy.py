"""Rows of the sidecar as a proxy: the same server directly, through nutcracker, and through us."""

import contextlib
import csv
import io
import os
import subprocess

from lab import VALUE, Failure, Server, ask, await_true, free_port, which
from report import Row, short
from throughput import Contest

KEY = "plain:k"  # no ID
KEYS = 1000  # of memcached, in turn: KEY#0, KEY#1 ...
TESTS = ("set", "get", "incr", "lpush", "lpop", "sadd", "hset", "mset")
KINDS = ("get", "set", "cas")
US, PEER = "sidflake", "nutcracker"
WANTED = {1: 1.0}  # times nutcracker's rate, by depth; pipelined there is no target


class RedisBenchmark(Contest):
    """Drives with redis-benchmark; seconds is the number of requests."""

    def measure(self, server, address, kind, seconds, connections, depth):
        cpu = server.cpu_seconds()
        done = subprocess.run(
            [which("redis-benchmark"), "-h", "127.0.0.1", "-p", address.rsplit(":", 1)[1], "-t",
             kind, "-n", str(seconds), "-c", str(connections), "-P", str(depth), "--csv"],
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=False)
        rows = [r for r in csv.reader(io.StringIO(done.stdout)) if len(r) == 8 and r[0] != "test"]
        if done.returncode != 0 or len(rows) != 1:
            raise Failure(f"expected one line of redis-benchmark -t {kind}, found {done.stdout!r}")
        return {"rate": float(rows[0][1]), "p50_us": float(rows[0][4]) * 1000,
                "p99_us": float(rows[0][6]) * 1000,
                "cpu_us": (server.cpu_seconds() - cpu) / seconds * 1e6}


class Ways:
    """To the same server: [(name, whose processor time counts, address)] by protocol."""

    def __init__(self, lab):
        which(PEER)
        self.lab = lab
        self.redis, mem = lab.redis("upstream"), lab.memcached()
        self.memcached = getattr(mem, "second", mem)
        self.peer = lab.once("nutcracker", self.nutcracker)
        self.side = lab.once("proxying", self.sidecar)
        self.servers = {"direct": {"redis": self.redis, "mc": self.memcached},
                        PEER: {"redis": self.peer, "mc": self.peer},
                        US: {"redis": self.side, "mc": self.side}}
        for name in (PEER, US):
            self.store(self.servers[name])

    def nutcracker(self):
        """As it comes: one connection to each server."""
        ports = {p: free_port() for p in ("redis", "mc")}
        path = os.path.join(self.lab.dir, "nutcracker.yml")
        with open(path, "w") as f:
            for protocol, server in (("redis", self.redis), ("mc", self.memcached)):
                f.write(f"{protocol}:\n  listen: 127.0.0.1:{ports[protocol]}\n"
                        f"  redis: {'true' if protocol == 'redis' else 'false'}\n"
                        f"  servers:\n   - {server.tcp[protocol][6:]}:1\n")
        return Server(self.lab, "nutcracker",
                      [which(PEER), "-c", path, "-a", "127.0.0.1", "-s", str(free_port())],
                      tcp={p: f"tcp://127.0.0.1:{n}" for p, n in ports.items()})

    def sidecar(self):
        return self.lab.sidecar("sidflake-proxy", sets=[
            f"upstream.redis={self.redis.tcp['redis']}",
            f"upstream.memcached={self.memcached.tcp['mc']}"]).ready()

    @contextlib.contextmanager
    def apart(self, apart):
        """The load on a processor of its own, and servers and proxies on the others; or, without
        apart, all wherever the kernel runs them."""
        every = os.sched_getaffinity(0)
        load = {min(every)} if apart else every
        for name in self.servers:
            for server in self.servers[name].values():
                server.confine(every - load or every)
        os.sched_setaffinity(0, load)  # redis-benchmark and our own generator inherit it
        try:
            yield
        finally:
            os.sched_setaffinity(0, every)

    @staticmethod
    def store(servers):
        """What the gets find, and first cas tokens that are old ones."""
        keys = [KEY, *(f"{KEY}#{i}" for i in range(KEYS))]
        text = b"".join(f"set {k} 0 0 {len(VALUE)} noreply\r\n{VALUE}\r\n".encode() for k in keys)
        text += f"set {KEY} 0 0 {len(VALUE)}\r\n{VALUE}\r\n".encode()
        resp = f"SET {KEY} {VALUE}\r\n".encode()
        for protocol, request, answer in (("mc", text, b"STORED\r\n"), ("mc", text, b"STORED\r\n"),
                                          ("redis", resp_array(resp), b"+OK\r\n")):
            server = servers[protocol]
            await_true(f"{server.name} to pass a set on", lambda s=server, p=protocol, r=request,
                       a=answer: s.check() and ask(s.tcp[p], r, b"\r\n") == a)

    def enter(self, contest, protocol, what, kind, **load):
        for name, servers in self.servers.items():
            server = servers[protocol]
            contest.enter(f"{name} {what}", server, server.tcp[protocol], kind, **load)


def resp_array(line):
    words = line.split()
    return b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(w), w) for w in words)


# ---- throughput

def rates(row, c, whats, bound):
    """Targets, if there is a bound, and the table of a contest of three entrants for each of
    whats."""
    table = [["", "direct", PEER, US, "/ direct", f"us each: {PEER}", US]]
    for what in whats:
        direct, peer, us = (f"{n} {what}" for n in ("direct", PEER, US))
        if bound:
            c.target(row, us, peer, bound, cost=False)
        table.append([what, *(short(c.median(n)) + "/s" for n in (direct, peer, us)),
                      f"{c.ratio(us, direct)['median']:.2f} x",
                      *(f"{c.median(n, 'cpu_us'):.2f}" for n in (peer, us))])
    cost = [c.ratio(f"{PEER} {w}", f"{US} {w}", "cpu_us")["median"] for w in whats]
    row.table(table)
    row.note(f"{US} / {PEER}, requests per second of the proxy's processor time: "
             f"{min(cost):.2f}-{max(cost):.2f} x")
    row.data["results"] = c.results
    return row


def where(depth, apart):
    return ("unpipelined" if depth == 1 else f"pipeline {depth}") + (
        ", the load on a processor of its own" if apart else "")


def redis_rates(ways, depth, apart):
    tests = ("set", "get", "mset") if ways.lab.quick else TESTS
    row = Row("proxy", "redis-benchmark -t " + ",".join(tests) + ", 50 TCP connections, "
              + where(depth, apart))
    requests = {1: 30_000, 16: 400_000}[depth]  # at shorter ones it is not in its stride yet
    c = RedisBenchmark(ways.lab, 3 if ways.lab.quick else 7, requests, connections=50, depth=depth)
    for test in tests:
        ways.enter(c, "redis", test, test)
    with ways.apart(apart):
        c.run()
    return rates(row, c, tests, WANTED.get(depth))


def memcached_rates(ways, depth, apart):
    row = Row("proxy", "memcached " + "/".join(KINDS) + ", 50 TCP connections, "
              + where(depth, apart))
    c = Contest(ways.lab, *((3, 0.2) if ways.lab.quick else (7, 0.3)), connections=50, depth=depth,
                key=KEY, keys=KEYS)
    for kind in KINDS:
        ways.enter(c, "mc", kind, "mc-" + kind)
    with ways.apart(apart):
        c.run()
    return rates(row, c, KINDS, WANTED.get(depth))


# ---- latency, memory

def added(ways):
    """What a proxy adds to a GET."""
    row = Row("proxy", "latency of a GET passed through, TCP, unpipelined: us")
    table = [["", "p50", "p99", "p99.9"]]
    row.data["results"] = {}
    for connections in (1, 50):
        c = Contest(ways.lab, *((3, 0.2) if ways.lab.quick else (7, 0.6)), connections=connections,
                    depth=1, key=KEY)
        ways.enter(c, "redis", "GET", "resp-get")
        ways.enter(c, "mc", "get", "mc-get", keys=KEYS)
        c.run()
        for name in c.entrants:
            table.append([f"{name}, {connections} connection{'s' if connections > 1 else ''}",
                          *(f"{c.median(name, p):.0f}" for p in ("p50_us", "p99_us", "p999_us"))])
        row.data["results"][connections] = c.results
    row.table(table)
    return row


def resident_kib(server):
    with open(f"/proc/{server.pid}/status") as f:
        return next(int(line.split()[1]) for line in f if line.startswith("VmRSS:"))


def memory(ways):
    row = Row("proxy", "resident memory after all of that")
    us, peer = resident_kib(ways.side), resident_kib(ways.peer)
    row.target(f"{US} / {PEER}", us / peer, 0.5, False, " x",
               f"{us / 1024:.1f} / {peer / 1024:.1f} MiB")
    row.data = {"sidflake_kib": us, "nutcracker_kib": peer}
    return row


def proxy(lab):
    ways = Ways(lab)
    for apart in (False, True) if len(os.sched_getaffinity(0)) > 1 else (False,):
        for depth in (1, 16):
            yield redis_rates(ways, depth, apart)
            yield memcached_rates(ways, depth, apart)
    yield added(ways)
    yield memory(ways)
