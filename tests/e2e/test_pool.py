"""Pools that cannot be used, and what an operator does about pools."""

import json
import os
import re
import shlex
import time

import ids
import wire
from harness import SIDFLAKECTL, rest_ms, until
from runner import test
from terminal import Terminal


def ctl_json(case, redis, *args):
    r = case.ctl("pool", *args, "--coordinator", redis.url, "--json", expect=0)
    return json.loads(r.stdout)


@test("no pool: the log, /readyz and the reply name the command to run; then it serves")
def no_pool(case):
    redis = case.redis()
    s = case.sidecar(redis, wait=False)
    s.wait_listening()
    command = "sidflakectl pool init --coordinator %s --pool default" % redis.url
    s.wait_log("error .*" + command.replace(".", r"\."))
    fresh = "`%s --fresh` if its applications never had IDs, from another URL or pool either" % command
    assert fresh in s.http("/readyz").text
    with s.resp() as r:
        assert command in str(r.ask("GET", "id:orders"))
    case.ctl(*command.split()[1:], "--fresh", expect=0)
    s.wait_ready(15)
    s.id()


@test("no pool, and a password in the URL: sidflakectl's own command wants it in a file, as the log's does")
def no_pool_password(case):
    redis = case.redis(args=("--requirepass", "se:cret"))
    url = redis.url.replace("//", "//:se%3Acret@")
    told = case.ctl("pool", "status", "--coordinator", url).stderr
    command = "sidflakectl pool init --coordinator %s --password-file FILE --pool default --fresh" % redis.url
    assert "`%s`" % command in told and "cret" not in told, told
    with open(os.open(case.path("password"), os.O_WRONLY | os.O_CREAT, 0o600), "w") as f:
        f.write("se:cret\n")
    case.ctl(*command.replace("FILE", case.path("password")).split()[1:], expect=0)
    told = case.ctl("pool", "status", "--coordinator", url, expect=0).stdout
    assert "identity" in told, told


@test("another epoch than the config's: refused, naming both")
def wrong_epoch(case):
    redis = case.pool("--fresh", "--epoch", "2025-06-01T00:00:00Z")
    s = case.sidecar(redis, {"epoch": "2026-01-01T00:00:00Z"}, wait=False)
    s.wait_listening()
    s.wait_log(r"expected .*2026-01-01T00:00:00.*found .*2025-06-01T00:00:00")
    assert s.ready_status() == 503
    with s.resp() as r:
        assert str(r.ask("GET", "id:orders")).startswith("LOADING ")
    assert redis.held() == []


@test("the pool's epoch is taken, or agreed with")
def epoch(case):
    redis = case.pool("--fresh", "--epoch", "2025-06-01T00:00:00Z")
    epoch_ms = 1748736000000
    for options in ({}, {"epoch": "2025-06-01T02:00:00+02:00"}):
        s = case.sidecar(redis, options)
        ledger = ids.Ledger(epoch_ms)
        ledger.ask(s.id, {s.worker()})
        ledger.check(1)


@test("another identity than the one held: not renewed, naming both; the range held is used up")
def wrong_identity(case):
    redis = case.pool()
    s = case.sidecar(redis)
    s.wait_held(2)
    old = redis.ask("HGET", "sidflake:{default}:h", "identity").decode()
    before = [s.id() for _ in range(20)]
    redis.ask("FLUSHALL")
    case.ctl("pool", "init", "--coordinator", redis.url, "--fresh", "--epoch",
             "2025-06-01T00:00:00Z", expect=0)
    new = redis.ask("HGET", "sidflake:{default}:h", "identity").decode()
    s.wait_log(r"expected (pool )?%s, found (pool )?%s" % (old.replace("|", r"\|"),
                                                            new.replace("|", r"\|")))
    after = [s.id() for _ in range(20)]
    ids.check_increasing(before + after)
    assert redis.held() == []


@test("a closed pool grants nothing")
def closed(case):
    redis = case.pool()
    s = case.sidecar(redis)
    s.wait_held(2)
    case.ctl("pool", "close", "--yes", "--coordinator", redis.url, expect=0)
    second = case.sidecar(redis, wait=False)
    second.wait_log("closed")
    assert second.ready_status() == 503 and redis.held() == [0, 1]
    s.id()
    assert ctl_json(case, redis, "status")["closed"] is True


@test("a pool command where there is no pool: the command that is told makes it, as it stands")
def told_to_make(case):
    redis = case.redis()
    for on in (("--coordinator", redis.url, "--pool", "a-b"), ("--coordinator", redis.url)):
        told = case.ctl("pool", "status", *on, expect=1).stderr
        command = re.search("make it with `(sidflakectl [^`]*)` if its applications never had IDs", told).group(1)
        case.run("sh", "-c", command.replace("sidflakectl", SIDFLAKECTL, 1), expect=0)
        case.ctl("pool", "status", *on, expect=0)
    assert "at least 1 argument" in case.ctl("decode", expect=2).stderr


