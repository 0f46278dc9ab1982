"""Rows about sequences: numbers that count, beside IDs, and beside INCR of the Redis that grants."""

import json
import os
import re
import subprocess
import sys
import time

import costs
import pool
from lab import Failure, Server, await_true, connect, free_port
from report import Row, short, spread
from throughput import Contest, sizes, verify

SEQ, STRICT = "seq:orders", "seq:strict"
NO = "no:invoice"
FIVE_PARTS = "INV-@{date,%Y%m%d}-@{seq,width=12}@{check,damm}"
CONNECTIONS = 50


# ---- what they are asked of

def create(lab, name, *words):
    """On the bench's Redis, which loses nothing while it runs: no line slows anybody down."""
    subprocess.run([lab.program("sidflakectl"), "seq", "create", name, "--coordinator",
                    lab.coordinator_url, "--pool", "bench", "--on-loss", "trust", *words],
                   check=True, stdout=subprocess.DEVNULL)


def made(lab):
    def make():
        lab.coordinator()
        create(lab, "orders")
        create(lab, "strict", "--order", "strict")
        create(lab, "many", "--subs")
        create(lab, "invoice", "--reset", "day", "--template", FIVE_PARTS)
        return True
    return lab.once("the sequences", make)


def counts(side, key):
    """One of each was given out, so that the first block is there."""
    def given():
        with connect(side.unix["redis"]) as s:
            s.sendall(f"GET {key}\r\n".encode())
            return s.recv(100).startswith(b"$")
    await_true(f"a number of {key}", lambda: side.check() and given())


def sidecar(lab):
    """One that all rows of numbers in hand share, and of strict order."""
    made(lab)

    def make():
        side = lab.sidecar("sidflake-seq", active=16, sets=["limits.max_wait=5s"]).ready()
        counts(side, SEQ)
        counts(side, STRICT)
        counts(side, NO)
        return side
    return lab.once("the sidecar with sequences", make)


def far(lab, ms):
    """The coordinator's address, so many ms there and back."""
    def make():
        coordinator, port = lab.coordinator(), free_port()
        program = os.path.join(os.path.dirname(os.path.abspath(__file__)), "far.py")
        server = Server(lab, f"far-{ms}", [sys.executable, program, str(port),
                                           coordinator.unix["redis"][5:], str(ms)],
                        tcp={"redis": f"tcp://127.0.0.1:{port}"})
        await_true(server.name, lambda: server.check()
                   and connect(server.tcp["redis"]).close() is None)
        return f"redis://127.0.0.1:{port}?db=0"
    return lab.once(f"far {ms}", make)


# ---- from a block in hand

def sockets(lab, depth):
    side, redis, bare = sidecar(lab), lab.redis(), lab.bare("resp")
    row = Row("sequences", f"GET {SEQ}, 50 unix connections, " +
              (f"pipeline {depth}" if depth > 1 else "unpipelined"))
    c = Contest(lab, *sizes(lab), connections=CONNECTIONS, depth=depth)
    c.enter("GET seq", side, side.unix["redis"], "resp-get", key=SEQ)
    c.enter("GET id", side, side.unix["redis"], "resp-get")
    c.enter("GET no", side, side.unix["redis"], "resp-text", key=NO)
    c.enter("get seq", side, side.unix["mc"], "mc-get", key=SEQ)
    c.enter("redis INCR", redis, redis.unix["redis"], "resp-incr")
    c.enter("bare", bare, bare.unix["resp"], "resp-get")
    c.run()
    c.target(row, "GET seq", "GET id", 0.95)
    c.target(row, "GET no", "GET seq", 0.8)
    verify(lab, row, side, side.unix["redis"], "resp-get", key=SEQ, connections=CONNECTIONS,
           depth=depth)
    for peer in ("redis INCR", "bare"):
        r = c.ratio("GET seq", peer)
        row.note(f"GET seq / {peer}: {r['median']:.2f} x ({r['min']:.2f}-{r['max']:.2f})")
    c.tell(row)
    return row


