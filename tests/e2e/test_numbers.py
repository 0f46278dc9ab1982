"""Numbers by template: `no:`, a sequence's numbers as people read them."""

import json
import time

import binary
from harness import until
from runner import test
from test_auth import CRYPT, basic
from test_memcached_binary import binary_to
from test_sequences import ask, sqlite
from test_upgrade import upgrading

NO_NUMBER = 6  # the binary protocol's status of what is no number
FORMS = {
    "order": "--reset day --date-back 4000d --template @{date,%Y%m%d}@{seq,width=5}",
    "policy": "--template @{arg,area,width=3,chars=0-9}-@{arg,unit,width=4,chars=0-9}-@{seq,width=5}",
    "qj": "--template QJ@{seq,width=6}",
    "sn": "--start 417 --template SN-@{seq}-@{check,linear,9,31,10,of=seq}",
    "tenant": "--subs --template @{sub,width=1..9,chars=a-z}/@{seq}",
    "strict": "--order strict --template S@{seq,width=2}",
    "few": "--template F@{seq,width=1}",
    "worker": "--template @{worker,width=5}.@{seq}",
    "plain": "",
}


def stores(case):
    return case.pool(), sqlite(case)


def sidecar(case, coordinator, define=None, wait=True, **more):
    define = define or ["%s --on-loss refuse %s" % (n, how) for n, how in FORMS.items()]
    options = {"sequences.define": define, "limits.max_wait": "5s", **more.pop("options", {})}
    s = case.sidecar(coordinator, options, wait=wait, **more)
    s.wait_held(2, timeout=20)
    return s


@test("numbers that people use come out over all protocols, on Redis and SQLite")
def in_use(case):
    for coordinator in stores(case):
        s = sidecar(case, coordinator)
        policy = "no:policy?area=010&unit=6541"
        with s.resp() as r, s.mc() as m, binary_to(s) as b:
            assert r.ask("GET", "no:order?date=2017-03-04") == b"2017030400001"
            assert r.ask("GET", policy) == b"010-6541-00001"
            assert r.ask("GET", "no:qj") == b"QJ000001"
            assert r.ask("GET", "no:sn") == b"SN-417-2"
            for n in range(418, 440):  # n × 9 mod 31 mod 10
                assert r.ask("GET", "no:sn") == b"SN-%d-%d" % (n, n * 9 % 31 % 10)
            assert r.ask("GET", "no:worker").decode().endswith(".1")
            assert r.ask("MGET", "no:qj", "no:none", "no:qj#2", "seq:plain") == \
                [b"QJ000002", None, b"QJ000003", b"1"]
            assert r.ask("LPOP", "no:qj", 3) == [b"QJ000004", b"QJ000005", b"QJ000006"]
            assert r.ask("GET", "seq:qj") == b"7"  # one counter has both
            assert m.ask("get no:qj") == "VALUE no:qj 0 8" and m.line() == b"QJ000008"
            assert m.line() == b"END"
            assert m.ask("gets no:qj " + policy) == "VALUE no:qj 0 8 9"
            assert [m.line() for _ in range(4)] == \
                [b"QJ000009", b"VALUE %s 0 14 2" % policy.encode(), b"010-6541-00002", b"END"]
            assert m.ask("mg no:qj v s") == "VA 8 s8" and m.line() == b"QJ000010"
            assert m.ask("mg no:qj s") == "HD s8" and m.ask("mg no:order s") == "HD s13"
            assert b.ask(binary.GET, b"no:qj").value == b"QJ000011"
            assert s.http("/v1/no/policy?area=010&unit=6541&n=2").text == \
                "010-6541-00003\n010-6541-00004\n"
            reply = s.http("/v1/no/order?n=2&date=2017-03-04", headers={"Accept": "application/json"})
            assert json.loads(reply.text) == {"ids": ["2017030400002", "2017030400003"]}
            assert json.loads(s.http("/v1/no/qj/status").text)["until_width"] == 999999 - 11
            for sub in ("acme", "zoo"):
                assert r.ask("GET", "no:tenant:%s" % sub) == b"%s/1" % sub.encode()
            assert s.http("/v1/no/tenant:acme?n=2").text == "acme/2\nacme/3\n"
            assert [r.ask("GET", "no:strict") for _ in range(3)] == [b"S01", b"S02", b"S03"]
            assert r.ask("TYPE", "no:qj") == b"string" and r.ask("EXISTS", "no:qj", "no:none") == 1
        s.stop()


