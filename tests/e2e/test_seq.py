"""sidflakectl seq: what operators do with sequences, in a real Redis and in an SQLite file."""

import json
import re
import time

import harness
import ids
from harness import until
from runner import test
from terminal import Terminal

MAX = 2**53 - 1
SKIP, REFUSE = ("--max-rate", "100"), ("--on-loss", "refuse")


class Seq:
    """`sidflakectl seq` on one coordinator."""

    def __init__(self, case, url, env=None):
        self.case, self.url, self.env = case, url, env

    def run(self, *args, expect=0):
        return self.case.ctl("seq", *args[:1], "--coordinator", self.url, *args[1:], env=self.env,
                             expect=expect)

    def out(self, *args):
        return self.run(*args).stdout

    def refused(self, *args, expect=1):
        r = self.run(*args, expect=expect)
        assert r.stdout == "" and r.stderr.startswith("sidflakectl: "), (args, r.stdout, r.stderr)
        return r.stderr

    def json(self, *args, expect=0):
        return json.loads(self.run(args[0], "--json", *args[1:], expect=expect).stdout)

    def reserve(self, *args):
        j = self.json("reserve", *args)
        return j["first"], j["last"]


def sqlite(case):
    url = "sqlite://" + case.path("pool.db")
    case.ctl("pool", "init", "--coordinator", url, "--fresh", expect=0)
    return Seq(case, url)


def both(case):
    return [Seq(case, case.pool().url), sqlite(case)]


@test("seq create, reserve, list, show: numbers count, and what is there is told in text and in JSON")
def counts(case):
    for seq in both(case):
        made = seq.out("create", "orders", *SKIP)
        assert made.startswith('made sequence "orders": --start 1 --increment 1 --max-rate 100 --begins 20'), made
        assert seq.out("create", "orders", *SKIP).startswith("there is already, the same,")
        assert seq.reserve("orders", "5") == (1, 5) and seq.reserve("orders", "1") == (6, 6)
        assert seq.out("reserve", "orders", "4") == 'sequence "orders": 7 to 10\n'
        down = seq.json("create", "down", "--start", "-5", "--increment", "-10", "--max", "-100", *REFUSE)
        assert down["made"] is True and down["generation"] == 1, down
        assert down["definition"] == {
            "start": -5, "increment": -10, "max": -95, "order": "sidecar", "cycle": False,
            "reset": "never", "timezone": "UTC", "max_subs": 0, "on_loss": "refuse", "max_rate": None,
            "begins": down["definition"]["begins"]}, down
        assert seq.json("reserve", "down", "3") == {"name": "down", "sub": None, "period": None, "first": -5,
                                                    "last": -25, "increment": -10, "count": 3}
        assert seq.out("reserve", "down", "2") == 'sequence "down": -35 to -45, by -10\n'
        listed = seq.json("list")
        assert [(v["name"], v["state"], v["highest"]) for v in listed] == [
            ("down", "open", -45), ("orders", "open", 10)], listed
        assert set(listed[0]) == {"name", "state", "generation", "definition", "highest", "highest_told", "subs"}
        assert re.search(r"^orders +open +10 +--start 1 --increment 1 --max-rate 100 --begins", seq.out("list"), re.M)
        shown = seq.json("show", "orders")
        assert shown["answer"] == "granted" and shown["why"] is None and shown["next"] == 11, shown
        assert shown["era"] == shown["accounted_era"] == 1 and shown["definition"]["max"] == MAX, shown
        assert shown["counters"] == [{"period": None, "sub": None, "unreadable": False, "generation": 1,
                                      "next": 11, "skipped": 0, "changes": 4, "stale": False}], shown
        assert re.search(r"^next +11$", seq.out("show", "orders"), re.M)
        assert json.loads(seq.run("list", "--json", "--pool", "none", expect=1).stdout or "null") is None


