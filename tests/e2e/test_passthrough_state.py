"""Pass-through: what a client's connection remembers in Redis, here and there, and that nobody else
is touched by it."""

import time

import wire
from harness import until
from runner import test
from test_auth import CRYPT, sidecar as with_users
from test_passthrough import behind, error
from test_passthrough_hostile import Puppet, before_puppet

MUTE, LOUD = ("CLIENT", "REPLY", "OFF"), ("CLIENT", "REPLY", "ON")
SKIP = ("CLIENT", "REPLY", "SKIP")


def together(r, *requests):
    """All in one write."""
    r.send(b"".join(wire.Resp.encode(*q) for q in requests))


def is_id(reply):
    return isinstance(reply, bytes) and len(reply) > 10 and int(reply) > 0


@test("subscribed is who Redis says is, whatever was agreed upon before, or muted")
def subscribed(case):
    redis = case.redis()
    s = behind(case, redis)
    redis.ask("SET", "id:a", "7")
    with s.resp() as r:
        assert r.ask("CLIENT", "SETNAME", "app") == b"OK"
        assert r.ask("SUBSCRIBE", "c") == [b"subscribe", b"c", 1]
        assert r.ask("PING", "x") == [b"pong", b"x"]
        error(r.ask("GET", "id:a"), "ERR Can't execute 'get'")
        assert r.ask("UNSUBSCRIBE", "c") == [b"unsubscribe", b"c", 0]
        assert is_id(r.ask("GET", "id:a"))
    with s.resp() as r:
        together(r, ("CLIENT", "SETNAME", "app"), ("SUBSCRIBE", "c"), ("UNSUBSCRIBE", "c"),
                 ("GET", "id:a"))
        assert r.reply() == b"OK" and r.reply()[2] == 1 and r.reply()[2] == 0
        assert is_id(r.reply()) and is_id(r.ask("GET", "id:a"))
    with s.resp() as r:
        together(r, MUTE, ("SUBSCRIBE", "c"), ("UNSUBSCRIBE", "c"), LOUD, ("GET", "id:a"))
        assert r.reply()[2] == 1 and r.reply()[2] == 0 and r.reply() == b"OK"
        assert is_id(r.reply()) and is_id(r.ask("GET", "id:a"))
    for words in ("UNSUBSCRIBE c|CLIENT REPLY ON|GET id:a|GET k", "CLIENT REPLY ON|RESET|GET id:a|GET k",
                  "CLIENT REPLY ON|CLIENT SETNAME x|PUNSUBSCRIBE|UNSUBSCRIBE|CLIENT REPLY ON|GET id:a|GET k"):
        replies = []
        for to in (redis, s):
            with wire.Resp(to.sock) if to is redis else to.resp() as r:
                together(r, MUTE, ("SUBSCRIBE", "c"))
                assert r.reply()[2] == 1
                together(r, *(w.split() for w in words.split("|")))
                replies.append([])
                while not replies[-1] or replies[-1][-1] is not None:  # k is not there
                    replies[-1].append(r.reply())
        there, here = replies
        assert there[-2] == b"7" and is_id(here[-2]), (words, replies)
        assert there[:-2] == here[:-2], (words, replies)
    with s.resp() as r:
        assert r.ask("HELLO", "3") and r.ask("SUBSCRIBE", "c") and r.ask("HELLO", "2")
        error(r.ask("GET", "id:a"), "ERR Can't execute 'get'")
        assert r.ask("UNSUBSCRIBE", "c")[2] == 0 and is_id(r.ask("GET", "id:a"))


@test("a HELLO with a login, on a connection of its own, is for the server's replies, too")
def hello_with_login(case):
    redis = case.redis()
    s = behind(case, redis, options={"auth.mode": "accept_any"})
    redis.ask("HSET", "h", "a", "1")
    with s.resp() as r:
        assert r.ask("WATCH", "x") == b"OK" and r.ask("HGETALL", "h") == [b"a", b"1"]
        assert r.ask("HELLO", "3", "AUTH", "user", "secret") and r.ask("HGETALL", "h") == {b"a": b"1"}
        assert r.ask("HELLO", "2", "AUTH", "user", "secret") and r.ask("HGETALL", "h") == [b"a", b"1"]


