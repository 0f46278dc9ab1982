"""Rows about what the sidecar costs: instructions, allocations, memory, wake-ups, time to start."""

import mmap
import os
import re
import resource
import shutil
import statistics
import struct
import subprocess
import time

from lab import KEY, Failure, ask, connect, which
from report import Row, spread

MIB = 1024.0


# ---- instructions

def collected(text):
    found = re.search(r"Collected : (\d+)", text)
    if not found:
        raise Failure("expected callgrind's count of instructions, found " + text[-200:].strip())
    return int(found.group(1))


CALLGRIND = ["--tool=callgrind", "--callgrind-out-file=/dev/null"]


def in_process(lab, protocol, few=1000, many=11000, depth=100):
    """Per request, exactly: what start and end cost is the same in both runs."""
    counts = []
    for n in (few, many):
        done = subprocess.run([which("valgrind"), *CALLGRIND, lab.tool("inproc"), "serve", protocol,
                               str(n), str(depth)], capture_output=True, text=True)
        counts.append(collected(done.stderr))
    return (counts[1] - counts[0]) / (many - few)


def whole_process(lab, kind, protocol, few=2000, many=22000):
    """The same of the whole sidecar under load: with the connection, libev and the system calls'
    user-space side. Its other threads and timers make it inexact by a few instructions."""
    counts = []
    for n in (few, many):
        side = lab.sidecar("sidflake-callgrind", before=[which("valgrind"), *CALLGRIND])
        side.ready()
        lab.load(side, side.unix[protocol], kind, seconds=60, warmup=0, requests=n, depth=100)
        side.stop()
        counts.append(collected(side.log_text()))
    return (counts[1] - counts[0]) / (many - few)


def instructions(lab):
    row = Row("instructions", "user-space instructions per pipelined request (callgrind)")
    for protocol, verb in (("memcached", "get"), ("redis", "GET")):
        n = in_process(lab, protocol)
        row.target(f"{verb}: codec, handler and generator", n, 400, False, "", f"{n:.0f}")
        differ = in_process(lab, protocol + "-differ")
        row.note(f"{verb} of another key than the request before: {differ:.0f}")
        row.data[protocol], row.data[protocol + "-differ"] = n, differ
    for what in "twitter", "sonyflake", "borrow", "hold":
        row.data["redis-" + what] = n = in_process(lab, "redis-" + what)
        row.note(f"GET with {what}: {n:.0f}, {row.data['redis'] / n:.2f} of the usual one's speed")
    if not lab.quick:
        for kind, protocol, verb in (("mc-get", "mc", "get"), ("resp-get", "redis", "GET")):
            n = whole_process(lab, kind, protocol)
            row.target(f"{verb}: the whole sidecar, pipeline 100", n, 400, False, "", f"{n:.0f}")
            row.data[f"whole {protocol}"] = n
    yield row


# ---- allocations

class Counts:
    """What count_malloc.so counts."""

    def __init__(self, path):
        with open(path, "wb") as f:
            f.write(bytes(16))
        self.file = open(path, "r+b")
        self.map = mmap.mmap(self.file.fileno(), 16)

    def allocations(self):
        return struct.unpack_from("<Q", self.map)[0]


def split_requests(address, n):
    with connect(address) as s:
        for _ in range(n):
            s.sendall(b"get id:or")
            time.sleep(0.0005)
            s.sendall(b"ders\r\n")
            got = b""
            while not got.endswith(b"END\r\n"):
                got += s.recv(4096)


def allocations(lab):
    row = Row("allocations", "allocations per request after warm-up, by the serving thread")
    path = os.path.join(lab.dir, "count_malloc")
    counts = Counts(path)
    side = lab.sidecar("sidflake-malloc", env={"LD_PRELOAD": lab.tool("count_malloc.so"),
                                               "COUNT_MALLOC": path}).ready()
    if counts.allocations() == 0:
        side.stop()
        raise Failure("expected allocations of the start to be counted, found none")
    for what, kind, protocol, depth in (("get, pipeline 100", "mc-get", "mc", 100),
                                        ("get, unpipelined", "mc-get", "mc", 1),
                                        ("GET, pipeline 100", "resp-get", "redis", 100)):
        lab.load(side, side.unix[protocol], kind, seconds=10, requests=5000, depth=depth,
                 connections=5)
        before, n = counts.allocations(), 20000
        lab.load(side, side.unix[protocol], kind, seconds=10, requests=n, depth=depth,
                 connections=5)
        made = counts.allocations() - before
        per = max(0, made - 6) / n  # at accept: one for each connection, one for who they are of
        row.target(what, per, 0, False, "", f"{per:.4f}")
        row.note(f"{what}: {made} allocations for 5 connections and {n} requests")
    before, n = counts.allocations(), 200
    split_requests(side.unix["mc"], n)
    per = max(0, counts.allocations() - before - 2) / n
    row.target("get that comes in two pieces", per, 0, False, "", f"{per:.2f}")
    side.stop()
    yield row


