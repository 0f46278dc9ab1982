"""Very many hostile connections at once, on all listeners, and upgrades in place meanwhile: bystanders
lose nothing, and everything comes back.

STORM_CONNECTIONS, STORM_UPGRADES and STORM_SECONDS make it larger, `make storm` does so; SEED
replays the choices, not the timing.
"""

import multiprocessing
import os
import random
import re
import resource
import selectors
import socket
import subprocess
import sys
import threading
import time

import harness
from procs import until
from runner import Skip, test
from test_upgrade import upgrade

sys.path.append(os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "differential"))
import bystanders  # noqa: E402
from grammar import Maker  # noqa: E402
from memcached_lines import Meta, Text  # noqa: E402
from memcached_packets import Packets  # noqa: E402
from resp_requests import Resp  # noqa: E402
from worlds import REDIS_GONE, Memcached  # noqa: E402

CONNECTIONS = int(os.environ.get("STORM_CONNECTIONS", "300"))
UPGRADES = int(os.environ.get("STORM_UPGRADES", "2"))
SECONDS = float(os.environ.get("STORM_SECONDS", "6"))
SEED = int(os.environ.get("SEED", "0")) or random.randrange(1 << 32)
PROCESSES = 2    # that attack
SHARED = 3       # links that stay: one to Redis, to memcached one for each of its protocols
BACK_KIB = 8192  # more than before the storm that may still be resident after it


class Http(Maker):
    PATHS = (b"/", b"/", b"/metrics", b"/livez", b"/readyz?verbose", b"/v1/id/orders", b"/v1/id/orders?n=100",
             b"/v1/decode/1", b"/nosuch", b"/%2e%2e", b"/" + 5000 * b"x")
    VERBS = (b"GET", b"GET", b"HEAD", b"POST", b"get", b"GETX")
    VERSIONS = (b"HTTP/1.1", b"HTTP/1.1", b"HTTP/1.0", b"HTTP/2", b"")
    HEADERS = (b"Accept: text/plain", b"Connection: close", b"Content-Length: 10", b"Content-Length: -1",
               b"Transfer-Encoding: chunked", b"Accept: application/json", b"Authorization: Basic eDp4", b":",
               b"Origin: http://evil.example", b"X: " + 9000 * b"y", b" folded")

    def one(self):
        first = [self.rng.choice(words) for words in (self.VERBS, self.PATHS, self.VERSIONS)]
        lines = [b" ".join(first), b"Host: localhost"]
        lines += [self.rng.choice(self.HEADERS) for _ in range(self.pick(0, 0, 1, 2))]
        return b"\r\n".join(lines) + b"\r\n\r\n"


class Hostile:
    """A process's connections. Each sends random requests in random pieces, reads or does not, and
    is gone at random."""

    def __init__(self, s, seed, count, until_time):
        self.rng, self.count, self.until = random.Random(seed), count, until_time
        tcp = [("127.0.0.1", p) for p in (s.mc_port, s.resp_port, s.http_port)]
        self.ways = [(m, a) for m in (Text, Meta, Packets) for a in (tcp[0], s.mc_sock)] + \
            [(Resp, a) for a in (tcp[1], s.resp_sock)] * 3 + [(Http, tcp[2]), (Http, s.http_sock)]
        self.selector, self.socks, self.opened, self.stolen = selectors.DefaultSelector(), [], 0, b""

    def open(self):
        maker, address = self.rng.choice(self.ways)
        sock = socket.socket(socket.AF_UNIX if isinstance(address, str) else socket.AF_INET)
        sock.settimeout(5)
        try:
            sock.connect(address)
        except OSError:
            sock.close()
            return
        sock.setblocking(False)
        self.opened += 1
        tag = b"~%08x" % self.rng.getrandbits(32)
        self.socks.append([sock, maker(self.rng.getrandbits(64), tag), b""])
        if self.rng.random() < 0.8:  # the others never read
            self.selector.register(sock, selectors.EVENT_READ)

    def close(self, item):
        if item[0].fileno() in self.selector.get_map():
            self.selector.unregister(item[0])
        item[0].close()
        self.socks.remove(item)

    def act(self, item):
        sock, maker, left = item
        left = left or b"".join(maker.make())
        n = self.rng.choice((1, 10, 100, 1000, 1 << 20))
        try:
            item[2] = left[sock.send(left[:n]):]
        except BlockingIOError:
            item[2] = left
        except OSError:
            self.close(item)
            return
        if self.rng.random() < 0.02:
            self.close(item)

    def listen(self):
        for key, _ in self.selector.select(0.001):
            try:
                data = key.fileobj.recv(1 << 16)
            except BlockingIOError:
                continue
            except OSError:
                data = b""
            if bystanders.SECRET in data:
                at = data.find(bystanders.SECRET)
                self.stolen = data[max(0, at - 100):at + 100]
            if not data:
                self.selector.unregister(key.fileobj)

    def run(self):
        while time.monotonic() < self.until and not self.stolen:
            for _ in range(min(50, self.count - len(self.socks))):
                self.open()
            for item in self.rng.sample(self.socks, min(40, len(self.socks))):
                self.act(item)
            self.listen()
        return self.opened, self.stolen


def attack(pipe, *args):
    hostile = Hostile(*args)
    pipe.send(hostile.run())
    pipe.close()
    os._exit(0)


