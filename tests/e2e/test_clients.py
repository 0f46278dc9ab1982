"""Real clients, each asking two sidecars on one Redis at once, over TCP and unix sockets."""

import json
import os
import threading

import pylibmc
import pymemcache.client.base
import redis as redispy

import harness
import ids
import runner
from runner import test

ROUNDS = 20
BATCH = 100


class Pair:
    """Two sidecars on one fresh pool, and what they were asked for."""

    def __init__(self, case):
        redis = case.pool()
        self.case = case
        self.sidecars = [case.sidecar(redis), case.sidecar(redis)]
        self.workers = [s.worker() for s in self.sidecars]
        assert len(set(self.workers)) == 2, "expected two workerIds, found %r" % self.workers
        self.ledger = ids.Ledger()

    def each(self, *functions):
        """Runs each function for both sidecars, all at the same time."""
        failures = []

        def guarded(function, sidecar, worker):
            try:
                function(sidecar, {worker}, self.ledger)
            except BaseException as e:
                failures.append(e)
        threads = [threading.Thread(target=guarded, args=(f, s, w))
                   for f in functions for s, w in zip(self.sidecars, self.workers)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        if failures:
            raise failures[0]


# ---- one function for each client: asks (sidecar, workers), enters into ledger -------------------


def raw_memcached(s, workers, ledger):
    for unix in (False, True):
        with s.mc(unix) as c:
            for _ in range(ROUNDS):
                ledger.ask(c.id, workers)


def raw_resp(s, workers, ledger):
    for unix in (False, True):
        with s.resp(unix) as c:
            for _ in range(ROUNDS):
                ledger.ask(lambda: c.ask("GET", "id:orders"), workers)
                ledger.ask(lambda: c.ask("INCR", "id:orders"), workers)
                assert len(ledger.ask(lambda: c.ask("LPOP", "id:orders", BATCH), workers)) == BATCH


def redis_cli(s, workers, ledger):
    for where in (["-p", str(s.resp_port)], ["-s", s.resp_sock]):
        for command in (["GET", "id:orders"], ["INCR", "id:orders"], ["LPOP", "id:orders", BATCH]):
            argv = ["redis-cli", *where, *map(str, command)]
            lines = ledger.ask(lambda: s.case.run(*argv, expect=0).stdout.split(), workers)
            assert len(lines) == (BATCH if command[0] == "LPOP" else 1), "%r: %r" % (argv, lines)


def python_redis(s, workers, ledger):
    for where in ({"port": s.resp_port, "db": 3}, {"unix_socket_path": s.resp_sock}):
        c = redispy.Redis(**where)
        for _ in range(ROUNDS):
            ledger.ask(lambda: c.get("id:orders"), workers)
            ledger.ask(lambda: c.incr("id:orders"), workers)  # sent as INCRBY 1
            ledger.ask(lambda: c.execute_command("INCR", "id:orders"), workers)
            assert len(ledger.ask(lambda: c.lpop("id:orders", BATCH), workers)) == BATCH
            ledger.ask(lambda: c.mget("id:orders", "id:orders"), workers)
            ledger.ask(lambda: c.pipeline().get("id:orders").incr("id:orders").execute(), workers)
        assert c.get("other") is None and c.ping() is True
        c.close()


def python_pymemcache(s, workers, ledger):
    for where in (("127.0.0.1", s.mc_port), s.mc_sock):
        c = pymemcache.client.base.Client(where, timeout=10)
        for _ in range(ROUNDS):
            ledger.ask(lambda: c.get("id:orders"), workers)
            ledger.ask(lambda: c.incr("id:orders", 1), workers)
            ledger.ask(lambda: list(c.get_many(["id:orders#1", "id:orders#2"]).values()), workers)
        assert c.get("other") is None
        c.quit()


def python_pylibmc(s, workers, ledger):
    for where in ("127.0.0.1:%d" % s.mc_port, s.mc_sock):
        c = pylibmc.Client([where])
        for _ in range(ROUNDS):
            ledger.ask(lambda: c.get("id:orders"), workers)
            ledger.ask(lambda: c.incr("id:orders"), workers)
        assert c.get("other") is None
        c.disconnect_all()


def node(client):
    def run(s, workers, ledger):
        script = os.path.join(harness.HERE, "node", "ids.js")
        for where in (str(s.resp_port), s.resp_sock):
            argv = ("node", script, client, where, str(ROUNDS))
            out = s.case.run(*argv, expect=0, timeout=150).stdout
            seen = set()
            for line in out.splitlines():
                row = json.loads(line)
                seen.add(row["op"])
                if row["op"] == "rounded":
                    ms = ids.time_of(int(float(row["ids"][0])))
                    assert abs(ms - row["sent"]) < 1000, "far from a rounded ID: %r" % row
                    continue
                assert len(row["ids"]) == (BATCH if row["op"] == "lpop" else 1), line
                for value in row["ids"]:
                    ledger.add(value, row["sent"], row["received"], workers)
            assert {"get", "lpop"} < seen, "expected get, lpop and one more, found %r" % seen
    return run


PLAIN = {
    "raw memcached, TCP and unix: get": (raw_memcached, 2 * ROUNDS),
    "raw RESP, TCP and unix: GET INCR LPOP": (raw_resp, 2 * ROUNDS * (BATCH + 2)),
    "redis-cli, TCP and unix: GET INCR LPOP": (redis_cli, 2 * (BATCH + 2)),
    "python3-redis, TCP and unix: GET INCR LPOP MGET, MULTI": (python_redis,
                                                               2 * ROUNDS * (BATCH + 7)),
    "python3-pymemcache, TCP and unix: get incr get_many": (python_pymemcache, 2 * ROUNDS * 4),
    "pylibmc, TCP and unix: get incr": (python_pylibmc, 2 * ROUNDS * 2),
}
NODE = {
    "ioredis 5, TCP and unix: get incr lpop": (node("ioredis"), 2 * ROUNDS * (BATCH + 2)),
    "ioredis 6 (RESP3), TCP and unix: get incr lpop": (node("ioredis6"), 2 * ROUNDS * (BATCH + 2)),
    "node-redis 6 (RESP3), TCP and unix: get incr lPop": (node("redis"), 2 * ROUNDS * (BATCH + 2)),
    "node-redis 4, TCP and unix: get lPop, incr rounded": (node("redis4"),
                                                           2 * ROUNDS * (BATCH + 1)),
}


def register(name, function, least, needs_node):
    @test(name, timeout=300 if needs_node else runner.TIMEOUT_S)
    def run(case):
        if needs_node:
            runner.need_node_modules()
        pair = Pair(case)
        pair.each(function)
        pair.ledger.check(2 * least)


for title, (asking, count) in PLAIN.items():
    register(title, asking, count, False)
for title, (asking, count) in NODE.items():
    register(title, asking, count, True)


@test("all Python clients and raw sockets at once: no ID repeats", timeout=120)
def all_at_once(case):
    pair = Pair(case)
    pair.each(*(function for function, _ in PLAIN.values()))
    rows = pair.ledger.values()
    assert len(rows) >= 2 * sum(least for _, least in PLAIN.values())
    ids.check_distinct(rows)
    found = {ids.worker_of(v) for v in rows}
    assert found == set(pair.workers), "expected workerIds %r, found %r" % (pair.workers, found)
