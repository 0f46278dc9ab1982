"""What a coordinator says, as sidflakectl shows it: whoever answers may speak to the terminal."""

import json
import os
import re
import signal
import socket

import harness
from runner import test
from terminal import Terminal

# CSI as ESC and as C1, in the form that is too long as well; half a character; U+202E, which turns
# what follows; and what may be shown.
WORDS = b"-ERR x\x1b[31m\xc2\x9b31m\xe0\x80\x9b]0;t\xe0\x82\x9b\x9b\xff\xe2\x80\xae caf\xc3\xa9\r\n"
SPEAKS = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e\ufffd]")


class FakeRedis:
    """Answers whatever comes with the same bytes, on each connection as often as it is asked."""

    def __init__(self, says):
        self.says = says

    def serve(self, connection):
        try:
            while connection.recv(65536):
                connection.sendall(self.says)
        except OSError:
            pass
        os._exit(0)

    def __enter__(self):
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.pid = os.fork()
        if self.pid == 0:
            signal.signal(signal.SIGCHLD, signal.SIG_IGN)
            while True:
                connection, _ = self.listener.accept()
                if os.fork() == 0:
                    self.serve(connection)
                connection.close()
        return "redis://127.0.0.1:%d/0" % self.listener.getsockname()[1]

    def __exit__(self, *_):
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        self.listener.close()


COMMANDS = [["pool", "status"], ["pool", "list"], ["pool", "check"], ["pool", "init", "--fresh"],
            ["pool", "set", "--settle", "1h"], ["pool", "release", "--worker", "1", "--yes"],
            ["pool", "reopen", "--nothing-lost", "--yes"], ["pool", "close"],
            ["pool", "drain"], ["top", "--once"]]


@test("sidflakectl: an answer of the coordinator that speaks to the terminal is shown, and no more")
def hostile_words(case):
    with FakeRedis(WORDS) as url:
        for command in COMMANDS:
            for locale in ("C", "C.UTF-8"):
                r = case.ctl(*command, "--coordinator", url, env={"LC_ALL": locale})
                assert r.returncode in (1, 3) and "ERR x?[31m" in r.stderr, (command, r.stderr)
                assert not SPEAKS.search(r.stderr + r.stdout), (command, r.stderr)
                assert "café" in r.stderr, (command, r.stderr)


@test("sidflakectl: a holder's own words that speak to the terminal are shown, and no more")
def hostile_holder(case):
    redis = case.pool()
    case.sidecar(redis).wait_held(2)
    worker = redis.held()[0]
    host = "h\x1b[31m\x9b31m\u202e"
    redis.ask("HSET", "sidflake:{default}:who", str(worker), json.dumps({"host": host, "pid": 7},
                                                                      ensure_ascii=False))
    for more in ((), ("--json",)):
        out = case.ctl("pool", "list", "--coordinator", redis.url, *more, expect=0).stdout
        assert not SPEAKS.search(out) and out.isascii(), out
    listed = {w["worker"]: w for w in json.loads(out)}
    assert listed[worker]["holder"]["host"] == host, listed


@test("top of a pool on a terminal: an answer that speaks to the terminal is shown, and no more")
def hostile_words_on_screen(case):
    with FakeRedis(WORDS) as url:
        with Terminal([harness.SIDFLAKECTL, "top", "--coordinator", url, "-d", "0.2"], rows=10,
                      cols=150, env={"LC_ALL": "C.UTF-8"}) as t:
            t.shows(r"REFUSED|NO ANSWER")
            t.shows(r"ERR x\?\[31m")
            t.shows(r"31m\?\?\?\]0;t\?\?\?")
            assert b"\x9b" not in t.raw and "\u202e".encode() not in t.raw, t.raw
            t.keys("q")
            assert t.end() == 0 and t.is_given_back()


@test("sidflakectl top: a connection that is closed without an answer is called so")
def no_answer(case):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        pid = os.fork()
        if pid == 0:
            while True:
                with listener.accept()[0] as c:
                    c.recv(4096)
        try:
            r = case.ctl("top", "--once", "--connect", "http://127.0.0.1:%d" % listener.getsockname()[1])
        finally:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
    told = r.stdout + r.stderr
    assert "found none: the connection was closed" in told, told
