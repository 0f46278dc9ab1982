"""Faults of sidecars, of their clocks and state, and of time: for every topology.

A fault returns nothing, or, where it cannot be done here, why.
"""

import contextlib
import os
import shutil
import signal
import socket
import struct
import subprocess

from schedule import table

fault, FAULTS = table()

MS, HOUR, YEAR = 0.001, 3600, 365 * 86400
FLOOD = 1500  # connections to each listener


# ---- processes ---------------------------------------------------------------------------------

def kill(w, s):
    w.must_stop(s)
    s.kill()


@fault("SIGKILL, restart with its page", "sidecar", 3)
def killed(w, s):
    kill(w, s)
    yield w.rng.choice((0, 0, 0.05, 0.5, 1.5))
    s.start()
    yield 0.5


@fault("SIGKILL, page lost", "sidecar")
def page_lost(w, s):
    kill(w, s)
    shutil.rmtree(s.state_dir)
    os.mkdir(s.state_dir)
    yield w.rng.choice((0, w.rng.uniform(0, 1)))
    s.start()
    yield 0.5


@fault("SIGKILL, clock back while it is dead, restart with its page", "sidecar clock", 2)
def clock_back_dead(w, s):
    kill(w, s)
    s.set_clock(-w.rng.choice((0.05, 0.3, 1, 5)))
    try:
        yield w.rng.uniform(0, 0.1)
        s.start()
        yield w.rng.uniform(0.5, 1.5)
    finally:
        s.set_clock(0)
    yield 0.5


@fault("SIGTERM, restart", "sidecar")
def terminated(w, s):
    w.must_stop(s)
    s.send(signal.SIGTERM)
    for _ in range(1500):
        yield 0.01
        if not s.running():
            break
    s.kill()
    s.start()
    yield 0.5


@fault("SIGTERM, its workerIds to one whose clock is behind", "sidecar:*", 2)
def handed_on(w):
    """It has issued IDs of a time that is still to come for the other."""
    pool = w.rng.choice(w.pools)
    by_skew = sorted((s for s in w.sidecars if w.pool_of(s.index) == pool), key=lambda s: s.skew)
    late, s = by_skew[0], by_skew[-1]
    active = s.worker()
    held = sorted(w.workers_of(s), key=lambda worker: worker == active)
    w.must_stop(s)
    s.send(signal.SIGTERM)
    for _ in range(500):
        yield 0.01
        if not s.running():
            break
    yield w.rng.uniform(0.4, 0.9) * (s.skew - late.skew)
    w.prefer(held, s)
    late.renew_life()
    yield 0.8
    s.kill()
    s.start()
    yield 0.5


@fault("SIGUSR2: its program takes over in place, up to five times", "sidecar", 2)
def upgraded(w, s):
    """No window: no request may fail."""
    for _ in range(w.rng.choice((1, 1, 2, 5))):
        s.popen.send_signal(signal.SIGUSR2)
        yield w.rng.choice((0.001, 0.01, w.rng.uniform(0, 0.3)))
    yield 0.3


@fault("SIGUSR2, and SIGKILL at about the time of the exchange", "sidecar")
def upgraded_and_killed(w, s):
    w.must_stop(s)
    s.popen.send_signal(signal.SIGUSR2)
    yield w.rng.uniform(0, 0.02)
    s.kill()
    yield w.rng.choice((0, 0.1))
    s.start()
    yield 0.5


@fault("SIGSTOP, SIGCONT", "sidecar", 2)
def stopped(w, s):
    """Time may pass by much more than the pause takes, as it does for one that lasts hours."""
    w.must_stop(s)
    s.pause()
    try:
        yield w.rng.uniform(1, w.rng.choice((2, 3, 60)) if w.long else 2)
        if w.rng.random() < 0.5:
            w.must_stop()
            w.pass_time(w.rng.uniform(5, 2 * w.forgotten_s))
            yield w.rng.uniform(0.2, 2.5)
    finally:
        s.resume()
    yield 0.5


@fault("SIGSTOP until others have its workerIds, then SIGCONT", "sidecar:* time", 2)
def succeeded(w):
    s, *others = w.rng.sample(w.sidecars, len(w.sidecars))
    held = w.workers_of(s)
    w.must_stop()
    s.pause()
    try:
        w.pass_time(w.rng.uniform(w.forgotten_s, 2 * w.forgotten_s))
        w.prefer(held, s)
        for other in others:
            other.renew_life()
        yield w.rng.uniform(0.5, 1)
    finally:
        s.resume()
    yield 0.5


# ---- the state directory -----------------------------------------------------------------------

def copy_if_there(path, to):
    """A file that is written beside another, and then renamed, may be gone since it was listed."""
    with contextlib.suppress(FileNotFoundError):
        shutil.copy2(path, to)


@fault("state_dir copied while in use, a second sidecar on the copy", "clone")
def copied(w):
    s = w.rng.choice(w.sidecars)
    c = w.clone
    shutil.rmtree(c.state_dir, ignore_errors=True)
    if not os.path.isdir(s.state_dir):
        return
    shutil.copytree(s.state_dir, c.state_dir, copy_function=copy_if_there)
    c.options["coordinator"] = s.options["coordinator"]
    c.skew = s.skew
    c.set_clock(0)
    c.start()
    c.start_clients()
    try:
        yield w.rng.uniform(2, 4)
    finally:
        c.stop_clients()
        c.kill()


@fault("SIGKILL, restart on a copy of its state_dir", "sidecar disk")
def moved(w, s):
    """Not while a disk is full: whoever moves a directory sees that it has arrived."""
    kill(w, s)
    shutil.copytree(s.state_dir, s.state_dir + ".copy")
    shutil.rmtree(s.state_dir)
    os.rename(s.state_dir + ".copy", s.state_dir)
    yield w.rng.uniform(0, 0.5)
    s.start()
    yield 0.5