@test("what is no number is not counted up; what cannot be written is an error, and spends none")
def errors(case):
    for coordinator in stores(case):
        s = sidecar(case, coordinator)
        with s.resp() as r, s.mc() as m, binary_to(s) as b:
            for words in (("INCR", "no:qj"), ("INCRBY", "no:qj", 5)):
                assert str(r.ask(*words)) == "ERR value is not an integer or out of range"
            no = "CLIENT_ERROR cannot increment or decrement non-numeric value"
            assert m.ask("incr no:qj 1") == no and m.ask("ma no:qj") == no
            assert b.ask(binary.INCR, b"no:qj", extras=binary.delta(1)).status == NO_NUMBER
            assert s.http("/v1/no/qj?block=1&n=2").status == 400
            for key, why in (("no:policy", "area"), ("no:policy?area=01&unit=6541", "area"),
                             ("no:policy?area=010&unit=654x", "unit"),
                             ("no:policy?area=010&unit=6541&x=1", '"x"'),
                             ("no:policy?area=010&unit=6541&sub=x", "sub"),
                             ("no:order?date=2017-03-04&date=2017-03-05", "once"),
                             ("no:order?date=2017-03-99", "2017-03-99"),
                             ("no:order?date=x", "date"), ("no:tenant", "sub"),
                             ("no:tenant:ACME", "sub"), ("no:plain", "no template"),
                             ("no:a/b", "expected no:NAME")):
                found = str(r.ask("GET", key))
                assert found.startswith("ERR ") and why in found, (key, found)
                assert m.ask("get " + key).startswith("CLIENT_ERROR "), key
                path = "/v1/no/" + key[3:].replace("a/b", "a%2Fb")
                assert s.http(path).status == 400, key
            for key in ("no:qj?n=2", "no:qj?block=1"):  # which are HTTP's
                assert key[6:].split("=")[0] in str(r.ask("GET", key)), key
                assert m.ask("get " + key).startswith("CLIENT_ERROR "), key
                assert b.ask(binary.GET, key.encode()).status != 0, key
            for path in ("policy?area=010%26unit=6541", "policy?area=010&unit=6541%23x", "policy%3Farea=010&unit=6541",
                         "order?date=2017-03-04%26n=2", "order%3Fdate=2017-03-04", "qj%23?area=010", "tenant:a%3Fn=2",
                         "policy?area%3D010&unit=6541", "qj?n=1&n=2"):
                reply = s.http("/v1/no/" + path)  # what is one argument's, or the name's, is no more of them
                assert reply.status == 400 and "found" in reply.text, (path, reply.text)
            assert r.ask("GET", "no:none") is None and s.http("/v1/no/none").status == 404
            assert r.ask("GET", "no:qj") == b"QJ000001"
            assert r.ask("GET", "no:policy?area=010&unit=6541") == b"010-6541-00001"
            assert s.metric("sidflake_sequence_until_width", name="qj") == 999998
            assert r.ask("GET", "seq:plain") == b"1"
            assert not s.metrics().find("sidflake_sequence_until_width", name="plain")
            assert len(r.ask("LPOP", "no:few", 5)) == 5
            assert s.metric("sidflake_sequence_until_width", name="few") == 4
            assert s.metric("sidflake_sequence_width_seconds", name="few") < 1e6
            assert r.ask("LPOP", "no:few", 5) == [b"F6", b"F7", b"F8", b"F9"]
            for _ in range(3):
                assert "takes numbers up to 9" in str(r.ask("GET", "no:few"))
            assert m.ask("get no:few").startswith("CLIENT_ERROR ")
            assert s.metric("sidflake_sequence_until_width", name="few") == 0
            assert r.ask("GET", "seq:few") == b"10"  # the counter goes on
            assert s.metric("sidflake_sequence_until_max", name="few") > 1e15
        s.stop()


