"""Checks of who may do what: items 5 and 9 to 11."""

import os
import signal
import statistics
import subprocess
import time

import binary
import harness
import wire
from checks import all_that_comes, behind, check, is_error, short, source
from procs import until
from scene import ARGON2, CRYPT, NotSupported, need, users_may

E = wire.Resp.encode


def write_users(case, text, mode=0o600):
    path = case.path("users")
    with open(path, "w") as f:
        f.write(text)
    os.chmod(path, mode)
    return path


def with_users(case, text, redis=None, options=None, mode=0o600, **kwargs):
    return behind(case, redis, options={"auth.mode": "required", "auth.users_file": write_users(
        case, text, mode), **(options or {})}, **kwargs)


def login(s, name, password="secret"):
    r = s.resp()
    reply = r.ask("AUTH", name, password)
    assert reply == b"OK", "AUTH %s: found %s" % (name, short(str(reply)))
    return r


# ---- passwords -----------------------------------------------------------------------------------


def timed_login(s, name, password):
    with s.resp() as r:
        started = time.monotonic()
        r.ask("AUTH", name, password)
        return time.monotonic() - started


@check("login-upgrade", 5, "a remembered login is remembered after an upgrade")
def remembered(case):
    line = case.ctl("passwd", "ann", stdin="secret\n", expect=0).stdout
    s = with_users(case, line)
    first = timed_login(s, "ann", "secret")
    again = min(timed_login(s, "ann", "secret") for _ in range(5))
    assert again < first / 3, "the second login took %.1f ms, the first %.1f" % (again * 1e3, first * 1e3)
    at = len(s.log())
    s.popen.send_signal(signal.SIGUSR2)
    s.wait_log("upgraded in place", timeout=20, after=at)
    later = timed_login(s, "ann", "secret")
    assert later < first / 3, "%.1f ms, like the first (%.1f)" % (later * 1e3, first * 1e3)


@check("login-time", 5, "how long a wrong login takes does not tell who exists, with mixed hashes")
def same_time(case):
    """An unknown name takes as long as one of those that are known, now like the one, now the other."""
    s = with_users(case, "ann:%s\nbob:%s\n" % (
        CRYPT, case.ctl("passwd", "x", stdin="secret\n", expect=0).stdout.strip()[2:]))

    def usual(name):
        return statistics.median(timed_login(s, name, "wrong%d" % i) for i in range(5))
    fast, slow = sorted((usual("ann"), usual("bob")))
    unknown = [usual("nobody%d" % i) for i in range(12)]
    like_fast = sum(t < 2 * fast for t in unknown)
    like_slow = sum(t > slow / 2 for t in unknown)
    assert slow < 2 * fast or like_fast and like_slow, \
        "known: %.1f and %.1f ms, 12 unknown: %.1f to %.1f" % tuple(
            1e3 * t for t in (fast, slow, min(unknown), max(unknown)))


# ---- revocation ----------------------------------------------------------------------------------

STATES = {
    "idle": (), "own link": (("SELECT", "1"), ("GET", "a")), "REPLCONF": (("REPLCONF", "ACK", "0"),),
    "REPLCONF port": (("REPLCONF", "listening-port", "1"),), "MULTI": (("MULTI",), ("GET", "a")),
    "SUBSCRIBE": (("SUBSCRIBE", "c"),), "PSUBSCRIBE": (("PSUBSCRIBE", "*"),), "MONITOR": (("MONITOR",),),
    "BLPOP": (("BLPOP", "list", "0"),), "REPLY OFF": (("CLIENT", "REPLY", "OFF"),),
    "ids MULTI": (("MULTI",), ("GET", "id:a")),
}


