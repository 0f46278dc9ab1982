"""Pass-through: requests that a real server reads otherwise than we do are nobody else's trouble."""

import concurrent.futures
import random
import re
import socket
import time

import binary
import wire
from passthrough import MemcachedStream, Puppet, exchange
from runner import test
from test_passthrough import SEED, behind, same

# Each holds a request for memcached in which it, or we, see another one: as data, or behind an error.
MEMCACHED = [line + b"\r\nversion\r\n" for line in (
    b"set k 0 0 +7", b"set k +0 0 7", b"set k 0 +1 7", b"set k 0 0 4294967303", b"set k\x01 0 0 7",
    b"set k\x7f 0 0 7", b"set k 0 0 7\0", b"set k 0 0 7\rx", b"set k 0 0 7\r", b"SET k 0 0 7",
    b"set k 4294967296 0 7", b"set k 0 1099511627776 7", b"cas k 0 0 7 -1", b"set k 0 0 -1",
    b"set k 0 0 7 noreply x", b"ms k +7", b"ms k 7 Z", b"ms k 7 T1 T1", b"ms k 7 Tx", b"ms k 7 MZ",
    b"ms k 7 q Tx", b"ms !!! 7 b", b"ms k 7 F-1", b"ms k 7 Cx", b"ms k 7 O" + 40 * b"x")]
# To these memcached says nothing, or not what is expected: "noreply" ends at the NUL.
SILENT = [line + b" noreply\0\r\nget nokey nokey2\r\n" for line in (
    b"touch k 0", b"incr k 1", b"decr k 1", b"delete k", b"flush_all 1000000", b"verbosity 0",
    b"touch k\0", b"set k 0 0 x", b"set k 0 0 3 4 5")] + [
        b"set k 0 0 1 noreply\0\r\nx\r\nget nokey nokey2\r\n",
        b"cas k 0 0 1 1 noreply\0\r\nx\r\nget nokey nokey2\r\n",
        b"get nokey\0 nokey2\r\n", b"mg k q\0 v\r\nget nokey\r\n", b"md k q\0\r\nget nokey\r\n"]
# To these it closes.
CLOSED = [b"gat 0" + 100 * (b" " + 200 * b"k") + b"\r\n", b"gat 0" + 31000 * b" " + b"k\r\n",
          b"gats 0" + 3000 * b" k" + b"\r\n", 101 * b" " + b"get" + 30000 * b" k" + b"\r\n"]
# Answered as memcached does, whose blocks they are included.
SAME = [b"\x80 a\r\n"] + [b"ms k 2" + flag + b"\r\nab\r\ndelete nosuch noreply\r\n" for flag in (
    b" E1234", b" Tx", b" MZ", b" F-1", b" k k", b" T", b"", b" q", b" q q", b" q Tx", b" O1 q k c",
    b" I C1", b" Z", b" MA", b" b", 20 * b" c", b" O" + 40 * b"x")] + [
        line + b"\r\nversion\r\n" for line in (
            b"ms k 7 S7", b"ms k +7", b"ms k 07", b"ms k -1", b"ms k x", b"ms k", b"ms",
            b"ms k 4294967303", b"ms " + 251 * b"k" + b" 7",
            b"set k 0 0 +7", b"set k 0 0 07", b"set k 0 0 4294967303", b"set k 0 0 -4294967289",
            b"set k 0 0 7 noreply", b"set k 0 0 \t7", b"set k 0 0 7\t", b"set k 0 0 7x",
            b"set k 0 0 7 x", b"set k 0 0 7 x y", b"set k x 0 7", b"set k 0 x 7", b"set k -1 0 7",
            b"set k 4294967296 0 7", b"set k 0 1099511627776 7", b"set k 0 0 99999999999999999999",
            b"set k\x01 0 0 7", b"set k\xc3\xa4 0 0 7", b"set " + 251 * b"k" + b" 0 0 7",
            b"set " + 251 * b"k" + b" 0 0 7 noreply", b"SET k 0 0 7", b"Set k 0 0 7 noreply",
            b"set k 0 0 7\0", b"set k 0 0 7\0 noreply", b"set k 0 0 7 noreply\0", b"  set  k 0 0  7 ",
            b"cas k 0 0 7 -1", b"cas k 0 0 7 1 noreply", b"cas k 0 0 7", b"cas k 0 0 7 x",
            b"cas k 0 0 7 x noreply", b"append k 0 0 +7", b"prepend k 0 0 7 noreply")] + [
        line + b"\r\n" for line in (
            b"get k\0l m", b"delete k 0", b"delete k 0 noreply", b"delete k 1", b"touch k -1",
            b"touch k x noreply", b"incr k x", b"incr k x noreply", b"incr k -1", b"incr noreply",
            b"verbosity noreply", b"verbosity", b"flush_all -1", b"flush_all noreply", b"flush_all x",
            b"mg", b"mg k q", b"mg k v q", b"mg nosuch q", b"mg nosuch k q O9", b"mg k s t q", b"mg q q",
            b"md k q", b"md nosuch q", b"md nosuch", b"md k q O1 k", b"md k q C9", b"ma n q", b"ma n v q",
            b"ma nosuch q", b"ma nosuch N0 q", b"ma nosuch2 N0 v q", b"ma k q", b"mg k q q", b"mg k Z q",
            b"mg !!! b q", b"mn", b"mn q", b"MN", b"me nosuch", b"", b"\r", b" ", b"x", b"version x",
            b"lru tune", b"slabs reassign", b"cache_memlimit", b"gat -1 k", b"gat x k", b"gats", b"nosuch",
            b"get  k   id:orders  n ", b" get k id:orders k", b"gat  0  n   id:orders", b"get id:orders k\xe4 n",
            b"gat -1 nosuch id:orders  k", b"get id:orders k id:orders nosuch id:orders")]
