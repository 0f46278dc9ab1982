"""A server behind that answers, and does not serve: nothing is shared there, and it is said why.
One that was lost, and that nobody asks: who looks is told what is so."""

import contextlib
import re
import socket
import time

import wire
from passthrough import Puppet
from procs import until
from runner import test
from test_passthrough import error
from test_upstream import SECRET, Fake, away, closed, in_front, password_file, reload


def unserved(s, protocol, why):
    """It answers, but does not serve: whoever looks is told so, and why."""
    assert s.metric("sidflake_upstream_up", protocol=protocol) == 0
    assert s.metric("sidflake_upstream_errors_total", protocol=protocol) > 0
    s.wait_log("upstream lost protocol=%s why=\"it answers, but refuses: %s" % (protocol, why))
    assert "upstream reached protocol=" + protocol not in s.log()
    assert re.search("\\[!\\]upstream\\.%s: .*: it answers, but refuses: %s" % (protocol, why),
                     s.http("/readyz?verbose").text), s.http("/readyz?verbose").text
    page = s.http("/", {"Accept": "text/html"}).text
    assert re.search("<td [^<]*it answers, but refuses: " + why, page), page


@test("memcached -Y, and no login of ours: nobody logs in others, and it is not reached")
def memcached_no_login(case):
    path = password_file(case, "memcached.users", "app:" + SECRET)
    server = case.memcached(args=("-Y", path))
    s = case.sidecar("static:7", {"upstream.memcached": "tcp://127.0.0.1:%d" % server.port})
    value = "app " + SECRET
    login = "set x 0 0 %d\r\n%s" % (len(value), value)
    down = "SERVER_ERROR upstream unavailable"
    with s.mc() as m, s.mc() as other:
        assert other.ask("get a") == down
        assert m.ask(login) == down and m.ask("set a 0 0 1\r\nx") == down and m.id() > 0
        unserved(s, "memcached", "CLIENT_ERROR unauthenticated")
        # on a link of its own it is the client's business, and stays it
        assert m.ask("verbosity 0") == "CLIENT_ERROR unauthenticated"
        assert s.metric("sidflake_upstream_up", protocol="memcached") == 0
        assert m.ask(login) == "STORED" and m.ask("set a 0 0 1\r\nx") == "STORED"
        assert s.metric("sidflake_upstream_up", protocol="memcached") == 1
        for _ in range(3):
            assert other.ask("get a") == down
        with s.mc() as third:
            assert third.ask("get a") == down
            assert third.ask("mn") == "CLIENT_ERROR unauthenticated"
            assert third.ask("get a") == "CLIENT_ERROR unauthenticated"
        assert m.get("a") == [("a", "x", None)]


@test("a server that answers, and never serves, is not reached: a password, no room, another kind")
def answers_only(case):
    locked, full = case.redis(args=("--requirepass", SECRET)), case.redis()
    server = case.memcached()
    full.ask("CONFIG", "SET", "maxclients", 1)
    with wire.Resp(full.sock) as hog:
        str(hog.ask("PING"))
        for behind, why in ((locked, "NOAUTH Authentication required"),
                            (full, "ERR max number of clients reached")):
            s = case.sidecar("static:7", {"upstream.redis": "tcp://127.0.0.1:%d" % behind.port})
            with s.resp() as r:
                away(r.ask("GET", "a"), "it answers, but refuses: " + why)
            with s.resp() as r:
                try:
                    assert why in str(r.ask("EVAL", "return 1", 0))
                except wire.Closed:
                    pass
            unserved(s, "redis", why)
            s.stop()
    swapped = case.sidecar("static:7", {"upstream.redis": "tcp://127.0.0.1:%d" % server.port,
                                        "upstream.memcached": "tcp://127.0.0.1:%d" % locked.port})
    with swapped.resp() as r, swapped.resp() as own, swapped.mc() as m, swapped.mc() as mine:
        away(r.ask("GET", "a"), "it does not speak the protocol")
        closed(own, "EVAL", "return 1", 0)
        swapped.wait_log('own upstream connection was lost protocol=redis why="it does not speak the protocol"')
        assert m.ask("get a") == "SERVER_ERROR upstream unavailable"
        mine.send(b"verbosity 0\r\n")
        assert mine.line().startswith(b"-")
        for p in "redis", "memcached":
            assert swapped.metric("sidflake_upstream_up", protocol=p) == 0
        assert "upstream reached" not in swapped.log()


