"""What users may of the servers behind: nothing, reading, all, and by keys."""

import harness
import wire
from binary import Binary, request
from runner import test
from test_auth import CRYPT, sidecar as with_users
from test_upstream import password_file

RIGHTS = {"none": "", "named": ":names=orders", "read": ":upstream=read",
          "page": ":upstream=read:keys=page:*,x", "all": ":upstream=all",
          "own": ":upstream=all:keys=own:*", "streams": ":upstream=all:keys=s?*s,s1"}


def sidecar(case):
    path = case.path("users")
    with open(path, "w") as f:
        f.write("".join("%s:%s%s\n" % (name, CRYPT, what) for name, what in RIGHTS.items()))
    redis = harness.Redis(case, case.fresh_name("redis")).start()
    memcached = case.memcached()
    s = case.sidecar("static:7", {
        "auth.mode": "required", "auth.users_file": path, "workers.spare": 0,
        "upstream.redis": "tcp://127.0.0.1:%d" % redis.port,
        "upstream.memcached": "tcp://127.0.0.1:%d" % memcached.port})
    return s, redis, memcached


def login(s, user):
    r = s.resp()
    assert r.ask("AUTH", user, "secret") == b"OK"
    return r


def refused(reply):
    return isinstance(reply, Exception) and str(reply).startswith("NOPERM ")


def check(r, user, allowed, words):
    reply = r.ask(*words.split())
    assert refused(reply) != allowed, "%s: %s: expected %s, found %r" % (
        user, words, "an answer" if allowed else "NOPERM", reply)
    return reply


READS = """GET page:1|MGET page:1 x|STRLEN x|EXISTS page:1 page:2|HGETALL page:h|LRANGE x 0 1|
    ZUNION 2 page:a page:b|XREAD COUNT 1 STREAMS page:s 0|TTL x|TYPE x|SINTERCARD 1 x|WATCH page:1|
    UNWATCH|XREAD BLOCK 10 STREAMS page:s 0"""
OTHER_READS = """GET secret|MGET page:1 secret|EXISTS x secret|ZUNION 2 page:a secret|
    XREAD STREAMS page:s secret 0 0|WATCH secret|PFCOUNT x secret|LCS x secret"""
WRITES = """SET page:1 v|DEL page:1|GETDEL x|GETEX x PERSIST|EXPIRE x 9|INCR x|LPUSH page:l 1|
    SUNIONSTORE x page:1|COPY page:1 x|OBJECT ENCODING page:1|MEMORY USAGE x"""
NEITHER = """CONFIG SET maxmemory 0|CONFIG GET *|KEYS *|SCAN 0|RANDOMKEY|DBSIZE|FLUSHALL|FLUSHDB|
    SWAPDB 0 1|EVAL redis.call('get','secret') 0|EVAL return 1 page:1|EVAL_RO 1 1 page:1|FCALL f 0|
    SCRIPT LOAD x|SUBSCRIBE news|PSUBSCRIBE *|SSUBSCRIBE page:1|PUBLISH page:1 x|SPUBLISH page:1 x|
    PUBSUB CHANNELS|ACL LIST|ACL WHOAMI|CLIENT LIST|CLIENT KILL 1.2.3.4:5|CLIENT PAUSE 1|
    CLIENT UNPAUSE|CLIENT NO-EVICT on|DEBUG SLEEP 0|SAVE|BGSAVE|LASTSAVE|REPLICAOF no one|
    REPLCONF x y|PSYNC ? -1|SYNC|MONITOR|SHUTDOWN|MODULE LIST|LATENCY RESET|SLOWLOG GET|ROLE|WAIT 0 0|
    CLUSTER INFO|READONLY|MEMORY STATS|MIGRATE 127.0.0.1 1 page:1 0 10|FUNCTION LIST|FAILOVER|
    LOLWUT|PFSELFTEST|PFDEBUG GETREG page:1"""
HIDDEN = """SORT page:1 BY secret*|SORT page:1|GEORADIUS page:g 0 0 1 m STORE x STOREDIST secret|
    SORT_RO page:1 GET secret*"""
ANYBODY = """PING|ECHO x|SELECT 1|SELECT 0|CLIENT SETNAME a|CLIENT GETNAME|CLIENT ID|CLIENT INFO|INFO|
    COMMAND COUNT|TIME|HELLO 3|HELLO 2|MULTI|DISCARD|MULTI|EXEC"""