def in_process(lab):
    row = Row("sequences", "a block in hand, in process, one core")
    rounds, n = (3, 20_000_000) if lab.quick else (7, 200_000_000)
    rate = spread([pool.inproc(lab, "numbers", n) for _ in range(rounds)])
    row.target("one number per call", rate["median"], 200e6, unit=" numbers/s")
    row.data["numbers"] = rate
    try:
        for protocol in ("memcached", "redis"):
            n, ids = (costs.in_process(lab, protocol + suffix) for suffix in ("-seq", ""))
            row.data[protocol] = {"seq": n, "id": ids}
            row.note(f"{protocol}, instructions of a pipelined request: {n:.0f}, of an ID {ids:.0f}")
    except Failure as e:
        row.note(f"no instructions: {e}"[:200])
    return row


# ---- a store that is far away

def paced(lab, side, seconds):
    """100,000 numbers a second on one connection; the latency is that of a hundred."""
    return lab.load(side, side.unix["redis"], "resp-get", key=SEQ, depth=100, every_ms=1,
                    seconds=seconds, warmup=seconds / 4)


def parked(side):
    return side.metric(f'sidflake_sequence_parked_total{{name="{SEQ[4:]}"}}')


def changes(lab):
    """The same sidecar with blocks of a second, and with blocks that hardly ever end."""
    row = Row("sequences", "change of block, 100,000 numbers/s, 50 ms to the coordinator and back")
    made(lab)
    seconds = 3 if lab.quick else 15
    runs = {}
    for what, lasts in (("often", "1s"), ("seldom", "10s")):
        side = lab.sidecar(f"sidflake-{what}", sets=[
            f"coordinator.url={far(lab, 50)}", f"sequences.cache_lasts={lasts}"]).ready()
        counts(side, SEQ)
        paced(lab, side, 3)  # blocks grow to what is needed
        before, takes = parked(side), granted(side)
        runs[what] = paced(lab, side, seconds)
        runs[what]["parked"] = parked(side) - before
        runs[what]["blocks"] = granted(side) - takes
        side.stop()
    often, seldom = runs["often"], runs["seldom"]
    row.target("requests parked", often["parked"] + seldom["parked"], 0, False)
    row.target("p99.99, blocks of a second against ten", often["p9999_us"] / seldom["p9999_us"],
               1.25, False, " x", f"{seldom['p9999_us']:.0f} -> {often['p9999_us']:.0f} us")
    for what, r in runs.items():
        row.note(f"{what}: {r['blocks']:.0f} blocks, {short(r['ids_rate'])} numbers/s, "
                 f"p50/p99/p99.9/p99.99/max " + "/".join(
                     f"{r[p]:.0f}" for p in ("p50_us", "p99_us", "p999_us", "p9999_us", "max_us"))
                 + f" us, {r['parked']:.0f} parked")
    row.data = runs
    return row


def granted(side):
    return side.metric('sidflake_sequence_takes_total{outcome="granted"}')


# ---- strict

def cpu_per(server, run):
    """What run() gives, and the seconds of processor time of `server` meanwhile."""
    before = server.cpu_seconds()
    result = run()
    return result, server.cpu_seconds() - before


class StrictContest(Contest):
    """With the processor time that the coordinator spends on each number."""

    def measure(self, server, *args, **load):
        redis, side = self.lab.coordinator(), sidecar(self.lab)
        takes = granted(side)
        result, used = cpu_per(redis, lambda: self.lab.load(server, *args, **load))
        result["redis_us"] = used / max(1, result["all"]) * 1e6
        result["takes"] = granted(side) - takes
        return result


