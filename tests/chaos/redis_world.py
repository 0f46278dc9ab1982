"""One Redis without replicas, each sidecar behind a proxy of its own."""

import glob
import json
import os
import shutil

import faults
import procs
import wire
from procs import Proc, until
from proxy import Proxy
from schedule import table
from world import POOL, RANGE, World

fault, FAULTS = table()
CLOCK_S = 0.4  # Redis's clock, off by this much each way: less than S - half a leap second


def key(pool, what):
    return "sidflake:{%s}:%s" % (pool, what)


class Redis(Proc):
    """A redis-server with a clock of its own, and its files in a directory of its own."""

    def __init__(self, world, name, args=(), host=None, port=None):
        self.world = world
        self.host = host or world.host(0)
        self.port = port or world.free_port()
        self.slot = world.clocks.slot()
        self.home = world.path(name + ".d")
        self.sock = world.path(name + ".sock")
        os.mkdir(self.home)
        super().__init__(world, name, self.host.wrap([
            "redis-server", *args, "--port", str(self.port), "--bind", self.host.address,
            "--unixsocket", self.sock, "--dir", self.home, "--save", "", "--protected-mode", "no",
            "--repl-timeout", "1000000000", "--loglevel", "notice"]),
            env=world.clocks.env(self.slot))

    def start(self, extra_args=("--appendonly", "yes")):
        """Waits until it answers, unless it is a slow one."""
        super().start(extra_args)
        until(self.name + " answers", self.up, 20)
        return self

    def up(self):
        assert self.running(), "%s ended: %s" % (self.name, self.log()[-600:])
        try:
            return self.ask("PING") == b"PONG"
        except (OSError, wire.Closed, wire.Error):
            return False

    def ask(self, *args, timeout=5):
        with wire.Resp(self.sock, timeout) as r:
            reply = r.ask(*args)
        if isinstance(reply, wire.Error):
            raise reply
        return reply

    def set_clock(self, seconds):
        self.world.clocks.set(self.slot, seconds)

    def wipe(self):
        shutil.rmtree(self.home)
        os.mkdir(self.home)

    def aof(self):
        """The file that grows, or None."""
        found = glob.glob(os.path.join(self.home, "appendonlydir", "*.incr.aof"))
        return max(found, key=os.path.getmtime) if found else None


class RedisWorld(World):
    name = "redis"
    numbers = True
    skews = (0, -0.5, 0.5)

    def setup(self):
        self.mount_small("full", 512)  # two state_dirs, with pages set aside
        self.redis = Redis(self, "redis").start()
        self.proxies = [Proxy(self.free_port(), ("127.0.0.1", self.redis.port),
                              self.rng.random()) for _ in range(self.nsidecars + 1)]
        self.coordinator = "redis://127.0.0.1:%d/0" % self.redis.port
        self.init("--workers", "0-%d" % (RANGE - 1))
        self.check_clocks()
        self.add_sidecars()

    def url(self, i):
        return "redis://127.0.0.1:%d/0" % self.proxies[i].listener.getsockname()[1]

    @property
    def faults(self):
        return faults.FAULTS + FAULTS

    def init(self, *mode):
        """The operator makes the pool."""
        status, text = self.ctl("pool", "init", "--coordinator", self.coordinator, *mode,
                                *self.pool_args())
        if status not in (0, 1):
            self.note("pool init %s: status %d: %s" % (" ".join(mode), status, text))
        return status == 0

    def pool_args(self):
        return POOL

    def check_clocks(self):
        """The shim moves the server's clock; a clock that stays true would prove nothing."""
        def seen():
            s, us = self.redis.ask("TIME")
            return int(s) + int(us) / 1e6 - self.clocks.now()
        self.redis.set_clock(-30)
        procs.until("redis-server's clock is 30 s behind", lambda: -31 < seen() < -29, 2)
        self.redis.set_clock(0)
        procs.until("redis-server's clock is right", lambda: -1 < seen() < 1, 2)

    def heal(self):
        for p in self.proxies:
            p.straight()
        if not self.redis.running():
            self.redis.start()
        if self.lost():
            self.recover_now()

    def lost(self):
        return self.server().ask("EXISTS", key("default", "h")) == 0

    def server(self):
        """The one that the sidecars talk to."""
        return self.redis

    def workers_of(self, s):
        """The workerIds that a sidecar holds, by what it told the coordinator."""
        try:
            flat = self.server().ask("HGETALL", key(self.pool_of(s.index), "who"))
        except (OSError, wire.Closed, wire.Error):
            return []
        return [int(w) for w, who in zip(flat[::2], flat[1::2])
                if json.loads(who).get("pid") == s.pid]

    def workers(self, _pool):
        return range(self.next_range)

    def prefer(self, workers, s):
        """In the pool of that sidecar the last one comes to the head of the queue, which is but a hint, the others behind it:
        for when they are free."""
        try:
            for worker in workers:
                self.server().ask("LPUSH", key(self.pool_of(s.index), "free"), str(worker))
        except (OSError, wire.Closed, wire.Error) as e:
            self.note("the queue could not be changed: %r" % e)

    def close(self):
        for p in getattr(self, "proxies", []):
            p.close()
        super().close()


# ---- the server --------------------------------------------------------------------------------

@fault("Redis SIGKILL, restart with appendfsync always", "coordinator")
def always(w):
    w.redis.ask("CONFIG", "SET", "appendfsync", "always")
    yield 0.5
    w.redis.kill()
    yield w.rng.uniform(0, 2)
    w.redis.start()


@fault("Redis SIGKILL, restart with appendfsync everysec, the last second lost",
       "coordinator sidecar:* link:0", 2)
