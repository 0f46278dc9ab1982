"""Sequences: `seq:` numbers that count, as clients have them."""

import json
import os
import re
import shlex
import signal
import threading
import time

from harness import TOP, until
from runner import test

DEFINE = ["orders --max-rate 1000000 --subs", "strict --max-rate 1000000 --order strict",
          "down --start 10 --increment -3 --max-rate 1000", "few --max 3 --on-loss refuse"]


def options(**more):
    return {"sequences.define": DEFINE, "limits.max_wait": "5s", **more}


def sqlite(case):
    url = "sqlite://" + case.path("pool.db")
    case.ctl("pool", "init", "--coordinator", url, "--fresh", expect=0)
    return url


def sidecar(case, coordinator, **more):
    s = case.sidecar(coordinator, options(**more))
    s.wait_held(2)
    return s


def ask(s, *words):
    with s.resp() as r:
        return r.ask(*words)


@test("numbers count over all protocols, on Redis and SQLite; a name that nobody made is a miss")
def counts(case):
    for coordinator in (case.pool(), sqlite(case)):
        s = sidecar(case, coordinator)
        with s.resp() as r, s.mc() as m:
            assert [r.ask("INCR", "seq:orders") for _ in range(3)] == [1, 2, 3]
            assert r.ask("GET", "seq:orders") == b"4"
            assert m.ask("mg seq:orders v") == "VA 1" and m.line() == b"5"
            assert m.id("seq:orders") == 6
            assert s.http("/v1/seq/orders?n=2").text == "7\n8\n"
            row = r.ask("INCRBY", "seq:orders", 100)  # what was in hand below is dropped
            assert row >= 108
            several = [int(n) for n in r.ask("LPOP", "seq:orders", 3)]
            assert several[0] > row and several == sorted(set(several))
            assert int(m.ask("incr seq:orders 9")) >= several[-1] + 9
            assert r.ask("MGET", "seq:orders:a", "seq:none", "seq:down") == [b"1", None, b"10"]
            assert r.ask("INCR", "seq:down") == 7 and r.ask("INCRBY", "seq:down", 3) == -2
            assert r.ask("EXISTS", "seq:orders", "seq:none") == 1
            assert "no such sequence" in str(r.ask("INCR", "seq:none"))
            assert s.http("/v1/seq/none").status == 404
            assert r.ask("INCR", "seq:orders:a/status") == 1
            assert json.loads(s.http("/v1/seq/orders:a/status").text)["next"] == 2  # of the sub "a"
            assert s.http("/v1/seq/orders:a%2Fstatus").text == "2\n"
            reply = s.http("/v1/seq/orders:/status")
            assert reply.status == 404 and 'found "orders:"' in reply.text, reply.text
            assert m.ask("get seq:none") == "END" and m.ask("incr seq:none 1") == "NOT_FOUND"
            assert [r.ask("INCR", "seq:few") for _ in range(3)] == [1, 2, 3]
            assert "used up" in str(r.ask("INCR", "seq:few"))
            assert s.metric("sidflake_sequence_until_max", name="few") == 0
            assert s.metric("sidflake_sequence_until_max", name="orders") > 9e15
            assert "expected 1 to 1000000" in str(r.ask("INCRBY", "seq:orders", 2000000))
            assert "expected seq:NAME" in str(r.ask("GET", "seq:a/b"))
            info = r.ask("INFO", "sequences").decode()
            assert "orders:given=" in info and "none" not in info, info
        assert s.metric("sidflake_sequence_given_total", name="orders") == 123
        assert "sequences" in json.loads(s.http("/v1/status").text)
        s.stop()


@test("SIGKILL, SIGUSR2 and SIGTERM in turn: the next number follows, none is skipped or repeated")
def goes_on(case):
    for coordinator in (case.pool(), sqlite(case)):
        s = sidecar(case, coordinator)
        expected = 0
        for turn in range(6):
            with s.resp() as r:
                for _ in range(50):
                    expected += 1
                    found = r.ask("INCR", "seq:orders")
                    assert found == expected, (turn, expected, found)
            if turn % 3 == 1:
                at = len(s.log())
                s.popen.send_signal(signal.SIGUSR2)
                s.wait_log("upgraded in place", timeout=20, after=at)
                continue
            if turn % 3 == 0:
                time.sleep(0.5)  # what was asked for in advance, and had not come yet, would be a gap
                s.kill()
            else:
                s.stop()
            s.start()
            s.wait_held(2, timeout=20)
        s.stop()