@test("seq create: what is wrong is said with what was expected, and nothing is made")
def refused_creations(case):
    wrong = {
        ("",): "expected a name of 1 to 64", ("a b",): "expected a name of 1 to 64",
        ("x" * 65,): "expected a name of 1 to 64", ("a", "--start", "1.5"): "--start: expected a whole number",
        ("a", "--start", "9007199254740992"): "--start: expected a whole number",
        ("a", "--increment", "0"): "increment: expected another number than 0",
        ("a", "--max", "0"): "max: expected one that is not before start, 1, found 0",
        ("a", "--order", "loose"): '--order: expected sidecar or strict, found "loose"',
        ("a", "--reset", "week"): '--reset: expected never, hour, day, month or year, found "week"',
        ("a", "--reset", "day", "--timezone", "Europe/Berlin"): "periods keep one offset all the year",
        ("a", "--reset", "day", "--timezone", "+15:00"): 'up to 14:00, found "+15:00"',
        ("a", "--timezone", "+01:00"): "--timezone: expected with --reset",
        ("a", "--cycle"): "cycle: expected --order strict",
        ("a", "--subs", "--max-subs", "0"): "--max-subs: expected a number from 1 to 1000000",
        ("a", "--on-loss", "skip"): "--on-loss: expected refuse or trust, or --max-rate R",
        ("a", "--on-loss", "refuse", "--max-rate", "1"): "expected one of --max-rate and --on-loss, found both",
        ("a", "--max-rate", "0"): "max-rate: expected 1 to 1000000000, found 0",
        ("a", "--max-rate", "1000", "--max", "2147483647"): "expected enough for 50 years",
        ("a", "--begins", "noon"): "--begins: expected a time as in RFC 3339",
        ("a", "--begins", "1969-01-01T00:00:00Z"): "--begins: expected a time after 1970",
        ("a", "--new", "--begins", "2026-01-01T00:00:00Z"): "expected one of --new",
        ("a", "--reuse"): "expected --no-older-data as well", ("a", "--no-older-data"): "expected with --reuse",
        ("a", "--new"): "seq create: expected --yes where there is no terminal",
        ("a", "--nonsense"): "nonsense", ("a", "--back"): "seq create does not take --back",
        (): "seq create: expected 1 argument, found 0", ("a", "b"): "expected 1 argument, found 2",
    }
    for seq in both(case):
        for args, told in wrong.items():
            r = seq.run("create", *args, expect=2)
            assert told in r.stderr and not r.stdout, (args, r.stderr)
        assert seq.json("list") == []
    r = case.ctl("seq", "create", "a", expect=2)
    assert "seq create: expected --coordinator URL" in r.stderr, r.stderr
    assert "expected a coordinator with a pool" in Seq(case, "static:5").refused("list")
    assert "no pool" in Seq(case, case.redis().url).refused("create", "a", *SKIP)
    assert "down: " in Seq(case, "redis://127.0.0.1:1/0").refused("list", expect=3)


@test("seq create on Redis wants a word on what happens after a loss, and says what each means; SQLite does not")
def after_a_loss_is_said(case):
    redis, file = both(case)
    told = redis.refused("create", "a", expect=2)
    for word in "--max-rate R ", "--on-loss refuse ", "--on-loss trust ":
        assert "\n  " + word in told, told
    assert redis.json("list") == []
    notes = redis.out("create", "a", *SKIP)
    assert "after each restart of the coordinator grants pause for 4.000 s, and numbers skip to the line of 100 a " \
        "second: a day from now to 8641000, a year from now to 3153601000" in notes, notes
    assert "each new sub begins at the line" not in notes
    assert "each new sub begins at the line" in redis.out("create", "b", "--subs", *SKIP)
    day = ("--reset", "day", "--date-back", "0d", *SKIP)
    for name, template, words, says in (
            ("e", "@{seq,width=5}", SKIP, "up to 99999: the line is behind them 16 min 30 s after it begins"),
            ("f", "@{date,%Y%m%d}-@{seq,width=6}", day, "up to 999999: the line is behind them 2 h 46 min"),
            ("g", "@{date,%Y%m%d}-@{seq,width=7}", day, None), ("h", "@{seq,width=12}", SKIP, None)):
        notes = redis.out("create", name, "--template", template, *words)
        assert says in notes if says else "its template" not in notes, notes
    assert "grants stop at each restart" in redis.out("create", "c", *REFUSE)
    assert "by your word" in redis.out("create", "d", "--on-loss", "trust")
    for i, words in enumerate(((), SKIP, REFUSE, ("--on-loss", "trust"))):
        notes = file.json("create", "s%d" % i, *words)["notes"]
        assert len(notes) == 1 and "there is no line, and numbers never skip" in notes[0], notes
    assert file.json("show", "s0")["definition"]["on_loss"] == "refuse"


