"""Three Redis servers, three Sentinels, and sidecars, each server with its sidecars on a host of
its own.

    h0: Redis, s0    h1: Redis, s1    h2: Redis, s2    h3, h4, h5: a Sentinel each

With --replicas 1 a split brain must do no harm. With --replicas 0 a failover must not, but a split
brain may: those faults are left out.
"""

import faults
import replicated_faults
import wire
from netns import Net
from procs import Proc, until
from redis_world import Redis, RedisWorld
from replicated_faults import NODES
from world import POOL, RANGE, Host

DOWN_MS = 500  # of a server until a Sentinel calls it dead


class Sentinel(Proc):
    def __init__(self, world, index, host, master):
        self.port = 26379 if world.net else world.free_port()
        self.host = host
        name = "sentinel%d" % index
        self.sock = world.path(name + ".sock")
        conf = world.path(name + ".conf")
        with open(conf, "w") as f:
            f.write("port %d\nbind %s\nunixsocket %s\nprotected-mode no\ndir %s\n"
                    "sentinel monitor m %s %d 2\n"
                    "sentinel down-after-milliseconds m %d\nsentinel failover-timeout m 1500\n"
                    "sentinel parallel-syncs m 2\n" % (
                        self.port, host.address, self.sock, world.dir, master.host.address,
                        master.port, DOWN_MS))
        super().__init__(world, name, host.wrap(["redis-server", conf, "--sentinel"]))

    def ask(self, *args):
        with wire.Resp(self.sock, timeout=1) as r:
            return r.ask(*args)

    def sees_all(self):
        try:
            return str(self.ask("SENTINEL", "CKQUORUM", "m")).startswith("b'OK 3") and \
                len(self.ask("SENTINEL", "REPLICAS", "m")) == NODES - 1
        except (OSError, wire.Closed):
            return False


class Node(Redis):
    """One of the three servers."""

    def __init__(self, world, index):
        self.index = index
        host = world.host(index)
        super().__init__(world, "redis%d" % index, host=host, port=6379 if world.net else None,
                         args=("--repl-diskless-sync-delay", "0", "--repl-backlog-ttl", "0"))

    def start_under(self, master):
        return self.start(("--appendonly", "yes", "--replicaof", master.host.address,
                           str(master.port)))

    def role(self):
        """master or slave, and how many replicas follow; None where it does not say."""
        try:
            reply = self.ask("ROLE", timeout=0.5)
        except (OSError, wire.Closed, wire.Error):
            return None, 0
        role = reply[0].decode()
        if role == "master":
            return role, len(reply[2])
        return role, 0

    def follows(self):
        try:
            reply = self.ask("ROLE", timeout=0.5)
        except (OSError, wire.Closed, wire.Error):
            return False
        return reply[0] == b"slave" and reply[3] == b"connected"


class ReplicatedWorld(RedisWorld):
    name = "replicated"
    numbers = True
    lane = 2
    isolated = True
    replicas = 1
    proxies = ()
    net = None
    electing = False

    def setup(self):
        self.mount_small("full", 512)  # two state_dirs, with pages set aside
        try:
            self.net = Net(2 * NODES)
        except OSError as e:
            self.isolated = False
            self.why_no_net = str(e)
        self.nodes = [Node(self, i) for i in range(NODES)]
        self.redis = self.nodes[0].start()
        for n in self.nodes[1:]:
            n.start_under(self.redis)
        self.check_clocks()
        self.sentinels = [Sentinel(self, i, self.host(NODES + i), self.redis).start()
                          for i in range(NODES)]
        until("the replicas follow", lambda: self.redis.role() == ("master", NODES - 1), 30)
        until("the Sentinels know each other and the servers",
              lambda: all(s.sees_all() for s in self.sentinels), 60, 0.1)
        assert self.init("--workers", "0-%d" % (RANGE - 1)), self.log[-1:]
        self.add_sidecars()

    def host(self, index):
        if not self.net:
            return Host()
        return self.net.hosts[index]

    def sidecar_host(self, index):
        return self.host(index % NODES)

    def pass_time(self, seconds):
        """Not while a new master is elected: a replica tells for how long it has had no master, by
        its wall clock, and Sentinel would find none fit."""
        if not self.electing:
            super().pass_time(seconds)

    def required(self):
        """In a short run, what the other topologies do not show."""
        if self.long or self.only:
            return self.faults
        return [f for f in self.faults if f.name in replicated_faults.SHORT]

    def url(self, _i=0):
        return "redis+sentinel://%s/m?db=0" % ",".join(
            "%s:%d" % (s.host.address, s.port) for s in self.sentinels)

    @property
    def faults(self):
        return faults.FAULTS + replicated_faults.FAULTS + (
            replicated_faults.SPLIT_FAULTS if self.replicas else [])

    def pool_args(self):
        return POOL + ("--replicas", str(self.replicas))

    @property
    def coordinator(self):
        return "redis+unix://%s?db=0" % self.master().sock

    def master(self):
        """The server that most Sentinels name."""
        votes = []
        for s in self.sentinels if hasattr(self, "sentinels") else []:
            try:
                address = s.ask("SENTINEL", "GET-MASTER-ADDR-BY-NAME", "m")
                votes += [n for n in self.nodes
                          if [n.host.address.encode(), str(n.port).encode()] == address]
            except (OSError, wire.Closed):
                pass
        return max(votes, key=votes.count) if votes else self.nodes[0]

    def server(self):
        return self.master()

    def others(self, node):
        return [n for n in self.nodes if n is not node]

    def failed_over(self, old):
        now = self.master()
        return now is not old and now.role()[0] == "master"

    def whole(self):
        master = self.master()
        return master.role() == ("master", NODES - 1) and \
            all(n.follows() for n in self.others(master))

    def operate(self):
        """An operator makes a pool that was lost."""
        master = self.master()
        try:
            if master.role()[0] == "master" and self.lost():
                self.recover_now()
        except (OSError, wire.Closed, wire.Error) as e:
            self.note("the pool could not be looked at: %r" % e)

    def subdue(self):
        """All servers but the master follow it."""
        master = self.master()
        for n in self.others(master):
            if n.role()[0] == "master" and master.role()[0] == "master":
                n.ask("REPLICAOF", master.host.address, str(master.port))

    def heal(self):
        if self.net:
            self.net.heal()
        for s in self.sentinels:
            if not s.running():
                s.start()
        for n in self.nodes:
            if n.running():
                n.resume()
        master = self.master()
        if not master.running():
            master.start()
        for n in self.others(master):
            if not n.running():
                n.start_under(master)
        self.subdue()
        until("one master, two replicas that follow it", self.whole, 90, 0.2)
        self.operate()

    def close(self):
        super().close()
        if self.net:
            self.net.close()


class UnreplicatedWorld(ReplicatedWorld):
    name = "replicated0"
    numbers = False  # what two masters grant at once is not rising
    lane = 3
    replicas = 0