@test("a server that lets in nobody any more, while all clients need links of their own: it is told", beside=True)
def refuses_owners(case):
    def told(words):
        with contextlib.suppress(wire.Closed, OSError), s.resp() as r:
            r.ask("EVAL", "return 1", 0)
        text = s.http("/readyz?verbose").text
        return "[!]upstream.redis: the Redis behind cannot be reached" in text and words in text

    redis = case.redis()
    for setting, value, usual, words in (("requirepass", SECRET, "", "NOAUTH Authentication required"),
                                         ("maxclients", 1, 4000, "ERR max number of clients reached")):
        s = case.sidecar("static:7", {"upstream.redis": "tcp://127.0.0.1:%d" % redis.port})
        with s.resp() as r:
            assert r.ask("EVAL", "return 1", 0) == 1
        with wire.Resp(redis.sock) as operator:
            operator.ask("CONFIG", "SET", setting, value)
            until("it is told", lambda w=words: told(w))
            s.wait_log('upstream lost protocol=redis why="it answers, but refuses: ' + words)
            operator.ask("CONFIG", "SET", setting, usual)
        with s.resp() as r:
            assert r.ask("EVAL", "return 1", 0) == 1
        assert s.metric("sidflake_upstream_up", protocol="redis") == 1
        s.stop()


@test("a server that was away for a moment, and that nobody asks: who looks learns that it is back")
def looked_at(case):
    def told():
        lines = [l for l in s.http("/readyz?verbose").text.splitlines() if "upstream" in l]
        return lines[0], s.metric("sidflake_upstream_up", protocol="redis")

    redis = case.redis()
    s = in_front(case, redis.port)
    with s.resp() as r:
        assert r.ask("GET", "a") is None
        redis.stop()
        until("it is noticed", lambda: told()[0].startswith("[!]upstream.redis: the Redis behind cannot be reached"))
        assert told()[1] == 0
        redis.start()
        until("it is back", lambda: told() == ("[+]upstream.redis ok", 1))
        assert s.log().count("upstream reached") == 2
        assert r.ask("GET", "a") is None


@test("a server that lets in nobody else: the log has its words, whoever it still serves")
def lets_in_no_more(case):
    redis, server = case.redis(args=("--maxclients", "4")), case.memcached(args=("-c", "40", "-t", "1"))
    s = case.sidecar("static:7", {"upstream.redis": "tcp://127.0.0.1:%d" % redis.port,
                                  "upstream.memcached": "tcp://127.0.0.1:%d" % server.port})
    with s.resp() as r, s.mc() as m, contextlib.ExitStack() as hogs:
        assert r.ask("GET", "a") is None and m.get("a") == []
        for _ in range(40):
            hogs.enter_context(s.resp()).send(wire.Resp.encode("BLPOP", "none", 0))
            hogs.enter_context(s.mc()).send(b"mg a\r\n")
        for protocol, words in ("redis", "ERR max number of clients"), ("memcached", "ERROR Too many open"):
            s.wait_log("own upstream connection was lost protocol=%s why=\"it answers, but refuses: %s"
                       % (protocol, words))
            assert s.metric("sidflake_upstream_up", protocol=protocol) == 1
            told = r"\[!\]upstream\.%s: clients that need a connection of their own get none to the \w+ " \
                "behind: it answers, but refuses: %s.* ago" % (protocol, words)
            text = s.http("/readyz?verbose").text
            assert re.search(told, text) and "[+]upstream.%s " % protocol not in text, text
        assert r.ask("GET", "a") is None and m.get("a") == []
    assert "upstream lost" not in s.log()

    def own():
        with contextlib.suppress(wire.Closed), s.resp() as r, s.mc() as m:
            r.ask("KEYS", "none"), m.ask("mg a")
        return "[!]upstream" not in s.http("/readyz?verbose").text

    until("there is room again", own)


