"""Who may have IDs: passwords in all protocols, names of IDs, users of unix sockets, reloads."""

import base64
import os
import re
import resource
import select
import signal
import socket
import subprocess
import threading
import time

import pymemcache.client.base
import redis as redispy
import redis.asyncio as redisaio

import harness
import runner
import wire
from procs import free_port, until
from runner import test

# Cheap, so that the tests are quick: both of "secret".
ARGON2 = "$argon2id$v=19$m=64,t=1,p=2$c29tZXNhbHQ$S3Lajg55evZVboE7O39Ij0iCFwMgZQQ4"
CRYPT = "$5$saltsalt$0IyaXrmV7.sGNS6tirgqHLqX/G.FBvgkYA.lpPdS5sA"
USERS = "default:%s\nann:%s\nbob:%s:names=orders,inv-*\n" % (ARGON2, CRYPT, ARGON2)


def sidecar(case, options=None, users=USERS, wait=True):
    """A sidecar that requires users; without a coordinator, so that it holds a workerId at once."""
    path = case.path("users")
    with open(path, "w") as f:
        f.write(users)
    return case.sidecar("static:7", {"auth.mode": "required", "auth.users_file": path,
                                     "workers.spare": 0, **(options or {})}, wait=wait)


def basic(name, password):
    token = base64.b64encode(("%s:%s" % (name, password)).encode()).decode()
    return {"Authorization": "Basic " + token}


@test("users of whom none may use the servers behind: -t and the log warn of it")
def in_vain(case):
    path, behind = case.path("users"), ("--set", "upstream.redis=tcp://127.0.0.1:9")
    required = ("--set", "auth.mode=required", "--set", "auth.users_file=" + path)
    for users, options, warned in ((USERS, behind + required, True), (USERS, required, False),
                                   (USERS.replace("\n", ":upstream=read\n", 1), behind + required, False),
                                   (USERS, behind + required[2:], False)):
        with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as f:
            f.write(users)
        r = case.sidflake("-t", *options, expect=0)
        assert ("no user has upstream=" in r.stdout + r.stderr) == warned, (users, options, r)
    s = sidecar(case, {"upstream.redis": "tcp://127.0.0.1:9"})
    s.wait_log("warn .*configuration warning=.*no user has upstream=")


@test("RESP: NOAUTH, AUTH, HELLO AUTH, RESET, names")
def resp(case):
    s = sidecar(case)
    for unix in (False, True):
        with s.resp(unix) as r:
            assert str(r.ask("GET", "id:a")).startswith("NOAUTH Authentication required.")
            assert str(r.ask("AUTH", "wrong")).startswith("WRONGPASS ")
            assert r.ask("AUTH", "secret") == b"OK" and int(r.ask("GET", "id:a")) > 0
            assert r.ask("RESET") == b"RESET"
            assert "NOAUTH" in str(r.ask("GET", "id:a"))
            hello = r.ask("HELLO", 3, "AUTH", "bob", "secret", "SETNAME", "svc")
            assert hello[b"proto"] == 3 and r.ask("CLIENT", "GETNAME") == b"svc"
            assert b" user=bob " in r.ask("CLIENT", "INFO")
            assert int(r.ask("GET", "id:orders")) > 0 and int(r.ask("GET", "id:inv-1#2")) > 0
            refused = str(r.ask("GET", "id:a"))
            assert refused == "ERR id key 'id:a' is not allowed to user 'bob'", refused


def transcript(address, requests):
    """What comes back, up to the answer to the QUIT at the end."""
    with wire.Stream(address) as s:
        s.send(requests)
        return re.sub(rb"(\$2\r\nid\r\n):\d+", rb"\1:N", s.rest())


@test("RESP: the same answers as redis-server, with and without a password")
def as_redis(case):
    requests = "".join(line + "\r\n" for line in """GET a|FOO|GET|HELLO|HELLO 3|HELLO 9|AUTH
        |AUTH a b c|AUTH x|AUTH default x|AUTH bob x|HELLO 3 AUTH bob x SETNAME q|HELLO 3 AUTH x
        |HELLO 3 SETNAME|PING|MULTI|CLIENT GETNAME|CLIENT FOO|EXEC|HELLO 3|AUTH default secret|GET a
        |MULTI|AUTH default secret|AUTH bad|PING|EXEC|AUTH bad|PING|RESET|PING
        |HELLO 2 AUTH default secret SETNAME q|CLIENT GETNAME|QUIT""".replace("\n", "").split("|"))
    requests = re.sub(r" {2,}", "", requests).encode()
    for mode, args in (("required", ("--requirepass", "secret")), ("off", ())):
        redis = harness.Redis(case, case.fresh_name("redis"), args=args).start()
        s = sidecar(case, {"auth.mode": mode})
        expected = transcript(("127.0.0.1", redis.port), requests)
        found = transcript(("127.0.0.1", s.resp_port), requests)
        assert found == expected, "%s: expected\n%s\nfound\n%s" % (
            mode, expected.decode(), found.decode())


