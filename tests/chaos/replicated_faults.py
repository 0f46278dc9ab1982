"""Faults of three Redis servers under Sentinel.

A fault returns nothing, or, where it cannot be done here, why.
"""

from schedule import table

fault, FAULTS = table()
split_fault, SPLIT_FAULTS = table()

NODES = 3
FAILOVER_S = 20  # within which one happens, even on a busy machine
CLOCK_S = 0.4
SPLIT = "coordinator net time sidecar:*"
NO_FAILOVER = "expected a failover within %d s, found none" % FAILOVER_S

SHORT = (
    "SIGKILL, restart with its page", "SIGKILL, page lost", "SIGSTOP, SIGCONT",
    "clock of a sidecar by 0.1 to 60 s", "time passes: up to 25 s",
    "clocks of the Redis servers, within the assumption",
    "master SIGKILL, failover, back as a replica",
    "the replicas cut off, then master SIGKILL: failover to one that lags",
    "master SIGSTOP until another has taken over, then SIGCONT",
    "split brain: the master and its sidecars alone",
    "split brain: master, a replica and a Sentinel against the rest")


def wait_failover(w, old):
    """Whether it came."""
    w.electing = True
    try:
        for _ in range(FAILOVER_S * 10):
            if w.failed_over(old):
                return True
            yield 0.1
        return False
    finally:
        w.electing = False


def wait_whole(w):
    """Sentinel takes some 10 s to make a replica of a master that comes back. A short run does it
    for it, after a while in which there were two."""
    yield w.rng.uniform(0, 2)
    for i in range(300):
        if not w.long and i % 20 == 0:
            w.subdue()
        if w.whole():
            break
        yield 0.1
    w.operate()


# ---- failover ----------------------------------------------------------------------------------

def rejoin(w, old, came):
    """The killed master comes back: under the new one, if there is one."""
    if came:
        old.start_under(w.master())
    else:
        old.start()
    yield from wait_whole(w)
    return None if came else NO_FAILOVER


@fault("master SIGKILL, failover, back as a replica", "coordinator time", 2)
def master_killed(w):
    old = w.master()
    old.kill()
    came = yield from wait_failover(w, old)
    yield w.rng.uniform(0, 2)
    return (yield from rejoin(w, old, came))


@fault("master SIGKILL, back with its data before a failover", "coordinator")
def master_back(w):
    old = w.master()
    old.kill()
    yield w.rng.uniform(0, 0.2)
    old.start()
    yield 1
    yield from wait_whole(w)


@fault("the replicas cut off, then master SIGKILL: failover to one that lags",
       "coordinator net time")
def lagging(w):
    if not w.net:
        return w.why_no_net
    old = w.master()
    w.net.split([old.index], [n.index for n in w.others(old)])
    yield w.rng.uniform(0.2, 0.8)
    old.kill()
    w.net.split([old.index], range(2 * NODES))  # what its kernel still wants to send is lost, too
    came = yield from wait_failover(w, old)
    w.net.heal()
    return (yield from rejoin(w, old, came))


@fault("FLUSHALL, then pool init --after-loss", "coordinator")
def flushall(w):
    master = w.master()
    master.ask("FLUSHALL")
    yield w.rng.uniform(0, 1.5)
    yield from w.after_loss()
    yield 1


@fault("a replica SIGSTOP, SIGCONT", "coordinator")
def replica_stopped(w):
    n = w.rng.choice(w.others(w.master()))
    n.pause()
    try:
        yield w.rng.uniform(0.5, 4)
    finally:
        n.resume()
    yield 0.5


@fault("a replica SIGKILL, its data lost", "coordinator")
def replica_lost(w):
    master = w.master()
    n = w.rng.choice(w.others(master))
    n.kill()
    n.wipe()
    yield w.rng.uniform(0, 1)
    n.start_under(master)
    yield from wait_whole(w)


@fault("a Sentinel SIGKILL, restart", "sentinel")
def sentinel_killed(w):
    s = w.rng.choice(w.sentinels)
    s.kill()
    yield w.rng.uniform(0.5, 2)
    s.start()
    yield 1


@fault("clocks of the Redis servers, within the assumption", "server-clock", 2)
def server_clocks(w):
    for _ in range(3):
        for n in w.nodes:
            n.set_clock(w.rng.uniform(-CLOCK_S, CLOCK_S))
        yield w.rng.uniform(0.3, 2)
    for n in w.nodes:
        n.set_clock(0)