REDIS = [b"GET a\0b\r\n", b"SET a \"\0\"\r\n", b"GET a\rb\r\n", wire.Resp.encode("REPLCONF", "ACK", "0"),
         wire.Resp.encode("UNSUBSCRIBE", "a", "b"), wire.Resp.encode("CLIENT", "REPLY", "OFF")]


def says(sock, request, reply):
    """What comes instead of the reply, or nothing."""
    sock.settimeout(2)  # less than upstream.timeout
    sock.sendall(request)
    got = sock.recv(len(reply))
    while got and len(got) < len(reply) and reply.startswith(got):
        got += sock.recv(len(reply) - len(got))
    return b"" if got == reply else got or b"nothing"


def beside(port, odd, request, reply):
    """The same client gets the same reply, whoever else sends what is odd."""
    with socket.create_connection(("127.0.0.1", port), timeout=10) as s:
        for data in odd:
            with socket.create_connection(("127.0.0.1", port), timeout=10) as other:
                other.sendall(data)
                for _ in range(3):
                    got = says(s, request, reply)
                    assert not got, "beside %r: expected %r, found %r" % (data[:80], reply, got)


@test("what memcached takes for another request than we do disturbs no other client")
def odd_memcached(case):
    memcached = case.memcached()
    s = behind(case, memcached=memcached)
    with socket.create_connection(("127.0.0.1", s.mc_port), timeout=10) as c:
        c.sendall(b"set mine 0 0 6\r\nsecret\r\n")
        assert c.recv(64) == b"STORED\r\n"
    beside(s.mc_port, MEMCACHED, b"get mine\r\n", b"VALUE mine 0 6\r\nsecret\r\nEND\r\n")


@test("nobody gets another's value by a request to which memcached gives no reply, or closes")
def silent_memcached(case):
    memcached = case.memcached()
    s = behind(case, memcached=memcached)
    address = ("127.0.0.1", s.mc_port)
    value = b"VALUE victim 0 6\r\nSECRET\r\nEND\r\n"
    with socket.create_connection(address, timeout=10) as victim, \
            socket.create_connection(address, timeout=10) as third:
        assert not says(victim, b"set victim 0 0 6\r\nSECRET\r\n", b"STORED\r\n")
        for data in SILENT + CLOSED:
            with socket.create_connection(address, timeout=10) as thief:
                thief.sendall(data)
                for _ in range(3):
                    got = says(victim, b"get victim\r\n", value) or \
                        says(third, b"set third 0 0 1\r\nx\r\n", b"STORED\r\n")
                    assert not got, "beside %r: found %r" % (data[:80], got)
                thief.settimeout(0.2)
                try:
                    got = thief.recv(1 << 16)
                except (TimeoutError, ConnectionError):
                    got = b""
                assert b"victim" not in got and b"SECRET" not in got and b"STORED" not in got, \
                    "to %r: found %r" % (data[:80], got)
    s.assert_running()