@test("a memcached that has no room, asked by quiet meta requests alone: the log has its words", beside=True)
def lets_in_none_who_are_quiet(case):
    server = case.memcached(args=("-c", "40", "-t", "1"))
    s = case.sidecar("static:7", {"upstream.memcached": "tcp://127.0.0.1:%d" % server.port})
    with s.mc() as m, contextlib.ExitStack() as hogs:
        assert m.get("a") == []
        for _ in range(40):
            hogs.enter_context(s.mc()).send(b"mn\r\n")
        s.wait_log("own upstream connection was lost protocol=memcached why=\"it answers, but refuses: ERROR Too many open")
        assert "own get none to the memcached behind" in s.http("/readyz?verbose").text
        assert m.get("a") == []


@test("a password that was changed there: those who need a connection of their own are refused, which is told",
      beside=True)
def lets_in_no_own(case):
    redis = case.redis(args=("--requirepass", SECRET))
    path = password_file(case, "redis.password", SECRET)
    s = in_front(case, redis.port, {"upstream.redis_password_file": path})
    with s.resp() as r:
        assert r.ask("GET", "a") is None
        with wire.Resp(redis.sock) as admin:
            assert admin.ask("AUTH", SECRET) == b"OK" and admin.ask("CONFIG", "SET", "requirepass", "another") == b"OK"
        with s.resp() as own:
            closed(own, "KEYS", "none")
        assert r.ask("GET", "a") is None
        told = "clients that need a connection of their own get none to the Redis behind: the login was " \
            "refused: WRONGPASS"
        assert told in s.http("/readyz?verbose").text, s.http("/readyz?verbose").text
        assert told in s.http("/").text
        assert s.metric("sidflake_upstream_refused_total", protocol="redis") == 1
        password_file(case, "redis.password", "not-" + SECRET)
        reload(s)
        until("the new one is refused, too",
              lambda: s.metric("sidflake_upstream_refused_total", protocol="redis") == 2)
        assert r.ask("GET", "a") is None, "what was let in before goes on"
        password_file(case, "redis.password", "another")
        reload(s)
        with s.resp() as own:
            assert own.ask("KEYS", "none") == []
        assert "[!]upstream" not in s.http("/readyz?verbose").text


@test("a server that answers with errors of its own is up, and page, metric and log say what it says")
def has_faults(case):
    redis, memcached = case.redis(), case.memcached()
    s = case.sidecar(case.pool(), {"upstream.redis": "tcp://127.0.0.1:%d" % redis.port,
                                   "upstream.memcached": "tcp://127.0.0.1:%d" % memcached.port})
    with s.resp() as r, s.mc() as m, wire.Resp(redis.sock) as admin:
        assert r.ask("SET", "text", "x") == b"OK" and m.get("k") == []
        assert str(r.ask("INCR", "text")).startswith("ERR"), "the client's own error"
        assert s.metric("sidflake_upstream_faults_total", protocol="redis") == 0
        assert "[!]upstream" not in s.http("/readyz?verbose").text
        assert admin.ask("CONFIG", "SET", "maxmemory", "1") == b"OK"
        for _ in range(3):
            assert str(r.ask("SET", "a", "x")).startswith("OOM")
        told = r"requests fail at the Redis behind: it answers: OOM command not allowed"
        assert told in s.http("/readyz?verbose").text, s.http("/readyz?verbose").text
        assert told in s.http("/").text
        assert s.metric("sidflake_upstream_faults_total", protocol="redis") == 3
        assert s.metric("sidflake_upstream_up", protocol="redis") == 1
        s.wait_log('requests fail at the server behind protocol=redis why="it answers: OOM')
        assert s.log().count("requests fail at the server behind") == 1, "once in 10 s"
        assert s.metric("sidflake_upstream_faults_total", protocol="memcached") == 0


@test("a password that the server does not know yet, while it hangs: those who share go on with what was let in",
      beside=True)
