"""Checks of what passes through to a real server: items 1, 6 and 14 to 18."""

import re
import socket
import struct
import threading
import time

import wire
from checks import all_that_comes, behind, check, is_error, others, short, source
from procs import free_port, until
from scene import need

E = wire.Resp.encode
NUL = b"noreply\0"
THEFT = [odd.replace(b"noreply", NUL) for odd in (
    b"touch k 0 noreply", b"set k 0 0 1 noreply\r\nx", b"incr k 1 noreply", b"decr k 1 noreply",
    b"delete k noreply", b"cas k 0 0 1 1 noreply\r\nx", b"append k 0 0 1 noreply\r\nx",
    b"flush_all 99999 noreply", b"verbosity 1 noreply", b"gat 0 k noreply")]


@check("theft-each", 1, "no request that ends in `noreply\\0` gets another client's value")
def theft(case):
    memcached = case.memcached()
    found = []
    for odd in THEFT:
        s = behind(case, memcached=memcached)  # a new one, since what is shifted may stay so
        got, stolen = beside_thief(s, odd)
        if stolen or got != MINE:
            found.append("%s: %s" % (odd.split(b" ")[0].decode(), "stolen" if stolen else short(got)))
        s.kill()
    assert not found, "; ".join(found)


MINE = b"VALUE mine 0 6\r\nSECRET\r\nEND\r\n"


def beside_thief(s, odd):
    """What the victim gets, and whether the thief gets it, too."""
    with s.mc() as victim, s.mc() as thief:
        victim.sock.settimeout(2)
        assert victim.ask("set mine 0 0 6\r\nSECRET") == "STORED"
        thief.send(odd + b"\r\nget nokey nokey2\r\n")
        time.sleep(0.05)
        victim.send(b"get mine\r\n")
        try:
            got = victim.take(len(MINE))
        except (OSError, wire.Closed):
            got = bytes(victim.buf)
        thief.silent(0.1)
        return got, b"SECRET" in peek(thief)


def peek(stream):
    stream.sock.setblocking(False)
    try:
        return stream.sock.recv(1 << 16, socket.MSG_PEEK)
    except OSError:
        return b""


# ---- clients that are gone -----------------------------------------------------------------------

GONE = {
    "BLPOP": E("BLPOP", "k", "0"), "BLPOP, PING": E("BLPOP", "k", "0") + E("PING"),
    "BLPOP, GET id": E("BLPOP", "k", "0") + E("GET", "id:x"), "SUBSCRIBE": E("SUBSCRIBE", "c"),
    "SUBSCRIBE, PING": E("SUBSCRIBE", "c") + E("PING"), "MULTI": E("MULTI") + E("GET", "a"),
    "MONITOR": E("MONITOR"), "MONITOR, PING": E("MONITOR") + E("PING"), "WATCH": E("WATCH", "a"),
    "CLIENT REPLY OFF": E("CLIENT", "REPLY", "OFF") + E("PING"),
    "XREAD": E("XREAD", "BLOCK", "0", "STREAMS", "s", "$") + 20 * E("PING"),
    "WAIT": E("WAIT", "9", "0") + E("PING"),
    "half a SET": b"*3\r\n$3\r\nSET\r\n$1\r\na\r\n$200000\r\nxxx", "a cut line": b"*2\r\n$3\r\nGE",
    "BLPOP, much": E("BLPOP", "k", "0") + 5000 * E("PING"),  # more has its FIN wait for a window
    "GETs unread": E("SET", "big", 100000 * "x") + 200 * E("GET", "big"),
}


@check("gone", 6, "a client that is gone is noticed in every state, by FIN and by RST")
def gone(case):
    redis = case.redis()
    s = behind(case, redis)
    left = []
    for state, data in GONE.items():
        for abrupt in (False, True):
            streams = [s.resp() for _ in range(3)]
            for r in streams:
                r.sock.settimeout(0.2)
                try:
                    r.send(data)
                except OSError:
                    pass
            time.sleep(0.15)
            for r in streams:
                if abrupt:
                    r.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                r.close()
            before = sum(int(x.split(" ")[1]) for x in left)
            try:
                until("they are gone", lambda: others(s) == before, 3, 0.02)
            except AssertionError:
                left.append("stay: %d %s (%s)" % (others(s) - before, state, "RST" if abrupt else "FIN"))
    assert not left, "; ".join(left)


