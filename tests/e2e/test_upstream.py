"""The way to the real servers: who is harmed by what fails there, and what is said about it."""

import os
import socket
import threading
import time

import wire
from harness import until
from runner import test
from test_passthrough import error


class Fake:
    """A Redis of a thread for each connection: answers each command with what `answer` returns for
    it, a list of bytes; None: never; b"": closes the connection. It can stop to accept."""

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
                says = self.answer(number, words)
                if says == b"":
                    s.shutdown(socket.SHUT_RDWR)
                    return
                if says is not None:
                    s.sendall(says)
        except (OSError, ValueError):
            pass


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


def errors_of_a_good_client(s, seconds):
    """INCR on the shared connection, and now and then somebody new with a connection of its own."""
    asked, failed = 0, []
    end = time.monotonic() + seconds
    with s.resp() as r:
        while time.monotonic() < end:
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
        s = in_front(case, fake.port)
        for key in ("slow", "break"):
            def step(key=key):
                with s.resp() as r:
                    r.ask("SELECT", 1)
                    r.ask("GET", key)

            with Crowd(8, step):
                asked, failed = errors_of_a_good_client(s, 2)
            assert asked > 100 and not failed, "%s: %d of %d requests failed, as %r" % (
                key, len(failed), asked, failed[0])
            assert s.metric("sidflake_upstream_up", protocol="redis") == 1
        lines = [l for l in s.log().splitlines() if "upstream" in l and "forwarding" not in l]
        assert 1 <= len(lines) <= 4, "expected a line or two for each cause, found\n%s" % \
            "\n".join(lines)
        assert s.metric("sidflake_upstream_errors_total", protocol="redis") >= 30


@test("a shared connection that breaks again and again: the next request has a new one, a quiet log")
def shared_breaks(case):
    def answer(number, words):
        return b"" if words[1:2] == [b"bad"] else answers(number, words)

    with Fake(answer) as fake:
        s = in_front(case, fake.port)
        with s.resp() as r:
            assert r.ask("INCR", "a") == 1
            for i in range(50):
                error(r.ask("GET", "bad"), "ERR upstream unavailable")
                for _ in range(3):
                    assert r.ask("INCR", "a") == 1, "after break %d" % i
        lost = s.log().count("upstream lost")
        assert 1 <= lost <= 2, "expected one line, found %d" % lost
        assert s.log().count("upstream reached") <= 2
        assert s.metric("sidflake_upstream_errors_total", protocol="redis") >= 50


@test("a server that closes whatever is opened is not tried for each request, and IDs go on")
def closes(case):
    with Fake(lambda number, words: b"") as fake:
        s = in_front(case, fake.port)
        end = time.monotonic() + 2
        with s.resp() as r:
            while time.monotonic() < end:
                error(r.ask("GET", "a"), "ERR upstream unavailable")
                assert int(r.ask("GET", "id:a")) > 0
        assert 2 <= fake.accepted <= 20, "expected a few connections, found %d" % fake.accepted
        assert s.metric("sidflake_upstream_up", protocol="redis") == 0
