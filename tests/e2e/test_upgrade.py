"""SIGUSR2: a program takes the place of another, and no client notices."""

import contextlib
import fcntl
import glob
import json
import os
import random
import re
import shutil
import signal
import socket
import stat
import struct
import subprocess
import threading
import time

import harness
import ids
import test_auth
import wire
from harness import until
from procs import Manager, clean_env, die_with_parent
from runner import test

TIMES = 30  # upgrades in a row


def upgrade(s, pattern="upgraded in place.*", timeout=20):
    """Asks for an upgrade, and waits for the line that tells how it went."""
    at = len(s.log())
    s.popen.send_signal(signal.SIGUSR2)
    line = s.wait_log(pattern, timeout=timeout, after=at).group(0)
    s.assert_running()
    return line


def upgrading(s):
    """Goes on until an upgrade has been, and a little longer."""
    at = len(s.log())
    s.popen.send_signal(signal.SIGUSR2)
    end = time.monotonic() + 20
    while "upgraded in place" not in s.log()[at:]:
        s.assert_running()
        assert time.monotonic() < end, s.log()[at:]
        yield
    for _ in range(5):
        yield


class Load:
    """Clients of all protocols and kinds of sockets. None of them may fail; each keeps its IDs, and
    the longest time that a request took."""

    def __init__(self, s, reconnecting=True):
        self.s = s
        self.stop = threading.Event()
        self.ids, self.trouble, self.slowest = [], [], [0.0]
        kinds = [self.resp_pipelines, self.mc_pipelines, self.resp_batches, self.many_keys,
                 self.resp_unix, self.mc_unix, self.transactions, self.http_keep_alive]
        kinds += [self.reconnect_resp, self.reconnect_mc] if reconnecting else []
        self.threads = [threading.Thread(target=self.run, args=(k,)) for k in kinds]

    def __enter__(self):
        for t in self.threads:
            t.start()
        return self

    def __exit__(self, *_):
        self.stop.set()
        for t in self.threads:
            t.join()

    def run(self, kind):
        mine = []
        try:
            for values in kind():
                mine += values
                if self.stop.is_set():
                    break
        except Exception as e:  # of any kind: what went wrong is told
            self.trouble.append("%s: %s: %s" % (kind.__name__, type(e).__name__, e))
        self.ids.append((kind.__name__, mine))

    def timed(self, call):
        started = time.monotonic()
        value = call()
        self.slowest.append(time.monotonic() - started)
        return value

    def resp_pipelines(self):
        with self.s.resp() as r:
            while True:
                r.send(r.encode("GET", "id:orders") * 40 + r.encode("ECHO", "x"))
                yield [int(r.reply()) for _ in range(40)]
                assert r.reply() == b"x"

    def mc_pipelines(self):
        with self.s.mc() as m:
            while True:
                m.send(b"get id:orders\r\n" * 40)
                yield [int(m.values()[0][1]) for _ in range(40)]

    def resp_batches(self):
        with self.s.resp() as r:
            while True:
                r.send(r.encode("LPOP", "id:orders", 300) * 3)
                yield [int(v) for _ in range(3) for v in r.reply()]

    def many_keys(self):
        keys = ["id:o#%d" % i for i in range(300)]
        with self.s.mc() as m:
            while True:
                yield [int(v) for _, v, _ in m.get(*keys)]

    def resp_unix(self):
        with self.s.resp(unix=True) as r:
            r.ask("HELLO", 3)
            while True:
                yield [int(self.timed(lambda: r.ask("GET", "id:orders")))]

    def mc_unix(self):
        with self.s.mc(unix=True) as m:
            while True:
                yield [self.timed(m.id)]

    def transactions(self):
        with self.s.resp() as r:
            while True:
                assert r.ask("MULTI") == b"OK"
                assert r.ask("GET", "id:orders") == b"QUEUED"
                assert r.ask("INCRBY", "id:orders", 10) == b"QUEUED"
                yield [int(v) for v in r.ask("EXEC")]

    def http_keep_alive(self):
        with wire.Stream(("127.0.0.1", self.s.http_port)) as c:
            while True:
                c.send(b"GET /v1/id/orders?n=5 HTTP/1.1\r\nHost: x\r\n\r\n")
                head = b""
                while head != b"" or not c.buf:
                    head = c.line()
                    if head.lower().startswith(b"content-length:"):
                        n = int(head.split(b":")[1])
                    if head == b"":
                        break
                yield [int(v) for v in c.take(n).split()]

    def reconnect_resp(self):
        while True:
            with self.s.resp(unix=random.random() < 0.5) as r:
                yield [int(self.timed(lambda: r.ask("GET", "id:orders")))]

    def reconnect_mc(self):
        while True:
            with self.s.mc(unix=random.random() < 0.5) as m:
                yield [self.timed(m.id)]

    def check(self, least=1000):
        assert not self.trouble, "; ".join(self.trouble)
        values = [v for _, mine in self.ids for v in mine]
        assert len(values) >= least, "expected %d IDs, found %d" % (least, len(values))
        ids.check_distinct(values)
        for name, mine in self.ids:
            try:
                ids.check_increasing(mine)
            except AssertionError as e:
                raise AssertionError("%s: %s" % (name, e))
        return values


