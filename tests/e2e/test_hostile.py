"""Hostile clients, a second each: that nobody else notices much, by orders of magnitude, and that who
would notice is told so. `make hostile` runs all of them, and measures."""

import os
import sys

import harness
from runner import Skip, test

sys.path.append(os.path.join(harness.TOP, "tests", "hostile"))

import loads  # noqa: E402
import scene  # noqa: E402
import table  # noqa: E402

SMOKE = ("ping", "foreign", "command-there", "come-and-go", "theft", "gat", "http-page", "blpop-gone")
PATIENCE_US = 500_000  # where seconds were lost once, on a machine that does other things, too


def need_programs():
    missing = [p for p in map(scene.program, ("swarm", "guests")) if not os.access(p, os.X_OK)]
    if missing:
        raise Skip("no %s: make hostile-programs" % " and no ".join(missing))


def run(case, name, **changes):
    load = next(x for x in loads.LOADS if x.name == name)
    for key, value in changes.items():
        setattr(load, key, value)
    return scene.measure(case, load, 1, 1)


def smoke(name):
    @test("%s: others go on" % name, timeout=60)
    def others_go_on(case):
        need_programs()
        row = run(case, name)
        assert row["attack"]["sent"] > 0, "the attackers sent nothing"
        assert not row["attack"]["watched"], table.verdict(row)
        assert row["errors"] == row["wrong"] == row["livez"]["errors"] == 0, table.verdict(row)
        assert row["connections_left"] == 0, table.verdict(row)
        for kind in ("ids", "there"):
            assert row[kind]["p99_us"] < PATIENCE_US, table.verdict(row)


for each in SMOKE:
    smoke(each)


@test("connections that are all taken: it is told who could not come", timeout=60)
def can_fail(case):
    need_programs()
    row = run(case, "slots", connections=300, options={"limits.connections": 3, "limits.idle_timeout": "0s"})
    assert row["errors"] > 0 and row["ids"] is not None, row
    assert any("of the requests failed" in text for text in table.shortfalls(row)), table.verdict(row)


@test("what a row falls short of", beside=True)
def shortfalls(case):
    seen = {"requests": 100, "errors": 0, "wrong": 0, "p50_us": 100, "p99_us": 200, "max_us": 300,
            "first_error": ""}
    good = {**scene.summary({"ids-redis": seen, "there-redis": seen, "livez": seen}), "attack": {},
            "running": True, "connections_left": 0, "descriptors_left": 0, "log_lines": 0,
            "kubernetes": True, "rss_peak_kib": 60_000, "rss_after_kib": 8_000, "settle_s": 60,
            "what": "a|b", "item": 4}
    assert table.shortfalls(good) == []
    for bad in ({"ids": {**seen, "p99_us": 20_001}}, {"there": {**seen, "p99_us": 10**6}},
                {"ids": {**seen, "max_us": 1_000_001}},
                {"errors": 1, "error_share": 0.01}, {"wrong": 1}, {"livez": {**seen, "max_us": 1_000_001}},
                {"livez": {**seen, "errors": 1}}, {"running": False}, {"connections_left": 1},
                {"connections_left": None}, {"descriptors_left": 3}, {"log_lines": 101},
                {"rss_peak_kib": 65_537}, {"rss_after_kib": 8_193}, {"attack": {"watched": 1}},
                {"login": {**seen, "errors": 1}}, {"login": {**seen, "requests": 0}}, {"crash": "x"}):
        assert len(table.shortfalls({**good, **bad})) == 1, bad
    text = table.markdown([good, {"name": "x", "item": 9, "what": "y", "holds": False, "note": "z"}])
    assert "a\\|b" in text and "no: z" in text, text