def after_revocation(r, redis):
    """What the session can still do."""
    try:
        r.sock.settimeout(0.4)
        r.buf.clear()
        try:  # what came before
            while r.sock.recv(1 << 16, 0x40):
                pass
            return ""
        except OSError:
            pass
        redis.ask("PUBLISH", "c", "leaked")
        redis.ask("RPUSH", "list", "leaked")
        r.send(E("GET", "secret") + E("GET", "id:a"))
        got = b""
        try:
            while True:
                part = r.sock.recv(1 << 16)
                if not part:
                    break
                got += part
        except OSError:
            pass
        redis.ask("DEL", "list")
        words = [w for w in (b"leaked", b"the value", b"QUEUED", b"$18") if w in got]
        return b", ".join(words).decode()
    except (OSError, wire.Closed):
        return ""


@check("revoked", 9, "a user who is taken out of the file has no session left, in any state")
def revoked(case):
    redis = case.redis()
    redis.ask("SET", "secret", "the value")
    both = "ann:%s%s\nbob:%s\n" % (CRYPT, users_may(case, ":upstream=all"), ARGON2)
    s = with_users(case, both, redis)
    sessions = {}
    for state, requests in STATES.items():
        r = sessions[state] = login(s, "ann")
        for q in requests:
            r.send(E(*q))
        time.sleep(0.05)
    write_users(case, "bob:%s\n" % ARGON2)
    s.popen.send_signal(signal.SIGHUP)
    time.sleep(1)
    found = {state: after_revocation(r, redis) for state, r in sessions.items()}
    s.assert_running()
    still = ["%s: %s" % (state, got) for state, got in found.items() if got]
    assert not still, "; ".join(still)


def hear(stream, data, seconds=0.3):
    """What comes for data in that time."""
    got = b""
    stream.sock.settimeout(seconds)
    try:
        stream.send(data)
        while True:
            part = stream.sock.recv(1 << 16)
            if not part:
                return got
            got += part
    except OSError:
        return got


@check("revoked-memcached", 9, "the same for memcached, text and binary, and within a `set`")
def revoked_memcached(case):
    memcached = case.memcached()
    with wire.Memcached(("127.0.0.1", memcached.port)) as m:
        assert m.ask("set secret 0 0 9\r\nthe value") == "STORED"
    s = with_users(case, "ann:%s%s\nbob:%s\n" % (CRYPT, users_may(case, ":upstream=all"), ARGON2),
                   options={"upstream.memcached": "tcp://127.0.0.1:%d" % memcached.port})
    text, within, octets = s.mc(), s.mc(), s.mc()
    for m in (text, within):
        assert m.ask("set x 0 0 10\r\nann secret") == "STORED"
        assert m.id() > 0 and m.get("secret")
    login_there = binary.request(binary.SASL_AUTH, b"PLAIN", b"\0ann\0secret")
    assert hear(octets, login_there)[6:8] == b"\0\0", "SASL failed"
    assert b"the value" in hear(octets, binary.request(binary.GET, b"secret"))
    within.send(b"set other 0 0 5\r\n12")
    time.sleep(0.1)
    write_users(case, "bob:%s\n" % ARGON2)
    s.popen.send_signal(signal.SIGHUP)
    time.sleep(1)
    get = b"get secret\r\nget id:a\r\n"
    found = {"text": hear(text, get), "within a set": hear(within, b"345\r\n" + get),
             "binary": hear(octets, binary.request(binary.GET, b"secret") +
                            binary.request(binary.GET, b"id:a"))}
    s.assert_running()
    still = [name for name, got in found.items() if b"the value" in got or b"id:a 0" in got or
             b"STORED" in got or got[6:8] == b"\0\0"]
    assert not still, "; ".join("%s: %s" % (n, short(found[n])) for n in still)


# ---- what a user may do upstream -----------------------------------------------------------------


def same_config(redis, s, user):
    with login(s, user) as r:
        reply = r.ask("CONFIG", "SET", "maxmemory-policy", "allkeys-lru")
    policy = redis.ask("CONFIG", "GET", "maxmemory-policy")[1]
    assert policy == b"noeviction" and is_error(reply), \
        "CONFIG SET: found %s, and the server's policy is %s" % (short(str(reply)), policy.decode())