@test("pool init without a word on what is true: exit 2, and nothing is made")
def undecided(case):
    redis = case.redis()
    r = case.ctl("pool", "init", "--coordinator", redis.url, expect=2)
    assert "--fresh" in r.stderr and "--after-loss" in r.stderr and "--workers" in r.stderr
    case.ctl("pool", "init", "--coordinator", redis.url, "--fresh", "--after-loss", expect=2)
    r = case.ctl("pool", "init", "--coordinator", redis.url, "--after-loss", expect=2)
    assert "expected --workers FROM-TO" in r.stderr, r.stderr
    for bad in (("--horizon", "1s"), ("--max-skew", "20s"), ("--epoch", "2099-01-01T00:00:00Z"),
                ("--epoch", "yesterday"), ("--settle", "29s"), ("--nonsense",)):
        r = case.ctl("pool", "init", "--coordinator", redis.url, "--fresh", *bad, expect=2)
        assert bad[0].lstrip("-") in r.stderr, (bad, r.stderr)
    for said in (("--fresh",), ("--workers", "5-9")):
        r = case.ctl("pool", "init", "--coordinator", redis.url, *said, "--ahead", "1h", expect=2)
        assert "--ahead: expected with --after-loss alone" in r.stderr, r.stderr
    assert redis.ask("DBSIZE") == 0


@test("pool init --workers makes a pool of those alone")
def some_workers(case):
    redis = case.pool("--workers", "200-299")
    assert redis.queue() == list(range(200, 300))
    for bad in ("5-4", "5", "0-32768", "65536-65539", "-1-5"):
        r = case.ctl("pool", "init", "--coordinator", redis.url, "--pool", "p", f"--workers={bad}",
                     expect=2)
        assert "expected FROM-TO within 0-32767" in r.stderr, r.stderr


ODD = ("--workers", "200-299", "--horizon", "24h", "--first-horizon", "45s", "--mature-after", "3m",
       "--max-skew", "3s", "--grace", "7s", "--epoch", "2025-06-01T00:00:00Z")


def printed_command(s, after=0):
    """What the log tells the operator to type."""
    return s.wait_log("make it with `(sidflakectl [^`]*)`", after=after).group(1)


def parameters(case, redis):
    j = ctl_json(case, redis, "status")
    return j["parameters"], j["identity"], j["epoch"]


@test("the command printed after a loss makes the pool that was lost, as it was")
def recovered(case):
    redis = case.pool("--fresh", *ODD)
    before = parameters(case, redis)
    s = case.sidecar(redis)
    s.wait_held(2)
    values = [s.id() for _ in range(20)]
    redis.ask("FLUSHALL")
    command = printed_command(s)
    s.kill()  # what it knew is in its state page
    seen = len(s.log())
    s.start(wait=False)
    again = printed_command(s, seen)
    assert again == command, (again, command)
    case.run("sh", "-c", command.replace("sidflakectl", SIDFLAKECTL, 1), expect=0)
    after = parameters(case, redis)
    assert after == before, "expected %s, found %s" % (before, after)
    until("reasserted", lambda: s.metric("sidflake_renewals_total", result="reasserted") >= 2)
    ids.check_distinct(values + [s.id() for _ in range(20)])
    new = case.sidecar(redis, wait=False)
    waits = rest_ms(new)
    assert 86400_000 < waits <= 86407_000, waits


@test("the command printed after a loss is whole, however long the coordinator's URL")
def recovered_of_long_url(case):
    at = case.path("x" * 240 + "/" + "y" * 200)  # SQLite takes little more
    os.makedirs(at)
    url = "sqlite://" + at + "/pool.db"
    case.ctl("pool", "init", "--coordinator", url, "--fresh", *ODD, expect=0)
    s = case.sidecar(url)
    s.wait_held(2)
    os.unlink(at + "/pool.db")
    command = printed_command(s)
    assert url in command and "--workers 200-299 --horizon 1d" in command, command
    case.run("sh", "-c", command.replace("sidflakectl", SIDFLAKECTL, 1), expect=0)
    until("reasserted", lambda: s.metric("sidflake_renewals_total", result="reasserted") >= 2)


@test("advice in the log works as it stands: a relative path, a pool without a free workerId")
def advice(case):
    url = "sqlite:pool.db"  # all runs in the directory of the case
    case.ctl("pool", "init", "--coordinator", url, "--workers", "0-0", expect=0)
    case.sidecar(url, {"workers.spare": 0})
    late = case.sidecar(url, {"workers.spare": 0}, wait=False)
    command = late.wait_log("all are held.*: `(sidflakectl pool list [^`]*)` tells").group(1)
    assert case.path("pool.db") in command, command
    listed = case.run("sh", "-c", "cd / && " + command.replace("sidflakectl", SIDFLAKECTL, 1), expect=0)
    assert re.search(r"^0 +\S", listed.stdout, re.M), listed.stdout
    os.unlink(case.path("pool.db"))
    command = printed_command(late)
    made = "cd / && " + command.replace("sidflakectl", SIDFLAKECTL, 1)
    case.run("sh", "-c", made, expect=0)
    assert os.path.exists(case.path("pool.db"))


