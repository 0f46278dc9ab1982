"""The checkers must find what is wrong wherever it hides, and nothing where there is nothing."""

import os
import random
import re
import struct
import subprocess

import counting
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


# (what, lines of numbers.a and numbers.b: SEQUENCE LIFE BEGUN ENDED FIRST COUNT, what is found)
NUMBERS = (
    ("a gap, and two that ask at once", ["plain 1 0 9 1 5", "plain 1 10 19 20 1", "strict 1 0 9 2 1"],
     ["plain 1 5 15 6 3", "strict 1 5 15 1 1"], None),
    ("twice", ["plain 1 0 9 1 5", "plain 1 10 19 9 1"], ["plain 1 50 59 5 1"], "plain: twice"),
    ("twice within a long one", ["plain 1 0 9 1 50", "plain 1 10 19 60 1"],
     ["plain 1 20 29 2 1", "plain 1 30 39 40 2"], "plain: twice"),
    ("falls", ["plain 1 0 9 8 1", "plain 1 10 19 7 1"], [], "plain: does not rise"),
    ("falls on another connection", ["plain 1 0 9 8 1", "plain 2 10 19 7 1"], [], None),
    ("below an answer", ["strict 1 0 9 8 1"], ["strict 1 10 19 7 1"], "strict: FOUND"),
    ("below an answer, long ago", ["strict 1 0 9 8 1", "strict 1 50 59 9 1"],
     ["strict 1 10 90 7 1"], "strict: FOUND"),
    ("begun before the answer", ["strict 1 0 9 8 1"], ["strict 1 9 19 7 1"], None),
)


def judge_numbers(directory):
    paths = [os.path.join(directory, "numbers." + x) for x in "ab"]
    for what, *files, expected in NUMBERS:
        for path, lines in zip(paths, files):
            with open(path, "w", encoding="ascii") as f:
                f.write("".join(line + "\n" for line in lines) + "plain 1 99")
        wrong = counting.judge(paths)[1]
        begins = (expected or "").replace("FOUND", "Given")
        if (not wrong) != (expected is None) or (wrong and not wrong[0].startswith(begins)):
            return "%s: expected %s, found %s" % (what, expected, wrong)
    return None


def run(directory, say):
    for what, wrong in (("checker finds a doubled ID", judge(directory)),
                        ("numbers that cannot be are found", judge_numbers(directory))):
        say("%sok - %s" % ("not " if wrong else "", what))
        if wrong:
            say("# " + wrong.replace("\n", "\n# "))
