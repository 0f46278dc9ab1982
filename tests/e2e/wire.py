"""The protocols from a client's side, on raw sockets: what is wrong in a reply shall show here, not
be smoothed over by a library."""

import re
import socket


class Error(Exception):
    """An error reply."""


class Closed(Exception):
    """The peer has closed the connection."""


class Stream:
    """A connected socket with a buffer. address: (host, port), or a path."""

    def __init__(self, address, timeout=10):
        family = socket.AF_UNIX if isinstance(address, str) else socket.AF_INET
        self.sock = socket.socket(family, socket.SOCK_STREAM)
        if family == socket.AF_INET:
            self.sock.settimeout(timeout)
            self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        try:
            self.sock.connect(address)  # with a timeout a full backlog would be an error, see unix(7)
        except OSError:
            self.sock.close()
            raise
        self.sock.settimeout(timeout)
        self.buf = bytearray()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self.sock.close()

    def send(self, data):
        self.sock.sendall(data)

    def fill(self):
        data = self.sock.recv(1 << 18)
        if not data:
            raise Closed("closed by the peer; unread: %r" % bytes(self.buf[:200]))
        self.buf += data

    def take(self, n):
        while len(self.buf) < n:
            self.fill()
        data = bytes(self.buf[:n])
        del self.buf[:n]
        return data

    def line(self):
        while True:
            end = self.buf.find(b"\r\n")
            if end >= 0:
                return self.take(end + 2)[:-2]
            self.fill()

    def rest(self):
        """All that comes until the peer closes."""
        try:
            while True:
                self.fill()
        except (Closed, ConnectionResetError):
            return self.take(len(self.buf))

    def half_close(self):
        self.sock.shutdown(socket.SHUT_WR)

    def silent(self, seconds=0.2):
        """True when nothing comes for a while, and the connection stays open."""
        if self.buf:
            return False
        self.sock.settimeout(seconds)
        try:
            data = self.sock.recv(1, socket.MSG_PEEK)
            return False if data else None
        except socket.timeout:
            return True
        finally:
            self.sock.settimeout(10)


class Resp(Stream):
    """RESP2 and RESP3. Bulk strings come as bytes, numbers as int, errors as Error (returned)."""

    @staticmethod
    def encode(*args):
        out = b"*%d\r\n" % len(args)
        for a in args:
            a = a if isinstance(a, bytes) else str(a).encode()
            out += b"$%d\r\n%s\r\n" % (len(a), a)
        return out

    def ask(self, *args):
        self.send(self.encode(*args))
        return self.reply()

    def reply(self):
        line = self.line()
        kind, text = line[:1], line[1:]
        if kind == b"+":
            return text
        if kind == b"-":
            return Error(text.decode())
        if kind in (b":", b"("):
            return int(text)
        if kind == b"_":
            return None
        if kind == b"#":
            return text == b"t"
        if kind in (b"$", b"="):
            return None if text == b"-1" else self.take(int(text) + 2)[:-2]
        if kind in (b"*", b"~", b">"):
            return None if text == b"-1" else [self.reply() for _ in range(int(text))]
        if kind == b"%":
            return {self.reply(): self.reply() for _ in range(int(text))}
        raise AssertionError("expected a RESP reply, found %r" % line)


class Memcached(Stream):
    """The text protocol."""

    def ask(self, line):
        """One line sent, one line back."""
        self.send(line.encode() + b"\r\n")
        return self.line().decode()

    def values(self):
        """The items of a get's reply, [(key, data, cas or None)], up to END."""
        items = []
        while True:
            words = self.line().decode().split(" ")
            if words == ["END"]:
                return items
            if words[0] != "VALUE":
                raise Error(" ".join(words))
            data = self.take(int(words[3]) + 2)[:-2]
            items.append((words[1], data.decode(), words[4] if len(words) > 4 else None))

    def get(self, *keys, verb="get"):
        self.send(("%s %s\r\n" % (verb, " ".join(keys))).encode())
        return self.values()

    def id(self, key="id:orders"):
        items = self.get(key)
        assert len(items) == 1 and items[0][0] == key, "expected one value, found %r" % (items,)
        return int(items[0][1])

    def stats(self, *args):
        self.send((" ".join(("stats",) + args) + "\r\n").encode())
        out = {}
        while True:
            words = self.line().decode().split(" ", 2)
            if words == ["END"]:
                return out
            assert words[0] == "STAT", "expected STAT, found %r" % (words,)
            out[words[1]] = words[2] if len(words) > 2 else ""


class HttpReply:
    def __init__(self, raw):
        head, _, self.body = raw.partition(b"\r\n\r\n")
        lines = head.decode("latin-1").split("\r\n")
        found = re.match(r"HTTP/1\.[01] (\d{3}) ", lines[0] + " ")
        assert found, "expected an HTTP reply, found %r" % raw[:200]
        self.status = int(found.group(1))
        self.headers = {k.strip().lower(): v.strip()
                        for k, _, v in (h.partition(":") for h in lines[1:])}
        self.text = self.body.decode()


def http(address, path, headers=None, method="GET"):
    head = {"Host": "localhost", "Connection": "close"}
    head.update(headers or {})
    text = "%s %s HTTP/1.1\r\n%s\r\n" % (
        method, path, "".join("%s: %s\r\n" % kv for kv in head.items()))
    with Stream(address) as s:
        s.send(text.encode())
        return HttpReply(s.rest())


class Metrics:
    """A page of text exposition format."""

    def __init__(self, text):
        self.samples = []
        for line in text.splitlines():
            if not line or line.startswith("#"):
                continue
            found = re.fullmatch(r'([a-zA-Z_:][\w:]*)(?:\{(.*)\})? (\S+)(?: \S+)?', line)
            assert found, "expected a sample, found %r" % line
            name, labels, value = found.groups()
            pairs = dict(re.findall(r'(\w+)="((?:[^"\\]|\\.)*)"', labels or ""))
            self.samples.append((name, pairs, float(value)))

    def names(self):
        return {name for name, _, _ in self.samples}

    def find(self, family, /, **labels):
        return [v for n, l, v in self.samples
                if n == family and all(l.get(k) == w for k, w in labels.items())]

    def value(self, family, /, **labels):
        """The sum of the samples that match; at least one must."""
        found = self.find(family, **labels)
        assert found, "expected a sample of %s%s, found none" % (family, labels or "")
        return sum(found)
