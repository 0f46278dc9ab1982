"""The loads: what hostile clients do for some seconds while good ones go on. Each names the item of
the list of what was once found, tests/README.md."""

import wire
from scene import PASSWORD, WRONG, Load

E = wire.Resp.encode
PROXY, ALONE, LOGIN = {}, {"there": ("memcached",)}, {"users": 1}
BESIDE = {"asked": ("memcached",)}  # the other server has time
NUL = b"noreply\0"
# Each is silent for memcached, and has a reply for whoever takes `noreply\0` for another word.
THEFT = b"".join(odd + b"\r\nget nokey nokey2\r\n" for odd in (
    b"touch k 0 " + NUL, b"set k 0 0 1 " + NUL + b"\r\nx", b"incr k 1 " + NUL, b"verbosity 1 " + NUL,
    b"delete k " + NUL, b"cas k 0 0 1 1 " + NUL + b"\r\nx"))
GAT = b"gat 0" + b"".join(b" %0240d" % i for i in range(130)) + b"\r\n"
EXEC = E("MULTI") + 1024 * E("GET", "id:x") + E("EXEC")
PAGE = b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"


def pipelined(name, what, again, item=4, connections=4, **more):
    return Load(name, item, "%d connections pipelining %s" % (connections, what), again=again,
                connections=connections, **more)


def memory(name, what, item=7, **more):
    """4,000 connections in the configuration of the manifest for Kubernetes."""
    return Load(name, item, "4,000 connections: " + what, connections=4000, kubernetes=True,
                there=(), reopen=False, **{"seconds": 10, **more})


def partial(command):
    """As much of a request as may have to be kept until it ends."""
    return b"*2\r\n$%d\r\n%s\r\n$65000\r\n" % (len(command), command.encode()) + 64_900 * b"x"


SEQUENCES = ["good --on-loss refuse", "strict --on-loss refuse --order strict", "slow --max-rate 1"]


def sequences(name, what, again, connections=2000, **more):
    """All that they ask for waits for the coordinator."""
    return Load(name, 4, "%d connections pipelining %s" % (connections, what), again=again,
                connections=connections, extra=("ids-sequence",),
                options={"sequences.define": SEQUENCES}, **more)


