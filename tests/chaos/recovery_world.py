"""Two pools of one ID space, unlike the default in all that a pool is made with. Whatever is lost of
them is made again by nothing but the command that a sidecar's log has, run by a shell.

Mixed into a topology, whose coordinator and faults these are.

Invariants
  - Losses are what these are about: they come more often than in other topologies.
  - The operator knows nothing of the pools. What he runs is in a log, as it stands there; of pools
    with a short settle he only sets that again, since a pool made again has none.
"""

import functools
import json
import os
import re
import subprocess

import procs
import redis_world
from redis_world import RedisWorld
from replicated_world import ReplicatedWorld
from schedule import Fault, table
from sqlite_world import SqliteWorld
from world import BUILD, GRACE_S, SKEW_S

redis_fault, REDIS_FAULTS = table()

MINUTE, HOUR = 60, 3600
SHARED = ("--epoch", "2025-06-01T00:00:00Z", "--first-horizon", "16s", "--mature-after", "21s",
          "--max-skew", "%ds" % SKEW_S, "--grace", "%ds" % GRACE_S)
POOLS = {"left": ("--workers", "100-105", "--horizon", "24h"),  # few, so that they change hands
         "right": ("--workers", "106-111", "--horizon", "10m")}
WORD = re.compile(r"`(sidflakectl pool reopen --nothing-lost [^`]*)`")
TOLD = re.compile(r"`(sidflakectl pool init [^`]* --after-loss [^`]*--workers [^`]*)`")
FRESH_S, GIVE_UP_S = 12, 60  # that a log has for a line about this loss; for any
LOSSES = re.compile("FLUSHALL|without persistence|old RDB|last second|pool of the two|deleted|set back|"
                    "old copy")
REWINDS = re.compile("old RDB|last second")


