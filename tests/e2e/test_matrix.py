"""Each client of the matrix (matrix.py) with a sidecar of its own, and with the real server.

What is seen is a row of CLIENTS.md. `tests/e2e/run --clients-table` writes that file; otherwise a
row that no longer says what is seen, but for the version, is a failure.
"""

import time

import clients_table
import ids
from matrix import BATCH, CLIENTS, SETUPS, Driver, connected
from runner import test

PATIENCE_S = 45  # after a restart: some clients wait before they try again
FIRST = 4
FEW = 4 * BATCH  # more than a client asks for in all: no higher sequence is issued
KEY, OTHER = "id:orders", "other"


def expect(driver, words, fields):
    found = driver.ask(*words)
    assert found == fields, "%s: expected %s, found %s" % (" ".join(words), fields, found)


def missing(driver):
    expect(driver, ("get", OTHER), [("n", "")])
    return "none"


def one(driver, request, key, ledger, workers):
    """Asks for one ID that must come as a string."""
    (kind, text), = ledger_ask(driver, ledger, workers, request, key)
    assert kind == "s", "%s: expected a string, found %s:%s" % (request, kind, text)
    return int(text)


def first_ids(driver, ledger, workers):
    """The first ones of a sidecar: a high sequence is none that was issued, but a rounded one."""
    for _ in range(FIRST):
        sequence = ids.decode(one(driver, "get", KEY, ledger, workers))[2]
        assert sequence < 2 * FIRST, "get: expected a sequence below %d, found %d: rounded" % (
            2 * FIRST, sequence)
    return "yes"


def ledger_ask(driver, ledger, workers, *words):
    """Asks, and enters the IDs among the answers."""
    sent = ids.now_ms()
    fields = driver.ask(*words)
    received = ids.now_ms()
    for kind, text in fields:
        assert kind in "sinf", "%s: expected values, found %s:%s" % (words, kind, text)
        if kind in "si":
            ledger.add(text, sent, received, workers)
    return fields


def batch(client, driver, ledger, workers):
    """One ask for several: all strings, all different, and nothing for what is no ID."""
    for request in client.batch:
        if request == "lpop":
            fields = ledger_ask(driver, ledger, workers, "lpop", KEY, BATCH)
            expected = "s" * BATCH
        else:
            keys = ["%s#%d" % (KEY, i) for i in range(BATCH)]
            tail = [] if client.driver == "tools" and client.server == "memcached" else [OTHER]
            fields = ledger_ask(driver, ledger, workers, "mget", *keys, *tail)
            expected = "s" * BATCH + "n" * len(tail)
        kinds = "".join(kind for kind, _ in fields)
        assert kinds == expected, "%s: expected %s, found %s" % (request, expected, fields)
    named = {"lpop": "LPOP", "mget": "MGET" if client.server == "redis" else "several keys"}
    return ", ".join(named[r] for r in client.batch) or "–"


def refused(client, driver, server, ledger, workers):
    """A write is refused, and the next read is answered at once."""
    before = connected(server.port)
    (kind, text), = driver.ask("set", KEY, "1")
    assert kind == "e" or kind == "b" and text.lower().startswith("false"), \
        "a write: expected an error or false, found %s:%s" % (kind, text)
    assert client.server == "memcached" or "read-only" in text, "a write: found %s" % text
    one(driver, "get", KEY, ledger, workers)
    same = before <= connected(server.port)
    return ("error" if kind == "e" else "false") + ("" if same else ", connects anew")


def again(driver, *words):
    """The first answer after a restart that is no failure, and when it was asked for."""
    end = time.monotonic() + PATIENCE_S
    while True:
        sent = ids.now_ms()
        (kind, text), = driver.ask(*words)
        if kind == "s" or text.lower() == "true":
            return text, sent
        assert time.monotonic() < end, "after a restart, %s: found %s:%s" % (words, kind, text)
        time.sleep(0.02)


def restarted(client, driver, server, ledger, workers):
    server.restart()
    text, sent = again(driver, "get", KEY)
    ledger.add(text, sent, ids.now_ms(), workers)
    return "after " + client.pause if client.pause else "yes"