@check("names-config", 10, "a user with names= alone can't CONFIG SET the server behind")
def names_config(case):
    redis = case.redis()
    same_config(redis, with_users(case, "bob:%s:names=orders\n" % ARGON2, redis), "bob")


@check("none-by-default", 10, "a user without a word of rights has none upstream")
def none(case):
    redis = case.redis()
    redis.ask("SET", "secret", "the value")
    s = with_users(case, "ann:%s\n" % CRYPT, redis)
    with login(s, "ann") as r:
        assert int(r.ask("GET", "id:a")) > 0
        for q in (("GET", "secret"), ("MGET", "secret", "id:a"), ("KEYS", "*"), ("EVAL", "return 1", "0"),
                  ("DEBUG", "SLEEP", "0"), ("SUBSCRIBE", "c")):
            reply = r.ask(*q)
            assert is_error(reply), "%s: found %s" % (" ".join(q), short(reply))


def need_rights(case, *fields):
    for each in fields:
        if not users_may(case, each):
            raise NotSupported("%s in the users file" % each)


@check("read-rights", 10, "upstream=read and keys=GLOB bound what a user sees and changes there")
def read_rights(case):
    need_rights(case, ":upstream=read:keys=a*", ":upstream=all")
    redis = case.redis()
    redis.ask("MSET", "a1", "1", "b1", "2")
    s = with_users(case, "ann:%s:upstream=read:keys=a*\nroot:%s:upstream=all\n" % (CRYPT, ARGON2), redis)
    same_config(redis, s, "ann")
    with login(s, "ann") as r:
        assert r.ask("GET", "a1") == b"1"
    for q in (("GET", "b1"), ("SET", "a1", "9"), ("MGET", "a1", "b1"), ("DEL", "a1"), ("KEYS", "*"),
              ("EVAL", "return redis.call('get', 'b1')", "0"), ("FLUSHALL",), ("SORT", "a1", "BY", "b*"),
              ("RENAME", "b1", "a2"), ("OBJECT", "FREQ", "b1"), ("DUMP", "b1"), ("MONITOR",),
              ("EVAL_RO", "return redis.call('get', 'b1')", "0"), ("SCAN", "0"), ("RANDOMKEY",),
              ("MIGRATE", "127.0.0.1", "1", "a1", "0", "1"), ("XREAD", "STREAMS", "b1", "0"),
              ("CONFIG", "GET", "*"), ("CLIENT", "LIST"), ("CLIENT", "KILL", "TYPE", "normal")):
        with login(s, "ann") as r:
            reply = r.ask(*q)
            assert is_error(reply) and not str(reply).startswith("ERR value"), \
                "%s: found %s" % (" ".join(q), short(reply))
    assert redis.ask("MGET", "a1", "b1", "a2") == [b"1", b"2", None]


@check("upstream-password", 10, "with users required, an upstream with a password can be used")
def upstream_password(case):
    need("upstream.redis_user", "upstream.redis_password_file")
    need_rights(case, ":upstream=all")
    redis = case.redis()
    redis.ask("ACL", "SETUSER", "proxy", "on", ">open", "+@all", "~*", "&*")
    redis.ask("ACL", "SETUSER", "default", "off")
    path = case.path("password")
    with open(path, "w") as f:
        os.fchmod(f.fileno(), 0o600)
        f.write("open\n")
    s = with_users(case, "ann:%s:upstream=all\n" % CRYPT, redis,
                   {"upstream.redis_user": "proxy", "upstream.redis_password_file": path})
    with login(s, "ann") as r:
        assert r.ask("SET", "a", "1") == b"OK" and r.ask("GET", "a") == b"1"
        assert r.ask("SELECT", "1") == b"OK" and r.ask("GET", "a") is None


# ---- browsers, files, log ------------------------------------------------------------------------

SITES = ({"Host": "evil.example", "Sec-Fetch-Site": "cross-site"}, {"Host": "evil.example"},
         {"Host": "evil.example", "Sec-Fetch-Site": "same-origin"},
         {"Host": "localhost", "Sec-Fetch-Site": "cross-site"})