@test("the command printed after a second loss makes the pool of the first, not the one before it")
def recovered_twice(case):
    redis = case.pool("--fresh", "--workers", "0-999")
    s = case.sidecar(redis)
    s.wait_held(2)
    redis.ask("FLUSHALL")
    hurry = printed_command(s).replace("--after-loss ", "").replace("0-999", "1000-1999")
    case.run("sh", "-c", hurry.replace("sidflakectl", SIDFLAKECTL, 1), expect=0)
    until("gone over", lambda: redis.held() == [1000, 1001], 30)
    before = parameters(case, redis)
    values = [s.id() for _ in range(20)]
    seen = len(s.log())
    redis.ask("FLUSHALL")
    command = printed_command(s, seen)
    case.run("sh", "-c", command.replace("sidflakectl", SIDFLAKECTL, 1), expect=0)
    assert parameters(case, redis) == before, (command, before)
    until("reasserted", lambda: s.metric("sidflake_renewals_total", result="reasserted") >= 2)
    ids.check_distinct(values + [s.id() for _ in range(20)])


@test("a settle that was made longer is known to the command for a lost pool, and to who comes then")
def least_settle(case):
    redis = case.pool("--fresh", "--first-horizon", "16s", "--mature-after", "25s", "--settle", "16s")
    s = case.sidecar(redis)
    s.wait_held(2)
    ctl_json(case, redis, "set", "--settle", "1h")
    [line] = [line for line in case.ctl("pool", "status", "--coordinator", redis.url, expect=0).stdout.splitlines()
              if line.startswith("settle")]
    assert line == "settle       1h, the horizon; was 16s, by which sidecars go on renewing", line
    told = ctl_json(case, redis, "status")["parameters"]
    assert told["least_settle_ms"] == 16000 and told["settle_ms"] == 3600_000, told
    before, seen = parameters(case, redis), len(s.log())
    until("renewed since", lambda: s.metric("sidflake_renewals_total", result="renewed") >= 2)
    s.stop()
    s.start()
    s.wait_held(2)
    redis.ask("FLUSHALL")
    command = printed_command(s, seen)
    assert " --least-settle 16s" in command, command
    case.run("sh", "-c", command.replace("sidflakectl", SIDFLAKECTL, 1), expect=0)
    assert parameters(case, redis) == before, (command, before)
    r = case.ctl("pool", "init", "--coordinator", redis.url, "--fresh", "--least-settle", "29s", expect=2)
    assert "--least-settle: expected first-horizon to horizon" in r.stderr, r.stderr


@test("the command printed where no pool was has the epoch that the configuration insists on")
def pinned_epoch(case):
    redis = case.redis()
    s = case.sidecar(redis, {"epoch": "2025-03-01T00:00:00Z"}, wait=False)
    command = s.wait_log("make it with `(sidflakectl [^`]*)`").group(1)
    case.run("sh", "-c", command.replace("sidflakectl", SIDFLAKECTL, 1), expect=0)
    s.wait_ready()
    s.id()


@test("a pool made after a loss whose horizon nobody says waits as long as any can have granted")
def unsaid_horizon(case):
    redis = case.pool()
    redis.ask("FLUSHALL")
    r = case.ctl("pool", "init", "--coordinator", redis.url, "--after-loss", "--workers", "0-9",
                 expect=0)
    assert "--horizon, that of the lost pool, was not said" in r.stdout, r.stdout
    assert "its epoch is 2026-01-01T00:00:00.000Z, as --epoch was not said" in r.stdout, r.stdout
    j = ctl_json(case, redis, "status")
    [w] = [w for w in j["warnings"] if "after a loss" in w]
    assert "new sidecars get a workerId from %s on" % r.stdout.split(" from ")[1].split(" on;")[0] in w, w
    assert w in case.ctl("pool", "status", "--coordinator", redis.url, expect=0).stdout
    new = case.sidecar(redis, wait=False)
    waits = rest_ms(new)
    assert 86400_000 < waits <= 86521_000, waits


@test("pool status: counts, identity, parameters, lifetime; --json")
def status(case):
    redis = case.pool("--fresh", "--horizon", "2h", "--grace", "30s")
    s = case.sidecar(redis)
    s.wait_held(2)
    j = ctl_json(case, redis, "status")
    assert j["workers"] == 32768 and j["held"] == 2 and j["free"] == 32766 and j["era"] == 1, j
    assert j["parameters"]["horizon_ms"] == 7200000 and j["parameters"]["grace_ms"] == 30000, j
    assert j["epoch"].startswith("2026-01-01T00:00:00") and j["identity"].endswith("38.15.10"), j
    assert abs(j["clock_skew_ms"]) < 500 and j["warnings"] == [], j
    end_ms = ids.EPOCH_MS + (1 << 38)
    assert abs(j["lifetime_ms"] - (end_ms - ids.now_ms())) < 60000, j
    text = case.ctl("pool", "status", "--coordinator", redis.url, expect=0).stdout
    assert j["identity"] in text and "32766" in text, text
    assert all(line[12] == " " != line[13] for line in text.splitlines()), text


