"""Random requests of RESP2 and RESP3: usual ones, odd ones, broken ones."""

from grammar import Maker

COUNTS = (b"+2", b"02", b"-1", b"0", b"-0", b"2 ", b" 2", b"2\0", b"", b"x", b"2147483647", b"2147483648",
          b"4294967298", b"18446744073709551618", b"1048577", b"-2", b"1e1", b"2\t", b"0x2", b"-2147483649")
ENDS = (b"\n", b"\r", b"\r\r\n", b"\rx", b"\n\r", b"\r\0", b" \r\n", b"\0\r\n", b"x\r\n", b"\r\n\r\n")
INLINES = (b"get %s", b'get "%s"', b"get '%s'", b'set %s "a b"', b'set %s "\\x00\\n"', b"set %s \"a", b"get %s'",
           b'"get" %s', b"get %s\0", b"get\t%s", b"  get  %s  ", b"GET %s", b'get "%s"x', b"get %s \0x",
           b"set %s 'it\\'s'", b"get\v%s", b"exists %s %s", b"", b" ", b"\0", b"*", b"*0", b"*-1", b"$1",
           b"incr n%s", b"nosuch %s", b"get", b'set %s ""', b"get \x01%s", b"GET %s HTTP/1.1", b"POST /%s",
           b"Host: %s")
SCRIPTS = (b"return redis.call('set', KEYS[1], ARGV[1])", b"return {1, 'two', {3, 4}, false}",
           b"return redis.error_reply('MY error')", b"return #ARGV", b"error('bad')", b"return {err='X'}",
           b"return redis.status_reply('fine')", b"return false", b"redis.setresp(3); return {double=1.5}")


