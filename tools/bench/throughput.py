"""Rows that drive servers in turn, in interleaved rounds."""

import os
import statistics
import time

from lab import Failure
from report import Row, short, spread


class Contest:
    """Contestants driven one after the other, round by round, so that what disturbs the machine
    disturbs them all. Ratios are taken within a round; their median counts."""

    def __init__(self, lab, rounds, seconds, **load):
        self.lab, self.rounds, self.seconds, self.load = lab, rounds, seconds, load
        self.entrants, self.results = {}, {}

    def enter(self, name, server, address, kind, **load):
        self.entrants[name] = (server, address, kind, dict(self.load, **load))
        self.results[name] = []

    def run(self):
        for _ in range(self.rounds):
            for name, (server, address, kind, load) in self.entrants.items():
                self.results[name].append(self.measure(
                    server, address, kind, seconds=self.seconds, **load))
        return self

    def measure(self, *args, **load):
        return self.lab.load(*args, **load)

    def values(self, name, key="rate"):
        return [r[key] for r in self.results[name]]

    def median(self, name, key="rate"):
        return statistics.median(self.values(name, key))

    def ratio(self, a, b, key="rate"):
        return spread([x / y for x, y in zip(self.values(a, key), self.values(b, key)) if y > 0])

    def target(self, row, a, b, bound, key="rate", at_least=True, cost=True):
        r = self.ratio(a, b, key)
        row.data.setdefault("ratios", {})[f"{a} / {b}: {key}"] = r
        row.target(f"{a} / {b}" + ("" if key == "rate" else f", {key}"), r["median"], bound,
                   at_least, " x", f"{r['median']:.2f} ({r['min']:.2f}-{r['max']:.2f})")
        if key == "rate" and cost:
            cost = self.ratio(b, a, "cpu_us")
            row.data["ratios"][f"{a} / {b}: requests per processor second"] = cost
            row.note(f"{a} / {b}, requests per second of processor time: {cost['median']:.2f} x "
                     f"({cost['min']:.2f}-{cost['max']:.2f})")

    def limit(self, row, b, bound):
        """What the bare responder comes to where the sidecar is to come to `bound`."""
        r, cost = self.ratio("bare", b), self.ratio(b, "bare", "cpu_us")
        row.data.setdefault("limits", {})[b] = {"rate": r, "cpu": cost}
        row.note(f"bare / {b}: {r['median']:.2f} x ({r['min']:.2f}-{r['max']:.2f}), in requests "
                 f"per second of processor time {cost['median']:.2f} x: the limit of what uses "
                 f"libev here, where {bound:g} x is wanted")

    def tell(self, row):
        for name, results in self.results.items():
            rates = spread([r["rate"] for r in results])
            text = (f"{name}: {short(rates['median'])}/s ({short(rates['min'])}-"
                    f"{short(rates['max'])}), p50/p99/p99.9 " + "/".join(
                        f"{self.median(name, p):.0f}" for p in ("p50_us", "p99_us", "p999_us"))
                    + f" us, CPU {self.median(name, 'cpu') * 100:.0f} %, "
                    f"{self.median(name, 'cpu_us'):.2f} us each, the load's "
                    f"{self.median(name, 'load_us'):.2f} us")
            row.note(text)
        row.data["results"] = self.results


def verify(lab, row, server, address, kind, **load):
    """A short run whose every line is read and whose every ID is held against all others."""
    r = lab.load(server, address, kind, seconds=0.3, warmup=0, check="unique", **load)
    row.note(f"checked: {r['checked']} lines as they must be, {r['duplicates']} duplicates, "
             f"{r['outside']} that are no IDs")
    row.data["checked"] = r


def sizes(lab):
    return (3, 0.3) if lab.quick else (5, 1.5)