def words(text):
    return [line.strip() for line in text.replace("\n", "").split("|")]


def group_called_streams(s, redis):
    """Of XREADGROUP's words only one is STREAMS, and what is about it is not ours to guess."""
    with wire.Resp(redis.sock) as direct:
        direct.ask("XADD", "topsecret", "*", "f", "SECRET")
        assert direct.ask("XGROUP", "CREATE", "topsecret", "streams", "0") == b"OK"
    with login(s, "streams") as r:
        for w in ("XREADGROUP COUNT 5 GROUP streams s1 streams topsecret >",
                  "XREADGROUP NOACK COUNT 5 GROUP streams s1 streams topsecret >",
                  "XREADGROUP GROUP streams s1 STREAMS topsecret >",
                  "XREADGROUP GROUP streams s1 NOSUCH STREAMS s1 >"):
            check(r, "streams", False, w)
        check(r, "streams", True, "XREADGROUP COUNT 5 GROUP streams c STREAMS s1 >")


BLOCK = 65536 + 2048  # of a request so much is seen


@test("where the end of a request is not seen, keys that stand nowhere else are nobody's")
def beyond_the_block(case):
    s, redis, _ = sidecar(case)
    with wire.Resp(redis.sock) as there:
        there.ask("ZADD", "secret", 7, "SECRET")
        there.ask("RPUSH", "list", "SECRET")
    for words in (("ZUNIONSTORE", None, "1", "secret"), ("ZINTERSTORE", None, "1", "secret"),
                  ("ZDIFFSTORE", None, "1", "secret"), ("ZUNIONSTORE", None, "2", "own:b", "secret"),
                  ("SORT", "own:x", "BY", None, "STORE", "secret"),
                  ("XREAD", "COUNT", None, "STREAMS", "secret", "0"),
                  ("LMPOP", "1", None, "LEFT"), ("GEORADIUS", None, "0", "0", "1", "m", "STORE", "secret")):
        plain = [b"own:x" if w is None else w.encode() for w in words]
        end = len(wire.Resp.encode(*plain)) - wire.Resp.encode(*plain).index(b"own:x")
        for cut in range(0, end, 1):
            pad = b"own:" + b"d" * (BLOCK - 40 - cut)
            with login(s, "own") as r:
                reply = r.ask(*[pad if w is None else w for w in words])
                assert refused(reply) or b"SECRET" not in repr(reply).encode(), (words, cut, reply)
                assert refused(reply) or words[0] in ("LMPOP",), (words, cut, reply)
    with wire.Resp(redis.sock) as there:
        assert sorted(there.ask("KEYS", "*")) == [b"list", b"secret"], there.ask("KEYS", "*")


@test("Redis: a user has the rights of his line, and no others", timeout=120)
def redis_rights(case):
    s, redis, _ = sidecar(case)
    with wire.Resp(redis.sock) as direct:
        for k in ("page:1", "x", "secret", "own:1"):
            direct.ask("SET", k, k)
    for user in RIGHTS:
        with login(s, user) as r:
            for w in words(READS):
                check(r, user, user in ("read", "page", "all") or w == "UNWATCH", w)
            for w in words(OTHER_READS):
                check(r, user, user in ("read", "all"), w)
            for w in words(ANYBODY):
                check(r, user, True, w)
            if user == "all":
                continue
            for w in words(WRITES) + words(NEITHER) + words(HIDDEN)[:3]:
                check(r, user, False, w)
            check(r, user, user == "read", words(HIDDEN)[3])
            unknown = str(r.ask("NOSUCH", "own:1"))
            assert unknown.startswith("ERR unknown command"), unknown
            assert int(r.ask("GET", "id:orders")) > 0
            big = "y" * 200000
            assert refused(r.ask("SET", "secret", big)) and refused(r.ask("MGET", "secret", big))
            assert r.ask("PING") == b"PONG"
    with login(s, "own") as r:
        for w in ("SET own:1 v", "MSET own:1 a own:2 b", "COPY own:1 own:3", "LPUSH own:l 1",
                  "BLPOP own:l 1", "LMPOP 1 own:l LEFT", "OBJECT ENCODING own:1", "GETDEL own:3",
                  "ZUNIONSTORE own:z 1 own:y", "XADD own:s * a b", "DEL own:1"):
            check(r, "own", True, w)
        for w in ("SET x v", "MSET own:1 a x b", "COPY own:1 x", "COPY x own:1", "BLPOP own:l x 1",
                  "LMPOP 2 own:l x LEFT", "ZUNIONSTORE own:z 1 x", "ZUNIONSTORE x 1 own:y",
                  "OBJECT HELP", "LMPOP nonsense own:l LEFT",
                  "ZUNIONSTORE own:z 1.5 x", "ZDIFFSTORE own:z 4294967297 x", "RENAME own:2 x"):
            check(r, "own", False, w)
        assert r.ask("SET", "own:big", "y" * 300000) == b"OK"
        assert refused(r.ask("MSET", "own:a", "y" * 300000, "secret", "z")), "a key not seen yet"
    group_called_streams(s, redis)
    with wire.Resp(redis.sock) as direct:
        assert direct.ask("GET", "secret") == b"secret" and direct.ask("GET", "x") == b"x"
        assert direct.ask("GET", "page:1") == b"page:1"
    with login(s, "all") as r:
        assert r.ask("CONFIG", "SET", "maxmemory", "0") == b"OK"
        assert b"page:1" in r.ask("KEYS", "*") and r.ask("EVAL", "return 1", 0) == 1


