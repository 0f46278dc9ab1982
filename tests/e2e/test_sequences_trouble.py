"""Sequences where something is wrong: copies put back, wants that cannot be met, clocks, losses."""

import json
import os
import re
import shlex
import shutil
import tempfile
import threading
import time

from harness import SIDFLAKECTL, until
from runner import test


def sidecar(case, coordinator, define, **more):
    options = {"sequences.define": define, "limits.max_wait": "1s"}
    state = more.pop("state", None)
    clock = more.pop("clock", None)
    options.update(more)
    s = case.sidecar(coordinator, options, state=state, clock=clock)
    s.wait_held(2)
    return s


def ask(s, *words):
    with s.resp() as r:
        return r.ask(*words)


def is_number(reply):
    return isinstance(reply, int)


@test("one with periods by itself has its first number at once, after a restart too")
def alone_with_periods(case):
    file = "sqlite://" + case.path("pool.db")
    case.ctl("pool", "init", "--coordinator", file, "--fresh", expect=0)
    for coordinator in (case.pool(), file):
        s = sidecar(case, coordinator, ["day --reset day --on-loss refuse --subs"])
        assert [ask(s, "INCR", "seq:day"), ask(s, "INCR", "seq:day:acme")] == [1, 1]
        s.kill()
        s.start()
        s.wait_held(2)
        assert [ask(s, "INCR", "seq:day"), ask(s, "INCR", "seq:day:acme")] == [2, 2]


@test("one with periods is served after a SIGKILL with Redis away: today's numbers were in hand")
def periods_without_redis(case):
    where = tempfile.mkdtemp(prefix="sidflake-", dir="/dev/shm")
    try:
        redis = case.pool()
        s = sidecar(case, redis, ["day --reset day --on-loss refuse --subs"], state=where + "/s")
        page = where + "/s/sequences.page"
        seen = [ask(s, "INCR", "seq:day:acme") for _ in range(20)]
        until("what was asked for in advance came", lambda: os.path.exists(page))
        time.sleep(0.3)
        redis.stop()
        s.kill()
        s.start()
        s.wait_listening()
        seen += [ask(s, "INCR", "seq:day:acme") for _ in range(3)]
        assert seen == list(range(1, 24)), seen
        assert "LOADING" in str(ask(s, "INCR", "seq:day")) or "TRYAGAIN" in str(ask(s, "INCR", "seq:day"))
    finally:
        shutil.rmtree(where)


@test("a page that was put back on tmpfs since the latest renewal gives no number twice")
def put_back_on_tmpfs(case):
    where = tempfile.mkdtemp(prefix="sidflake-", dir="/dev/shm")
    try:
        s = sidecar(case, case.pool(), ["orders --on-loss refuse"], state=where + "/s",
                    **{"lease.renew_every": "20s"})
        page, copy = where + "/s/sequences.page", where + "/copy"
        seen = [ask(s, "INCR", "seq:orders") for _ in range(100)]
        until("what was asked for in advance came", lambda: os.path.exists(page))
        time.sleep(0.3)
        shutil.copyfile(page, copy)
        seen += [ask(s, "INCR", "seq:orders") for _ in range(5)]
        s.kill()
        with open(copy, "rb") as old, open(page, "r+b") as f:
            f.write(old.read())
        s.start()
        s.wait_held(2)
        more = [ask(s, "INCR", "seq:orders") for _ in range(10)]
        assert all(map(is_number, more)) and not set(more) & set(seen), (seen[-5:], more)
        s.wait_log("blocks of numbers dropped numbers=[0-9]+ why=\"somebody has changed the file")
    finally:
        shutil.rmtree(where)


@test("a sidecar whose state_dir was moved away leaves the page of the one that runs there now in its place")
def moved_away(case):
    redis, define = case.pool(), ["orders --on-loss refuse"]
    s = sidecar(case, redis, define, state=case.path("d"))
    os.rename(s.state_dir, s.state_dir + ".moved")
    there = sidecar(case, redis, define, state=s.state_dir)
    seen = [ask(there, "INCR", "seq:orders") for _ in range(10)] + [ask(s, "INCR", "seq:orders") for _ in range(10)]
    s.wait_log("no state page of sequences: .* why=\"another file was put in its place\"")
    there.kill()
    there.start()
    there.wait_held(2)
    seen += [ask(there, "INCR", "seq:orders") for _ in range(10)]
    assert all(map(is_number, seen)) and len(set(seen)) == len(seen), seen
    assert "state page of sequences" not in there.log(), there.log()[-1000:]