def contest(lab, row, depth, active, tcp=False, connections=50):
    """The sidecar's memcached get and RESP GET beside all peers."""
    c = Contest(lab, *sizes(lab), connections=connections, depth=depth)
    side, redis, mem = lab.sidecar(active=active), lab.redis(), lab.memcached()
    bare, bare_resp = lab.bare("mc", tcp), lab.bare("resp", tcp)

    def at(server, protocol):
        return (server.tcp if tcp else server.unix)[protocol]
    c.enter("bare", bare, at(bare, "mc"), "mc-get")
    c.enter("sidflake get", side, at(side, "mc"), "mc-get")
    c.enter("memcached get", getattr(mem, "second", mem) if tcp else mem, at(mem, "mc"), "mc-get")
    c.enter("redis INCR", redis, at(redis, "redis"), "resp-incr")
    c.enter("sidflake GET", side, at(side, "redis"), "resp-get")
    c.enter("bare RESP", bare_resp, at(bare_resp, "resp"), "resp-get")
    c.run()
    verify(lab, row, side, at(side, "mc"), "mc-get", connections=connections, depth=depth)
    c.tell(row)
    return c


def unpipelined(lab):
    row = Row("unpipelined", "get id:orders, 50 unix connections, unpipelined, active 1")
    c = contest(lab, row, 1, 1)
    c.target(row, "sidflake get", "bare", 0.9)
    c.target(row, "sidflake get", "memcached get", 1.2)
    c.target(row, "sidflake get", "redis INCR", 1.4)
    c.limit(row, "memcached get", 1.2)
    c.limit(row, "redis INCR", 1.4)
    yield row
    row = Row("unpipelined", "the same over TCP loopback")
    c = contest(lab, row, 1, 1, tcp=True)
    c.target(row, "sidflake get", "bare", 0.9)
    yield row


def pipeline(lab):
    row = Row("pipeline", "get id:orders, 50 unix connections, pipeline 16, active 8")
    c = contest(lab, row, 16, 8)
    c.target(row, "sidflake get", "bare", 0.6)
    c.target(row, "sidflake get", "redis INCR", 2)
    c.target(row, "sidflake get", "memcached get", 8)
    yield row
    row = Row("pipeline", "get id:orders, 50 unix connections, pipeline 100, active 16")
    c = contest(lab, row, 100, 16)
    c.target(row, "sidflake get", "bare", 0.5)
    c.target(row, "sidflake get", "redis INCR", 3)
    row.note(f"16 workerIds give out 16.38M IDs/s at most; this machine's bare responder answers "
             f"{short(c.median('bare'))}/s")
    yield row


def saturate(lab, connections, depth):
    row = Row("saturated", f"one workerId saturated, {connections} unix connection"
              f"{'s' if connections > 1 else ''}, {depth} requests under way on each")
    side, seconds = lab.sidecar(active=1), 2 if lab.quick else 10
    bystander = lab.start_load(side.unix["mc"], "mc-get", seconds=seconds, warmup=0.3, every_ms=10)
    r = lab.load(side, side.unix["mc"], "mc-get", seconds=seconds, warmup=0.3, check="unique",
                 connections=connections, depth=depth)
    b = lab.end_load(bystander)
    full = 1_024_000
    row.target("share of 1,024,000 IDs/s", r["ids_rate"] / full * 100, 99, unit=" %")
    row.target("bystander, one get per 10 ms: p99", b["p99_us"] / 1000, 3, False, " ms")
    row.target("duplicates", r["duplicates"] + r["outside"], 0, False)
    row.note(f"{short(r['ids_rate'])} IDs/s for {seconds} s; the sidecar used "
             f"{r['cpu'] * 100:.0f} % of one processor and slept the other "
             f"{100 - r['cpu'] * 100:.0f} %; latency p50/p99/p99.9 {r['p50_us']:.0f}/"
             f"{r['p99_us']:.0f}/{r['p999_us']:.0f} us, the bystander's {b['p50_us']:.0f}/"
             f"{b['p99_us']:.0f}/{b['p999_us']:.0f} us")
    row.data = {"load": r, "bystander": b}
    return row


def saturated(lab):
    yield saturate(lab, 1, 1000)
    yield saturate(lab, 50, 100)