@test("pool set --settle: a shorter one counts once the one before it has passed, a longer one at once")
def settle(case):
    redis = case.pool()

    def from_now(told):
        return ids.ms_of(told) - ids.now_ms()
    said = ctl_json(case, redis, "set", "--settle", "30m")
    assert said["settle_ms"] == 1800_000 and 3590_000 < from_now(said["counts_from"]) < 3605_000, said
    text = case.ctl("pool", "status", "--coordinator", redis.url, expect=0).stdout
    assert re.search(r"^settle +1h, the horizon; 30m from %s on$" % said["counts_from"], text, re.M), text
    text = case.ctl("pool", "set", "--coordinator", redis.url, "--settle", "30m", expect=0).stdout
    assert text == "settle is 30m, from %s on\n" % said["counts_from"], text
    said = ctl_json(case, redis, "set", "--settle", "1h")
    assert said["settle_ms"] == 3600_000 and abs(from_now(said["counts_from"])) < 10_000, said
    for bad in ("29s", "61m"):
        r = case.ctl("pool", "set", "--coordinator", redis.url, "--settle", bad, expect=2)
        assert "--settle: expected first-horizon to horizon" in r.stderr, r.stderr


@test("pool status: its line of options makes the same pool elsewhere, to the millisecond")
def options_of_a_move(case):
    old = case.pool("--fresh", "--workers", "100-199", "--horizon", "5399s", "--first-horizon",
                    "31001ms", "--mature-after", "121s", "--max-skew", "1501ms", "--settle", "601s")
    text = case.ctl("pool", "status", "--coordinator", old.url, expect=0).stdout
    for exact in ("5399s; 31001ms for the first 121s", "1501ms; grace 1m", "settle       601s"):
        assert exact in text, (exact, text)
    options = re.search(r"^options +(.*)$", text, re.M).group(1)
    assert options.startswith("--after-loss "), options  # with --workers alone nobody waits for the old one
    new = case.redis()
    case.ctl("pool", "init", "--coordinator", new.url, *options.split(), expect=0)
    assert parameters(case, new) == parameters(case, old), options


@test("pool status: the coordinator's clock is behind what it has shown before, and until when")
def clock_behind(case):
    redis = case.pool()
    redis.ask("HSET", "sidflake:{default}:h", "tmax", "%d" % (ids.now_ms() + 3600_000))
    [w] = ctl_json(case, redis, "status")["warnings"]
    assert "clock is 59 min" in w and "no workerId is granted until" in w, w
    assert "repeats them" in w, w
    for command in ("close", "drain"):
        r = case.ctl("pool", command, "--coordinator", redis.url, "--yes", expect=1)
        assert "cannot be closed before; ranges may last until 2" in r.stderr, r.stderr
    assert not ctl_json(case, redis, "status")["closed"]


@test("pool list: who holds what; --json")
def listing(case):
    redis = case.pool()
    s = case.sidecar(redis, env={"POD_NAME": "shop-7"})
    s.wait_held(2)
    rows = ctl_json(case, redis, "list")
    assert [r["worker"] for r in rows] == [0, 1], rows
    for row in rows:
        assert row["holder"]["pid"] == s.pid and row["holder"]["pod"] == "shop-7", row
        assert 0 <= row["age_ms"] < 60000 and 0 < row["range_left_ms"] <= 30000, row
    text = case.ctl("pool", "list", "--coordinator", redis.url, expect=0).stdout.splitlines()
    assert len(text) == 3 and "shop-7" in text[1] and str(s.pid) in text[2], text
    assert "earlier era" not in "".join(text), text
    s.kill()
    redis.stop()
    redis.start()
    case.sidecar(redis, wait=False).wait_log("pool reopened")
    text = case.ctl("pool", "list", "--coordinator", redis.url, expect=0).stdout.splitlines()
    assert text[1].endswith("(of an earlier era)"), text


@test("pool release: a dead holder's workerId is queued; --yes where nobody can be asked")
def release(case):
    redis = case.pool("--workers", "3-3")
    s = case.sidecar(redis, {"workers.spare": 0})
    s.kill()
    record = redis.record(3)
    hi = record["hwm"]
    args = ("pool", "release", "--coordinator", redis.url, "--worker", "3")
    assert "--yes" in case.ctl(*args, expect=2).stderr
    refused = case.ctl(*args, "--yes", expect=1).stderr
    assert "workerId 3 was renewed " in refused and "--even-if-alive" in refused, refused
    assert "by process %d of " % s.pid in refused, refused
    assert redis.held() == [3]
    past = record["hwm"] - 25_000  # as if it had been silent for longer than a renewal may take
    redis.ask("HSET", "sidflake:{default}:h", "3", "1 %d %s %d %d" % (
        past, record["token"], record["t0"] - 25_000, record["n"]))
    case.ctl(*args, "--yes", expect=0)
    hi = past
    assert redis.queue() == [3] and redis.record(3)["token"] == "-"
    assert redis.record(3)["hwm"] == hi, "its range stays taken"
    case.ctl(*args, "--yes", expect=1)
    case.ctl("pool", "release", "--coordinator", redis.url, "--yes", expect=2)
    status = ctl_json(case, redis, "status")
    from_ms = ids.ms_of(status["grants_from"])
    assert status["free"] == 1 and from_ms == hi + 1, (status, hi)
    assert any("every free workerId rests" in w and status["grants_from"] in w
               for w in status["warnings"]), status