@test("who wants more of a strict one than there is keeps nobody else from numbers, and loses none")
def strict_and_too_much(case):
    redis = case.pool()
    s = sidecar(case, redis, ["few --order strict --on-loss refuse --max 50",
                              "slow --order strict --max-rate 100"], **{"limits.max_wait": "3s"})
    until("both are made", lambda: ask(s, "EXISTS", "seq:few", "seq:slow") == 2)
    assert "used up" in str(ask(s, "INCRBY", "seq:few", 51))
    assert ask(s, "INCRBY", "seq:few", 30) == 30 and ask(s, "INCRBY", "seq:few", 19) == 49
    assert "used up" in str(ask(s, "INCRBY", "seq:few", 2))
    assert ask(s, "INCR", "seq:few") == 50 and "used up" in str(ask(s, "INCR", "seq:few"))
    assert "LOADING" in str(ask(s, "INCRBY", "seq:slow", 5000))
    assert ask(s, "INCR", "seq:slow") == 1
    end, replies = time.monotonic() + 4, []

    def clumsy():
        with s.resp() as r:
            while time.monotonic() < end:
                r.ask("INCRBY", "seq:slow", 5000)

    thread = threading.Thread(target=clumsy)
    thread.start()
    with s.resp() as r:
        while time.monotonic() < end:
            replies.append(r.ask("INCR", "seq:slow"))
    thread.join()
    numbers = [n for n in replies if is_number(n)]
    assert len(numbers) > 20 and len(numbers) == len(replies), (len(numbers), replies[-3:])
    assert numbers == list(range(2, len(numbers) + 2)), "numbers were lost"


@test("a batch of which no more numbers come has those that did: none is spent on an error")
def batch_that_waits_in_vain(case):
    redis = case.pool()
    s = sidecar(case, redis, ["orders --on-loss refuse", "tpl --on-loss refuse --template N@{seq}",
                              "web --on-loss refuse"])
    for name in ("orders", "tpl", "web"):
        assert ask(s, "INCR", "seq:" + name) == 1
    redis.stop()
    with s.resp() as r:
        for key, text in (("seq:orders", "%d"), ("no:tpl", "N%d")):
            got = [n.decode() for n in r.ask("LPOP", key, 500)]
            assert got and got == [text % n for n in range(2, len(got) + 2)], got
            assert "TRYAGAIN" in str(r.ask("LPOP", key, 500))
    first, second = s.http("/v1/seq/web?n=500"), s.http("/v1/seq/web?n=500")
    got = [int(n) for n in first.body.split()]
    assert first.status == 200 and got == list(range(2, len(got) + 2)), first
    assert second.status == 503, second


@test("one that is asked for more than its --max-rate is named: in the log once, page, readyz, seq show")
def at_its_max_rate(case):
    redis = case.pool()
    s = sidecar(case, redis, ["slow --max-rate 50", "well --max-rate 50"], **{"limits.max_wait": "200ms"})
    named = "sequence slow: at its max rate: more than 50 a second are asked for"
    assert ask(s, "INCR", "seq:well") == 1
    with s.resp() as r:
        assert len(r.ask("LPOP", "seq:slow", 900)) == 900
        assert named not in s.http("/readyz?verbose").text
        refused = sum("LOADING" in str(r.ask("INCRBY", "seq:slow", 500)) for _ in range(5))
        for _ in range(10):
            r.ask("LPOP", "seq:slow", 200)
    assert refused > 0
    for path in ("/readyz?verbose", "/", "/v1/status"):
        text = s.http(path).text
        assert named in text and "sequence well" not in text, (path, text)
    assert s.http("/readyz").status == 200
    lines = [l for l in s.log().splitlines() if "at its max rate" in l]
    assert len(lines) == 1 and "sequence=slow rate=50" in lines[0] and re.search(r"`sidflakectl seq show .* slow`", lines[0]), lines
    assert "served again" not in s.log()
    def ahead(name):
        j = json.loads(case.ctl("seq", "show", name, "--json", "--coordinator", redis.url, expect=0).stdout)
        return j["line"]["ahead"]
    assert ahead("slow") < 300 and 900 <= ahead("well"), (ahead("slow"), ahead("well"))
    text = case.ctl("seq", "show", "slow", "--coordinator", redis.url, expect=0).stdout
    assert re.search(r"^line         \d+ more now, and 50 a second$", text, re.M), text