class Resp(Maker):
    def __init__(self, seed, tag):
        super().__init__(seed, tag)
        self.resp3 = self.chance(0.3)

    def key(self, kind=b"s"):
        own = self.own(kind)
        if self.chance(0.015):
            return b"id:x"
        if not self.chance(0.04):
            return own
        return self.pick(own + b"\0", own + b"\r\n", b"id:x", own.ljust(300, b"x"), b"\xff" + own,
                         own * 300)

    def value(self):
        return self.block() if self.chance(0.5) else self.pick(b"a", b"", b"0", b"17", b"-3", b"2.5", b"x y")

    def args(self):
        """The words of a command whose answer depends on nothing but this stream."""
        r, k, l, h, v = self.rng, self.key(), self.key(b"l"), self.key(b"h"), self.value()
        z, s, c, n = self.key(b"z"), self.key(b"S"), self.own(b"c"), self.number(0.15)
        return r.choice((
            (b"SET", k, v), (b"GET", k), (b"get", k), (b"SET", k, n), (b"INCR", k), (b"INCRBY", k, n),
            (b"APPEND", k, v), (b"STRLEN", k), (b"MGET", k, self.key(), h), (b"MSET", k, v, self.key(), v),
            (b"DEL", k, l), (b"EXISTS", k, k), (b"SETEX", k, n, v), (b"GETRANGE", k, n, b"-1"),
            (b"SET", k, v, b"NX"), (b"SET", k, v, b"GET"), (b"SET", k, v, b"EX", n), (b"SETRANGE", k, n, v),
            (b"LPUSH", l, v, v), (b"RPOP", l), (b"LRANGE", l, b"0", n), (b"LLEN", l), (b"LPOP", l, n),
            (b"HSET", h, v, v), (b"HGET", h, v), (b"HGETALL", h), (b"HINCRBY", h, b"n", n), (b"HDEL", h),
            (b"ZADD", z, n, v), (b"ZRANGE", z, b"0", b"-1", b"WITHSCORES"), (b"ZSCORE", z, v),
            (b"SADD", s, v), (b"SCARD", s), (b"SISMEMBER", s, v), (b"TYPE", k), (b"TTL", k),
            (b"LMPOP", n, l, self.key(b"l"), b"LEFT"), (b"ZINTERCARD", n, z, z), (b"SORT", l, b"ALPHA"),
            (b"EVAL", r.choice(SCRIPTS), n, k, v), (b"EVAL", r.choice(SCRIPTS), b"1", k, v),
            (b"BITFIELD", k, b"INCRBY", b"i5", b"0", n), (b"OBJECT", b"ENCODING", k), (b"COPY", k, self.key()),
            (b"XADD", self.key(b"x"), b"%d-1" % r.randrange(1, 99), b"f", v),
            (b"XREAD", b"COUNT", n, b"STREAMS", self.key(b"x"), b"0"), (b"XLEN", self.key(b"x")),
            (b"NOSUCH", k, v), (b"GET",), (b"GET", k, v), (b"SET", k), (b"ECHO", v), (b"PING",), (b"PING", v),
            (b"SELECT", n), (b"CLIENT", b"SETNAME", b"me"), (b"CLIENT", b"GETNAME"), (b"CLIENT", b"NOSUCH"),
            (b"CLIENT", b"REPLY", self.pick(b"ON", b"OFF", b"SKIP", b"skip", b"x", b"SKIP\0")),
            (b"CLIENT",), (b"CLIENT", b"NO-EVICT", b"on"), (b"COMMAND", b"COUNT"), (b"CONFIG", b"GET", b"maxmemory-policy"),
            (b"MULTI",), (b"MULTI", b"x"), (b"EXEC",), (b"EXEC",), (b"DISCARD",), (b"WATCH", k), (b"UNWATCH",),
            (b"SUBSCRIBE", c), (b"SUBSCRIBE", c, c), (b"PSUBSCRIBE", c + b"*"), (b"UNSUBSCRIBE", c),
            (b"UNSUBSCRIBE",), (b"PUNSUBSCRIBE",), (b"SSUBSCRIBE", c), (b"SUNSUBSCRIBE",), (b"SUBSCRIBE",),
            (b"PUBLISH", c, v), (b"RESET",), (b"QUIT",), (b"AUTH", b"x"), (b"AUTH", b"default", b"x"),
            (b"HELLO",), (b"HELLO", b"2"), (b"HELLO", b"3"), (b"HELLO", n), (b"HELLO", b"3", b"x"),
            (b"HELLO", b"3", b"SETNAME", b"a"), (b"BLPOP", l, b"0.01"), (b"BLPOP", l, n), (b"WAIT", b"0", b"0"),
            (b"REPLCONF", b"x", b"y"), (b"SCRIPT", b"EXISTS", v), (b"ASKING",), (b"READONLY",),
            (b"READWRITE",), (b"LATENCY", b"RESET"), (b"SLOWLOG", b"HELP"), (b"LOLWUT", b"VERSION", b"9"),
            (b"GETEX", k), (b"GETDEL", k), (b"DUMP", k), (b"RESTORE", k, b"0", v), (b"PFADD", k, v),
            (b"MEMORY", b"HELP"), (b"CLUSTER", b"INFO"), (b"MONITOR",), (b"SYNC",), (b"PSYNC", b"?", b"-1"), (b"NOSUCH", b"id:x"), (b"INCR", b"id:x"),
            (b"MIGRATE",), (b"FLUSHALL",), (b"id:x",)))

    def encode(self, words):
        broken = self.chance(0.12)
        at = self.rng.randrange(-1, len(words)) if broken else -2
        out = b"*" + (self.rng.choice(COUNTS + (b"%d" % (len(words) + 1), b"%d" % (len(words) - 1)))
                      if at == -1 and self.chance(0.7) else b"%d" % len(words))
        out += self.rng.choice(ENDS) if at == -1 and self.chance(0.4) else b"\r\n"
        for i, w in enumerate(words):
            mark, n, end, tail = b"$", b"%d" % len(w), b"\r\n", b"\r\n"
            if i == at:
                kind = self.rng.randrange(5)
                if kind == 0:
                    n = self.pick(b"+%d", b"0%d", b"%d ", b"-%d", b"%d\0", b" %d", b"%d\t") % len(w)
                elif kind == 1:
                    n = self.rng.choice(COUNTS + (b"%d" % (len(w) + 1), b"%d" % max(0, len(w) - 1),
                                                  b"%d" % (len(w) + (1 << 32)), b"536870913"))
                elif kind == 2:
                    end = self.rng.choice(ENDS)
                elif kind == 3:
                    tail = self.rng.choice(ENDS + (b"xx", b"", b"\n\n"))
                else:
                    mark = self.pick(b"*", b"+", b":", b"", b"%", b"\0", b"$$")
            out += mark + n + end + w + tail
        return out

    def inline(self):
        line = self.rng.choice(INLINES)
        return line.replace(b"%s", self.own(b"s")) + (
            b"\r\n" if not self.chance(0.2) else self.rng.choice((b"\n",) + ENDS))

    def one(self):
        if self.chance(0.06):
            return self.inline()
        if self.chance(0.003):
            return self.pick(b"get " + b"x" * 65530, b"*1\r\n$" + b"1" * 70000, b" " * 70000, b"*" + b"1" * 65537,
                             b"set %s '" % self.own() + b"a" * 65000) + self.eol()
        if self.chance(0.004):
            return self.long()
        return self.encode(self.args())

    def long(self):
        """More than the input of a connection, keys up to the end: with an ID or without."""
        words = [self.own() for _ in range(self.pick(4000, 5000, 6000) & ~1)]
        words[-2] = self.pick(b"id:x", words[-2], b"id:x" * 2)
        return self.encode(self.pick([b"MSET"] + words, [b"MGET"] + words[:-1], [b"EXISTS"] + words[:-1],
                                     [b"DEL"] + words[:-1], [b"EVAL", b"return 1", b"%d" % len(words)] + words,
                                     [b"EVAL", b"return redis.call('incr', KEYS[1]) --" + b"x" * 70000, b"1"] +
                                     words[-2:-1], [b"NOSUCH"] + words))

    def eol(self):
        return self.pick(b"\r\n", b"\n", b"")

    def make(self):
        head = [self.encode((b"HELLO", b"3"))] if self.resp3 else []
        return head + super().make()