@test("Redis: rights within transactions and for requests like the one before")
def redis_sequences(case):
    s, redis, _ = sidecar(case)
    with wire.Resp(redis.sock) as direct:
        for k in ("page:1", "secret", "own:1"):
            direct.ask("SET", k, k)
    with login(s, "all") as a, login(s, "page") as r:
        for _ in range(3):  # the form is known
            assert a.ask("GET", "secret") == b"secret"
            assert r.ask("GET", "page:1") == b"page:1"
            assert refused(r.ask("GET", "secret"))
        assert r.ask("MULTI") == b"OK" and r.ask("GET", "page:1") == b"QUEUED"
        assert refused(r.ask("GET", "secret")) and refused(r.ask("INFO"))
        assert str(r.ask("EXEC")).startswith("EXECABORT ")
        assert r.ask("MULTI") == b"OK" and r.ask("GET", "page:1") == b"QUEUED"
        assert "unknown command" in str(r.ask("NOSUCH", "page:1"))
        assert str(r.ask("EXEC")).startswith("EXECABORT ")
        assert r.ask("MULTI") == b"OK" and refused(r.ask("SET", "page:1", "v"))
        assert str(r.ask("EXEC")).startswith("EXECABORT ")
        assert r.ask("MULTI") == b"OK" and r.ask("GET", "page:1") == b"QUEUED"
        assert r.ask("EXEC") == [b"page:1"]
        assert r.ask("AUTH", "own", "secret") == b"OK"
        assert refused(r.ask("GET", "page:1")) and r.ask("GET", "own:1") == b"own:1"
        assert int(r.ask("MGET", "id:a", "own:1")[0]) > 0 and refused(r.ask("MGET", "id:a", "x"))
        r.send(b"".join(r.encode("GET", k) for k in ("own:1", "x", "id:a", "own:1")))
        assert r.reply() == b"own:1" and refused(r.reply())
        assert int(r.reply()) > 0 and r.reply() == b"own:1"
        r.send(b"get own:1\r\nget secret\r\n")  # inline
        assert r.reply() == b"own:1" and refused(r.reply())


