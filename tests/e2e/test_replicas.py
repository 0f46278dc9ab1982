"""Redis with replicas and sentinels: failovers, replicas that lack, servers that hide what is needed."""

import json
import os
import re
import threading
import time

import harness
import ids
import wire
from harness import Proc, Redis, until
from runner import test

MASTER = "mymaster"
# No waiting for a full second until a replica that has just joined is sent anything.
PROMPT = ("--repl-diskless-sync", "no")
FAILOVER_TIMEOUT_MS = 2000
PATIENT_MS, QUICK_MS = 60000, 800  # until a silent master is taken for dead


class Sentinel(Proc):
    """A sentinel of its own that watches one master."""

    def __init__(self, case, name, master):
        self.port = harness.free_port()
        directory = case.path(name + ".d")
        os.mkdir(directory)
        conf = case.path(name + ".conf")
        with open(conf, "w") as f:
            f.write("port %d\nbind 127.0.0.1\ndir %s\n" % (self.port, directory))
            f.write("sentinel monitor %s 127.0.0.1 %d 2\n" % (MASTER, master.port))
            for option, value in (("down-after-milliseconds", PATIENT_MS),
                                  ("failover-timeout", FAILOVER_TIMEOUT_MS), ("parallel-syncs", 2)):
                f.write("sentinel %s %s %d\n" % (option, MASTER, value))
        super().__init__(case, name, ["redis-server", conf, "--sentinel"])

    def ask(self, *args):
        with wire.Resp(("127.0.0.1", self.port)) as r:
            return r.ask(*args)

    def up(self):
        try:
            return self.ask("PING") == b"PONG"
        except OSError:
            assert self.running(), "a sentinel ended: " + self.log()[-500:]
            return False

    def knows(self, replicas, sentinels):
        """Whether it has found the others, without whom it fails nothing over."""
        reply = self.ask("SENTINEL", "MASTER", MASTER)
        facts = dict(zip(reply[::2], reply[1::2]))
        return (int(facts[b"num-slaves"]) == replicas and
                int(facts[b"num-other-sentinels"]) == sentinels - 1)


def role(redis):
    """None: not known. Sentinel ends all connections to a server whose role it changes."""
    try:
        return redis.ask("ROLE")[0]
    except (OSError, wire.Closed):
        return None


class Nodes:
    """A master, node[0], and its replicas."""

    def __init__(self, case, replicas):
        self.case = case
        self.node = [Redis(case, "node%d" % i, args=PROMPT) for i in range(1 + replicas)]
        for r in self.node:
            r.start()
        for r in self.node[1:]:
            r.ask("REPLICAOF", "127.0.0.1", str(self.node[0].port))
        self.wait_in_step(self.node[0], replicas)

    def wait_in_step(self, master, replicas):
        def in_step():
            with wire.Resp(master.sock) as r:
                r.ask("SET", "probe", "x")
                return r.ask("WAIT", str(replicas), "100") >= replicas
        until("%d replicas are in step" % replicas, in_step)

    def watch(self):
        """Three sentinels that know the master, its replicas and each other."""
        self.sentinel = [Sentinel(self.case, "sentinel%d" % i, self.node[0]) for i in range(3)]
        for s in self.sentinel:
            s.start()
        for s in self.sentinel:
            until("a sentinel answers", s.up)
        for s in self.sentinel:
            until("it knows the others", lambda s=s: s.knows(len(self.node) - 1, 3), 15)
        self.url = "redis+sentinel://%s/%s" % (
            ",".join("127.0.0.1:%d" % s.port for s in self.sentinel), MASTER)

    def hurry(self, ms):
        """So soon a master is given up. On a busy machine one that lives seems dead now and then, and
        a test wants one failover: so they are quick only while it lasts."""
        for s in self.sentinel:
            reply = s.ask("SENTINEL", "SET", MASTER, "down-after-milliseconds", str(ms))
            assert reply == b"OK", reply

    def masters(self):
        """The nodes that run and call themselves masters."""
        return [r for r in self.node if r.running() and r.state() != "T" and role(r) == b"master"]