@test("pool release: who renews less often than others is not taken for dead before its time")
def release_of_the_slow(case):
    redis = case.pool("--workers", "3-3")
    s = case.sidecar(redis, {"workers.spare": 0})
    s.kill()
    redis.ask("HSET", "sidflake:{default}:h", "every", 60_000)  # which a renewal told
    record = redis.record(3)
    args = ("pool", "release", "--coordinator", redis.url, "--worker", "3", "--yes")

    def silent_for(ms):
        redis.ask("HSET", "sidflake:{default}:h", "3", "1 %d %s %d %d" % (
            record["hwm"] - ms, record["token"], record["t0"] - ms, record["n"]))
    silent_for(40_000)
    refused = case.ctl(*args, expect=1).stderr
    left = re.search(r"was renewed 4\d\.\d+ s ago, by .* stop that one and wait for (\d+\.\d+) s", refused)
    assert left and float(left.group(1)) < 20, refused
    assert redis.held() == [3]
    silent_for(61_000)
    case.ctl(*args, expect=0)
    assert redis.queue() == [3]


@test("pool release of a holder that renewed a moment ago: said, and asked twice, on a terminal")
def release_asks_twice(case):
    redis = case.pool()
    s = case.sidecar(redis)
    s.wait_held(2)
    args = [SIDFLAKECTL, "pool", "release", "--coordinator", redis.url, "--worker", "0"]
    for first, keys in ((args, "ny"), (args, "yn"), (args + ["--yes"], "n"), (args, "yy")):
        with Terminal(first, rows=10, cols=250) as t:
            if "--yes" not in first:
                t.shows(r"^Take workerId 0 from its holder\?.*\[y/N\]")
                t.keys(keys[0] + "\n")
            if keys != "ny":
                t.shows(r"workerId 0 was renewed \d\.\d\d\d s ago, by process %d of .*who renews "
                        r"lives, and loses it\. Take it all the same\? \[y/N\]" % s.pid)
                t.keys(keys[-1] + "\n")
            t.shows("nothing was changed" if "n" in keys else "workerId 0 is back in the queue")
            assert t.end() == ("n" in keys)
        assert (0 in redis.held()) == ("n" in keys)


@test("pool release: the one who was asked about goes, and another has the workerId: it is not taken from him")
def release_of_another(case):
    redis = case.pool("--fresh", "--workers", "7-7")
    first = case.sidecar(redis, {"workers.spare": 0})
    first.wait_held(1)
    with Terminal([SIDFLAKECTL, "pool", "release", "--coordinator", redis.url, "--worker", "7"],
                  rows=10, cols=250) as t:
        t.shows("Take workerId 7 from its holder")
        t.keys("y\n")
        t.shows("by process %d of .* Take it all the same" % first.pid)
        assert first.stop() == 0
        second = case.sidecar(redis, {"workers.spare": 0})
        second.wait_held(1)
        t.keys("y\n")
        t.shows("workerId 7 is not held by that one any more: nothing was changed")
        assert t.end() == 1
    assert redis.held() == [7] and second.worker() == 7


@test("pool init asks: what is neither 1 nor 2 makes nothing, and a line too long answers nothing else")
def init_asks(case):
    redis = case.redis()
    init = [SIDFLAKECTL, "pool", "init", "--coordinator", redis.url]
    for answer in ("1000-1999", "10", "1,2", "3", "2000000000000-7", "", "one", "1\0999"):
        with Terminal(init, rows=20, cols=120) as t:
            t.shows("1, 2 or nothing to stop:")
            t.keys(answer + "\n")
            t.shows("nothing was made")
            assert t.end() == 2, answer
    assert redis.ask("KEYS", "*") == []
    for keys, workers in (("1", "0-32767"), ("2", "5-9")):
        with Terminal(init + ["--pool", "p" + keys], rows=20, cols=120) as t:
            t.shows("1, 2 or nothing to stop:")
            t.keys(keys + "\n")
            if keys == "2":
                t.shows("WorkerIds of the pool that was lost")
                t.keys(workers + "\n")
            assert t.end() == 0
        status = case.ctl("pool", "status", "--coordinator", redis.url, "--pool", "p" + keys, expect=0).stdout
        assert workers in status, status


@test("pool release of a living holder: it stops at once and the spare takes over")
def release_living(case):
    redis = case.pool()
    s = case.sidecar(redis)
    s.wait_held(2)
    before = [s.id() for _ in range(20)]
    case.ctl("pool", "release", "--coordinator", redis.url, "--worker", "0", "--yes",
             "--even-if-alive", expect=0)
    s.wait_log('workerId lost worker=0 why="an operator released it"')
    after = [s.id() for _ in range(20)]
    ids.check_distinct(before + after)
    assert 0 not in {ids.worker_of(v) for v in after}
    assert s.metric("sidflake_renewals_total", result="lost") == 1
    assert s.metric("sidflake_coordinator_data_loss_total") == 0, "nothing was forgotten"