@test("seq create where there is one: the same is no error, another definition names both, another max is told")
def there_already(case):
    for seq in both(case):
        seq.run("create", "a", "--max", "500", "--reset", "day", "--timezone", "-03:30", *REFUSE)
        assert seq.json("create", "a", "--max", "500", "--reset", "day", "--timezone", "-03:30", *REFUSE)["made"] is False
        told = seq.refused("create", "a", "--start", "7", *REFUSE)
        assert "expected --start 7 --increment 1 --on-loss refuse, found one of another definition: --start 1 " \
            "--increment 1 --max 500 --reset day --timezone -03:30 --on-loss refuse --begins 20" in told, told
        told = seq.refused("create", "a", "--max", "900", "--reset", "day", "--timezone", "-03:30", *REFUSE)
        assert "expected 900, found 500" in told and "seq alter" in told, told
        told = seq.refused("create", "a", "--max", "400", "--reset", "day", "--timezone", "-03:30", *REFUSE)
        assert "expected 400, found 500" in told and "never lowered" in told, told
        # what show tells makes it again as it was
        options = re.search("^definition +(.*)$", seq.out("show", "a"), re.M).group(1).split()
        assert seq.json("create", "a", *options)["made"] is False


@test("seq alter and set: max only rises; set goes ahead, up to the line, and back only by two words")
def altered(case):
    for seq in both(case):
        seq.run("create", "a", "--max", "100", *REFUSE)
        told = seq.refused("reserve", "a", "101")
        assert "used up: its max is 100, and the next number is 1; `seq alter --max` raises it" in told, told
        assert "expected a max behind its own, 100, found 99" in seq.refused("alter", "a", "--max", "99")
        assert "expected --max M" in seq.refused("alter", "a", expect=2)
        assert seq.json("alter", "a", "--max", "200") == {"name": "a", "max": 200}
        assert seq.reserve("a", "101") == (1, 101)
        assert "the next number is 150; sidecars give out what they hold until they ask for more" in seq.out("set", "a", "150")
        told = seq.refused("set", "a", "120")
        assert "expected its next number or one behind it, 150, found 120" in told and "--back" in told, told
        assert "expected --no-older-data as well" in seq.refused("set", "a", "120", "--back", expect=2)
        assert "expected with --back" in seq.refused("set", "a", "160", "--no-older-data", expect=2)
        words = ("--back", "--no-older-data")
        assert "expected --yes where there is no terminal" in seq.refused("set", "a", "1", *words, expect=2)
        for words_of in ("set", "a", "201"), ("reopen", "a", "--above", "201", "--yes"):
            told = seq.refused(*words_of)
            assert "expected a number from its start, 1, to its max, 200, found 201; `seq alter" in told, told
        for bad in "", "x", "1e3", "9007199254740992":
            assert "seq set: expected N, a whole number" in seq.refused("set", "a", bad, expect=2)
        assert seq.reserve("a", "1") == (150, 150)
        assert seq.json("set", "a", "20", "--yes", *words) == {"name": "a", "sub": None, "period": None, "next": 20}
        assert seq.reserve("a", "2") == (20, 21)
        gaps = seq.json("gaps", "a")
        assert gaps["skipped"] == 48 and gaps["revoked"]["from"] == 1, gaps
        assert 'sequence "a": 48 numbers were skipped' in seq.out("gaps", "a")
        seq.run("create", "down", "--start", "0", "--increment", "-2", *REFUSE)
        assert seq.json("set", "down", "--", "-5")["next"] == -6
        assert "a negative number stands behind --" in seq.run("set", "down", "-75", expect=2).stderr
    redis = Seq(case, case.pool().url)
    redis.run("create", "a", *SKIP)
    told = redis.refused("set", "a", "100000")
    assert "by its line of 100 numbers a second" in told, told
    at = ids.ms_of(re.search("expected at (\\S+) or later", told).group(1))
    assert 980_000 < at - ids.now_ms() <= 990_000, told  # 99,999 - 999 at 100 a second
    assert "by its line" in redis.refused("reserve", "a", "5000")