@test("where a strict one ends a batch has what is left, and is told how many; what is skipped is a gap")
def ends_and_gaps(case):
    file = "sqlite://" + case.path("pool.db")
    case.ctl("pool", "init", "--coordinator", file, "--fresh", expect=0)
    for coordinator in (case.pool(), file):
        s = sidecar(case, coordinator, ["few --order strict --on-loss refuse --max 10", "orders --on-loss refuse",
                                        "round --order strict --on-loss refuse --max 3 --cycle"])
        with s.resp() as r:
            assert [int(n) for n in r.ask("LPOP", "seq:few", 7)] == list(range(1, 8))
            assert "at most 3 in a row" in str(r.ask("INCRBY", "seq:few", 5))
            assert [int(n) for n in r.ask("LPOP", "seq:few", 7)] == [8, 9, 10]
            assert "max 10 was reached" in str(r.ask("LPOP", "seq:few", 7))
            assert [int(n) for n in r.ask("LPOP", "seq:round", 7)] == [1, 2, 3, 1, 2, 3, 1]
            assert r.ask("INCR", "seq:orders") == 1
            last = r.ask("INCRBY", "seq:orders", 1000)
        until("the rest is in hand", lambda: s.metric("sidflake_sequence_left", name="orders") > 0)
        assert s.metric("sidflake_sequence_gaps_total") == last - 1001 > 0
        assert s.metric("sidflake_sequence_used_up_seconds", name="few") == 0
        assert not s.metrics().find("sidflake_sequence_used_up_seconds", name="round")


@test("one that begins in a day and is made again to begin now is served at once")
def made_again_to_begin_now(case):
    redis = case.pool()
    s = sidecar(case, redis, [])

    def seq(*args):
        case.ctl("seq", args[0], "--coordinator", redis.url, *args[1:], expect=0)

    begins = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + 86400))
    seq("create", "orders", "--on-loss", "refuse", "--begins", begins)
    assert "LOADING" in str(ask(s, "INCR", "seq:orders"))
    seq("drop", "orders", "--yes")
    seq("create", "orders", "--on-loss", "refuse", "--reuse", "--no-older-data", "--yes")
    until("it is served", lambda: is_number(ask(s, "INCR", "seq:orders")), 5, 0.1)


@test("Redis's clock is a day ahead for a moment: periods go on as soon as it is right")
def a_day_ahead(case):
    clock = case.clock()
    redis = case.redis(clock=clock)
    case.ctl("pool", "init", "--coordinator", redis.url, "--fresh", expect=0)
    noon = "%+03d:00" % (12 - time.gmtime().tm_hour)  # tomorrow's may be had two hours before it begins
    s = sidecar(case, redis, ["day --reset day --timezone %s --max-rate 1000" % noon])
    numbers = [ask(s, "INCR", "seq:day")]
    clock.step(86400)
    for _ in range(5):
        numbers.append(ask(s, "INCRBY", "seq:day", 100))
    clock.step(-86400)
    until("numbers of today come", lambda: is_number(ask(s, "INCR", "seq:day")), 5, 0.1)
    numbers += [ask(s, "INCR", "seq:day") for _ in range(20)]
    given = [n for n in numbers if is_number(n)]
    assert given == sorted(set(given)) and all(map(is_number, numbers[-20:])), numbers


@test("a host that slept, or clocks that were set: who takes little is in the right period after a renewal")
def slept(case):
    file = "sqlite://" + case.path("pool.db")
    clock = case.clock()
    case.ctl("pool", "init", "--coordinator", file, "--fresh", env=clock.env, expect=0)
    s = sidecar(case, file, ["hour --reset hour --on-loss refuse"], clock=clock)
    assert [ask(s, "INCR", "seq:hour") for _ in range(60)] == list(range(1, 61))
    until("it holds more than a few", lambda: json.loads(s.http("/v1/seq/hour/status").text)["left"] > 50)
    clock.step(5 * 3600)
    renewed = s.metric("sidflake_renewals_total", result="renewed")
    until("it renews", lambda: s.metric("sidflake_renewals_total", result="renewed") > renewed + 2)
    assert ask(s, "INCR", "seq:hour") == 1