@test("a HELLO that the server refuses changes no more than it does there")
def refused_hello(case):
    redis = case.redis()
    s = behind(case, redis)
    for bad in ("3 SETNAME a\0b", "3 SETNAME", "3 AUTH default", "3 SETNAME a NOSUCH b", "4", "3x",
                "3 SETNAME a SETNAME \n", "7 SETNAME b"):
        found = []
        for connect in (lambda: wire.Resp(redis.sock), s.resp):
            with connect() as r:
                assert r.ask("SELECT", "1") == b"OK"
                error(r.ask("HELLO", *bad.split(" ")), "ERR ", "NOPROTO ")
                found.append((r.ask("CLIENT", "GETNAME"), r.ask("SUBSCRIBE", "c"), r.ask("PING")))
                assert r.ask("UNSUBSCRIBE") and r.ask("HELLO", "3", "SETNAME", "n" * 99)
                found[-1] += (r.ask("SUBSCRIBE", "c"), r.ask("PING"))
        assert found[0] == found[1], "%r: expected %r,\nfound %r" % ((bad,) + tuple(found))


@test("the protocol is the one that the server has agreed to, and an ID key is none of its")
def agreed_protocol(case):
    redis = case.redis()
    s = behind(case, redis)
    wrong, there = ("AUTH", "nobody", "wrong"), b"4711"
    redis.ask("SET", "id:a", there)
    with s.resp() as r:
        assert r.ask("HELLO", "3") and r.ask("CLIENT", "SETNAME", "me") == b"OK"
        error(r.ask("HELLO", "2", *wrong), "WRONGPASS ")
        assert r.ask("CLIENT", "GETNAME") == b"me" and r.ask("HGETALL", "none") == {}
        error(r.ask("HELLO", "2", *wrong), "WRONGPASS ")
        assert r.ask("SUBSCRIBE", "c") and is_id(r.ask("GET", "id:a")) and r.ask("INCR", "id:a") > 1 << 40
        error(r.ask("SET", "id:a", "7"), "ERR ")
    with s.resp() as r:
        error(r.ask("HELLO", "3", *wrong), "WRONGPASS ")
        assert r.ask("SUBSCRIBE", "c") and r.ask("PING") == [b"pong", b""]
        error(r.ask("GET", "id:a"), "ERR Can't execute 'get'")
    with s.resp() as r:
        assert r.ask("CLIENT", "SETNAME", "me") == b"OK" and r.ask("HELLO", "3", "AUTH", "default", "p")
        assert r.ask("CLIENT", "GETNAME") == b"me" and r.ask("HGETALL", "none") == {}
        together(r, ("HELLO", "2"), ("HGETALL", "none"), ("HELLO", "3"), ("GET", "id:a"), ("HGETALL", "none"))
        assert r.reply()[0] == b"server" and r.reply() == [] and b"server" in r.reply()
        assert is_id(r.reply()) and r.reply() == {}
    with s.resp() as r:
        assert r.ask("HELLO", "3") and r.ask("GET", "s") is None and r.ask("MULTI") == b"OK"
        assert r.ask("SET", "k", "v") == b"QUEUED"
        error(r.ask("HELLO", "2"), "ERR HELLO within a transaction")
        assert r.ask("DISCARD") == b"OK" and r.ask("SUBSCRIBE", "c") and is_id(r.ask("GET", "id:a"))
    assert redis.ask("GET", "id:a") == there


