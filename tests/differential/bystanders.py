"""Clients that ask for nothing unusual, on the connections to the real server that all share, and
know each byte of each reply before it comes.

Their values hold SECRET, which nobody else's requests do, their own name and a number that grows: so
a reply that is not theirs, or not the one that is due, is known for what it is. So is a reply that
they never get.
"""

import random
import re
import socket
import struct

import binary
import users
from wire import Resp

THERE = b"81288171662"  # what the server behind has under ID_KEY begins so: nobody is told it
ID_KEY = b"id:x"
SECRET = b"SECRET"
LATE = 3.0   # seconds: later than that is lost
PAUSE = 0.0005  # seconds between two batches of one bystander


class Trouble(Exception):
    """A bystander did not get what it was due."""


def log_in(sock, protocol, name):
    request, reply = users.opening(protocol, name, False)
    sock.sendall(request)
    found = sock.recv(len(reply), socket.MSG_WAITALL)
    assert found == reply, "logging in: expected %r, found %r" % (reply, found)


class Pattern:
    """A reply of which only the form is known. head: what it begins with; its first group is an ID,
    if it has one."""

    def __init__(self, text, head, longest):
        self.text, self.head, self.longest = re.compile(text), head, longest
        self.seen, self.is_id = None, self.text.groups > 0

    def used(self, buf):
        """Bytes of buf that are the reply; 0: more has to come; None: it is another."""
        found = self.text.match(buf)
        if found:
            self.seen = found.group(1) if self.is_id else None
            return found.end()
        n = min(len(buf), len(self.head))
        return 0 if buf[:n] == self.head[:n] and len(buf) < self.longest else None

    def __repr__(self):
        return repr(self.text.pattern)


class Bystander:
    """A connection with at most one batch of requests under way. A protocol's own has request(),
    which gives the bytes of one request and a list of its replies: bytes, or a Pattern."""

    pause, late, protocol = PAUSE, LATE, "text"

    def __init__(self, address, name, seed, depth, ids, user=None):
        """address: a path, or (host, port). ids: the set of all that any of them got. user: whom it
        logs in as."""
        self.name, self.rng, self.depth, self.ids = name, random.Random(seed), depth, ids
        self.key = b"by-" + name
        self.n, self.count, self.value, self.replies = 0, 0, None, 0
        self.buf, self.due, self.sent_at, self.idle_since = bytearray(), [], 0.0, 0.0
        self.batch = b""
        family = socket.AF_UNIX if isinstance(address, str) else socket.AF_INET
        self.sock = socket.socket(family, socket.SOCK_STREAM)
        self.sock.settimeout(5)
        self.sock.connect(address)
        if user:
            log_in(self.sock, self.protocol, user)
        self.sock.setblocking(False)

    def close(self):
        self.sock.close()

    def next_value(self):
        self.n += 1
        text = b"%s:%s:%d:" % (SECRET, self.name, self.n)
        self.value = text + b"." * self.rng.choice((0, 3, 50, 900))
        return self.value

    def tick(self, now):
        """Sends the next batch when the last is answered, and complains when it is not."""
        if self.due:
            if now - self.sent_at > self.late:
                raise Trouble("%s: no answer in %g s to %r: expected %r, found %r" % (
                    self.name.decode(), self.late, self.batch[:200], self.due[0], bytes(self.buf[:200])))
            return
        if now - self.idle_since < self.pause:
            return
        data = []
        for _ in range(self.rng.randrange(1, self.depth + 1)):
            request, replies = self.request()
            data.append(request)
            self.due += replies
        self.batch, self.sent_at = b"".join(data), now
        try:
            self.sock.send(self.batch)
        except OSError as e:
            raise Trouble("%s: its connection is gone: %s" % (self.name.decode(), e))

    def readable(self, now):
        try:
            data = self.sock.recv(1 << 17)
        except BlockingIOError:
            return
        except OSError as e:
            raise Trouble("%s: its connection is gone: %s" % (self.name.decode(), e))
        if not data:
            raise Trouble("%s: its connection is closed, with %d replies due" % (
                self.name.decode(), len(self.due)))
        self.buf += data
        while self.buf:
            if not self.due:
                raise Trouble("%s: expected nothing, found %r" % (self.name.decode(), bytes(self.buf[:300])))
            used = self.matches(self.due[0])
            if used is None:
                raise Trouble("%s, having sent %r: expected %r, found %r" % (
                    self.name.decode(), self.batch[:300], self.due[0], bytes(self.buf[:300])))
            if not used:
                return
            del self.buf[:used]
            self.due.pop(0)
            self.replies += 1
        if not self.due:
            self.idle_since = now

    def matches(self, reply):
        if isinstance(reply, Pattern):
            used = reply.used(bytes(self.buf))
            if used and reply.is_id:
                if reply.seen in self.ids:
                    raise Trouble("%s: the ID %s came twice" % (self.name.decode(), reply.seen))
                self.ids.add(reply.seen)
            return used
        n = min(len(self.buf), len(reply))
        if self.buf[:n] != reply[:n]:
            return None
        return n if n == len(reply) else 0


