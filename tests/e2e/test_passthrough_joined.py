"""Pass-through: gets of one key that come one after the other are asked for as one, and nobody can
tell but the server."""

import concurrent.futures
import random

import wire
from passthrough import MemcachedStream, Puppet, exchange
from runner import test
from test_passthrough import SEED, behind, same

LOST = b"SERVER_ERROR upstream unavailable\r\n"
END = b"END\r\n"


def value(key, text=b"x"):
    return b"VALUE %s 0 %d\r\n%s\r\n" % (key, len(text), text)


def answer(line):
    """Of a server that has all keys."""
    verb, *keys = line.split()
    return b"".join(map(value, keys)) + END if verb.startswith(b"get") else b"DELETED\r\n"


class Rig:
    """A sidecar before a puppet, and clients that have used its link."""

    def __init__(self, case, puppet, clients=1):
        self.puppet = puppet
        self.s = behind(case, memcached=puppet)
        self.clients = [self.s.mc() for _ in range(clients)]
        self.link = self.of = None
        self.warm()

    def warm(self):
        self.link = None
        for c in self.clients:
            c.send(b"get warm\r\n")
            self.link = self.link or self.puppet.accept()
            self.hears(b"get warm\r\n")
            self.link.sendall(END)
            says(c, END)

    def line(self):
        got = b""
        while not got.endswith(b"\r\n"):
            got += self.link.recv(1)
        return got

    def hears(self, want):
        got = b""
        while len(got) < len(want) and want.startswith(got):
            got += self.link.recv(len(want) - len(got))
        assert got == want, "expected %r upstream, found %r" % (want, got)

    def together(self):
        """A get of each client, while the sidecar does not look: it reads all before it sends any.
        The keys, in the order in which they are asked for; of: whose they are."""
        self.of = {b"%c" % (ord("a") + i): c for i, c in enumerate(self.clients)}
        self.s.pause()
        for key, c in self.of.items():
            c.send(b"get %s\r\n" % key)
        self.s.resume()
        verb, *asked = self.line().split()
        assert verb == b"get" and sorted(asked) == sorted(self.of), \
            "expected a get of %r, found %r" % (sorted(self.of), asked)
        return asked


def says(client, want):
    got = client.take(len(want))
    assert got == want, "expected %r, found %r" % (want, got)


@test("gets in a row go upstream as one, as far as verbs and keys allow")
def rows(case):
    with Puppet() as puppet:
        rig = Rig(case, puppet)
        c, = rig.clients
        for sent, heard in (
                ((b"get a", b"get b", b"get c"), (b"get a b c",)),
                ((b"get a", b"gets b", b"gets c", b"get d"), (b"get a", b"gets b c", b"get d")),
                ((b"get a", b"delete x", b"get b"), (b"get a", b"delete x", b"get b")),
                ((b"get a b", b"get c", b"get d"), (b"get a b", b"get c d")),
                # a key that is in it already: which of the two had a value could not be told
                ((b"get a", b"get b", b"get a", b"get c"), (b"get a b", b"get a c"))):
            c.send(b"\r\n".join(sent) + b"\r\n")
            for line in heard:
                rig.hears(line + b"\r\n")
                rig.link.sendall(answer(line))
            says(c, b"".join(map(answer, sent)))
        keys = [b"%03d-%s" % (i, b"k" * 200) for i in range(30)]
        c.send(b"".join(b"get %s\r\n" % k for k in keys))
        lines = []
        while sum(len(line.split()) - 1 for line in lines) < len(keys):
            lines.append(rig.line())
        assert max(map(len, lines)) <= 2000 and len(lines) < len(keys) / 3, \
            "expected few lines of up to 2000 bytes, found %r" % [len(line) for line in lines]
        rig.link.sendall(END * len(lines))
        says(c, END * len(keys))
        rig.s.assert_running()


def bit(key):
    """Of a key, by which one that is in a request already is known: src/net/join.c."""
    h = 2166136261
    for byte in key:
        h = (h ^ byte) * 16777619 & 0xffffffff
    return (h ^ h >> 16) % 512


@test("a get that clients share has 64 keys at most, however they are chosen")
def many(case):
    found = {}
    for i in range(100000):
        found.setdefault(bit(b"%d" % i), b"%d" % i)
    keys = list(found.values())[:200]
    with Puppet() as puppet:
        rig = Rig(case, puppet, clients=5)
        rig.s.pause()
        for i, c in enumerate(rig.clients):
            c.send(b"".join(b"get %s\r\n" % k for k in keys[i * 40:i * 40 + 40]))
        rig.s.resume()
        asked = []
        while sum(map(len, asked)) < len(keys):
            asked.append(rig.line().split()[1:])
        sizes = [len(a) for a in asked]
        assert max(sizes) == 64 and len(sizes) < 7, "expected few gets of up to 64, found %r" % sizes
        rig.link.sendall(b"".join(b"".join(map(value, a)) + END for a in asked))
        for i, c in enumerate(rig.clients):
            says(c, b"".join(value(k) + END for k in keys[i * 40:i * 40 + 40]))