@test("CLIENT REPLY: what is answered here counts there, too")
def muted(case):
    redis = case.redis()
    s = behind(case, redis)
    redis.ask("SET", "k", "v")
    for here in (("PING",), ("GET", "id:a"), ("MGET", "id:a", "k"),
                 ("EVAL", "return 1", "1", "id:a"), ("MSET", "id:a", "1", "k", "2"),
                 ("CLIENT", "TRACKING", "ON")):
        with s.resp() as r:
            together(r, SKIP, here, ("GET", "k"), ("GET", "k"))
            assert r.reply() == b"v" and r.reply() == b"v", here
        with s.resp() as r:
            together(r, MUTE, here, LOUD, ("GET", "k"))
            assert r.reply() == b"OK" and r.reply() == b"v", here


@test("CLIENT REPLY OFF: no reply is awaited to a transaction, nor told of what is refused in it")
def muted_transaction(case):
    redis = case.redis()
    s = behind(case, redis, options={"upstream.timeout": "1s"})
    redis.ask("SET", "k", "v")
    multi, run, get = ("MULTI",), ("EXEC",), ("GET", "k")
    for within in ((multi, ("SET", "a", "1"), run), (multi, ("SET", "a", "2"), ("DISCARD",)),
                   (multi, ("SET", "a", "3"), ("GET", "id:a"), run), (multi, run),
                   (multi, ("GET", "id:a"), ("SET", "a", "4"), run),
                   (multi, ("SET", "a", "5"), ("SUBSCRIBE", "c"), run)):
        with s.resp() as r:
            together(r, MUTE, *within, LOUD, get)
            assert r.reply() == b"OK" and r.reply() == b"v", within
            time.sleep(1.2)  # beyond the time for a reply
            assert r.ask(*get) == b"v", within
    assert redis.ask("GET", "a") == b"1"


@test("CLIENT REPLY SKIP: a request without a word is skipped like any other")
def muted_and_empty(case):
    redis = case.redis()
    s = behind(case, redis)
    redis.ask("SET", "k", "v")
    for empty in (b"\r\n", b"   \r\n", b"*0\r\n", b"*-1\r\n", b"\r\n*0\r\n"):
        for pause in (0, 0.05):
            with s.resp() as r:
                r.send(wire.Resp.encode(*SKIP))
                time.sleep(pause)
                r.send(empty + wire.Resp.encode("ECHO", "a") + wire.Resp.encode("GET", "k"))
                assert r.reply() == b"a" and r.reply() == b"v", empty


@test("requests without replies reach Redis before their connection ends")
def last_words(case):
    redis = case.redis()
    s = behind(case, redis)
    sets = [("SET", "k%d" % i, "v") for i in range(100)]
    for at_once in (True, False):
        for end in (("QUIT",), ("RESET",), None):
            redis.ask("FLUSHALL")
            with s.resp() as r:
                if not at_once:
                    r.send(wire.Resp.encode(*MUTE))
                    time.sleep(0.05)
                together(r, *([MUTE] if at_once else []), *sets, *([end] if end else []))
                if end == ("RESET",):
                    assert r.reply() == b"RESET" and r.ask("GET", "k99") == b"v"
            until("Redis to have all of them, %s" % (end,), lambda: redis.ask("DBSIZE") == 100)


@test("what sticks to a connection is its client's own")
def sticky(case):
    s = behind(case, case.redis())
    links = lambda: s.metric("sidflake_upstream_connections", protocol="redis")
    with s.resp() as other:
        assert other.ask("SET", "k", "v") == b"OK" and links() == 1
        for request in (("SCRIPT", "DEBUG", "YES"), ("READONLY",), ("ASKING",), ("SET", "k")):
            with s.resp() as r:
                assert r.ask("GET", "k") == b"v"
                r.ask(*request)
                assert links() == 2, request
                assert other.ask("INCRBY", "n", 1) > 0 and other.ask("GET", "k") == b"v"
            until("the link to go with its client", lambda: links() == 1)