@test("SIGUSR2 dozens of times under load: nothing refused, closed, lost or repeated", timeout=120)
def under_load(case):
    redis = case.pool()
    s = case.sidecar(redis)
    s.wait_held(2)
    pid, fds = s.pid, s.metric("process_open_fds")
    longest = 0
    with Load(s) as load:
        for _ in range(TIMES):
            line = upgrade(s)
            assert 'workerIds="taken over"' in line, line
            longest = max(longest, int(re.search(r"paused_us=(\d+)", line).group(1)))
            time.sleep(random.uniform(0, 0.05))
    values = load.check(10000)
    assert {ids.worker_of(v) for v in values} == {0}, "a workerId was changed"
    assert redis.held() == [0, 1] and redis.free() == 32766
    until("no descriptor is left over", lambda: s.metric("process_open_fds") <= fds + 1)
    assert s.pid == pid and s.log().count("upgraded in place") == TIMES
    assert "are closed" not in s.log(), "every connection is expected to be carried"
    assert max(load.slowest) < 2, "a request took %.3f s" % max(load.slowest)
    print("# longest request %.1f ms, longest pause %.1f ms, %d IDs" % (
        max(load.slowest) * 1000, longest / 1000, len(values)), flush=True)


@test("SIGUSR2 while Redis is gone, and while it hangs: the same workerId, at once")
def without_redis(case):
    redis = case.pool()
    s = case.sidecar(redis, {"workers.spare": 0})
    s.wait_held(1)
    for down, up in ((redis.pause, redis.resume), (redis.kill, None)):
        down()
        with Load(s) as load:
            for _ in range(5):
                assert 'workerIds="taken over"' in upgrade(s)
        assert {ids.worker_of(v) for v in load.check()} == {0}
        if up:
            up()
    assert s.ready_status() == 200


@test("SIGUSR2 in a burst: they come to one or a few, and the last one is seen to")
def burst(case):
    s = case.sidecar(case.pool())
    with Load(s, reconnecting=False) as load:
        for _ in range(200):
            s.popen.send_signal(signal.SIGUSR2)
            time.sleep(0.002)
        s.wait_log("upgraded in place")
        upgrade(s)
    load.check()


def program(case, name="sidflake"):
    """A copy of the built program, at a path where it can be replaced."""
    path = case.path(name)
    shutil.copy(harness.SIDFLAKE, path)
    return path


def replace(path, text):
    with open(path + ".new", "w") as f:
        f.write(text)
    os.chmod(path + ".new", 0o755)
    os.rename(path + ".new", path)


def own_program(case, redis, options=None, env=None):
    s = harness.Sidecar(case, "s", redis.url, options, env=env)
    s.argv[0] = program(case)
    return s.start()


