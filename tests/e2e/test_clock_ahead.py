"""A coordinator's clock that was ahead, and is right again: who is served meanwhile and afterwards,
for how long, and what is said. Rows of README's table of outages, measured as those of
test_outage_table.py are; who is told how long the pool refuses everybody has the status to read.
"""

import json
import os
import re
import shlex

import ids
from harness import until
from runner import test
from test_outage_table import HOUR, MINUTE, SKEWS, left, old_sidecar, refused, row

AHEAD = (1, HOUR, 48 * HOUR)  # seconds: within two skews, and beyond the horizon
PATIENCE = 30
SAID = "the coordinator's clock is behind its own past"


class Hosts:
    """Hosts whose clocks differ: time goes by on all of them. A sidecar is on the first."""

    def __init__(self, *clocks):
        self.env, self.clocks = clocks[0].env, clocks

    def step(self, seconds):
        for clock in self.clocks:
            clock.step(seconds)


def status(case, url, clock):
    return json.loads(case.ctl("pool", "status", "--json", "--coordinator", url, env=clock.env,
                               expect=0).stdout)


def renewed(*sidecars):
    for s in sidecars:
        n = s.metric("sidflake_renewals_total", result="renewed")
        until("renewed", lambda: s.metric("sidflake_renewals_total", result="renewed") > n + 1,
              PATIENCE)


def all_go_on(*sidecars):
    for s in sidecars:
        s.wait_ready(PATIENCE)
    renewed(*sidecars)


def says_how_long(case, url, clock, by):
    """Of a clock that was ahead by so many seconds, and is right."""
    [warning] = [w for w in status(case, url, clock)["warnings"] if "has shown before" in w]
    until_ms = ids.ms_of(re.search(r"granted until it is ([-0-9T:.]+Z)", warning).group(1))
    seconds = (until_ms - clock.ms()) / 1000
    assert by - SKEWS - PATIENCE < seconds <= by + PATIENCE, (by, seconds)


@row("Redis's clock ahead, and right again",
     "sidecars go on; new ones are refused while it is ahead by more than 2 s", timeout=120)
def alone(case):
    for by in AHEAD:
        clock = case.clock()
        redis = case.pool(clock=clock)
        s = case.sidecar(redis)
        s.wait_held(2)
        values = [s.id()]
        clock.step(by)
        renewed(s)
        assert left(s) < MINUTE, left(s)  # by its own clock, which is right
        new = case.sidecar(redis, wait=by == 1)
        if by > 1:
            new.wait_log("clocks differ", PATIENCE)
        values.append(s.id())
        clock.step(-by)
        all_go_on(s, new)
        ids.check_distinct(values + [s.id(), new.id()])
        assert status(case, redis.url, clock)["warnings"] == []
        s.stop()
        new.stop()


def unnoticed(case, url, clock, *sidecars):
    all_go_on(*sidecars)
    assert status(case, url, clock)["warnings"] == []


@row("Redis's clock ahead, a sidecar's with it, and right again",
     "by less than 4 s: unnoticed. By more: sidecars go on, the one that was ahead if it has a spare; "
     "new ones wait until 4 s before the time that both have shown, or "
     "`sidflakectl pool reopen --clock-was-ahead`", timeout=240)
def together(case):
    for by in AHEAD:
        right, wrong = case.clock(), case.clock()
        redis = case.pool(clock=wrong)
        every = Hosts(right, wrong)
        old = old_sidecar(case, redis, every)
        fast = case.sidecar(redis, clock=wrong)
        fast.wait_held(2)
        values = [old.id(), fast.id()]
        wrong.step(by)
        renewed(old, fast)
        values += [old.id(), fast.id()]
        assert left(old) <= HOUR + SKEWS, left(old)
        wrong.step(-by)
        values += [old.id(), fast.id()]
        new = case.sidecar(redis, clock=right, wait=False)
        if by == 1:
            unnoticed(case, redis.url, right, old, fast, new)
        else:
            new.wait_log(SAID, PATIENCE)
            says_how_long(case, redis.url, right, by)
            assert left(old) <= HOUR and by < left(fast) <= by + HOUR
            renewed(old, fast)
            every.step(by - 2 * PATIENCE)
            renewed(old, fast)
            values += [old.id(), fast.id()]
            assert new.ready_status() == 503
            every.step(2 * PATIENCE)
            all_go_on(old, fast, new)
        ids.check_distinct(values + [s.id() for s in (old, fast, new)])
        for s in (old, fast, new):
            s.stop()


