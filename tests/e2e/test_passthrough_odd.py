"""Pass-through: requests that a real server reads otherwise than we do are nobody else's trouble."""

import socket

import wire
from runner import test
from test_passthrough import behind

# Each holds a request for memcached in which it, or we, see another one: as data, or behind an error.
MEMCACHED = [line + b"\r\nversion\r\n" for line in (
    b"set k 0 0 +7", b"set k +0 0 7", b"set k 0 +1 7", b"set k 0 0 4294967303", b"set k\x01 0 0 7",
    b"set k\x7f 0 0 7", b"set k 0 0 7\0", b"set k 0 0 7\rx", b"set k 0 0 7\r", b"SET k 0 0 7",
    b"set k 4294967296 0 7", b"set k 0 1099511627776 7", b"cas k 0 0 7 -1", b"set k 0 0 -1",
    b"set k 0 0 7 noreply x", b"ms k +7", b"ms k 7 Z", b"ms k 7 T1 T1", b"ms k 7 Tx", b"ms k 7 MZ",
    b"ms k 7 q Tx", b"ms !!! 7 b", b"ms k 7 F-1", b"ms k 7 Cx", b"ms k 7 O" + 40 * b"x")]
REDIS = [b"GET a\0b\r\n", b"SET a \"\0\"\r\n", b"GET a\rb\r\n", wire.Resp.encode("REPLCONF", "ACK", "0"),
         wire.Resp.encode("UNSUBSCRIBE", "a", "b"), wire.Resp.encode("CLIENT", "REPLY", "OFF")]


def beside(port, odd, request, reply):
    """The same client gets the same reply, whoever else sends what is odd."""
    with socket.create_connection(("127.0.0.1", port), timeout=10) as s:
        for data in odd:
            with socket.create_connection(("127.0.0.1", port), timeout=10) as other:
                other.sendall(data)
                for _ in range(3):
                    s.settimeout(2)  # less than upstream.timeout
                    s.sendall(request)
                    got = s.recv(len(reply))
                    while got and len(got) < len(reply) and reply.startswith(got):
                        got += s.recv(len(reply) - len(got))
                    assert got == reply, "beside %r: expected %r, found %r" % (data, reply, got)


@test("what memcached takes for another request than we do disturbs no other client")
def odd_memcached(case):
    memcached = case.memcached()
    s = behind(case, memcached=memcached)
    with socket.create_connection(("127.0.0.1", s.mc_port), timeout=10) as c:
        c.sendall(b"set mine 0 0 6\r\nsecret\r\n")
        assert c.recv(64) == b"STORED\r\n"
    beside(s.mc_port, MEMCACHED, b"get mine\r\n", b"VALUE mine 0 6\r\nsecret\r\nEND\r\n")


@test("what Redis takes for another request than we do, or never answers, disturbs no other client")
def odd_redis(case):
    redis = case.redis()
    redis.ask("SET", "mine", "secret")
    s = behind(case, redis)
    beside(s.resp_port, REDIS, wire.Resp.encode("GET", "mine"), b"$6\r\nsecret\r\n")