@test("a new program that cannot run, or cannot take over: refused, the old one goes on")
def broken_program(case):
    manager = Manager(case)
    s = own_program(case, case.pool(), env={"NOTIFY_SOCKET": manager.path})
    r = s.resp()
    first = int(r.ask("GET", "id:orders"))
    for text, why in (("#!/bin/sh\necho no such library >&2; exit 127\n", "127: no such library"),
                      ("#!/bin/sh\nkill -SEGV $$\n", "signal 11"),
                      ("#!/bin/sh\necho OK\n", "cannot take over from version"),
                      ("garbage", "Exec format error")):
        replace(s.argv[0], text)
        manager.heard.clear()
        assert why in upgrade(s, "upgrade refused.*")
        manager.wait("READY=1\nSTATUS=upgrade refused: ")
    os.unlink(s.argv[0])
    assert "No such file" in upgrade(s, "upgrade refused.*")
    shutil.copy(harness.SIDFLAKE, s.argv[0])
    upgrade(s)
    ids.check_increasing([first, int(r.ask("GET", "id:orders"))])


YES = """#!/bin/sh
for last; do :; done
if [ "$last" = -t ]; then
    echo "takes over: 1"
    %s
    exit 0
fi
%s
"""


@test("a program that is gone between check and exchange: the old one goes on, renewals, too")
def gone_in_between(case):
    s = own_program(case, case.pool())
    r = s.resp()
    first = int(r.ask("GET", "id:orders"))
    for _ in range(3):
        replace(s.argv[0], YES % ('rm "$0"', ""))
        assert "No such file" in upgrade(s, "upgrade refused.*")
    ids.check_increasing([first, int(r.ask("GET", "id:orders"))])
    renewed = s.metric("sidflake_renewals_total", result="renewed")
    until("it is renewed", lambda: s.metric("sidflake_renewals_total",
                                            result="renewed") >= renewed + 2)
    shutil.copy(harness.SIDFLAKE, s.argv[0])
    upgrade(s)
    assert int(r.ask("GET", "id:orders")) > first


@test("a new program that ends at its start: started again, the same workerId, no ID twice")
def dies_after_exchange(case):
    s = own_program(case, case.pool())
    s.wait_held(2)
    before = [s.id() for _ in range(20)]
    replace(s.argv[0], YES % (":", "exit 3"))
    s.popen.send_signal(signal.SIGUSR2)
    assert s.wait() == 3
    shutil.copy(harness.SIDFLAKE, s.argv[0])
    s.start()
    after = [s.id() for _ in range(20)]
    ids.check_increasing(before + after)
    assert {ids.worker_of(v) for v in before + after} == {0}


@test("the new program is the one that stands at the path by now")
def new_program(case):
    s = own_program(case, case.pool())
    r = s.resp()
    r.ask("GET", "id:orders")
    before = os.stat("/proc/%d/exe" % s.pid).st_ino
    shutil.copy(harness.SIDFLAKE, s.argv[0] + ".new")
    os.rename(s.argv[0] + ".new", s.argv[0])
    upgrade(s)
    found = os.stat("/proc/%d/exe" % s.pid)
    assert found.st_ino != before and found.st_ino == os.stat(s.argv[0]).st_ino
    assert int(r.ask("GET", "id:orders")) > 0


@test("a check that hangs does not hold anything up, and SIGTERM ends both")
def check_hangs(case):
    s = own_program(case, case.pool())
    replace(s.argv[0], "#!/bin/sh\nexec sleep 100\n")
    s.popen.send_signal(signal.SIGUSR2)
    s.wait_log("upgrading in place")
    assert s.id() > 0 and s.ready_status() == 200
    assert s.stop() == 0


@test("a check that takes too long is ended, and said so", timeout=60)
def check_late(case):
    s = own_program(case, case.pool())
    replace(s.argv[0], "#!/bin/sh\necho half way >&2\nexec sleep 100\n")
    assert "its check took longer than 10 s: half way" in upgrade(s, "upgrade refused.*", timeout=30)
    assert s.id() > 0


@test("SIGUSR2: a configuration that came through a pipe, or has become one: refused, users are asked for")
def conf_pipe(case):
    users = case.path("users")
    with open(users, "w") as f:
        f.write(case.run(harness.SIDFLAKECTL, "passwd", "ann", stdin="secret\n", expect=0).stdout)
    os.chmod(users, 0o600)
    s = harness.Sidecar(case, "s", case.pool().url, {"auth.mode": "required", "auth.users_file": users})
    with open(s.conf, encoding="utf-8") as f:
        text = f.read()
    os.unlink(s.conf)
    os.mkfifo(s.conf)
    for _ in range(2):  # as by a process substitution: nothing is left; then: somebody writes it once more
        writer = threading.Thread(target=lambda: open(s.conf, "w", encoding="utf-8").write(text), daemon=True)
        writer.start()
        if not s.running():
            s.start()
        assert "%s: expected a regular file, found another kind" % s.conf in upgrade(s, "upgrade refused.*", timeout=5)
        with s.resp() as r:
            assert str(r.ask("GET", "id:orders")).startswith("NOAUTH"), "whoever comes has to log in"


