"""Sends random streams to the real server and through the sidecar, many at a time, while bystanders
look on; finds which stream it was when something is wrong, and makes it small.

Three things are wrong whatever the stream was: a bystander's reply that is not his, or late, or not
there; a bystander's secret or another stream's tag in what comes back; a sidecar that ends. A fourth
is a difference from the real server that judge.ALLOWED does not name.
"""

import collections
import random
import re
import selectors
import socket
import time

import judge
import users
from bystanders import SECRET, THERE, Trouble
from grammar import TAG
from worlds import MODES, SLOTS, World

QUIET = 0.15     # seconds without a byte, after which a server is taken to say no more
ALONE_QUIET = 1.5  # the same when a stream runs alone, to be sure
HANG = 3.5       # seconds in which the sidecar has to have said what the real server said
SEARCH_TIME = 45  # seconds in which they are tried one by one
SUSPECT = 2.0    # seconds for which a stream that has ended may still be what did it
TRIALS = 60      # at most so many to make one stream small,
TRIAL_TIME = 40  # and seconds


class Stream:
    """The requests of a seed, or those of them that `only` names."""

    def __init__(self, mode, seed, nonce=0, only=None):
        rng = random.Random(seed)
        self.mode, self.seed = mode, seed
        # The tag changes with the nonce, so that a stream can be tried again on the same servers.
        self.tag = b"~%08x" % random.Random(seed * 1000003 + nonce).getrandbits(32)
        self.cut = rng if rng.random() < 0.25 else None
        self.vanishes = rng.random() < 0.06
        maker = mode.maker(rng.getrandbits(64), self.tag)
        made = maker.make()
        self.user = maker.user
        self.only = list(range(len(made))) if only is None else only
        self.requests = [made[i] for i in self.only]

    def again(self, nonce, only=None):
        return Stream(self.mode, self.seed, nonce, self.only if only is None else only)


class Failure(Exception):
    """what: one line; stream: whose requests it takes, or None; streams: all that may be it. differs:
    nobody was harmed, and what the real servers had by then may be what made the difference: a key
    that lost its tag is another stream's, too."""

    def __init__(self, what, streams):
        super().__init__(what)
        self.what, self.streams, self.differs = what, streams, False

    def report(self):
        lines = [self.what]
        for s in self.streams[:3]:
            lines.append("SEED=%d%s%s:" % (s.seed, " of " + s.user.decode() if s.user else "",
                                           ", and then gone" if s.vanishes else ""))
            for r in s.requests:
                lines.append("  %r" % (r if len(r) < 200 else r[:100] + b" ... " + r[-50:]))
        if len(self.streams) > 1:
            lines.append("none of %d streams does it alone, of seeds %s" % (
                len(self.streams), ", ".join(str(s.seed) for s in self.streams[:40])))
        return "\n".join(lines)


class Attacker:
    """One connection that sends a stream's bytes and keeps all that comes back."""

    def __init__(self, address, data, marker, cut):
        self.left, self.marker, self.cut = data, marker, cut
        self.got, self.end = bytearray(), None
        self.last = time.monotonic()
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(5)
        self.sock.connect(address)
        self.sock.setblocking(False)

    def send(self, now):
        if not self.left or self.end:
            return
        n = len(self.left)
        if self.cut and n < 3000:
            n = self.cut.choice((1, 2, 5, 17, 100, 1000))
        try:
            self.left = self.left[self.sock.send(self.left[:n]):]
            self.last = now
        except BlockingIOError:
            pass
        except OSError:
            self.left = b""  # what it had said before it closed is still to be read

    def readable(self, now):
        try:
            data = self.sock.recv(1 << 18)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        self.last = now
        self.got += data
        if not data:
            self.end = "closed"
        elif self.marker in self.got:
            self.end = "marker"

    def silent(self, now, seconds):
        return bool(self.end or not self.left) and now - self.last > seconds


