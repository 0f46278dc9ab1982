"""Whether what came through the sidecar is what came from the real server.

What differs by nature (a cas number, a statistic) is masked. What differs by design is in ALLOWED,
each with its reason: only the stream's own client may be told something else, and the bystanders
beside it never.
"""

import re
from collections import Counter

import users
from grammar import TAG

# What no two servers answer alike, masked on both sides.
# A key and an opaque token may have a CR within, as in `ms k 1 O1\r c`: a line ends with LF.
MASKS = {
    "text": ((rb"(?m)^(VALUE [^ \n]+ \d+ \d+) \d+(?=\r$)", rb"\1 CAS"),
             (rb"(?m)^((?:HD|VA|NS|EX|NF) [^\n]*?)(?<= )c\d+", rb"\1c"),
             (rb"(?m)^((?:HD|VA) [^\n]*?)(?<= )t\d+", rb"\1t"),
             (rb"(?m)^((?:HD|VA) [^\n]*?)(?<= )l\d+", rb"\1l"),
             (rb"(?m)^ME ([^ \n]+) [^\n]*?(?=\r?$)", rb"ME \1"),
             (rb"(?:STAT [^\r\n]*\r\n)+", b"STAT\r\n")),
    "resp": ((rb"(?<=\$2\r\nid\r\n):\d+", b":N"),),
}
MASKS["meta"] = MASKS["text"]


def mask_packets(data):
    """Each packet without its cas; a run of STAT packets as one."""
    out = []
    while len(data) >= 24:
        n = 24 + int.from_bytes(data[8:12], "big")
        one = data[:16] + data[24:n]
        if data[1] == 0x10 and n > 24 and data[6:8] == b"\0\0":
            one = b"STAT"
        if not (one == b"STAT" and out and out[-1] == one):
            out.append(one)
        data = data[n:]
    return b"".join(out) + data


def mask(mode, data):
    if mode == "binary":
        return mask_packets(data)
    for pattern, by in MASKS[mode]:
        data = re.sub(pattern, by, data)
    return data


ALIKE = "alike"


def matched(pattern):
    found = re.compile(pattern, re.S)
    return lambda mode, direct, side: found.search(side.got)


def reordered(mode, direct, side):
    """Whether the same lines have come, only that one or some were earlier."""
    want, got = (sorted(mask(mode.protocol, bytes(one.got)).split(b"\n")) for one in (direct, side))
    return want == got


def reordered_but_last(mode, direct, side):
    """The same, and directly the last errors of them have not come."""
    want, got = (Counter(mask(mode.protocol, bytes(one.got)).split(b"\n")) for one in (direct, side))
    return want < got and set(got - want) == {b"ERROR\r"}


def same(mode, direct, side):
    return mask(mode.protocol, bytes(direct.got)) == mask(mode.protocol, bytes(side.got))


class Allowed:
    """request: what the stream's bytes have to match, or a function of them; found, end: what came
    through the sidecar has to, and how that ended, if they are given: ALIKE is as directly, and found
    may be a function of mode and both; direct: how the other has to have ended; why: the reason."""

    def __init__(self, name, modes, request, why, found=None, end=None, direct=None):
        self.name, self.modes, self.why, self.end, self.direct = name, modes, why, end, direct
        self.request = request if callable(request) else re.compile(request, re.S).search
        self.found = found if callable(found) or not found else matched(found)

    def fits(self, mode, requests, direct, side):
        return (mode.protocol in self.modes or mode.name in self.modes) and bool(self.request(b"".join(requests))) and \
            (self.end is None or side.end == (direct.end if self.end == ALIKE else self.end)) and \
            self.direct in (None, direct.end) and \
            (self.found is None or bool(self.found(mode, direct, side)))


KEYED = re.compile(rb"(?:(gets?|gats? +[^ ]*)|set|add|replace|append|prepend|cas|incr|decr|touch|delete|"
                   rb"m[gsdae]) +(.*)", re.I)