@test("SIGUSR2 and SIGHUP: the configuration is empty, as a full disk leaves it: refused, and all is as before")
def empty_conf(case):
    s = case.sidecar(case.pool())
    os.truncate(s.conf, 0)
    why = re.escape(s.conf) + ": expected options, or {} for none, found an empty file"
    assert re.search(why, upgrade(s, "upgrade refused.*"))
    s.popen.send_signal(signal.SIGHUP)
    s.wait_log("reload refused, nothing changed.*" + why)
    os.unlink(s.conf)
    os.symlink("/dev/ptmx", s.conf)  # to read it would take for ever
    s.popen.send_signal(signal.SIGHUP)
    s.wait_log("reload refused, nothing changed.*expected a regular file")
    assert s.id() > 0


@test("SIGUSR2 while Redis hangs: what is cut or replaced between check and exchange is checked again", beside=True,
      timeout=60)
def cut_meanwhile(case):
    redis, users = case.pool(), case.path("users")
    with open(users, "w", encoding="utf-8") as f:
        f.write("# nobody\n")
    os.chmod(users, 0o600)
    s = own_program(case, redis, {"coordinator.timeout": "4s", "lease.renew_every": "1s", "auth.users_file": users})
    with s.resp() as r:
        for cut, why in ((lambda: os.truncate(s.conf, 4), "expected a mapping"),
                         (lambda: os.truncate(users, 5), "expected a line end"),
                         (lambda: replace(s.argv[0], "#!/bin/sh\necho no heir\n"), "cannot take over")):
            s.write_conf()
            redis.send(signal.SIGSTOP)
            time.sleep(1.5)  # a renewal is under way
            at = len(s.log())
            s.send(signal.SIGUSR2)
            s.wait_log("upgrading in place", after=at)
            time.sleep(1)  # it is checked, and the keeper asked to rest
            cut()
            redis.send(signal.SIGCONT)
            s.wait_log("upgrade refused, this program goes on.*" + why, after=at)
            assert r.ask("GET", "id:orders") and s.running()
            os.truncate(users, 0)


@test("SIGUSR2 takes up a changed configuration: listeners added and removed, all options")
def changed_conf(case):
    redis = case.pool()
    s = case.sidecar(redis)
    s.wait_held(2)
    old, gone = s.resp(), s.mc(unix=True)
    first = [int(old.ask("GET", "id:orders")), gone.id()]
    extra = case.path("extra.sock")
    s.options["listen.memcached"] = [s.options["listen.memcached"][0]]
    s.options["listen.redis"].append("unix://" + extra)
    s.options["listen.socket_mode"] = "0600"
    s.options["workers.active"] = 2
    s.write_conf()
    upgrade(s)
    more = [int(old.ask("GET", "id:orders")), s.id()]
    ids.check_increasing(first + more)
    assert not os.path.exists(s.mc_sock), "nobody listens there any more"
    assert gone.rest() == b"", "its kind is not let in any more"
    assert stat.S_IMODE(os.stat(s.resp_sock).st_mode) == 0o600
    with wire.Resp(extra) as r:
        assert int(r.ask("GET", "id:orders")) > 0
    s.wait_held(3)
    last = s.id()
    s.options["workers.active"], s.options["workers.spare"] = 1, 0
    s.write_conf()
    upgrade(s)
    until("what is too many goes back",
          lambda: s.metric("sidflake_workers_held") == 1 and s.log().count("given back") == 2)
    listed = json.loads(case.ctl("pool", "list", "--json", "--coordinator", redis.url,
                                 expect=0).stdout)
    assert len(listed["workers"] if isinstance(listed, dict) else listed) == 1, listed
    assert s.id() > last