def batches(lab):
    row = Row("batches", "LPOP id:orders 1000, active 8, 8 unix connections")
    side, seconds = lab.sidecar(active=8), 1.5 if lab.quick else 5
    r = lab.load(side, side.unix["redis"], "resp-lpop", count=1000, connections=8, depth=2,
                 seconds=seconds, warmup=0.2)
    verify(lab, row, side, side.unix["redis"], "resp-lpop", count=1000, connections=8, depth=2)
    row.target("share of 8,192,000 IDs/s", r["ids_rate"] / 8_192_000 * 100, 95, unit=" %")
    row.note(f"{short(r['ids_rate'])} IDs/s, CPU {r['cpu'] * 100:.0f} %, p50/p99 per LPOP "
             f"{r['p50_us']:.0f}/{r['p99_us']:.0f} us")
    row.data["load"] = r
    yield row

    row = Row("batches", "memcached get of 100 keys, active 16, 50 unix connections")
    c = Contest(lab, *sizes(lab), connections=50, depth=1)
    side, mem = lab.sidecar(active=16), lab.memcached()
    c.enter("sidflake 100 keys", side, side.unix["mc"], "mc-get", count=100)
    c.enter("memcached 100 keys", mem, mem.unix["mc"], "mc-get", count=100)
    c.run()
    c.target(row, "sidflake 100 keys", "memcached 100 keys", 1.5)
    verify(lab, row, side, side.unix["mc"], "mc-get", count=100, connections=50)
    c.tell(row)
    row.note(f"in keys: {short(c.median('sidflake 100 keys', 'ids_rate'))}/s against "
             f"{short(c.median('memcached 100 keys', 'ids_rate'))}/s")
    yield row


def single(lab, row, side, bound):
    c = Contest(lab, *sizes(lab), connections=1, depth=1)
    redis, mem, bare = lab.redis(), lab.memcached(), lab.bare()
    c.enter("bare", bare, bare.unix["mc"], "mc-get")
    c.enter("sidflake get", side, side.unix["mc"], "mc-get")
    c.enter("memcached get", mem, mem.unix["mc"], "mc-get")
    c.enter("sidflake GET", side, side.unix["redis"], "resp-get")
    c.enter("redis INCR", redis, redis.unix["redis"], "resp-incr")
    c.run()
    c.target(row, "sidflake get", "memcached get", bound, "p50_us", False)
    c.target(row, "sidflake GET", "redis INCR", bound, "p50_us", False)
    c.tell(row)
    return row


def latency(lab):
    yield single(lab, Row("latency", "one unix connection, unpipelined: p50"), lab.sidecar(), 1)
    row = Row("latency", "the same with listen.busy_poll: 50us")
    side = lab.sidecar("sidflake-spin", sets=["listen.busy_poll=50us"])
    try:
        side.ready()
    except Failure as e:
        row.target("p50, against memcached's and Redis's", None, 0.5, False, " x")
        row.note(f"not offered: {e}"[:200])
        side.stop()
        yield row
        return
    single(lab, row, side, 0.5)
    cpu = side.cpu_seconds()
    time.sleep(1)
    row.note(f"idle, it used {(side.cpu_seconds() - cpu) * 100:.1f} % of one processor")
    side.stop()
    yield row


def sweeps(lab):
    """For the plot: depth at 50 connections, connections at depth 1."""
    side, redis, mem, bare = lab.sidecar(active=16), lab.redis(), lab.memcached(), lab.bare()
    entrants = {"bare": (bare, bare.unix["mc"], "mc-get"),
                "sidflake get": (side, side.unix["mc"], "mc-get"),
                "sidflake GET": (side, side.unix["redis"], "resp-get"),
                "memcached get": (mem, mem.unix["mc"], "mc-get"),
                "redis INCR": (redis, redis.unix["redis"], "resp-incr")}
    seconds = 0.15 if lab.quick else 1
    depths = (1, 16, 100) if lab.quick else (1, 2, 4, 8, 16, 32, 64, 128, 256)
    counts = (1, 50) if lab.quick else (1, 2, 4, 8, 16, 32, 64, 128, 256, 512)
    for title, x, values, load in (
            ("50 unix connections", "pipeline depth", depths, lambda v: (50, v)),
            ("unpipelined, unix", "connections", counts, lambda v: (v, 1))):
        series = {name: [] for name in entrants}
        for v in values:
            connections, depth = load(v)
            for name, (server, address, kind) in entrants.items():
                r = lab.load(server, address, kind, seconds=seconds, warmup=0.05,
                             connections=connections, depth=depth)
                series[name].append({"x": v, **{k: r[k] for k in ("rate", "p50_us", "p99_us")}})
        yield {"title": f"{title}, {os.cpu_count()} processors", "x": x, "series": series}