@test("memcached text: the same answers as memcached -Y")
def as_memcached(case):
    path = case.path("authfile")
    with open(path, "w") as f:
        f.write("ann:secret\n")
    real = case.memcached(args=("-Y", path))
    s = sidecar(case)

    def answers(port, *requests):
        with wire.Memcached(("127.0.0.1", port)) as c:
            return [c.ask(r) for r in requests]

    for requests in (["get a", "version", "set a 0 0", "foo", "set k 0 0 10\r\nann secret",
                      "get a"],
                     ["set k 0 0 9\r\nann wrong", ], ["set k 0 0 3\r\nann"],
                     ["set k 1 2 12\r\nann secret x", "get a"]):
        expected, found = answers(real.port, *requests), answers(s.mc_port, *requests)
        assert found == expected, "%r: expected %r, found %r" % (requests, expected, found)


@test("memcached text: a login begun where users are required is stored nowhere once they are not")
def half_a_login(case):
    real = case.memcached()
    s = sidecar(case, {"upstream.memcached": "tcp://127.0.0.1:%d" % real.port})
    half, line = s.mc(), s.mc()
    half.send(b"set half 0 0 10\r\nann ")
    line.send(b"set line 0 0 10")
    time.sleep(0.2)
    for option in ("auth.mode", "auth.users_file"):
        s.options.pop(option)
    s.options["auth.mode"] = "accept_any"
    s.write_conf()
    os.kill(s.pid, signal.SIGUSR2)
    s.wait_log("upgraded in place")
    for c, rest in ((half, b"secret\r\n"), (line, b"\r\nann secret\r\n")):
        try:
            c.send(rest)
            assert c.sock.recv(100) == b"", "expected the end"
        except OSError:
            pass
    with wire.Memcached(("127.0.0.1", real.port)) as direct:
        assert direct.ask("get half line") == "END"
    assert "its password is stored there" in s.log()


@test("memcached text: a login, names, pymemcache")
def memcached(case):
    s = sidecar(case)
    for where in (("127.0.0.1", s.mc_port), s.mc_sock):
        c = pymemcache.client.base.Client(where, timeout=10)
        try:
            c.get("id:a")
            raise AssertionError("expected to be refused")
        except pymemcache.exceptions.MemcacheClientError as e:
            assert b"unauthenticated" in e.args[0], e.args
        c = pymemcache.client.base.Client(where, timeout=10)
        assert c.set("login", "bob secret", noreply=False) is True
        assert int(c.get("id:orders")) > 0
        try:
            c.get("id:a")
            raise AssertionError("expected to be refused")
        except pymemcache.exceptions.MemcacheClientError as e:
            assert b"not allowed" in e.args[0], e.args


@test("HTTP: Basic for IDs and the status page, probes and metrics for anybody")
def http(case):
    s = sidecar(case)
    for path in ("/v1/id/orders", "/v1/decode/1", "/", "/v1/status"):
        page = s.http(path)
        assert page.status == 401 and page.headers["www-authenticate"].startswith("Basic "), page
        assert s.http(path, basic("ann", "wrong")).status == 401
        assert s.http(path, basic("ann", "secret")).status == 200
    assert s.http("/v1/id/a", basic("bob", "secret")).status == 403
    assert s.http("/v1/id/inv-7", basic("bob", "secret")).status == 200
    for path in ("/metrics", "/livez", "/readyz", "/healthz"):
        assert s.http(path).status == 200, path


@test("sidflakectl top: --user, whose password is sent where it is asked for")
def top(case):
    args = ("top", "-d", "0.1", "--connect", "http://127.0.0.1:%d" % sidecar(case).http_port)
    for name, word in (("good", "secret"), ("bad", "wrong")):
        with open(os.open(case.path(name), os.O_WRONLY | os.O_CREAT, 0o600), "w") as f:
            f.write(word)
    login = ("--user", "ann", "--password-file")
    assert "expected --user NAME" in case.ctl(*args, expect=2).stderr
    assert "found 401" in case.ctl(*args, *login, case.path("bad"), expect=2).stderr
    assert "READY" in case.ctl(*args, *login, case.path("good"), expect=0).stdout
    case.ctl(*args, "--user", "ann", expect=2)
    case.ctl("top", "--user", "ann", "--coordinator", "redis://127.0.0.1:1/0", expect=2)


@test("clients with a password: redis-cli, python3-redis, its asyncio, ioredis, node-redis",
      timeout=300)
