"""Every way to name a coordinator."""

import json
import os
import pathlib
import re
import shutil
import sqlite3
import stat
import threading
import time

import harness
import ids
import wire
from harness import rest_ms, until
from runner import test


def works(s, worker=0):
    ledger = ids.Ledger()
    for _ in range(20):
        ledger.ask(s.id, {worker})
    ledger.check(20)
    ids.check_increasing(ledger.values())
    return ledger.values()


@test("redis+unix, with a database")
def redis_unix(case):
    redis = case.redis()
    url = "redis+unix://%s?db=3" % redis.sock
    case.ctl("pool", "init", "--coordinator", url, "--fresh", expect=0)
    s = case.sidecar(url)
    works(s)
    redis.ask("CONFIG", "SET", "save", "")
    assert b"db3:" in redis.ask("INFO", "keyspace") and b"db0:" not in redis.ask("INFO", "keyspace")


def with_user(case):
    redis = case.redis(args=("--requirepass", "0ther", "--user", "alice", "on", ">s3cret/:@", "~*",
                             "+@all"))
    return redis, "redis://alice:s3cret%%2F%%3A%%40@127.0.0.1:%d/5" % redis.port


@test("redis with user, password and database; the password appears nowhere")
def redis_auth(case):
    _, url = with_user(case)
    r = case.ctl("pool", "init", "--coordinator", url, "--fresh", expect=0)
    s = case.sidecar(url)
    works(s)
    shown = s.log() + s.http("/metrics").text + s.http("/readyz?verbose").text + r.stdout + r.stderr
    with s.mc() as m:
        shown += str(m.stats()) + str(m.stats("settings"))
    with s.resp() as c:
        shown += str(c.ask("INFO")) + str(c.ask("CONFIG", "GET", "*"))
    assert "s3cret" not in shown and "127.0.0.1" in shown


@test("coordinator.password_file stands in for the password in the URL")
def password_file(case):
    redis = case.redis(args=("--requirepass", "s3cret"))
    path = case.path("password")
    with open(path, "w") as f:
        f.write("s3cret\n")
    case.ctl("pool", "init", "--coordinator", redis.url, "--fresh", "--password-file", path,
             expect=0)
    works(case.sidecar(redis, {"coordinator.password_file": path}))


