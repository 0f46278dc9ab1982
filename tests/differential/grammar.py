"""What the streams of all protocols have in common: odd numbers, ends of lines, bytes changed.

A stream is made from its seed and a tag alone, so that a seed replays it. All keys that it names
hold the tag, `~` and eight hexadecimal digits: so streams on the same server do not meet, and a tag
that comes back to somebody else shows a reply that has gone astray.
"""

import random
import re

TAG = re.compile(rb"~[0-9a-f]{8}")

NUMBERS = (b"0", b"1", b"2", b"7", b"30", b"100")
ODD_NUMBERS = (
    b"+1", b"-1", b"-0", b"+0", b"00", b"01", b"007", b"2147483647", b"2147483648", b"-2147483648",
    b"-2147483649", b"4294967295", b"4294967296", b"4294967303", b"1099511627776",
    b"9223372036854775807", b"9223372036854775808", b"-9223372036854775808", b"18446744073709551615",
    b"18446744073709551616", b"18446744073709551623", b"99999999999999999999999999", b"1e3", b"0x10",
    b"1.5", b"1 ", b" 1", b"1\t", b"\t1", b"1\0", b"\x001", b"1\r", b"1\v", b"1,", b"1_0", b"", b"-",
    b"+", b"x", b"\xd9\xa1", b"1048576", b"1048577", b"67108864", b"2147483646", b"65536", b"2048")
BYTES = (b"\0", b"\r", b"\n", b"\r\n", b" ", b"\t", b"\v", b"\x7f", b"\x80", b"\xff", b"\x1b", b"0",
         b"-", b"+", b"*", b"$", b":", b"'", b'"', b"\\", b"q", b"noreply", b"\0\r\n", b" \r\n")
BLOCKS = (b"", b"v", b"\r\n", b"END\r\n", b"VALUE k 0 1\r\nv\r\nEND\r\n", b"STORED\r\n", b"version\r\n",
          b"mn\r\n", b"noreply", b"\0", b"\x80\x0a" + 22 * b"\0", b"$5\r\n", b"*1\r\n$4\r\nPING\r\n",
          b"17", b"+OK\r\n", b"HTTP/1.1", b"\x81\0\0\0")


# What a change must not come to, as it changes the server for all: bystanders lose keys by it.
FOR_ALL = re.compile(rb"cache_memlimit +[0-9]")


class Maker:
    """One stream's requests. A protocol's own Maker has one(), which gives one request. user: who has
    logged in before them, or None."""

    user = None

    def __init__(self, seed, tag):
        self.rng = random.Random(seed)
        self.tag = tag

    def chance(self, p):
        return self.rng.random() < p

    def pick(self, *choices):
        return self.rng.choice(choices)

    def number(self, odd=0.12):
        return self.rng.choice(ODD_NUMBERS if self.chance(odd) else NUMBERS)

    def own(self, kind=b"k"):
        """One of a few keys that no other stream has."""
        return kind + self.tag + b"%d" % self.rng.randrange(4)

    def block(self):
        n = self.rng.choice((1, 1, 1, 1, 3, 60, 700))
        return self.rng.choice(BLOCKS) * n + (b"x" * 70000 if self.chance(0.005) else b"")

    def mutate(self, data):
        """One to three small changes of the bytes."""
        data = bytearray(data)
        for _ in range(self.rng.choice((1, 1, 1, 2, 3))):
            at = self.rng.randrange(len(data) + 1)
            end = min(len(data), at + self.rng.choice((1, 1, 2, 4, 20)))
            how = self.rng.randrange(6)
            if how == 0:
                data[at:at] = self.rng.choice(BYTES)
            elif how == 1:
                data[at:end] = self.rng.choice(BYTES)
            elif how == 2:
                del data[at:end]
            elif how == 3:
                data[at:at] = data[at:end]
            elif how == 4 and at < len(data):
                data[at] ^= 1 << self.rng.randrange(8)
            elif data:
                words = bytes(data).split(b" ")
                i, j = self.rng.randrange(len(words)), self.rng.randrange(len(words))
                if b"noreply" not in (words[i], words[j]):  # a key that all streams would share
                    words[i], words[j] = words[j], words[i]
                data = bytearray(b" ".join(words))
        return bytes(data)

    def make(self):
        """The requests of a stream, most often few: the fewer, the plainer what is wrong."""
        n = self.rng.choice((1, 1, 2, 2, 3, 3, 4, 6, 10, 20))
        broken = self.pick(0, 0.05, 0.15, 0.4)
        return [self.changed(r) if self.chance(broken) else r
                for r in (self.one() for _ in range(n))]

    def changed(self, request):
        data = self.mutate(request)
        return request if FOR_ALL.search(data) else data

    def one(self):
        raise NotImplementedError