class Innocent(threading.Thread):
    """The bystanders of both protocols, on both kinds of sockets, each with IDs and with keys of the
    real servers."""

    def __init__(self, s, late):
        super().__init__(daemon=True)
        self.ids, self.stop, self.trouble = set(), threading.Event(), None
        kinds = (bystanders.TextBystander, bystanders.PacketBystander, bystanders.RespBystander)
        self.all, self.selector = [], selectors.DefaultSelector()
        for i, kind in enumerate(kinds * 2):
            resp = kind is bystanders.RespBystander
            unix, port = (s.resp_sock, s.resp_port) if resp else (s.mc_sock, s.mc_port)
            address = unix if i < 3 else ("127.0.0.1", port)
            w = kind(address, b"storm%d" % i, SEED + i, 1 + 3 * (i % 3), self.ids)
            w.pause, w.late = 0.002, late
            self.all.append(w)
            self.selector.register(w.sock, selectors.EVENT_READ, w)

    def run(self):
        try:
            while not self.stop.is_set() or any(w.due for w in self.all):
                for key, _ in self.selector.select(0.002):
                    key.data.readable(time.monotonic())
                for w in self.all:
                    if w.due or not self.stop.is_set():
                        w.tick(time.monotonic())
        except Exception as e:  # of any kind: what went wrong is told
            self.trouble = "%s: %s" % (type(e).__name__, e)

    def close(self):
        for w in self.all:
            w.close()

    def replies(self):
        return sum(w.replies for w in self.all)


def room_for(connections):
    """Descriptors for both ends of a connection and a link behind it, in each of the processes."""
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    want = 3 * connections + 500
    if hard < want:
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (want, want))
        except (OSError, ValueError):
            raise Skip("%d descriptors are needed, RLIMIT_NOFILE gives %d" % (want, hard))
    else:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def descriptors(s):
    return len(os.listdir("/proc/%d/fd" % s.pid))


def connections(s):
    """What is counted of them, and what the kernel knows."""
    ours = subprocess.run(["ss", "-axtpeno"], stdout=subprocess.PIPE, text=True, check=False).stdout
    lines = ["%d descriptors" % descriptors(s)]
    lines += [line for line in s.http("/metrics").text.splitlines()
              if "_connections" in line and line[0] != "#"]
    lines += [line for line in ours.splitlines() if "pid=%d," % s.pid in line]
    return "\n".join(lines[:200])


def ends(s):
    """Why connections were closed, and links to the servers were lost."""
    return [line for line in s.http("/metrics").text.splitlines()
            if re.match(r"sidflake_(connections_ended|upstream_errors|upstream_unavailable)_?\w*\{.*[^ ] [1-9]", line)]


def storm(case, s, innocent):
    """Attacks and upgrades; returns how many connections there were."""
    context, attackers = multiprocessing.get_context("fork"), []
    stop_at = time.monotonic() + SECONDS
    for i in range(PROCESSES):
        mine, theirs = context.Pipe()
        args = (theirs, s, SEED + i, CONNECTIONS // PROCESSES, stop_at)
        p = context.Process(target=attack, args=args, daemon=True)
        p.start()
        theirs.close()
        attackers.append((p, mine))
    innocent.start()
    for i in range(UPGRADES):
        time.sleep(max(0.2, (stop_at - time.monotonic()) / (UPGRADES - i + 1)))
        assert not innocent.trouble, "%s; %s" % (innocent.trouble, ends(s))
        upgrade(s, timeout=60)
    opened = 0
    for p, mine in attackers:
        assert mine.poll(SECONDS + 120), "an attacking process did not end"
        count, stolen = mine.recv()
        assert not stolen, "a hostile client got what is a bystander's: %r" % stolen
        opened += count
        p.join(30)
    return opened


def started(case):
    """A sidecar with both servers behind it, and listeners of both kinds for each protocol."""
    redis_args = ["--maxclients", "%d" % (2 * CONNECTIONS + 100)]
    for name in REDIS_GONE:
        redis_args += ["--rename-command", name, ""]
    s = case.sidecar("static:7", {
        "upstream.memcached": "unix://" + Memcached(case, "b").sock,
        "upstream.redis": "unix://" + case.redis(args=redis_args).sock,
        # Who comes by TCP is of one party here, bystanders too: where these are reached, one of it makes room.
        "upstream.connections": 4000, "log.level": "info",
        "limits.connections": max(4096, 2 * CONNECTIONS)}, wait=False)
    s.kill()
    s.http_sock = case.path("h")
    s.options["listen.http"] = s.options["listen.http"] + ["unix://" + s.http_sock]
    s.write_conf()
    return s.start()


@test("hostile connections on all listeners, and upgrades meanwhile: bystanders lose nothing",
      timeout=int(SECONDS) + 300)
def all_at_once(case):
    print("# SEED=%d" % SEED, flush=True)
    room_for(CONNECTIONS)
    s = started(case)
    slow = harness.sanitized()
    before = descriptors(s)
    innocent = Innocent(s, 60 if slow else 15)
    rss = s.rss_kib()
    opened = storm(case, s, innocent)
    time.sleep(0.5)
    innocent.stop.set()
    innocent.join(60)
    assert not innocent.trouble, "SEED=%d: %s; %s" % (SEED, innocent.trouble, ends(s))
    assert min(w.replies for w in innocent.all) > 3, [w.replies for w in innocent.all]
    s.assert_running()
    innocent.close()
    try:
        until("no descriptors but the %d of before, and %d shared links" % (before, SHARED),
              lambda: descriptors(s) <= before + SHARED, 30)
    except AssertionError as e:
        raise AssertionError("SEED=%d: %s: %s" % (SEED, e, connections(s))) from e
    if not slow:  # ASan keeps what is freed
        until("memory comes back to %d KiB and %d" % (rss, BACK_KIB),
              lambda: s.rss_kib() <= rss + BACK_KIB, 75, 0.1)
    print("# %d connections, %d upgrades; bystanders had %d replies, %d IDs; %d KiB resident before, %d "
          "after" % (opened, UPGRADES, innocent.replies(), len(innocent.ids), rss, s.rss_kib()))
    assert s.stop(60) == 0