@fault("SIGKILL, an old page put back in place", "sidecar clock link coordinator time")
def old_page(w, s):
    """Alone: an old page is believed where the coordinator cannot be asked, and what it lacks of
    the last IDs is made up for by the clock."""
    if not os.path.exists(s.page()):
        return
    with open(s.page(), "rb") as f:
        old = f.read()
    yield w.rng.uniform(0.3, 3)
    kill(w, s)
    if os.path.exists(s.page()):
        with open(s.page(), "r+b") as f:
            f.write(old)
    s.start()
    yield 0.5


@fault("SIGKILL, page damaged: bits flipped or truncated", "sidecar")
def damaged(w, s):
    kill(w, s)
    if os.path.exists(s.page()):
        with open(s.page(), "r+b") as f:
            if w.rng.random() < 0.3:
                f.truncate(w.rng.randrange(4096))
            else:
                f.seek(256 + w.rng.randrange(700))
                f.write(w.rng.randbytes(w.rng.choice((1, 8, 200))))
    s.start()
    yield 0.5


@fault("a second process on one state_dir", "sidecar")
def second(w, s):
    if not s.running() or not os.path.exists(s.page()):
        return
    p = subprocess.run(s.argv + ["--set", "listen.memcached=unix://" + w.path("x.m"),
                                 "--set", "listen.redis=unix://" + w.path("x.r"),
                                 "--set", "listen.http=unix://" + w.path("x.h")],
                       env=dict(os.environ, **s.env), stdin=subprocess.DEVNULL, timeout=20,
                       stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if p.returncode == 0 or "pid" not in p.stdout:
        w.fail("a second process on %s: expected it to refuse, found status %d: %s" % (
            s.state_dir, p.returncode, p.stdout))
    yield 0


@fault("disk full under state_dir, then SIGKILL and restart", "disk sidecar:0")
def disk_full(w):
    s = w.sidecars[0]
    if not w.mounts:
        return "expected to be allowed to mount a tmpfs, found that mount fails"
    filler = os.path.join(w.mounts[0], "filler")
    fill(filler)
    try:
        yield 0.3
        kill(w, s)
        if w.rng.random() < 0.5:
            shutil.rmtree(s.state_dir)
            fill(filler)  # what that has made free
        s.start()
        yield w.rng.uniform(1, 3)
    finally:
        os.unlink(filler)
    kill(w, s)
    s.start()
    yield 0.5


def fill(path):
    with open(path, "ab", buffering=0) as f:
        for size in (65536, 512):
            try:
                while True:
                    f.write(bytes(size))
            except OSError:
                continue


# ---- clocks ------------------------------------------------------------------------------------

def steps(w, s, sizes):
    """Forward and then back, or back and then forward, several times."""
    try:
        for _ in range(w.rng.randint(2, 4)):
            size = w.rng.choice(sizes) * w.rng.choice((1, 1, -1))
            if abs(size) > 1.5 * MS:
                w.must_stop(s)
            s.set_clock(size)
            yield w.rng.uniform(0.05, 0.8)
            s.set_clock(w.rng.choice((0, 0, -size / 2)))
            yield w.rng.uniform(0.05, 0.8)
    finally:
        s.set_clock(0)
    yield 0.5


@fault("clock of a sidecar by 1 to 20 ms", "clock", 2)
def clock_ms(w, s):
    yield from steps(w, s, (1 * MS, 2 * MS, 5 * MS, 14 * MS, 20 * MS))


@fault("clock of a sidecar by 0.1 to 60 s", "clock", 2)
def clock_s(w, s):
    yield from steps(w, s, (0.1, 0.9, 1, 2, 10, 15, 60))


@fault("clock of a sidecar by 1 h", "clock")
def clock_h(w, s):
    yield from steps(w, s, (HOUR,))


@fault("clock of a sidecar by 1 year", "clock")
def clock_y(w, s):
    yield from steps(w, s, (YEAR,))


@fault("-1 s on all clocks", "time")
def leap(w):
    """Not twice within a second: a coordinator's clock that goes back by more than 2S is wrong."""
    w.must_stop()
    w.pass_time(-1)
    yield 3


@fault("time passes: up to 25 s", "time", 2)
def some_time(w):
    w.must_stop()
    w.pass_time(w.rng.uniform(3, 25))
    yield 3


@fault("time passes: all ranges and floors", "time", 2)
def much_time(w):
    w.must_stop()
    w.pass_time(w.rng.uniform(w.forgotten_s, 4 * w.forgotten_s))
    yield 3


# ---- clients -----------------------------------------------------------------------------------

def dial(address, garbage):
    s = socket.socket(socket.AF_INET if isinstance(address, tuple) else socket.AF_UNIX)
    s.setblocking(False)
    try:
        s.connect(address)
        s.send(garbage)
    except OSError:
        pass  # under way, or refused: both are part of a flood
    return s


@fault("flood of connections", "flood")
def flood(w):
    s = w.rng.choice(w.sidecars)
    ends = (s.resp, s.mc) if w.isolated else (("127.0.0.1", s.resp_port), ("127.0.0.1", s.mc_port))
    held = []
    try:
        for i in range(FLOOD):
            for end in ends:
                held.append(dial(end, (b"", b"get id:", b"*2\r\n$3\r\nGET\r\n$", b"\0\xff")[i % 4]))
            if i % 100 == 0:
                yield 0.01
        yield w.rng.uniform(0.2, 1)
    finally:
        reset = struct.pack("ii", 1, 0)
        for i, c in enumerate(held):
            if i % 2:
                c.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, reset)
            c.close()
    yield 0.2