def hangs_at_reload(case):
    get = wire.Resp.encode("GET", "a")
    path = password_file(case, "redis.password", SECRET)
    with Puppet() as puppet:
        s = in_front(case, puppet.port, {"upstream.redis_password_file": path, "upstream.timeout": "2s"})

        def let_in():
            link = puppet.accept()
            assert link.recv(4096) == wire.Resp.encode("AUTH", SECRET)
            link.sendall(b"+OK\r\n")
            puppet.let_in(link)
            return link

        with s.resp() as r, s.resp() as own:
            r.send(get)
            shared = let_in()
            assert shared.recv(4096) == get
            shared.sendall(b"$1\r\n1\r\n")
            assert r.reply() == b"1"
            own.send(wire.Resp.encode("KEYS", "none"))
            let_in()
            assert shared.recv(4096) == wire.Resp.encode("PING"), "the other has timed out"
            password_file(case, "redis.password", "not-" + SECRET)
            reload(s)
            r.send(get)
            shared.sendall(b"+PONG\r\n")
            assert shared.recv(4096) == get
            shared.sendall(b"$1\r\n2\r\n")
            assert r.reply() == b"2"
            assert puppet.accept().recv(4096) == wire.Resp.encode("AUTH", "not-" + SECRET), "and another is asked for"


@test("a password that the server learns after SIGHUP: another SIGHUP has the shared connection replaced", beside=True)
def rotated_there_later(case):
    redis = case.redis(args=("--requirepass", SECRET))
    path = password_file(case, "redis.password", SECRET)
    s = in_front(case, redis.port, {"upstream.redis_password_file": path})

    def connections():
        return set(re.findall(rb"\bid=(\d+)", admin.ask("CLIENT", "LIST"))) - mine

    with s.resp() as r, wire.Resp(redis.sock) as admin:
        assert admin.ask("AUTH", SECRET) == b"OK"
        mine = {b"%d" % admin.ask("CLIENT", "ID")}
        assert r.ask("GET", "a") is None
        before = connections()
        password_file(case, "redis.password", "another")
        reload(s)
        until("it is refused", lambda: s.metric("sidflake_upstream_refused_total", protocol="redis") == 1)
        assert admin.ask("CONFIG", "SET", "requirepass", "another") == b"OK"
        assert connections() == before and len(before) == 1
        reload(s)
        until("another took its place", lambda: len(connections()) == 1 and connections() != before)
        assert r.ask("GET", "a") is None
        assert "[!]upstream" not in s.http("/readyz?verbose").text, s.http("/readyz?verbose").text
        after = connections()
        reload(s)
        time.sleep(0.2)
        assert connections() == after, "the same again changes nothing"


@test("a new password while there is no room for another connection: what is shared has an earlier login, which is told until there is",
      beside=True)
def no_room_at_reload(case):
    redis = case.redis(args=("--requirepass", SECRET))
    path = password_file(case, "redis.password", SECRET)
    s = in_front(case, redis.port, {"upstream.redis_password_file": path, "upstream.connections": 1})
    told = ("[!]upstream.redis: the connection to the Redis behind that clients share has an earlier login: one with the "
            "present login takes its place once upstream.connections leaves room for it")
    with s.resp() as r, wire.Resp(redis.sock) as admin:
        assert admin.ask("AUTH", SECRET) == b"OK" and r.ask("GET", "a") is None
        with s.resp() as own:
            assert own.ask("KEYS", "none") == []
            assert admin.ask("CONFIG", "SET", "requirepass", "another") == b"OK"
            password_file(case, "redis.password", "another")
            reload(s)
            assert told in s.http("/readyz?verbose").text, s.http("/readyz?verbose").text
            assert told[len("[!]upstream.redis: "):] in s.http("/").text
        until("another took its place when there was room", lambda: "[!]upstream" not in s.http("/readyz?verbose").text)
        assert r.ask("GET", "a") is None


@test("a new password while half of upstream.connections are for large replies: what is shared is replaced once one is needed",
      beside=True)
def no_extra_at_reload(case):
    redis = case.redis(args=("--requirepass", SECRET))
    path = password_file(case, "redis.password", SECRET)
    s = in_front(case, redis.port, {"upstream.redis_password_file": path, "upstream.connections": 2})
    with s.resp() as r, s.resp() as large, wire.Resp(redis.sock) as admin:
        assert admin.ask("AUTH", SECRET) == b"OK" and admin.ask("SET", "big", "x" * 200000) == b"OK"
        assert r.ask("GET", "a") is None and len(large.ask("GET", "big")) == 200000
        until("it is served on a connection of its own", lambda: len(large.ask("GET", "big")) == 200000 and
              b"cmd=get" in (admin.ask("CLIENT", "LIST").splitlines() + 2 * [b""])[2] and
              s.metric("sidflake_upstream_connections", protocol="redis") == 2)
        assert admin.ask("CONFIG", "SET", "requirepass", "another") == b"OK"
        password_file(case, "redis.password", "another")
        reload(s)
        assert "has an earlier login" in s.http("/readyz?verbose").text, s.http("/readyz?verbose").text
        assert large.ask("KEYS", "none") == []
        until("another took its place", lambda: "[!]upstream" not in s.http("/readyz?verbose").text)
        assert r.ask("GET", "a") is None