@test("coordinator.password_file is read again for each connection: a password that is rotated, or was wrong")
def password_rotated(case):
    redis = case.redis(args=("--requirepass", "first"))
    path = case.path("password")

    def write(password):
        with open(path, "w") as f:
            f.write(password + "\n")
    write("first")
    case.ctl("pool", "init", "--coordinator", redis.url, "--fresh", "--password-file", path, expect=0)
    write("wrong")
    s = case.sidecar(redis, {"coordinator.password_file": path, "lease.renew_every": "1s"}, wait=False)
    s.wait_log("error coordinator refuses .*-WRONGPASS invalid username-password pair or user is disabled; "
               "the password is that of coordinator.password_file " + path)
    write("first")
    s.wait_held(2)
    works(s)
    with wire.Resp(redis.sock) as r:
        assert r.ask("AUTH", "first") == b"OK"
        for change in (lambda: (r.ask("CONFIG", "SET", "requirepass", "second"), write("second")),
                       lambda: os.unlink(path)):
            change()
            r.ask("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
            renewed = s.metric("sidflake_renewals_total", result="renewed")
            until("renewed", lambda: s.metric("sidflake_renewals_total", result="renewed") >= renewed + 2)
    s.stop()
    assert "first" not in s.log() and "second" not in s.log()


@test("a wrong password: the log says so, and not which")
def wrong_password(case):
    redis, _ = with_user(case)
    s = case.sidecar("redis://alice:hunter2@127.0.0.1:%d/5" % redis.port, wait=False)
    s.wait_log("error coordinator refuses .*-WRONGPASS .* disabled; the password is that of the URL")
    assert s.ready_status() == 503 and "hunter2" not in s.log()
    t = case.sidecar(redis, wait=False)
    t.wait_log("error coordinator refuses .*-NOAUTH Authentication required; name a password in "
               "coordinator.password_file")
    told = case.ctl("pool", "status", "--coordinator", redis.url, expect=1).stderr
    assert "; name a password in --password-file" in told, told


@test("sqlite with auto_init: a pool for one host, kept over restarts")
def sqlite(case):
    url = "sqlite://" + case.path("pool.db")
    options = {"coordinator.auto_init": True}
    a = case.sidecar(url, options)
    first = works(a)
    b = case.sidecar(url, options)
    b.wait_held(2)
    works(b, 2)
    assert a.stop() == 0
    case.ctl("pool", "check", "--coordinator", url, expect=0)
    a.start()
    ids.check_increasing(first + works(a, 4))
    a.kill()
    a.start()
    works(a, 4)


@test("sqlite without auto_init: the pool has to be made")
def sqlite_by_hand(case):
    url = "sqlite://" + case.path("pool.db")
    s = case.sidecar(url, wait=False)
    s.wait_log("sidflakectl pool init")
    told = case.sidecar(url, {"coordinator.auto_init": True, "state_dir": "/proc/none"}, wait=False)
    told.wait_log(r"and auto_init makes none, as no state page tells .*/proc/none.*pool init")
    told.stop()
    case.ctl("pool", "init", "--coordinator", url, "--workers", "42-49", expect=0)
    s.wait_ready(15)
    works(s, 42)


@test("sqlite with auto_init that is refused: one line, and none that says a pool was made")
def sqlite_refused(case):
    with open(case.path(".pool.db-tally.7"), "w"):
        pass  # somebody had a pool here
    s = case.sidecar("sqlite://" + case.path("pool.db"), {"coordinator.auto_init": True},
                     wait=False)
    s.wait_log("coordinator refuses")
    time.sleep(5)  # some tries
    assert s.log().count("coordinator refuses") == 1, s.log()
    assert "answers again" not in s.log() and "pool made" not in s.log(), s.log()


def remove_pool(case):
    for name in os.listdir(case.dir):
        if name.startswith("pool.db"):
            os.unlink(case.path(name))


@test("sqlite: a copy made as the runbook says, while a sidecar writes")
def sqlite_copied(case):
    with open(os.path.join(harness.TOP, "packaging", "prometheus", "RUNBOOK.md")) as f:
        told = re.search("A copy is made by `([^`]*)`", f.read()).group(1)
    case.ctl("pool", "init", "--fresh", "--coordinator", "sqlite://" + case.path("pool.db"), expect=0)
    writes = sqlite3.connect(case.path("pool.db"), isolation_level=None, check_same_thread=False)
    writes.execute("BEGIN EXCLUSIVE")
    ends = threading.Timer(0.5, writes.execute, ("COMMIT",))
    ends.start()
    case.run("sh", "-c", told, expect=0)
    ends.join()
    case.ctl("pool", "status", "--coordinator", "sqlite://" + case.path("copy.db"), expect=0)


@test("sqlite with auto_init after the file was lost: no workerId before the floor")
def sqlite_lost(case):
    a = case.sidecar("sqlite://" + case.path("pool.db"), {"coordinator.auto_init": True})
    values = works(a)
    assert a.stop() == 0
    remove_pool(case)
    a.start(wait=False)
    a.wait_log("pool made.*after-loss")
    waits = rest_ms(a)
    assert waits > 3500_000, "the horizon was expected, found %d ms" % waits
    assert a.ready_status() == 503 and values
    for text in a.log(), a.http("/readyz").text:  # why, until when, and where to read more
        assert re.search(r"rests for [\d hmins]+ more, until 20\S+Z.*the pool was lost, and made again at "
                         r"20\S+Z; see coordinator.auto_init", text), text


@test("sqlite with auto_init, the file deleted under a sidecar that is stopped: a new one waits for it",
      timeout=60)
def sqlite_deleted(case):
    options = {"coordinator.auto_init": True}
    url = "sqlite://" + case.path("pool.db")
    a = case.sidecar(url, options)
    values = works(a)
    a.pause()  # it does not notice, and will go on
    remove_pool(case)
    b = case.sidecar(url, options, wait=False)  # its state_dir knows nothing
    b.wait_log("another sidecar that uses this file")
    assert b.ready_status() == 503 and not os.path.exists(case.path("pool.db"))
    a.resume()
    a.wait_log("pool made.*after-loss", timeout=20)
    waits = rest_ms(b, timeout=20)
    assert waits > 3500_000, "the horizon of the one that lives was expected, found %d ms" % waits
    ids.check_increasing(values + works(a))
    b.kill()
    a.kill()  # nobody lives, but a's page does
    remove_pool(case)
    b.start(wait=False)  # it never had a workerId, and knows what the pool was
    assert rest_ms(b, timeout=20) > 3500_000
    b.kill()
    remove_pool(case)
    c = case.sidecar(url, options, wait=False)  # which knows nothing
    c.wait_log("expected a path that nobody used before.*pool init --coordinator .*--fresh")
    assert c.ready_status() == 503 and not os.path.exists(case.path("pool.db"))


@test("sqlite, a name beside the file that ends all counting: by what the log tells, nobody takes the path for new",
      timeout=60)
def sqlite_counted_out(case):
    options = {"coordinator.auto_init": True, "lease.on_stop": "keep", "lease.renew_every": "1s"}
    url = "sqlite://" + case.path("pool.db")
    a = case.sidecar(url, options)
    values = works(a)
    pathlib.Path(case.path(".pool.db-tally.999999999999999")).touch()
    told = a.wait_log(r"expected fewer than 10\^15 transactions.*make a file (\S+), remove (\S+) and all other names "
                      r"that begin with (\S+), and").groups()
    assert told == (".pool.db-tally.0", "pool.db", ".pool.db-tally"), told
    a.kill()
    pathlib.Path(case.path(told[0])).touch()
    for name in os.listdir(case.dir):
        if name == told[1] or (name.startswith(told[2]) and name != told[0]):
            os.unlink(case.path(name))
    b = case.sidecar(url, options, wait=False)  # which knows nothing
    b.wait_log("expected a path that nobody used before")
    a.start()  # its page goes on
    ids.check_increasing(values + works(a))
    a.wait_log("pool made.*after-loss")
    assert rest_ms(b, timeout=20) > 3500_000


def pause_between_calls(s, path):
    """When it has the file closed, so that a copy of it is whole, and nobody waits for its lock."""
    def open_files():
        directory = "/proc/%d/fd" % s.pid
        return [os.readlink(os.path.join(directory, fd)) for fd in os.listdir(directory)]
    for _ in range(500):
        s.pause()
        if path not in open_files():
            return
        s.resume()
        time.sleep(0.02)
    raise AssertionError("%s is always open" % path)


@test("sqlite, the file set back in place by cp: a newcomer has no workerId that somebody may hold",
      timeout=60)
def sqlite_set_back(case):
    url = "sqlite://" + case.path("pool.db")
    a = case.sidecar(url, {"coordinator.auto_init": True, "workers.spare": 0})
    values = works(a)
    pause_between_calls(a, case.path("pool.db"))
    shutil.copyfile(case.path("pool.db"), case.path("backup"))
    b = case.sidecar(url, {"workers.spare": 0})
    b.wait_held(1)
    theirs = works(b, 1)
    pause_between_calls(b, case.path("pool.db"))  # nobody who knows more renews
    inode = os.stat(case.path("pool.db")).st_ino
    shutil.copyfile(case.path("backup"), case.path("pool.db"))
    assert os.stat(case.path("pool.db")).st_ino == inode
    c = case.sidecar(url, {"workers.spare": 0}, wait=False)
    waits = rest_ms(c, ", until 20.*: the pool was reopened")
    assert 20_000 < waits <= 35_000, "the short floor was expected, found %d ms" % waits
    status = case.ctl("pool", "status", "--coordinator", url).stdout
    assert "reopened: its file was set back to an older state" in status, status
    a.resume()
    b.resume()
    ids.check_increasing(values + works(a))
    assert not set(theirs) & set(values)


@test("sqlite, the file kept in WAL mode by another program and set back there: nobody uses it, and who holds"
      " a workerId goes on", timeout=60)
def sqlite_kept_in_wal(case):
    path = case.path("pool.db")
    url = "sqlite://" + path
    options = {"workers.spare": 0, "lease.renew_every": "1s"}
    a = case.sidecar(url, {"coordinator.auto_init": True, **options})
    values = works(a)
    pause_between_calls(a, path)
    shutil.copyfile(path, case.path("backup"))
    shell = sqlite3.connect(path, isolation_level=None)
    shell.execute("PRAGMA journal_mode = WAL")
    shell.execute("SELECT count(*) FROM pool").fetchall()
    a.resume()
    a.wait_log("keeps in WAL mode")
    assert a.ready_status() == 200
    b = case.sidecar(url, options, wait=False)
    b.wait_log("keeps in WAL mode")
    assert b.ready_status() == 503
    status = case.ctl("pool", "status", "--coordinator", url, expect=3).stderr
    assert "keeps in WAL mode" in status, status
    shell.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    shutil.copyfile(case.path("backup"), path)
    values += works(a)
    shell.close()
    until("b has a workerId", lambda: b.ready_status() == 200, 20)
    works(b, 1)
    ids.check_increasing(values + works(a))


@test("sqlite, the directory moved away under a sidecar: the next one makes no pool beside it",
      timeout=60)
def sqlite_moved(case):
    options = {"coordinator.auto_init": True}
    os.mkdir(case.path("data"))
    url = "sqlite://" + case.path("data/pool.db")
    a = case.sidecar(url, options)
    values = works(a)
    a.pause()
    os.rename(case.path("data"), case.path("data.old"))
    os.mkdir(case.path("data"))
    b = case.sidecar(url, options, wait=False)
    b.wait_log("another sidecar that uses this file")
    assert b.ready_status() == 503 and os.listdir(case.path("data")) == []
    a.resume()
    a.wait_log("pool made.*after-loss", timeout=20)
    assert rest_ms(b, timeout=20) > 3500_000
    ids.check_increasing(values + works(a))


@test("sqlite: two files in one directory are two pools")
def sqlite_two(case):
    for name in "one.db", "two.db":
        works(case.sidecar("sqlite://" + case.path(name), {"coordinator.auto_init": True}))


@test("sqlite: the development configuration, as shipped, in a directory of its own")
def development(case):
    os.makedirs(case.path("build/dev"))
    conf = os.path.join(harness.TOP, "conf", "sidflake.dev.yaml")
    s = harness.Sidecar(case, "dev", "sqlite:build/dev/pool.db")
    s.argv = [harness.SIDFLAKE, "-c", conf]
    place = "tcp://127.0.0.1:%d"
    argv = ["--set", "listen.memcached=%s,unix:build/dev/memcached.sock" % (place % s.mc_port),
            "--set", "listen.redis=%s,unix:build/dev/redis.sock" % (place % s.resp_port),
            "--set", "listen.http=" + place % s.http_port]
    s.start(argv)
    values = works(s)
    with s.resp() as r:
        assert [r.ask("INCR", "seq:demo") for _ in range(3)] == [1, 2, 3]
    s.kill()
    s.start(argv)
    ids.check_increasing(values + works(s))
    with s.resp() as r:
        assert r.ask("INCR", "seq:demo") == 4
    assert stat.S_ISSOCK(os.stat(case.path("build/dev/redis.sock")).st_mode)
    assert s.stop() == 0


@test("static:N: that workerId, above its last time after a kill")
def static(case):
    s = case.sidecar("static:1234", {"workers.spare": 0})
    values = works(s, 1234)
    s.kill()
    s.start()
    values += works(s, 1234)
    assert s.stop() == 0
    s.start()
    ids.check_increasing(values + works(s, 1234))
    case.sidflake("-t", "--set", "coordinator.url=static:32768", expect=78)


@test("static:N?epoch=TIME: IDs of another epoch, as the driver reads it")
def static_epoch(case):
    s = case.sidecar("static:1234?epoch=2025-01-01T00:00:00Z", {"workers.spare": 0})
    one = int(s.id())
    told = json.loads(case.ctl("decode", "--json", "--epoch", "2025-01-01T00:00:00Z",
                               str(one)).stdout)[0]
    assert told["worker"] == 1234 and abs(told["unix_ms"] / 1000 - time.time()) < 60, told


@test("static:N: it needs no spare: nothing is amiss, on the page and in pool status")
def static_alone(case):
    s = case.sidecar("static:3")
    s.wait_held(1)
    s.id()
    assert "Healthy" in s.http("/").text, s.http("/").text
    status = case.ctl("pool", "status", "--coordinator", "static:3", expect=0).stdout
    assert "warning" not in status, status


@test("static:N: a clock that stepped back over a clean stop repeats no ID")
def static_back(case):
    clock = case.clock()
    s = case.sidecar("static:1234", {"workers.spare": 0}, clock=clock)
    values = [s.id() for _ in range(20)]
    assert s.stop() == 0
    clock.step(-3.2)
    s.start(wait=False)
    s.wait_ready(20)
    ids.check_increasing(values + [s.id() for _ in range(20)])


@test("static:N: a clock that was a day ahead: until when there are no IDs is said")
def static_ahead(case):
    clock = case.clock()
    s = case.sidecar("static:1234", clock=clock)
    s.id()
    clock.set(86400)
    until("an ID of tomorrow", lambda: ids.time_of(s.id()) > (time.time() + 86000) * 1000, 10)
    clock.set(0)
    with s.resp() as r:
        reply = str(r.ask("GET", "id:orders"))
    tomorrow = time.strftime("%Y-%m-%dT%H", time.gmtime(time.time() + 86400 - 5))
    told = "or name an N in static:N that no sidecar ever had, and another state_dir"
    for text in (reply, s.http("/readyz?verbose").text):
        assert f"wait until it is {tomorrow}" in text and told in text, text
    s.wait_log("an N in static:N that no sidecar ever had, and another state_dir")
    s.stop()
    seen = len(s.log())
    s.start(wait=False)  # it has issued nothing yet, and knows from its page how far behind it is
    s.wait_listening()
    with s.resp() as r:
        assert str(r.ask("GET", "id:orders")).startswith("TRYAGAIN")
    behind = int(s.wait_log(r"clock stepped back: .*behind_ms=(-?\d+)", after=seen).group(1))
    assert 86000_000 < behind <= 86400_000, behind
    s.stop()
    s.options["coordinator.url"] = "static:1235"
    s.options["state_dir"] = case.path("another.d")  # as told: else its floor is that of 1234
    s.write_conf()
    s.start()
    assert ids.time_of(s.id()) < (time.time() + 60) * 1000


@test("static:N on a damaged state page: refused again and again, until it is removed")
def static_damaged(case):
    clock = case.clock()
    clock.step(20)
    s = case.sidecar("static:1234", {"workers.spare": 0}, clock=clock)
    values = [s.id() for _ in range(20)]
    s.kill()
    page = os.path.join(s.state_dir, "worker.page")
    os.truncate(page, 100)
    clock.step(-20)
    for _ in range(2):
        s.start(wait=False)
        s.wait_log("error .*" + page + " is damaged .expected 4096 bytes, found 100.: remove it")
        until("it has ended", lambda: not s.running())
    clock.step(30)
    os.unlink(page)
    s.start()
    ids.check_increasing(values + [s.id() for _ in range(20)])


@test("static:N: what the state_dir served in between, by whatever N, repeats no ID")
def static_others(case):
    clock = case.clock()
    clock.step(3)
    s = case.sidecar("static:5", {"workers.spare": 0}, clock=clock)
    values = [s.id() for _ in range(20)]
    assert s.stop() == 0
    clock.step(-3)
    for worker in (6, 5):
        s.options["coordinator.url"] = "static:%d" % worker
        s.write_conf()
        s.start(wait=False)
        s.wait_ready(20)
        values += [s.id() for _ in range(20)]
        assert s.stop() == 0
    ids.check_distinct(values)
    assert ids.time_of(values[-1]) > ids.time_of(values[0])


@test("static:N without a usable state_dir: refused, unless it is said to be unsafe")
def static_stateless(case):
    s = case.sidecar("static:1234", {"workers.spare": 0, "state_dir": "/proc/none"}, wait=False)
    s.wait_log("expected a state_dir that keeps the last time.*coordinator.static_unsafe")
    until("it has ended", lambda: not s.running())
    told = case.sidflake("-t", "-c", s.conf, expect=78)
    assert "expected a state_dir that keeps the last time" in told.stderr and not told.stdout, told
    assert "/proc/none: No such file" in told.stderr, told
    s = case.sidecar("static:1234", {"workers.spare": 0, "state_dir": "/proc/none",
                                     "coordinator.static_unsafe": True})
    s.wait_log("warn +no state page: IDs are repeated if the clock steps back over a restart")
    assert "no state page: IDs are repeated if the clock steps back over a restart: " in s.http("/").text
    works(s, 1234)
    told = case.sidflake("-t", "-c", s.conf, expect=0)
    assert re.match("warning: state_dir: no state page: IDs are repeated .*/proc/none", told.stderr), told


@test("static:N: -t beside the sidecar that runs, and on its damaged page afterwards")
def static_tested(case):
    s = case.sidecar("static:1234", {"workers.spare": 0})
    page = os.path.join(s.state_dir, "worker.page")
    told = case.sidflake("-t", "-c", s.conf, expect=0)
    assert told.stderr == "" and told.stdout == s.conf + ": OK\n", told
    s.id()
    s.kill()
    os.truncate(page, 100)
    told = case.sidflake("-t", "-c", s.conf, expect=78)
    assert page + " is damaged" in told.stderr, told
