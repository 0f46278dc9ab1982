"""One topology from start to verdict; its lines go to `out`."""

import os
import random
import re
import signal
import time
import traceback

import counting
from schedule import Schedule

RECOVER_S = 120  # generous: a machine may be busy with other things
LOG_SHOWN = 150  # lines of what was done, at a failure
KINDS = ("LPOP", "GET", "INCR", "INCRBY", "mc get x100", "mc get")


class Verdict:
    """What the clients' own reports come to."""

    def __init__(self, world):
        self.requests = self.answered = self.refused = self.lost = 0
        self.bad, self.silent = [], []
        self.longest = (0, "")
        for s in world.everyone():
            before = self.answered
            if s.hammer.popen:
                self.read(world, s)
            if self.answered == before and s is not world.clone:
                self.silent.append(s.name)

    def read(self, world, s):
        windows = sorted(w for w in world.windows if w.sidecar == s.index)
        for line in s.hammer.log().splitlines():
            words = line.split()
            if words[0] == "sum":
                for name in ("requests", "answered", "refused", "lost"):
                    value = int(words[words.index(name) + 1])
                    setattr(self, name, getattr(self, name) + value)
            elif words[0] == "gap" and s is not world.clone:
                self.gap(s, windows, int(words[1]), int(words[2]) / 1e6, int(words[3]) / 1e6)
            elif words[0] != "gap":
                self.bad.append("%s: %s" % (s.name, line))

    def gap(self, s, windows, kind, begin, length):
        """The longest part of a gap that is in no window."""
        at, end = begin, begin + length
        pieces = []
        for w in windows:
            if w.end > at and w.begin < end:
                pieces.append((w.begin - at, at))
                at = max(at, w.end)
        pieces.append((end - at, at))
        worst, when = max(pieces)
        if worst > self.longest[0]:
            self.longest = worst, "%s of %s at %s" % (
                KINDS[kind], s.name, time.strftime("%H:%M:%S", time.gmtime(when)))


def progress(world, say, every, state):
    now = time.monotonic()
    if now < state["next"]:
        return None
    state["next"] = now + every
    doubled = world.check()
    say("# %s: %.0f s, %.1f million IDs, %d faults" % (
        world.name, time.time() - world.began, world.ids / 1e6, sum(world.counts.values())))
    return doubled


def storm(world, seconds, say):
    """The faults. Returns the checker's words if an ID came twice."""
    schedule = Schedule(world, world.chosen(), seconds)
    every = 10 if seconds < 120 else 60
    state = {"next": time.monotonic() + every}
    polled = 0
    while not schedule.done():
        schedule.turn()
        if time.monotonic() - polled > 0.3:
            polled = time.monotonic()
            schedule.look()
        doubled = progress(world, say, every, state)
        if doubled:
            return doubled
    return None


def tell_log(world, say, seed):
    say("# %s: seed %d; what was done:" % (world.name, seed))
    for line in world.log[-LOG_SHOWN:]:
        say("#   " + line.replace("\n", " | "))


def figures(world, verdict, say):
    name = world.name
    say("# %s: %d IDs checked" % (name, world.ids))
    for fault, n in sorted(world.counts.items()):
        say("# %s: %4d x %s" % (name, n, fault))
    for fault, why in sorted(world.skipped.items()):
        say("# %s: skipped: %s: %s" % (name, fault, why))
    asked = max(verdict.requests, 1)
    say("# %s: %d requests: %.2f %% answered with IDs, %.2f %% with errors, %.2f %% lost with "
        "their connection" % (name, verdict.requests, 100 * verdict.answered / asked,
                        100 * verdict.refused / asked, 100 * verdict.lost / asked))
    held = sum(w.end - w.begin for w in world.windows) / len(world.sidecars or [1])
    say("# %s: a sidecar had a fault that must stop it, or was recovering from one, in %.0f of "
        "%.0f s; its longest time without an ID outside of that: %.2f s %s" % (
            name, held, time.time() - world.began, *verdict.longest))


def result(say, passed, text, details=()):
    say("%sok - %s" % ("" if passed else "not ", text))
    for detail in details:
        for line in detail.splitlines():
            say("# " + line)
    return passed


def numbers(world, say):
    if not world.numbers:
        return True
    got, wrong = counting.judge([s.numbers for s in world.everyone()])
    silent = [name for name, n in got.items() if n == 0]
    return result(say, not wrong and not silent,
                  "%s: none of %d numbers was received twice, nor of %d strict ones, or below an "
                  "answer" % (world.name, got["plain"], got["strict"]),
                  wrong + ["no number ever of " + name for name in silent])


def judge(world, doubled, say):
    """The TAP lines; whether all is well."""
    verdict = Verdict(world)
    names = {f.name for f in world.required() if f in world.chosen()}
    missing = sorted(names - set(world.counts) - set(world.skipped))
    crashes = [c for c in (p.crashed() for p in world.procs) if c]
    figures(world, verdict, say)
    n = world.name
    passed = [
        result(say, not doubled and world.ids > 0, "%s: none of %d IDs was received twice" % (
            n, world.ids), [doubled] if doubled else []),
        numbers(world, say),
        result(say, not verdict.silent and not world.failures,
               n + ": every sidecar gives IDs after the last fault",
               world.failures + ["no ID ever from " + s for s in verdict.silent]),
        result(say, not crashes and not verdict.bad,
               n + ": nothing crashed, and every reply was one", crashes + verdict.bad[:20])]
    if not doubled:
        passed.append(result(say, not missing, n + ": every fault was injected", missing))
    return all(passed)


def verify(world, doubled):
    """The last receipts, of clients that have ended."""
    world.close_windows([s for s in world.sidecars if s.ready()])
    world.stop_hammers()
    return doubled or world.check()


def live(world, seconds, seed, say):
    doubled = None
    try:
        world.setup()
        doubled = storm(world, seconds, say)
        if not doubled:
            world.note("calm")
            world.calm()
            world.recovered(RECOVER_S)
        doubled = verify(world, doubled)
    except Exception:
        world.fail(traceback.format_exc())
        doubled = verify(world, doubled)
    if not judge(world, doubled, say):
        tell_log(world, say, seed)


def on_term(*_):
    raise SystemExit(1)


def topology(kind, args, directory, out):
    """Returns an exit status; TAP lines tell the rest."""
    signal.signal(signal.SIGTERM, on_term)

    def say(text):
        out.write(re.sub(r"\n", "\n# ", text) + "\n")
    own = os.path.join(directory, kind.name)
    os.mkdir(own)
    world = kind(own, random.Random("%d %s" % (args.seed, kind.name)), say, args.sidecars,
                 args.slow, args.minutes >= 3, args.only)
    world.spoil = args.spoil
    try:
        live(world, args.minutes * 60, args.seed, say)
        return 0
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        world.close()