@test("another shared connection that is refused again and again: when the first is lost, a new one is had at once",
      beside=True)
def full_and_lost(case):
    full = [False]

    def answer(_, words):
        if words[0] == b"AUTH":
            return b"-ERR max number of clients reached\r\n" if full[0] else b"+OK\r\n"
        return b"" if words[1] == b"break" else b"$100000\r\n%s\r\n" % bytes(100000) if words[1] == b"big" else b"$-1\r\n"

    def refused():
        assert len(large.ask("GET", "big")) == 100000
        return s.metric("sidflake_upstream_refused_total", protocol="redis") >= 5

    with Fake(answer) as fake:
        path = password_file(case, "redis.password", SECRET)
        s = in_front(case, fake.port, {"upstream.redis_password_file": path, "upstream.timeout": "5s"})
        with s.resp() as r, s.resp() as large, s.resp() as last:
            assert r.ask("GET", "a") is None
            full[0] = True
            until("it was refused", refused)
            full[0] = False
            closed(last, "GET", "break")
            assert r.ask("GET", "a") is None


@test("who is refused on a connection of his own, and logs in there himself: counted once, and then told no more",
      beside=True)
def lets_himself_in(case):
    redis = case.redis()
    s = in_front(case, redis.port, {"upstream.timeout": "5s"})
    with s.resp() as r, wire.Resp(redis.sock) as admin, s.resp() as own:
        assert r.ask("GET", "a") is None
        assert admin.ask("CONFIG", "SET", "requirepass", SECRET) == b"OK"
        for _ in range(5):
            error(own.ask("KEYS", "none"), "NOAUTH")
        s.wait_log("upstream lets nobody else in protocol=redis why=\"it answers, but refuses: NOAUTH")
        assert "own get none to the Redis behind" in s.http("/readyz?verbose").text
        assert s.metric("sidflake_upstream_refused_total", protocol="redis") == 1, "of connections"
        assert own.ask("AUTH", SECRET) == b"OK" and own.ask("KEYS", "none") == []
        assert "[!]upstream" not in s.http("/readyz?verbose").text, s.http("/readyz?verbose").text


@test("a server that is back, which a client's own connection shows: nobody is said to be refused",
      beside=True)
def back_for_owners(case):
    redis = case.redis()
    s = in_front(case, redis.port)
    with s.resp() as r:
        assert r.ask("GET", "a") is None
        redis.stop()

        def refused():
            with contextlib.suppress(wire.Closed), s.resp() as r:
                away(r.ask("GET", "a"))
                return True

        until("it is noticed", refused)
        redis.start()

        def own():
            with contextlib.suppress(wire.Closed), s.resp() as r:
                return r.ask("KEYS", "none") == []

        until("it is back", own)
        assert "[!]upstream" not in s.http("/readyz?verbose").text, s.http("/readyz?verbose").text


@test("a server that lets in nobody else, and serves who was let in before: the others' trouble is told",
      beside=True)
