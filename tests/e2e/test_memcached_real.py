"""What concerns no ID is answered as the real memcached does, byte for byte: meta commands, stats
and the binary protocol. Reads of an ID are, but for the number, what memcached answers for a key
that holds one."""

import os
import random
import re

import binary
import wire
from runner import test

STREAMS = 500  # random ones, for each protocol
REQUESTS = 12  # in one


class Both:
    """A sidecar, and the real thing."""

    def __init__(self, case):
        self.seed = int(os.environ.get("SEED", random.getrandbits(32)))
        self.rng = random.Random(self.seed)
        self.real = case.memcached()
        self.side = case.sidecar("static:7")

    def compare(self, stream, last, until=b"", mask=bytes):
        """last: the request that ends the connection; until: the answer to wait for before that is
        sent, for memcached may close without sending what it has."""
        answers = []
        for port in (self.real.port, self.side.mc_port):
            with wire.Stream(("127.0.0.1", port)) as c:
                c.send(stream)
                while not c.buf.endswith(until):
                    c.fill()
                c.send(last)
                answers.append(mask(c.rest()))
        assert answers[0] == answers[1], "SEED=%d %r:\nexpected %r\nfound    %r" % (
            self.seed, stream, *answers)
        return answers[0]


# ---- text ----------------------------------------------------------------------------------------

KEYS = ["k", "other", "x" * 250, "aWQ6", "YQ==", "YWI=", "AAECAw==", "\u00e4"]
FLAGS = ["v", "f", "c", "k", "s", "t", "q", "b", "h", "l", "u", "I", "L1", "P9", "Oopaque", "O",
         "O" + "o" * 31, "T0", "T-1", "R30", "C7", "D1", "D18446744073709551615", "J5", "MI", "MS",
         "F0", "E1", "S2", "k1"]
ODD = ["O" + "o" * 32, "Tx", "T", "T2147483648", "R", "C", "Cx", "C-1", "Dx", "D", "J", "J-", "M",
       "MIX", "MZ", "Fx", "F", "z", "v", "v", "1", "-", "\u00e4", "F4294967296", "NN"]
LINES = [
    "mg", "ma", "md", "me", "ms", "mn", "mx", "m", "mg ", "mn x y", "me k v b", "me YQ== b",
    "me !!! b", "me k", "me " + "k" * 251, "mg " + "k" * 251, "ma " + "k" * 251, "md " + "k" * 251,
    "ms k", "ms k x", "ms k -1", "ms k 2147483646", "mg k  v  k ", "mg !!! b k", "mg YWI b k",
    "ma !!! b k", "md !!! b k", "mg k v v", "mg k z v v", "mg k v v z",
    "mg k" + " z" * 17, "mg k" + " z" * 18, "ma k" + " z" * 17, "ma k" + " z" * 18,
    "md k" + " z" * 17, "md k" + " z" * 18,
]
STATS = ["items", "slabs", "sizes", "detail", "detail on", "detail off", "detail dump",
         "detail foo", "reset", "foo"]


def random_flags(rng):
    flags = rng.sample(FLAGS, rng.randrange(7))
    if rng.random() < 0.3:
        flags.insert(rng.randrange(len(flags) + 1), rng.choice(ODD))
    return "".join(" " + f for f in flags)


def stored(rng):
    """An ms that stores nothing even in memcached, with its data block."""
    size = rng.randrange(5)
    block = "d" * size + ("\r\n" if rng.random() < 0.8 else "xx")
    mode = rng.choice([" MA", " MP", " MR", " MR C5", " C5", " MZ", " z"])
    return "ms %s %d%s%s\r\n%s" % (rng.choice(KEYS), size, mode, random_flags(rng), block)


def line(rng):
    verb = rng.choice(["mg", "mg", "mg", "ma", "md", "me", "mn", "ms"])
    if verb == "ms":
        return stored(rng)
    return "%s %s%s\r\n" % (verb, rng.choice(KEYS), random_flags(rng))