@test("a GET no: that is known by its bytes is answered as any other")
def known(case):
    for coordinator in stores(case):
        s = sidecar(case, coordinator, ["few --on-loss refuse --template FEW-NO-@{seq,width=3}",
                                        "area --on-loss refuse --template "
                                        "@{arg,a,width=1,default=x}-@{seq,width=8}"])
        with s.resp() as r, s.mc() as m:
            for n in range(1, 1000):
                text = b"FEW-NO-%03d" % n
                if n % 7 == 0:
                    assert r.ask("LPOP", "no:few") == text
                elif n % 5 == 0:
                    assert m.ask("get no:few") == "VALUE no:few 0 10"
                    assert m.line() == text and m.line() == b"END"
                else:
                    assert r.ask("GET", "no:few") == text
            for _ in range(3):
                assert "takes numbers up to 999" in str(r.ask("GET", "no:few"))
                assert m.ask("get no:few").startswith("CLIENT_ERROR ")
            assert r.ask("GET", "seq:few") == b"1000"
            for n in range(1, 30, 3):  # what one has said is not what the next says
                assert r.ask("GET", "no:area") == b"x-%08d" % n
                assert r.ask("GET", "no:area?a=b") == b"b-%08d" % (n + 1)
                assert m.ask("get no:area?a=c").startswith("VALUE ") and \
                    m.line() == b"c-%08d" % (n + 2) and m.line() == b"END"
        s.stop()


def at_end_of_day(clock, zone, before=3):
    """So many seconds before a day's end in that zone, by the clock; returns which day that is."""
    hours, minutes = (int(x) for x in (zone[1:] if zone != "UTC" else "00:00").split(":"))
    offset = (-1 if zone[0] == "-" else 1) * (3600 * hours + 60 * minutes)
    local = clock.ms() / 1000 + offset
    clock.step(86400 - local % 86400 - before)
    return time.strftime("%Y%m%d", time.gmtime(clock.ms() / 1000 + offset))


@test("a day's end in three time zones: the number restarts with the day that the text has", timeout=120)
def day_ends(case):
    for zone, on_redis in (("UTC", False), ("+08:00", True), ("-03:30", False)):
        clock = case.clock()
        day = at_end_of_day(clock, zone)
        url = case.redis(clock=clock).url if on_redis else "sqlite://" + case.path(zone + ".db")
        case.ctl("pool", "init", "--coordinator", url, "--fresh", env=clock.env, expect=0)
        day = at_end_of_day(clock, zone) if not on_redis else day
        s = sidecar(case, url, ["day --reset day --timezone %s --on-loss refuse "
                                "--template @{date,%%Y%%m%%d}-@{seq,width=6}" % zone], clock=clock)
        until_ms = clock.ms() + 12000
        texts, sent = [], []
        with s.resp() as r:
            while clock.ms() < until_ms and len({t[:8] for t in texts[:-200]}) < 2:
                sent.append(clock.ms())
                texts.append(r.ask("GET", "no:day").decode())
                time.sleep(0.002)
        days = [t[:8] for t in texts]
        assert sorted(set(days)) == days[:1] + days[-1:] and days == sorted(days), (zone, set(days))
        assert days[0] == day, (zone, day, days[0])
        assert len(set(texts)) == len(texts)
        first = days.index(days[-1])
        assert texts[0].endswith("-000001") and texts[first].endswith("-000001"), texts[first]
        numbers = [int(t[9:]) for t in texts]
        assert numbers == list(range(1, first + 1)) + list(range(1, len(texts) - first + 1))
        offset = int(zone[:3]) * 3600 + int(zone[0] + zone[4:]) * 60 if zone != "UTC" else 0
        at = (sent[first] / 1000 + offset) % 86400
        assert at < 0.5 or at > 86399, (zone, at)  # by the coordinator's time, as it was told
        with s.resp() as r:  # yesterday's go on, for who has its date
            dated = "%s-%s-%s" % (days[0][:4], days[0][4:6], days[0][6:])
            late = r.ask("GET", "no:day?date=" + dated).decode()
            assert late[:8] == days[0] and late not in texts
        s.stop()


def day_of(ms):
    return time.strftime("%Y%m%d", time.gmtime(ms / 1000))


def checked(day, n):
    return b"%s-%06d-%d" % (day.encode(), n, n * 9 % 31 % 10)


@test("a day's end amid requests that are known by their bytes: each byte of what follows, in Redis and memcached",
      timeout=120)