def pipelined(s, words, times, depth, out):
    with s.resp() as r:
        for _ in range(times // depth):
            r.send(r.encode(*words) * depth)
            out.extend(r.reply() for _ in range(depth))


@test("two sidecars on one Redis, pipelines of GET, INCR, INCRBY and LPOP: none twice, each one's rise")
def none_twice(case):
    redis = case.pool()
    both = [sidecar(case, redis), sidecar(case, redis)]
    seen = []
    for words, each in ((("GET", "seq:orders"), 1), (("INCR", "seq:orders"), 1),
                        (("INCRBY", "seq:orders", 100), 100), (("LPOP", "seq:orders", 100), 100)):
        outs = [[], []]
        threads = [threading.Thread(target=pipelined, args=(s, words, 4000 // each, 20, o))
                   for s, o in zip(both, outs)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        for out in outs:
            numbers = []
            for reply in out:
                if words[0] == "INCRBY":
                    numbers += range(reply - 99, reply + 1)
                elif words[0] == "LPOP":
                    numbers += map(int, reply)
                else:
                    numbers.append(int(reply))
            assert numbers == sorted(numbers), "they do not rise"
            seen += numbers
    assert len(seen) == len(set(seen)) and len(seen) >= 4 * 4000, len(seen)


@test("one that cycles begins again behind its last, has no end, and fewer in a row than it has numbers")
def cycles(case):
    s = sidecar(case, case.pool(), **{"sequences.define": ["abc --max 3 --order strict --cycle --on-loss trust"]})
    assert [ask(s, "INCR", "seq:abc") for _ in range(4)] == [1, 2, 3, 1]
    assert s.metric("sidflake_sequence_until_max", name="abc") > 9e15
    assert "at most 3 in a row" in str(ask(s, "INCRBY", "seq:abc", 4))
    assert ask(s, "INCRBY", "seq:abc", 3) == 3


@test("two sidecars define one name otherwise: the second refuses it alone, and page, log and metrics say so")
def otherwise(case):
    redis = case.pool()
    first = case.sidecar(redis, {"sequences.define": ["few --max-rate 10", "more --max-rate 10"]})
    assert ask(first, "INCR", "seq:few") == 1
    second = case.sidecar(redis, {"sequences.define": ["few --start 7 --max-rate 10"]})
    assert "another than sequences.define says" in str(ask(second, "INCR", "seq:few"))
    assert isinstance(ask(second, "INCR", "seq:more"), int)
    second.wait_log("sequence refused: it is another one than the configuration defines")
    until("the page names it", lambda: "sequence few: the sequence few of the pool is another" in
          second.http("/readyz?verbose").text)
    assert second.metric("sidflake_sequence_takes_total", outcome="refused") == 1  # alerts go by that
    assert "few:given=0," in ask(second, "INFO", "sequences").decode()


@test("order: strict over three sidecars: never lower than a number that was answered before")
def strict(case):
    redis = case.pool()
    three = [sidecar(case, redis) for _ in range(3)]
    history, end = [], time.monotonic() + 3

    def client(s):
        with s.resp() as r:
            while time.monotonic() < end:
                asked = time.monotonic()
                n = r.ask("INCR", "seq:strict")
                history.append((asked, time.monotonic(), n))

    threads = [threading.Thread(target=client, args=(s,)) for s in three for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    numbers = [n for _, _, n in history]
    assert all(isinstance(n, int) for n in numbers) and len(set(numbers)) == len(numbers), numbers[:20]
    assert len(numbers) > 100, len(numbers)
    highest, answered = 0, sorted((done, n) for _, done, n in history)
    at = 0
    for asked, _, n in sorted(history):
        while at < len(answered) and answered[at][0] < asked:
            highest = max(highest, answered[at][1])
            at += 1
        assert n > highest, "%d was given out after %d was answered" % (n, highest)


@test("order: strict by hundreds of keys of one request: they rise, and come by few calls")
def strict_by_keys(case):
    s = sidecar(case, case.pool())
    keys = ["seq:strict#%d" % i for i in range(400)]
    with s.resp() as r:
        first = r.ask("INCR", "seq:strict")
        many = [int(n) for n in r.ask("MGET", *keys)]
    with s.mc() as m:
        more = [int(v) for _, v, _ in m.get(*keys)]
    assert many + more == list(range(first + 1, first + 801)), (first, many[:3], more[:3])


@test("Redis away: what is in hand goes on; then TRYAGAIN, and numbers again")
def away(case):
    redis = case.pool()
    s = sidecar(case, redis, **{"limits.max_wait": "200ms"})
    with s.resp() as r:
        first = r.ask("INCR", "seq:orders")
        redis.pause()
        numbers = []
        while isinstance(n := r.ask("INCR", "seq:orders"), int):
            numbers.append(n)
        assert numbers and numbers == list(range(first + 1, first + 1 + len(numbers)))
        assert "TRYAGAIN" in str(n), n
        redis.resume()
        until("numbers come again", lambda: isinstance(r.ask("INCR", "seq:orders"), int), 60, 0.2)
        assert r.ask("INCR", "seq:orders") > numbers[-1]


@test("a date that is none, over and over: the sequences of others are served meanwhile")
def dates(case):
    s = sidecar(case, sqlite(case), **{"limits.max_wait": "10s"})
    for i in range(5):
        reply = s.http("/v1/seq/orders?date=x%d" % i)
        assert reply.status == 400 and "expected the date" in reply.text, reply.text
        more = ask(s, "INCRBY", "seq:orders", 10000)  # more than is in hand
        assert isinstance(more, int), more
    assert s.metric("sidflake_sequence_takes_total", outcome="failed") == 0


@test("subs, dates and names that can't be, over and over: they take no place from others, and fail nothing")
def mistakes(case):
    define = ["a", "b", "c", "day --reset day", "tenants --subs"]
    s = case.sidecar(sqlite(case), {"sequences.define": define, "sequences.counters": "10",
                                    "limits.max_wait": "5s"})
    s.wait_held(2)
    with s.resp() as r, s.mc() as m:
        def served(n):
            for name in ("a", "b", "c", "day", "tenants:acme"):
                assert (got := r.ask("INCR", "seq:" + name)) == n, (name, n, got)
        served(1)
        for i in range(40):
            assert "no subs" in str(r.ask("GET", "seq:a:w%d" % i))
            assert "no subs" in str(r.ask("INCR", "seq:day:w%d" % i))
            assert m.ask("get seq:b:w%d" % i).startswith("CLIENT_ERROR the sequence b has no subs")
            assert s.http("/v1/seq/a?date=2026-01-%02d" % (i % 28 + 1)).status == 400
            reply = s.http("/v1/seq/day?date=2025-01-%02d" % (i % 28 + 1))
            assert reply.status == 400 and "is over" in reply.text, reply.text
            assert "no such sequence" in str(r.ask("INCR", "seq:none%d" % i))
        served(2)
    assert s.metric("sidflake_sequence_evicted_total") == 0
    assert s.metric("sidflake_sequence_takes_total", outcome="refused") == 0
    asked = s.metric("sidflake_sequence_takes_total", outcome="mistaken")
    assert 40 <= asked < 100, asked  # dates; of 120 subs one of each sequence, which the log has
    requests = [row for row in s.http("/metrics").text.splitlines() if row.startswith("sidflake_requests_total{")]
    assert not [row for row in requests if "failed" in row and "readyz" not in row], requests
    assert len([row for row in requests if 'result="invalid"' in row]) >= 3, requests
    assert s.log().count("cannot have") <= 12 and "served again" not in s.log()


@test("users have the sequences that their names allow; other keys pass through beside them")
def rights(case):
    line = case.ctl("passwd", "eve", "--names", "ord*", "--upstream", "all", stdin="word\n", expect=0).stdout
    line += case.ctl("passwd", "acme", "--names", "*:acme", stdin="word\n", expect=0).stdout
    path = case.path("users")
    with open(path, "w") as f:
        f.write(line)
    behind = case.redis()
    s = sidecar(case, sqlite(case), **{"auth.mode": "required", "auth.users_file": path,
                                       "upstream.redis": "tcp://127.0.0.1:%d" % behind.port})
    with s.resp() as r:
        assert r.ask("AUTH", "eve", "word") in (b"OK", "OK")
        assert r.ask("INCR", "seq:orders") == 1
        assert r.ask("INCR", "seq:orders:acme") == 1
        assert "allowed" in str(r.ask("GET", "seq:down")) or "NOPERM" in str(r.ask("GET", "seq:down"))
        assert r.ask("SET", "plain", "x") in (b"OK", "OK")
        assert r.ask("MGET", "plain", "seq:orders", "seq:ordnone") == [b"x", b"2", None]
        info = r.ask("INFO", "sequences")
        assert b"orders:given=3" in info, info
    assert behind.ask("EXISTS", "seq:orders") == 0
    with s.resp() as r:
        assert r.ask("AUTH", "acme", "word") in (b"OK", "OK")
        assert r.ask("INCR", "seq:orders:acme") == 2
        for key in ("seq:orders", "seq:orders#:acme", "seq:orders:b#:acme", "seq:orders:acme2", "id:orders#:acme"):
            assert "not allowed" in str(r.ask("GET", key)), key
        assert b"orders" not in r.ask("INFO", "sequences")  # what all of its subs come to


@test("each command that the log prints of a refused sequence does what it says, as it stands")
def printed(case):
    url = sqlite(case)
    s = sidecar(case, url)

    def typed(pattern, *more):
        command = shlex.split(s.wait_log(pattern + r"[^`]*`(?:sudo -u \S+ )?sidflakectl (seq [^`]*)`").group(1))
        return case.ctl(*[{"M": "1000", "N": "500"}.get(word, word) for word in command], *more, expect=0)

    def counts(name, value):
        until("%s gives %d" % (name, value), lambda: ask(s, "INCR", "seq:" + name) == value)

    assert ask(s, "GET", "seq:new") is None
    typed("sequence=new why=.there is none")
    counts("new", 1)
    assert [ask(s, "INCR", "seq:few") for _ in range(3)] == [1, 2, 3]
    assert "used up" in str(ask(s, "INCR", "seq:few"))
    typed("sequence=few why=.its max")
    counts("few", 4)
    case.ctl("seq", "drop", "new", "--yes", "--coordinator", url, expect=0)
    until("it is dropped", lambda: ask(s, "GET", "seq:new") is None)
    typed("sequence=new why=.it was dropped", "--yes")
    until("it is there again, behind its numbers", lambda: int(ask(s, "GET", "seq:new") or 0) > 1)


@test("the volumes of the manifests, the chart and the compose file have room for the state pages, old and new")
def fits(case):
    s = sidecar(case, case.pool())
    assert ask(s, "INCR", "seq:orders") == 1
    s.kill()
    for page in ("worker.page", "sequences.page"):
        with open(os.path.join(s.state_dir, page), "r+b") as f:
            f.write(b"damage")
    s.start()
    until("numbers go on", lambda: isinstance(ask(s, "INCR", "seq:orders"), int))
    there = os.listdir(s.state_dir)
    assert {"worker.page.aside", "sequences.page", "sequences.page.aside"} <= set(there), there
    taken = sum(os.stat(os.path.join(s.state_dir, name)).st_blocks * 512 for name in there)
    for file, size in (("kubernetes/base/deployment.yaml", r"sizeLimit: (\d+)Mi"),
                       ("helm/sidflake/values.yaml", r"sizeLimit: (\d+)Mi"),
                       ("examples/compose/compose.yaml", r"size=(\d+)m")):
        with open(os.path.join(TOP, "packaging", file)) as f:
            room = [int(n) << 20 for n in re.findall(size, f.read())]
        assert room and min(room) > taken, (file, room, taken)


@test("a state_dir without room for the page of sequences: log, page and probe say what that costs")
def no_room(case):
    said = "no state page of sequences: a restart leaves a gap in the numbers: "
    s = case.sidecar(case.pool(), options())
    s.wait_held(2)
    assert said not in s.http("/readyz?verbose").text
    os.mkdir(os.path.join(s.state_dir, "sequences.page.new"))  # which cannot be made then
    assert ask(s, "INCR", "seq:orders") == 1
    s.wait_log("no state page of sequences: a restart drops what is left of blocks")
    until("it is said", lambda: "[!]sequences_page: " + said in s.http("/readyz?verbose").text)
    assert said in s.http("/").text