class Asker(threading.Thread):
    """Asks one sidecar for IDs until it is told to stop; every answer must be an ID."""

    def __init__(self, sidecar, workers):
        super().__init__(daemon=True)
        self.sidecar, self.workers, self.ledger = sidecar, workers, ids.Ledger()
        self.done, self.trouble = threading.Event(), None
        self.start()

    def run(self):
        try:
            with self.sidecar.resp() as r:
                while not self.done.is_set():
                    self.ledger.ask(lambda: r.ask("GET", "id:orders"), self.workers)
                    time.sleep(0.001)
        except (AssertionError, OSError) as e:
            self.trouble = e

    def finish(self, least):
        self.done.set()
        self.join()
        assert self.trouble is None, self.trouble
        self.ledger.check(least)
        return self.ledger.values()


def init(case, url, *args, expect=0):
    return case.ctl("pool", "init", "--coordinator", url, "--fresh", *args, expect=expect)


def status(case, url):
    return json.loads(case.ctl("pool", "status", "--json", "--coordinator", url, expect=0).stdout)


def not_ready(s, *parts):
    """Says in its log and at /readyz why it has no workerId."""
    for part in parts:
        s.wait_log("error .*" + re.escape(part))
    reply = s.http("/readyz")
    assert reply.status == 503, reply.status
    for part in parts:
        assert part in reply.text, "expected %r in %r" % (part, reply.text)


def two_sidecars(case, nodes):
    """Sidecars with one workerId each, and who asks them."""
    options = {"coordinator.timeout": "1s", "workers.spare": 0}
    sidecars = [case.sidecar(nodes.url, options) for _ in range(2)]
    held = [s.worker() for s in sidecars]
    assert sorted(held) == [0, 1], held
    return sidecars, [Asker(s, {w}) for s, w in zip(sidecars, held)]


def era_at(redis):
    """As this node has it."""
    return int(redis.ask("HGET", "sidflake:{default}:h", "era"))


def wait_reasserted(s):
    until(s.name + " holds on to its workerId at the new master",
          lambda: s.metric("sidflake_renewals_total", result="reasserted") >= 1, 25)
    until(s.name + " renews there",
          lambda: s.metric("sidflake_renewals_total", result="renewed") >= 1)
    assert s.metric("sidflake_pool_era") == 2 and s.metric("sidflake_coordinator_up") == 1


def fails_over(case, take_away, bring_back):
    nodes = Nodes(case, 2)
    nodes.watch()
    init(case, nodes.url, "--replicas", "1")
    assert status(case, nodes.url)["replicas_connected"] == 2
    sidecars, askers = two_sidecars(case, nodes)
    old = nodes.node[0]
    nodes.hurry(QUICK_MS)
    take_away(old)
    until("another master", nodes.masters, 20)
    nodes.hurry(PATIENT_MS)
    for s in sidecars:
        wait_reasserted(s)
    bring_back(old)
    values = [v for a in askers for v in a.finish(100)]
    ids.check_distinct(values)
    new = [r for r in nodes.masters() if r is not old]
    assert len(new) == 1 and new[0].held() == [0, 1] and era_at(new[0]) == 2, new
    for s in sidecars:
        s.wait_log("pool reopened")
        assert s.metric("sidflake_workers_held") == 1
    late = case.sidecar(nodes.url, {"coordinator.timeout": "1s"}, wait=False)
    late.wait_log("rests for")
    j = status(case, nodes.url)
    assert j["era"] == 2 and j["parameters"]["replicas"] == 1, j


@test("a master killed: IDs go on, renewals come back by themselves, no ID twice")
def killed(case):
    fails_over(case, lambda old: old.kill(), lambda old: None)


@test("a master paused and back as a second one: what it says counts for nothing")
def paused(case):
    def back(old):
        old.resume()
        # It learns of the others some seconds later.
        not_ready(case.sidecar(old, wait=False), "expected 1 replicas to acknowledge, found 0")
        assert role(old) == b"master" and era_at(old) == 1
    fails_over(case, lambda old: old.pause(), back)