class TextBystander(Bystander):
    def reply_to_get(self):
        return b"VALUE %s 0 %d\r\n%s\r\nEND\r\n" % (self.key, len(self.value), self.value)

    def request(self):
        kind = self.rng.randrange(14) if self.value else 0
        if kind == 0:
            v = self.next_value()
            return b"set %s 0 0 %d\r\n%s\r\n" % (self.key, len(v), v), [b"STORED\r\n"]
        if kind == 1:
            v = self.next_value()
            return (b"set %s 0 0 %d noreply\r\n%s\r\nget %s\r\n" % (self.key, len(v), v, self.key),
                    [self.reply_to_get()])
        if kind == 2:
            self.count += 1
            if self.count == 1:
                return b"set %s.n 0 0 1\r\n1\r\n" % self.key, [b"STORED\r\n"]
            return b"incr %s.n 1\r\n" % self.key, [b"%d\r\n" % self.count]
        if kind == 3:
            return b"delete %s.none\r\n" % self.key, [b"NOT_FOUND\r\n"]
        if kind == 4:
            self.n += 1
            return (b"mg %s v O%d\r\n" % (self.key, self.n),
                    [b"VA %d O%d\r\n%s\r\n" % (len(self.value), self.n, self.value)])
        if kind == 5:
            return b"get %s.none %s\r\n" % (self.key, self.key), [self.reply_to_get()]
        if kind == 6:
            return b"get id:orders\r\n", [Pattern(rb"VALUE id:orders 0 \d+\r\n(\d+)\r\nEND\r\n",
                                                  b"VALUE id:orders 0 ", 70)]
        if kind == 7:
            return b"touch %s 0\r\n" % self.key, [b"TOUCHED\r\n"]
        return b"get %s\r\n" % self.key, [self.reply_to_get()]


class PacketBystander(Bystander):
    protocol = "binary"

    @staticmethod
    def packet(opcode, opaque, status=0, extras=b"", key=b"", value=b"", cas=rb"[\0-\xff]{8}"):
        """A Pattern, for nobody knows the cas."""
        head = binary.HEADER.pack(0x81, opcode, len(key), len(extras), 0, status,
                                  len(extras) + len(key) + len(value), opaque, 0)[:16]
        return re.escape(head) + cas + re.escape(extras + key + value), head

    def expect(self, *args, **kwargs):
        text, head = self.packet(*args, **kwargs)
        return Pattern(b"(?s)" + text, head, 1 << 17)

    def request(self):
        self.n += 1
        kind, o, r = self.rng.randrange(8) if self.value else 0, self.n, binary.request
        if kind == 0:
            v = self.next_value()
            return r(binary.SET, self.key, v, 8 * b"\0", o), [self.expect(binary.SET, o)]
        if kind == 1:
            return r(binary.GETK, self.key, opaque=o), [
                self.expect(binary.GETK, o, 0, 4 * b"\0", self.key, self.value)]
        if kind == 2:
            self.count += 1
            return (r(binary.INCR, self.key + b".n", b"", binary.delta(1, 1, 0), o),
                    [self.expect(binary.INCR, o, 0, b"", b"", struct.pack(">Q", self.count))])
        if kind == 3:
            return (r(binary.GETQ, self.key + b".none", opaque=o) + r(binary.NOOP, opaque=o),
                    [self.expect(binary.NOOP, o)])
        if kind == 4:
            return (r(binary.GETKQ, self.key, opaque=o) + r(binary.NOOP, opaque=o + 1),
                    [self.expect(binary.GETKQ, o, 0, 4 * b"\0", self.key, self.value),
                     self.expect(binary.NOOP, o + 1)])
        return r(binary.GET, self.key, opaque=o), [self.expect(binary.GET, o, 0, 4 * b"\0", b"", self.value)]


class RespBystander(Bystander):
    protocol = "resp"

    @staticmethod
    def bulk(v):
        return b"$%d\r\n%s\r\n" % (len(v), v)

    def request(self):
        kind, e = self.rng.randrange(14) if self.value else 0, Resp.encode
        if kind == 0:
            return e("SET", self.key, self.next_value()), [b"+OK\r\n"]
        if kind == 1:
            self.count += 1
            if self.count == 1:
                return e("SET", self.key + b".n", 1), [b"+OK\r\n"]
            return e("INCR", self.key + b".n"), [b":%d\r\n" % self.count]
        if kind == 2:
            return e("MGET", self.key, self.key + b".none"), [
                b"*2\r\n" + self.bulk(self.value) + b"$-1\r\n"]
        if kind == 3:
            return e("HGET", self.key + b".none", "f"), [b"$-1\r\n"]
        if kind == 4:
            self.n += 1
            return e("ECHO", b"%s:%d" % (self.name, self.n)), [self.bulk(b"%s:%d" % (self.name, self.n))]
        if kind == 5:
            return e("GET", "id:orders"), [Pattern(rb"\$\d+\r\n(\d+)\r\n", b"$", 40)]
        if kind == 6:
            return e("STRLEN", self.key), [b":%d\r\n" % len(self.value)]
        return e("GET", self.key), [self.bulk(self.value)]