def day_ends_known(case):
    clock = case.clock()
    url = "sqlite://" + case.path("end.db")
    day = at_end_of_day(clock, "UTC", 12)
    case.ctl("pool", "init", "--coordinator", url, "--fresh", env=clock.env, expect=0)
    s = sidecar(case, url, ["day --reset day --on-loss refuse --template "
                            "@{date,%Y%m%d}-@{seq,width=6}-@{check,linear,9,31,10,of=seq}"], clock=clock)
    time.sleep(max(0, 86400 - clock.ms() / 1000 % 86400 - 2))
    end = time.time() + 20
    counts = {}
    with s.resp() as r, s.mc() as m:
        got = r.encode("GET", "no:day")
        while len(counts) < 2 or counts[max(counts)] < 40:  # in one hundred on both days
            assert time.time() < end, counts
            for request, before, after in ((got, b"$17\r\n", b"\r\n"),
                                           (b"get no:day\r\n", b"VALUE no:day 0 17\r\n", b"\r\nEND\r\n")):
                c = r if request == got else m
                least = day_of(clock.ms() - 500)
                c.send(request * 2)
                for _ in range(2):
                    found = c.take(len(before) + 17 + len(after))
                    today = found[len(before):len(before) + 8].decode()
                    assert max([least, *counts]) <= today <= day_of(clock.ms() + 500), (today, least, counts)
                    counts[today] = counts.get(today, 0) + 1
                    assert found == before + checked(today, counts[today]) + after, (found, counts)
            time.sleep(0.15)
    assert min(counts) == day and counts[day] > 4, (day, counts)
    s.stop()


@test("SIGUSR2 amid requests that are known by their bytes: each text once, and none left out")
def upgraded(case):
    for coordinator in stores(case):
        s = sidecar(case, coordinator, ["qj --on-loss refuse --template QJ@{seq,width=6}@{check,luhn}",
                                        "bare --on-loss refuse"])
        texts = []
        with s.resp() as r, s.mc() as m:
            for _ in range(4):
                for _ in upgrading(s):
                    r.send(r.encode("GET", "no:qj") * 20)
                    texts += [r.reply() for _ in range(20)]
                    m.send(b"get no:qj\r\n" * 20)
                    texts += [m.values()[0][1].encode() for _ in range(20)]
        for n, text in enumerate(texts):
            assert text[:8] == b"QJ%06d" % (n + 1), (n, texts[max(n - 3, 0):n + 3])
        assert all(luhn(t[2:].decode()) for t in texts), texts
        s.stop()


