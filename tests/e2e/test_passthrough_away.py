"""Pass-through: what a client is told, and in which way, while Redis is away or refuses: its library
has to understand it. And subscriptions, whose replies are counted by what they say."""

import os
import re
import signal
import subprocess
import threading
import time

import binary
import harness
import redis as redispy
import runner
import wire
from harness import until
from passthrough import Puppet
from runner import test
from test_passthrough import behind, error
from test_passthrough_hostile import before_puppet
from test_passthrough_state import LOUD, MUTE, SKIP, is_id, together

R = wire.Resp.encode
AWAY = "LOADING sidflake: the server behind is unreachable: "


# ---- away -------------------------------------------------------------------------------------


@test("Redis away: what stands alone gets LOADING, what does not is closed, IDs go on")
def away(case):
    redis = case.redis()
    s = behind(case, redis)
    redis.kill()
    with s.resp() as r:
        for hello in (2, 3):
            assert r.ask("HELLO", hello) is not None
            for request in (("GET", "a"), ("SET", "a", 1), ("MGET", "a", "id:a"), ("DBSIZE",),
                            ("INCR", "a"), ("HGETALL", "h")):
                error(r.ask(*request), AWAY)
                assert is_id(r.ask("GET", "id:a")), request
        assert r.ask("SELECT", 2) == b"OK" and r.ask("PING") == b"PONG"
        error(r.ask("GET", "a"), AWAY)
        together(r, ("MULTI",), ("GET", "id:a"), ("EXEC",))
        assert r.reply() == b"OK" and r.reply() == b"QUEUED" and is_id(r.reply()[0])
        assert r.ask("CONFIG", "GET", "maxmemory") and b"redis_version" in r.ask("INFO")
    for requests in ((("SUBSCRIBE", "a"),), (("PSUBSCRIBE", "a"),), (("SSUBSCRIBE", "a"),),
                     (("BLPOP", "a", 1),), (("WATCH", "a"),), (("MULTI",), ("SET", "a", 1)),
                     (("MONITOR",),), (("EVAL", "return 1", 0),), (("NOSUCH",),), (("GET",),),
                     (("CONFIG", "SET", "maxmemory", "0"),), (("CLIENT", "REPLY", "OFF"),),
                     (("SET", "a", "x" * 200000),)):
        with s.resp() as r:
            assert is_id(r.ask("GET", "id:a"))
            for q in requests[:-1]:
                assert r.ask(*q) == b"OK"
            r.send(R(*requests[-1]))
            assert r.rest() == b"", requests
    redis.start()
    with s.resp() as r:
        until("it is back", lambda: r.ask("SET", "a", 1) == b"OK", 5)


@test("a reply that will not come closes the connection: nobody knows whether it was carried out")
def half_done(case):
    with Puppet() as puppet:
        s = before_puppet(case, puppet)
        with s.resp() as r, s.resp() as idle:
            r.send(R("INCR", "n") + R("GET", "id:a"))
            link = puppet.accept()
            assert puppet.hear(link) == R("INCR", "n")
            assert is_id(idle.ask("GET", "id:a"))
            link.close()
            assert r.rest() == b""
            assert is_id(idle.ask("GET", "id:a"))


@test("memcached breaks off within a value: the client is closed, and told nothing that would be of it")
def half_a_value(case):
    with Puppet() as puppet:
        s = case.sidecar(case.pool(), {"upstream.memcached": "tcp://127.0.0.1:%d" % puppet.port})
        with s.mc() as m:
            m.send(b"get a\r\n")
            link = puppet.accept()
            assert puppet.hear(link) == b"get a\r\n"
            link.sendall(b"VALUE a 0 60\r\nabc")
            assert m.take(17) == b"VALUE a 0 60\r\nabc"
            link.close()
            assert m.rest() == b""


def heard(publish, seen, what):
    """Publishes until something is seen."""
    def once():
        publish()
        return seen()
    until(what, once, 15)


@test("redis-py: a subscriber gets messages again after Redis was restarted")
def subscriber(case):
    redis = case.redis()
    s = behind(case, redis)
    client = redispy.Redis(port=s.resp_port)
    sub, got, done = client.pubsub(), [], threading.Event()
    sub.subscribe("news")

    def listen():
        while not done.is_set():
            try:
                m = sub.get_message(timeout=0.1)
                if m and m["type"] == "message":
                    got.append(m["data"])
            except redispy.ConnectionError:
                time.sleep(0.05)

    thread = threading.Thread(target=listen, daemon=True)
    thread.start()
    try:
        heard(lambda: redis.ask("PUBLISH", "news", "1"), lambda: b"1" in got, "the first message")
        redis.kill()
        time.sleep(1)
        assert thread.is_alive(), "an error that is none of a connection"
        redis.start()
        heard(lambda: redis.ask("PUBLISH", "news", "2"), lambda: b"2" in got, "the second message")
    finally:
        done.set()
        thread.join(5)