@test("seq set and drop beside a sidecar: it gives out what it holds, as is said, until it asks for more")
def held(case):
    for seq in both(case):
        s = case.sidecar(seq.url, {"sequences.define": ["a " + " ".join(REFUSE), "b " + " ".join(REFUSE)],
                                   "limits.max_wait": "5s"})
        changes = {"a": (("set", "a", "5000"), 5000, 5001), "b": (("drop", "b", "--yes"), *2 * ["ERR the sequence b was dropped"])}
        with s.resp() as r:
            for name, (change, *then) in changes.items():
                until("a number of " + name, lambda: r.ask("INCR", "seq:" + name) == 1)
                assert "until they ask for more" in seq.out(*change)
                numbers = [r.ask("INCR", "seq:" + name)]
                while numbers[-1] == len(numbers) + 1 and len(numbers) < 100:
                    numbers.append(r.ask("INCR", "seq:" + name))
                assert 1 < len(numbers) < 100, numbers
                found = [numbers[-1], r.ask("INCR", "seq:" + name)]
                assert list(map(str, found)) == list(map(str, then)), (numbers, found)


@test("seq reserve: counters of subs and periods; counts, names and dates that cannot be")
def subs_and_periods(case):
    for seq in both(case):
        seq.run("create", "a", "--reset", "day", "--timezone", "+05:30", "--max-subs", "2", *REFUSE)
        seq.run("create", "plain", *REFUSE)
        one = seq.json("reserve", "a", "3", "--sub", "acme")
        assert (one["first"], one["last"], one["sub"]) == (1, 3, "acme"), one
        day = one["period"]
        assert re.fullmatch(r"\d{4}-\d\d-\d\d", day), one
        assert seq.json("reserve", "a", "1", "--sub", "b:c", "--period", day)["first"] == 1
        assert "expected at most 2 subs" in seq.refused("reserve", "a", "1", "--sub", "third")
        assert 'sequence "a:acme of %s": 4 to 5' % day in seq.out("reserve", "a", "2", "--sub", "acme")
        seq.run("create", "skips", "--reset", "month", *SKIP)
        for told in seq.refused("reserve", "skips", "1", "--period", "2999-01"), seq.refused(
                "sweep", "skips", "--before", "2999-01"):
            assert "its month 2999-01 begins at 2999-01-01T00:00" in told and "line" not in told, told
        assert "that period is over" in seq.refused("reserve", "a", "1", "--period", "2026-01-01")
        assert "not yet" in seq.refused("reserve", "a", "1", "--period", "2999-01-01")
        told = seq.refused("reserve", "a", "1", "--period", "2026-02-30")
        assert "expected a period such as %s, since it begins anew by day, found \"2026-02-30\"" % day in told, told
        assert "expected no period" in seq.refused("reserve", "plain", "1", "--period", day)
        assert "made without --subs" in seq.refused("reserve", "plain", "1", "--sub", "x")
        for bad in "a b", "", "acme#1":  # the last would be a counter that no client has
            assert "--sub: expected 1 to 100" in seq.refused("reserve", "a", "1", "--sub", bad, expect=2)
        assert "--period: expected a date" in seq.refused("reserve", "a", "1", "--period", "to day", expect=2)
        for bad in "0", "-1", "1000001", "many":
            r = seq.run("reserve", "plain", "--", bad, expect=2)
            assert "expected 1 to 1000000 numbers" in r.stderr, r.stderr
        assert seq.reserve("plain", "1000000") == (1, 1000000)
        shown = seq.json("show", "a", "--sub", "acme")
        assert shown["next"] == 6 and shown["subs"] == 2, shown
        assert [(c["sub"], c["next"]) for c in shown["counters"]] == [(None, 1), ("acme", 6), ("b:c", 2)], shown
        told = seq.refused("sweep", "a", "--before", "2999-01-01")
        assert "not yet" in told and "; its day 2999-01-01 begins at 2998-12-31T18:30:00.000Z" in told, told
        assert seq.json("sweep", "a", "--before", day) == {"name": "a", "swept": True, "closed_before": day}
        assert seq.json("show", "a")["closed_before"] == day


