#!/usr/bin/python3
"""Takes numbers of two sequences from one sidecar, over a connection each, and writes down every
number that it received; and says whether what was written down can be.

    counting.py --out FILE --resp PATH --pause SECONDS      until SIGTERM

A line of FILE: SEQUENCE LIFE BEGUN ENDED FIRST COUNT, times in microseconds of CLOCK_MONOTONIC, which
is one for all processes; LIFE counts the connections. Only complete replies are written down.

    plain   INCR, INCRBY and LPOP in turn: no number twice, by whomever; they rise on a connection
    strict  INCR: besides, who asked after somebody had an answer has a higher number
"""

import argparse
import collections
import os
import random
import signal
import socket
import sys
import threading
import time

SEQUENCES = ("plain", "strict")
PATIENT_S = 20  # sidecars are stopped for moments, and go on
RETRY_S = 0.05
RATE = 20000
BEGINS = "2026-01-02T00:00:00Z"
OPTIONS = {"define": ["plain --max-rate %d --begins %s" % (RATE, BEGINS),
                      "strict --order strict --max-rate %d --begins %s" % (RATE, BEGINS)],
           "cache_lasts": "3s", "counters": 64}  # a small page: some disks are small
SHOWN = 10

Given = collections.namedtuple("Given", "source life begun ended first count")


# ---- who asks ----------------------------------------------------------------------------------

def now_us():
    return time.clock_gettime_ns(time.CLOCK_MONOTONIC) // 1000


class Lost(Exception):
    pass


class Connection:
    def __init__(self, path):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(PATIENT_S)
        self.socket.connect(path)
        self.file = self.socket.makefile("rb")

    def line(self):
        line = self.file.readline()
        if not line.endswith(b"\r\n"):
            raise Lost
        return line[:-2]

    def reply(self):
        """A number, a list of them, or None: an error, or nothing."""
        head = self.line()
        if head[:1] == b":":
            return int(head[1:])
        if head[:1] == b"$" and head != b"$-1":
            return int(self.line())
        if head[:1] == b"*" and head != b"*-1":
            return [self.reply() for _ in range(int(head[1:]))]
        return None

    def ask(self, *words):
        self.socket.sendall(b"*%d\r\n" % len(words) + b"".join(
            b"$%d\r\n%s\r\n" % (len(w), w) for w in words))
        return self.reply()


def runs(numbers):
    """(first, count) of numbers that follow each other."""
    out = []
    for n in numbers:
        if out and out[-1][0] + out[-1][1] == n:
            out[-1][1] += 1
        else:
            out.append([n, 1])
    return out


def take(connection, name, turn):
    """Pairs of (first, count); none where it was refused."""
    key = b"seq:" + name.encode()
    if name == "strict" or turn % 3 == 0:
        n = connection.ask(b"INCR", key)
        return [(n, 1)] if n is not None else []
    if turn % 3 == 1:
        n = connection.ask(b"INCRBY", key, b"7")
        return [(n - 6, 7)] if n is not None else []
    return runs(connection.ask(b"LPOP", key, b"20") or [])


def count(name, path, pause, write):
    life, turn, connection = 0, random.randrange(3), None
    while True:
        try:
            if connection is None:
                life += 1
                connection = Connection(path)
            begun = now_us()
            got = take(connection, name, turn)
            ended = now_us()
        except (OSError, Lost, ValueError):
            connection = None
            time.sleep(RETRY_S)
            continue
        write("".join("%s %d %d %d %d %d\n" % (name, life, begun, ended, *g) for g in got))
        turn += 1
        time.sleep(pause if got else RETRY_S)


def main():
    parser = argparse.ArgumentParser()
    for option in ("--out", "--resp"):
        parser.add_argument(option, required=True)
    parser.add_argument("--pause", type=float, default=0.002)
    args = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
    fd = os.open(args.out, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    for name in SEQUENCES:
        threading.Thread(target=count, daemon=True, args=(
            name, args.resp, args.pause, lambda text: os.write(fd, text.encode()))).start()
    while True:
        signal.pause()


# ---- whether it can be -------------------------------------------------------------------------

def read(files):
    """{sequence: [Given]}; a line that was cut by an end is none."""
    given = {name: [] for name in SEQUENCES}
    for path in files:
        if not os.path.exists(path):
            continue
        with open(path, encoding="ascii") as f:
            for line in f:
                words = line.split()
                if line.endswith("\n") and len(words) == 6:
                    given[words[0]].append(Given(path, *map(int, words[1:])))
    return given


def latest(path, name):
    """About the highest number of that sequence in the file: of those that came last."""
    if not os.path.exists(path):
        return 0
    with open(path, "rb") as f:
        f.seek(max(0, os.path.getsize(path) - 8192))
        lines = [line.split() for line in f.read().decode().splitlines()[1:]]
    return max([int(w[4]) + int(w[5]) for w in lines if len(w) == 6 and w[0] == name], default=0)


def twice(given):
    wrong, before = [], None
    for g in sorted(given, key=lambda g: g.first):
        if before and g.first < before.first + before.count:
            wrong.append("twice: %s and %s" % (before, g))
        if not before or g.first + g.count > before.first + before.count:
            before = g
    return wrong


def falling(given):
    """In the order of each file, which is the order of each connection."""
    wrong, latest = [], {}
    for g in given:
        before = latest.get((g.source, g.life))
        if before and g.first < before.first + before.count:
            wrong.append("does not rise: %s and then %s" % (before, g))
        latest[g.source, g.life] = g
    return wrong


def overtaken(given):
    """Whoever asked after an answer, and has none above it."""
    wrong, highest = [], None
    ended = iter(sorted(given, key=lambda g: g.ended))
    done = next(ended, None)
    for g in sorted(given, key=lambda g: g.begun):
        while done and done.ended < g.begun:
            if not highest or done.first + done.count > highest.first + highest.count:
                highest = done
            done = next(ended, None)
        if highest and g.first < highest.first + highest.count:
            wrong.append("strict: %s was answered, and then came %s" % (highest, g))
    return wrong


def judge(files):
    """({sequence: numbers}, what is wrong)"""
    given = read(files)
    wrong = []
    for name in SEQUENCES:
        wrong += [name + ": " + w for w in twice(given[name]) + falling(given[name])]
    wrong += overtaken(given["strict"])
    return {name: sum(g.count for g in given[name]) for name in SEQUENCES}, wrong[:SHOWN]


if __name__ == "__main__":
    sys.exit(main())