@check("hosts", 11, "no other site's page gets IDs or the status page, by its own name or ours")
def hosts(case):
    s = behind(case)
    found = []
    for headers in SITES:
        for path in ("/v1/id/x", "/") if headers["Host"] != "localhost" else ("/v1/id/x",):
            status = s.http(path, headers).status
            if status == 200:
                found.append("%s with %s" % (path, ", ".join("%s: %s" % h for h in headers.items())))
    assert not found, "answered: " + "; ".join(found)
    for name in ("localhost", "127.0.0.1", "localhost:%d" % s.http_port, "[::1]"):
        status = s.http("/v1/id/x", {"Host": name}).status
        assert status == 200, "Host %s: expected 200, found %d" % (name, status)


@check("origin", 11, "no other site's page spends IDs, in a browser that says no more than Origin")
def origin(case):
    s = behind(case)
    status = s.http("/v1/id/x", {"Origin": "http://evil.example"}).status
    assert status != 200, "answered"


@check("probes-hosts", 11, "probes are answered whatever name they use, metrics by an address, too")
def probes(case):
    s = behind(case)
    for path, name in (("/livez", "evil.example"), ("/readyz", "evil.example"),
                       ("/metrics", "10.1.2.3:9464")):
        status = s.http(path, {"Host": name}).status
        assert status == 200, "%s for %s: found %d" % (path, name, status)


@check("http-hosts", 11, "listen.http_hosts lets a name in")
def http_hosts(case):
    need("listen.http_hosts")
    s = behind(case, options={"listen.http_hosts": ["ids.example"]})
    found = [s.http("/v1/id/x", {"Host": h}).status for h in ("ids.example", "other.example")]
    assert found[0] == 200 and found[1] != 200, "found %s" % found


@check("file-modes", 11, "a users file that others may write or read is refused, or warned of")
def file_modes(case):
    for mode in (0o666, 0o644):
        s = with_users(case, "ann:%s\n" % CRYPT, mode=mode, wait=False)
        until("it has started or ended", lambda: "listening" in s.log() or not s.running())
        time.sleep(0.2)
        told = [x for x in s.log().splitlines() if ("users" in x) and ("warn" in x.lower() or
                                                                        "error" in x.lower())]
        assert told or not s.running(), "mode %o: not a word" % mode
        s.kill()


@check("failed-login", 11, "the log names the peer of a failed login")
def failed_login(case):
    s = with_users(case, "ann:%s\n" % CRYPT)
    at = len(s.log())
    with s.resp() as r:
        mine = r.sock.getsockname()
        assert is_error(r.ask("AUTH", "ann", "wrong"))
    time.sleep(0.5)
    told = s.log()[at:]
    assert "127.0.0.1" in told, "its address %s:%d is not in %s" % (*mine, short(told))


@check("allow-uids", 11, "behind a user namespace, allow_uids does not admit 65534 for everybody")
def allow_uids(case):
    probe = subprocess.run(["unshare", "--user", "true"], capture_output=True)
    if probe.returncode != 0 or os.geteuid() != 0:
        raise NotSupported("user namespaces, on this system")
    s = harness.Sidecar(case, "sidecar", "static:7", {"workers.spare": 0, "auth.allow_uids": ["65534"]})
    os.chmod(case.dir, 0o777)
    s.argv = ["unshare", "--user"] + s.argv
    s.start(wait=False)
    until("it listens or has ended", lambda: os.path.exists(s.resp_sock) or not s.running())
    if s.running():
        got = all_that_comes(s.resp_sock, E("GET", "id:x"))
        assert not got.startswith(b"$"), "user 0, who is not of its namespace, got %s" % short(got)


@check("core", 11, "no core dump of passwords: LimitCORE=0 in the unit")
def core(case):
    assert "LimitCORE=0" in source("packaging", "systemd", "sidflake.service"), "not there"