def clients(case):
    for mode, password in (("required", "secret"), ("accept_any", "whatever")):
        s = sidecar(case, {"auth.mode": mode})
        for who in ("", "ann"):
            url = "redis://%s:%s@127.0.0.1:%d/3" % (who, password, s.resp_port)
            with redispy.from_url(url) as c:
                assert int(c.get("id:orders")) > 0
            login = ("--user", who) if who else ()
            out = case.run("redis-cli", "-p", str(s.resp_port), *login, "-a", password, "-3",
                           "GET", "id:orders", expect=0).stdout
            assert int(out) > 0, out
            asynchronous(url)
        runner.need_node_modules()
        for client in ("ioredis", "ioredis6", "redis", "redis4"):
            for where in (str(s.resp_port), s.resp_sock):
                out = case.run("node", os.path.join(harness.HERE, "node", "ids.js"), client, where,
                               "2", env={"ID_USER": "ann", "ID_PASSWORD": password}, expect=0).stdout
                assert '"op":"get"' in out, out


def asynchronous(url):
    import asyncio

    async def ask():
        c = redisaio.from_url(url)
        value = await c.get("id:orders")
        await c.close()
        return value
    assert int(asyncio.run(ask())) > 0


@test("sidflakectl: passwd, next and ping with a user")
def ctl(case):
    line = case.ctl("passwd", "eve", "--names", "o*", stdin="pass word\n", expect=0).stdout
    assert re.fullmatch(r"eve:\$argon2id\$v=19\$m=19456,t=2,p=1\$.*:names=o\*\n", line), line
    full = case.ctl("passwd", "eve", "--keys", "a:*,b", "--upstream", "read", stdin="x\n", expect=0)
    assert full.stdout.endswith(":upstream=read:keys=a:*,b\n"), full.stdout
    case.ctl("passwd", "eve", "--keys", "a:*,b", stdin="x\n", expect=2)
    assert "no ':' in the name" in case.ctl("passwd", "a:b", stdin="x\n", expect=2).stderr
    for given in (("--names", "o:upstream=all"), ("--upstream", "read:keys=*")):  # no other field
        case.ctl("passwd", "eve", *given, stdin="x\n", expect=2)
    case.ctl("passwd", "a", stdin="\n", expect=2)
    s = sidecar(case, users=line + "ann:%s\n" % CRYPT)
    with s.resp() as r:
        assert r.ask("AUTH", "eve", "pass word") == b"OK"
    password = case.path("password")
    with open(password, "w") as f:
        f.write("secret\n")
    for where in ("tcp://127.0.0.1:%d" % s.mc_port, "unix://" + s.mc_sock,
                  "tcp://127.0.0.1:%d" % s.resp_port, "unix://" + s.resp_sock):
        login = ("--connect", where, "--user", "ann", "--password-file", password)
        assert len(case.ctl("next", "a", "-n", "3", *login, expect=0).stdout.split()) == 3
        case.ctl("ping", *login, expect=0)
        for what in (("ping",), ("next", "a")):
            refused = case.ctl(*what, "--connect", where)
            assert refused.returncode == 1 and "expected --user" in refused.stderr, refused
        with open(case.path("wrong"), "w") as f:
            f.write("wrong\n")
        case.ctl("next", "a", "--connect", where, "--user", "ann", "--password-file",
                 case.path("wrong"), expect=1)


@test("a listener with an auth of its own; users of unix sockets")
def per_listener(case):
    open_sock, peers = case.path("open"), case.path("peers")
    s = sidecar(case, {"listen.redis": ["unix://%s?auth=off" % open_sock, "unix://" + peers]})
    with wire.Resp(open_sock) as r:
        assert int(r.ask("GET", "id:a")) > 0
    with wire.Resp(peers) as r:
        assert "NOAUTH" in str(r.ask("GET", "id:a"))
    mine, other = str(os.getuid()), str(os.getuid() + 1)
    for option, ids, let_in in (("uids", [mine], True), ("uids", [other], False),
                                ("gids", [str(os.getgid())], True),
                                ("gids", [str(os.getgid() + 1)], False)):
        s = case.sidecar("static:7", {"auth.allow_" + option: ids, "workers.spare": 0})
        try:
            with s.resp(unix=True) as r:
                found = isinstance(r.ask("GET", "id:a"), bytes)
        except (OSError, AssertionError, EOFError):
            found = False
        assert found == let_in, "%s %s: expected %s, found %s" % (option, ids, let_in, found)
        assert s.id() > 0, "TCP has nobody to ask"