# ---- memory

def resident_kib(pid):
    with open(f"/proc/{pid}/smaps_rollup") as f:
        fields = dict(re.findall(r"^(\w+):\s+(\d+) kB", f.read(), re.M))
    private = int(fields["Private_Clean"]) + int(fields["Private_Dirty"])
    return int(fields["Rss"]), int(fields["Pss"]), private


def by_mapping(pid):
    """KiB resident and private per file mapped; [heap], [stack] and anonymous memory by name."""
    out, name = {}, ""
    with open(f"/proc/{pid}/smaps") as f:
        for line in f:
            head = re.match(r"[0-9a-f]+-[0-9a-f]+ \S+ \S+ \S+ \S+\s*(.*)", line)
            if head:
                name = os.path.basename(head.group(1).strip()) or "anonymous"
                continue
            field = re.match(r"(Rss|Private_Clean|Private_Dirty):\s+(\d+) kB", line)
            if field:
                entry = out.setdefault(name, [0, 0])
                entry[0 if field.group(1) == "Rss" else 1] += int(field.group(2))
    return dict(sorted(out.items(), key=lambda e: -e[1][0]))


def open_idle(side, n, served=True):
    """n connections; each has had one request answered."""
    peers = []
    for _ in range(n):
        s = connect(side.unix["mc"])
        if served:
            s.sendall(f"get {KEY}\r\n".encode())
        peers.append(s)
        if served:
            s.recv(4096)
    return peers


def memory(lab):
    row = Row("memory", "resident memory, Redis coordinator, idle connections")
    side = lab.sidecar("sidflake-memory").ready()
    peers = open_idle(side, 100)
    time.sleep(0.3)
    at_100, libraries = resident_kib(side.pid), by_mapping(side.pid)
    peers += open_idle(side, 2000)
    time.sleep(0.3)
    at_2100 = resident_kib(side.pid)
    row.target("with 100 idle connections", at_100[0] / MIB, 3.0, False, " MiB",
               f"{at_100[0] / MIB:.2f} MiB")
    row.target("each further one", (at_2100[0] - at_100[0]) / 2000, 1, False, " KiB",
               f"{(at_2100[0] - at_100[0]) / 2000:.2f} KiB")
    row.note(f"of which shared with other processes or with the page cache: "
             f"{(at_100[0] - at_100[2]) / MIB:.2f} MiB; private: {at_100[2] / MIB:.2f} MiB")
    row.note("resident (private) KiB by mapping: " + ", ".join(
        f"{n} {r} ({p})" for n, (r, p) in libraries.items() if r >= 8))
    row.data = {"kib_100": at_100, "kib_2100": at_2100, "mappings": libraries}
    for s in peers:
        s.close()
    side.stop()
    yield row


def idle_connections(lab):
    row = Row("idle", "10,000 idle connections")
    want = 10000
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < want + 200:
        raise Failure(f"expected a hard limit of {want + 200} file descriptors, found {hard}")
    resource.setrlimit(resource.RLIMIT_NOFILE, (want + 200, hard))
    side = lab.sidecar("sidflake-idle", sets=[f"limits.connections={want + 100}"]).ready()
    try:
        rounds, seconds = (3, 0.3) if lab.quick else (5, 1)

        def active():
            return [lab.load(side, side.unix["mc"], "mc-get", seconds=seconds)
                    for _ in range(rounds)]
        before, rss = active(), resident_kib(side.pid)[0]
        begin = time.monotonic()
        peers = open_idle(side, want)
        took = time.monotonic() - begin
        held = side.metric('sidflake_connections{protocol="memcached"}')
        after, rss_after = active(), resident_kib(side.pid)[0]
        p99 = [statistics.median(r["p99_us"] for r in x) for x in (before, after)]
        row.target("accepted and served", held, want)
        row.target("p99 of an active one, against none idle", p99[1] / p99[0], 1.25, False, " x",
                   f"{p99[0]:.0f} -> {p99[1]:.0f} us")
        row.target("each of them", (rss_after - rss) / want, 1, False, " KiB",
                   f"{(rss_after - rss) / want:.2f} KiB")
        row.note(f"opened and served in {took:.1f} s; resident {rss / MIB:.1f} -> "
                 f"{rss_after / MIB:.1f} MiB")
        row.data = {"before": before, "after": after}
        for s in peers:
            s.close()
    finally:
        side.stop()
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    yield row