@test("a client with a link of its own: IDs, and all that it agreed upon")
def own(case):
    redis = case.redis()
    s = behind(case, redis)
    with s.resp() as r:
        assert r.ask("SELECT", 3) == b"OK"
        for i in range(50): # of a known form, from the second on
            together(r, ("SET", "k", i), ("GET", "id:a"), ("GET", "k"), ("GET", "none"))
            assert r.reply() == b"OK" and is_id(r.reply()), i
            assert r.reply() == b"%d" % i and r.reply() is None, i
        assert r.ask("HELLO", "3") and r.ask("GET", "none") is None
        assert r.ask("HGETALL", "none") == {}
        assert r.ask("SELECT", 0) == b"OK" and r.ask("GET", "k") is None
        together(r, ("MULTI",), ("GET", "k"), ("SET", "k", 1), ("EXEC",), ("GET", "k"))
        assert [r.reply() for _ in range(5)] == [b"OK", b"QUEUED", b"QUEUED", [None, b"OK"], b"1"]


@test("MULTI takes no subscription, whoever has it")
def no_subscription_in_multi(case):
    s = behind(case, case.redis())
    for before in ((), (("SET", "k", "v"),)):
        with s.resp() as r:
            assert r.ask("MULTI") == b"OK"
            for q in before:
                assert r.ask(*q) == b"QUEUED"
            error(r.ask("SUBSCRIBE", "c"), "ERR subscribing within a transaction")
            error(r.ask("EXEC"), "EXECABORT")
            assert is_id(r.ask("GET", "id:a")) and r.ask("GET", "k") is None


@test("an ID that a user may not have is no key of Redis")
def names_of_users(case):
    redis = case.redis()
    s = with_users(case, {"upstream.redis": "tcp://127.0.0.1:%d" % redis.port},
                   users="bob:%s:names=orders:upstream=all\n" % CRYPT)
    with s.resp() as r:
        assert r.ask("AUTH", "bob", "secret") == b"OK" and r.ask("LPUSH", "l", 3, 1) == 2
        for q in (("EVAL", "return redis.call('set', KEYS[1], '9')", 1, "id:x"),
                  ("SORT", "l", "STORE", "id:x"), ("LMPOP", 1, "id:x", "LEFT"),
                  ("SET", "id:x", 1), ("COPY", "l", "id:x")):
            error(r.ask(*q), "ERR id key 'id:x' is not allowed to user 'bob'")
    assert redis.ask("KEYS", "*") == [b"l"]


@test("a reply with something unasked behind it is still its client's")
def unasked(case):
    with Puppet() as puppet:
        s = before_puppet(case, puppet)
        with s.resp() as r:
            r.send(wire.Resp.encode("SET", "k", "v"))
            link = puppet.accept()
            puppet.hear(link)
            link.sendall(b"+YES\r\n+EXTRA\r\n")
            assert r.reply() == b"YES" and is_id(r.ask("GET", "id:a"))


@test("what is answered here is never within a message that has come in part")
def within_a_message(case):
    ack = b"3\r\n$9\r\nsubscribe\r\n$1\r\nc\r\n:1\r\n"
    head = b"3\r\n$7\r\nmessage\r\n$1\r\nc\r\n$100000\r\n"
    hello = b"%1\r\n$6\r\nserver\r\n$5\r\nredis\r\n"
    message = [b"message", b"c", b"x" * 100000]
    for proto, mark, asked in (("3", b">", (("GET", "id:a"), ("PING",), ("PING", "x" * 700))),
                               ("2", b"*", (("QUIT",),))):
        with Puppet() as puppet:
            s = before_puppet(case, puppet)
            with s.resp() as r:
                assert r.ask("HELLO", proto)
                r.send(wire.Resp.encode("SUBSCRIBE", "c"))
                link = puppet.accept()
                puppet.hear(link)
                link.sendall((hello if proto == "3" else b"") + mark + ack)
                assert r.reply()[:2] == [b"subscribe", b"c"]
                link.sendall(mark + head + b"x" * 60000)
                while len(r.buf) < 60000:
                    r.fill()
                together(r, *asked)
                time.sleep(0.2)
                link.sendall(b"x" * 40000 + b"\r\n")
                assert r.reply() == message
                if proto == "3":
                    assert is_id(r.reply()) and r.reply() == b"PONG" and len(r.reply()) == 700
                else:
                    assert r.reply() == b"OK" and r.rest() == b""
            s.stop()