@test("the host's clock is a day ahead for a moment: numbers are had by whom there is, and by whom is new")
def host_a_day_ahead(case):
    clock = case.clock()
    file = "sqlite://" + case.path("pool.db")
    case.ctl("pool", "init", "--coordinator", file, "--fresh", env=clock.env, expect=0)
    define = ["plain", "day --reset day"]
    s = sidecar(case, file, define, clock=clock)
    seen = {"plain": set(), "day": set()}

    def take(of, name, n):
        last = ask(of, "INCRBY", "seq:" + name, n)
        if not is_number(last):
            return False
        new = set(range(last - n + 1, last + 1))
        assert not new & seen[name], sorted(new & seen[name])[:3]
        seen[name] |= new
        return True

    for name in seen:
        until("a number comes", lambda: take(s, name, 1))
    clock.step(86400)
    seen_today, seen["day"] = seen["day"], set()
    for name in seen:
        until("a number of that day comes", lambda: take(s, name, 500))
    clock.step(-86400)
    seen["day"] = seen_today
    time.sleep(2)  # what is in hand is of that day until the coordinator has answered
    new = case.sidecar(file, {"sequences.define": define, "limits.max_wait": "1s"}, wait=False,
                       clock=clock)
    new.wait_listening()
    for of in (s, new):
        for name in seen:
            for _ in range(8):  # more than is in hand
                until("numbers of this day come", lambda: take(of, name, 500), 5, 0.1)
    assert new.ready_status() == 503, "a workerId was had"
    s.kill()
    s.start(wait=False)
    s.wait_listening()
    for name in seen:
        until("numbers come after a SIGKILL", lambda: take(s, name, 500), 5, 0.1)


@test("Redis was started with a clock an hour ahead: after the runbook's word and a restart numbers come at once")
def started_ahead(case):
    clock = case.clock()
    redis = case.redis(clock=clock, args=("--appendonly", "yes"))
    case.ctl("pool", "init", "--coordinator", redis.url, "--fresh", env=clock.env, expect=0)
    s = sidecar(case, redis, ["skip --max-rate 1000"], clock=clock)
    numbers = [ask(s, "INCR", "seq:skip")]
    s.stop()
    redis.stop()
    clock.step(3600)
    redis.start()
    s.start(wait=False)
    s.wait_log("pool reopened")
    clock.step(-3600)
    until("it waits for its line", lambda: "LOADING no more" in str(ask(s, "INCR", "seq:skip")))
    told = case.ctl("seq", "check", "--coordinator", redis.url, env=clock.env).stdout
    assert re.search(r"in (1 h 0|59) min.* by its line", told), told
    case.ctl("pool", "reopen", "--clock-was-ahead", "--yes", "--coordinator", redis.url, env=clock.env, expect=0)
    redis.stop()
    redis.start()
    until("numbers come", lambda: is_number(ask(s, "INCR", "seq:skip")), 15)
    numbers += [ask(s, "INCR", "seq:skip") for _ in range(20)]
    assert numbers == sorted(set(numbers)), numbers


@test("FLUSHALL and the log's pool init, older data, then the newer again: none twice", timeout=90)
def data_sets(case):
    redis = case.redis(args=("--dir", case.dir, "--dbfilename", "dump.rdb"))
    case.ctl("pool", "init", "--coordinator", redis.url, "--fresh", expect=0)
    both = [sidecar(case, redis, ["orders --max-rate 2000 --subs"]) for _ in range(2)]
    seen = set()

    def take(seconds):
        end, n = time.monotonic() + seconds, 0
        while time.monotonic() < end:
            for s in both:
                for key, count in (("seq:orders", 1), ("seq:orders", 20), ("seq:orders:acme", 1)):
                    last = ask(s, "INCRBY", key, count)
                    if not is_number(last):
                        continue
                    new = {(key, i) for i in range(last - count + 1, last + 1)}
                    assert not new & seen, sorted(new & seen)[:3]
                    seen.update(new)
                    n += 1
        return n

    def save(name):
        redis.ask("SAVE")
        shutil.copyfile(case.path("dump.rdb"), case.path(name))

    def put_back(name):
        redis.kill()
        shutil.copyfile(case.path(name), case.path("dump.rdb"))
        redis.start()

    def goes_on():  # grants pause for 2S, blocks in hand do not
        until("numbers come", lambda: take(0.5) > 20, 20)
        take(5)

    assert take(2) > 0
    save("old")
    take(2)
    save("new")
    redis.ask("FLUSHALL")
    take(2)
    command = both[0].wait_log("sidflakectl (pool init [^\"`\n]*--after-loss[^\"`\n]*)", 30).group(0)
    case.run("sh", "-c", re.sub("^sidflakectl", SIDFLAKECTL, command), expect=0)
    goes_on()
    save("again")
    for name in ("old", "new", "again"):
        put_back(name)
        goes_on()