@fault("CLIENT PAUSE on the master", "coordinator")
def client_pause(w):
    ms = w.rng.randint(300, 2500)
    w.master().ask("CLIENT", "PAUSE", str(ms), "WRITE")
    yield ms / 1000 + 0.3


# ---- split brain: for --replicas 1 -------------------------------------------------------------

@split_fault("master SIGSTOP until another has taken over, then SIGCONT", "coordinator time", 2)
def master_stopped(w):
    old = w.master()
    old.pause()
    try:
        came = yield from wait_failover(w, old)
        yield w.rng.uniform(0, 2)
    finally:
        old.resume()
    yield from wait_whole(w)
    return None if came else NO_FAILOVER


@split_fault("SENTINEL FAILOVER", "coordinator time")
def asked_for(w):
    old = w.master()
    w.rng.choice(w.sentinels).ask("SENTINEL", "FAILOVER", "m")
    came = yield from wait_failover(w, old)
    yield from wait_whole(w)
    return None if came else NO_FAILOVER


def living_on(w, hosts):
    return [s for s in w.sidecars if s.index % NODES in hosts]


def rebirth(w, hosts):
    """One of the sidecars on these hosts claims anew."""
    some = living_on(w, hosts)
    if some:
        w.rng.choice(some).renew_life()


def time_in_bits(w, seconds):
    """Little enough at a time for whoever can renew to do so."""
    while seconds > 0:
        w.must_stop()
        w.pass_time(min(8, seconds))
        seconds -= 8
        yield 1.3


def split(w, one, other, old, both_ways=True):
    """Two sides until the other has a master, and a while longer. Sidecars claim on both, and time
    passes until what the old master's side can have is no longer rested on the other."""
    w.net.cut(one, other)
    if both_ways:
        w.net.cut(other, one)
    rebirth(w, one)
    came = yield from wait_failover(w, old)
    if came:
        rebirth(w, one)
        yield from time_in_bits(w, w.rng.choice((0, 24)))
        rebirth(w, other)
        yield w.rng.uniform(0.5, 2)
    w.net.heal()
    yield from wait_whole(w)
    return None if came else NO_FAILOVER


@split_fault("split brain: the master and its sidecars alone", SPLIT, 2)
def alone(w):
    if not w.net:
        return w.why_no_net
    old = w.master()
    rest = [i for i in range(2 * NODES) if i != old.index]
    return (yield from split(w, [old.index], rest, old))


@split_fault("split brain: master, a replica and a Sentinel against the rest", SPLIT, 2)
def majority(w):
    """The Sentinels' majority and that of the servers are on different sides. Then the replica
    changes sides, and the other half can grant, while the first goes on with what it was granted
    until then."""
    if not w.net:
        return w.why_no_net
    old = w.master()
    friend, third = w.rng.sample(w.others(old), 2)
    one = [old.index, friend.index, NODES]
    rest = [i for i in range(2 * NODES) if i not in one]
    w.net.split(one, rest)
    came = yield from wait_failover(w, old)
    if came:
        yield from time_in_bits(w, 20)
        rebirth(w, [old.index])
        yield 0.6
        w.net.heal()
        w.net.split([old.index, NODES], rest + [friend.index])
        friend.ask("REPLICAOF", third.host.address, str(third.port))
        yield 1.2
        rebirth(w, [third.index])
        yield w.rng.uniform(1, 3)
    w.net.heal()
    yield from wait_whole(w)
    return None if came else NO_FAILOVER


@split_fault("split brain: what the master says to the others is lost", SPLIT)
def one_way(w):
    if not w.net:
        return w.why_no_net
    old = w.master()
    rest = [i for i in range(2 * NODES) if i != old.index]
    return (yield from split(w, [old.index], rest, old, both_ways=False))


@split_fault("a replica's host cut off", "coordinator net")
def replica_cut(w):
    if not w.net:
        return w.why_no_net
    n = w.rng.choice(w.others(w.master()))
    w.net.split([n.index], [i for i in range(2 * NODES) if i != n.index])
    yield w.rng.uniform(1, 5)
    w.net.heal()
    yield from wait_whole(w)