def strict(lab, depth, bound):
    """A round is the script, some 65 us of Redis' time for one number as for hundreds, and then those
    who waited, one by one: the sidecar's time for each is more than what the bound leaves in all."""
    side, redis = sidecar(lab), lab.coordinator()
    row = Row("strict", f"strict: INCR {STRICT}, 50 unix connections, " +
              (f"pipeline {depth}" if depth > 1 else "unpipelined")
              + ", beside INCR of the Redis that grants")
    c = StrictContest(lab, *sizes(lab), connections=CONNECTIONS, depth=depth)
    c.enter("strict", side, side.unix["redis"], "resp-incr", key=STRICT)
    c.enter("redis INCR", redis, redis.unix["redis"], "resp-incr", key="counter")
    c.run()
    c.target(row, "strict", "redis INCR", bound, cost=False)
    if depth > 1:
        c.target(row, "strict", "redis INCR", 0.5, "redis_us", False)
    verify(lab, row, side, side.unix["redis"], "resp-incr", key=STRICT, connections=CONNECTIONS,
           depth=depth)
    for name in c.results:
        row.note(f"{name}: Redis spends {c.median(name, 'redis_us'):.2f} us on a number")
    taken = sum(c.values("strict", "takes"))
    row.note(f"strict: {sum(c.values('strict', 'all')) / max(1, taken):.1f} numbers of a call")
    c.tell(row)
    return row


def alone(lab):
    """One client: a round trip for who came while no call was under way."""
    row = Row("strict", "strict, one client, unpipelined: p50 against the round trip")
    made(lab)
    for ms in (0, 1, 10):
        sets = [f"coordinator.url={far(lab, ms)}"]
        side = lab.sidecar(f"sidflake-alone-{ms}", sets=sets).ready()
        counts(side, STRICT)
        port = int(sets[0].split(":")[-1].split("?")[0])
        seconds = 0.5 if lab.quick else 2
        rtt = lab.load(lab.coordinator(), f"tcp://127.0.0.1:{port}", "resp-incr", key="counter",
                       seconds=seconds)["p50_us"]
        r = lab.load(side, side.unix["redis"], "resp-incr", key=STRICT, seconds=seconds)
        row.target(f"{ms} ms to the coordinator and back", r["p50_us"], 2 * rtt + 60, False, " us",
                   f"{r['p50_us']:.0f} us")
        row.note(f"{ms} ms: INCR there takes {rtt:.0f} us at p50; strict p50/p99 "
                 f"{r['p50_us']:.0f}/{r['p99_us']:.0f} us")
        row.data[str(ms)] = {"incr_us": rtt, "strict": r}
        side.stop()
    return row


# ---- grants

def grants(lab):
    row = Row("strict", "grants a second of one Redis, 16 connections")
    lab.coordinator()
    lab.init_pool("takes")
    seconds = 1 if lab.quick else 5
    for items in (8, 1):
        done = subprocess.run([lab.tool("takes"), lab.coordinator_url, "takes", "16", str(items),
                               str(seconds)], capture_output=True, text=True)
        if done.returncode:
            raise Failure(done.stderr.strip())
        r = row.data[str(items)] = json.loads(done.stdout)
        row.target(f"{items} in a call", r["rate"], 15000, unit="/s")
    return row


# ---- what they cost who has none, or many that are idle

def kib_of(pid):
    """Resident, and written to by this process alone: what is clean comes and goes."""
    with open(f"/proc/{pid}/smaps_rollup") as f:
        fields = dict(re.findall(r"^(\w+):\s+(\d+) kB", f.read(), re.M))
    return int(fields["Rss"]), int(fields["Private_Dirty"])


def measured(lab, name, program=None, sets=(), use=None):
    """kib_of a sidecar after 100 IDs, and after use(side)."""
    side = lab.sidecar(name, sets=sets, program=program).ready()
    for s in costs.open_idle(side, 100):
        s.close()
    time.sleep(0.3)
    before = kib_of(side.pid)
    if use:
        use(side)
        time.sleep(1.5)
    after = kib_of(side.pid)
    return side, before, after