def serves_the_old_alone(case):
    redis = case.redis()
    path = password_file(case, "redis.password", SECRET)
    redis.ask("ACL", "SETUSER", "app", "on", ">" + SECRET, "~*", "+@all")
    s = in_front(case, redis.port, {"upstream.redis_user": "app", "upstream.redis_password_file": path})
    told = "[!]upstream.redis: clients without a connection of their own are told that the Redis behind " \
        "cannot be reached: the login was refused: WRONGPASS"
    with s.resp() as r, s.resp() as own:
        assert r.ask("GET", "a") is None
        assert own.ask("SELECT", 1) == b"OK" and own.ask("SET", "a", 1) == b"OK"
        redis.ask("ACL", "SETUSER", "app", "resetpass", ">another")
        shared, = (l for l in redis.ask("CLIENT", "LIST").decode().splitlines() if "db=0 " in l and "user=app" in l)
        redis.ask("CLIENT", "KILL", "ID", re.search(r"id=(\d+)", shared).group(1))
        s.wait_log("upstream lost protocol=redis why=\"the login was refused")  # no reply is due there any more
        for _ in range(2):
            until("the others are refused", lambda: "LOADING" in str(r.ask("GET", "a")))
            assert own.ask("GET", "a") == b"1"
            assert s.metric("sidflake_upstream_up", protocol="redis") == 1  # to its clients
            assert told in s.http("/readyz?verbose").text, s.http("/readyz?verbose").text
        assert told[len("[!]upstream.redis: "):] in s.http("/").text
        assert s.metric("sidflake_requests_total", protocol="redis", command="get", result="away") >= 2
        password_file(case, "redis.password", "another")
        reload(s)
        until("all are served", lambda: r.ask("GET", "a") is None)
        assert "[!]upstream" not in s.http("/readyz?verbose").text
    assert s.stop() == 0


@test("a server that refuses in other words, and another login that it refuses: the log says so",
      beside=True)
def other_words(case):
    words = [b"-NOAUTH Authentication required.\r\n"]
    path = password_file(case, "redis.password", SECRET)
    with Fake(lambda number, asked: words[0]) as fake:
        s = in_front(case, fake.port, {"upstream.redis_password_file": path})

        def told(text, n=1):
            def asked():
                with s.resp() as c:
                    away(c.ask("GET", "a"))
                return sum(text in l for l in s.log().splitlines() if "upstream lost" in l) == n
            until("%d lines with %s" % (n, text), asked, 15, 0.1)

        told("NOAUTH")
        password_file(case, "redis.password", "another")
        words[0] = b"-WRONGPASS invalid username-password pair\r\n"
        reload(s)
        since = time.monotonic()
        told("WRONGPASS")
        assert time.monotonic() - since < 5, "at once after a reload"
        password_file(case, "redis.password", "a third")
        reload(s)
        told("WRONGPASS", 2)
        words[0] = b"-ERR max number of clients reached\r\n"
        told("max number of clients")
        assert s.log().count("upstream lost") == 4


@test("a server that hangs, while all have connections of their own: it is lost, and back", beside=True)
def hangs_for_owners(case):
    redis, server = case.redis(), case.memcached()
    s = case.sidecar("static:7", {"upstream.redis": "tcp://127.0.0.1:%d" % redis.port,
                                  "upstream.memcached": "tcp://127.0.0.1:%d" % server.port,
                                  "upstream.timeout": "300ms"})

    def up():
        return [s.metric("sidflake_upstream_up", protocol=p) for p in ("redis", "memcached")]

    def ask():
        with contextlib.suppress(wire.Closed), s.resp() as r:
            r.ask("SELECT", 1)
        with contextlib.suppress(wire.Closed), s.mc() as m:
            m.ask("mg a")
        return up()

    assert ask() == [1, 1]
    for shares in False, True:
        if shares:
            with s.resp() as r, s.mc() as m:
                assert r.ask("GET", "a") is None and m.get("a") == []
        redis.pause(), server.pause()
        until("both are lost", lambda: ask() == [0, 0])
        for p in "redis", "memcached":
            assert re.search(r"\[!\]upstream\.%s: .* cannot be reached for .*: no reply in time" % p,
                             s.http("/readyz?verbose").text)
        redis.resume(), server.resume()
        until("both are back", lambda: up() == [1, 1])
    assert "upstream lost protocol=redis" in s.log() and "upstream lost protocol=memcached" in s.log()


class Protected(Fake):
    """A Redis that whoever comes from another host finds in protected mode."""

    SAYS = b"-DENIED Redis is running in protected mode because " + 1014 * b"x" + b"\r\n"  # 7.0's length

    def serve(self, s, number):
        s.sendall(self.SAYS)
        s.shutdown(socket.SHUT_WR)


@test("a Redis in protected mode says so in more than a KiB, and closes: its words are told", beside=True)
def protected(case):
    with Protected(None) as fake:
        s = in_front(case, fake.port)
        with s.resp() as r:
            away(r.ask("GET", "a"), "it answers, but refuses: DENIED Redis is running in protected mode")
        unserved(s, "redis", "DENIED Redis is running in protected mode")
