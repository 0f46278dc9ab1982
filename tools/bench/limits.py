"""Rows that show where the limits are: what a request costs the kernel, and what libev offers."""

import subprocess
import time

from lab import Failure, which
from report import Row, spread
from throughput import Contest


# ---- system calls

def calls_of(text, requests):
    """Calls per request by name, of `strace -c`; what happens less than once in 50 is left out."""
    out = {}
    for line in text.splitlines():
        fields = line.split()
        if len(fields) >= 5 and fields[0].replace(".", "").isdigit() and fields[-1] != "total":
            per = int(fields[3]) / requests
            if per >= 0.02:
                out[fields[-1]] = round(per, 2)
    return out


def trace(lab, server, address, kind, connections):
    """strace slows the server down, so that more connections than else are ready at once."""
    tracer = subprocess.Popen([which("strace"), "-f", "-c", "-p", str(server.pid)],
                              stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    time.sleep(0.5)
    r = lab.load(server, address, kind, seconds=30, warmup=0, requests=5000,
                 connections=connections)
    tracer.terminate()
    return calls_of(tracer.communicate()[1], r["all"])


def system_calls(lab):
    row = Row("limits", "system calls of a request, unpipelined (strace)")
    side, redis, mem, bare = lab.sidecar(), lab.redis(), lab.memcached(), lab.bare()
    for name, server, address, kind in (
            ("bare", bare, bare.unix["mc"], "mc-get"),
            ("sidflake get", side, side.unix["mc"], "mc-get"),
            ("memcached get", mem, mem.unix["mc"], "mc-get"),
            ("redis INCR", redis, redis.unix["redis"], "resp-incr")):
        for connections in (1, 50):
            calls = trace(lab, server, address, kind, connections)
            row.data[f"{name} {connections}"] = calls
            row.note(f"{name}, {connections} connection{'s' if connections > 1 else ''}: "
                     + ", ".join(f"{k} {v:.2f}" for k, v in calls.items()))
    return row


# ---- what libev offers

WAYS = {
    "epoll": "read once, send once",
    "again": "a second read, which finds nothing",
    "late": "all reads of a wake-up, then all sends",
    "plain": "read and write instead of recv and send",
    "writev": "two pieces in one writev",
    "poll": "libev's poll backend",
    "select": "libev's select backend",
    "linuxaio": "libev's linuxaio backend",
    "io_uring": "libev's io_uring backend",
}


def ways(lab, connections):
    row = Row("limits", f"the bare responder in other ways, {connections} unix connection"
              f"{'s' if connections > 1 else ''}, unpipelined")
    rounds, seconds = (3, 0.15) if lab.quick else (9, 0.4)
    c = Contest(lab, rounds, seconds, connections=connections, depth=1)
    for how, what in WAYS.items():
        try:
            server = lab.bare(how=how)
            c.enter(how, server, server.unix["mc"], "mc-get")
        except Failure as e:
            row.note(f"{how}, {what}: {str(e).split('bare: ')[-1]}")
    c.run()
    for how in c.entrants:
        cost = spread([x / y for x, y in zip(c.values(how, "cpu_us"), c.values("epoll", "cpu_us"))])
        row.data[how] = {"cpu": cost, "rate": c.ratio(how, "epoll")}
        row.note(f"{how}, {WAYS[how]}: {cost['median']:.2f} x the processor time of epoll "
                 f"({cost['min']:.2f}-{cost['max']:.2f}), "
                 f"{row.data[how]['rate']['median']:.2f} x its rate")
    return row


def limits(lab):
    yield system_calls(lab)
    yield ways(lab, 1)
    yield ways(lab, 50)
