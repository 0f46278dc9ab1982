"""Clients that log in: how, whom there is, and streams of theirs.

ann may have keys with a tag, and the streams' markers; she asks for the bystanders', too, which are
bob's. dan may have everything, so that all he does has to be as directly, and asks for nobody's.
Some have not logged in, or do so later. Nobody but the bystanders knows bob's password.
"""

import base64

import binary
from wire import Resp

HASH = "$5$rounds=1000$saltsalt$"
FILE = "\n".join((  # the password of each is NAME-pw
    "ann:" + HASH + "NDJ3R6CIg5i0jmRY/oekV9SnufafUAcuCVBmBgVGdn6:names=x:upstream=all:keys=?~*,mark*",
    "bob:" + HASH + "rIVjwAHfu4No6IC9WDBkUW8T81Rb8gvqrAk.ejRgv6B:names=orders:upstream=all:keys=by-*",
    "dan:" + HASH + "jUSA2BFPPhYhsMEuvJ2CX2cIklIBZOZIhz.B.oHPls6:upstream=all", ""))
REDIS_ARGS = ("--requirepass", "nobodys-pw", "--user", "dan", "on", ">dan-pw", "~*", "&*", "+@all",
              "--user", "ann", "on", ">ann-pw", "~*", "&*", "+@all",
              "-config|set", "-client|kill", "-client|pause")  # there she is let in everywhere else
AUTHFILE = "ann:ann-pw\ndan:dan-pw\n"  # of memcached -Y

# Commands that change the server for all are unknown there: none of the streams may have another's
# keys go away.
REDIS_GONE = ("FLUSHALL", "FLUSHDB", "SWAPDB", "SHUTDOWN", "DEBUG", "REPLICAOF", "SLAVEOF", "FAILOVER",
              "MIGRATE", "SAVE", "BGSAVE", "BGREWRITEAOF", "MODULE", "ACL", "MONITOR", "SYNC", "PSYNC", "RANDOMKEY")


def password(name):
    return name + b"-pw"


def text(name, word, key=b"login"):
    return b"set %s 0 0 %d\r\n%s %s\r\n" % (key, len(name) + 1 + len(word), name, word), b"STORED\r\n"


def packet(name, word, _=None):
    return binary.request(binary.SASL_AUTH, b"PLAIN", b"\0%s\0%s" % (name, word)), binary.HEADER.pack(
        0x81, binary.SASL_AUTH, 0, 0, 0, 0, 13, 0, 0) + b"Authenticated"


def resp(name, word, _=None):
    return Resp.encode("AUTH", name, word), b"+OK\r\n"


LOGIN = {"text": text, "meta": text, "binary": packet, "resp": resp}


def text_others(key):
    """What is none of ann's business, in requests that are usual."""
    hidden = base64.b64encode(key)
    return [b"lru_crawler metadump all", b"lru_crawler mgdump hash", b"stats cachedump 1 100", b"watch fetchers mutations",
            b"stats items", b"stats conns", b"get k~%s" % key, b"mg %s v b" % hidden, b"mg %s v k" % key, b"mg %s b v" % hidden,
            b"md %s b" % hidden, b"ma %s.n" % key, b"ms %s 1 b\r\nx" % hidden, b"me %s" % key, b"me %s b" % hidden,
            b"delete " + key, b"gat 0 " + key, b"touch %s 1" % key, b"incr %s.n 1" % key, b"get mark0 " + key,
            b"append %s 0 0 1\r\nx" % key, b"set %s 0 0 1 noreply\r\nx" % key, b"flush_all"]


