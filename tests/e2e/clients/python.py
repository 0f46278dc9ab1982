#!/usr/bin/python3
"""Driver for the clients of Python; see README.md."""

import asyncio
import sys

KINDS = ((bool, "b"), (int, "i"), (str, "s"))


def field(value):
    if value is None:
        return "n:"
    if isinstance(value, bytes):
        value = value.decode()
    kind = next(k for t, k in KINDS if isinstance(value, t))
    return "%s:%s" % (kind, value)


def in_order(keys, found):
    return [found.get(k) for k in keys]


def redis(address, module="redis"):
    """As sync and as asyncio: the methods have the same names."""
    lib = __import__(module, fromlist=["Redis"])
    if address.startswith("/"):
        c = lib.Redis(unix_socket_path=address)
    else:
        host, port = address.split(":")
        c = lib.Redis(host=host, port=int(port))
    return {"get": c.get, "mget": lambda *keys: c.mget(*keys), "set": c.set, "incr": c.incr,
            "lpop": lambda key, n: c.lpop(key, int(n))}


def pymemcache(address):
    from pymemcache.client.base import Client
    c = Client(address)
    return {"get": c.get, "mget": lambda *keys: in_order(keys, c.get_many(keys)),
            "set": lambda key, value: c.set(key, value, noreply=False),
            "incr": lambda key: c.incr(key, 1)}


def with_get_multi(c):
    return {"get": c.get, "mget": lambda *keys: in_order(keys, c.get_multi(keys)), "set": c.set,
            "incr": c.incr}


def python_memcached(address):
    """It leaves a server alone for 30 s that has closed a connection; here for 1, to save time."""
    import memcache
    place = "unix:" * address.startswith("/") + address
    return with_get_multi(memcache.Client([place], dead_retry=1))


def pylibmc(address, binary=False):
    import pylibmc as lib
    return with_get_multi(lib.Client([address], binary=binary))


def bmemcached(address):
    import bmemcached as lib
    c = lib.Client([address])
    return {"get": c.get, "mget": lambda *keys: in_order(keys, c.get_multi(keys)), "set": c.set,
            "incr": lambda key: c.incr(key, 1)}


CLIENTS = {
    "redis": redis,
    "redis-asyncio": lambda address: redis(address, "redis.asyncio"),
    "pymemcache": pymemcache,
    "python-memcached": python_memcached,
    "pylibmc": pylibmc,
    "pylibmc-binary": lambda address: pylibmc(address, binary=True),
    "bmemcached": bmemcached,
}


async def answer(verb, args):
    try:
        value = verb(*args)
        if asyncio.iscoroutine(value):
            value = await value
    except Exception as e:
        return "e:%s %s" % (type(e).__name__, " ".join(str(e).split()))
    return "\t".join(field(v) for v in (value if isinstance(value, list) else [value]))


async def main(name, address):
    verbs = CLIENTS[name](address)
    for line in sys.stdin:
        verb, *args = line.split()
        print(await answer(verbs[verb], args), flush=True)


asyncio.run(main(*sys.argv[1:3]))
