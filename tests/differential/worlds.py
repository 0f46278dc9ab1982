"""What a run stands on: one real server that is asked directly, one behind a sidecar, and the
bystanders on that sidecar."""

import os
import pwd
import socket

import binary
import bystanders
import users
from bystanders import ID_KEY, THERE
from memcached_lines import Meta, Text
from memcached_packets import Packets
from procs import Proc, until
from resp_requests import Resp as RespMaker
from users import REDIS_GONE
from wire import Resp

SLOTS = 32  # streams at a time
DEPTHS = (1, 4, 12)  # of the bystanders' batches


class Memcached(Proc):
    def __init__(self, case, name, authfile=None):
        name = case.fresh_name(name)  # at the path of another, that one would be taken for it
        self.sock = case.path(name)
        # -F: flush_all would take the bystanders' keys away, and so would a memory that is full
        super().__init__(case, name, [
            "memcached", "-s", self.sock, "-a", "0777", "-F", "-m", "2048", "-c", "4096", "-t", "2", "-u",
            pwd.getpwuid(os.geteuid()).pw_name] + (["-Y", authfile] if authfile else []))
        self.log_path = os.devnull  # a request may have it log everything
        self.start()
        until("memcached accepts connections", self.up)

    def up(self):
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as s:
            return s.connect_ex(self.sock) == 0


class Mode:
    """One protocol: who makes its streams, who looks on, and the request that ends each stream. With
    users its clients have to log in."""

    def __init__(self, protocol, maker, looking_on, marker, upstream, with_users=False):
        self.protocol, self.maker, self.looking_on, self.upstream = protocol, maker, looking_on, upstream
        self.marker = marker  # of (slot, requests): request, and what its answer holds
        self.with_users, self.name = with_users, protocol + ("-users" if with_users else "")
        self.asks_directly = with_users and protocol != "binary"  # see users.opening
        if with_users:
            self.maker = users.maker_of(protocol, maker, [
                b"by-" + self.watcher(i, life) for i in range(len(looking_on)) for life in (1, 2)])

    def watcher(self, i, life):
        """The name of a bystander."""
        return b"%s%d-%d" % (self.looking_on[i].__name__[:4].lower().encode(), i, life)


def slot_value(slot):
    return b"marker-%d-%d!" % (slot, slot * 7919 + 10007)


def text_marker(slot, _):
    return b"get mark%d\r\n" % slot, b"VALUE mark%d 0 %d\r\n%s\r\nEND\r\n" % (
        slot, len(slot_value(slot)), slot_value(slot))


def packet_marker(slot, _):
    return binary.request(binary.GET, b"mark%d" % slot, opaque=slot), slot_value(slot)


def resp_marker(slot, requests):
    """One that is answered alike within MULTI and while subscribed to something."""
    said = b"".join(requests).upper()
    if b"MULTI" in said or b"SUBSCRIBE" in said:
        name = "NOSUCH%d" % (slot * 7919)
        return Resp.encode(name), b"'%s', with args beginning with: \r\n" % name.encode()
    return Resp.encode("GET", b"mark%d" % slot), b"$%d\r\n%s\r\n" % (
        len(slot_value(slot)), slot_value(slot))


TEXT, PACKET, RESP = bystanders.TextBystander, bystanders.PacketBystander, bystanders.RespBystander
PROTOCOLS = (
    ("text", Text, (TEXT, TEXT, TEXT), text_marker, "memcached"),
    ("meta", Meta, (TEXT, TEXT, TEXT), text_marker, "memcached"),
    ("binary", Packets, (PACKET, PACKET, TEXT), packet_marker, "memcached"),
    ("resp", RespMaker, (RESP, RESP, RESP), resp_marker, "redis"))
MODES = {m.name: m for m in (Mode(*p, with_users) for with_users in (False, True) for p in PROTOCOLS)}