@test("memcached: a browser is hung up on, whether a link is open or not")
def browser(case):
    s = behind(case, memcached=case.memcached())
    for first in (b"", b"get k\r\n"):
        with s.mc() as m:
            m.send(first)
            if first:
                assert m.line() == b"END"
            m.send(b"get HTTP/1.1\r\n")
            assert m.rest() == b""


IN_VAIN = [
    "WATCH k|MULTI foo|GET k|EXEC|GET k", "MULTI|SET k 2|DISCARD foo|EXEC|GET k|DISCARD|GET k",
    "MULTI|SET k 2|EXEC foo|EXEC|GET k|EXEC", "SELECT 1|SET k 3|HELLO 3|RESET foo|GET k|HGETALL h",
    "SELECT 1|SUBSCRIBE a|RESET foo|PING|UNSUBSCRIBE a", "WATCH k|UNWATCH foo|MULTI|GET k|EXEC",
    "SELECT 1|CLIENT REPLY FOO|GET k|CLIENT REPLY SKIP|CLIENT REPLY FOO|GET k|PING",
    "SELECT 1|CLIENT REPLY SKIP|CLIENT REPLY SKIP|GET k|PING|GET k",
    "SELECT 1|CLIENT REPLY SKIP x|GET k|PING"]


def said(stream, requests):
    """What each is answered, with PING behind all, so that one reply too few is seen."""
    for request in requests:
        stream.send(wire.Resp.encode(*request.split()))
        stream.sock.settimeout(0.2)
        try:
            while True:
                reply = stream.reply()
                yield request, str(reply) if not request.startswith("HELLO") else "a map"
        except TimeoutError:
            stream.sock.settimeout(10)


@test("what Redis refuses changes nothing that is followed here: as without us")
def in_vain(case):
    redis = case.redis()
    s = behind(case, redis)
    for line in IN_VAIN:
        found = []
        for connect in (lambda: wire.Resp(("127.0.0.1", redis.port)), s.resp):
            redis.ask("FLUSHALL")
            redis.ask("SET", "k", "v")
            with connect() as r:
                found.append(list(said(r, line.split("|"))))
        assert found[0] == found[1], "expected %r,\nfound %r" % tuple(found)


@test("within a transaction neither a login nor CLIENT REPLY, and no password goes to the server")
def barred_in_multi(case):
    redis = case.redis()
    s = with_users(case, {"upstream.redis": "tcp://127.0.0.1:%d" % redis.port},
                   users="ann:%s:upstream=all\n" % CRYPT)
    redis.ask("CONFIG", "SET", "slowlog-log-slower-than", "0")
    redis.ask("SLOWLOG", "RESET")
    for bad in (("AUTH", "ann", "secret"), ("AUTH", "default", "guess"), ("AUTH", "a", "secret", "c"),
                ("HELLO", "3", "AUTH", "ann", "secret"), ("HELLO", "2"), SKIP, MUTE):
        for begin in ([("MULTI",)], [("WATCH", "k"), ("MULTI",)], [("MULTI",), ("GET", "k")]):
            with s.resp() as r:
                assert r.ask("AUTH", "ann", "secret") == b"OK"
                for request in begin:
                    assert r.ask(*request) in (b"OK", b"QUEUED")
                error(r.ask(*bad), "ERR ")
                assert r.ask("GET", "k") == b"QUEUED"
                error(r.ask("EXEC"), "EXECABORT")
                assert r.ask("GET", "k") is None
    with s.resp() as r:
        assert r.ask("AUTH", "ann", "secret") == b"OK"
        error(r.ask("AUTH", "ann", "secret", "more"), "ERR ")
    heard = str(redis.ask("SLOWLOG", "GET", "1000"))
    assert "'GET'" in heard.replace("b'", "'") and "AUTH" not in heard, heard