@test("pool check: doubled, lost and orphaned are found, and repaired")
def check(case):
    redis = case.pool()
    s = case.sidecar(redis)
    s.wait_held(2)
    args = ("pool", "check", "--coordinator", redis.url)
    case.ctl(*args, expect=0)
    s.pause()  # a renewal would mend the index
    free, exp = "sidflake:{default}:free", "sidflake:{default}:exp"
    redis.ask("RPUSH", free, "100")
    redis.ask("LREM", free, "0", "200")
    redis.ask("ZREM", exp, "1")
    redis.ask("RPUSH", free, "junk", "99999", "007")
    found = case.ctl(*args, "--json", expect=1)
    j = json.loads(found.stdout)
    assert j["doubled"] == [100] and j["lost"] == [200] and j["orphaned"] == [1], j
    assert j["strangers"] == 3 and j["faults"] == 5 and j["harmless"] == 1, j
    text = case.ctl(*args, expect=1).stdout
    assert "doubled" in text and "lost" in text and "orphaned" in text, text
    case.ctl(*args, "--repair", expect=0)
    case.ctl(*args, expect=0)
    assert redis.free() == 32766 and len(set(redis.queue())) == 32766 and redis.held() == [0, 1]
    redis.ask("RPUSH", free, "100")  # what is harmless, alone
    assert "harmless" in case.ctl(*args, expect=0).stdout
    assert case.ctl(*args, "--repair", expect=0).stdout.endswith("repaired\n")
    assert redis.free() == 32766
    redis.ask("RPUSH", free, "junk")  # a stranger alone
    case.ctl(*args, expect=1)
    case.ctl(*args, "--repair", expect=0)
    assert redis.free() == 32766 and redis.queue().count(100) == 1


@test("a pool's queue is gone: sidecar and pool status say so, and the command that mends it")
def queue_gone(case):
    redis = case.pool("--workers", "7-9")
    redis.ask("DEL", "sidflake:{default}:free")
    assert "grants_from" in ctl_json(case, redis, "status")
    s = case.sidecar(redis, wait=False)
    s.wait_log("no free workerId: .*sidflakectl pool check")
    status = ctl_json(case, redis, "status")
    told = [w for w in status["warnings"] if "not in the queue" in w]
    assert len(told) == 1 and told[0].startswith("3 workerIds are free"), status
    case.ctl(*shlex.split(re.search("`sidflakectl ([^`]*)`", told[0]).group(1)), expect=0)
    s.wait_ready()
    assert not any("not in the queue" in w for w in ctl_json(case, redis, "status")["warnings"])


@test("pool commands without a pool or a Redis: exit 1 and 3, in words")
def absent(case):
    redis = case.redis()
    release_one = ["release", "--worker", "1", "--yes"]
    for command in (["status"], ["list"], ["check"], ["close"], release_one):
        r = case.ctl("pool", *command, "--coordinator", redis.url, expect=1)
        assert "no pool" in r.stderr and "pool init" in r.stderr, r.stderr
    redis.kill()
    r = case.ctl("pool", "status", "--coordinator", redis.url, expect=3)
    assert "127.0.0.1" in r.stderr, r.stderr
    case.ctl("pool", "status", "--coordinator", "redis://u:hunter2@127.0.0.1:1/x", expect=2)
    case.ctl("pool", "status", expect=2)
    case.ctl("pool", "frobnicate", expect=2)
    case.ctl(expect=2)


@test("sidflakectl decode and range")
def decode(case):
    redis = case.pool()
    s = case.sidecar(redis)
    value = s.id()
    ms, worker, sequence = ids.decode(value)
    j = json.loads(case.ctl("decode", str(value), "--json", expect=0).stdout)[0]
    assert (j["unix_ms"], j["worker"], j["sequence"]) == (ms, worker, sequence), j
    text = case.ctl("decode", str(value), expect=0).stdout
    assert time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(ms / 1000)) in text, text
    assert "worker=%d" % worker in text and "sequence=%d" % sequence in text, text
    other = json.loads(case.ctl("decode", "--epoch", "1970-01-01T00:00:00Z", "--json", str(value),
                                expect=0).stdout)[0]
    assert other["unix_ms"] == ms - ids.EPOCH_MS
    for bad in ("-1", "abc", "9223372036854775808", ""):
        case.ctl("decode", "--", bad, expect=2)
    day = ("--from", "2026-11-01T00:00:00Z", "--to", "2026-11-30T23:59:59.999Z")
    lo, hi = map(int, case.ctl("range", *day, expect=0).stdout.split())
    assert ids.decode(lo) == (1793491200000, 0, 0), ids.decode(lo)
    assert ids.decode(hi) == (1796083199999, 32767, 1023), ids.decode(hi)
    case.ctl("range", "--from", "2026-11-01T00:00:00Z", expect=2)
    case.ctl("range", "--from", day[3], "--to", day[1], expect=2)


