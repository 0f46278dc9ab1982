"""Random requests of memcached's text and meta protocols: usual ones, odd ones, broken ones."""

import base64

from grammar import Maker

NOREPLY = (b"noreply\0", b"noreply\0x", b"noreplyx", b"NOREPLY", b"noreply\t", b"norepl", b"\0noreply",
           b"noreply noreply", b"noreply x", b"x noreply", b"noreply\r", b"noreply\x7f", b"nOreply")
LENGTHS = (2040, 2046, 2047, 2048, 2049, 2050, 4096, 8192, 16384, 31000, 65535, 65536, 65537, 70000)
GETS = (b"get", b"get", b"get", b"gets", b"gat", b"gats", b"bget")
STORES = (b"set", b"set", b"set", b"add", b"replace", b"append", b"prepend", b"cas")
# No words here that change the server for all: cache_memlimit with a number, flush_all (memcached is
# started with -F, and refuses it), shutdown, and stats that tell of other connections' keys.
REST = (b"version", b"version x", b"stats", b"stats nosuch", b"stats settings", b"stats reset", b"mn",
        b"mn x", b"verbosity 0", b"verbosity", b"verbosity 0 noreply", b"verbosity noreply",
        b"verbosity 0 noreply\0", b"verbosity x noreply", b"flush_all", b"flush_all noreply",
        b"flush_all 0 noreply\0", b"flush_all -1 noreply", b"flush_all x", b"quit", b"QUIT", b"quit x",
        b"quit noreply", b"slabs", b"slabs reassign", b"lru", b"lru tune", b"lru_crawler",
        b"cache_memlimit", b"cache_memlimit x noreply", b"cache_memlimit x", b"misbehave", b"nosuch",
        b"nosuch noreply", b"", b" ", b"\0", b"\t", b"refresh_certs", b"extstore", b"touch", b"incr",
        b"slabs automove x", b"slabs automove", b"debugtime", b"get", b"gets", b"gat", b"gat 0", b"set",
        b"shutdown x", b"me", b"ms", b"mg", b"md", b"ma", b"m")

META_FLAGS = (b"v", b"f", b"c", b"k", b"s", b"t", b"q", b"q", b"b", b"h", b"l", b"I", b"x")
META_TOKENS = (b"O%s", b"T%s", b"N%s", b"R%s", b"C%s", b"D%s", b"J%s", b"F%s", b"E%s", b"S%s", b"L%s",
               b"P%s")
META_MODES = (b"MS", b"ME", b"MA", b"MP", b"MR", b"MI", b"MD", b"M+", b"M-", b"Mi", b"Md", b"MZ", b"M",
              b"MIX", b"Ms")
META_ODD = (b"E1234", b"Tx", b"T", b"MZ", b"F-1", b"F4294967296", b"Cx", b"C", b"C-1", b"O" + 31 * b"o",
            b"O" + 32 * b"o", b"O" + 33 * b"o", b"O", b"z", b"Z", b"v v", b"q q", b"k k", b"v\0", b"q\0",
            b"1", b"-", b"\xe4", b"NN", b"Sx", b"S0", b"S999", b"T-1", b"T1 T2", b"qq", b"Q", b"vq", b"\0q",
            b"q\t", b"noreply", b"k q v k", b"b b", b"!")