@test("memcached: a user has the rights of his line, and no others")
def memcached_rights(case):
    s, _, memcached = sidecar(case)
    no = "CLIENT_ERROR not allowed to this user"
    with wire.Memcached(("127.0.0.1", memcached.port)) as direct:
        for k in ("page:1", "x", "secret", "own:1"):
            direct.ask("set %s 0 0 1\r\nv" % k)
    for user in RIGHTS:
        with s.mc() as c:
            assert c.ask("set login 0 0 %d\r\n%s secret" % (len(user) + 7, user)) == "STORED"
            reads = user in ("read", "page", "all")
            assert c.ask("version").startswith("VERSION ") and c.ask("mn") == "MN"
            assert c.ask("nonsense") == "ERROR"
            for line in ("mg page:1 v", "me page:1", "mg eDpi b v"):
                want = reads and not (user == "page" and line.endswith("b v"))
                got = c.ask(line)
                assert (got != no) == want, (user, line, got)
                if got.startswith("VA "):
                    c.line()
            for line in ("mg page:1 v T9", "mg page:1 N9 v", "touch page:1 0", "delete page:2",
                         "incr page:1 1", "set page:2 0 0 1\r\nv", "md page:2", "ms page:3 1\r\nv",
                         "ma page:9", "append page:1 0 0 1\r\nv"):
                got = c.ask(line)
                assert (got != no) == (user == "all"), (user, line, got)
                if got.startswith("VA "):
                    c.line()
            if user != "all":
                for line in ("flush_all", "verbosity 1", "cache_memlimit 64", "gat 0 page:1",
                             "set secret 0 0 3\r\nget"):
                    got = c.ask(line)
                    assert got in (no, "ERROR"), (user, line, got)
            c.send(b"set x 0 0 200000\r\n" + b"y" * 200000 + b"\r\n")
            assert (c.line().decode() != no) == (user == "all")
            c.send(b"get secret\r\n" if user in ("own", "page") else b"get x\r\n")
            first = c.line().decode()
            assert (first == no) == (user != "read" and user != "all"), (user, first)
    with s.mc() as c:
        assert c.ask("set login 0 0 10\r\nown secret") == "STORED"
        assert c.ask("set own:1 0 0 1\r\nw") == "STORED" and len(c.get("own:1 id:a")) == 2
        assert c.ask("get own:1 x") == no and c.ask("gat 9 own:1 x") == no
    with wire.Memcached(("127.0.0.1", memcached.port)) as direct:
        assert direct.get("secret") and direct.get("page:1"), "nothing was flushed"


UNCLEAR = "CLIENT_ERROR not allowed to this user: not in a form in which it can be judged"


def mc_login(s, user):
    c = s.mc()
    assert c.ask("set login 0 0 %d\r\n%s secret" % (len(user) + 7, user)) == "STORED"
    return c


@test("memcached: what memcached may read in another way than we is refused")
def memcached_unclear(case):
    s, _, memcached = sidecar(case)
    no = "CLIENT_ERROR not allowed to this user"
    hidden = "b3duOng="  # as base64: own:x
    with wire.Memcached(("127.0.0.1", memcached.port)) as direct, mc_login(s, "own") as c:
        for k in (hidden, "secret"):
            assert direct.ask("set %s 0 0 6\r\nSECRET" % k) == "STORED"
        assert c.ask("mg %s v" % hidden) == no and c.ask("mg %s v b" % hidden) == "EN"
        for line in ("mg %s v O\0 b", "mg %s v O\0", "md %s O\0 b", "ms %s 5 O\0 b\r\nwrote",
                     "me %s b\0", "me %s v b", "mg %s bX v", "mg %s v b O\t", "mg %s b v O\x01",
                     "MS %s 2 b\r\nhi", "SET %s 0 0 2\r\nhi"):
            assert c.ask(line % hidden) == UNCLEAR, line
        c.send(b"MS own:x 12\r\nget secret\r\n\r\nmn\r\n")  # to memcached a line of its own
        assert (c.line().decode(), c.line().decode()) == (UNCLEAR, "MN")
        assert direct.get(hidden)[0][1] == "SECRET", "it is as it was"


@test("memcached: an odd spelling is no miss, however long it is")
def memcached_odd(case):
    s, _, memcached = sidecar(case)
    no = "CLIENT_ERROR not allowed to this user"
    n = 9000
    page = ["page:%d" % i for i in range(n)]
    with wire.Memcached(("127.0.0.1", memcached.port)) as direct:
        direct.send(b"".join(b"set %s 0 0 1\r\nv\r\n" % k.encode() for k in page))
        assert all(direct.line() == b"STORED" for _ in page)
        assert direct.ask("set own:1 0 0 1\r\n5") == "STORED"
    with mc_login(s, "page") as c:
        for many in (300, n):
            assert len(c.get(*page[:many])) == many
            assert c.ask("get " + " ".join(page[:many] + ["secret"])) == no
            assert c.ask("get " + " ".join(["secret"] + page[:many])) == no
        assert c.ask("mn") == "MN" and len(c.get(*page[:2])) == 2
        c.send(b"mg page:1 v q\r\nmg page:none v q\r\nmn\r\n")
        assert [c.line() for _ in range(3)] == [b"VA 1", b"v", b"MN"]
    with mc_login(s, "none") as c:
        assert c.ask("get " + " ".join(page)) == no and c.ask("mn") == "MN"
    with mc_login(s, "own") as c:
        for line, want in (("incr own:1 01", "6"), ("touch own:1 00", "TOUCHED"),
                           ("add own:2 0 -1 1\r\nv", "STORED"), ("set own:3 00 0 1\r\nv", "STORED"),
                           ("delete own:1 0", "DELETED"), ("delete own:1 0", "NOT_FOUND")):
            got = c.ask(line)
            assert got == want, (line, got)