@test("a client's odd requests are answered as by memcached, and what it asks for behind them, too")
def same_memcached(case):
    direct, other = case.memcached(), case.memcached()
    s = behind(case, memcached=other)
    for data in SAME:
        whole = b"set k 0 0 2\r\n10\r\nset n 0 0 1\r\n5\r\n" + data + \
            b"get k\r\nmg n v\r\nget n id:orders\r\ntouch n 0\r\n" \
            b"set end 0 0 3\r\nend\r\nget end\r\n"
        want, got = (exchange(("127.0.0.1", port), whole, b"VALUE end 0 3\r\nend\r\nEND\r\n", timeout=8)
                     for port in (direct.port, s.mc_port))
        got, ids = re.subn(rb"VALUE id:orders 0 \d+\r\n\d+\r\n", b"", got)
        assert ids == 1 + data.count(b"id:"), "%r: expected an ID, found %r" % (data[:80], got)
        assert got == want, "%r: expected %r, found %r" % (data[:80], want, got)
    s.assert_running()


END = b"END\r\n"
MARK = b"VALUE end 0 3\r\nend\r\nEND\r\n"


def hide(got):
    """Without the tokens of cas, which count all that is stored, by anybody."""
    return b"\n".join(b" ".join(line.split(b" ")[:4]) if line.startswith(b"VALUE ") else line
                      for line in got.split(b"\n"))


@test("a connection that has asked for thousands of keys is as any other then")
def after_many_keys(case):
    s = behind(case, memcached=case.memcached(), options={"limits.request_timeout": "500ms"})
    keys = b"get " + b" ".join(b"key-%015d" % i for i in range(5000)) + b"\r\n"
    with s.mc() as m:
        m.send(b"set a 0 0 1\r\n1\r\n" + keys + b"get a\r\n")
        assert [m.line() for _ in range(5)] == [b"STORED", b"END", b"VALUE a 0 1", b"1", b"END"]
        time.sleep(2)
        assert m.ask("get a") == "VALUE a 0 1"
    with s.mc() as m:
        m.send(keys + b"get a\r\n")
        m.sock.shutdown(socket.SHUT_WR)
        assert [m.line() for _ in range(4)] == [b"END", b"VALUE a 0 1", b"1", b"END"]
        assert m.rest() == b""


@test("a get of thousands of keys: as from memcached; with an ID among them, or none, an error")
def many_keys(case):
    direct, other = case.memcached(), case.memcached()
    s = behind(case, memcached=other)
    end = b"set end 0 0 3\r\nend\r\nget end\r\n"
    keys = [b"%05d-%s" % (i, b"k" * (i % 200)) for i in range(5000)]
    some = b"".join(b"set %s 0 0 %d\r\n%s\r\n" % (k, len(k), k) for k in keys[::7])
    for port in direct.port, s.mc_port:
        assert exchange(("127.0.0.1", port), some + end, MARK).endswith(MARK)
    rng = random.Random(SEED)
    for verb in b"get ", b"gets ", b"get  ":
        data = verb + b" ".join(keys) + b"\r\n" + end
        want = exchange(("127.0.0.1", direct.port), data, MARK)
        for cut in None, rng, rng:
            same(hide(want), hide(exchange(("127.0.0.1", s.mc_port), data, MARK, cut)), "many keys")
    for at in 0, 1, 2500, 4999:
        for bad, why in (b"id:orders", b"CLIENT_ERROR ids "), (b"k" * 251, b"CLIENT_ERROR bad "), \
                (b"a\0b", b"CLIENT_ERROR bad "), (b"k" * 100000, b"CLIENT_ERROR bad "):
            data = b"get k\r\nget " + b" ".join(keys[:at] + [bad] + keys[at:]) + \
                b"\r\nget id:orders\r\n" + end
            got = exchange(("127.0.0.1", s.mc_port), data, MARK, rng)
            assert got.startswith(b"END\r\n" + why), "found %r" % got[:200]
            assert got.count(b"\r\n") == 9 and got.count(b"VALUE id:orders ") == 1, \
                "found %r" % got[:200]
    try:
        got = exchange(("127.0.0.1", s.mc_port), b"get " + b" ".join(keys * 3) + b"\r\n", MARK)
    except ConnectionResetError:
        got = b""
    assert got == b"", "a line of 1.6 MB: expected the end, found %r" % got[:200]
    other.stop()
    got = exchange(("127.0.0.1", s.mc_port), b"get " + b" ".join(keys) + b"\r\nget id:orders\r\n",
                   b"END\r\n")
    assert got.startswith(b"SERVER_ERROR upstream unavailable\r\nVALUE id:orders"), "found %r" % got[:99]
    s.assert_running()