@test("meta commands for keys that are no IDs, as memcached answers")
def meta(case):
    both = Both(case)
    for text in LINES:
        answer = both.compare((text + "\r\n").encode(), b"mn\r\nquit\r\n")
        assert answer.endswith(b"MN\r\n"), (text, answer)
    rng = both.rng
    for _ in range(STREAMS):
        stream = "".join(line(rng) for _ in range(rng.randrange(1, REQUESTS)))
        both.compare(stream.encode(), b"mn\r\nquit\r\n")


@test("stats with a word, as an empty memcached answers, in text and binary")
def stats(case):
    both = Both(case)
    for form in STATS:
        both.compare(b"stats %s\r\n" % form.encode(), b"quit\r\n")
        if form != "detail dump":  # there memcached puts text into a row
            both.compare(binary.request(binary.STAT, form.encode(), opaque=9),
                         binary.request(binary.QUIT))


# ---- binary --------------------------------------------------------------------------------------

READS = [binary.GET, binary.GETQ, binary.GETK, binary.GETKQ, binary.DELETE, binary.DELETEQ]
TOUCHES = [binary.TOUCH, binary.GAT, binary.GATQ, binary.GATK, binary.GATKQ]
DELTAS = [binary.INCR, binary.INCRQ, binary.DECR, binary.DECRQ]
APPENDS = [binary.APPEND, binary.APPENDQ, binary.PREPEND, binary.PREPENDQ]
REPLACES = [binary.REPLACE, binary.REPLACEQ]
SETS = [binary.SET, binary.SETQ, binary.ADD, binary.ADDQ, *REPLACES]
NAKED = [binary.NOOP, binary.VERSION]
KNOWN = [*READS, *TOUCHES, *DELTAS, *APPENDS, *SETS, *NAKED, binary.QUIT, binary.QUITQ,
         binary.FLUSH, binary.FLUSHQ, binary.STAT, binary.SASL_LIST, binary.SASL_AUTH,
         binary.SASL_STEP]


def known(rng):
    key = rng.choice([b"k", b"other key", b"\0\xff", b"x" * 250])
    opaque = rng.getrandbits(32)
    value = b"v" * rng.randrange(40)
    group = rng.choice([READS, TOUCHES, DELTAS, APPENDS, REPLACES, SETS, NAKED])
    opcode = rng.choice(group)
    if group in (READS, APPENDS):
        value = value if group is APPENDS else b""
        return binary.request(opcode, key, value, opaque=opaque, cas=rng.randrange(2))
    if group is TOUCHES:
        return binary.request(opcode, key, extras=b"\0\0\0\x05", opaque=opaque)
    if group is DELTAS:
        return binary.request(opcode, key, extras=binary.delta(rng.randrange(3)), opaque=opaque)
    if group is NAKED:
        return binary.request(opcode, opaque=opaque)
    cas = 5 if group is SETS else rng.randrange(2)  # a set with a cas unique stores nothing
    return binary.request(opcode, key, value, b"\0" * 8, opaque, cas)


def unknown(rng):
    """memcached reads a key in it as the next request, so there is none."""
    opcode = rng.choice([o for o in range(256) if o not in KNOWN])
    return binary.request(opcode, value=b"\x80" * rng.randrange(100), opaque=rng.getrandbits(32))


def closing(rng):
    """What memcached closes for. Of the lengths only those that it looks at."""
    opcode = rng.choice([binary.GET, binary.DELETE, binary.INCR, binary.SET, binary.APPEND,
                         binary.NOOP, binary.VERSION, binary.TOUCH])
    return rng.choice([
        b"\x00" * 24, b"\x81" + b"\0" * 23, b"get k\r\n" + b"x" * 20,
        binary.request(opcode), binary.request(opcode, b"k" * 251),
        binary.request(0x70, b"k" * 251),
        binary.HEADER.pack(0x80, opcode, 5, 4, 0, 0, 8, 77, 0) + b"xxxxxxxxx",
        binary.request(binary.GET, b"k", b"v"), binary.request(binary.GET, b"k", extras=b"1234"),
        binary.request(binary.INCR, b"k", extras=b"1234"), binary.request(binary.VERSION, b"k"),
        binary.request(binary.SET, b"k", b"v"), binary.request(binary.TOUCH, b"k"),
        binary.request(binary.FLUSH, extras=b"12"), binary.request(binary.STAT, extras=b"12"),
    ]) if opcode not in NAKED else binary.request(opcode, value=b"v")