# ---- subscribers ---------------------------------------------------------------------------------


def subscribe_as_libraries_do(address, stop, got):
    """Connects again when it is closed or told -LOADING; any other error reply is passed over, as it
    is by redis-py, which then waits for messages that never come."""
    while not stop.is_set():
        try:
            with wire.Resp(address) as r:
                r.send(E("SUBSCRIBE", "c"))
                while not stop.is_set():
                    r.sock.settimeout(0.5)
                    try:
                        reply = r.reply()
                    except socket.timeout:
                        continue
                    if is_error(reply) and str(reply).startswith("LOADING"):
                        break
                    got.append(reply)
        except (OSError, wire.Closed):
            pass
        stop.wait(0.1)


@check("deaf", 14, "a subscriber whose server restarts gets messages again")
def deaf(case):
    port = free_port()
    redis = case.redis(port=port)
    s = behind(case, redis)
    stop, got = threading.Event(), []
    thread = threading.Thread(target=subscribe_as_libraries_do, args=(("127.0.0.1", s.resp_port),
                                                                     stop, got), daemon=True)
    thread.start()
    try:
        until("it has subscribed", lambda: [b"subscribe", b"c", 1] in got)
        redis.kill()
        time.sleep(1.5)
        redis.start()

        def heard():
            redis.ask("PUBLISH", "c", "again")
            return [b"message", b"c", b"again"] in got
        until("a message arrives after the restart; until then: %s" % short(got[1:]), heard, 8, 0.2)
    finally:
        stop.set()
        thread.join()


@check("subscribe-away", 14, "SUBSCRIBE while the server is away: -LOADING, or the connection closes")
def away(case):
    s = behind(case, options={"upstream.redis": "tcp://127.0.0.1:%d" % free_port()})
    got = all_that_comes(("127.0.0.1", s.resp_port), E("SUBSCRIBE", "c"))
    assert got.startswith(b"-LOADING") or got.endswith(b"<closed>"), "found %s" % short(got)


@check("subscribe-refused", 15, "an error to SUBSCRIBE leaves the connection open")
def refused(case):
    redis = case.redis()
    redis.ask("ACL", "SETUSER", "u", "on", ">p", "+@all", "~*", "resetchannels", "&allowed")
    s = behind(case, redis)
    for request in (("SUBSCRIBE",), ("SUBSCRIBE", "forbidden"), ("PSUBSCRIBE", "*"), ("SSUBSCRIBE", "no")):
        with s.resp() as r:
            assert r.ask("AUTH", "u", "p") == b"OK"
            reply = r.ask(*request)
            assert is_error(reply), "%s: expected an error, found %s" % (request, short(reply))
            assert r.ask("PING") == b"PONG" and r.ask("SUBSCRIBE", "allowed")[2] == 1, request


@check("subscribe-without-ping", 15, "a user with +subscribe and without +ping can subscribe")
def no_ping(case):
    redis = case.redis()
    redis.ask("ACL", "SETUSER", "u", "on", ">p", "+subscribe", "+auth", "allchannels")
    s = behind(case, redis)
    with s.resp() as r:
        assert r.ask("AUTH", "u", "p") == b"OK"
        assert r.ask("SUBSCRIBE", "c") == [b"subscribe", b"c", 1]
        time.sleep(0.1)
        redis.ask("PUBLISH", "c", "m")
        got = r.reply()
        assert got == [b"message", b"c", b"m"], "found %s" % short(got)


# ---- marks ---------------------------------------------------------------------------------------

MARKS = [b"ms k 2 %s\r\nab\r\ndelete nosuch noreply\r\nmn\r\n" % flags for flags in (
    b"E1234", b"Tx", b"MZ", b"F-1", b"T", b"I", b"k k")] + [
    b"ms k 2 E1234\r\nab\r\ntouch nosuch 0 noreply\r\nmn\r\n",
    b"mg k E1 v\r\ndelete nosuch noreply\r\nmn\r\n", b"md k E1\r\ndelete nosuch noreply\r\nmn\r\n",
    b"ma k E1\r\ndelete nosuch noreply\r\nmn\r\n", b"ms k S2\r\nab\r\ndelete nosuch noreply\r\nmn\r\n"]