@test("seq drop: the name stays taken; --reuse goes on behind; who asks without a terminal has to say --yes")
def dropped(case):
    for seq in both(case):
        seq.run("create", "a", *REFUSE)
        seq.reserve("a", "10")
        assert "seq drop: expected --yes" in seq.refused("drop", "a", expect=2)
        assert seq.reserve("a", "1") == (11, 11)
        assert seq.json("drop", "a", "--yes") == {"name": "a", "dropped": True}
        assert "it was dropped" in seq.refused("reserve", "a", "1")
        assert "it was dropped" in seq.refused("drop", "a", "--yes")
        assert "`seq create --reuse` makes it again" in seq.refused("create", "a", *REFUSE)
        assert seq.json("list")[0]["state"] == "dropped"
        reuse = ("--reuse", "--no-older-data", *REFUSE)
        assert "expected --yes" in seq.refused("create", "a", *reuse, expect=2)
        assert seq.json("create", "a", "--yes", *reuse)["generation"] == 2
        assert seq.reserve("a", "1") == (12, 12)
        assert len(seq.json("show", "a")["counters"]) == 2
        seq.run("sweep", "a")
        assert len(seq.json("show", "a")["counters"]) == 1
        hourly = ("create", "hour", "--reset", "hour", "--reuse", "--no-older-data", "--yes")
        seq.run("create", "hour", "--reset", "hour", *SKIP)
        seq.reserve("hour", "10")
        seq.run("drop", "hour", "--yes")
        if seq.url.startswith("sqlite"):
            seq.run(*hourly, *SKIP)
            assert seq.reserve("hour", "1") == (11, 11)
        else:
            told = seq.refused(*hourly, *SKIP)
            assert "it would go on from 391001 in each hour" in told and "--on-loss refuse" in told, told
            seq.run(*hourly, *REFUSE)
            assert seq.reserve("hour", "1") == (391001, 391001)
        for command in ("show",), ("gaps",), ("drop", "--yes"), ("alter", "--max", "5"), ("sweep",):
            told = seq.refused(command[0], "none", *command[1:])
            more = "" if seq.url.startswith("sqlite") else " --max-rate R"
            makes = "there is none of this name: `sidflakectl seq create none%s --coordinator %s" % (more, seq.url)
            assert makes in told, told
        assert re.search("seq create.* --coordinator .* -- -x`", seq.refused("show", "--", "-x"))


def forget(redis, name, seen):
    """What a sidecar says that it was granted is ahead of top, which stands before it in the row."""
    key = ("sidflake:{default}:h", "seq " + name)
    row = redis.ask("HGET", *key).decode().split(" ")
    row[8] = str(seen)
    redis.ask("HSET", *key, " ".join(row))


@test("seq asks on a terminal what gives up safety; no means that nothing is changed")
def asks(case):
    redis = case.pool()
    seq = Seq(case, redis.url)
    seq.run("create", "a", *REFUSE)
    seq.reserve("a", "10")
    seq.run("create", "forgot", *REFUSE)
    seq.reserve("forgot", "1")
    forget(redis, "forgot", 3)
    questions = {
        ("drop", "a"): "Drop sequence \"a\"",
        ("set", "a", "3", "--back", "--no-older-data"): "They repeat",
        ("reopen", "a", "--above", "7"): r"starts with its sequences\.page, gives out.*known here: up to 10\.",
        ("reopen", "forgot", "--above", "1"): "known here: up to 1; by the word of a sidecar: up to 3",
        ("create", "b", "--new", *REFUSE): "Was there never a sequence \"b\"",
    }
    for args, question in questions.items():
        argv = [harness.SIDFLAKECTL, "seq", *args, "--coordinator", seq.url]
        with Terminal(argv, rows=10, cols=400) as t:
            t.shows(question)
            t.keys("n\n")
            t.shows("nothing was changed")
            assert t.end() == 1
    assert seq.reserve("a", "1") == (11, 11) and len(seq.json("list")) == 2
    with Terminal([harness.SIDFLAKECTL, "seq", "drop", "a", "--coordinator", seq.url], rows=10, cols=300) as t:
        t.shows(r"\[y/N\]")
        t.keys("y\n")
        t.shows("is dropped")
        assert t.end() == 0


def restarted(redis, clock, wait_s=0):
    redis.ask("SAVE")
    redis.kill()
    redis.start()
    clock.step(wait_s)