@row("SQLite: the host's clock ahead, and right again",
     "by less than 4 s: unnoticed. By more: sidecars with a spare go on; others, and new ones, wait "
     "until 4 s before the time that it has shown, or the same word", timeout=240)
def sqlite(case):
    for by in AHEAD:
        clock = case.clock()
        url = "sqlite://" + case.path("pool%d.db" % by)
        case.ctl("pool", "init", "--fresh", "--coordinator", url, env=clock.env, expect=0)
        s = old_sidecar(case, url, clock)
        bare = case.sidecar(url, {"workers.spare": 0}, clock=clock)
        values = [s.id(), bare.id()]
        clock.step(by)
        renewed(s, bare)
        values += [s.id(), bare.id()]
        clock.step(-by)
        values.append(s.id())
        new = case.sidecar(url, clock=clock, wait=False)
        if by == 1:
            unnoticed(case, url, clock, s, bare, new)
        else:
            new.wait_log(SAID, PATIENCE)
            renewed(s, bare)
            assert s.log().count(SAID) <= 2, "said again and again"
            says_how_long(case, url, clock, by)
            assert refused(bare) and by < left(s) <= by + HOUR
            clock.step(by - 2 * PATIENCE)
            values.append(s.id())
            assert refused(bare) and new.ready_status() == 503
            clock.step(2 * PATIENCE)
            all_go_on(s, bare, new)
        ids.check_distinct(values + [each.id() for each in (s, bare, new)])
        for each in (s, bare, new):
            each.stop()


# ---- what an operator does of it ------------------------------------------------------------------

def was_ahead(case, by, **options):
    """A Redis, a sidecar of its host and the clock of both, which was ahead and is right."""
    clock = case.clock()
    redis = case.pool(clock=clock)
    s = case.sidecar(redis, options, clock=clock)
    s.wait_held(2)
    clock.step(by)
    renewed(s)
    value = s.id()
    clock.step(-by)
    return redis, s, clock, value


@test("ahead by an hour: a pool made anew with the options of pool status waits for all of it")
def made_anew(case):
    redis, s, clock, value = was_ahead(case, HOUR)
    args = ("--coordinator", redis.url)
    text = case.ctl("pool", "status", *args, env=clock.env, expect=0).stdout
    options = re.search(r"^options +(.*)$", text, re.M).group(1)
    s.kill()
    redis.ask("FLUSHALL")
    case.ctl("pool", "init", *args, *options.split(), env=clock.env, expect=0)
    grants_s = (ids.ms_of(status(case, redis.url, clock)["grants_from"]) - clock.ms()) / 1000
    assert 2 * HOUR - PATIENCE <= grants_s <= 2 * HOUR + SKEWS + PATIENCE, grants_s
    assert ids.time_of(value) < clock.ms() + grants_s * 1000


@test("ahead by two days: pool status has no options; it is said until when ranges may last")
def no_options(case):
    redis, _, clock, value = was_ahead(case, 48 * HOUR)
    args = ("--coordinator", redis.url)
    text = case.ctl("pool", "status", *args, env=clock.env, expect=0).stdout
    assert "--after-loss" not in text and "options      none" in text, text
    for command in ("close", "drain"):
        said = case.ctl("pool", command, "--yes", *args, env=clock.env, expect=1).stderr
        times = [ids.ms_of(t) for t in re.findall(r"until (?:it is )?([-0-9T:.]+Z)", said)]
        assert "cannot be closed" in said and len(times) == 2, said
        assert times[0] < ids.time_of(value) + 1000 * PATIENCE and ids.time_of(value) < times[1]


def says_it_is_right(case, url, clock):
    """By the command that pool status prints, as it stands."""
    [warning] = [w for w in status(case, url, clock)["warnings"] if "has shown before" in w]
    command = shlex.split(re.search(r"`sidflakectl (pool reopen [^`]*)`", warning).group(1))
    assert "--clock-was-ahead" in command and url in command, command
    return case.ctl(*command, "--yes", env=clock.env, expect=0).stdout