def everysec(w):
    """A killed process loses nothing that it wrote; a machine that loses its power does. What is
    claimed in that second, somebody else claims again right after it."""
    path = w.redis.aof()
    size = os.path.getsize(path)
    yield from claims_lost(w, 0.6)
    w.redis.kill()
    os.truncate(path, size)
    yield w.rng.choice((0, 0, 0.5, 2))
    w.redis.start()
    yield from claims_again(w)


def claims_lost(w, seconds):
    """A claim, and then silence: what was granted is known to its holder alone."""
    if w.rng.random() < 0.75:
        w.sidecars[0].renew_life()
    yield w.rng.uniform(0.3, seconds)
    silence(w)


def silence(w):
    """The first sidecar's requests are lost, until claims_again is over."""
    w.proxies[0].lose_requests = w.rng.random() < 0.75


def claims_again(w):
    try:
        if w.rng.random() < 0.75:
            w.rng.choice(w.sidecars[1:]).renew_life()
        yield 1
    finally:
        w.proxies[0].straight()


@fault("Redis SIGKILL, restart without persistence, pool made again",
       "coordinator sidecar:* link:0")
def nothing_kept(w):
    silence(w)
    w.redis.kill()
    w.redis.wipe()
    yield w.rng.uniform(0, 1)
    w.redis.start()
    yield w.rng.uniform(0, 1.5)
    yield from w.made_again()
    yield from claims_again(w)


@fault("Redis restored from an old RDB", "coordinator sidecar:* link:0", 2)
def old_rdb(w):
    w.redis.ask("SAVE")
    rdb = os.path.join(w.redis.home, "dump.rdb")
    kept = w.path("old.rdb")
    shutil.move(rdb, kept)
    yield from claims_lost(w, w.rng.choice((0.6, 5)))
    w.redis.kill()
    w.redis.wipe()
    shutil.move(kept, rdb)
    yield w.rng.choice((0, w.rng.uniform(0, 1)))
    w.redis.start(("--appendonly", "no"))
    yield from claims_again(w)
    w.redis.ask("CONFIG", "SET", "appendonly", "yes")
    yield 2  # the first rewriting of the AOF


@fault("FLUSHALL, then pool init --after-loss", "coordinator sidecar:* link:0")
def flushall(w):
    silence(w)
    w.redis.ask("FLUSHALL")
    yield w.rng.uniform(0, 1.5)
    yield from w.after_loss()
    yield from claims_again(w)


@fault("DEL of the queue or the index, then pool check --repair", "coordinator")
def hints_lost(w):
    pool = w.rng.choice(w.pools)
    w.redis.ask("DEL", key(pool, w.rng.choice(("free", "exp"))))
    yield w.rng.uniform(0.5, 2)
    status, text = w.ctl("pool", "check", "--repair", "--coordinator", w.coordinator, "--pool", pool)
    if status != 0:
        w.fail("pool check --repair: expected it to repair, found status %d: %s" % (status, text))
    yield 0.2


@fault("doubled entries in the queue", "coordinator")
def doubled(w):
    pool = w.rng.choice(w.pools)
    for worker in w.workers(pool):
        w.redis.ask(w.rng.choice(("LPUSH", "RPUSH")), key(pool, "free"), str(worker))
    yield 1


@fault("CLIENT PAUSE", "coordinator")
def client_pause(w):
    ms = w.rng.randint(300, 3000)
    w.redis.ask("CLIENT", "PAUSE", str(ms), w.rng.choice(("ALL", "WRITE")))
    yield ms / 1000 + 0.3


@fault("Redis SIGSTOP, SIGCONT", "coordinator")
def redis_stopped(w):
    w.redis.pause()
    try:
        yield w.rng.uniform(0.5, 3)
    finally:
        w.redis.resume()
    yield 0.5


@fault("clock of Redis, within the assumption", "server-clock", 2)
def redis_clock(w):
    for _ in range(3):
        w.redis.set_clock(w.rng.choice((-CLOCK_S, -0.1, 0.1, CLOCK_S)))
        yield w.rng.uniform(0.3, 1.5)
    w.redis.set_clock(0)


# ---- the link to it ----------------------------------------------------------------------------

def spoilt(w, s, seconds=(1, 3), **how):
    proxy = w.proxies[s.index]
    for name, value in how.items():
        setattr(proxy, name, value)
    try:
        yield w.rng.uniform(*seconds)
    finally:
        proxy.straight()
    yield 0.2


@fault("proxy: delays", "link")
def delays(w, s):
    yield from spoilt(w, s, delay_s=(0, w.rng.choice((0.05, 0.3, 0.6))))


@fault("proxy: requests arrive after their sender gave up", "link", 2)
def late(w, s):
    yield from spoilt(w, s, (1.5, 4), hold_s=w.rng.uniform(0.5, 3))


@fault("proxy: cuts", "link")
def cuts(w, s):
    yield from spoilt(w, s, cut=0.5)


@fault("proxy: half-closes", "link")
def half_closes(w, s):
    yield from spoilt(w, s, half_close=0.5)


@fault("proxy: replies lost", "link", 2)
def replies_lost(w, s):
    yield from spoilt(w, s, lose_replies=True)


@fault("proxy: requests lost", "link")
def requests_lost(w, s):
    yield from spoilt(w, s, lose_requests=True)


@fault("proxy: old requests sent again", "link", 2)
def replayed(w, s):
    for _ in range(w.rng.randint(1, 4)):
        w.proxies[s.index].replay()
        yield w.rng.uniform(0.1, 0.5)