@test("a configuration that is wrong, or an address in use: refused, nothing changes")
def wrong_conf(case):
    s = case.sidecar(case.pool())
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        address = "tcp://127.0.0.1:%d" % taken.getsockname()[1]
        for options, why in (({"limits.batch": "lots"}, "lots"),
                             ({"limits.batch": 10, "listen.redis": s.options["listen.redis"] +
                               [address]}, "in use")):
            before = dict(s.options)
            s.options.update(options)
            s.write_conf()
            told = upgrade(s, "upgrade refused.*")
            assert why in told and ": OK" not in told, told
            assert s.id() > 0
            s.options = before
    s.write_conf()
    upgrade(s)


@test("an address that covers one of now, or was another protocol's: refused, and told to restart")
def covered(case):
    s = case.sidecar(case.pool())
    before = dict(s.options)
    redis, memcached = before["listen.redis"], before["listen.memcached"]
    restart = "if this sidecar itself listens there, restart it instead"
    for changed in ({"listen.redis": [redis[0].replace("127.0.0.1", "0.0.0.0")],
                     "listen.allow_unprotected": True},
                    {"listen.redis": [memcached[0]], "listen.memcached": [redis[0]]},
                    {"listen.redis": [memcached[1]], "listen.memcached": [redis[1]]}):
        s.options = dict(before, **changed)
        s.write_conf()
        told = upgrade(s, "upgrade refused.*")
        assert restart in told and s.id() > 0, told
    s.options = dict(before, **{"listen.redis": ["unix:" + case.path("none/sock")]})
    s.write_conf()
    told = upgrade(s, "upgrade refused.*")
    assert "No such file" in told and restart not in told, told


@test("an epoch that is not that of the workerIds held: the upgrade is refused, IDs go on")
def wrong_epoch(case):
    s = case.sidecar(case.pool())
    s.wait_held(2)
    first = s.id()
    s.options["epoch"] = "2020-01-01T00:00:00Z"
    s.write_conf()
    told = upgrade(s, "upgrade refused.*")
    assert "epoch" in told and "2020-01-01" in told and "2026-01-01" in told, told
    assert s.id() > first
    s.options["epoch"] = "2026-01-01T00:00:00Z"
    s.write_conf()
    assert 'workerIds="taken over"' in upgrade(s) and s.id() > first


@test("SIGUSR2: what a connection is in the middle of goes on: halves, MULTI, subscriptions, names")
def in_the_middle(case):
    s = case.sidecar(case.pool())
    half_r, half_m, multi, dirty, sub, named = s.resp(), s.mc(), s.resp(), s.resp(), s.resp(), s.resp()
    half_r.send(b"*2\r\n$3\r\nGET\r\n$9\r\nid:or")
    half_m.send(b"get id:orders id:ord")
    assert multi.ask("MULTI") == b"OK" and multi.ask("GET", "id:orders") == b"QUEUED"
    assert dirty.ask("MULTI") == b"OK" and isinstance(dirty.ask("NONSENSE"), wire.Error)
    assert sub.ask("SUBSCRIBE", "news") == [b"subscribe", b"news", 1]
    assert named.ask("HELLO", 3)[b"proto"] == 3
    assert named.ask("CLIENT", "SETNAME", "me") == b"OK" and named.ask("SELECT", 5) == b"OK"
    number = named.ask("CLIENT", "ID")
    upgrade(s)
    half_r.send(b"ders\r\n")
    half_m.send(b"ers\r\n")
    assert int(half_r.reply()) > 0 and len(half_m.values()) == 2
    assert multi.ask("INCR", "id:orders") == b"QUEUED"
    ids.check_increasing([int(v) for v in multi.ask("EXEC")])
    assert str(dirty.ask("EXEC")).startswith("EXECABORT")
    assert sub.ask("SUBSCRIBE", "more") == [b"subscribe", b"more", 2]
    assert "only (P|S)SUBSCRIBE" in str(sub.ask("GET", "id:orders"))
    assert named.ask("CLIENT", "GETNAME") == b"me" and named.ask("CLIENT", "ID") == number
    assert b" db=5 " in named.ask("CLIENT", "INFO") and b"resp=3" in named.ask("CLIENT", "INFO")
    with s.resp() as r:
        assert r.ask("CLIENT", "ID") > number, "a CLIENT ID is given out once"


