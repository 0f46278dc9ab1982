"""memcached's binary protocol from a client's side."""

import struct

import wire

HEADER = struct.Struct(">BBHBBHIIQ")

GET, SET, ADD, REPLACE, DELETE, INCR, DECR, QUIT, FLUSH, GETQ, NOOP, VERSION, GETK, GETKQ, APPEND, \
    PREPEND, STAT, SETQ, ADDQ, REPLACEQ, DELETEQ, INCRQ, DECRQ, QUITQ, FLUSHQ, APPENDQ, PREPENDQ = \
    range(0x1b)
TOUCH, GAT, GATQ = 0x1c, 0x1d, 0x1e
SASL_LIST, SASL_AUTH, SASL_STEP, GATK, GATKQ = range(0x20, 0x25)

OK, NOT_FOUND, INVALID, NOT_STORED, AUTH_ERROR, UNKNOWN, TEMPORARY = \
    0, 1, 4, 5, 0x20, 0x81, 0x86
NEVER = 0xffffffff  # expiration of a counter that is not to be created


def request(opcode, key=b"", value=b"", extras=b"", opaque=0, cas=0):
    return HEADER.pack(0x80, opcode, len(key), len(extras), 0, 0,
                       len(key) + len(extras) + len(value), opaque, cas) + extras + key + value


def delta(n, initial=0, expiration=NEVER):
    """The extras of an INCR or DECR."""
    return struct.pack(">QQI", n, initial, expiration)


class Reply:
    def __init__(self, head, body):
        (self.magic, self.opcode, keylen, extlen, self.datatype, self.status, _, self.opaque,
         self.cas) = head
        self.extras = body[:extlen]
        self.key = body[extlen:extlen + keylen]
        self.value = body[extlen + keylen:]

    def __repr__(self):
        return "opcode %#x status %#x opaque %d cas %d extras %r key %r value %r" % (
            self.opcode, self.status, self.opaque, self.cas, self.extras, self.key, self.value)


class Binary(wire.Stream):
    def reply(self):
        head = HEADER.unpack(self.take(HEADER.size))
        assert head[0] == 0x81, "expected a reply's first byte, found %#x" % head[0]
        return Reply(head, self.take(head[6]))

    def ask(self, opcode, *args, **kwargs):
        self.send(request(opcode, *args, **kwargs))
        return self.reply()

    def replies(self, opaque):
        """All up to that of the NOOP with this opaque."""
        out = [self.reply()]
        while out[-1].opcode != NOOP or out[-1].opaque != opaque:
            out.append(self.reply())
        return out[:-1]

    def id(self, key=b"id:orders"):
        r = self.ask(GET, key)
        assert r.status == OK and r.extras == b"\0\0\0\0" and r.cas == int(r.value), repr(r)
        return int(r.value)