class World:
    def __init__(self, case, mode, timeout):
        self.case, self.mode, self.timeout = case, mode, timeout
        self.sidecar, self.watchers, self.lives = None, [], 0
        self.has_ids = False
        self.ids, self.replies = set(), 0  # of the bystanders before those at hand
        if mode.upstream == "redis":
            options = ["--hash-max-listpack-value", "100000000", "--zset-max-listpack-value", "100000000",
                       "--proto-max-bulk-len", "512mb"]
            for name in REDIS_GONE:
                options += ["--rename-command", name, ""]
            self.direct = case.redis(args=options + list(users.REDIS_ARGS if mode.with_users else ()))
            self.behind = case.redis(args=options)
        else:
            self.direct = Memcached(case, "d", self.file("authfile", users.AUTHFILE) if mode.asks_directly else None)
            self.behind = Memcached(case, "b")
        self.set_markers()
        self.renew()

    def set_markers(self):
        """Again from time to time: a broken request may eat up the one behind it."""
        self.set_markers_of(self.direct.sock, self.mode.asks_directly)
        self.set_markers_of(self.behind.sock, False)
        self.look_at_ids()

    def file(self, name, text):
        path = self.case.path(name)
        with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="ascii") as f:
            f.write(text)
        return path

    def look_at_ids(self):
        """The server behind has a value of its own under an ID key, which nothing changes."""
        value = THERE + b"00000"
        if self.mode.upstream == "redis":
            get, put, had = Resp.encode("GET", ID_KEY), Resp.encode("SET", ID_KEY, value), b"$16\r\n%s\r\n"
        else:
            get, had = b"get %s\r\n" % ID_KEY, b"VALUE %s 0 16\r\n%%s\r\nEND\r\n" % ID_KEY
            put = b"set %s 0 0 16\r\n%s\r\n" % (ID_KEY, value)
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as s:
            s.connect(self.behind.sock)
            s.settimeout(5)
            s.sendall(get)
            found, want = s.recv(4096), had % value
            s.sendall(put)
            assert s.recv(64) in (b"+OK\r\n", b"STORED\r\n")
        if self.has_ids and found != want:
            raise bystanders.Trouble("%r under an ID key: expected %r, found %r" % (ID_KEY, want, found))
        self.has_ids = True

    def set_markers_of(self, path, with_login):
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as s:
            s.connect(path)
            s.settimeout(5)
            if with_login:
                bystanders.log_in(s, self.mode.protocol, b"dan")
            for slot in range(SLOTS):
                v = slot_value(slot)
                s.sendall(Resp.encode("SET", b"mark%d" % slot, v) if self.mode.upstream == "redis" else
                          b"set mark%d 0 0 %d\r\n%s\r\n" % (slot, len(v), v))
                assert s.recv(64) in (b"+OK\r\n", b"STORED\r\n")

    @property
    def address(self):
        return self.sidecar.resp_sock if self.mode.upstream == "redis" else self.sidecar.mc_sock

    def renew(self):
        """A sidecar and bystanders that nothing has happened to."""
        for w in self.watchers:
            self.replies += w.replies
            w.close()
        if self.sidecar:
            self.sidecar.kill()
            self.case.procs.remove(self.sidecar)
            os.unlink(self.sidecar.log_path)
        self.lives += 1
        options = {"upstream." + self.mode.upstream: "unix://" + self.behind.sock, "upstream.timeout": self.timeout,
                   "log.level": "info", "limits.connections": 4096}
        if self.mode.with_users:
            options.update({"auth.mode": "required", "auth.users_file": self.file("users", users.FILE)})
        self.sidecar = self.case.sidecar("static:7", options)
        self.watchers = [kind(self.address, self.mode.watcher(i, self.lives), self.lives * 10 + i, DEPTHS[i], self.ids,
                              b"bob" if self.mode.with_users else None)
                         for i, kind in enumerate(self.mode.looking_on)]

    def gone(self):
        """What went wrong with the sidecar, or None."""
        crash = self.sidecar.crashed()
        if crash or self.sidecar.running():
            return crash
        return "the sidecar ended with status %s: %s" % (
            self.sidecar.popen.returncode, self.sidecar.log()[-1500:])

    def last_words(self):
        """The last of what the sidecar's log has to complain of."""
        lines = [line for line in self.sidecar.log().splitlines() if " info " not in line]
        return "".join("\n  log: " + line[:300] for line in lines[-3:])