def over_unix(case, client, server, ledger, workers):
    if not client.unix:
        return "no"
    with Driver(case, client, server.sock) as driver:
        one(driver, "get", KEY, ledger, workers)
    return "yes"


def exact(text, workers):
    _, worker, sequence = ids.decode(int(text) if text.isdigit() else 0)
    return worker in workers and sequence < FEW


def incr(client, driver, ledger, workers):
    """What an ID comes to as an integer, and by the client's own setting against that."""
    if client.key.startswith("memccat"):
        return "–"
    found = [driver.ask("incr", KEY)[0] for _ in range(FIRST)]
    seen = "rounded" if all(kind == "f" for kind, _ in found) else "exact" if all(
        kind in "si" and exact(text, workers) for kind, text in found) else "wrong"
    if client.lossless:
        one(driver, "exact", KEY, ledger, workers)
        seen += "; exact with " + client.lossless
    return seen


def walk_ids(case, client, driver, server):
    ledger = ids.Ledger()
    workers = {server.proc.worker()}
    row = {"one ID": first_ids(driver, ledger, workers)}
    row["batch"] = batch(client, driver, ledger, workers)
    row["refused write"] = refused(client, driver, server, ledger, workers)
    row["missing key"] = missing(driver)
    row["unix socket"] = over_unix(case, client, server, ledger, workers)
    row["INCR"] = incr(client, driver, ledger, workers)
    row["restart"] = restarted(client, driver, server, ledger, workers)
    ledger.check(4)
    return row


def walk_values(client, driver, server):
    """What anybody asks a cache for, and the same after a restart."""
    (kind, text), = driver.ask("set", "plain", "value")
    assert kind in "sb" and text.lower() in ("ok", "true"), "set: found %s:%s" % (kind, text)
    expect(driver, ("get", "plain"), [("s", "value")])
    if "mget" in client.batch:
        expect(driver, ("mget", "plain", "plain"), [("s", "value")] * 2)
    missing(driver)
    server.restart()
    again(driver, "set", "plain", "value")
    expect(driver, ("get", "plain"), [("s", "value")])


def walk(case, client, setup):
    """Everything there is to see with one client in one setup: cells of its row."""
    server = setup(case, client)
    with Driver(case, client, "127.0.0.1:%d" % server.port) as driver:
        if server.values:
            walk_values(client, driver, server)
        row = walk_ids(case, client, driver, server) if server.ids else {}
    return dict(row, **({setup.column: "yes"} if setup.column else {}))


def register(client):
    @test(client.name, beside=True, timeout=300)
    def run(case):
        row = {}
        for setup in SETUPS:
            for column, cell in walk(case, client, setup).items():
                assert row.setdefault(column, cell) == cell, "%s, %s: expected %r, found %r" % (
                    setup.__name__, column, row[column], cell)
        clients_table.seen(client, row)


for row_of_table in CLIENTS:
    register(row_of_table)


@test("a sequence that is used up takes no other key from a memcached client", timeout=300)
def used_up(case):
    """But from php-memcache, to which any error to a get is a server that is gone."""
    s = case.sidecar(case.pool(), {"sequences.define": ["few --max 1 --on-loss refuse"]})
    s.wait_held(2)
    with s.mc() as m:
        assert m.get("seq:few")[0][1] == "1"
    for client in CLIENTS:
        if client.server == "memcached" and client.key != "memcache":
            with Driver(case, client, "127.0.0.1:%d" % s.mc_port) as driver:
                (kind, text), = driver.ask("get", "seq:few")
                assert kind != "s", "%s: found %s:%s" % (client.name, kind, text)
                (kind, text), = driver.ask("get", KEY)
                assert kind == "s", "%s: expected an ID, found %s:%s" % (client.name, kind, text)

@test("CLIENTS.md has a row for each client, and no other")
def rows(case):
    found = sorted(clients_table.read())
    expected = sorted(c.name for c in CLIENTS)
    assert found == expected, "expected rows %s, found %s" % (expected, found)