@test("SIGUSR2: who had logged in still is, and nobody else, nor with an old password")
def logged_in(case):
    s = test_auth.sidecar(case)
    nobody, ann, bob, text = s.resp(), s.resp(), s.resp(unix=True), s.mc()
    for r, name in ((ann, "ann"), (bob, "bob")):
        assert r.ask("AUTH", name, "secret") == b"OK"
    text.send(b"set auth 0 0 10\r\nann secret\r\n")
    assert text.line() == b"STORED"
    upgrade(s)
    assert "NOAUTH" in str(nobody.ask("GET", "id:a"))
    assert int(ann.ask("GET", "id:a")) > 0 and text.id("id:a") > 0
    assert int(bob.ask("GET", "id:orders")) > 0
    assert "not allowed to user 'bob'" in str(bob.ask("GET", "id:a"))
    with open(case.path("users"), "w") as f:
        f.write("ann:%s\nbob:%s\n" % (test_auth.ARGON2, test_auth.ARGON2))
    upgrade(s)
    assert test_auth.gone(ann) and test_auth.gone(text), "her password is another"
    assert int(bob.ask("GET", "id:a")) > 0, "his is the same, and he may have all names"


@test("SIGUSR2: a connection that its listener would not let in any more is closed")
def not_let_in(case):
    s = test_auth.sidecar(case, {"auth.mode": "off"})
    r, u = s.resp(), s.resp(unix=True)
    assert int(r.ask("GET", "id:a")) > 0 and int(u.ask("GET", "id:a")) > 0
    s.options["auth.allow_uids"] = [str(os.getuid() + 1)]
    s.write_conf()
    at = len(s.log())
    assert "connections=1 " in upgrade(s)
    assert int(r.ask("GET", "id:a")) > 0 and u.rest() == b""
    s.wait_log("connections that cannot be taken over are closed number=1 from=", after=at)
    s.options["auth.mode"] = "required"
    s.write_conf()
    upgrade(s)
    assert r.rest() == b"", "nobody has logged in there"


@test("SIGUSR2: clients that read slowly get all of their replies")
def slow_readers(case):
    s = case.sidecar(case.pool())
    conns = []
    for i in range(6):
        c = s.resp(unix=i % 2 == 0)
        c.send(c.encode("LPOP", "id:orders", 1000) * 100)
        conns.append(c)
    for _ in range(3):
        upgrade(s)
    values = []
    for c in conns:
        mine = [int(v) for _ in range(100) for v in c.reply()]
        ids.check_increasing(mine)
        values += mine
    assert len(values) == 600000
    ids.check_distinct(values)


@test("SIGUSR2: a value half sent goes on, in all protocols")
def half_block(case):
    s = case.sidecar(case.pool())
    text, meta, binary, resp = s.mc(), s.mc(), s.mc(), s.resp()
    text.send(b"set id:orders 0 0 10\r\n01234")
    meta.send(b"ms id:orders 10 O77 k\r\n01234")
    binary.send(struct.pack(">BBHBBHII8x", 0x80, 0x01, 9, 8, 0, 0, 8 + 9 + 10, 0x01020304) +
                bytes(8) + b"id:orders01234")
    big = 200000
    resp.send(b"*3\r\n$3\r\nSET\r\n$9\r\nid:orders\r\n$%d\r\n" % big + b"x" * 150000)
    assert str(resp.reply()).startswith("ERR ")
    assert all(c.silent(0.05) for c in (text, meta, binary))
    upgrade(s)
    for c in (text, meta, binary):
        c.send(b"56789" + (b"" if c is binary else b"\r\n"))
    resp.send(b"x" * 50000 + b"\r\n" + resp.encode("GET", "id:orders"))
    assert text.line() == b"CLIENT_ERROR id key is read-only"
    assert meta.line() == b"NS O77 kid:orders"
    head = binary.take(24)
    assert head[0] == 0x81 and head[6:8] == b"\0\5" and head[12:16] == b"\1\2\3\4", head
    assert int(resp.reply()) > 0
    assert text.id() > 0 and meta.id() > 0