@test("clients that share a get have each its own value, miss or error")
def shared(case):
    with Puppet() as puppet:
        rig = Rig(case, puppet, clients=4)
        error = b"SERVER_ERROR out of memory writing get response\r\n"
        tricky = b"END\r\nVALUE c 0 1"
        for have, fails in ((1, 0, 1, 0), 0), ((0, 0, 0, 0), 0), ((0, 1, 0, 0), 0), \
                ((1, 1, 1, 1), 0), ((1, 0, 0, 0), 1), ((0, 0, 0, 0), 1), ((0, 0, 0, 1), 1):
            for size in (1000, 1, 7):
                asked = rig.together()
                found = [value(k, tricky) if there else b"" for k, there in zip(asked, have)]
                last = max((i for i, there in enumerate(have) if there), default=-1)
                reply = b"".join(found) + (error if fails else END)
                for at in range(0, len(reply), size):
                    rig.link.sendall(reply[at:at + size])
                for i, key in enumerate(asked):
                    ends = error if fails and (i > last or i == len(asked) - 1) else END
                    says(rig.of[key], found[i] + ends)
        # one has gone: the others' are not its
        asked = rig.together()
        rig.of[asked[1]].close()
        rig.link.sendall(b"".join(map(value, asked)) + END)
        for key in asked[:1] + asked[2:]:
            says(rig.of[key], value(key) + END)
        rig.s.assert_running()


@test("a get that is cut short: who has a part of its value is closed, who has none is told")
def short(case):
    with Puppet() as puppet:
        rig = Rig(case, puppet, clients=4)
        asked = rig.together()
        a, b, c, d = (rig.of[key] for key in asked)
        rig.link.sendall(value(asked[0]) + b"VALUE %s 0 100\r\nxxx" % asked[1])
        says(a, value(asked[0]) + END)
        says(b, b"VALUE %s 0 100\r\nxxx" % asked[1])
        rig.link.close()
        says(c, LOST)
        says(d, LOST)
        assert b.rest() == b"", "expected the end of the connection"
        rig.clients = [a, c, d]
        rig.warm()


@test("values that nobody asked for break the link, and are nobody's")
def strange(case):
    with Puppet() as puppet:
        rig = Rig(case, puppet, clients=2)
        for order in ((1, 0), (0, 2), (2,), (1, 1)):
            asked = rig.together() + [b"x"]
            rig.link.sendall(b"".join(value(asked[i]) for i in order) + END)
            for key in asked[:2]:
                got = b""
                while not got.endswith((END, LOST)):
                    part = rig.of[key].sock.recv(1000)
                    if not part:
                        break
                    got += part
                assert got in (value(key) + END, value(key), END, LOST), \
                    "to get %s, expected its value or none, found %r" % (key.decode(), got)
                rig.of[key].close()
            rig.clients = [rig.s.mc() for _ in range(2)]
            rig.warm()
        rig.s.assert_running()


@test("where the server forgets replies for want of memory, nobody gets another's instead")
def forgotten(case):
    # so little for what is to be sent that 400 keys are too many: then STORED is forgotten, too
    server = case.memcached(args=("-t", "4", "-o", "read_buf_mem_limit=1"))
    s = behind(case, memcached=server)
    before, first, after = (s.mc() for _ in range(3))  # one of the two comes behind the first
    for c in before, first, after:
        c.send(b"set secret 0 0 6\r\nsecret\r\n")
        says(c, b"STORED\r\n")
    s.pause()
    first.send(b"set a 0 0 1\r\nx\r\nget " + b" ".join(b"%d" % i for i in range(400)) + b"\r\n")
    for c in before, after:
        c.send(b"get secret\r\nincr none 1\r\n")
    s.resume()
    says(first, 2 * LOST)
    for c in before, after:
        got = c.line() + b"\r\n"
        got += c.take(len(b"secret\r\nEND\r\n")) if got.startswith(b"VALUE") else b""
        assert got in (value(b"secret", b"secret") + END, LOST), "found %r" % got
        got = c.line() + b"\r\n"
        assert got in (b"NOT_FOUND\r\n", LOST), "found %r" % got
    s.assert_running()


@test("random streams, mostly gets, of many clients at once on one link: the same bytes")
def streams(case):
    direct, other = case.memcached(), case.memcached()
    s = behind(case, memcached=other)
    rng = random.Random(SEED)
    made = []
    for i in range(12):
        stream = MemcachedStream(SEED + i, tag="-%d-" % i)
        for _ in range(4000):
            stream.plain()
        made.append(bytes(stream.out) + b"mn\r\n")
    # the tokens of cas count all that is stored
    hide = lambda got: b"\n".join(
        b" ".join(line.split(b" ")[:4]) if line.startswith(b"VALUE ") else line
        for line in got.split(b"\n"))
    want = [exchange(("127.0.0.1", direct.port), data, b"MN\r\n") for data in made]
    with concurrent.futures.ThreadPoolExecutor(len(made)) as pool:
        got = list(pool.map(lambda data: exchange(("127.0.0.1", s.mc_port), data, b"MN\r\n",
                                                  random.Random(rng.random())), made))
    for i, (w, g) in enumerate(zip(want, got)):
        same(hide(w), hide(g), "stream %d" % i)
    links = s.metric("sidflake_upstream_connections", protocol="memcached")
    assert links == 1, "expected one link for all, found %r" % links
    with wire.Memcached(("127.0.0.1", direct.port)) as d, \
            wire.Memcached(("127.0.0.1", other.port)) as o:
        want, got = (int(c.stats()["cmd_get"]) for c in (d, o))
    assert want == got, "expected %d keys looked up, found %d" % (want, got)
    s.assert_running()