@test("no listener for other hosts without users, unless asked for; HTTP gives out no IDs there")
def unprotected(case):
    port = free_port()
    where = "tcp://0.0.0.0:%d" % port
    for option in ("listen.redis", "listen.memcached"):
        r = case.sidflake("-t", "--set", "%s=%s" % (option, where), expect=78)
        assert "--set %s: expected auth.mode required, or listen.allow_unprotected" % option \
            in r.stderr, r.stderr
        case.sidflake("-t", "--set", option + "=" + where, "--set", "listen.allow_unprotected=true",
                      expect=0)
    case.sidflake("-t", "--set", "listen.redis=" + where, "--set", "auth.mode=accept_any", expect=78)
    for mode in "off", "accept_any":
        s = case.sidecar("static:7", {"listen.http": [where + "?auth=" + mode], "workers.spare": 0}, wait=False)
        s.http_port = port
        s.wait_ready()
        assert s.http("/v1/id/a").status == 403 and s.http("/metrics").status == 200, mode
        s.stop()
    port = free_port()
    s = case.sidecar("static:7", {"listen.http": ["tcp://0.0.0.0:%d" % port],
                                  "listen.allow_unprotected": True, "workers.spare": 0}, wait=False)
    s.http_port = port
    s.wait_ready()
    assert s.http("/v1/id/a").status == 200


@test("a wrong users file: no start, with the place; no reload, with nothing changed")
def wrong_file(case):
    s = sidecar(case)
    path = s.options["auth.users_file"]
    with open(path, "a") as f:
        f.write("eve:plain\n")
    r = case.sidflake("-t", "-c", s.conf, expect=78)
    assert re.match(r"%s:\d+:\d+: %s:4:5: expected a hash" % (s.conf, path), r.stderr), r.stderr
    r = case.sidflake("-c", s.conf, expect=78)
    with s.resp() as r:
        assert r.ask("AUTH", "bob", "secret") == b"OK"
        s.popen.send_signal(signal.SIGHUP)
        until("the reload is refused", lambda: "reload refused, nothing changed" in s.log())
        assert int(r.ask("GET", "id:orders")) > 0
    with open(path, "w") as f:
        f.write("# nobody\n")
    r = case.sidflake("-t", "-c", s.conf, expect=0)
    assert "warning: auth.users_file: it names nobody" in r.stderr, r.stderr
    s.popen.send_signal(signal.SIGHUP)
    s.wait_log("the users file names nobody")
    os.unlink(path)
    case.sidflake("-t", "-c", s.conf, expect=78)


@test("a wrong users file: no reload, nor of the login at the server behind; then both are taken up")
def wrong_file_beside_a_login(case):
    redis, password = case.redis(), case.path("password")
    for name in "old", "new":
        redis.ask("ACL", "SETUSER", name, "on", ">" + name, "~*", "+@all")

    def reload_with(users, login, told):
        for path, text in ((s.options["auth.users_file"], users), (password, login)):
            with open(path, "w") as f:
                f.write(text)
        at = len(s.log())
        s.popen.send_signal(signal.SIGHUP)
        s.wait_log(told, after=at)
        redis.ask("CLIENT", "KILL", "TYPE", "normal")  # whoever comes from now on logs in anew
    with open(os.open(password, os.O_WRONLY | os.O_CREAT, 0o600), "w") as f:
        f.write("old")
    right = "ann:%s:upstream=all\n" % CRYPT
    s = sidecar(case, {"upstream.redis": "tcp://127.0.0.1:%d" % redis.port, "upstream.redis_user": "old",
                       "upstream.redis_password_file": password}, users=right)

    def served():
        """A client; one whose request was there when the link was killed is closed."""
        try:
            with s.resp() as r:
                return r.ask("AUTH", "ann", "secret") == b"OK" and r.ask("GET", "a") is None
        except wire.Closed:
            return False
    assert served()
    reload_with("eve:plain\n", "new", "reload refused, nothing changed")
    until("it logs in there as before", served)
    s.options["upstream.redis_user"] = "new"
    s.write_conf()
    reload_with(right, "new", "configuration reloaded")
    until("it logs in there as another", served)
    assert b"user=new" in redis.ask("CLIENT", "LIST")


def gone(client, timeout=10):
    """Whether the other side closes the connection, whatever it sends before."""
    client.sock.settimeout(timeout)
    try:
        while client.sock.recv(1 << 16):
            pass
        return True
    except ConnectionError:
        return True
    except TimeoutError:
        return False