@test("a Redis that restarts: max-rate pauses and skips, refuse stops until reopen, trust goes on; check tells")
def restart(case):
    clock = case.clock()
    redis = case.redis(clock=clock)
    case.ctl("pool", "init", "--coordinator", redis.url, "--fresh", env=clock.env, expect=0)
    seq = Seq(case, redis.url, clock.env)
    seq.run("create", "skip", *SKIP)
    seq.run("create", "refuse", *REFUSE)
    seq.run("create", "trust", "--on-loss", "trust")
    for name in "skip", "refuse", "trust":
        assert seq.reserve(name, "10") == (1, 10)
    assert seq.out("check") == "nothing is wrong with 3 sequences\n"
    clock.step(100)
    restarted(redis, clock)
    found = {f["name"]: f for f in seq.json("check", expect=1)["found"]}
    assert (found["refuse"]["answer"], found["refuse"]["fault"]) == ("stopped", True), found
    assert (found["skip"]["answer"], found["skip"]["fault"]) == ("wait", False) and "trust" not in found, found
    assert "refuse" in seq.run("check", "refuse", expect=1).stdout
    assert seq.run("check", "skip", "trust").stderr == ""
    told = seq.refused("reserve", "refuse", "1")
    assert "grants have stopped: the pool was reopened, this is era 2" in told, told
    commands = re.findall("`sidflakectl ([^`]*)`", told)
    assert commands == ["pool reopen --nothing-lost --coordinator %s --pool default" % redis.url,
                        "seq reopen refuse --above N --coordinator %s --pool default" % redis.url], told
    shown = seq.json("show", "refuse")
    assert shown["answer"] == "stopped" and shown["era"] == 2 and shown["accounted_era"] == 1, shown
    assert "grants have stopped" in shown["why"] and shown["next"] is None, shown
    assert seq.reserve("trust", "1") == (11, 11)
    told = seq.refused("drop", "refuse", "--yes")
    assert "grants have stopped" in told
    assert "expected --above N" in seq.refused("reopen", "refuse", expect=2)
    assert "expected --yes" in seq.refused("reopen", "refuse", "--above", "10", expect=2)
    assert "skips to its line" in seq.refused("reopen", "skip", "--above", "10", "--yes")
    argv = commands[1].replace("N", "25").split()
    case.ctl(*argv, "--yes", env=clock.env, expect=0)
    assert seq.reserve("refuse", "1") == (26, 26)
    clock.step(5)
    first, _ = seq.reserve("skip", "1")
    assert 11_000 < first < 12_500, first  # burst, and 100 a second for 104 s at the restart and 2S
    assert seq.json("gaps", "skip")["skipped"] == first - 11
    assert "nothing is wrong" in seq.out("check")


def go_back(redis, seq):
    """To the data that were saved, and somebody has noticed."""
    redis.kill()
    redis.start()
    assert "grants have stopped" in seq.refused("reserve", "a", "1")


@test("seq reopen: what was asked before the same older data came back once more is answered for nothing")
def asked_before_another_loss(case):
    redis = case.pool()
    seq = Seq(case, redis.url)
    seq.run("create", "a", *REFUSE)
    redis.ask("SAVE")

    def reopen(above):
        argv = [harness.SIDFLAKECTL, "seq", "reopen", "a", "--above", above, "--coordinator", redis.url]
        return Terminal(argv, rows=10, cols=500)

    go_back(redis, seq)
    with reopen("50") as t:
        t.shows(r"\[y/N\]")
        seq.run("reopen", "a", "--above", "50", "--yes")
        assert seq.reserve("a", "40") == (51, 90)
        go_back(redis, seq)
        t.keys("y\n")
        t.shows("it was reopened since that was asked")
        assert t.end() == 1
    with reopen("90") as t:
        t.shows(r"\[y/N\]")
        t.keys("y\n")
        t.shows("grants go on behind 90")
        assert t.end() == 0
    assert seq.reserve("a", "1") == (91, 91)


@test("pool reopen: what was asked before the same older data came back once more is answered for nothing")
def said_of_another_loss(case):
    redis = case.pool()
    seq = Seq(case, redis.url)
    seq.run("create", "a", *REFUSE)
    redis.ask("SAVE")
    argv = [harness.SIDFLAKECTL, "pool", "reopen", "--nothing-lost", "--coordinator", redis.url]

    go_back(redis, seq)
    with Terminal(argv, rows=10, cols=500) as t:
        t.shows(r"\[y/N\]")
        go_back(redis, seq)
        t.keys("y\n")
        t.shows("it was reopened since that was asked")
        assert t.end() == 1
    with Terminal(argv, rows=10, cols=500) as t:
        t.shows(r"\[y/N\]")
        t.keys("y\n")
        t.shows("expected the time of four renewals")  # of the present one
        assert t.end() == 1