def without(lab):
    row = Row("counters", "memory of a sidecar that nobody asks for sequences")
    made(lab)
    seen = {}
    for name, sets in (("none", ["sequences.prefix="]), ("unused", []),
                       ("room for 10,000", ["sequences.counters=10000"])):
        runs = []
        for i in range(3):
            side, _, after = measured(lab, f"sidflake-mem-{name[:4]}-{i}", sets=sets)
            runs.append(after)
            side.stop()
        seen[name] = min(runs, key=lambda r: r[1])
    for name in ("unused", "room for 10,000"):
        more = (seen[name][1] - seen["none"][1]) / 4
        row.target(f"{name}, private and dirty, against prefix \"\"", more, 0, False, " pages",
                   f"{more:+.0f} pages")
    if lab.before:
        runs = []
        for i in range(3):
            side, _, after = measured(lab, f"sidflake-mem-before-{i}", lab.before)
            runs.append(after)
            side.stop()
        seen["before"] = min(runs, key=lambda r: r[1])
        more = (seen["unused"][1] - seen["before"][1]) / 4
        row.target(f"private and dirty, against {lab.before}", more, 0, False, " pages", f"{more:+.0f} pages")
    row.note("resident (private) KiB: " + ", ".join(
        f"{n} {rss} ({private})" for n, (rss, private) in seen.items()))
    row.data = seen
    return row


def use_many(side, n):
    """One number of each of n counters, over 64 connections: each waits for one at a time."""
    peers = [connect(side.unix["redis"], 60) for _ in range(64)]
    for at, s in enumerate(peers[:n]):
        s.sendall(b"".join(b"GET seq:many:%d\r\n" % i for i in range(at, n, 64)))
    for at, s in enumerate(peers):
        want, got = len(range(at, n, 64)), b""
        while got.count(b"\n") < 2 * want:
            part = s.recv(65536)
            if not part or b"-" in part:
                raise Failure(f"expected numbers, found {part[:100]}")
            got += part
        s.close()


def idle(lab):
    n = 10000
    row = Row("counters", f"room for {n} counters; those that were used were used once, then idle")
    made(lab)
    sets = [f"sequences.counters={n}", "sequences.cache_max=10", "limits.max_wait=60s"]
    side, before, after = measured(lab, "sidflake-one", sets=sets, use=lambda s: use_many(s, 1))
    more = (after[1] - before[1]) / costs.MIB
    row.target("private memory, one of them used", more, 1, False, " MiB", f"{more:.2f} MiB")
    side.stop()
    side, before, after = measured(lab, "sidflake-many", sets=sets, use=lambda s: use_many(s, n))
    more = (after[1] - before[1]) / costs.MIB
    row.target("private memory, all of them used", more, 1, False, " MiB", f"{more:.2f} MiB")
    row.note(f"each: {(after[1] - before[1]) * 1024 / n:.0f} bytes")
    was, seconds = costs.switches(side.pid), 3 if lab.quick else 21
    time.sleep(seconds)
    now = costs.switches(side.pid)
    woken = {t: now[t] - was.get(t, 0) for t in sorted(now, key=int)}
    main = woken[str(side.pid)]
    # Renewals wake the keeper, and are told to the loop: one each 5 s while the tenure is young.
    row.target("wake-ups of the loop, but for renewals", max(0, main - (seconds // 5 + 1) * 2), 0,
               False)
    row.note(f"in {seconds} s, per thread, main first: " + ", ".join(map(str, woken.values())))
    row.data = {"before": before, "after": after, "woken": woken,
                "mappings": costs.by_mapping(side.pid)}
    row.note("resident (private) KiB by mapping: " + ", ".join(
        f"{m} {r} ({p})" for m, (r, p) in row.data["mappings"].items() if r >= 100))
    side.stop()
    return row


def numbers(lab):
    for depth in (1, 16, 100):
        yield sockets(lab, depth)
    yield in_process(lab)
    yield changes(lab)


def strict_order(lab):
    yield strict(lab, 1, 0.8)
    yield strict(lab, 16, 1.5)
    yield alone(lab)
    yield grants(lab)


def counters(lab):
    yield without(lab)
    yield idle(lab)
