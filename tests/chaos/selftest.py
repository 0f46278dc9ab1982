"""The checker must find a doubled ID wherever it hides, and none where there is none."""

import os
import random
import re
import struct
import subprocess

from world import CHECKER

MINUTE = 60 * 1000000
BASE = 5 << 40  # some ID


def write(path, receipts):
    """receipts: (first, count, sidecar, kind)"""
    with open(path, "wb") as f:
        for i, (first, count, sidecar, kind) in enumerate(receipts):
            f.write(struct.pack("=QQIHBB", first, 1800000000 * 1000000 + i * MINUTE, count, sidecar,
                                kind, 1))


def clean(rng, sidecar):
    """Receipts without a doubled ID: also side by side without a gap, and out of order."""
    out = []
    for i in range(3000):
        first = BASE + (i << 12) + (sidecar << 10)
        cut = rng.randrange(1, 900)
        out += [(first, cut, sidecar, 1), (first + cut, 1000 - cut, sidecar, 4)]
    rng.shuffle(out)
    return out


def check(*args):
    return subprocess.run([CHECKER, *args], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True)


def receipts_of(text, doubled):
    """Whether both receipts of the ID are told."""
    found = re.search(r"^doubled ID %d: .*\n((?:  .*\n)+)" % doubled, text, re.M)
    return found is not None and "sidecar 0, RESP LPOP 1000," in found.group(1) and \
        "sidecar 1, " in found.group(1)


def cases(directory):
    """(what, arguments of the checker, whether the ID is doubled)"""
    a, b, extra = (os.path.join(directory, "self." + x) for x in ("a", "b", "c"))
    rng = random.Random(1)
    of_b = clean(rng, 1)
    write(a, clean(rng, 0))
    write(b, of_b)
    victim = of_b[1234]
    doubled = victim[0] + victim[1] // 2
    write(extra, [(BASE - 10, 3, 0, 3), (doubled, 1, 0, 0)])
    seen = os.path.join(directory, "self.seen")
    yield "none in two files", doubled, [(a, b)], False
    yield "in two files", doubled, [(a, b, extra)], True
    yield "with little memory", doubled, [("--memory", "1", a, b, a + ":0:0", extra)], True
    yield "in a later run", doubled, [("--seen", seen, a, b),
                                      ("--seen", seen, a + ":144000", b + ":144000", extra)], True


def judge(directory):
    """What is wrong with the checker, or None."""
    for what, doubled, runs, expected in cases(directory):
        for args in runs[:-1]:
            r = check(*args)
            if r.returncode != 0:
                return "%s: expected no doubled ID at first, found %s" % (what, r.stdout)
        r = check(*runs[-1])
        if r.returncode != (1 if expected else 0):
            return "%s: expected status %d, found %d: %s" % (
                what, expected, r.returncode, r.stdout)
        if expected and (" doubled 1\n" not in r.stdout or not receipts_of(r.stdout, doubled)):
            return "%s: expected ID %d and both its receipts, found %s" % (what, doubled, r.stdout)
    return None


def run(directory, say):
    wrong = judge(directory)
    say("%sok - the checker finds a doubled ID" % ("not " if wrong else ""))
    if wrong:
        say("# " + wrong.replace("\n", "\n# "))