@test("a pool made again after a loss: a sequence wants its beginning, and goes on as its word for a loss says")
def made_again(case):
    clock = case.clock()
    redis = case.redis(clock=clock)
    case.ctl("pool", "init", "--coordinator", redis.url, "--fresh", env=clock.env, expect=0)
    seq = Seq(case, redis.url, clock.env)
    definitions = {}
    for name, words in ("skip", SKIP), ("refuse", REFUSE):
        seq.run("create", name, *words)
        definitions[name] = re.search("^definition +(.*)$", seq.out("show", name), re.M).group(1).split()
        seq.reserve(name, "10")
    redis.ask("FLUSHALL")
    clock.step(100)
    case.ctl("pool", "init", "--coordinator", redis.url, "--after-loss", "--workers", "0-32767", env=clock.env,
             expect=0)
    told = seq.refused("create", "skip", *SKIP)
    assert "expected --begins TIME, or --new" in told and seq.json("list") == [], told
    notes = "\n".join(seq.json("create", "skip", *definitions["skip"])["notes"])
    assert "no number now: not yet: expected at " in notes, notes
    notes = "\n".join(seq.json("create", "refuse", *definitions["refuse"])["notes"])
    assert "no number now: grants have stopped" in notes, notes
    told = seq.run("check", "refuse", expect=1).stdout
    assert "nothing-lost" not in told and "`sidflakectl seq reopen refuse --above N" in told, told
    case.ctl("pool", "reopen", "--nothing-lost", "--yes", "--coordinator", redis.url, env=clock.env, expect=1)
    clock.step(5)
    first, _ = seq.reserve("skip", "1")
    assert 11_000 < first < 12_500, first
    assert 'on behind 10; what' in seq.out("reopen", "refuse", "--above", "10", "--yes")
    assert seq.reserve("refuse", "1") == (11, 11)
    assert 'on behind 7, or behind what a counter had by then, at most 11; what' in \
        seq.out("reopen", "refuse", "--above", "7", "--yes")
    assert seq.reserve("refuse", "1") == (12, 12)
    assert seq.json("create", "other", "--new", "--yes", *SKIP)["made"] is True
    assert seq.reserve("other", "1") == (1, 1)


@test("a pool made with other workerIds in the place of one that was lost is new to no sequence")
def made_elsewhere(case):
    seq = Seq(case, case.pool("--workers", "5-9").url)
    assert "--begins" in seq.refused("create", "a", *SKIP, expect=1)
    assert seq.json("list") == []
    seq.run("create", "b", "--begins", "2026-01-01T00:00:00Z", *SKIP)
    time.sleep(4.5)  # the line is reached twice the skew later
    assert seq.reserve("b", "1")[0] > 10**9


@test("a beginning before the pool was made: create asks, and tells to set it ahead")
def begins_before(case):
    seq = Seq(case, case.pool().url)
    seq.run("create", "a", *SKIP)
    earlier = ("create", "b", "--begins", "2026-01-01T00:00:00Z", *SKIP)
    assert "it begins before the pool was made: expected --yes" in seq.refused(*earlier, expect=2)
    with Terminal([harness.SIDFLAKECTL, "seq", *earlier, "--coordinator", seq.url], rows=10, cols=500) as t:
        t.shows("if there was one in a pool that was lost, its numbers repeat, unless `seq set`")
        t.keys("n\n")
        assert t.end() == 1
    assert len(seq.json("list")) == 1
    seq.run(*earlier, "--yes")
    assert seq.json("set", "b", "1000000")["next"] == 1000000
    assert seq.reserve("b", "1") == (1000000, 1000000)