def luhn(digits):
    doubled = (int(d) * (1 + i % 2) for i, d in enumerate(reversed(digits)))
    return sum(n // 10 + n % 10 for n in doubled) % 10 == 0


@test("names= of a user are held against name and sub, whatever is said behind '?'")
def rights(case):
    path = case.path("users")
    with open(path, "w") as f:
        f.write("ann:%s\neve:%s:names=policy\nacme:%s:names=*:acme\n" % (CRYPT, CRYPT, CRYPT))
    s = sidecar(case, case.pool(), options={"auth.mode": "required", "auth.users_file": path})
    policy = "no:policy?area=010&unit=6541"
    with s.resp() as ann, s.resp() as eve, s.resp() as acme, s.mc() as m:
        for r, name in ((ann, "ann"), (eve, "eve"), (acme, "acme")):
            assert r.ask("AUTH", name, "secret") == b"OK"
        assert [eve.ask("GET", policy) for _ in range(2)] == [b"010-6541-00001", b"010-6541-00002"]
        assert m.ask("set any 0 0 10\r\neve secret") == "STORED"
        assert m.ask("get " + policy).startswith("VALUE ") and m.line() == b"010-6541-00003"
        assert m.line() == b"END"
        reply = s.http("/v1/no/policy?area=010&unit=6541&n=2", basic("eve", "secret"))
        assert (reply.status, reply.text) == (200, "010-6541-00004\n010-6541-00005\n"), reply.text
        for n in range(1, 4):  # known by its bytes to who may
            assert ann.ask("GET", "no:qj") == b"QJ%06d" % n
            assert "not allowed" in str(eve.ask("GET", "no:qj"))
            assert m.ask("get no:qj").startswith("CLIENT_ERROR ")
        assert acme.ask("GET", "no:tenant:acme") == b"acme/1"
        for key in ("no:tenant:zoo?sub=:acme", "no:tenant:zoo?n=:acme", "no:qj?block=:acme",
                    "no:tenant:zoo#:acme", "no:tenant:zoo#?:acme"):
            assert "not allowed" in str(acme.ask("GET", key)), key
        assert s.http("/v1/no/tenant:zoo?sub=:acme", basic("acme", "secret")).status == 403
        assert s.http("/v1/no/tenant:acme", basic("acme", "secret")).text == "acme/2\n"
        assert ann.ask("GET", "no:tenant:zoo") == b"zoo/1"
    s.stop()


@test("a restart after a SIGKILL goes on with the next text: none is skipped or repeated")
def restarts(case):
    redis = case.pool()
    s = sidecar(case, redis, ["qj --on-loss refuse --template QJ@{seq,width=6}"])
    expected = 0
    for _ in range(3):
        with s.resp() as r:
            for _ in range(4):
                expected += 1
                assert r.ask("GET", "no:qj") == b"QJ%06d" % expected
        time.sleep(0.5)
        s.kill()
        s.start()
        s.wait_held(2, timeout=20)
    s.stop()


@test("another template differs from all earlier ones at a fixed place; all texts stay distinct")
def altered(case):
    for coordinator in stores(case):
        url = coordinator if isinstance(coordinator, str) else coordinator.url

        def seq(*words, expect=0):
            return case.ctl("seq", *words, "--coordinator", url, expect=expect)

        seq("create", "a", "--on-loss", "refuse", "--template", "A@{seq,width=4}")
        seq("create", "b", "--on-loss", "refuse")
        s = case.sidecar(coordinator, {"limits.max_wait": "5s"})
        s.wait_held(2)
        texts = []
        with s.resp() as r:
            texts += r.ask("LPOP", "no:a", 7)
            refused = seq("alter", "a", "--template", "@{seq,width=4}A", expect=1).stderr
            assert "differs from all that it had" in refused, refused
            seq("alter", "a", "--template", "B@{seq,width=3}")
            while not texts[-1].startswith(b"B"):  # what was in hand goes by the one before
                texts.append(r.ask("GET", "no:a"))
            seq("alter", "a", "--template", "A@{seq,width=3}", expect=1)
            seq("alter", "a", "--template", "A@{seq,width=4}", expect=1)
            seq("alter", "a", "--template", "B@{seq,width=3}")
            assert '"template": "B@{seq,width=3}"' in seq("show", "a", "--json").stdout
            seq("drop", "a", "--yes")
            again = ("create", "a", "--reuse", "--no-older-data", "--yes", "--on-loss", "refuse")
            seq(*again, "--template", "A@{seq,width=9}", expect=1)
            seq(*again, "--template", "C@{seq,width=4}")
            seq("alter", "a", "--template", "B@{seq,width=9}", expect=1)
            until("made again", lambda: r.ask("GET", "no:a").startswith(b"C"), 60)
            texts += r.ask("LPOP", "no:a", 50)
            assert len(texts) == len(set(texts))
            assert "no template" in str(r.ask("GET", "no:b"))
            seq("alter", "b", "--template", "B@{seq}")
            assert len(r.ask("LPOP", "seq:b", 9)) == 9  # more is asked for, and it comes with that
            until("has one", lambda: str(r.ask("GET", "no:b")).startswith("b'B"), 60)
        s.stop()


@test("templates that cannot be are refused where they are said; another one than the pool's, too")
def refused(case):
    redis = case.pool()

    def create(*words, expect):
        return case.ctl("seq", "create", "x", "--on-loss", "refuse", "--coordinator", redis.url, *words,
                        expect=expect).stderr

    assert "cycle" in create("--order", "strict", "--max", "9", "--cycle", "--template", "A@{seq}",
                             expect=2)
    assert "negative" in create("--increment", "-1", "--template", "A@{seq}", expect=2)
    assert create("--template", "@{seq}1@{seq}", expect=2)
    assert create("--template", "A", expect=2)
    assert "--reset" in create("--date-back", "4d", "--template", "A@{seq}", expect=2)
    assert "--date-back" in create("--reset", "day", "--date-back", "4", expect=2)
    create("--template", "A@{seq}", expect=0)
    s = sidecar(case, redis, ["x --on-loss refuse --template B@{seq}", "y --on-loss refuse"])
    assert "another than sequences.define says" in str(ask(s, "GET", "no:x"))
    s.wait_log("expected=.* --template 'B@{seq}'\" found=.* --template 'A@{seq}'")
    assert ask(s, "GET", "seq:y") == b"1"
    s.stop()
    conf = case.sidflake("-t", "--set", "sequences.define=z --on-loss refuse --template @{seq}1@{seq}")
    assert conf.returncode == 78 and "template" in conf.stderr, conf.stderr
    unprefixed = sidecar(case, redis, options={"sequences.numbers_prefix": ""})
    assert ask(unprefixed, "GET", "no:qj") is None and ask(unprefixed, "GET", "seq:qj") == b"1"
    unprefixed.stop()
