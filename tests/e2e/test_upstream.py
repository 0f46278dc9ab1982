"""The way to the real servers: who is harmed by what fails there, and what is said about it."""

import os
import select
import signal
import socket
import struct
import threading
import time

import wire
from harness import TOP, sanitized, until
from runner import test
from test_passthrough import error
from test_upgrade import upgrade
from passthrough import Puppet


class Fake:
    """A Redis of a thread for each connection: answers each command with what `answer` returns for
    it, a list of bytes; None: never; b"": closes the connection. It can stop to accept. PING it
    answers by itself."""

    def __init__(self, answer, address=("127.0.0.1", 0)):
        self.answer = answer
        self.listener = socket.create_server(address, backlog=64)
        self.port = self.listener.getsockname()[1]
        self.socks = []
        self.accepted = 0
        threading.Thread(target=self.run, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        for s in [self.listener, *self.socks]:
            try:
                s.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
            s.close()

    def run(self):
        while True:
            try:
                s = self.listener.accept()[0]
            except OSError:
                return
            self.accepted += 1
            self.socks.append(s)
            threading.Thread(target=self.serve, args=(s, self.accepted), daemon=True).start()

    def serve(self, s, number):
        try:
            f = s.makefile("rb")
            while True:
                head = f.readline()
                if not head:
                    return
                words = []
                for _ in range(int(head[1:])):
                    n = int(f.readline()[1:])
                    words.append(f.read(n + 2)[:n])
                says = b"+PONG\r\n" if words == [b"PING"] else self.answer(number, words)
                if says == b"":
                    s.shutdown(socket.SHUT_RDWR)
                    return
                if says is not None:
                    s.sendall(says)
        except (OSError, ValueError):
            pass


# Clients know two ways in which a server tells them that it is away: see "While it is down" in
# sidflake-protocols(7).
AWAY = "LOADING sidflake: the server behind is unreachable: "


def away(reply, why=""):
    """The request was not sent, and may be sent again; the connection goes on."""
    error(reply, AWAY + why)


def closed(r, *words):
    """Nobody knows whether the request was carried out: the connection closes, and nothing is said."""
    r.send(wire.Resp.encode(*words))
    rest = r.rest()
    assert rest == b"", "expected the connection to close, found %r" % rest


def in_front(case, port, options=None):
    given = {"upstream.redis": "tcp://127.0.0.1:%d" % port, "upstream.timeout": "200ms"}
    given.update(options or {})
    return case.sidecar(case.pool(), given)


class Crowd:
    """Threads that do something again and again until they are told to stop."""

    def __init__(self, n, step):
        self.stop = False
        self.threads = [threading.Thread(target=self.run, args=(step,), daemon=True)
                        for _ in range(n)]

    def run(self, step):
        while not self.stop:
            try:
                step()
            except (OSError, EOFError, AssertionError, wire.Closed):
                time.sleep(0.001)

    def __enter__(self):
        for t in self.threads:
            t.start()
        return self

    def __exit__(self, *_):
        self.stop = True
        for t in self.threads:
            t.join(10)


def errors_of_a_good_client(s, seconds, failures):
    """INCR on the shared connection, and now and then somebody new with a connection of its own:
    for so long, and until so many others have failed, however slow the machine is."""
    asked, failed, end = 0, [], time.monotonic() + seconds
    with s.resp() as r:
        while time.monotonic() < end or asked <= 100 or \
                s.metric("sidflake_upstream_errors_total", protocol="redis") < failures:
            assert time.monotonic() < end + 60, "%d requests answered" % asked
            for _ in range(20):
                got = r.ask("INCR", "a")
                asked += 1
                if got != 1:
                    failed.append(got)
            with s.resp() as own:
                got = own.ask("SELECT", 1), own.ask("INCR", "a")
                asked += 1
                if got != (b"OK", 1):
                    failed.append(got)
            time.sleep(0.002)
    return asked, failed


def answers(_, words):
    word = words[0].upper()
    if word in (b"INCR",):
        return b":1\r\n"
    if word == b"GET":
        return None if words[1] == b"slow" else b"" if words[1] == b"break" else b"$1\r\nx\r\n"
    return b"+OK\r\n"


@test("connections of one's own that time out or break harm nobody else, and fill no log")
def own_failures(case):
    with Fake(answers) as fake:
        s = in_front(case, fake.port, {"upstream.timeout": "1s"})  # all of it is in this process
        since = time.monotonic()
        for key, failures in (("slow", 15), ("break", 30)):
            def step(key=key):
                with s.resp() as r:
                    r.ask("SELECT", 1)
                    r.ask("GET", key)

            with Crowd(8, step):
                asked, failed = errors_of_a_good_client(s, 2, failures)
            assert not failed, "%s: %d of %d failed, as %r" % (key, len(failed), asked, failed[0])
            assert s.metric("sidflake_upstream_up", protocol="redis") == 1
        lines = [l for l in s.log().splitlines() if "upstream" in l and "forwarding" not in l]
        most = 4 + int((time.monotonic() - since) / 10)  # a line or two, and one in 10 s, for each cause
        assert 1 <= len(lines) <= most, "\n".join(lines)


@test("a shared connection that breaks again and again: the next request has a new one, a quiet log")
def shared_breaks(case):
    def answer(number, words):
        return b"" if words[1:2] == [b"bad"] else answers(number, words)

    with Fake(answer) as fake:
        s = in_front(case, fake.port)
        with s.resp() as bystander:
            assert bystander.ask("INCR", "a") == 1
            for i in range(50):
                with s.resp() as r:
                    closed(r, "GET", "bad")
                for _ in range(3):
                    assert bystander.ask("INCR", "a") == 1, "after break %d" % i
                assert int(bystander.ask("GET", "id:a")) > 0
        lost = s.log().count("upstream lost")
        assert 1 <= lost <= 2, "expected one line, found %d" % lost
        assert s.log().count("upstream reached") <= 2
        assert s.metric("sidflake_upstream_errors_total", protocol="redis") >= 50


@test("a server that closes whatever is opened is not tried for each request, and IDs go on")
def closes(case):
    with Fake(lambda number, words: b"") as fake:
        s = in_front(case, fake.port)
        end, held, told = time.monotonic() + 2, 0, 0
        with s.resp() as ids:
            while time.monotonic() < end:
                with s.resp() as r:
                    while time.monotonic() < end:
                        try:
                            got = r.ask("GET", "a")
                        except wire.Closed as e:  # what was sent is not known to be done or not
                            assert "unread: b''" in str(e), e
                            held += 1
                            break
                        away(got)
                        told += 1
                        assert int(r.ask("GET", "id:a")) > 0
                        assert int(ids.ask("GET", "id:a")) > 0
        assert 2 <= fake.accepted <= 20, "expected a few connections, found %d" % fake.accepted
        assert held <= fake.accepted, "%d clients were closed, of %d connections there" % (
            held, fake.accepted)
        assert told > 100, "expected to be told at once, found %d" % told
        assert s.metric("sidflake_upstream_up", protocol="redis") == 0


# ---- logging in there ----------------------------------------------------------------------------

SECRET = "s3cret-of-the-upstream"


def password_file(case, name, password):
    path = case.path(name)
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as f:
        f.write(password + "\n")
    return path


def reload(s):
    seen = len(s.log())
    s.send(signal.SIGHUP)
    s.wait_log("configuration reloaded|reload refused", after=seen)
    return s.log()[seen:]


def refused(s, protocol, words):
    """What the log says of a login that was refused, and that it says it once."""
    lines = [l for l in s.log().splitlines() if "upstream lost protocol=" + protocol in l]
    assert len(lines) == 1 and words in lines[0], "expected %r in one line, found %r" % (
        words, lines)


@test("a server that broke off and then refuses the login: the log says the one and the other")
def reasons(case):
    redis = case.redis(args=("--requirepass", SECRET))
    path = password_file(case, "redis.password", SECRET)
    s = in_front(case, redis.port, {"upstream.redis_password_file": path})
    with wire.Resp(redis.sock) as r, s.resp() as c, s.resp() as owed:
        r.ask("AUTH", SECRET)
        assert c.ask("SET", "a", 1) == b"OK"
        r.ask("CONFIG", "SET", "requirepass", "another")
        r.ask("CLIENT", "PAUSE", 60000, "WRITE")  # a link that owes nothing may be closed
        owed.send(wire.Resp.encode("SET", "a", 2))
        until("the server owes a reply",
              lambda: b"blocked_clients:1" in r.ask("INFO", "clients"))
        r.ask("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
        s.wait_log("upstream lost protocol=redis why=\"it closed")
        r.ask("CLIENT", "UNPAUSE")
        assert "WRONGPASS" in str(c.ask("GET", "a"))
        s.wait_log("upstream lost protocol=redis why=.*WRONGPASS")
        for _ in range(20):
            assert "WRONGPASS" in str(c.ask("GET", "a"))
            time.sleep(0.02)
    assert s.log().count("upstream lost") == 2, "one line a reason"


@test("Redis with a password: sidflake logs in, for all and for each connection of one's own")
def redis_login(case):
    redis = case.redis(args=("--requirepass", SECRET))
    path = password_file(case, "redis.password", SECRET)
    s = in_front(case, redis.port, {"upstream.redis_password_file": path})
    with s.resp() as r, s.resp() as other:
        assert r.ask("SET", "a", 1) == b"OK" and other.ask("GET", "a") == b"1"
        assert r.ask("SELECT", 1) == b"OK" and r.ask("SET", "b", 2) == b"OK"
        assert r.ask("HELLO", 3)[b"proto"] == 3 and r.ask("GET", "b") == b"2"
        assert r.ask("RESET") == b"RESET" and r.ask("GET", "a") == b"1"
        assert r.ask("ACL", "WHOAMI") == b"default"
        assert int(r.ask("GET", "id:a")) > 0
    s.stop()
    assert SECRET not in s.log()


@test("Redis with users: the right one is used, a client's own AUTH is its own")
def redis_user(case):
    redis = case.redis(args=("--requirepass", "other"))
    with wire.Resp(("127.0.0.1", redis.port)) as d:
        assert d.ask("AUTH", "other") == b"OK"
        assert d.ask("ACL", "SETUSER", "app", "on", ">" + SECRET, "~*", "+@all") == b"OK"
        assert d.ask("ACL", "SETUSER", "me", "on", ">mine", "~*", "+@all") == b"OK"
    path = password_file(case, "redis.password", SECRET)
    s = in_front(case, redis.port, {"upstream.redis_user": "app",
                                    "upstream.redis_password_file": path})
    with s.resp() as r, s.resp() as other:
        assert r.ask("ACL", "WHOAMI") == b"app" and other.ask("ACL", "WHOAMI") == b"app"
        assert other.ask("AUTH", "me", "mine") == b"OK"
        assert other.ask("ACL", "WHOAMI") == b"me" and r.ask("ACL", "WHOAMI") == b"app"
        error(r.ask("AUTH", "me", "wrong"), "WRONGPASS")
        with s.resp() as third:
            assert third.ask("ACL", "WHOAMI") == b"app"
            assert third.ask("HELLO", 3, "AUTH", "me", "mine")[b"proto"] == 3
            assert third.ask("ACL", "WHOAMI") == b"me"


@test("a password that is wrong, and then rotated by SIGHUP: told in the server's words, never said")
def rotated(case):
    redis = case.redis(args=("--requirepass", SECRET))
    path = password_file(case, "redis.password", "not-" + SECRET)
    s = in_front(case, redis.port, {"upstream.redis_password_file": path})
    with s.resp() as r:
        away(r.ask("GET", "a"), "the login was refused: WRONGPASS ")
        end = time.monotonic() + 1
        while time.monotonic() < end:
            away(r.ask("GET", "a"), "the login was refused: WRONGPASS ")
            assert int(r.ask("GET", "id:a")) > 0
        refused(s, "redis", "the login was refused: WRONGPASS ")
        assert s.metric("sidflake_upstream_up", protocol="redis") == 0
        with wire.Resp(("127.0.0.1", redis.port)) as d:
            assert d.ask("AUTH", SECRET) == b"OK"
            tries = [l for l in d.ask("INFO", "stats").decode().splitlines()
                     if l.startswith("acl_access_denied_auth:")]
        if tries:
            assert int(tries[0].split(":")[1]) < 20, tries
        password_file(case, "redis.password", SECRET)
        assert "configuration reloaded" in reload(s)
        assert r.ask("SET", "a", 1) == b"OK", "at once after the reload"
        # rotated at the server: what is open stays, what is new needs the new one
        with wire.Resp(("127.0.0.1", redis.port)) as d:
            assert d.ask("AUTH", SECRET) == b"OK"
            assert d.ask("CONFIG", "SET", "requirepass", "another") == b"OK"
        assert r.ask("GET", "a") == b"1"
        with s.resp() as own:
            assert own.ask("SELECT", 1) == b"OK", "that is kept here until a link is had"
            away(own.ask("GET", "a"), "the login was refused: WRONGPASS ")
            closed(own, "BLPOP", "a", 1)
        assert r.ask("GET", "a") == b"1", "the shared connection goes on"
        assert s.metric("sidflake_upstream_up", protocol="redis") == 1
        password_file(case, "redis.password", "another")
        assert "configuration reloaded" in reload(s)
        with s.resp() as own:
            assert own.ask("SELECT", 1) == b"OK" and own.ask("GET", "a") is None
            assert own.ask("SELECT", 0) == b"OK" and own.ask("GET", "a") == b"1"
        assert r.ask("GET", "a") == b"1"
        # a file that cannot be read changes nothing
        os.unlink(path)
        assert "reload refused" in reload(s) and r.ask("GET", "a") == b"1"
    assert SECRET not in s.log() and "another" not in s.log()


@test("a rotated password retires the shared connection under load without an error")
def rotated_under_load(case):
    redis = case.redis(args=("--requirepass", SECRET))
    path = password_file(case, "redis.password", SECRET)
    with wire.Resp(("127.0.0.1", redis.port)) as d:
        assert d.ask("AUTH", SECRET) == b"OK"
        assert d.ask("ACL", "SETUSER", "default", ">second") == b"OK"  # both are right
    s = in_front(case, redis.port, {"upstream.redis_password_file": path})
    bad = []
    with s.resp() as first:
        assert first.ask("SET", "a", 1) == b"OK"

    def step():
        with s.resp() as r:
            for _ in range(20):
                r.send(wire.Resp.encode("GET", "a") * 10)
                got = [r.reply() for _ in range(10)]
                if got != [b"1"] * 10:
                    bad.append(got)

    with Crowd(4, step):
        for i in range(10):
            password_file(case, "redis.password", ("second", SECRET)[i % 2])
            assert "configuration reloaded" in reload(s)
            time.sleep(0.05)
    assert not bad, bad[0]
    assert s.metric("sidflake_upstream_errors_total", protocol="redis") == 0
    until("retired ones are closed",
          lambda: s.metric("sidflake_upstream_connections", protocol="redis") == 1)


@test("nothing of a client goes to a server that has not let us in, or says more than that")
def before_the_answer(case):
    path = password_file(case, "redis.password", SECRET)
    login, get = wire.Resp.encode("AUTH", SECRET), wire.Resp.encode("GET", "a")
    with Puppet() as puppet:
        s = in_front(case, puppet.port, {"upstream.redis_password_file": path,
                                         "upstream.timeout": "2s"})
        with s.resp() as r:
            r.send(get * 3)
            link = puppet.accept()
            assert puppet.hear(link) == login
            link.sendall(b"+O")
            assert puppet.hear(link) == b""
            link.sendall(b"K\r\n")
            puppet.let_in(link)
            assert puppet.hear(link) == get * 3
            link.sendall(b"$1\r\n1\r\n$1\r\n2\r\n$1\r\n3\r\n")
            assert [r.reply() for _ in range(3)] == [b"1", b"2", b"3"]
            link.close()
            until("it is seen to be closed", lambda: s.metric(
                "sidflake_upstream_connections", protocol="redis") == 0)
            for says in (b"+OK\r\n$5\r\nfalse\r\n", b"$2\r\nOK\r\n", b"+OKAY\r\n", b"+" + b"x" * 2000,
                         b"-ERR no: " + SECRET.encode() + b" is wrong\r\n", b"HTTP/1.1 200\r\n", b""):
                def again():
                    r.send(get)
                    try:
                        link = puppet.accept_soon()
                    except TimeoutError:
                        away(r.reply())
                        return None
                    return link
                link = until("it connects", again)
                assert puppet.hear(link) == login
                if says:
                    link.sendall(says)
                else:
                    link.shutdown(socket.SHUT_RDWR)
                got = r.reply()
                away(got)
                assert SECRET not in str(got)
                try:
                    assert puppet.hear(link) == b""
                except ConnectionResetError:
                    pass  # it did not read all that we said
        assert SECRET not in s.log()


def with_memcached(case, server, user, password):
    path = password_file(case, "memcached.password", password)
    return case.sidecar(case.pool(), {"upstream.memcached": "tcp://127.0.0.1:%d" % server.port,
                                      "upstream.memcached_user": user,
                                      "upstream.memcached_password_file": path})


@test("memcached -Y: sidflake logs in, and a refusal is told")
def memcached_login(case):
    path = password_file(case, "memcached.users", "app:" + SECRET)
    server = case.memcached(args=("-Y", path))
    s = with_memcached(case, server, "app", SECRET)
    with s.mc() as m, s.mc() as other:
        assert m.ask("set a 0 0 1\r\nx") == "STORED"
        assert other.get("a") == [("a", "x", None)] and m.id() > 0
        assert m.ask("set big 0 0 500000\r\n" + "x" * 500000) == "STORED"  # a link of its own
    s.stop()
    wrong = with_memcached(case, server, "app", "wrong-" + SECRET)
    with wrong.mc() as m:
        assert m.ask("get a") == "SERVER_ERROR upstream unavailable" and m.id() > 0
    refused(wrong, "memcached", "the login was refused: CLIENT_ERROR authentication failure")
    assert SECRET not in s.log() and SECRET not in wrong.log()


@test("memcached that asks for no login keeps nothing of ours")
def memcached_without(case):
    server = case.memcached()
    s = with_memcached(case, server, "app", SECRET)
    with s.mc() as m:
        assert m.ask("set a 0 0 1\r\nx") == "STORED"
        assert m.get("sidflake:login") == []
        assert m.get("a") == [("a", "x", None)]


@test("memcached by SASL: a binary client's link logs in so, and its refusal harms no text client")
def memcached_sasl(case):
    get = struct.pack(">BBHBBHIIQ", 0x80, 0x00, 1, 0, 0, 0, 1, 7, 0) + b"a"
    value = b"\0app\0" + SECRET.encode()
    login = struct.pack(">BBHBBHIIQ", 0x80, 0x21, 5, 0, 0, 0, 5 + len(value), 0, 0) + b"PLAIN" + value
    with Puppet() as puppet:
        s = with_memcached(case, puppet, "app", SECRET)
        with wire.Stream(("127.0.0.1", s.mc_port)) as b:
            b.send(get)
            link = puppet.accept()
            assert puppet.hear(link) == login
            link.sendall(struct.pack(">BBHBBHIIQ", 0x81, 0x21, 0, 0, 0, 0, 13, 0, 0)
                         + b"Authenticated")
            puppet.let_in(link)
            assert puppet.hear(link) == get
            answer = struct.pack(">BBHBBHIIQ", 0x81, 0x00, 0, 4, 0, 0, 5, 7, 0) + b"\0\0\0\0x"
            link.sendall(answer)
            assert b.take(len(answer)) == answer
            link.close()
            link = puppet.accept()  # tried at once: the server may be gone
            assert puppet.hear(link) == login
            link.sendall(struct.pack(">BBHBBHIIQ", 0x81, 0x21, 0, 0, 0, 0, 13, 0, 0)
                         + b"Authenticated")
            puppet.let_in(link)
            time.sleep(0.2)
            link.close()
        with wire.Stream(("127.0.0.1", s.mc_port)) as b, s.mc() as m:
            m.send(b"get a\r\n")
            link = puppet.accept()
            assert puppet.hear(link).startswith(b"set sidflake:login 0 -1 ")
            link.sendall(b"STORED\r\n")
            puppet.let_in(link)
            assert puppet.hear(link) == b"get a\r\n"
            for _ in range(3):
                b.send(get)
                try:
                    second = puppet.accept_soon()
                except TimeoutError:
                    second = None
                if second:
                    assert puppet.hear(second) == login
                    second.sendall(struct.pack(">BBHBBHIIQ", 0x81, 0x21, 0, 0, 0, 0x20, 13, 0, 0)
                                   + b"Auth failure.")
                assert b.take(24)[6:8] == b"\0\x86", "expected: unavailable"
                b.take(len("upstream unavailable"))
            link.sendall(b"VALUE a 0 1\r\ny\r\nEND\r\n")
            assert m.values() == [("a", "y", None)]
            assert s.metric("sidflake_upstream_up", protocol="memcached") == 1
            s.wait_log("upstream lets nobody else in.*Auth failure\\.")
            assert SECRET not in s.log()


# ---- names ---------------------------------------------------------------------------------------


@test("localhost is a name like others; an upgrade in place keeps what is open")
def localhost(case):
    redis = case.redis()  # on 127.0.0.1 alone, while localhost may be ::1, too
    s = case.sidecar(case.pool(), {"upstream.redis": "tcp://localhost:%d" % redis.port})
    with s.resp() as r, s.resp() as own:
        assert r.ask("SET", "a", 1) == b"OK"
        assert own.ask("SELECT", 3) == b"OK" and own.ask("SET", "a", 2) == b"OK"
        upgrade(s)
        assert own.ask("GET", "a") == b"2" and r.ask("GET", "a") == b"1"
    s.stop()


class Names:
    """What names stand for, for programs that are started with env."""

    def __init__(self, case):
        self.path, library = case.path("names"), case.path("fake_names.so")
        case.run(os.environ.get("CC") or "cc", "-std=c11", "-D_GNU_SOURCE", "-O1", "-shared", "-fPIC",
                 "-o", library, os.path.join(TOP, "tests", "e2e", "fake_names.c"), expect=0)
        self.env = {"LD_PRELOAD": library, "FAKE_NAMES": self.path}
        self.are()

    def are(self, *lines):
        with open(self.path + ".new", "w") as f:
            f.write("".join(line + "\n" for line in lines))
        os.rename(self.path + ".new", self.path)


@test("a name that cannot be looked up at the start, that appears, moves and is gone")
def names_move(case):
    if sanitized():
        return  # the sanitizer wants to be the first that is preloaded
    names = Names(case)

    def answers_as(value):
        return lambda number, words: value if words[0] == b"GET" else b"+OK\r\n"

    with Fake(answers_as(b"$3\r\none\r\n"), ("127.0.0.2", 0)) as one, \
            Fake(answers_as(b"$3\r\ntwo\r\n"), ("127.0.0.3", one.port)) as two:
        s = case.sidecar(case.pool(), {"upstream.redis": "tcp://redis.example:%d" % one.port,
                                       "upstream.memcached": "tcp://mc.example:11211"},
                         env=names.env)
        with s.resp() as r, s.mc() as m, s.resp() as own:
            away(r.ask("GET", "a"), "cannot look up redis.example: ")
            assert m.ask("get a") == "SERVER_ERROR upstream unavailable"
            assert int(r.ask("GET", "id:a")) > 0 and m.id() > 0
            assert s.metric("sidflake_upstream_up", protocol="redis") == 0
            s.wait_log("upstream lost protocol=redis why=\"cannot look up redis\\.example: ")
            upgrade(s)  # nor does it hinder that
            names.are("redis.example 127.0.0.4 127.0.0.2")  # nobody listens on the first
            until("it is found", lambda: r.ask("GET", "a") == b"one")
            assert own.ask("SELECT", 1) == b"OK" and own.ask("GET", "a") == b"one"
            names.are("redis.example 127.0.0.3")
            time.sleep(2.1)
            with s.resp() as new:
                assert new.ask("SELECT", 1) == b"OK" and new.ask("GET", "a") == b"two"
            until("what is shared follows", lambda: r.ask("GET", "a") == b"two" and own.ask("GET", "a") == b"one")
            upgrade(s)  # its name leads elsewhere by now, but it is the same upstream
            assert own.ask("GET", "a") == b"one" and r.ask("GET", "a") == b"two"
            names.are("redis.example")  # nobody can say at the moment
            time.sleep(2.1)
            with s.resp() as new:
                assert new.ask("SELECT", 1) == b"OK" and new.ask("GET", "a") == b"two"
            names.are()
            time.sleep(0.1)
            with s.resp() as new:
                assert new.ask("SELECT", 1) == b"OK"
                away(new.ask("GET", "a"), "cannot look up redis.example: ")
            assert r.ask("GET", "a") == b"two" and int(r.ask("GET", "id:a")) > 0
        assert two.accepted >= 2 and s.stop() == 0


def both(case, redis, server, options):
    return case.sidecar("static:7", {"upstream.redis": "tcp://127.0.0.1:%d" % redis.port,
                                     "upstream.memcached": "tcp://127.0.0.1:%d" % server.port, **options})


def halves(s):
    """Clients in the middle of what they send, and the rest: as one request each."""
    set_large = wire.Resp.encode("SET", "k", "x" * 3_000_000)
    set_some = wire.Resp.encode("SET", "k2", "x" * 100_000)
    line = b"set a 0 0 900000\r\n" + b"x" * 900_000 + b"\r\n"
    keys = b"get " + b" ".join(b"%0200d" % i for i in range(500)) + b"\r\n"
    packet = struct.pack("!BBHBBHLLQ", 0x80, 1, 1, 8, 0, 0, 8 + 1 + 800_000, 0, 0) + bytes(8) + b"b" + \
        b"y" * 800_000
    out = []
    for mk, whole, n, reply in ((s.resp, set_large, 1_500_000, b"+OK\r\n"),
                                (s.resp, set_some, 70_000, b"+OK\r\n"),
                                (s.mc, line, 500_000, b"STORED\r\n"), (s.mc, keys, 80_000, b"END\r\n"),
                                (s.mc, packet, 400_000, b"\x81\x01")):
        r = mk()
        r.send(whole[:n])
        out.append((r, whole[n:], reply))
    return out


@test("a client that pauses within what it sends has limits.request_timeout for it, not the server's time")
def pauses(case):
    redis, server = case.redis(), case.memcached()
    s = both(case, redis, server, {"upstream.timeout": "300ms"})
    clients = halves(s)
    time.sleep(1.2)
    for r, rest, reply in clients:
        r.send(rest)
        got = r.take(len(reply))
        assert got == reply, "expected %r, found %r" % (reply, got)
        r.close()
    assert "was lost" not in s.log()
    os.kill(redis.popen.pid, signal.SIGSTOP)  # whole, it is the server that is slow
    try:
        with s.resp() as r:
            started = time.monotonic()
            r.send(wire.Resp.encode("SET", "k", "x" * 100_000))
            assert r.rest() == b"" and time.monotonic() - started < 5
    finally:
        os.kill(redis.popen.pid, signal.SIGCONT)
    assert 'was lost protocol=redis why="no reply in time"' in s.log()


@test("who does not go on with what he sends is closed in his own time, and the log names him")
def tarries(case):
    s = both(case, case.redis(), case.memcached(), {"limits.request_timeout": "600ms", "log.level": "info"})
    for r, _, _ in halves(s):
        started = time.monotonic()
        assert r.rest() == b"" and time.monotonic() - started < 4
    assert "closed a client that did not end its request in time" in s.log()
    assert "peer=127.0.0.1:" in s.log() and "was lost" not in s.log()


@test("a client that is gone within what it sends takes its connection and its link with it")
def gone_within(case):
    redis = case.redis()
    s = both(case, redis, case.memcached(), {"limits.request_timeout": "60s"})
    for shut in (lambda r: r.half_close(), lambda r: r.close()):
        before = s.resp()
        before.send(before.encode("SELECT", 1) + before.encode("DBSIZE")
                    + before.encode("SET", "k", "x" * 200_000)[:99_000])
        clients = [r for r, _, _ in halves(s)]
        until("their links are there",
              lambda: s.metric("sidflake_upstream_connections", protocol="redis") >= 3)
        for r in (*clients, before):
            shut(r)
        for p in ("redis", "memcached"):
            until("%s: all are gone" % p, lambda: s.metric("sidflake_connections", protocol=p) == 0, 5)
            until("%s: their own links, too" % p,
                  lambda: s.metric("sidflake_upstream_connections", protocol=p) <= 1, 5)
    with s.resp() as r:
        slow = r.encode("EVAL", "local n = 0 while n < 1e7 do n = n + 1 end return 7", 0)
        r.send(r.encode("SELECT", 1) + slow + r.encode("SET", "k", "x" * 200_000)[:99_000])
        r.half_close()
        assert r.rest() == b"+OK\r\n:7\r\n"
    assert "was lost" not in s.log()


@test("a reply that is due to an earlier request keeps its time, whatever the client sends since")
def owes_another(case):
    with Puppet() as puppet:
        s = case.sidecar("static:7", {"upstream.memcached": "tcp://127.0.0.1:%d" % puppet.port,
                                      "upstream.timeout": "1s", "limits.request_timeout": "20s"})
        for end in (lambda r: None, lambda r: r.half_close()):
            with s.mc() as r:
                r.send(b"mg slow v\r\nget " + b"k1 " * 23_000)
                started = time.monotonic()
                end(r)
                assert r.rest() == b"" and time.monotonic() - started < 8
        assert 'was lost protocol=memcached why="no reply in time"' in s.log()
        assert "did not end its request" not in s.log()


@test("a Redis that cannot save refuses PING, and lets in all the same")
def cannot_save(case):
    redis = case.redis(args=("--save", "3600 1", "--enable-protected-configs", "yes"))
    redis.ask("SET", "big", "x" * 200_000)
    assert redis.ask("CONFIG", "SET", "dir", "/proc") == b"OK"
    redis.ask("BGSAVE")
    with wire.Resp(redis.sock) as r:
        until("it cannot save", lambda: "MISCONF" in str(r.ask("PING")))
    s = case.sidecar("static:7", {"upstream.redis": "tcp://127.0.0.1:%d" % redis.port})
    for _ in range(3):
        with s.resp() as r:
            assert len(r.ask("GET", "big")) == 200_000
        time.sleep(0.2)
    assert "no other upstream connection" not in s.log()


@test("a server that is full: whoever has large values keeps having them on the shared connection")
def full_for_the_loud(case):
    server = case.memcached(args=("-c", "60", "-t", "1"))
    s = case.sidecar("static:7", {"upstream.memcached": "tcp://127.0.0.1:%d" % server.port})
    there = ("127.0.0.1", server.port)
    with wire.Memcached(there) as m, s.mc() as good, s.mc() as large:
        assert m.ask("set big 0 0 200000\r\n" + "x" * 200_000) == "STORED"
        assert good.ask("set k 0 0 1\r\nv") == "STORED"
        hogs = []
        try:
            while len(hogs) < 80:
                hogs.append(wire.Memcached(there))
                if not hogs[-1].ask("version").startswith("VERSION"):
                    break
            for _ in range(4):
                assert len(large.get("big")[0][1]) == 200_000
                assert good.get("k") == [("k", "v", None)]
                time.sleep(0.2)
            assert "no other upstream connection" in s.log()
        finally:
            for h in hogs:
                h.close()


def large_values(s):
    """Clients that come, and each ask for a large value."""
    for mk, text in ((s.mc, b"get big\r\n"), (s.resp, wire.Resp.encode("GET", "big"))):
        with mk() as r:
            r.send(text)
            r.take(100_000)


def hog(done, make, text):
    """60 connections, and as many again as are closed."""
    poll, live = select.poll(), {}
    while not done.wait(0.005):
        for fd, _ in poll.poll(0):
            poll.unregister(fd)
            live.pop(fd).close()
        while len(live) < 60:
            r = make()
            r.send(text)
            live[r.sock.fileno()] = r
            poll.register(r.sock, select.POLLRDHUP | select.POLLHUP | select.POLLERR)
    for r in live.values():
        r.close()


@test("clients take all connections that the servers allow: others keep the shared ones, and are served")
def all_taken(case):
    redis, server = case.redis(args=("--maxclients", "40")), case.memcached(args=("-c", "40"))
    redis.ask("SET", "big", "b" * 900_000)
    s = both(case, redis, server, {})
    with s.mc() as m:  # on a connection of its own
        assert m.ask("set big 0 0 900000\r\n" + "b" * 900_000) == "STORED"
    with s.resp() as r, s.mc() as m:
        assert m.ask("set v 0 0 1\r\n1") == "STORED" and r.ask("SET", "v", 1) == b"OK"
        assert r.ask("GET", "v") == b"1" and m.get("v") == [("v", "1", None)]
        done = threading.Event()
        hogs = [threading.Thread(target=hog, args=(done, mk, text)) for mk, text in (
            (s.resp, wire.Resp.encode("BLPOP", "none", "0")), (s.mc, b"watch mutations\r\n"))]
        for h in hogs:
            h.start()
        try:
            time.sleep(0.3)
            for i in range(40):
                large_values(s)
                assert r.ask("GET", "v") == b"1" and m.get("v") == [("v", "1", None)], i
        finally:
            done.set()
            for h in hogs:
                h.join()
    assert "no other upstream connection can take the place" in s.log()


@test("upstream.connections: who needs one more of his own is told, others share, and large values, too")
def own_limited(case):
    redis, server = case.redis(), case.memcached()
    redis.ask("SET", "big", "b" * 900_000)
    s = both(case, redis, server, {"upstream.connections": 3})
    with s.resp() as r:
        hogs = [s.resp() for _ in range(3)]
        for h in hogs:
            assert h.ask("SELECT", 1) == b"OK" and h.ask("GET", "v") is None
        with s.resp() as one_more:
            closed(one_more, "WATCH", "a")
        for _ in range(3):
            assert r.ask("GET", "big") == b"b" * 900_000 and r.ask("GET", "v") is None
        hogs.pop().close()
        until("one is given back", lambda: s.metric("sidflake_upstream_connections", protocol="redis") <= 3)
        with s.resp() as again:
            assert again.ask("WATCH", "a") == b"OK"
    assert "upstream.connections is reached" in s.log()