@test("sidflakectl next and ping, over both protocols, TCP and unix")
def asks(case):
    redis = case.pool()
    s = case.sidecar(redis)
    values = []
    for where in ("tcp://127.0.0.1:%d" % s.mc_port, "unix://" + s.mc_sock,
                  "tcp://127.0.0.1:%d" % s.resp_port, "unix://" + s.resp_sock):
        out = case.ctl("next", "orders", "-n", "5", "--connect", where, expect=0).stdout
        values += [int(line) for line in out.splitlines()]
        case.ctl("ping", "--connect", where, expect=0)
    assert len(values) == 20
    ids.check_increasing(values)
    redis2 = case.redis()
    empty = case.sidecar(redis2, wait=False)
    empty.wait_listening()
    for port in (empty.mc_port, empty.resp_port):
        assert case.ctl("ping", "--connect", "tcp://127.0.0.1:%d" % port).returncode == 1
        assert case.ctl("next", "orders", "--connect", "tcp://127.0.0.1:%d" % port).returncode == 1
    s.stop()
    case.ctl("ping", "--connect", "unix://" + s.mc_sock, expect=3)


@test("a dead holder's workerId rests for its range and grace, then is queued again")
def reaped(case):
    clock = case.clock()
    redis = case.pool("--fresh", "--grace", "10s", clock=clock)
    s = case.sidecar(redis, clock=clock)
    s.wait_held(2)
    dead = [s.id() for _ in range(20)]
    s.kill()
    clock.step(35)
    second = case.sidecar(redis, {"workers.spare": 0}, clock=clock)
    assert redis.held() == [0, 1, 2]
    second.kill()
    clock.step(45)
    third = case.sidecar(redis, {"workers.spare": 0}, clock=clock)
    until("reaped", lambda: sorted(redis.queue()[-3:]) == [0, 1, 2])
    ids.check_distinct(dead + [third.id()])
    assert redis.record(0)["token"] == "-"


RISKS = ("may evict the pool's keys when its memory is full", "keeps nothing over a restart")


@test("a Redis that may evict or saves nothing: pool init, pool status, log, /readyz?verbose, page warn")
def risky(case):
    redis = case.redis(args=("--save", "", "--maxmemory", "100mb", "--maxmemory-policy",
                             "allkeys-lru"))
    made = case.ctl("pool", "init", "--coordinator", redis.url, "--fresh", expect=0)
    warnings = ctl_json(case, redis, "status")["warnings"]
    text = case.ctl("pool", "status", "--coordinator", redis.url, expect=0).stdout
    s = case.sidecar(redis)
    for risk in RISKS:
        assert "warning: the coordinator's Redis " + risk in made.stderr, made.stderr
        assert any(risk in w for w in warnings) and risk in text, (warnings, text)
        s.wait_log("warn .*" + risk)
        until("/readyz?verbose has it", lambda: risk in s.http("/readyz?verbose").text)
        assert risk.replace("'", "&#39;") in s.http("/").text.replace("&apos;", "&#39;")
    assert s.ready_status() == 200
    again = ctl_json(case, redis, "init", "--fresh", "--if-missing")
    assert len(again["warnings"]) == 2, again
    redis.ask("CONFIG", "SET", "maxmemory-policy", "noeviction")
    redis.ask("CONFIG", "SET", "appendonly", "yes")
    assert ctl_json(case, redis, "status")["warnings"] == []


@test("pool status, list and check of a Redis that is full say what they say otherwise")
def without_memory(case):
    redis = case.pool()
    case.sidecar(redis).wait_held(2)
    with wire.Resp(redis.sock) as r:
        assert r.ask("CONFIG", "SET", "maxmemory", "1") == b"OK"
        assert r.ask("MULTI") == b"OK" and "OOM" in str(r.ask("HGETALL", "k"))
        assert r.ask("DISCARD") == b"OK"
    [warning] = ctl_json(case, redis, "status")["warnings"]
    assert "no workerId is granted or renewed: ZADD: expected an answer, found -OOM" in warning, warning
    assert [w["worker"] for w in ctl_json(case, redis, "list")] == [0, 1]
    case.ctl("pool", "check", "--coordinator", redis.url, expect=0)
    late = case.sidecar(redis, wait=False)
    late.wait_log("found -OOM")


@test("pool status of a Redis that refuses to list: it says that the workerIds cannot be read, and tells the rest")
def without_list(case):
    redis = case.pool()
    with wire.Resp(redis.sock) as r:
        assert r.ask("ACL", "SETUSER", "default", "-lrange") == b"OK"
    said = re.compile("found -(NOPERM|ERR .*ACL failure|ERR The user executing the script can't run)")
    told = case.ctl("pool", "status", "--coordinator", redis.url, expect=0).stdout
    assert re.search("warning +the workerIds cannot be read: .*" + said.pattern, told), told
    warnings = ctl_json(case, redis, "status")["warnings"]
    assert len(warnings) == 1 and said.search(warnings[0]), warnings
    assert said.search(case.ctl("pool", "list", "--coordinator", redis.url, expect=1).stderr)