LOADS = [
    Load("nobody", 0, "nobody hostile", idle=True),
    Load("theft", 1, "4 connections: `noreply\\0`", to="memcached", again=THEFT,
         gone_ms=100, watch="guest-secret"),
    Load("gat", 2, "4 connections: `gat` of 31 KB", to="memcached", again=GAT),
    Load("stall", 3, "8 connections whose upstream never answers", connections=8,
         first=E("SELECT", "9") + E("GET", "a"), options={"upstream.timeout": "300ms"}, stall=True,
         gone_ms=600, extra=("own-redis",), seconds=6),
    pipelined("http-head", "`HEAD /`", b"HEAD / HTTP/1.1\r\nHost: localhost\r\n\r\n", to="http",
              connections=200),
    pipelined("http-page", "`GET /`", PAGE, to="http"),
    pipelined("http-metrics", "`GET /metrics`", PAGE.replace(b"/ ", b"/metrics "), to="http"),
    pipelined("command", "`COMMAND`", E("COMMAND"), **ALONE),
    pipelined("command-there", "`COMMAND`, to the upstream", E("COMMAND")),
    pipelined("wrong-auth", "wrong `AUTH`", WRONG, users=1, there=()),
    pipelined("keys", "`KEYS *`", E("KEYS", "*"), **ALONE),
    pipelined("info", "`INFO`", E("INFO"), **ALONE),
    pipelined("info-words", "`INFO` of 9,000 words", E("INFO", *(9000 * ["z"])), **ALONE),
    pipelined("ping", "`PING`", E("PING")),
    pipelined("exec", "`EXEC` of 1,024 `GET id:x`", EXEC, **ALONE),
    pipelined("ids", "`GET id:x`", E("GET", "id:x")),
    pipelined("batches", "`LPOP id:x 1024`", E("LPOP", "id:x", "1024")),
    pipelined("many-args", "`EXISTS` of 5,500 IDs", E("EXISTS", *(5500 * ["id:x"])), connections=200,
              **ALONE),
    Load("at-once", 4, "3,000 connections: `EXISTS` of 4 KB, all at once", connections=3000, every_ms=250,
         again=b"EXISTS" + 798 * b" id:x" + b"\r\n", seconds=4, **ALONE),
    pipelined("set-60k", "`SET` of 60 KB", E("SET", "large", 60_000 * "x"), connections=500, **BESIDE),
    pipelined("set-1m", "`SET` of 1 MB", E("SET", "large", 1_000_000 * "x"), connections=500, **BESIDE),
    pipelined("foreign", "`GET` of another key", E("GET", "a")),
    pipelined("foreign-unread", "`GET` of 20 KiB, unread", E("GET", "large"), connections=100, read=0,
              first=E("SET", "large", 20_000 * "x")),
    pipelined("foreign-memcached", "`get` of 100 other keys", b"get" + b"".join(
        b" nokey%02d" % i for i in range(100)) + b"\r\n", to="memcached"),
    pipelined("get-long", "`get` of 5,000 other keys", b"get" + b"".join(
        b" nokey%04d" % i for i in range(5000)) + b"\r\n", to="memcached"),
    pipelined("exists-many", "`EXISTS` of 400 other keys", E("EXISTS", *(
        "nokey%03d" % i for i in range(400))), connections=200),
    Load("come-and-go", 4, "64 connections: they come and go", connections=64, first=E("PING"), gone_ms=0),
    pipelined("logins", "wrong `AUTH`; first logins", WRONG, item=5, connections=40,
              users=500, there=(), extra=("login",)),
    Load("blpop-gone", 6, "290 connections: `BLPOP k 0` and `PING`, then gone", connections=290,
         first=E("BLPOP", "k", "0") + E("PING"), gone_ms=1000, reopen=False,
         options={"limits.connections": 300}, seconds=4),
    memory("memory-idle", "idle"),
    memory("memory-page", "slow readers of `/`", to="http", first=8 * PAGE, read=100, seconds=20),
    memory("memory-partial", "half a request of 64 KiB", first=partial("GET")),
    memory("memory-login", "the same, before a login", first=partial("AUTH"), users=1),
    memory("memory-multi", "full `MULTI`, half a request", first=E("MULTI") +
           900 * E("GET", "id:" + 40 * "x") + partial("GET")),
    memory("memory-unread", "`LPOP id:x 1024`, unread", again=E("LPOP", "id:x", "1024"), read=0),
    memory("memory-head", "half a request for HTTP", to="http",
           first=b"GET / HTTP/1.1\r\nX: " + 8000 * b"x"),
    memory("memory-names", "long `SETNAME`, `WATCH`, `SUBSCRIBE`", first=b"".join(
        E("CLIENT", "SETNAME", 60_000 * "n") if i == 0 else E("WATCH", "%04d" % i + 1000 * "w") if i < 20
        else E("SUBSCRIBE", "%04d" % i + 1000 * "c") for i in range(60))),
    Load("memory-behind", 7, "1,000 connections: the upstream's replies unread",
         connections=1000, kubernetes=True, there=("redis",), seconds=10, reopen=False, read=0,
         first=E("SELECT", "1") + E("SET", "big", 20_000 * "x") + 20 * E("GET", "big")),
    Load("slots", 8, "4,096 connections: idle, for data", connections=4096, seconds=6),
    Load("slots-http", 8, "4,096 connections: idle, for HTTP", to="http", connections=4096, seconds=6),
    Load("slots-head", 8, "4,096 connections: half a request for HTTP", to="http", connections=4096,
         first=b"GET /livez HTTP/1.1\r\nHost:", seconds=6),
]
UNMADE = ["seq:n%d" % i for i in range(2000)]
LOADS += [
    sequences("seq-strict", "`INCR` of a strict sequence", 1500 * E("INCR", "seq:strict")),
    sequences("seq-strict-mc", "`incr` of a strict sequence", 1500 * b"incr seq:strict 1\r\n",
              to="memcached"),
    sequences("seq-late", "`GET` of a sequence at its max rate", 1500 * E("GET", "seq:slow")),
    sequences("seq-unmade", "`EXISTS` of 2,000 sequences that nobody made", E("EXISTS", *UNMADE),
              connections=200),
]
# Their replies come from memcached alone, so that nothing but sidflake is to be taken.
assert PASSWORD and len({x.name for x in LOADS}) == len(LOADS)
