"""Whether what came through the sidecar is what came from the real server.

What differs by nature (a cas number, a statistic) is masked. What differs by design is in ALLOWED,
each with its reason: a stream that one of them fits is still sent, and the bystanders beside it are
still watched, but what its own client is told is not compared.
"""

import re

# What no two servers answer alike, masked on both sides.
MASKS = {
    "text": ((rb"(?m)^(VALUE \S+ \d+ \d+) \d+(?=\r$)", rb"\1 CAS"),
             (rb"(?m)^((?:HD|VA|NS|EX|NF) [^\r]*?)(?<= )c\d+", rb"\1c"),
             (rb"(?m)^((?:HD|VA) [^\r]*?)(?<= )t\d+", rb"\1t"),
             (rb"(?m)^((?:HD|VA) [^\r]*?)(?<= )l\d+", rb"\1l"),
             (rb"(?m)^ME (\S+) [^\r]*", rb"ME \1"),
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


class Allowed:
    """name; modes; request: what one of the stream's bytes have to match; why."""

    def __init__(self, name, modes, request, why):
        self.name, self.modes, self.why = name, modes, why
        self.request = re.compile(request, re.S)

    def fits(self, mode, requests):
        return mode in self.modes and bool(self.request.search(b"".join(requests)))


LINES = ("text", "meta")
ALLOWED = (
)


def allowed(mode, requests):
    return next((a.name for a in ALLOWED if a.fits(mode, requests)), None)


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