@test("above `last` of each sidecar, where two took in turn and older data were put back, nothing comes twice")
def reopened_above_what_is_held(case):
    redis = case.redis()
    case.ctl("pool", "init", "--coordinator", redis.url, "--fresh", expect=0)
    both = [sidecar(case, redis, ["refuse --on-loss refuse"], **{"lease.renew_every": "20s"}) for _ in "ab"]
    redis.ask("SAVE")
    shutil.copy(case.path("dump.rdb"), case.path("old.rdb"))
    seen = [ask(s, "INCR", "seq:refuse") for _ in range(6) for s in both for _ in range(6)]
    until("each holds what the other's divide", lambda: all(
        s.metric("sidflake_sequence_left", name="refuse") > 80 for s in both))
    redis.kill()
    shutil.copy(case.path("old.rdb"), case.path("dump.rdb"))
    redis.start()
    last = [next(q["last"] for q in json.loads(s.http("/v1/status").text)["sequences"]) for s in both]
    assert last == [json.loads(s.http("/v1/seq/refuse/status").text)["last"] for s in both]
    case.ctl("seq", "reopen", "refuse", "--above", str(max(last)), "--yes", "--coordinator", redis.url, expect=0)
    case.ctl("seq", "reserve", "refuse", "1000", "--coordinator", redis.url, expect=0)
    left = [int(s.metric("sidflake_sequence_left", name="refuse")) for s in both]
    seen += [int(n) for s, n in zip(both, left) for n in ask(s, "LPOP", "seq:refuse", n)]
    assert len(seen) == len(set(seen)) == 72 + sum(left) and max(seen) == max(last), (last, left, max(seen))


@test("who asks first, a second after somebody has done what a refusal wants, has a number")
def first_after_a_remedy(case):
    redis = case.pool()
    end = " --on-loss refuse --max 2"
    s = sidecar(case, redis, ["few" + end, "strict --order strict" + end])
    until("both are made", lambda: ask(s, "EXISTS", "seq:few", "seq:strict") == 2)
    for name in ("few", "strict"):
        assert [ask(s, "INCR", "seq:" + name) for _ in range(2)] == [1, 2]
        assert "used up" in str(ask(s, "INCR", "seq:" + name))
        case.ctl("seq", "alter", name, "--max", "9", "--coordinator", redis.url, expect=0)
    assert ask(s, "GET", "seq:orders") is None and ask(s, "EXISTS", "seq:looked") == 0
    for name in ("orders", "looked"):
        case.ctl("seq", "create", name, "--on-loss", "refuse", "--coordinator", redis.url, expect=0)
    time.sleep(1.1)
    assert [ask(s, "INCR", "seq:" + name) for name in ("few", "strict", "orders")] == [3, 3, 1]
    assert ask(s, "EXISTS", "seq:looked") == 1


@test("a pool is lost: the log of who had numbers has the command that makes each sequence again as it was")
def lost(case):
    redis = case.pool()
    at = ("--coordinator", redis.url)
    case.ctl("seq", "create", *at, "inv", "--on-loss", "refuse", "--max", "90000", "--template", "I@{seq,width=6}", expect=0)
    case.ctl("seq", "create", *at, "skip", "--max-rate", "50", "--start", "-7", "--subs", expect=0)
    case.ctl("seq", "create", *at, "--on-loss", "trust", "--reset", "day", "--timezone=-03:30", "--", "-q", expect=0)
    s = case.sidecar(redis, {"limits.max_wait": "1s"})
    s.wait_held(2)
    keys = {"inv": "seq:inv", "skip": "seq:skip:acme", "-q": "seq:-q"}

    def definition(name):
        return re.search("definition +(.*)", case.ctl("seq", "show", *at, "--", name, expect=0).stdout).group(1)

    before = {name: definition(name) for name in keys}
    for key in keys.values():
        assert is_number(ask(s, "INCR", key)), key
    case.ctl("seq", "alter", *at, "inv", "--max", "95000", expect=0)
    before["inv"] = definition("inv")
    assert is_number(ask(s, "INCRBY", "seq:inv", 5000))
    redis.ask("FLUSHALL")
    told = shlex.split(s.wait_log("make it with `(sidflakectl [^`]*)`").group(1))
    case.ctl(*told[1:], expect=0)
    for name, key in keys.items():
        missing = re.compile('unknown sequence sequence=%s why="there is none any more: .* `(sidflakectl [^`]*)`' % name)
        until("it is told of " + name, lambda: ask(s, "INCRBY", key, 5000) and missing.search(s.log()))
        told = shlex.split(missing.search(s.log()).group(1))
        case.ctl(*told[1:3], "--yes", *told[3:], expect=0)  # it asks, since it begins before the pool was made
        assert definition(name) == before[name], name
    until("it is there", lambda: "seq reopen inv --above N" in str(ask(s, "INCRBY", "seq:inv", 5000)))
    case.ctl("seq", "reopen", *at, "inv", "--above", "20000", "--yes", expect=0)
    until("it goes on", lambda: ask(s, "INCRBY", "seq:inv", 5000) == 25000)
    s.stop()