@test("what goes on which link, and how: written anew on the shared one, as it came on one's own")
def which_link(case):
    with Puppet() as puppet:
        s = behind(case, memcached=puppet)
        shared = own = None
        with s.mc() as c, s.mc() as other:
            c.send(b"get  a  b \nset k 0 0 2 noreply\r\nab\r\ndelete  k noreply\ntouch k 5\r\n")
            shared = puppet.accept()
            want = b"get a b\r\nset k 0 0 2\r\nab\r\ndelete k\r\ntouch k 5\r\n"
            got = puppet.hear(shared)
            assert got == want, "expected %r on the shared link, found %r" % (want, got)
            shared.sendall(END + b"SERVER_ERROR out of memory storing object\r\nDELETED\r\nTOUCHED\r\n")
            assert c.take(len(END)) == END
            got = c.line()  # noreply hides errors, too
            assert got == b"TOUCHED", "found %r" % got
            # behind what is not canonical, all of this client goes on its own link, as it came
            c.send(b"mg  a v q\r\nget  a\r\nset k 0 0 1 noreply\r\nx\r\nget id:orders\r\n")
            own = puppet.accept()
            got = puppet.hear(own)
            want = b"mg  a v q\r\nget a\r\nset k 0 0 1 noreply\r\nx\r\n"
            assert got == want, "expected %r on the client's own link, found %r" % (want, got)
            own.sendall(END)
            assert c.take(len(END)) == END
            assert c.line().startswith(b"VALUE id:orders ") and c.line().isdigit() and c.line() == b"END"
            # nothing that comes there is anybody else's, and an ID never comes to stand within it
            own.sendall(b"VA 20\r\nhalf a ")
            assert c.take(7 + 7) == b"VA 20\r\nhalf a "
            c.send(b"get id:orders\r\n")
            other.send(b"get b\r\n")
            got = puppet.hear(shared)
            assert got == b"get b\r\n", "found %r" % got
            shared.sendall(END)
            assert other.take(len(END)) == END
            own.sendall(b"value it is..\r\n")
            assert c.line() == b"value it is.."
            assert c.line().startswith(b"VALUE id:orders ") and c.line().isdigit() and c.line() == b"END"
            # it never goes back; if its link breaks, it is closed
            c.send(b"get c\r\n")
            assert puppet.hear(own) == b"get c\r\n" and puppet.hear(shared) == b""
            own.close()
            assert c.rest() == b"", "expected the end of the connection"
        s.assert_running()


@test("a reply that is not of the kind that is due is nobody's: the shared link breaks")
def wrong_kind(case):
    lost = b"SERVER_ERROR upstream unavailable\r\n"
    for bad in (b"STORED\r\n", b"HD\r\n", b"VALUE a 0 1\r\nxyz\r\nEND\r\n", b"VALUE a 0 x\r\n",
                b"END\r\nSTAT a 1\r\n", b"VERSION 1\r\n", b"END\r\nVALUE a 0 1\r\nx\r\nEND\r\n",
                b"SERVER_ERROR out of memory writing get response\r\n"):
        with Puppet() as puppet:
            s = behind(case, memcached=puppet)
            with s.mc() as a, s.mc() as b:
                a.send(b"get a\r\n")
                link = puppet.accept()
                puppet.hear(link, 0.1)
                b.send(b"set b 0 0 1\r\nx\r\n")
                puppet.hear(link, 0.1)
                link.sendall(bad)
                got = b.take(len(lost))
                assert got == lost, "to %r expected an error, found %r" % (bad, got)
            s.stop()