class Pair:
    """A stream on its way to both."""

    def __init__(self, world, slot, stream, quiet):
        self.slot, self.stream, self.quiet, self.tidy = slot, stream, quiet, 0
        self.excused = False  # it differs, and may
        request, marker = stream.mode.marker(slot, stream.requests)
        self.data = data = b"".join(stream.requests) + request
        cut = random.Random(stream.seed) if stream.cut else None
        self.side = Attacker(world.address, self.opening(False) + data, marker, cut)
        self.direct = None if stream.vanishes else Attacker(
            world.direct.sock, self.opening(True) + data, marker, None)
        self.sides = [a for a in (self.direct, self.side) if a]

    def opening(self, directly, which=0):
        """The login that a stream begins with, or the answer to it."""
        mode, user = self.stream.mode, self.stream.user
        return users.opening(mode.protocol, user, directly)[which] if user else b""

    def advance(self, now):
        """True when both have come to an end."""
        for a in self.sides:
            a.send(now)
        if not self.direct:
            return not self.side.left or self.side.end is not None
        if not self.direct.end and self.direct.silent(now, self.quiet):
            self.direct.end = "quiet"
        patience = self.quiet if self.direct.end == "quiet" else HANG
        if not self.side.end and self.direct.end and self.side.silent(now, patience) and \
                self.direct.silent(now, patience):
            self.side.end = "quiet"
        self.tidy += bool(self.side.end and self.direct.end)
        return self.tidy > 2  # what comes behind the last reply is seen, too

    def verdict(self, harm):
        """What is wrong, or None. harm: to others."""
        for a in self.sides:
            a.got = a.got.removeprefix(self.opening(a is self.direct, 1))
        got = bytes(self.side.got)
        if SECRET in got:
            return "a client got what is a bystander's: %s" % judge.shown(got, got[:got.find(SECRET)])
        if THERE in got:
            return "a client got what the server has under an ID key: %s" % judge.shown(
                got, got[:got.find(THERE)])
        if not self.direct:
            return None
        mode = self.stream.mode
        theirs = judge.attributable(mode.protocol, b"".join(self.stream.requests), got)
        strange = {t for t in TAG.findall(theirs) if t not in self.data and t not in self.direct.got}
        if strange:
            return "a client got what is another's, %r: %s" % (
                strange, judge.shown(got, got[:got.find(min(strange))]))
        harm = harm or (mode.with_users and not users.compared(mode.protocol, self.stream.user))
        wrong = None if harm else judge.difference(mode.protocol, self.direct, self.side)
        if wrong and judge.allowed(mode, self.stream.requests, self.direct, self.side):
            self.excused, wrong = True, None
        return wrong

    def close(self):
        for a in self.sides:
            a.sock.close()