def unmarked(data):
    """Whether a line has a key without a whole tag, which other streams may have, too: what it holds is
    chance. A line ends with LF, and begins anywhere, where a block is longer or shorter than was said."""
    for found in filter(None, map(KEYED.search, re.split(rb"[\r\n]", data) + data.split(b"\n"))):
        keys = [key.split(b"\0")[0] for key in found.group(2).split()]  # as C strings
        if not all(map(TAG.search, keys if found.group(1) else keys[:1])):
            return True
    return False


COUNT = re.compile(rb"([*$])(0|[1-9][0-9]{0,8}|-[1-9][0-9]{0,17})\r.", re.S)  # Redis looks at no LF
WORD = re.compile(rb'"([^"]*)"|\'([^\']*)\'|([^\s"\'][^ \t\r\n"\']*)')


def words_of(data):
    """The requests that a stream's bytes are, each a list of words, as far as Redis reads them."""
    return (words for words, _ in requests_of(data))


def requests_of(data):
    """The same, and of each whether it is a line, without a count."""
    at = 0
    while at < len(data):
        if data[at:at + 1] != b"*":
            end = data.find(b"\n", at) + 1 or len(data)
            yield [b"".join(groups) for groups in WORD.findall(data[at:end])], True
            at = end
            continue
        head, words = COUNT.match(data, at), []
        for _ in range(int(head.group(2)) if head else 0):
            head = COUNT.match(data, head.end() if not words else at)
            if not head or head.group(1) != b"$" or int(head.group(2)) < 0 or head.end() + int(head.group(2)) > len(data):
                return
            at = head.end() + int(head.group(2)) + 2  # whatever stands where the end of line should
            words.append(data[head.end():at - 2])
        if not head:
            return
        at = at if words else head.end()
        yield words, False


KEYLESS = re.compile(rb"(?i)(?:ping|echo|select|client|command|config|multi|exec|discard|unwatch|reset|quit|auth|"
                     rb"hello|wait|replconf|script|asking|read.*|latency|slowlog|lolwut|memory|cluster|[ps]*subscribe|"
                     rb"[ps]*unsubscribe|publish|p?sync)\Z")
KEYS = {b"MSET": slice(1, None, 2), b"MGET": slice(1, None), b"DEL": slice(1, None), b"EXISTS": slice(1, None),
        b"WATCH": slice(1, None), b"COPY": slice(1, 3), b"BLPOP": slice(1, -1), b"EVAL": slice(3, None),
        b"LMPOP": slice(2, -1), b"ZINTERCARD": slice(2, None), b"OBJECT": slice(2, 3), b"XREAD": slice(4, None)}


CUT = re.compile(rb"(?:[a-z](?:~[0-9a-f]{0,7})?)?\Z")  # what a wrong length leaves of a key with a tag


def nameless(data):
    """Whether a request for Redis has a key that is empty, or was cut within its tag: it is every stream's."""
    return any(words and not KEYLESS.match(words[0]) and any(map(CUT.match, words[KEYS.get(words[0].upper(), slice(1, 2))]))
               for words in words_of(data))


def cut_name(data):
    """Whether there is a line with a NUL in its name."""
    return any(line and words and b"\0" in words[0] for words, line in requests_of(data))


def cut_line(data):
    """Whether there is a line with a NUL."""
    return any(line and b"\0" in b"".join(words) for words, line in requests_of(data))


def from_all(data):
    """Whether there is an UNSUBSCRIBE that names no channel."""
    return any(len(words) == 1 and re.fullmatch(rb"(?i)[ps]?unsubscribe", words[0]) for words in words_of(data))


VALUE = re.compile(rb"VALUE (\S+) \d+ (\d+)[^\r\n]*\r\n|VA (\d+)[^\r\n]*\r\n")


def attributable(mode, data, got):
    """What came for a stream's bytes, but for the values of keys without a tag: others may have put in
    whatever they like. In binary all of it, or nothing where such a key may be among the packets'; so for
    Redis with a key that is empty, or cut."""
    if mode == "resp":
        return b"" if nameless(data) else got
    if data[:1] == b"\x80":
        return b"" if broken(data) or anybodys(data) else got
    out, at, loose = [], 0, unmarked(data)
    for found in iter(lambda: VALUE.search(got, at), None):
        key, end = found.group(1), found.end() + int(found.group(2) or found.group(3))
        theirs = not TAG.search(key) if key else loose
        out.append(got[at:found.start() if theirs else end])
        at = end
    return b"".join(out) + got[at:]