@test("redis-py: what was asked for while Redis is away is an error of the connection")
def redis_py(case):
    redis = case.redis()
    s = behind(case, redis)
    client = redispy.Redis(port=s.resp_port)
    assert client.set("a", 1)
    redis.kill()
    for call in (lambda: client.get("a"), lambda: client.pipeline().set("a", 2).execute(),
                 lambda: client.blpop("a", 1), lambda: client.eval("return 1", 0)):
        try:
            raise AssertionError("expected an error, found %r" % (call(),))
        except redispy.ConnectionError:
            pass
        assert int(client.get("id:a")) > 0
    redis.start()

    def back():
        try:
            return client.get("a") is None
        except redispy.ConnectionError:
            return False
    until("it is back", back, 5)


@test("ioredis: a subscriber gets messages again, and commands are sent again", timeout=300)
def ioredis(case):
    runner.need_node_modules()
    redis = case.redis()
    s = behind(case, redis)
    script = os.path.join(harness.HERE, "node", "subscriber.js")
    with subprocess.Popen(("node", script, str(s.resp_port)), stdout=subprocess.PIPE, text=True,
                          preexec_fn=harness.die_with_parent) as node:
        lines = []
        threading.Thread(target=lambda: lines.extend(iter(node.stdout.readline, "")),
                         daemon=True).start()
        try:
            heard(lambda: redis.ask("PUBLISH", "news", "1"), lambda: "message 1\n" in lines,
                  "the first message")
            redis.kill()
            time.sleep(1)
            ids = lines.count("id\n")
            redis.start()
            heard(lambda: redis.ask("PUBLISH", "news", "2"), lambda: "message 2\n" in lines,
                  "the second message")
            until("IDs to go on", lambda: lines.count("id\n") > ids + 5)
            assert node.poll() is None, "it has ended: %s" % lines
        finally:
            node.kill()


# ---- subscriptions ----------------------------------------------------------------------------


def alike(case, redis, s, requests, n):
    """n replies to requests, sent together, are those of Redis; then IDs are had."""
    data = b"".join(R(*q) for q in requests)
    for proto in (2, 3):
        both = []
        for address in (("127.0.0.1", redis.port), ("127.0.0.1", s.resp_port)):
            with wire.Resp(address) as r:
                r.ask("HELLO", proto)
                r.send(data)
                got = []
                while len(got) < n and (r.buf or not r.silent(1)):
                    got.append(repr(r.reply()))
                both.append(got)
                assert len(got) == n and r.silent(0.05), "%s, RESP%d, %r: %r, not %d replies" % (
                    address, proto, requests, got, n)
                last = repr(r.ask("GET", "id:a"))
        assert both[0] == both[1], "RESP%d, %r: expected %r, found %r" % (
            proto, requests, both[0], both[1])
        assert last.startswith("b'") or "Can't execute" in last, (requests, last)


@test("SUBSCRIBE and its kin, errors included: the replies of Redis, and the connection goes on")
def subscriptions(case):
    redis = case.redis()
    s = behind(case, redis)
    for requests, n in (
            ((("SUBSCRIBE",),), 1), ((("UNSUBSCRIBE",),), 1), ((("PUNSUBSCRIBE",), ("PING",)), 2),
            ((("UNSUBSCRIBE", "a", "b"), ("PING",)), 3),
            ((("SUBSCRIBE", "a", "b", "a"), ("UNSUBSCRIBE",), ("PING",)), 6),
            ((("SUBSCRIBE", "a"), ("PSUBSCRIBE", "b*"), ("UNSUBSCRIBE",), ("PING",),
              ("PUNSUBSCRIBE",), ("PING",)), 6),
            ((("SSUBSCRIBE", "a"), ("SUBSCRIBE",), ("SUNSUBSCRIBE",), ("GET", "k")), 4),
            ((("SUBSCRIBE", "a"), ("SUBSCRIBE",), ("PING", "x"), ("UNSUBSCRIBE", "a")), 4),
            ((("SUBSCRIBE", "a"), ("RESET",), ("PING",), ("GET", "k")), 4),
            ((("RPUSH", "l", "message", "x", "y"), ("LRANGE", "l", 0, 2), ("SUBSCRIBE", "a"),
              ("UNSUBSCRIBE",), ("LRANGE", "l", 0, 2), ("DEL", "l")), 6),
            ((MUTE, ("SUBSCRIBE", "a"), ("UNSUBSCRIBE", "a"), LOUD, ("GET", "k")), 4),
            ((MUTE, ("SUBSCRIBE",), ("UNSUBSCRIBE", "a"), LOUD, ("UNSUBSCRIBE",)), 3),
            ((SKIP, ("SUBSCRIBE", "a"), ("UNSUBSCRIBE",), ("GET", "k")), 3),
            ((SKIP, ("RESET",), ("SET", "k", 1), ("GET", "k"), ("DEL", "k")), 3),
            ((MUTE, ("SET", "k", 1), ("RESET",), ("GET", "k"), ("DEL", "k")), 3),
            ((("MULTI",), ("SET", "k", 1), ("RESET",), ("GET", "k")), 4),
            ((("WATCH", "k"), ("RESET",), ("MULTI",), ("EXEC",)), 4)):
        alike(case, redis, s, requests, n)