def resp_others(key, own):
    return [(b"SORT", own, b"BY", b"nosort", b"GET", key), (b"SORT", own, b"BY", key + b"*", b"STORE", key),
            (b"COPY", key, own), (b"COPY", own, key, b"REPLACE"), (b"RENAME", key, own), (b"BITOP", b"NOT", own, key),
            (b"LCS", key, key), (b"LCS", own, key, b"LEN"), (b"DUMP", key), (b"OBJECT", b"ENCODING", key),
            (b"MEMORY", b"USAGE", key), (b"KEYS", b"*"), (b"SCAN", b"0", b"COUNT", b"9999"), (b"GETDEL", key),
            (b"EVAL", b"return redis.call('get','%s')" % key, b"0"), (b"EVAL", b"return redis.call('get','%s')" % key, b"1", own),
            (b"EVAL", b"return redis.call('get',KEYS[2])", b"2", own, key), (b"EVAL_RO", b"return 1", b"1", key),
            (b"SUBSCRIBE", b"__keyspace@0__:" + key), (b"PSUBSCRIBE", b"*"), (b"PUBSUB", b"CHANNELS"),
            (b"CLIENT", b"LIST"), (b"CLIENT", b"KILL", b"TYPE", b"normal"), (b"CLIENT", b"PAUSE", b"5000"),
            (b"CONFIG", b"SET", b"maxmemory", b"1"), (b"CONFIG", b"GET", b"*"), (b"SLOWLOG", b"GET"),
            (b"MSETNX", own, b"v", key, b"v"), (b"MSET", own, b"v", key, b"v"), (b"DEL", own, key), (b"UNLINK", key),
            (b"EXPIRE", key, b"0"), (b"SINTERSTORE", key, own), (b"ZUNIONSTORE", own, b"1", key), (b"LMOVE", key, own, b"LEFT", b"LEFT"),
            (b"GEORADIUS", own, b"0", b"0", b"1", b"m", b"STORE", key), (b"XREAD", b"STREAMS", own, key, b"0", b"0"),
            (b"PFMERGE", own, key), (b"WATCH", key), (b"SCRIPT", b"FLUSH"), (b"FUNCTION", b"FLUSH"), (b"SMOVE", own, key, b"v"),
            (b"GETEX", key, b"PX", b"1"), (b"MIGRATE", b"127.0.0.1", b"1", key, b"0", b"10"), (b"SELECT", b"0"),
            (b"XGROUP", b"CREATE", key, b"g", b"$", b"MKSTREAM"), (b"SUBSTR", key, b"0", b"-1"), (b"RESTORE", key, b"0", b"x")]


def opening(protocol, user, directly):
    """The login of a user, and what is answered. memcached's SASL wants a library set up: the server
    that is asked directly does without."""
    if directly and protocol == "binary":
        return binary.request(binary.NOOP), binary.HEADER.pack(0x81, binary.NOOP, 0, 0, 0, 0, 0, 0, 0)
    return LOGIN[protocol](user, password(user))


def compared(protocol, user):
    """Whether who has logged in so is to be answered as directly. Of a memcached request whose keys
    count nothing goes there that has to be guessed at, be it a mere spelling of a number; and before
    a login memcached 1.6.18 forgets replies to what is pipelined."""
    return user == b"dan" or protocol == "resp"


def maker_of(protocol, maker, keys):
    """A maker of such streams, like this one's. keys: the bystanders'."""
    login = LOGIN[protocol]

    class Users(maker):
        def own(self, kind=b"k"):
            key = super().own(kind)
            return self.pick(*keys) if self.user != b"dan" and self.chance(0.04) else key

        def one(self):
            if self.chance(0.03):
                return self.login()
            return self.others() if self.user != b"dan" and self.chance(0.08) else super().one()

        def login(self):
            name = self.pick(self.user or b"ann", b"bob", b"nobody")
            word = password(name) if name == self.user or self.chance(0.3) and name != b"bob" else b"no-pw"
            if protocol == "resp" and self.chance(0.4):
                return Resp.encode("HELLO", self.pick(b"2", b"3"), "AUTH", name, word)
            return login(name, word, super().own())[0]

        def others(self):
            """Of bob's keys, or of all."""
            key = self.pick(*keys)
            if protocol == "resp":
                return self.encode(self.pick(*resp_others(key, super().own(self.pick(b"s", b"l", b"z")))))
            if protocol == "binary":
                return binary.request(self.pick(*range(0x26)), key, self.pick(b"", b"x"),
                                      bytes(self.pick(0, 0, 4, 8, 20)))
            return self.pick(*text_others(key)) + b"\r\n"

        def make(self):
            self.user = self.pick(None, b"ann", b"ann", b"ann", b"dan", b"dan")
            return super().make()

    return Users