@test("a service manager hears of an upgrade, and the watchdog goes on")
def told(case):
    manager = Manager(case)
    s = harness.Sidecar(case, "s", case.pool().url, env={"NOTIFY_SOCKET": manager.path,
                                                         "WATCHDOG_USEC": "200000"})
    s.start()
    for _ in range(3):
        manager.listen()
        manager.heard.clear()
        upgrade(s)
        manager.wait("RELOADING=1\nMONOTONIC_USEC=")
        manager.wait("READY=1")
        manager.wait("WATCHDOG=1")
        assert manager.heard[0].startswith("RELOADING=1") or "WATCHDOG=1" in manager.heard[0]
        assert not [m for m in manager.heard if m.startswith("STOPPING")]


@test("SIGTERM and SIGUSR2 together: it stops, with its workerIds returned")
def term_and_upgrade(case):
    redis = case.pool()
    for i in range(80):
        s = case.sidecar(redis)
        s.wait_held(2)
        s.popen.send_signal(signal.SIGUSR2)
        time.sleep(i * 0.00015)
        assert s.stop() == 0, "round %d" % i
        assert redis.held() == [], "round %d: %r" % (i, redis.held())


def unread(s):
    """A client that asks for much and reads nothing: a stop waits for it."""
    r = s.resp()
    r.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    r.sock.setblocking(False)
    with contextlib.suppress(BlockingIOError):
        while True:
            r.sock.send(r.encode("LPOP", "id:orders", 1000))
    return r


@test("SIGUSR2 while it drains, or just before: it stops all the same, and nobody takes over")
def upgrade_while_draining(case):
    redis = case.pool()
    agree = case.path("agree")
    os.mkfifo(agree)
    for signals in ((signal.SIGTERM, signal.SIGUSR2), (signal.SIGUSR2, signal.SIGTERM)):
        s = own_program(case, redis)
        s.wait_held(2)
        # Agrees only once both signals were heard: a check that is done before the SIGTERM comes
        # is an upgrade like any other.
        replace(s.argv[0], "#!/bin/sh\nread line <%s\necho 'takes over: 1'\n" % agree)
        said = os.open(agree, os.O_RDWR)
        with unread(s):
            for signo, pattern in zip(signals, ("stopping|upgrading in place", "stopping signal")):
                s.send(signo)
                s.wait_log(pattern)
            os.write(said, b"yes\n")
            assert s.wait() == 0
        os.close(said)
        assert "upgraded in place" not in s.log() and redis.held() == [], redis.held()


@test("a state_dir in which another sidecar runs by now: refused, IDs go on, also those of static:N")
def another_runs_there(case):
    redis = case.pool()
    for url in (redis.url, "static:7"):
        s, other = case.sidecar(url), case.sidecar(redis)
        before, mine = s.id(), dict(s.options)
        s.options["state_dir"] = other.state_dir  # a mistake in the configuration
        s.write_conf()
        told = upgrade(s, "upgrade refused.*")
        assert "worker.page is locked by a running process, pid %d" % other.pid in told, told
        assert s.id() > before
        s.options = mine
        s.write_conf()
        os.rename(s.state_dir, s.state_dir + ".moved")
        successor = case.sidecar(redis, state=s.state_dir)
        assert "pid %d" % successor.pid in upgrade(s, "upgrade refused.*")
        assert s.id() > before and other.id() and successor.id()
        successor.stop()
        os.rename(s.state_dir, s.state_dir + ".left")
        os.rename(s.state_dir + ".moved", s.state_dir)
        assert 'workerIds="taken over"' in upgrade(s)


@test("a state page that is replaced: as after a restart, no ID twice")
def not_proven(case):
    s = case.sidecar(case.pool())
    s.wait_held(2)
    before = [s.id() for _ in range(20)]
    page = os.path.join(s.state_dir, "worker.page")
    shutil.copyfile(page, page + ".copy")
    os.rename(page + ".copy", page)
    assert 'workerIds="as after a restart"' in upgrade(s)
    s.wait_ready()
    ids.check_distinct(before + [s.id() for _ in range(20)])


PARCEL_TAKE, PARCEL_REHEARSE = 0, 1
VERSION = 3  # of the parcels
SEALS = fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_WRITE


