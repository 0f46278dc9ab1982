"""Random requests of memcached's binary protocol: usual ones, odd ones, broken ones."""

import struct

import binary
from grammar import Maker

STORES = (binary.SET, binary.SET, binary.ADD, binary.REPLACE, binary.SETQ, binary.ADDQ, binary.REPLACEQ)
GETS = (binary.GET, binary.GETQ, binary.GETK, binary.GETKQ)
DELTAS = (binary.INCR, binary.DECR, binary.INCRQ, binary.DECRQ)
APPENDS = (binary.APPEND, binary.PREPEND, binary.APPENDQ, binary.PREPENDQ)
TOUCHES = (binary.TOUCH, binary.GAT, binary.GATQ, binary.GATK, binary.GATKQ)
OTHERS = (binary.NOOP, binary.VERSION, binary.STAT, binary.FLUSH, binary.FLUSHQ, binary.SASL_LIST,
          binary.QUIT, binary.QUITQ, binary.SASL_AUTH, binary.SASL_STEP)
SIZES = (0, 1, 2, 3, 4, 7, 8, 9, 19, 20, 21, 24, 250, 251, 255, 256, 1000, 65535)
HUGE = (1 << 16, 1 << 20, (1 << 20) + 100, 1 << 27, (1 << 31) - 1, 1 << 31, (1 << 32) - 1)


class Packets(Maker):
    def key(self):
        own = self.own()
        if not self.chance(0.1):
            return own
        return self.pick(b"", own.ljust(249, b"x"), own.ljust(250, b"x"), own.ljust(251, b"x"), own + b"\0",
                         b"\r\n" + own, own + b" x", own + b"\xff", b"id:x", own.ljust(300, b"x"))

    def usual(self):
        key, opaque = self.key(), self.rng.getrandbits(32)
        cas = 0 if self.chance(0.9) else self.rng.choice((1, 5, (1 << 64) - 1))
        kind = self.rng.randrange(12)
        if kind < 4:
            return binary.request(self.rng.choice(GETS), key, opaque=opaque, cas=cas)
        if kind < 7:
            extras = struct.pack(">II", self.rng.randrange(9), self.pick(0, 0, 0, 100, 0xffffffff))
            return binary.request(self.rng.choice(STORES), key, self.block(), extras, opaque, cas)
        if kind == 7:
            n = self.pick(0, 1, 7, 1024, 1 << 63, (1 << 64) - 1)
            never = self.pick(0, 0, 0xffffffff)
            return binary.request(self.rng.choice(DELTAS), self.own(b"n"), b"",
                                  binary.delta(n, 5, never), opaque, cas)
        if kind == 8:
            return binary.request(self.pick(binary.DELETE, binary.DELETEQ), key, opaque=opaque, cas=cas)
        if kind == 9:
            return binary.request(self.rng.choice(APPENDS), key, self.block(), opaque=opaque, cas=cas)
        if kind == 10:
            return binary.request(self.rng.choice(TOUCHES), key, b"", struct.pack(">I", self.pick(0, 100)),
                                  opaque)
        return self.other(opaque)

    def other(self, opaque):
        if self.chance(0.4):
            return binary.request(binary.NOOP, opaque=opaque)
        opcode = self.rng.choice(OTHERS) if self.chance(0.7) else self.rng.randrange(256)
        if opcode == binary.STAT:
            return binary.request(opcode, self.pick(b"", b"settings", b"nosuch", b"reset"), opaque=opaque)
        if opcode in (binary.SASL_AUTH, binary.SASL_STEP):
            return binary.request(opcode, self.pick(b"PLAIN", b"", b"X"), self.pick(b"", b"\0a\0b"),
                                  opaque=opaque)
        if opcode in (binary.FLUSH, binary.FLUSHQ):
            return binary.request(opcode, extras=self.pick(b"", b"\0\0\0\0", b"\0\0\x03\xe8"), opaque=opaque)
        return binary.request(opcode, opaque=opaque)

    def odd(self):
        """A packet with a field of its header off, and its body as it was, or as it is then said to
        be."""
        packet = self.usual()
        head, body = list(binary.HEADER.unpack(packet[:24])), packet[24:]
        field = self.rng.choice((0, 1, 1, 2, 2, 3, 3, 4, 5, 6, 6, 6, 8))
        if field == 0:
            head[0] = self.pick(0x81, 0, 0x67, 0xff, 0x82)
        elif field == 1:
            head[1] = self.rng.randrange(256)
        elif field == 2:
            head[2] = self.rng.choice(SIZES + (head[2] + 1, max(0, head[2] - 1)))
        elif field == 3:
            head[3] = self.pick(0, 1, 4, 8, 20, 21, 255)
        elif field in (4, 5):
            head[field] = self.pick(1, 2, 128, 255)
        elif field == 6:
            n = self.rng.choice(SIZES + HUGE[:3] + (head[6] + 1, max(0, head[6] - 1))
                                if self.chance(0.8) else HUGE)
            head[6] = n
            if n < 1 << 21 and self.chance(0.6):
                body = body[:n].ljust(n, b"\x80")
        else:
            head[8] = self.pick(1, (1 << 64) - 1)
        if self.chance(0.3):
            body = body[:head[6]].ljust(min(head[6], 1 << 17), b"\x80")
        return binary.HEADER.pack(*head) + body

    def one(self):
        return self.odd() if self.chance(0.15) else self.usual()

    def make(self):
        requests = super().make()
        if self.rng.randrange(4):  # mutated, the first is often no binary request
            requests[:0] = [binary.request(binary.NOOP)]
        return requests