@test("SIGHUP: users come, go and change, in sessions that are open, too")
def reload(case):
    s = sidecar(case)
    path = s.options["auth.users_file"]

    def replace(text):
        done = s.log().count("configuration reloaded")
        with open(path, "w") as f:
            f.write(text)
        s.popen.send_signal(signal.SIGHUP)
        until("the users are reloaded",
              lambda: s.log().count("configuration reloaded") > done)

    with s.resp() as ann, s.resp() as bob, s.mc() as mc:
        assert ann.ask("AUTH", "ann", "secret") == b"OK" and bob.ask("AUTH", "bob", "secret") == b"OK"
        assert mc.ask("set x 0 0 10\r\nann secret") == "STORED"
        assert int(ann.ask("GET", "id:a")) > 0 and len(mc.get("id:a")) == 1
        replace("ann:%s\nnew:%s\n" % (CRYPT, ARGON2))
        assert int(ann.ask("GET", "id:a")) > 0 and len(mc.get("id:a")) == 1
        assert gone(bob), "its user is gone"
        replace("ann:%s:names=b\n" % CRYPT)
        assert gone(ann) and gone(mc), "its user may less"
    with s.resp() as ann, s.mc() as mc:
        assert ann.ask("AUTH", "ann", "secret") == b"OK"
        assert "not allowed" in str(ann.ask("GET", "id:a")) and int(ann.ask("GET", "id:b")) > 0
        replace("ann:%s:names=b,c\n" % CRYPT)
        assert int(ann.ask("GET", "id:c")) > 0, "its user may more"
        replace("ann:%s:names=b,c\n" % ARGON2)
        assert gone(ann), "the hash is another"


@test("a check that takes its time holds up nobody else; a client that goes meanwhile", timeout=120)
def slow_check(case):
    slow = "slow:$argon2id$v=19$m=131072,t=8,p=1$c29tZXNhbHQ$S3Lajg55evZVboE7O39Ij0iCFwMgZQQ4\n"
    s = sidecar(case, users=USERS + slow, options={"limits.max_wait": "0s"})
    with s.resp() as ann, s.resp() as waiting, s.resp() as gone:
        assert ann.ask("AUTH", "ann", "secret") == b"OK"
        gone.send(gone.encode("AUTH", "slow", "y"))
        gone.close()
        waiting.sock.settimeout(60)
        waiting.send(waiting.encode("AUTH", "slow", "x"))
        for _ in range(50):
            assert int(ann.ask("GET", "id:a")) > 0
        with s.resp() as again:
            assert again.ask("AUTH", "ann", "secret") == b"OK", "known: not checked again"
        ready, _, _ = select.select([waiting.sock], [], [], 0)
        assert not ready, "expected the check to be under way"
        assert str(waiting.reply()).startswith("WRONGPASS ")
        assert s.rss_kib() < 64 * 1024 or harness.sanitized(), "the memory of checks is given back"


@test("a password as sidflakectl hashes it, checked once: the memory that it took is given back")
def given_back(case):
    s = sidecar(case, users=case.ctl("passwd", "eve", stdin="x\n", expect=0).stdout)
    before = s.rss_kib()
    with s.resp() as eve:
        assert eve.ask("AUTH", "eve", "x") == b"OK"
    assert s.peak_kib() > before + 16 * 1024, "a check takes 19 MiB"
    assert s.rss_kib() < before + 2 * 1024 or harness.sanitized(), (before, s.rss_kib())


@test("hundreds of wrong passwords at once: each is answered, and others are served meanwhile")
def many_checks(case):
    s = sidecar(case)
    with s.resp() as ann:
        assert ann.ask("AUTH", "ann", "secret") == b"OK"
        clients = [s.resp() for _ in range(300)]
        for i, c in enumerate(clients):
            c.send(c.encode("AUTH", "ann", "wrong%d" % i))
        for _ in range(50):
            assert int(ann.ask("GET", "id:a")) > 0
        for c in clients:
            assert str(c.reply()).startswith("WRONGPASS ")
            c.close()
        assert s.log().count("wrong name or password") == 1, "told once, with their number"