def parcel(version, purpose, pid, records=b"", seals=SEALS):
    """A descriptor that a child inherits, as src/base/parcel.h describes it."""
    fd = os.memfd_create("parcel", os.MFD_ALLOW_SEALING)
    os.write(fd, b"SIDFPRCL" + struct.pack("=QQQ", version, purpose, pid) + records)
    fcntl.fcntl(fd, fcntl.F_ADD_SEALS, seals)
    return fd


@test("a parcel is believed from this process alone, sealed, and of a version that is known")
def parcels(case):
    # its own addresses: a rehearsal binds those that no parcel brings, and the usual ones may be taken
    s = harness.Sidecar(case, "s", case.pool().url)

    def agrees(value, fds=()):
        r = subprocess.run([*s.argv, "-t"], env=clean_env({"SIDFLAKE_PARCEL": str(value)}),
                           pass_fds=fds, capture_output=True, text=True, timeout=30)
        assert r.returncode == 0, r.stderr
        return "takes over: 1" in r.stdout
    ours = parcel(VERSION, PARCEL_REHEARSE, os.getpid())
    assert agrees(ours, [ours])
    assert not agrees(ours), "the descriptor is closed there"
    for fd in (parcel(VERSION, PARCEL_REHEARSE, os.getpid() + 1), parcel(VERSION, PARCEL_TAKE, os.getpid()),
               parcel(VERSION + 1, PARCEL_REHEARSE, os.getpid()),
               parcel(VERSION, PARCEL_REHEARSE, os.getpid(), seals=fcntl.F_SEAL_SHRINK)):
        assert not agrees(fd, [fd])
    for value in ("x", "", "1", "999", "99999999999999999999", "0"):
        assert not agrees(value)


@test("a parcel of another version: its descriptors are closed, and all begins anew")
def other_version(case):
    s = harness.Sidecar(case, "s", case.pool().url)
    left = socket.socket()
    inode = "socket:[%d]" % os.fstat(left.fileno()).st_ino

    def leave():
        """In the child, before it runs the program: only there its pid is known."""
        die_with_parent()
        os.set_inheritable(left.fileno(), True)
        fd = parcel(VERSION + 1, PARCEL_TAKE, os.getpid(), struct.pack("=QQQ", 77, left.fileno(), 0))
        os.dup2(fd, 900)
    with open(s.log_path, "ab") as log:
        s.popen = subprocess.Popen(
            s.argv, env=clean_env({"SIDFLAKE_PARCEL": "900"}), stdin=subprocess.DEVNULL,
            stdout=log, stderr=log, close_fds=False, preexec_fn=leave)
    s.wait_ready()
    s.wait_log("what the program before left cannot be used.*expected version %d, found %d" % (
        VERSION, VERSION + 1))
    open_now = [os.readlink(p) for p in glob.glob("/proc/%d/fd/*" % s.pid) if os.path.lexists(p)]
    assert open_now and inode not in open_now
    assert s.id() > 0
    left.close()


@test("a configuration that became wrong since the check: 1, so that a service manager tries again")
def wrong_since_the_check(case):
    s = harness.Sidecar(case, "s", case.pool().url)

    def status(heir):
        def leave():
            die_with_parent()
            if heir:
                os.dup2(parcel(VERSION, PARCEL_TAKE, os.getpid()), 900)
        r = subprocess.run(s.argv, env=clean_env({"SIDFLAKE_PARCEL": "900"} if heir else None),
                           capture_output=True, text=True, close_fds=False, preexec_fn=leave, timeout=30)
        return r.returncode, r.stderr
    right = dict(s.options)
    # the file is wrong, and a file that it names cannot be read
    for options, why in (({"limits.batch": "lots"}, "lots"),
                         ({"coordinator.password_file": case.path("none")}, "none")):
        s.options = dict(right, **options)
        s.write_conf()
        for heir in (False, True):
            code, told = status(heir)
            assert code == (1 if heir else 78) and why in told, (heir, code, told)


@test("SIGKILL after an upgrade, and restart: the same workerId")
def killed_after(case):
    s = case.sidecar(case.pool())
    s.wait_held(2)
    before = [s.id() for _ in range(20)]
    upgrade(s)
    before += [s.id() for _ in range(20)]
    s.kill()
    s.start()
    after = [s.id() for _ in range(20)]
    ids.check_increasing(before + after)
    assert {ids.worker_of(v) for v in before + after} == {0}