@test("memcached's binary protocol: likewise")
def binary_rights(case):
    s, _, memcached = sidecar(case)
    with wire.Memcached(("127.0.0.1", memcached.port)) as direct:
        direct.ask("set page:1 0 0 1\r\nv")
        direct.ask("set secret 0 0 1\r\nv")
    for user in RIGHTS:
        with Binary(("127.0.0.1", s.mc_port)) as c:
            assert c.ask(0x21, b"PLAIN", value=b"\0%s\0secret" % user.encode()).status == 0
            reads, all_ = user in ("read", "page", "all"), user == "all"
            for opcode, key, extras, value, may in (
                    (0x00, b"page:1", b"", b"", reads), (0x0c, b"page:1", b"", b"", reads),
                    (0x00, b"secret", b"", b"", user in ("read", "all")),
                    (0x1d, b"page:1", b"\0" * 4, b"", all_), (0x1c, b"page:1", b"\0" * 4, b"", all_),
                    (0x01, b"page:2", b"\0" * 8, b"y" * 100000, all_), (0x04, b"page:2", b"", b"", all_),
                    (0x05, b"page:3", b"\0" * 20, b"", all_), (0x0e, b"page:1", b"", b"z", all_),
                    (0x0b, b"", b"", b"", True), (0x0a, b"", b"", b"", True)):
                got = c.ask(opcode, key, extras=extras, value=value).status
                assert (got != 0x20) == may, "%s: 0x%02x: expected %s, found 0x%02x" % (
                    user, opcode, may, got)
            if not all_:
                assert c.ask(0x08).status == 0x20, "flush"
            # a length that is negative to memcached, which would read on right behind the key
            c.send(b"\x80\x01\0\6\x08\0\0\0" + b"\xff" * 4 + b"\0" * 20 + b"page:1" +
                   request(0x00, b"secret"))
            assert c.reply().status == 4 and c.rest() == b"", user
    with wire.Memcached(("127.0.0.1", memcached.port)) as direct:
        assert direct.get("secret")


@test("RESET in front of a Redis with a password: logged out here, and there whom sidflake logs in as")
def resets(case):
    redis = case.redis(args=("--requirepass", "there"))
    s = with_users(case, {"upstream.redis": "tcp://127.0.0.1:%d" % redis.port,
                          "upstream.redis_password_file": password_file(case, "redis.password", "there")},
                   users="ann:%s:upstream=all\n" % CRYPT)
    for before in (("SELECT", 1), ("MULTI",), ("SUBSCRIBE", "c"), ("WATCH", "k"), ("HELLO", 3)):
        with login(s, "ann") as r:
            assert r.ask("SET", "k", "v") == b"OK"
            r.ask(*before)
            assert r.ask("RESET") == b"RESET"
            for words in (("GET", "k"), ("ACL", "WHOAMI"), ("GET", "id:a"), ("AUTH", "there")):
                reply = r.ask(*words)
                assert isinstance(reply, wire.Error), (before, words, reply)
                assert str(reply).split()[0] in ("NOAUTH", "WRONGPASS"), (before, words, reply)
            assert r.ask("AUTH", "ann", "secret") == b"OK"
            assert r.ask("GET", "k") == b"v" and r.ask("ACL", "WHOAMI") == b"default", before


@test("RESET where clients log in: a connection of one's own speaks the protocol of the login that follows")
def resets_and_logs_in(case):
    redis = case.redis()
    s = with_users(case, {"upstream.redis": "tcp://127.0.0.1:%d" % redis.port}, users="ann:%s:upstream=all\n" % CRYPT)
    for proto, kind in ((3, dict), (2, list)):
        with login(s, "ann") as r:
            assert r.ask("HSET", "h", "f", "v") in (0, 1) and r.ask("EVAL", "return 1", 0) == 1
            assert r.ask("HELLO", 5 - proto, "AUTH", "ann", "secret") and r.ask("RESET") == b"RESET"
            assert r.ask("HELLO", proto, "AUTH", "ann", "secret")
            assert isinstance(r.ask("HGETALL", "h"), kind), proto