@test("binary protocol for keys that are no IDs, as memcached answers")
def binary_protocol(case):
    both = Both(case)
    rng = both.rng
    for _ in range(STREAMS):
        stream = b"".join(rng.choice([known, known, known, unknown])(rng)
                          for _ in range(rng.randrange(1, REQUESTS)))
        answered = binary.request(binary.NOOP, opaque=rng.getrandbits(32))
        both.compare(stream + answered, rng.choice([binary.request(binary.QUIT, opaque=3),
                                                    binary.request(binary.QUITQ), closing(rng)]),
                     b"\x81" + answered[1:])


# ---- hits ----------------------------------------------------------------------------------------

HELD = ["v", "f", "c", "k", "s", "t", "q", "h", "l", "u", "L1", "P9", "Oo", "T0", "N30", "R30"]
COUNTED = ["v", "c", "k", "t", "q", "Oo", "N30", "J5", "D1", "D1024", "MI", "M+"]


def hold_one(both):
    """Stores an ID in memcached, so that both have one of the same length."""
    with both.side.mc() as side, wire.Memcached(("127.0.0.1", both.real.port)) as real:
        text = str(side.id("id:a"))
        assert real.ask("set id:a 0 0 %d\r\n%s" % (len(text), text)) == "STORED"
    return len(text)


@test("meta commands for an ID key, as memcached answers where it holds a number")
def meta_hits(case):
    both = Both(case)
    rng = both.rng
    digits = hold_one(both)

    def mask(answer):
        assert len(re.findall(rb"(?m)^\d{%d}\r$" % digits, answer)) == answer.count(b"VA "), answer
        answer = re.sub(rb"(?m)^\d+\r$", b"ID", answer)
        return re.sub(rb" ([chl])\d+", rb" \1", answer)
    for _ in range(STREAMS):
        stream = ""
        for _ in range(rng.randrange(1, REQUESTS)):
            verb, flags = rng.choice([("mg", HELD), ("ma", COUNTED)])
            chosen = {f[0]: f for f in rng.sample(flags, rng.randrange(8))}
            stream += " ".join([verb, "id:a", *chosen.values()]) + "\r\n"
        both.compare(stream.encode(), b"mn\r\nquit\r\n", mask=mask)


@test("binary reads and increments of an ID key, as memcached answers where it holds a number")
def binary_hits(case):
    both = Both(case)
    rng = both.rng
    digits = hold_one(both)

    def mask(answer):
        """Headers without the cas, and bodies without digits; a counter's eight bytes are none."""
        out = []
        while answer:
            head = list(binary.HEADER.unpack(answer[:binary.HEADER.size]))
            end = binary.HEADER.size + head[6]
            body = answer[binary.HEADER.size:end]
            counter = head[1] in (binary.INCR, binary.INCRQ) and head[5] == binary.OK
            out.append((head[:-1], len(body), b"" if counter else
                        re.sub(rb"\d{%d}" % digits, b"ID", body)))
            answer = answer[end:]
        return out
    for _ in range(STREAMS):
        stream = b""
        for _ in range(rng.randrange(1, REQUESTS)):
            opcode = rng.choice([*READS[:4], *TOUCHES, binary.INCR, binary.INCRQ, *NAKED])
            extras = b"\0\0\0\0" if opcode in TOUCHES else \
                binary.delta(rng.randrange(1, 1025)) if opcode in DELTAS else b""
            key = b"" if opcode in NAKED else b"id:a"
            stream += binary.request(opcode, key, extras=extras, opaque=rng.getrandbits(32))
        both.compare(stream, binary.request(binary.QUIT), mask=mask)