class Engine:
    def __init__(self, case, mode, harm=False, timeout="2s"):
        self.mode, self.harm = MODES[mode], harm
        self.world = World(case, self.mode, timeout)
        self.nonce, self.done, self.unsteady, self.excused = 0, 0, 0, 0
        self.pairs, self.recent, self.say = {}, collections.deque(), print
        self.selector, self.marked = None, time.monotonic()
        self.attach()

    # ---- running -----------------------------------------------------------------------------

    def attach(self):
        if self.selector:
            self.selector.close()
        self.selector = selectors.DefaultSelector()
        for w in self.world.watchers:
            self.selector.register(w.sock, selectors.EVENT_READ, w)

    def begin(self, stream, quiet=QUIET):
        slot = next(i for i in range(SLOTS) if i not in self.pairs)
        pair = self.pairs[slot] = Pair(self.world, slot, stream, quiet)
        for a in pair.sides:
            self.selector.register(a.sock, selectors.EVENT_READ, a)

    def drop(self, pair):
        for a in pair.sides:
            if a.sock.fileno() in self.selector.get_map():
                self.selector.unregister(a.sock)
        pair.close()
        del self.pairs[pair.slot]

    def pump(self):
        """One look at all; returns the pairs that have come to their end. Raises Trouble."""
        for key, _ in self.selector.select(0.001):
            key.data.readable(time.monotonic())
            if getattr(key.data, "end", None) == "closed":
                self.selector.unregister(key.fileobj)
        now = time.monotonic()
        for w in self.world.watchers:
            w.tick(now)
        ended = [p for p in self.pairs.values() if p.advance(now)]
        for p in ended:
            self.drop(p)
            self.recent.appendleft((now, p.stream))
        while self.recent and now - self.recent[-1][0] > SUSPECT:
            self.recent.pop()
        return ended

    def renew(self):
        self.drop_all()
        self.recent.clear()
        self.world.renew()
        self.attach()

    def replies(self):
        """Of all bystanders there were."""
        return self.world.replies + sum(w.replies for w in self.world.watchers)

    # ---- what it was -------------------------------------------------------------------------

    def alone(self, streams):
        """What goes wrong when these run, all at once, and nothing else; or None."""
        wrong = None
        for w in self.world.watchers:
            w.pause = 0
        try:
            self.world.set_markers()
            for s in streams:
                self.nonce += 1
                self.begin(s.again(self.nonce), ALONE_QUIET)
            while self.pairs:
                for p in self.pump():
                    wrong = wrong or p.verdict(self.harm)
            before, end = [w.replies for w in self.world.watchers], time.monotonic() + 0.15
            while time.monotonic() < end or any(
                    w.replies < n + 8 for w, n in zip(self.world.watchers, before)):
                self.pump()
            self.world.set_markers()
        except Trouble as e:
            wrong = "a bystander: %s" % e
        except OSError as e:
            wrong = "connecting: %s" % e
        wrong = self.world.gone() or wrong
        if wrong:
            wrong += self.world.last_words()
            self.renew()
        return wrong

    def smaller(self, stream, what):
        """The stream with as few requests as still go wrong, and how."""
        trials, size = TRIALS, max(1, len(stream.requests) // 2)
        until = time.monotonic() + TRIAL_TIME
        while trials > 0 and len(stream.only) > 1 and time.monotonic() < until:
            at, shrunk = 0, False
            while at < len(stream.only) and len(stream.only) > 1 and trials > 0:
                only = stream.only[:at] + stream.only[at + size:]
                trials -= 1
                wrong = self.alone([stream.again(0, only)]) if only else None
                if wrong:
                    stream, what, shrunk = stream.again(0, only), wrong, True
                else:
                    at += size
            if size == 1 and not shrunk:
                break
            size = max(1, size // 2)
        return Failure(what, [stream])

    def culprit(self, what, suspects):
        """The Failure behind what was seen while these were there."""
        self.renew()
        self.say("%s: %s\n  which of %d streams?" % (self.mode.name, what, len(suspects)))
        until = time.monotonic() + SEARCH_TIME
        for s in suspects:
            wrong = self.alone([s]) if time.monotonic() < until else None
            if wrong:
                return self.smaller(s, wrong)
        for start in range(0, min(len(suspects), 4 * SLOTS), SLOTS):
            wrong = self.alone(suspects[start:start + SLOTS])
            if wrong:
                return Failure(wrong, suspects[start:start + SLOTS])
        return Failure(what, suspects)

    def step(self, streams):
        """Keeps the slots full of these streams, and looks once. Raises Failure."""
        try:
            if time.monotonic() - self.marked > 1:
                self.world.set_markers()
                self.marked = time.monotonic()
            while len(self.pairs) < SLOTS - 4:
                stream = next(streams, None)
                if stream is None:
                    break
                self.begin(stream)
            ended = self.pump()
        except (Trouble, OSError) as e:
            raise self.culprit((self.world.gone() or "a bystander: %s" % e) + self.world.last_words(),
                               [p.stream for p in self.pairs.values()] + [s for _, s in self.recent])
        for p in ended:
            self.done += 1
            wrong = p.verdict(self.harm)
            self.excused += p.excused
            if not wrong:
                continue
            if SECRET in p.side.got or "another's" in wrong:
                suspects = [p.stream] + [q.stream for q in self.pairs.values()] + [
                    s for _, s in self.recent if s is not p.stream]
                raise self.culprit(wrong, suspects)
            self.drop_all()
            if self.alone([p.stream]):
                found = self.smaller(p.stream, wrong)
                found.differs = True
                raise found
            self.unsteady += 1

    def drop_all(self):
        """Those that are under way are not looked at any more."""
        for p in list(self.pairs.values()):
            self.drop(p)


def run(case, mode, seed, seconds=None, rounds=None, failures=1, harm=False, without=None, say=print,
        timeout="2s"):
    """Runs streams of seed, seed + 1 ... until the time or the rounds are over, or so many failures
    are found. harm: only harm to others counts. without: a pattern, streams that it fits are left
    out. timeout: the sidecar's upstream.timeout. Returns the failures."""
    engine = Engine(case, mode, harm, timeout)
    engine.say = say
    started, found = time.monotonic(), []
    last = seed + rounds if rounds else 1 << 63
    streams = (s for s in (Stream(engine.mode, n) for n in range(seed, last))
               if not without or not re.search(without, b"".join(s.requests), re.S))

    def on():
        within = not seconds or time.monotonic() - started < seconds
        return within and len(found) < failures

    while on():
        try:
            engine.step(streams)
            if rounds and not engine.pairs:
                break
        except Failure as f:
            if f.differs and not Engine(case, mode, harm, timeout).alone(f.streams):
                engine.unsteady += 1
                continue
            found.append(f)
            say("%s: %s" % (mode, f.report()))
    took = time.monotonic() - started
    say("%s: seeds from %d, %d streams in %.1f s (%.0f a second), %d of them differ as they may, %d "
        "differed once; %d replies to bystanders; %d failures" % (
            mode, seed, engine.done, took, engine.done / max(took, 0.001), engine.excused, engine.unsteady,
            engine.replies(), len(found)))
    return found