@test("users of Redis: NOPERM is the answer to SUBSCRIBE; who may not PING can subscribe")
def permissions(case):
    redis = case.redis()
    for user in (("deaf", "on", ">p", "+@all", "-subscribe", "-unsubscribe", "allkeys"),
                 ("some", "on", ">p", "+@all", "resetchannels", "&mine", "allkeys"),
                 ("quiet", "on", ">p", "-@all", "+subscribe", "+unsubscribe", "+hello", "allchannels")):
        assert redis.ask("ACL", "SETUSER", *user) == b"OK"
    s = behind(case, redis)
    for hello in ((), ("HELLO", "3")):
        for user, requests in (
                ("deaf", (("SUBSCRIBE", "a"), ("UNSUBSCRIBE",), ("UNSUBSCRIBE", "a", "b"))),
                ("some", (("SUBSCRIBE", "a", "b"), ("SUBSCRIBE", "mine"), ("UNSUBSCRIBE",))),
                ("quiet", (("SUBSCRIBE", "a"), ("UNSUBSCRIBE", "a"), ("UNSUBSCRIBE",)))):
            answers = []
            for address in (("127.0.0.1", redis.port), ("127.0.0.1", s.resp_port)):
                with wire.Resp(address) as r:
                    assert r.ask("CLIENT", "SETNAME", "app") == b"OK"
                    assert r.ask("AUTH", user, "p") == b"OK"
                    if hello:
                        r.ask(*hello)
                    together(r, *requests)
                    answers.append([repr(r.reply()) for _ in requests])
                    assert r.silent(0.05)
            assert answers[0] == answers[1], "%s: expected %r, found %r" % (user, *answers)
            with s.resp() as r:
                assert r.ask("AUTH", user, "p") == b"OK"
                r.ask(*requests[0])
                assert r.silent(0.05), "%s is closed" % user


@test("an error to UNSUBSCRIBE that Redis does not know, as Valkey's NOSUB, is passed on")
def nosub(case):
    with Puppet() as puppet:
        s = before_puppet(case, puppet)
        with s.resp() as r:
            for names in ((), ("a", "b")):
                r.send(R("UNSUBSCRIBE", *names) + R("GET", "id:a"))
                link = link if names else puppet.accept()
                assert puppet.hear(link) == R("UNSUBSCRIBE", *names)
                link.sendall(b"-NOSUB not subscribed\r\n")
                error(r.reply(), "NOSUB")
                assert is_id(r.reply())


@test("the status page says of each server behind whether it is reached, and else why")
def page_behind(case):
    options = {"upstream.memcached": "unix://" + case.path("nobody"),
               "upstream.redis": "unix://" + case.path("nobody")}
    s = case.sidecar("static:1", options)
    page = lambda: re.sub("<[^>]*>", "", s.http("/", {"Accept": "text/html"}).text.replace("</tr>", "\n"))
    line = lambda name: re.search("^%s(?:[^a-zA-Z]*)(not asked for yet|unreachable|reached)(.*)" % name,
                                  page(), re.M).groups()
    assert line("memcached")[0] == "not asked for yet", page()
    with s.mc() as m:
        assert m.ask("get k").startswith("SERVER_ERROR")
    time.sleep(1.1)  # the page is rendered at most once a second
    assert line("memcached")[0] == "unreachable" and "No such file" in page(), page()
    assert line("Redis")[0] == "not asked for yet" and "; PING is answered here" in line("Redis")[1], page()