BLOCK = 65536 + 2048  # of a request so much is seen


@test("a login that is not seen whole, or comes while subscribed, is not for the server")
def hidden_logins(case):
    redis = case.redis()
    s = with_users(case, {"upstream.redis": "tcp://127.0.0.1:%d" % redis.port},
                   users="ann:%s:upstream=all\n" % CRYPT)
    redis.ask("ACL", "SETUSER", "admin", "on", ">adminpw", "~*", "+@all")
    login = ("AUTH", "admin", "adminpw")
    for begin in ([("SELECT", "1")], [("SELECT", "1"), ("MULTI",)], [("WATCH", "k"), ("MULTI",)],
                  [("HELLO", "3"), ("SUBSCRIBE", "c")], [("SUBSCRIBE", "c")], [SKIP]):
        for name in (BLOCK, BLOCK - 33, BLOCK - 44, BLOCK - 52, 70000):
            with s.resp() as r:
                assert r.ask("AUTH", "ann", "secret") == b"OK"
                together(r, *begin)
                for _ in begin if begin != [SKIP] else ():
                    r.reply()
                together(r, ("HELLO", "3", "SETNAME", "n" * name) + login, ("GET", "k"))
                if begin != [SKIP]:
                    error(r.reply(), "ERR ")
                r.reply()
                users = redis.ask("CLIENT", "LIST")
                assert b"user=admin" not in users, users
    with s.resp() as r:
        assert r.ask("AUTH", "ann", "secret") == b"OK" and r.ask("SUBSCRIBE", "c")[2] == 1
        for bad in (("AUTH", "ann", "secret"), ("HELLO", "2", "AUTH", "ann", "secret")):
            error(r.ask(*bad), "ERR a login while subscribed")
        assert r.ask("PING") == [b"pong", b""]
    assert redis.ask("ACL", "LOG") == [], redis.ask("ACL", "LOG")


@test("who is subscribed in RESP3 hears no more once he is another user, nor after that one is gone")
def subscribed_as_another(case):
    redis = case.redis()
    s = with_users(case, {"upstream.redis": "tcp://127.0.0.1:%d" % redis.port},
                   users="ann:%s:upstream=all\nbob:%s\n" % (CRYPT, CRYPT))
    for begin in (("SUBSCRIBE", "c"), ("PSUBSCRIBE", "*"), ("SSUBSCRIBE", "c")):
        for login in (("AUTH", "bob", "secret"), ("HELLO", "3", "AUTH", "bob", "secret"),
                      ("HELLO", "2", "AUTH", "bob", "secret")):
            with s.resp() as r:
                assert r.ask("HELLO", 3, "AUTH", "ann", "secret")[b"proto"] == 3
                assert r.ask(*begin)[2] == 1
                for again in (("AUTH", "ann", "secret"), ("HELLO", "3", "AUTH", "ann", "secret")):
                    assert not isinstance(r.ask(*again), wire.Error)
                error(r.ask("AUTH", "bob", "wrong"), "WRONGPASS ")
                redis.ask(*("SPUBLISH" if begin[0][0] == "S" == begin[0][1] else "PUBLISH", "c", "m"))
                assert r.reply()[-1] == b"m"
                r.send(r.encode(*login) + r.encode("GET", "id:a"))
                r.reply()
                assert r.rest() == b"", (begin, login)
            until("nobody is subscribed", lambda: b" sub=0 psub=0 ssub=0 " in redis.ask("CLIENT", "LIST") and
                  redis.ask("PUBLISH", "c", "m") == redis.ask("SPUBLISH", "c", "m") == 0)