@test("sentinels that are dead or silent are passed over")
def dead_sentinels(case):
    nodes = Nodes(case, 1)
    nodes.watch()
    nodes.sentinel[0].pause()
    nodes.sentinel[1].kill()
    init(case, nodes.url, "--replicas", "1")
    s = case.sidecar(nodes.url, {"coordinator.timeout": "2s"})
    ledger = ids.Ledger()
    for _ in range(20):
        ledger.ask(s.id, {0})
    ledger.check(20)
    nodes.sentinel[2].kill()
    s.wait_log("coordinator down .*master .?\"%s.*Connection refused" % MASTER)
    s.id()


@test("a name that no sentinel knows: the log, /readyz and pool init say so")
def unknown(case):
    nodes = Nodes(case, 1)
    nodes.watch()
    url = nodes.url.replace(MASTER, "other")
    r = init(case, url, "--replicas", "1", expect=1)
    first = "127.0.0.1 port %d: knows no master of this name" % nodes.sentinel[0].port
    assert "\"other\"" in r.stderr and first in r.stderr, r.stderr
    not_ready(case.sidecar(url, wait=False), first)


def lose(master, replica):
    def connected():
        return int(re.search(b"connected_slaves:(\\d+)", master.ask("INFO", "replication")).group(1))
    before = connected()
    replica.ask("REPLICAOF", "NO", "ONE")
    until("it is gone", lambda: connected() == before - 1)


@test("--replicas 1, none connected: pool init, pool status and the sidecar say so; then one comes")
def none_connected(case):
    # To its first replica ever a Redis shows itself under another replication ID, which reopens the
    # pool; here that one has been there before.
    nodes = Nodes(case, 1)
    replica, url = nodes.node[1], nodes.node[0].url
    lose(nodes.node[0], replica)
    r = init(case, url, "--replicas", "1", expect=3)
    assert "no pool was made" in r.stderr and "expected 1 replicas" in r.stderr, r.stderr
    replica.ask("REPLICAOF", "127.0.0.1", str(nodes.node[0].port))
    nodes.wait_in_step(nodes.node[0], 1)
    r = init(case, url, "--replicas", "1")
    assert "warning: 1 replica is connected, as many as must acknowledge: when one is gone" in r.stderr, r.stderr
    lose(nodes.node[0], replica)
    j = status(case, url)
    assert j["parameters"]["replicas"] == 1 and j["replicas_connected"] == 0, j
    assert any("fewer than the 1 that must acknowledge" in w for w in j["warnings"]), j
    s = case.sidecar(url, wait=False)
    not_ready(s, "expected 1 replicas to acknowledge, found 0")
    replica.ask("REPLICAOF", "127.0.0.1", str(nodes.node[0].port))
    s.wait_ready(20)
    s.id()
    w = status(case, url)["warnings"]
    assert len(w) == 1 and "three nodes are the fewest" in w[0], w


@test("a replica lost while serving: no renewal counts, IDs go on; it comes back: renewed")
def replica_lost(case):
    nodes = Nodes(case, 1)
    init(case, nodes.node[0].url, "--replicas", "1")
    s = case.sidecar(nodes.node[0], {"workers.spare": 0})
    hi = s.metric("sidflake_reservation_seconds")
    nodes.node[1].pause()
    s.wait_log("coordinator not ready .*expected 1 replicas to acknowledge, found 0")
    failed = s.metric("sidflake_renewals_total", result="failed")
    until("another renewal fails",
          lambda: s.metric("sidflake_renewals_total", result="failed") > failed)
    assert s.metric("sidflake_reservation_seconds") < hi and s.ready_status() == 200
    first = s.id()
    nodes.node[1].resume()
    s.wait_log("coordinator answers again", 15)
    until("a higher ceiling", lambda: s.metric("sidflake_reservation_seconds") > hi - 2)
    assert s.id() > first and s.metric("sidflake_pool_era") == 1