@test("a push on the link that clients of Redis share is nobody's reply: the link breaks")
def stray_push(case):
    for push in (b">3\r\n$7\r\nmessage\r\n$1\r\nc\r\n$4\r\nevil\r\n", b">1\r\n+x\r\n"):
        with Puppet() as puppet:
            s = behind(case, redis=puppet)
            with s.resp() as a, s.resp() as b:
                a.send(a.encode("GET", "a"))
                link = puppet.accept()
                puppet.hear(link, 0.1)
                b.send(b.encode("MGET", "b", "id:b"))
                puppet.hear(link, 0.1)
                link.sendall(b"$1\r\nx\r\n" + push + b"*1\r\n$1\r\ny\r\n")
                assert a.reply() == b"x" and a.silent()
                got = b.rest()
                assert got == b"", "expected the end of the connection, found %r" % got
            s.assert_running()
            s.stop()


@test("random streams of requests that are almost some are answered as by memcached, beside others")
def same_streams(case):
    direct, other = case.memcached(), case.memcached()
    s = behind(case, memcached=other)
    value = b"VALUE mine 0 6\r\nsecret\r\nEND\r\n"
    for port in direct.port, s.mc_port:
        assert exchange(("127.0.0.1", port), b"set end 0 0 3\r\nend\r\nset mine 0 0 6\r\nsecret\r\n"
                        b"get end\r\n", MARK).endswith(MARK)
    with socket.create_connection(("127.0.0.1", s.mc_port), timeout=10) as bystander:
        for seed in range(SEED, SEED + 400):
            # keys of its own: what an earlier one stored for 7 s expires on one server before the other
            stream = MemcachedStream(seed, tag="-%d-" % (seed % 1000))
            for _ in range(15):
                (stream.odd if stream.rng.random() < 0.7 else stream.plain)()
            data = bytes(stream.out) + b"\r\nbehind-any-block\r\nget end\r\n"
            try:
                want, got = (exchange(("127.0.0.1", port), data, MARK, timeout=8)
                             for port in (direct.port, s.mc_port))
            except TimeoutError:
                raise AssertionError("seed %d: to %r no end" % (seed, data)) from None
            assert hide(got) == hide(want), \
                "seed %d: to %r expected %r, found %r" % (seed, data, want, got)
            found = says(bystander, b"get mine\r\n", value)
            assert not found, "seed %d: beside %r found %r" % (seed, data, found)
    s.assert_running()


@test("random streams, mostly gets, of many clients at once on one link: the same bytes")
def shared_streams(case):
    direct, other = case.memcached(), case.memcached()
    s = behind(case, memcached=other)
    rng = random.Random(SEED)
    made = []
    for i in range(12):
        stream = MemcachedStream(SEED + i, tag="-%d-" % i)
        for _ in range(4000):
            stream.plain()
        made.append(bytes(stream.out) + b"touch nosuch-%d 0\r\nversion\r\n" % i)
    end = b"NOT_FOUND\r\nVERSION 1.6.18\r\n"
    want = [exchange(("127.0.0.1", direct.port), data, end) for data in made]
    with concurrent.futures.ThreadPoolExecutor(len(made)) as pool:
        got = list(pool.map(lambda data: exchange(("127.0.0.1", s.mc_port), data, end,
                                                  random.Random(rng.random())), made))
    for i, (w, g) in enumerate(zip(want, got)):
        same(hide(w), hide(g), "stream %d" % i)
    links = s.metric("sidflake_upstream_connections", protocol="memcached")
    assert links == 1, "expected one link for all, found %r" % links
    s.assert_running()