@test("who cannot be blocked is told that the server hangs, and who is blocked is not")
def patience(case):
    with Puppet() as puppet:
        s = before_puppet(case, puppet, {"upstream.timeout": "300ms"})
        for words in ("XREAD COUNT 1 STREAMS s 0", "XREADGROUP GROUP g c STREAMS s >",
                      "XREAD BLOCK 9 STREAMS s 0", "BLPOP q 9"):
            with s.resp() as r:
                asked = wire.Resp.encode(*words.split())
                r.send(asked)
                link = puppet.accept()
                while puppet.hear(link, 1) != asked:  # the shared one, since another timed out
                    link = puppet.accept()
                if "BLOCK" in words or "BLPOP" in words:
                    link.sendall(b"*-1\r\n")
                    assert r.reply() is None, words
                else:
                    assert r.rest() == b"", words


@test("what has no reply may block, too, and what comes behind it waits for it")
def muted_and_blocked(case):
    redis = case.redis()
    s = behind(case, redis, options={"upstream.timeout": "300ms"})
    redis.ask("SET", "k", "v")
    for mute, replies in ((SKIP, [b"v"]), (MUTE, [b"OK", b"v"])):
        with s.resp() as r:
            together(r, mute, ("BLPOP", "q", "1"), *([LOUD] if mute == MUTE else []), ("GET", "k"))
            for reply in replies:
                assert r.reply() == reply, mute
            together(r, mute, ("BLPOP", "q", "1"), ("GET", "id:a"), *([LOUD] if mute == MUTE else []),
                     ("GET", "k"))
            assert mute == MUTE or is_id(r.reply())
            for reply in replies:
                assert r.reply() == reply, mute


@test("limits.idle_timeout: as Redis', it spares who is blocked, subscribed or monitors")
def idle(case):
    redis = case.redis()
    s = behind(case, redis, options={"limits.idle_timeout": "500ms"})
    with s.resp() as blocked, s.resp() as told, s.resp() as told3, s.resp() as monitor, \
            s.resp() as silent:
        assert silent.ask("PING") == b"PONG"
        assert told.ask("SUBSCRIBE", "c")[2] == 1
        assert told3.ask("HELLO", "3") and told3.ask("PSUBSCRIBE", "c*")[2] == 1
        assert monitor.ask("MONITOR") == b"OK"
        blocked.send(blocked.encode("BLPOP", "nolist", "2"))
        assert blocked.reply() is None
        assert silent.rest() == b""
        redis.ask("PUBLISH", "c", "m")
        assert told.reply() == [b"message", b"c", b"m"] and told3.reply()[-1] == b"m"
        assert b"BLPOP" in monitor.line() and b"PUBLISH" in monitor.line()
        assert told.ask("UNSUBSCRIBE", "c")[2] == 0
        assert told.rest() == b"" and blocked.rest() == b""
        assert told3.silent(0.1)


@test("limits.idle_timeout spares who is blocked behind CLIENT REPLY OFF, and who watches memcached")
def idle_unasked(case):
    redis = case.redis()
    s = case.sidecar(case.pool(), {"limits.idle_timeout": "500ms", "upstream.redis": "unix://" + redis.sock,
                                   "upstream.memcached": "tcp://127.0.0.1:%d" % case.memcached().port})
    with s.resp() as muted, s.mc() as watcher, s.mc() as silent:
        muted.send(muted.encode("CLIENT", "REPLY", "OFF") + muted.encode("BLPOP", "q", "0"))
        watcher.send(b"watch mutations\r\n")
        assert watcher.line() == b"OK"
        assert silent.ask("set k 0 0 1\r\n1") == "STORED" and silent.rest() == b""
        time.sleep(1)
        muted.send(muted.encode("CLIENT", "REPLY", "ON"))
        redis.ask("RPUSH", "q", "v")
        assert muted.reply() == b"OK", "it was closed"
        with s.mc() as m:
            assert m.ask("set k2 0 0 1\r\n1") == "STORED"
        while b" key=k2 " not in watcher.buf:
            watcher.fill()