@test("SIGHUP ends every session of a user who is gone, whatever it does", timeout=180)
def revoked(case):
    redis = harness.Redis(case, case.fresh_name("redis")).start()
    memcached = case.memcached()
    s = sidecar(case, {"upstream.redis": "tcp://127.0.0.1:%d" % redis.port,
                       "upstream.memcached": "tcp://127.0.0.1:%d" % memcached.port},
                users="ann:%s:upstream=all\nbob:%s:upstream=all\n" % (CRYPT, ARGON2))
    big = b"x" * 3000000
    with wire.Resp(("127.0.0.1", redis.port)) as direct:
        assert direct.ask("SET", "big", big) == b"OK"

    def session(user, *requests):
        c = s.resp()
        assert c.ask("AUTH", user, "secret") == b"OK"
        for r in requests:
            c.send(c.encode(*r))
        return c

    states = {
        "reading": [], "tunnel": [("REPLCONF", "x", "y")], "monitor": [("MONITOR",)],
        "subscribed": [("SUBSCRIBE", "news")], "pattern": [("PSUBSCRIBE", "*")],
        "RESP3": [("HELLO", 3), ("SUBSCRIBE", "news")], "MULTI": [("MULTI",), ("SET", "a", 1)],
        "MULTI of IDs": [("MULTI",), ("GET", "id:a")], "blocked": [("BLPOP", "none", 0)],
        "flushing": [("GET", "big")] * 8, "streaming": [],
        "logging in as another": [("AUTH", "nobody", "wrong")]}
    ann = {what: session("ann", *requests) for what, requests in states.items()}
    ann["streaming"].sock.sendall(b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$2000000\r\n" + b"y" * 1000000)
    bob = session("bob", ("SUBSCRIBE", "news"))
    assert bob.reply()[0] == b"subscribe"
    ann["memcached"], ann["memcached, half a value"] = s.mc(), s.mc()
    for what in ("memcached", "memcached, half a value"):
        assert ann[what].ask("set x 0 0 10\r\nann secret") == "STORED"
    ann["memcached, half a value"].sock.sendall(b"set k 0 0 1000000\r\n" + b"z" * 500000)
    web = wire.Stream(("127.0.0.1", s.http_port))
    web.send(("GET /v1/id/a HTTP/1.1\r\nHost: localhost\r\nAuthorization: %s\r\n\r\n" %
              basic("ann", "secret")["Authorization"]).encode())
    assert web.sock.recv(4096).startswith(b"HTTP/1.1 200")
    ann["HTTP"] = web
    with open(s.options["auth.users_file"], "w") as f:
        f.write("bob:%s:upstream=all\n" % ARGON2)
    s.popen.send_signal(signal.SIGHUP)
    until("the users are reloaded", lambda: "configuration reloaded" in s.log())
    with wire.Resp(("127.0.0.1", redis.port)) as direct:
        assert direct.ask("PUBLISH", "news", "hello") == 1, "bob alone is subscribed"
        held = [what for what, c in ann.items() if not gone(c, 5)]
        assert not held, "expected these to be closed: %s" % held
        assert bob.reply() == [b"message", b"news", b"hello"]
        until("bob's link, the shared one and ours are left",
              lambda: direct.ask("CLIENT", "LIST").count(b"id=") <= 3)
    with session("bob") as again:
        assert again.ask("SET", "k", "v") == b"OK"


# As `sidflakectl passwd` makes them: 20 to 60 ms each. Nobody's password.
COSTLY = "$argon2id$v=19$m=19456,t=2,p=1$c29tZXNhbHQ$S3Lajg55evZVboE7O39Ij0iCFwMgZQQ4"


class Guessers:
    """Connections that guess without end: each pipelines wrong AUTHs, or comes anew for each."""

    def __init__(self, address, n, anew):
        self.address, self.anew, self.stop = address, anew, threading.Event()
        self.threads = [threading.Thread(target=self.run, args=(i,), daemon=True) for i in range(n)]

    def run(self, i):
        guess = 0
        while not self.stop.is_set():
            try:
                with wire.Resp(self.address) as r:
                    r.sock.settimeout(0.2)
                    while not self.stop.is_set():
                        wrong = []
                        for _ in range(1 if self.anew else 50):
                            guess += 1
                            wrong.append(r.encode("AUTH", "eve", "g%d-%d" % (i, guess)))
                        r.send(b"".join(wrong))
                        while not self.stop.is_set():
                            try:
                                if not r.sock.recv(4096) or self.anew:
                                    break
                            except TimeoutError:
                                continue
                        if self.anew:
                            break
            except OSError:
                pass

    def __enter__(self):
        for t in self.threads:
            t.start()
        time.sleep(1.5)
        return self

    def __exit__(self, *_):
        self.stop.set()
        for t in self.threads:
            t.join(10)


@test("40 connections that guess passwords lock nobody out", timeout=300)
def guessing(case):
    users = "eve:%s\n" % COSTLY + "".join("u%d:%s\n" % (i, CRYPT) for i in range(8))
    for anew in (False, True):
        s = sidecar(case, users=users)
        with Guessers(("127.0.0.1", s.resp_port), 40, anew):
            # At the UNIX socket it is another party; over TCP it waits for a check of each, which
            # take a second together on an idle machine.
            for i, (where, most) in enumerate(((s.resp_sock, 5), (("127.0.0.1", s.resp_port), 40)) * 2):
                began = time.monotonic()
                with wire.Resp(where, timeout=60) as r:
                    assert r.ask("AUTH", "u%d" % i, "secret") == b"OK"
                    took = time.monotonic() - began
                    assert took < most, "a first login took %.1f s" % took
                    began = time.monotonic()
                    for _ in range(200):
                        assert int(r.ask("GET", "id:a")) > 0
                    took = time.monotonic() - began
                    assert took < 10, "200 IDs took %.1f s" % took
        s.stop()


@test("whoever holds all places without logging in makes room", timeout=120)
def full_of_strangers(case):
    s = sidecar(case, {"limits.connections": 40, "limits.login_timeout": "1h"},
                users="u:%s\nv:%s\n" % (CRYPT, CRYPT))
    known = s.resp()
    assert known.ask("AUTH", "u", "secret") == b"OK"
    stop = threading.Event()

    def hold():
        held = []
        while not stop.is_set():
            gone = select.select(held, [], [], 0)[0] if len(held) >= 60 else ()
            for k in gone:
                held.remove(k)
                k.close()
            if len(held) < 60:
                held.append(socket.create_connection(("127.0.0.1", s.resp_port)))
            stop.wait(0.002)
        for k in held:
            k.close()

    holder = threading.Thread(target=hold, daemon=True)
    holder.start()
    try:
        until("all places are taken",
              lambda: s.metric("sidflake_connections", protocol="redis") >= 40)
        for _ in range(10):
            for name, where in (("u", ("127.0.0.1", s.resp_port)), ("v", s.resp_sock)):
                with wire.Resp(where) as r:
                    assert r.ask("AUTH", name, "secret") == b"OK"
                    assert int(r.ask("GET", "id:a")) > 0
        assert int(known.ask("GET", "id:a")) > 0
    finally:
        stop.set()
        holder.join()
        known.close()


@test("known passwords outlive an upgrade in place; who was removed meanwhile is out")
def upgraded(case):
    line = case.ctl("passwd", "ann", stdin="secret\n", expect=0).stdout
    s = sidecar(case, users=line + "bob:%s\n" % ARGON2)
    with s.resp() as ann, s.resp() as bob:
        assert ann.ask("AUTH", "ann", "secret") == b"OK" and bob.ask("AUTH", "bob", "secret") == b"OK"
        with open(s.options["auth.users_file"], "w") as f:
            f.write(line)
        s.popen.send_signal(signal.SIGUSR2)
        until("the program is another", lambda: "upgraded in place" in s.log())
        assert int(ann.ask("GET", "id:a")) > 0
        assert gone(bob), "he was removed"
    with s.resp() as r:
        began = time.monotonic()
        assert r.ask("AUTH", "ann", "secret") == b"OK"
        known = time.monotonic() - began
    with s.resp() as r:
        began = time.monotonic()
        assert str(r.ask("AUTH", "ann", "wrong")).startswith("WRONGPASS ")
        checked = time.monotonic() - began
    assert known < checked / 2, "expected no check, found %.1f ms, a check takes %.1f ms" % (
        known * 1e3, checked * 1e3)


@test("HTTP: a name that points here for a moment gets no IDs and no page; the probes answer")
def rebinding(case):
    s = case.sidecar("static:7", {"workers.spare": 0, "listen.http_hosts": ["ids.example.com"]})
    evil = {"Host": "evil.example:%d" % s.http_port, "Sec-Fetch-Site": "cross-site"}
    for path in ("/v1/id/a", "/", "/v1/status", "/metrics"):
        r = s.http(path, headers=evil)
        assert r.status == 421 and "listen.http_hosts" in r.text, (path, r.status, r.text)
    assert s.http("/livez", headers=evil).status == 200
    assert s.http("/readyz", headers=evil).status == 200
    assert s.http("/v1/id/a", headers={"Host": "ids.example.com"}).status == 200
    assert s.http("/v1/id/a", headers={"Host": "127.0.0.1:%d" % s.http_port}).status == 200
    assert s.http("/v1/id/a", headers={"Sec-Fetch-Site": "cross-site"}).status == 403
    assert s.http("/", headers={"Origin": "http://evil.example"}).status == 403


@test("files of secrets: shown to all is a warning, to be written by others an error; no core files")
def secret_files(case):
    users, password = case.path("users"), case.path("password")
    for path, text in ((users, "ann:%s\n" % ARGON2), (password, "secret\n")):
        with open(path, "w") as f:
            f.write(text)
    for option, path in (("auth.users_file", users), ("coordinator.password_file", password)):
        args = ("-t", "--set", "coordinator.url=redis://127.0.0.1:1/0", "--set", option + "=" + path)
        if path == users:
            args += ("--set", "auth.mode=required")
        for mode, status, said in ((0o600, 0, None), (0o640, 0, None), (0o644, 0, "chmod 0600"),
                                   (0o660, 78, "found mode 0660"), (0o602, 78, "found mode 0602")):
            os.chmod(path, mode)
            r = case.sidflake(*args, expect=status)
            assert (said in r.stderr) if said else "chmod" not in r.stderr, (option, mode, r.stderr)
        os.chmod(path, 0o600)
    conf = case.path("shown.yaml")
    for url, mode, warned in (("u:p@", 0o644, True), ("u:p@", 0o640, False), ("u@", 0o644, False)):
        with open(conf, "w") as f:
            f.write("coordinator: {url: 'redis://%s127.0.0.1:1/0'}\n" % url)
        os.chmod(conf, mode)
        r = case.sidflake("-t", "-c", conf)
        assert ("coordinator.url: everybody on this host may read the file" in r.stderr) == warned, \
            (url, mode, r.stderr)
    r = case.sidflake("-t", "-c", conf, "--set", "coordinator.url=redis://u:p@127.0.0.1:1/0")
    assert "everybody" not in r.stderr, "the password is not in the file"
    most = resource.getrlimit(resource.RLIMIT_CORE)
    resource.setrlimit(resource.RLIMIT_CORE, (most[1], most[1]))  # most shells have it at 0
    s = sidecar(case)
    resource.setrlimit(resource.RLIMIT_CORE, most)
    with open("/proc/%d/limits" % s.pid) as f:
        assert re.search(r"Max core file size +0 ", f.read())
    os.chmod(s.options["auth.users_file"], 0o620)
    s.popen.send_signal(signal.SIGHUP)
    until("the reload is refused", lambda: "reload refused" in s.log())
    with s.resp() as r:
        assert r.ask("AUTH", "ann", "secret") == b"OK"


@test("no core files once a password is in memory, whichever and be it by a reload; else as the system has it")
def cores(case):
    password = case.path("password")
    with open(os.open(password, os.O_WRONLY | os.O_CREAT, 0o600), "w") as f:
        f.write("secret")

    def may_write(s):
        with open("/proc/%d/limits" % s.pid) as f:
            return re.search(r"Max core file size +(\d+|unlimited) ", f.read())[1] != "0"

    behind = {"workers.spare": 0, "upstream.redis": "tcp://127.0.0.1:9", "upstream.memcached": "tcp://127.0.0.1:9"}
    most = resource.getrlimit(resource.RLIMIT_CORE)
    resource.setrlimit(resource.RLIMIT_CORE, (most[1], most[1]))  # most shells have it at 0
    try:
        s = case.sidecar("static:7", behind)
        assert may_write(s)
        for url, options in (("redis://:secret@127.0.0.1:9/0", {}), ("redis://127.0.0.1:9/0", {
                "coordinator.password_file": password}), ("static:8", {
                    **behind, "upstream.redis_password_file": password}), ("static:9", {
                        **behind, "upstream.memcached_user": "ann", "upstream.memcached_password_file": password})):
            other = case.sidecar(url, options, wait=False)
            other.wait_listening()
            assert not may_write(other), (url, options)
        s.options["upstream.redis_password_file"] = password
        s.write_conf()
        s.popen.send_signal(signal.SIGHUP)
        until("it is reloaded", lambda: "configuration reloaded" in s.log())
        assert not may_write(s)
    finally:
        resource.setrlimit(resource.RLIMIT_CORE, most)


@test("a user namespace: the number of those it does not know lets nobody in")
def namespace(case):
    probe = subprocess.run(["unshare", "--user", "--map-root-user", "true"], check=False)
    if probe.returncode != 0 or os.getuid() != 0:
        print("# user namespaces cannot be had here: not shown")
        return
    os.chmod(case.dir, 0o755)
    path = case.path("peers")
    args = [harness.SIDFLAKE, "--set", "coordinator.url=static:7", "--set", "state_dir=" + case.dir,
            "--set", "listen.redis=unix://" + path, "--set", "listen.memcached=",
            "--set", "listen.http=", "--set", "workers.spare=0", "--set", "listen.socket_mode=0777"]
    for ids, as_uid, let_in in (("65534", 1000, False), ("65534", 0, False), ("0", 0, True),
                                ("0", 1000, False), ("65534,0", 0, True)):
        with open(case.path("log"), "w") as log:
            p = subprocess.Popen(["unshare", "--user", "--map-root-user", *args, "--set",
                                  "auth.allow_uids=" + ids], stderr=log)
        try:
            until("it listens", lambda: os.path.exists(path))
            code = ("import os,socket; os.setuid(%d); s = socket.socket(socket.AF_UNIX); "
                    "s.connect(%r); s.sendall(b'PING\\r\\n'); print(s.recv(9))" % (as_uid, path))
            r = subprocess.run(["python3", "-c", code], capture_output=True, text=True, check=False)
            assert ("PONG" in r.stdout) == let_in, (ids, as_uid, r)
            with open(case.path("log")) as f:
                assert ("nobody is let in by this number" in f.read()) == ("65534" in ids)
        finally:
            p.terminate()
            p.wait(10)
        until("it is gone", lambda: not os.path.exists(path))