@test("decode and range: the epoch of the pool at --coordinator, or of the sidecar at --connect; what they warn of")
def epochs(case):
    redis = case.pool("--fresh", "--workers", "5-9", "--epoch", "2025-06-01T00:00:00Z")
    case.ctl("pool", "init", "--coordinator", redis.url, "--pool", "other", "--fresh", expect=0)
    s = case.sidecar(redis)
    value = s.id()
    on = ("--coordinator", redis.url)
    day = ("--from", "2025-12-01T00:00:00Z", "--to", "2025-12-02T00:00:00Z")
    lo, _ = case.ctl("range", *day, "--epoch", "2025-06-01T00:00:00Z", expect=0).stdout.split()
    ways = [on] + [("--connect", where) for where in (
        "tcp://127.0.0.1:%d" % s.mc_port, "unix://" + s.resp_sock)]
    for way in ways:
        r = case.ctl("decode", str(value), *way, "--json", expect=0)
        [j] = json.loads(r.stdout)
        assert abs(j["unix_ms"] - ids.now_ms()) < 60_000 and j["worker"] in (5, 6), j
        assert j["warnings"] == [] and r.stderr == "", (j, r.stderr)
        assert case.ctl("range", *day, *way, expect=0).stdout.split()[0] == lo
        case.ctl("decode", str(value), *way, "--epoch", "2025-06-01T00:00:00Z", expect=2)
    # Without a word on it, 2026-01-01: these times are to come, and stdout is as ever.
    r = case.ctl("decode", str(value), expect=0)
    assert re.search(r"%d: its time is \d+ d .* in the future: the epoch, which nobody said" % value,
                     r.stderr), r.stderr
    assert len(r.stdout.splitlines()) == 1 and "worker=" in r.stdout, r.stdout
    r = case.ctl("decode", str(value), "--json", *on, "--pool", "other", expect=0)
    assert "in the future" in json.loads(r.stdout)[0]["warnings"][0] and "nobody" not in r.stderr
    for worker in (4, 10):
        foreign = (ids.decode(value)[0] - ids.EPOCH_MS) << 25 | worker << 10
        r = case.ctl("decode", str(foreign), *on, expect=0)
        assert "workerId %d is none of the pool's, which has 5 to 9" % worker in r.stderr, r.stderr
    r = case.ctl("range", "--from", "2026-01-01T00:00:00Z", "--to", "2030-01-01T00:00:00Z", *on, expect=0)
    assert "--to is " in r.stderr and "to come" in r.stderr and len(r.stdout.split()) == 2
    with Terminal([SIDFLAKECTL, "decode", "1"], rows=5, cols=200) as t:
        t.shows("the epoch is taken to be 2026-01-01T00:00:00")
        assert t.end() == 0
    nobody = case.sidecar(case.redis(), wait=False)
    nobody.wait_listening()
    r = case.ctl("decode", "1", "--connect", "unix://" + nobody.mc_sock, expect=1)
    assert "has found no pool yet" in r.stderr, r.stderr


@test("after the printed recovery pool status, list and check tell what is so")
def after_recovery(case):
    redis = case.pool("--workers", "0-9")
    sidecars = [case.sidecar(redis, env={"POD_NAME": "shop-%d" % i}) for i in (1, 2)]
    for s in sidecars:
        s.wait_held(2)
    redis.ask("FLUSHALL")
    command = printed_command(sidecars[0])
    case.run("sh", "-c", command.replace("sidflakectl", SIDFLAKECTL, 1), expect=0)
    for s in sidecars:
        until("reasserted", lambda: s.metric("sidflake_renewals_total", result="reasserted") >= 2)
    status = ctl_json(case, redis, "status")
    assert status["held"] == 4 and status["free"] == 6, status
    made = ids.ms_of(status["made"])
    assert ids.ms_of(status["grants_from"]) == made + 3604_000 + 1, status
    text = case.ctl("pool", "status", "--coordinator", redis.url, expect=0).stdout
    assert "0 to 9: 4 held, 6 free" in text, text
    assert "new sidecars get a workerId from %s on" % ctl_time_of(made + 3604_000) in text, text
    rows = ctl_json(case, redis, "list")
    assert [r["holder"]["pod"] for r in rows] == ["shop-1", "shop-1", "shop-2", "shop-2"], rows
    check = case.ctl("pool", "check", "--coordinator", redis.url, expect=0).stdout
    assert re.search(r"^queued +4: 0 1 2 3 \(harmless: whoever claims passes over it\)$", check, re.M)
    assert check.endswith("nothing is wrong\n"), check
    redis.ask("DEL", "sidflake:{default}:who")
    until("named again", lambda: all(r["holder"] for r in ctl_json(case, redis, "list")))


def ctl_time_of(ms):
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(ms // 1000)) + ".%03dZ" % (ms % 1000)