class Recovery:
    numbers = False  # of two pools there are two of each
    lane = 4
    pools = tuple(POOLS)
    more_faults = ()
    settle = None
    forgotten_s = 24 * HOUR + 2 * SKEW_S + GRACE_S + 1
    hurry_s = (3 * HOUR, 12 * HOUR)

    def __init__(self, directory, rng, say, sidecars, *rest):
        super().__init__(directory, rng, say, max(4, sidecars), *rest)
        self.made = {}  # pool -> what pool status said of it at first
        self.read = {}  # (pool, path of a log) -> bytes that tell of losses which are over
        self.unlike = []  # what is wrong with pools that were made again

    def workers(self, _pool):
        """Those of both: none is granted that is not the pool's own."""
        return range(100, 112)

    def lost(self):
        return True  # or not: each pool is asked

    def init(self, *_mode):
        for name, own in POOLS.items():
            status, text = self.ctl("pool", "init", "--coordinator", self.coordinator, "--pool",
                                    name, *own, *SHARED, *self.more_args())
            assert status == 0, text
            self.made[name] = self.describe(name)
        return True

    def more_args(self):
        return ()

    def describe(self, name):
        """All that a pool was made with; None where there is none; or why that cannot be told."""
        status, text = self.ctl("pool", "status", "--json", "--coordinator", self.coordinator,
                                "--pool", name)
        if status == 0:
            told = json.loads(text)
            return told["identity"], told["epoch"], {
                k: v for k, v in told["parameters"].items() if k != "settle_ms"}
        return None if "no pool" in text else text

    @functools.cached_property
    def faults(self):
        return [Fault(f.name, " ".join(f.on), f.run, f.weight * (6 if LOSSES.search(f.name) else 1))
                for f in [*super().faults, *self.more_faults]]

    def bet(self, name):
        if self.settle:
            status, text = self.ctl("pool", "set", "--settle", self.settle, "--coordinator",
                                    self.coordinator, "--pool", name)
            if status != 0:
                self.note("pool set: status %d: %s" % (status, text))

    # ---- what the logs say ---------------------------------------------------------------------

    def commands(self, name, fresh, told=TOLD):
        """(sidecar, command) of each whose log has one; fresh: since the latest recovery."""
        found = []
        for s in self.sidecars:
            if self.pool_of(s.index) == name:
                with open(s.log_path, errors="replace") as f:
                    f.seek(self.read.get((name, s.log_path), 0) if fresh else 0)
                    lines = told.findall(f.read())
                found += [(s, lines[-1].replace('\\"', '"'))] if lines else []
        return found

    def all_read(self, name):
        for s in self.sidecars:
            self.read[name, s.log_path] = os.path.getsize(s.log_path)

    def shell(self, s, command):
        """As somebody would who copies it from the log, at a terminal of that sidecar's host, and
        says yes."""
        env = procs.clean_env(self.clocks.env(self.steady))
        env.update(PATH=BUILD + ":" + env["PATH"], SIDFLAKE_COORDINATOR_URL=self.coordinator,
                   SIDFLAKE_COORDINATOR_POOL=self.pool_of(s.index))
        ours, terminal = os.openpty()
        try:
            os.write(ours, b"y\n")
            r = subprocess.run(s.host.wrap(["sh", "-c", command]), env=env, text=True, timeout=30,
                               stdin=terminal, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        finally:
            os.close(ours)
            os.close(terminal)
        self.note("%s: `%s`: status %d: %s" % (s.name, command, r.returncode, r.stdout.strip()))
        return r.returncode

    def spoilt(self, command):
        """With another value of an option: to see that it is noticed."""
        if not self.spoil:
            return command
        option, value = self.spoil.split()
        return re.sub(option + " [^ ]+", option + " " + value, command)

    # ---- recovery ------------------------------------------------------------------------------

    def after_loss(self):
        for name in POOLS:
            yield from self.recover(name)

    def made_again(self):
        yield from self.after_loss()

    def recover(self, name):
        lost = False
        for tenth in range(GIVE_UP_S * 10):
            now = self.describe(name)
            if now and not isinstance(now, str):
                break
            lost = lost or now is None
            fresh = tenth < FRESH_S * 10
            told = self.commands(name, fresh) if now is None else []
            if told:
                s, command = self.rng.choice(told)
                if self.shell(s, self.spoilt(command)) == 0:
                    self.counts["recovery by the command in a log" +
                                ("" if fresh else ", of an earlier loss")] += 1
            yield 0.1 if fresh else 1
        else:
            self.fail("pool %s: expected a log with the command that makes it again, found none "
                      "that does within %d s" % (name, GIVE_UP_S))
            return
        if lost:
            self.all_read(name)
            self.bet(name)
        wrong = "pool %s: expected it to be what it was, %s, found %s" % (name, self.made[name], now)
        if now != self.made[name] and wrong not in self.unlike:
            self.unlike.append(wrong)
        if not self.spoil:
            self.tell_unlike()

    def tell_unlike(self):
        for text in self.unlike:
            self.fail(text)
        self.unlike = []

    def calm(self):
        super().calm()
        self.tell_unlike()


class RecoveryRedis(Recovery, RedisWorld):
    name = "recovery"
    more_faults = REDIS_FAULTS


class RecoverySettle(RecoveryRedis):
    """A bet gives up the case that an older data set is put in place while a holder is cut off, so
    here everything is lost, or nothing."""

    name = "recovery-settle"
    lane = 6
    settle = "16s"

    def more_args(self):
        return "--settle", self.settle

    @functools.cached_property
    def faults(self):
        return [f for f in super().faults if not REWINDS.search(f.name)]


class RecoveryReplicated(Recovery, ReplicatedWorld):
    name = "recovery-replicated"
    lane = 7

    def more_args(self):
        return "--replicas", str(self.replicas)


class RecoverySqlite(Recovery, SqliteWorld):
    name = "recovery-sqlite"
    lane = 5


@redis_fault("one pool of the two deleted, the other stays", "coordinator sidecar:* link:0", 3)
def one_deleted(w):
    redis_world.silence(w)
    pool = w.rng.choice(w.pools)
    w.redis.ask("DEL", *(redis_world.key(pool, what) for what in ("h", "free", "exp", "who")))
    yield w.rng.uniform(0, 1.5)
    yield from w.after_loss()
    yield from redis_world.claims_again(w)


@redis_fault("Redis away for minutes, back with its data, and the word that a log has",
             "coordinator sidecar:* link:0 time", 2)
def word(w):
    """Who comes new waits, and says what there is to say. It is taken some renewals later."""
    w.redis.ask("CONFIG", "SET", "appendfsync", "always")
    yield 0.5
    w.redis.kill()
    w.must_stop()
    w.pass_time(w.rng.uniform(2, 8) * MINUTE)
    yield 0.3
    w.redis.start()
    new = w.rng.choice(w.sidecars)
    pool = w.pool_of(new.index)
    w.all_read(pool)
    new.renew_life()
    for _ in range(30):
        yield 1.2
        told = w.commands(pool, True, WORD)
        if not told and new.ready():
            break
        if told and w.shell(*told[0]) == 0:
            w.counts["reopening taken back by the command in a log"] += 1
            break
        w.must_stop()
        w.pass_time(8)