# ---- wake-ups

def switches(pid):
    """Voluntary context switches per thread: each is a sleep, ended by a wake-up."""
    out = {}
    for task in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{task}/status") as f:
            out[task] = int(re.search(r"^voluntary_ctxt_switches:\s+(\d+)", f.read(), re.M)[1])
    return out


def bursts(trace):
    """System calls less than 100 ms apart are one wake-up of the process."""
    out = []
    for line in trace.splitlines():
        m = re.match(r"(?:\[pid\s+)?(\d+)\]?\s+(\d+\.\d+) (.*)", line)
        if not m or "resumed>" not in m[3] and "unfinished" in m[3]:
            continue
        at = float(m[2])
        if not out or at - out[-1]["end"] > 0.1:
            out.append({"begin": at, "calls": []})
        out[-1]["end"] = at
        out[-1]["calls"].append(m[3])
    return out


def renews(burst):
    return any(re.match(r"(connect|socket|sendto|write)\(", c) for c in burst["calls"])


def wakeups(lab):
    row = Row("wakeups", "wake-ups when idle")
    seconds = 7 if lab.quick else 25
    side = lab.sidecar("sidflake-sleep").ready()
    time.sleep(1)
    before = switches(side.pid)
    if shutil.which("strace"):
        trace = os.path.join(lab.dir, "strace")
        tracer = subprocess.Popen(["strace", "-f", "-ttt", "-o", trace, "-p", str(side.pid)],
                                  stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(seconds)
        tracer.terminate()
        tracer.wait()
        with open(trace) as f:
            seen = [b for b in bursts(f.read()) if b["calls"]]
        # Attaching makes every thread return to its wait once.
        seen = [b for b in seen if any("restart_syscall" not in c and "SIGSTOP" not in c
                                       and "detached" not in c for c in b["calls"])]
        seen = [b for b in seen if len(b["calls"]) > len(before)]
        other = [b for b in seen if not renews(b)]
        row.target("that are no renewals", len(other), 0, False)
        row.note(f"strace over all {len(before)} threads for {seconds} s: {len(seen)} wake-ups, "
                 f"{len(seen) - len(other)} of them renewals (one each 5 s while the tenure is "
                 f"young), of {statistics.mean([len(b['calls']) for b in seen] or [0]):.0f} system "
                 f"calls each")
        row.data["bursts"] = [[c.split("(")[0] for c in b["calls"]] for b in seen]
    else:
        time.sleep(seconds)
        row.target("that are no renewals", None, 0, False)
        row.note("strace is not there; context switches tell less")
    after = switches(side.pid)
    row.note("voluntary context switches per thread, main first: " + ", ".join(
        str(after[t] - before.get(t, 0)) for t in sorted(after, key=int)))
    side.stop()
    yield row


# ---- start

def start_once(lab, i):
    name = f"sidflake-start-{i}"
    begin = time.monotonic()
    side = lab.sidecar(name)
    request = f"get {KEY}\r\n".encode()
    while True:
        try:
            if ask(side.unix["mc"], request, b"\r\n").startswith(b"VALUE "):
                break
        except OSError:
            side.check()
        if time.monotonic() - begin > 10:
            raise Failure("expected an ID within 10 s of the start")
        time.sleep(0.0002)
    took = (time.monotonic() - begin) * 1000
    side.stop()
    return took


def spawn_once():
    begin = time.monotonic()
    subprocess.Popen(["/bin/true"], close_fds=False).wait()
    return (time.monotonic() - begin) * 1000


def start(lab):
    row = Row("start", "start to first ID, Redis on loopback")
    lab.coordinator()
    rounds = 5 if lab.quick else 21
    took = spread([start_once(lab, i) for i in range(rounds)])
    spawn = spread([spawn_once() for _ in range(rounds)])
    row.target(f"median of {rounds}", took["median"], 20, False, " ms",
               f"{took['median']:.1f} ({took['min']:.1f}-{took['max']:.1f})")
    row.note(f"of which starting any process, as /bin/true: {spawn['median']:.1f} ms")
    row.data = {"ms": took, "spawn_ms": spawn}
    yield row