@test("a replica lost: what newcomers claim meanwhile takes no workerIds")
def claims_in_vain(case):
    nodes = Nodes(case, 1)
    master, replica = nodes.node
    init(case, master.url, "--replicas", "1", "--workers", "0-7")
    case.sidecar(master).wait_held(2)
    lose(master, replica)
    new = case.sidecar(master, wait=False)
    not_ready(new, "expected 1 replicas to acknowledge, found 0")
    time.sleep(3)
    assert master.held() == [0, 1], master.held()
    replica.ask("REPLICAOF", "127.0.0.1", str(master.port))
    nodes.wait_in_step(master, 1)
    new.wait_ready(20)


@test("a replica lost: whoever closes the pool hears that it may be closed all the same; it is")
def done_all_the_same(case):
    nodes = Nodes(case, 1)
    master, replica = nodes.node
    init(case, master.url, "--replicas", "1")
    lose(master, replica)
    r = case.ctl("pool", "close", "--yes", "--coordinator", master.url, expect=3)
    assert "it may have been done all the same" in r.stderr, r.stderr
    assert status(case, master.url)["closed"]


@test("a replica that was added, so that two halves of the nodes could grant: pool status and log warn")
def halves(case):
    nodes = Nodes(case, 3)
    url, late = nodes.node[0].url, nodes.node[3]
    lose(nodes.node[0], late)
    init(case, url, "--replicas", "1")
    assert status(case, url)["warnings"] == []
    late.ask("REPLICAOF", "127.0.0.1", str(nodes.node[0].port))
    nodes.wait_in_step(nodes.node[0], 3)
    w = status(case, url)["warnings"]
    assert len(w) == 1 and "fewer than the 2 that are half of all nodes" in w[0], w
    case.sidecar(url).wait_log("a failover may repeat IDs replicas=3 must_acknowledge=1 half=2")


@test("a server with replicas, or one that sentinels name: pool init wants --replicas said; 0 is warned of")
def replicas_unsaid(case):
    nodes = Nodes(case, 2)
    url = nodes.node[0].url
    r = init(case, url, expect=1)
    assert "expected --replicas to be said of a server with 2" in r.stderr, r.stderr
    r = init(case, "redis+sentinel://127.0.0.1:1/m", expect=2)
    assert "expected --replicas" in r.stderr, r.stderr
    init(case, url, "--replicas", "0")
    assert any("a failover may repeat IDs" in w for w in status(case, url)["warnings"])
    case.sidecar(url).wait_log("a failover may repeat IDs")


@test("--replicas of an SQLite pool is refused")
def sqlite(case):
    r = init(case, "sqlite://" + case.path("pool.db"), "--replicas", "1", expect=1)
    assert "expected 0 of an SQLite file, found 1" in r.stderr, r.stderr
    init(case, "sqlite://" + case.path("pool.db"), "--replicas", "101", expect=2)


def hides(case, redis, url, why):
    r = init(case, url, expect=1)
    assert "run_id and master_replid" in r.stderr and why in r.stderr, r.stderr
    not_ready(case.sidecar(url, wait=False), "run_id and master_replid", why)
    assert redis.ask("DBSIZE") == 0


@test("INFO renamed: refused at start, with the reason")
def renamed(case):
    redis = case.redis(args=("--rename-command", "INFO", ""))
    hides(case, redis, redis.url, "Unknown Redis command")


@test("a user without +info: refused at start, with the reason")
def forbidden(case):
    redis = case.redis(args=("--user", "app", "on", ">pw", "~*", "+@all", "-info"))
    hides(case, redis, redis.url.replace("//", "//app:pw@"), "can't run this command")


@test("pool init and a pool that is missing: a password in the URL is not shown")
def no_secrets(case):
    redis = case.redis(args=("--requirepass", "hunter2"))
    url = redis.url.replace("//", "//:hunter2@")
    missing = case.ctl("pool", "status", "--coordinator", url, expect=1)
    init(case, url)
    twice = init(case, url, expect=1)
    assert "127.0.0.1" in missing.stderr and "127.0.0.1" in twice.stderr
    assert "hunter2" not in missing.stderr + twice.stderr