@test("ahead by two days: an operator's word has everybody served at once; the next restart waits for all of it")
def word(case):
    right, wrong = case.clock(), case.clock()
    redis = case.pool(clock=wrong, args=("--appendonly", "yes", "--appendfsync", "always"))
    old, fast = case.sidecar(redis, clock=right), case.sidecar(redis, clock=wrong)
    fast.wait_held(2)
    say = ("pool", "reopen", "--clock-was-ahead", "--yes", "--coordinator", redis.url)
    assert "expected the coordinator's clock to be behind" in case.ctl(*say, env=right.env, expect=1).stderr
    values = [old.id(), fast.id()]
    wrong.step(48 * HOUR)
    renewed(fast)
    values.append(fast.id())
    late = ids.time_of(values[-1])
    wrong.step(-48 * HOUR)
    new = case.sidecar(redis, clock=right, wait=False)
    printed = new.wait_log(SAID + ".*`sidflakectl (pool reopen --clock-was-ahead[^`]*)`", PATIENCE).group(1)
    assert printed in new.http("/readyz").text and printed in new.http("/").text
    right.step(-HOUR)
    assert "this host's clock" in case.ctl(*say, env=right.env, expect=1).stderr
    right.step(HOUR)
    said = says_it_is_right(case, redis.url, right)
    assert "goes on; its clock was at 20" in said, said
    all_go_on(old, fast, new)
    values += [s.id() for s in (old, fast, new) for _ in range(20)]
    ids.check_distinct(values)
    assert status(case, redis.url, right)["warnings"] == []
    redis.kill()
    redis.start()
    all_go_on(old)
    assert ids.ms_of(status(case, redis.url, right)["grants_from"]) > late + 1000 * (HOUR - PATIENCE)


@test("SQLite, ahead by an hour: the same word; a file that is lost then is made again for all of it")
def word_sqlite(case):
    clock = case.clock()
    url = "sqlite://" + case.path("pool.db")
    s = case.sidecar(url, {"coordinator.auto_init": True}, clock=clock)
    s.wait_held(2)
    clock.step(HOUR)
    renewed(s)
    values = [s.id()]
    clock.step(-HOUR)
    new = case.sidecar(url, clock=clock, wait=False)
    new.wait_log(SAID, PATIENCE)
    says_it_is_right(case, url, clock)
    all_go_on(s, new)
    values += [s.id(), new.id()]
    ids.check_distinct(values)
    new.stop()
    os.unlink(case.path("pool.db"))
    s.wait_log("pool made mode=after-loss", PATIENCE)
    assert ids.ms_of(status(case, url, clock)["grants_from"]) > ids.time_of(values[0])


@test("ahead by a day for a moment, without a spare: it is said all the time what ends it, and that does")
def without_spare(case):
    clock = case.clock()
    redis = case.pool(clock=clock)
    s = case.sidecar(redis, {"workers.spare": 0}, clock=clock)
    values = [s.id()]
    clock.step(24 * HOUR)
    renewed(s)
    values.append(s.id())
    clock.step(-24 * HOUR)
    assert refused(s)

    def said():
        return re.search("`sidflakectl (pool reopen --clock-was-ahead[^`]*)`", s.http("/readyz?verbose").text)

    command = shlex.split(until("it is said", said, PATIENCE).group(1))
    for _ in range(3):
        renewed(s)
        assert said()
    case.ctl(*command, "--yes", env=clock.env, expect=0)
    until("there are IDs", lambda: not refused(s), PATIENCE)
    ids.check_distinct(values + [s.id() for _ in range(20)])
    assert not said()


@test("a host boots a day ahead, with Redis and a sidecar: by the word others go on")
def boots_ahead(case):
    right, wrong = case.clock(), case.clock()
    redis = case.pool(clock=wrong, args=("--appendonly", "yes", "--appendfsync", "always"))
    old = old_sidecar(case, redis, Hosts(right, wrong), options={"sequences.define": ["orders --max-rate 100"]})
    with old.resp() as r:
        assert r.ask("INCR", "seq:orders") == 1
    values = [old.id()]
    redis.kill()
    old.pause()  # nobody else asks while it is ahead
    wrong.step(24 * HOUR)
    redis.start()
    new = case.sidecar(redis, clock=wrong, wait=False)
    new.wait_log("every free workerId rests", PATIENCE)
    wrong.step(-24 * HOUR)
    old.resume()
    old.wait_log(SAID, PATIENCE)
    says_it_is_right(case, redis.url, right)
    until("reasserted", lambda: old.metric("sidflake_renewals_total", result="reasserted") >= 2, PATIENCE)
    renewed(old)
    assert old.metric("sidflake_renewals_total", result="lost") == 0 and left(old) > HOUR - MINUTE
    ids.check_increasing(values + [old.id() for _ in range(20)])

    def number():
        with old.resp() as r:
            return isinstance(r.ask("INCR", "seq:orders"), int)

    until("numbers go on", number, PATIENCE)