@test("seq check tells rows that nobody reads, what was forgotten, and what is used up; show and list go on")
def check_finds(case):
    redis = case.pool()
    seq = Seq(case, redis.url)
    for name in "full", "odd", "counter", "forgot":
        seq.run("create", name, "--max", "3", *REFUSE)
    seq.reserve("full", "3")
    for name, take in (("narrow", "9"), ("wide", "8")):
        seq.run("create", name, "--template", "N@{seq,width=1}", *REFUSE)
        seq.reserve(name, take)
    hash_key = "sidflake:{default}:h"
    redis.ask("HSET", hash_key, "seq odd", "no row \x1b[2J")
    redis.ask("HSET", hash_key, "num counter 1 -", "9 9 \x1b[2J")
    forget(redis, "forgot", 2)
    report = seq.json("check", expect=1)
    found = [(f["name"], f["answer"]) for f in report["found"]]
    assert found == [("counter", "unreadable"), ("counter", "unreadable"), ("forgot", "forgetful"), ("full", "used-up"),
                     ("narrow", "used-up"), ("odd", "unreadable")], found
    assert report["faults"] == 6 and report["sequences"] == 6, report
    assert report["found"][4]["why"].endswith("up to 9: sidflakectl seq alter narrow --template TEXT"), report
    assert report["found"][2]["why"].endswith("the coordinator knows of none: it has forgotten some"), report
    states = {v["name"]: v["state"] for v in seq.json("list")}
    assert states == {"counter": "open", "forgot": "forgetful", "full": "used-up", "narrow": "open", "odd": "unreadable",
                      "wide": "open"}, states
    assert "a sidecar was granted numbers up to 2" in seq.out("show", "forgot")
    assert seq.json("show", "forgot")["highest_told"] == 2
    assert seq.json("show", "odd") == {"name": "odd", "state": "unreadable"}
    assert seq.json("show", "counter")["counters"][0]["unreadable"] is True
    assert "unreadable" in seq.out("show", "counter") and "\x1b" not in seq.out("show", "odd")
    assert "not of the form" in seq.refused("gaps", "odd")
    assert "not of the form" in seq.refused("reserve", "odd", "1")
    assert "there is none" in seq.run("check", "none", expect=1).stdout
    case.ctl("pool", "close", "--yes", "--coordinator", redis.url, expect=0)
    assert "closed" in seq.refused("check") and "closed" in seq.refused("create", "new", *REFUSE)
    assert seq.json("show", "full")["answer"] == "pool-closed"


@test("seq without a command, with one that is not, and --help")
def words(case):
    assert "did you mean seq create?" in case.ctl("seq", "creat", expect=2).stderr
    assert "did you mean seq?" in case.ctl("seqs", expect=2).stderr
    assert "did you mean pool?" in case.ctl("pol", expect=2).stderr
    assert "seq reserve" in case.ctl("seq", expect=2).stderr
    assert "seq reserve" in case.ctl("seq", "--help", expect=0).stdout
    for command in "create", "alter", "set", "drop", "list", "show", "gaps", "reserve", "reopen", "check", "sweep":
        told = case.ctl("seq", command, "--help", expect=0).stdout
        assert told.startswith("Usage: sidflakectl seq " + command), told
        assert max(map(len, told.split("\n"))) < 80, told


@test("a pool made again: neither the log, a client's error nor check asks for a word that would not help")
def no_word_that_does_not_help(case):
    redis = case.pool()
    define = "refuse --on-loss refuse --begins 2026-11-01T00:00:00Z"
    s = case.sidecar(redis, {"sequences.define": [define]})
    s.wait_held(2)
    redis.ask("FLUSHALL")
    case.ctl("pool", "init", "--coordinator", redis.url, "--after-loss", "--workers", "0-32767", expect=0)
    seq = Seq(case, redis.url)

    def told():
        with s.resp() as r:
            harness.until("it is refused", lambda: "stopped" in str(r.ask("INCRBY", "seq:refuse", 1000)))
            yield str(r.ask("INCRBY", "seq:refuse", 1000))
        yield s.http("/readyz?verbose").text
        yield seq.run("check", "refuse", expect=1).stdout

    for words in told():
        assert "seq reopen refuse --above N" in words and "nothing-lost" not in words, words
    assert "nothing-lost" not in s.wait_log("sequence refused sequence=refuse why=(.*)").group(1)
    redis.ask("SAVE")
    redis.kill()
    redis.start()
    harness.until("it is another era", lambda: seq.json("show", "refuse")["era"] == 3)
    seq.run("create", "new", "--new", "--yes", *REFUSE)
    for words in told():
        assert "seq reopen refuse --above N" in words and "nothing-lost" not in words, words
    redis.ask("SAVE")
    redis.kill()
    redis.start()
    harness.until("it is the next era", lambda: "era 4" in seq.run("check", "new", expect=1).stdout)
    assert "`sidflakectl pool reopen --nothing-lost" in seq.run("check", "new", expect=1).stdout
    for words in told():
        assert "seq reopen refuse --above N" in words and "refuse: stopped, since the coordinator may have forgotten " \
            "numbers: sidflakectl pool" not in words, words