def packets(data):
    """The headers of the packets that a stream's bytes are, then what is left of them: b"" where the
    last is whole."""
    while len(data) >= 24 and data[0] == 0x80:
        n = 24 + int.from_bytes(data[8:12], "big")
        yield data[:24]
        data = data[n:] if n <= len(data) else b"?"
    yield data


def packets_of(data):
    """All of each packet, of a stream that is not broken."""
    while data:
        n = 24 + int.from_bytes(data[8:12], "big")
        yield data[:n]
        data = data[n:]


def tagged(packet):
    """Whether its key, if it has one, has a tag."""
    at, n = 24 + packet[4], int.from_bytes(packet[2:4], "big")
    return n == 0 or bool(TAG.search(packet[at:at + n]))


def anybodys(data):
    """Whether a packet has a key without a tag: what that holds is chance."""
    return data[:1] == b"\x80" and not all(map(tagged, packets_of(data)))


def unfit(data):
    """Whether a packet's lengths do not fit each other."""
    if data[:1] != b"\x80":
        return False
    *heads, left = packets(data)
    for h in heads:
        key, extras, body = int.from_bytes(h[2:4], "big"), h[4], int.from_bytes(h[8:12], "big")
        bare = h[1] == 0x10 or 0x1c <= h[1] <= 0x24  # memcached does not look for a value there
        if key + extras > body or key > 250 or (bare and key + extras != body):
            return True
    return left != b""


STORING = (1, 2, 3, 0xe, 0xf, 0x11, 0x12, 0x13, 0x19, 0x1a)  # opcodes


def negative(data):
    """Whether a value that is to be stored has a length below 0, for who reads it as an int."""
    return any(h[1] in STORING and
               int.from_bytes(h[8:12], "big") - int.from_bytes(h[2:4], "big") - h[4] >= 1 << 31
               for h in packets(data) if len(h) == 24)


KNOWN = (*range(0x1b), 0x1c, 0x1d, 0x1e, *range(0x20, 0x25))  # opcodes


def unknown(data):
    """Whether a packet with a body has an opcode that memcached does not know."""
    return any(h[1] not in KNOWN and any(h[8:12]) for h in packets(data) if len(h) == 24)


def broken(data):
    """Whether a packet ends elsewhere than the request in the stream, so that what is read as the
    next is none."""
    return data[:1] == b"\x80" and list(packets(data))[-1] != b""


