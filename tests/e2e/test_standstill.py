"""The sidecar stands still (SIGSTOP, a paused container): that is nobody's delay but its own. What
came meanwhile in time is read before anybody is told that it did not."""

import time

import wire
from runner import test

encode = wire.Resp.encode


def in_front(case, options):
    redis, memcached = case.redis(), case.memcached()
    s = case.sidecar("sqlite://" + case.path("pool.db"), {
        "coordinator.auto_init": True,
        "upstream.redis": "tcp://127.0.0.1:%d" % redis.port,
        "upstream.memcached": "tcp://127.0.0.1:%d" % memcached.port, **options})
    return redis, memcached, s


@test("stopped for longer than upstream.timeout: the replies that came meanwhile are their clients'",
      beside=True)
def replies(case):
    redis, memcached, s = in_front(case, {"upstream.timeout": "1s"})
    with s.resp() as shared, s.resp() as own, s.mc() as mc:
        assert shared.ask("SET", "k", "v") == b"OK" and own.ask("SELECT", 0) == b"OK"
        assert mc.ask("set k 0 0 1\r\nv") == "STORED"
        redis.pause()
        memcached.pause()
        before = s.metric("sidflake_upstream_requests_total", protocol="redis")
        shared.send(encode("GET", "k"))
        own.send(encode("STRLEN", "k"))
        mc.send(b"get k\r\n")
        while s.metric("sidflake_upstream_requests_total", protocol="redis") < before + 2:
            time.sleep(0.01)
        s.pause()
        redis.resume()
        memcached.resume()
        time.sleep(2)
        s.resume()
        assert shared.reply() == b"v" and own.reply() == 1
        assert mc.line() == b"VALUE k 0 1"
    assert "lost" not in s.log()
    with s.resp() as late:  # and it is still noticed who gives none
        assert late.ask("GET", "k") == b"v"
        redis.pause()
        late.send(encode("GET", "k"))
        assert late.rest() == b""
    s.wait_log('upstream lost protocol=redis why="no reply in time"')


@test("stopped for longer than the times of limits: what clients have sent meanwhile is answered",
      beside=True)
def clients(case):
    users = case.path("users")
    with open(users, "w") as f:
        f.write(case.ctl("passwd", "u", stdin="pw\n", expect=0).stdout)
    s = case.sidecar("sqlite://" + case.path("pool.db"), {
        "coordinator.auto_init": True, "auth.users_file": users, "limits.login_timeout": "2s",
        "limits.request_timeout": "2s", "limits.idle_timeout": "2s"})
    port = "tcp://127.0.0.1:%d" % s.resp_port
    s.options["listen.redis"] = [port, "unix://%s?auth=required" % s.resp_sock]
    s.stop()
    s.write_conf()
    s.start()
    with s.resp() as half, s.resp() as idle, s.resp(unix=True) as stranger:
        assert idle.ask("PING") == b"PONG"
        half.send(encode("GET", "id:x")[:-4])
        stranger.send(b"*")
        time.sleep(0.2)  # all of that is read
        s.pause()
        half.send(encode("GET", "id:x")[-4:])
        idle.send(encode("GET", "id:x"))
        stranger.send(encode("AUTH", "u", "pw")[1:])
        time.sleep(3)
        s.resume()
        assert int(half.reply()) > 0 and int(idle.reply()) > 0 and stranger.reply() == b"OK"
    with s.resp() as half, s.resp() as idle, s.resp(unix=True) as stranger:  # and else not
        half.send(b"*")
        assert half.rest() == idle.rest() == stranger.rest() == b""


@test("stopped for longer than limits.max_wait: the numbers that came meanwhile are had", beside=True)
def numbers(case):
    redis = case.pool()
    case.ctl("seq", "create", "strict", "--order", "strict", "--on-loss", "trust", "--coordinator",
             redis.url, expect=0)
    s = case.sidecar(redis, {"coordinator.timeout": "5s", "limits.max_wait": "1s"})
    with s.resp() as first, s.resp() as second:
        assert first.ask("GET", "seq:strict") == b"1"
        redis.pause()
        first.send(encode("GET", "seq:strict"))
        time.sleep(0.2)  # it is asked for, and the other is not
        second.send(encode("GET", "seq:strict"))
        time.sleep(0.2)
        s.pause()
        redis.resume()
        time.sleep(2)
        s.resume()
        assert first.reply() == b"2" and second.reply() == b"3"
        redis.pause()  # and who has none in time is told
        assert "TRYAGAIN" in str(first.ask("GET", "seq:strict"))