# ---- PING -------------------------------------------------------------------------------------


@test("upstream.ping: answered here, or by Redis, with all that it has to say")
def ping(case):
    redis = case.redis()
    here, there = behind(case, redis), behind(case, redis, options={"upstream.ping": "there"})
    page = lambda s: s.http("/", {"Accept": "text/html"}).text
    assert "PING is answered here" in page(here) and "PING is answered there" in page(there)
    with there.resp() as r, here.resp() as h:
        assert r.ask("PING") == b"PONG" and r.ask("PING", "x") == b"x"
        together(r, ("MULTI",), ("PING",), ("EXEC",))
        assert [r.reply() for _ in range(3)] == [b"OK", b"QUEUED", [b"PONG"]]
        together(r, ("MULTI",), ("GET", "id:a"), ("PING",), ("EXEC",))
        assert [r.reply() for _ in range(3)] == [b"OK", b"QUEUED", b"QUEUED"]
        got = r.reply()
        assert is_id(got[0]) and got[1] == b"PONG"
    with there.resp() as r, here.resp() as h:
        assert r.ask("PING") == b"PONG"
        assert redis.ask("REPLICAOF", "127.0.0.1", "1") == b"OK"
        assert redis.ask("CONFIG", "SET", "replica-serve-stale-data", "no") == b"OK"
        error(r.ask("PING"), "MASTERDOWN")
        assert h.ask("PING") == b"PONG"
        redis.kill()
        there.wait_log("upstream lost")  # who asked before that would be closed
        assert h.ask("PING") == b"PONG"
        error(r.ask("PING"), AWAY)
        assert is_id(r.ask("GET", "id:a"))


@test("servers behind that are away: counted apart from IDs that could not be had, and the page warns of them")
def away_is_no_failure(case):
    redis, memcached = case.redis(), case.memcached()
    s = case.sidecar(case.pool(), {"upstream.redis": "tcp://127.0.0.1:%d" % redis.port,
                                   "upstream.memcached": "tcp://127.0.0.1:%d" % memcached.port})
    s.wait_held(2)
    with s.resp() as r, s.mc() as m:
        assert r.ask("GET", "x") is None and m.get("x") == []
    redis.kill()
    memcached.kill()
    s.wait_log("upstream lost protocol=redis")
    s.wait_log("upstream lost protocol=memcached")
    with s.resp() as r, s.mc() as m, binary.Binary(("127.0.0.1", s.mc_port)) as b:
        assert AWAY in str(r.ask("GET", "x"))
        for request in (b"get x\r\n", b"set x 0 0 1\r\n1\r\n"):
            m.send(request)
            assert m.line() == b"SERVER_ERROR upstream unavailable"
        assert b.ask(binary.GET, b"x").status == binary.TEMPORARY
        assert int(r.ask("GET", "id:orders")) > 0 and m.id() > 0 and b.id() > 0
    page = s.metrics()
    for protocol, command, n in (("redis", "get", 1), ("memcached", "get", 2), ("memcached", "set", 1)):
        assert page.value("sidflake_requests_total", protocol=protocol, command=command, result="away") == n
    assert 'result="failed"' not in s.http("/metrics").text.split("sidflake_requests_total", 1)[1].split("# ")[0]
    html = s.http("/").text
    assert "requests for IDs or numbers failed" not in html
    for name in ("Redis", "memcached"):
        assert re.search("the %s behind cannot be reached for [0-9.]+ m?s: " % name, html), html
    assert s.ready_status() == 200


@test("memcached hangs: behind quiet requests no mark says that they missed, or were done")
def quiet(case):
    server = case.memcached()
    s = behind(case, None, server, {"upstream.timeout": "400ms"})
    key, noop, extras = b"k", binary.request(binary.NOOP), b"\0" * 8
    asked = [binary.request(op, key, *rest) + noop for op, *rest in (
        (binary.GETQ,), (binary.GETKQ,), (binary.SETQ, b"v", extras), (binary.DELETEQ,))]
    asked += [b"mg k v q\r\nmn\r\n", b"ms k 1 q\r\nv\r\nmn\r\n", b"md k q\r\nmn\r\n"]
    for request in asked:
        with s.mc() as m, s.mc() as before:
            assert before.ask("set k 0 0 1\r\nv") == "STORED"
            os.kill(server.popen.pid, signal.SIGSTOP)
            try:
                m.send(request)
                assert m.rest() == b""
            finally:
                os.kill(server.popen.pid, signal.SIGCONT)