LINES, ALL = ("text", "meta"), ("text", "meta", "binary", "resp")
ALLOWED = (
    # ---- users
    Allowed("no right", ("resp-users",), rb"", "directly ann is refused next to nothing", rb"-NOPERM |is not allowed to user"),
    Allowed("commands", ("resp-users",), rb"(?i)command", "counted here, for who may not everything", rb"(?m)^:\d+\r$", ALIKE),
    Allowed("what is unknown", ("resp-users",), rb"", "Redis says so before it asks for a login, and also of the commands "
            "that it has been made to forget", rb"-NOAUTH|-ERR wrong number of arguments for '(?i:%s)'" % b"|".join(map(str.encode, users.REDIS_GONE)), ALIKE),
    Allowed("much before a login", ("resp-users",), rb"\$ *\d{5}|\* *\d\d|.{1000}", "other limits than Redis's", direct="closed"),
    Allowed("4 KiB before a login", ("resp-users",), rb".{2000}", "closed, a limit", end="closed"),
    Allowed("refused to the mute", ("resp-users",), rb"(?i)reply.*(?:off|skip).*subscribe", "nobody hears of what ann may not", end=ALIKE),
    Allowed("a wait refused to the mute", ("resp-users",), rb"(?i)reply.*(?:off|skip).*blpop",
            "the same: ann may not wait for that key, and directly nothing else comes while she does", end="marker", direct="quiet"),
    Allowed("login within MULTI", ("resp-users",), rb"(?i)(?:multi|subscribe).*(?:auth|hello)", "refused, a limit",
            rb"-ERR a login (?:within a transaction|while subscribed) is not supported"),
    Allowed("login behind REPLCONF", ("resp-users",), rb"(?i)(?:replconf|monitor|sync).*(?:auth|hello|reset)", "refused, a limit",
            rb"-ERR a (?:login|RESET, which logs out,) is not supported behind MONITOR", "closed"),
    Allowed("EXEC with words", ("resp-users",), rb"(?i)exec", "refused here to ann, and does not end the transaction",
            rb"-ERR wrong number of arguments for 'exec' command"),
    Allowed("the same of the mute", ("resp-users",), rb"(?i)reply.*(?:replconf|monitor|sync).*(?:auth|hello|reset)",
            "closed, and not told why", end="closed"),
    Allowed("nul in a line", ("resp-users",), cut_line,
            "Redis waits for ever, as below: here it is refused for want of a login or of a right, or counted", direct="quiet"),
    # ---- all
    Allowed("ids", ALL, rb"id:|aW.*6", "an ID key is answered here, and goes with no other in most commands"),
    Allowed("sasl", ("binary",), rb"\x80[\x20-\x22]", "answered here: users are sidflake's"),
    Allowed("lengths", LINES + ("binary",), unfit,
            "refused as soon as the header is there; memcached 1.6.18 waits for the body first, and looks at "
            "no lengths of STAT, TOUCH and GAT", rb"(?:Unknown command|Invalid arguments)$", "closed"),
    Allowed("broken packets", LINES + ("binary",), broken,
            "a wrong first byte closes at once; memcached waits until it has a whole header", end="closed"),
    Allowed("negative length", LINES + ("binary",), negative,
            "closes the connection; memcached 1.6.18 takes what is behind it for requests, or skips as much "
            "as a connection before on the same descriptor had left", end="closed"),
    Allowed("unknown opcode", LINES + ("binary",), unknown,
            "memcached 1.6.18 skips key and extras twice, and reads on within what is behind; here it is "
            "answered, and so is that", rb"Unknown command"),
    # ---- memcached, lines
    Allowed("anybody's key", LINES, unmarked, "what a key holds that has no stream's tag is chance",
            end=ALIKE),
    Allowed("anybody's key", ("binary",), anybodys, "the same of packets", end=ALIKE),
    Allowed("long line", LINES + ("binary",), rb"[^\n]{2000}",
            "a line of more than 2,048 bytes closes the connection; in memcached that depends on how much of "
            "it has come at once", end="closed"),
    Allowed("long gat", LINES, rb"gats? [^\n]{2000}",
            "the same: here it goes there by itself", rb"END\r\n", "marker", "closed"),
    Allowed("long get in capitals", LINES, rb"(?!gets? )(?i:gets?) [^\n]{2000}",
            "the same: verbs are known here in either case, so that it goes there by itself, whole",
            rb"ERROR\r\n", "marker", "closed"),
    Allowed("quit", LINES, rb"(?i)quit", "verbs are known here in either case", end="closed"),
    Allowed("http", LINES, rb"(?:^|[ \n])HTTP/[^ \n]* *\r?(?:\n|$)", "a line that ends so closes the connection", end="closed"),
    Allowed("http, and a NUL", LINES, rb"(?:^|[ \n])HTTP/[^\n]*\0",
            "the same: to memcached it ends there, and here it is an error as a whole", rb"(?m)^ERROR\r$",
            "marker", "closed"),
    Allowed("refused gets", LINES, rb"(?i)g[ea]ts?[^\n]*[\0-\x09\x0b-\x1f\x7f]",
            "a get with a byte that no key and no number may have is refused here", rb"CLIENT_ERROR"),
    Allowed("forgotten replies", LINES, rb"(?i)g[ea]ts?[ \0-\xff]*[^\s]{251}|g[ea]ts?[^\n]*[^\s]{240}\Z",
            "memcached 1.6.18 forgets the replies before that to a get with a key that is too long, to which "
            "the stream's marker may belong",
            rb"CLIENT_ERROR bad command line format\r\n"),
    Allowed("arithmetic on line ends", LINES, rb"\d(?: noreply)?\r?\n[\r\n]{3,}(?:.*\n)?(?i:incr|decr|ma) ",
            "memcached 1.6.18 reads on behind a value of nothing but white space", end=ALIKE),
    # Behind a block of another size than was said a line begins anywhere.
    Allowed("overtaken", LINES, rb"m[gsdae] [^\n]* q[^\n]*\n(?:.*\n)?(?:[^\n]*\x80| *g[ea]ts? [^\n]{200})",
            "an error that is told here does not wait for the replies to quiet requests", reordered, ALIKE),
    Allowed("overtaken, and a value to come", LINES, rb"m[gsdae] [^\n]* q[^\n]*\n(?:.*\n)?[^\n]*\x80",
            "the same, and memcached says the last of several lines when it has the value that comes behind",
            reordered_but_last, ALIKE, "quiet"),
    # ---- Redis
    Allowed("empty key", ("resp",), nameless, "all streams share it, so that what it holds is chance; a DEL "
            "that names an ID, too, is refused here", end=ALIKE),
    Allowed("nul in a line", ("resp",), rb"\0",
            "Redis looks for a line's end with strchr, so that it waits for ever: here it is an error at "
            "once", rb"-ERR Protocol error: [^\r]*\r\n$"),
    Allowed("nul, and much behind it", ("resp",), rb"\0.{60000}|(?:\A|\n)(?=.{60000})[^\n]*\0",
            "the same, and Redis gives up when there are 64 KiB of what is no line to it: here what is behind "
            "may wait, or be a line"),
    Allowed("nul, and far in a request", ("resp",), rb".{65000}.*\0",
            "the same, and Redis has what came before: an error would be taken for a reply to it", end="closed"),
    Allowed("nul behind a quit", ("resp",), rb"(?im)^\s*quit[^\n]*\0",
            "the same: here the line is that request", rb"\+OK\r\n$", "closed", "quiet"),
    Allowed("nul in a line without a count", ("resp",), rb"(?:^|\n)[^*\n][^\n]*\0",
            "the same: here a PING or ECHO with one is answered", end="marker", direct="quiet"),
    Allowed("nul in a name in a line", ("resp",), cut_name,
            "the same: here it is known that no such command is, and what comes behind is read",
            rb"-ERR unknown command '", direct="quiet"),
    Allowed("nul in a line of the mute", ("resp",), rb"(?i)reply.*(?:off|skip).*\0", "the same, and nobody is told", direct="quiet"),
    Allowed("quit of the mute", ("resp",), rb"(?i)(?=.*(?:psync|sync|monitor|replconf)).*reply.*(?:off|skip).*quit",
            "Redis closes behind the reply that it keeps back only if it has another to write just then, "
            "which depends on how the requests come", same, "quiet", "closed"),
    Allowed("nul in a name behind REPLCONF", ("resp",), rb"(?i)(?:replconf|monitor|sync).*(?:\0|\\x00)",
            "nobody knows what command it is, and an error from here ends the connection there",
            rb"-ERR a command with a NUL in its name is not supported behind MONITOR", "closed"),
    Allowed("commands", ("resp",), rb"(?i)command", "told in a random order", rb"\*\d+\r\n\*10\r\n"),
    Allowed("unsubscribed from all", ("resp",), from_all,
            "the channels are told in a random order", rb"unsubscribe\r\n.*unsubscribe\r\n", ALIKE),
    Allowed("long ping", ("resp",), rb"[^~]{60000}", "what is answered here may have 66 KiB",
            rb"request is too long: expected at most"),
    Allowed("http", ("resp",), rb"(?i)(?:post|host:)[^\n]*\0",
            "what a web page may have sent closes the connection, in spite of a NUL", end="closed"),
    Allowed("http behind a nul", ("resp",), rb"(?i)\0.*\n\s*(?:post|host:)",
            "the same: a name with a NUL is an error, and what comes behind is read",
            rb"-ERR unknown command '", "closed", "quiet"),
    Allowed("statistics", ("resp",), rb"(?i)info", "no two servers have the same", rb"# Server\r\n"),
    Allowed("long line", ("resp",), rb"[^\n]{60000}|[^\r]{60000}",
            "Redis takes a line of more than 64 KiB if all of it has come at once",
            rb"-ERR Protocol error: too big [^\r]*\r\n$"),
    Allowed("long line at once", ("resp",), rb"[^\n]{60000}", "the same, where it comes there at once", rb"-ERR unknown command",
            direct="closed"),
    Allowed("error to the mute", ("resp",), rb"(?i)reply.*(?:off|skip)",
            "Redis says nothing to who wants no replies, even where it cannot go on; here the error is "
            "told, and the connection closed", rb"-ERR Protocol error: [^\r]*\r\n$"),
    Allowed("error to the mute, far in a request", ("resp",), rb"(?i)reply.*(?:off|skip).*\*[0-9]+\r.{65000}",
            "the same, and a part of it is there by then, so that it is not told", same, "closed", "quiet"),
    Allowed("error behind REPLCONF", ("resp",), rb"(?i)replconf|monitor|sync",
            "what comes from the server is passed on uninterpreted then, so that an error here does not wait",
            rb"-ERR Protocol error: [^\r]*\r\n$", end="closed"),
    Allowed("http behind REPLCONF", ("resp",), rb"(?i)(?:replconf|monitor|sync).*\n\s*(?:post|host:)",
            "the same, also behind white space: Redis closes once it comes to that line", end="closed", direct="quiet"),
    Allowed("http of the mute", ("resp",), rb"(?i)reply.*off.*\n(?:b[lrz]\w+|xread|wait)\b.*\n\s*(?:post|host:)",
            "likewise: of who wants no replies nothing tells here that a request before it still waits",
            end="closed", direct="quiet"),
    Allowed("quit of the mute", ("resp",), rb"(?i)reply.*(?:off|skip).*quit",
            "Redis 7.0 closes behind a reply that has been written, so not where there is none", end="closed"),
    Allowed("subscribing within MULTI", ("resp",), rb"(?i)multi.*subscribe",
            "refused, a limit", rb"-ERR subscribing within a transaction"),
    Allowed("CLIENT REPLY within MULTI", ("resp",), rb"(?i)multi.*reply",
            "refused, a limit", rb"-ERR CLIENT REPLY within a transaction"),
    Allowed("HELLO within MULTI", ("resp",), rb"(?i)multi.*hello",
            "refused, a limit", rb"-ERR HELLO within a transaction"),
)


def allowed(mode, requests, direct, side):
    return next((a.name for a in ALLOWED if a.fits(mode, requests, direct, side)), None)


def prefix(a, b):
    n = min(len(a), len(b))
    return a[:n] == b[:n]


def shown(data, other):
    """Where they begin to differ."""
    at = next((i for i, (a, b) in enumerate(zip(data, other)) if a != b), min(len(data), len(other)))
    start = max(0, at - 80)
    return "%s%r (%d bytes)" % ("... " if start else "", data[start:at + 120], len(data))


def difference(mode, direct, side):
    """What is wrong with the side's end and bytes, beside the real server's; or None.

    Each has .end: "marker" (all was answered), "closed" or "quiet" (nothing comes), and .got. Where
    the marker was not reached, a server may have kept back or lost a part of what it had to say."""
    if direct.end != side.end:
        return "directly the end is `%s`: %s\n  through the sidecar `%s`: %s" % (
            direct.end, shown(direct.got, side.got), side.end, shown(side.got, direct.got))
    want, got = mask(mode, bytes(direct.got)), mask(mode, bytes(side.got))
    if want == got or (direct.end != "marker" and prefix(want, got)):
        return None
    return "expected %s\n  found    %s" % (shown(want, got), shown(got, want))