class Text(Maker):
    def key(self):
        r = self.rng
        if self.chance(0.02):
            return self.pick(b"id:x", b"id:x", b"id:x\0", b"id:x#1", base64.b64encode(b"id:x"))
        if not self.chance(0.1):
            return self.own()
        own = self.own()
        return r.choice((
            own.ljust(249, b"x"), own.ljust(250, b"x"), own.ljust(251, b"x"), own.ljust(252, b"x"),
            own + b"\0", own + b"\0x", own + b"\x7f", b"\x01" + own, own + b"\xff", own + b"\r",
            own + b"\tx", b"", b"noreply" + own, b"HTTP/1.1" + own, own.ljust(300, b"y"),
            own.ljust(2100, b"z"), b"\0" + own, b"id:" + own[1:], b"id:x"))

    def sep(self):
        return b" " if not self.chance(0.03) else self.pick(b"  ", b"\t", b" \0", b"\0", b"   ", b"\v")

    def eol(self):
        if not self.chance(0.08):
            return b"\r\n"
        return self.pick(b"\n", b"\n", b"\r\r\n", b"\0\r\n", b" \r\n", b"\t\r\n", b"\r", b"", b"\n\r\n",
                         b" \n", b"\rx\r\n", b"\0\n", b"  \r\n")

    def verb(self, verb):
        if not self.chance(0.06):
            return verb
        return self.pick(verb.upper(), verb.title(), verb + b"\0", verb + b"x", b" " + verb, verb[:-1],
                         verb + b"\t", b"\0" + verb, verb + b"\0x")

    def quiet(self):
        """[] or [noreply], or what is nearly that."""
        if self.chance(0.6):
            return []
        return [b"noreply"] if self.chance(0.5) else [self.rng.choice(NOREPLY)]

    def line(self, *words):
        words = list(words)
        if self.chance(0.02):
            words.insert(self.rng.randrange(1, len(words) + 1), self.pick(b"x", b"0", b"", b"noreply"))
        if self.chance(0.02) and len(words) > 1:
            del words[self.rng.randrange(1, len(words))]
        out = self.verb(words[0])
        for w in words[1:]:
            out += self.sep() + w
        return out + self.eol()

    def with_block(self, words, at, block):
        """words[at] is the number of bytes, which may not be that of the block."""
        n = len(block)
        if self.chance(0.08):
            wrong = self.pick(b"%d" % (n + 1), b"%d" % max(0, n - 1), b"+%d" % n, b"0%d" % n, b"-1",
                              b"%d" % (n + (1 << 32)), b"%d\0" % n, b"%d" % (n + (1 << 64)), b"0",
                              self.number(1), b"%d" % (n + 2), b"-%d" % n, b"2000000")
        else:
            wrong = b"%d" % n
        words[at] = wrong
        end = b"\r\n" if not self.chance(0.05) else self.pick(b"", b"\n", b"xx", b"\r", b"\r\r\n", b"\0\0",
                                                             b"\n\r", b"xx\r\n")
        return self.line(*words) + block + end

    def long_line(self):
        n, own = self.rng.choice(LENGTHS), self.own()
        kind = self.rng.randrange(7)
        if kind == 0:
            line = self.pick(b"get ", b"gets ", b"gat 0 ", b"gats 0 ", b"GET ") + own
            while len(line) < n:
                line += b" " + own
        elif kind == 1:
            line = self.pick(b"get ", b"gat 0 ", b"nosuch ", b"incr ", b"mg ") + own.ljust(n, b"x")
        elif kind == 2:
            line = b"get " + b" " * n + own
        elif kind == 3:
            line = b"incr %s 1" % own + b" " * n
        elif kind == 4:
            line = b" " * n + b"get " + own
        elif kind == 5:
            line = b"set " + own + b" 0 0 1" + b" " * n + self.pick(b"", b"noreply")
            return line[:n] + b"\r\nv\r\n"
        else:
            line = b"mg " + own + b" v O" + b"o" * n
        return line[:n] + self.eol()

    def store(self):
        verb = self.rng.choice(STORES)
        words = [verb, self.key(), self.number(), self.number(), b""]
        words += [self.number(0.3)] if verb == b"cas" else []
        return self.with_block(words + self.quiet(), 4, self.block())

    def retrieve(self):
        verb = self.rng.choice(GETS)
        n = self.pick(1, 1, 1, 2, 3, 8, 23, 24, 25, 100)
        words = [verb] + ([self.number()] if verb in (b"gat", b"gats") else [])
        return self.line(*words, *(self.key() if i < 3 else self.own() for i in range(n)))

    def number_of(self):
        key = self.own(b"n") if self.chance(0.8) else self.key()
        return self.line(self.pick(b"incr", b"decr", b"incr"), key, self.number(0.3), *self.quiet())

    def small(self):
        return self.pick(
            lambda: self.line(b"delete", self.key(), *self.pick([], [], [b"0"], [b"1"], [b"0", b"x"]),
                              *self.quiet()),
            lambda: self.line(b"touch", self.key(), self.number(0.25), *self.quiet()),
            lambda: b"set %s 0 0 2\r\n17\r\n" % self.own(b"n"),
            lambda: self.rng.choice(REST) + self.eol())()

    def one(self):
        if self.chance(0.015):
            return self.long_line()
        return self.pick(self.store, self.store, self.retrieve, self.retrieve, self.number_of,
                         self.small, self.small)()


class Meta(Text):
    def flags(self):
        out = []
        for _ in range(self.pick(0, 0, 1, 1, 2, 3, 5, 9)):
            kind = self.rng.randrange(10)
            if kind < 5:
                out.append(self.rng.choice(META_FLAGS))
            elif kind < 7:
                out.append(self.rng.choice(META_TOKENS) % self.number(0.2))
            elif kind == 7:
                out.append(self.rng.choice(META_MODES))
            elif kind == 8:
                out.append(b"O%d" % self.rng.randrange(99))
            elif self.chance(0.5):
                out.append(self.rng.choice(META_ODD))
        if self.chance(0.01):
            out += [self.pick(b"z", b"v", b"O1")] * self.pick(16, 17, 18, 19, 24, 30)
        return out

    def meta_key(self, flags):
        if b"b" not in flags or self.chance(0.1):
            return self.key()
        key = base64.b64encode(self.pick(self.own(), self.own(), b"id:x" if self.chance(0.1) else self.own(), b"\x01 " + self.own(), self.own().ljust(188, b"x")))
        return key if self.chance(0.8) else self.pick(key.rstrip(b"=") + b"!", key[:-1], b"=", b"====",
                                                      key + b"=", key + b"\0")

    def meta(self):
        flags = self.flags()
        key = self.meta_key(flags)
        verb = self.pick(b"mg", b"mg", b"ms", b"ms", b"ms", b"md", b"ma", b"me", b"mn")
        if verb == b"ms":
            return self.with_block([verb, key, b"", *flags], 2, self.block())
        if verb == b"mn":
            return self.line(verb, *flags)
        return self.line(verb, self.own(b"n") if verb == b"ma" and self.chance(0.6) else key, *flags)

    def one(self):
        return self.meta() if self.chance(0.75) else super().one()