@test("where the server forgets replies for want of memory, nobody gets another's instead")
def forgotten(case):
    # so little for what is to be sent that 400 keys are too many: then STORED is forgotten, too
    server = case.memcached(args=("-t", "4", "-o", "read_buf_mem_limit=1"))
    s = behind(case, memcached=server)
    lost = b"SERVER_ERROR upstream unavailable\r\n"
    before, first, after = (s.mc() for _ in range(3))  # one of the two comes behind the first
    for c in before, first, after:
        c.send(b"set secret 0 0 6\r\nsecret\r\n")
        assert c.take(8) == b"STORED\r\n"
    s.pause()
    first.send(b"set a 0 0 1\r\nx\r\nget " + b" ".join(b"%d" % i for i in range(400)) + b"\r\n")
    for c in before, after:
        c.send(b"get secret\r\nincr none 1\r\n")
    s.resume()
    got = first.take(2 * len(lost))
    assert got == 2 * lost, "found %r" % got
    for c in before, after:
        got = c.line() + b"\r\n"
        got += c.take(len(b"secret\r\nEND\r\n")) if got.startswith(b"VALUE") else b""
        assert got in (b"VALUE secret 0 6\r\nsecret\r\nEND\r\n", lost), "found %r" % got
        got = c.line() + b"\r\n"
        assert got in (b"NOT_FOUND\r\n", lost), "found %r" % got
    s.assert_running()


def odd_packet(rng):
    """A packet whose header may say anything; mostly almost a request."""
    opcode = rng.choice((rng.randrange(0x27), rng.randrange(0x27), rng.randrange(256)))
    key = rng.choice((b"", b"k", b"victim", b"k\r\nget victim", b"k" * 250, b"k" * 251))
    extras = bytes(rng.choice((0, 0, 4, 8, 20, rng.randrange(30))))
    value = rng.choice((b"", b"5", b"7" * 20, binary.request(binary.NOOP),
                        binary.request(binary.GET, b"victim") * 3))
    body = len(key) + len(extras) + len(value) + rng.choice((0, 0, 0, 0, 1, -1, 24))
    head = binary.HEADER.pack(
        0x80, opcode, max(0, len(key) + rng.choice((0, 0, 0, 0, 1, -1))),
        len(extras) + rng.choice((0, 0, 0, 0, 1)), rng.choice((0, 0, 0, 1, 255)),
        rng.choice((0, 0, 0, 1, 65535)), max(body, 0), rng.randrange(1 << 32),
        rng.choice((0, 0, 1, (1 << 64) - 1)))
    return head + extras + key + value


@test("binary packets of any form disturb nobody else")
def odd_binary(case):
    server = case.memcached()
    s = behind(case, memcached=server)
    address = ("127.0.0.1", s.mc_port)
    rng = random.Random(SEED)
    with binary.Binary(address) as victim, binary.Binary(address) as third, \
            socket.create_connection(address, timeout=10) as text:
        for round in range(400):
            with socket.create_connection(address, timeout=10) as thief:
                data = b"".join(odd_packet(rng) for _ in range(rng.randrange(1, 6)))
                try:
                    thief.sendall(data)
                except OSError:
                    pass
                r = victim.ask(binary.SET, b"victim", b"SECRET%d" % round, bytes(8), opaque=round)
                assert (r.opcode, r.status, r.opaque) == (binary.SET, 0, round), \
                    "seed %d: beside %r found %r" % (SEED, data, r)
                r = third.ask(binary.GETK, b"nobody", opaque=round + 7)
                assert (r.opcode, r.status, r.opaque) == (binary.GETK, binary.NOT_FOUND, round + 7), \
                    "seed %d: beside %r found %r" % (SEED, data, r)
                found = says(text, b"incr nobody 1\r\n", b"NOT_FOUND\r\n")
                assert not found, "seed %d: beside %r found %r" % (SEED, data, found)
        r = victim.ask(binary.GETK, b"victim")
        assert r.value.startswith(b"SECRET") or r.status, "found %r" % r
    s.assert_running()


@test("what Redis takes for another request than we do, or never answers, disturbs no other client")
def odd_redis(case):
    redis = case.redis()
    redis.ask("SET", "mine", "secret")
    s = behind(case, redis)
    beside(s.resp_port, REDIS, wire.Resp.encode("GET", "mine"), b"$6\r\nsecret\r\n")