@check("mark", 16, "no mark of sidflake's own reaches a client")
def mark(case):
    real = case.memcached()
    s = behind(case, memcached=case.memcached())
    found = []
    for data in MARKS:
        want = all_that_comes(("127.0.0.1", real.port), data)
        got = all_that_comes(("127.0.0.1", s.mc_port), data)
        if got != want:
            found.append("%s: %s, memcached: %s" % (short(data.split(b"\r\n")[0]), short(got), short(want)))
    assert not found, "; ".join(found)


# ---- health checks and limits --------------------------------------------------------------------


@check("ping-there", 17, "with upstream.ping there, PING fails while the server is away")
def ping_there(case):
    need("upstream.ping")
    port = free_port()
    redis = case.redis(port=port)
    s = behind(case, redis, options={"upstream.ping": "there"})
    with s.resp() as r:
        assert r.ask("PING") == b"PONG" and r.ask("PING", "x") == b"x"
    redis.ask("CONFIG", "SET", "replica-serve-stale-data", "no")
    redis.ask("REPLICAOF", "127.0.0.1", str(free_port()))
    got = all_that_comes(("127.0.0.1", s.resp_port), E("PING"))
    assert got.startswith(b"-MASTERDOWN"), "a replica without its master: found %s" % short(got)
    redis.ask("REPLICAOF", "NO", "ONE")
    redis.kill()
    got = all_that_comes(("127.0.0.1", s.resp_port), E("PING"))
    assert got[:1] == b"-" or got == b"<closed>", "the server is away: found %s" % short(got)


@check("ping-here", 17, "by default PING is answered while the server is away, and IDs go on")
def ping_here(case):
    s = behind(case, options={"upstream.redis": "tcp://127.0.0.1:%d" % free_port()})
    with s.resp() as r:
        assert r.ask("PING") == b"PONG" and int(r.ask("GET", "id:x")) > 0


@check("many-keys", 18, "a `get` of 2,500 keys of 40 bytes is answered")
def many_keys(case):
    memcached = case.memcached()
    s = behind(case, memcached=memcached)
    keys = ["%040d" % i for i in range(2500)]
    with s.mc() as m:
        assert m.ask("set %s 0 0 1\r\nx" % keys[7]) == "STORED"
        got = m.get(*keys)
        assert [k for k, _, _ in got] == [keys[7]], "found %s" % short(got)


def manual(*words):
    """Whether a paragraph of sidflake-protocols(7) has all of them."""
    paragraphs = re.split(r"\n\.(?:Pp|S[hs]|It).*\n", source("packaging", "man", "sidflake-protocols.7"))
    return any(all(w in p for w in words) for p in paragraphs)


@check("subscribe-multi", 18, "SUBSCRIBE within MULTI, as in Redis, or an error of which the manual says why")
def subscribe_multi(case):
    redis = case.redis()
    s = behind(case, redis)
    data = E("MULTI") + E("SUBSCRIBE", "c") + E("EXEC")
    want = all_that_comes(("127.0.0.1", redis.port), data)
    got = all_that_comes(("127.0.0.1", s.resp_port), data)
    assert got == want or (b"\r\n-ERR" in got and manual("SUBSCRIBE", "within one are an error")), \
        "found %s, Redis: %s" % (short(got), short(want))


@check("tracking", 18, "CLIENT TRACKING, as in Redis, or refused where the manual says why")
def tracking(case):
    redis = case.redis()
    s = behind(case, redis)
    with s.resp() as r:
        r.ask("HELLO", "3")
        reply = r.ask("CLIENT", "TRACKING", "ON")
    assert reply == b"OK" or (is_error(reply) and manual("CLIENT TRACKING", "with an upstream")), \
        "found %s" % short(str(reply))


@check("config-set-away", 18, "CONFIG SET while the server is away says that it is away")
def config_set(case):
    s = behind(case, options={"upstream.redis": "tcp://127.0.0.1:%d" % free_port()})
    got = all_that_comes(("127.0.0.1", s.resp_port), E("CONFIG", "SET", "maxmemory", "0"))
    assert b"unavailable" in got or got.startswith(b"-LOADING") or got == b"<closed>", \
        "found %s" % short(got)
