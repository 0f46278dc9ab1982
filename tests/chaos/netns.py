"""Networks of their own for the hosts of one topology, joined by a bridge; any direction between
two hosts can be cut, without a word to either.

    ns "sw": bridge -- port 0 .. port n-1
                        |         |
    ns "h0": eth0, 10.77.0.1   "h1": eth0, 10.77.0.2   ...

Invariants
  - A cut is silent: packets go to an Ethernet address that nobody has, as they would into a dead
    cable. Connections stay open and know nothing.
  - Nothing of the machine's own network is touched.
"""

import glob
import os
import subprocess

NOBODY = "02:00:00:00:00:fe"


def ip(script):
    """Runs a batch of ip(8) commands; raises OSError with what it said."""
    try:
        r = subprocess.run(["ip", "-force", "-batch", "-"], input=script, text=True,
                           stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    except FileNotFoundError:
        raise OSError("expected ip (Debian's package iproute2), found none")
    if r.returncode:
        raise OSError("expected to be allowed to make networks, found: " + r.stdout.strip()[:200])


def sweep():
    """What runs that were killed have left behind."""
    for path in glob.glob("/run/netns/sfc*-*"):
        name = os.path.basename(path)
        pid = name[3:].partition("-")[0]
        if pid.isdigit() and not os.path.exists("/proc/" + pid):
            subprocess.run(["ip", "netns", "del", name], stderr=subprocess.DEVNULL, check=False)


class NetHost:
    def __init__(self, namespace, address):
        self.namespace, self.address = namespace, address

    def wrap(self, argv):
        return ["nsenter", "--net=/run/netns/" + self.namespace, "--"] + argv


class Net:
    def __init__(self, n):
        """Raises OSError where that is not allowed."""
        sweep()
        prefix = "sfc%d-" % os.getpid()
        self.switch = prefix + "sw"
        self.hosts = [NetHost("%sh%d" % (prefix, i), "10.77.0.%d" % (i + 1)) for i in range(n)]
        self.cuts = set()
        try:
            self.build()
        except OSError:
            self.close()
            raise

    def build(self):
        ip("netns add %s\n" % self.switch +
           "".join("netns add %s\n" % h.namespace for h in self.hosts))
        run = subprocess.run(["nsenter", "--net=/run/netns/" + self.switch, "--", "true"],
                             stderr=subprocess.PIPE, text=True, check=False)
        if run.returncode:
            raise OSError("expected to be allowed to enter networks, found: " + run.stderr.strip())
        self.inside(self.switch, "link add br0 type bridge stp_state 0 forward_delay 0\n"
                    "link set br0 up\n")
        for i, h in enumerate(self.hosts):
            self.inside(self.switch, "link add p%d type veth peer name eth0 netns %s\n"
                        "link set p%d master br0 up\n" % (i, h.namespace, i))
            self.inside(h.namespace, "link set lo up\nlink set eth0 up\n"
                        "address add %s/24 dev eth0\n" % h.address)

    @staticmethod
    def inside(namespace, script):
        r = subprocess.run(["ip", "-n", namespace, "-batch", "-"], input=script, text=True,
                           stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
        if r.returncode:
            raise OSError("ip -n %s: %s" % (namespace, r.stdout.strip()[:200]))

    def cut(self, sources, targets):
        """What hosts of `sources` send to others of `targets` is lost. Indices."""
        for a in sources:
            lines = ""
            for b in targets:
                if a != b:
                    self.cuts.add((a, b))
                    lines += "neigh replace %s lladdr %s dev eth0 nud permanent\n" % (
                        self.hosts[b].address, NOBODY)
            self.inside(self.hosts[a].namespace, lines)

    def split(self, one, other):
        self.cut(one, other)
        self.cut(other, one)

    def heal(self):
        for a, b in self.cuts:
            self.inside(self.hosts[a].namespace,
                        "neigh del %s dev eth0\n" % self.hosts[b].address)
        self.cuts.clear()

    def close(self):
        for name in [h.namespace for h in self.hosts] + [self.switch]:
            subprocess.run(["ip", "netns", "del", name], stderr=subprocess.DEVNULL, check=False)
