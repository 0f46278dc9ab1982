"""What the command line of a memcached or Redis says about where it listens, and the same line for a
server that listens beside that place.

Each reader returns a Plan, or None where the server would not listen at all, or the line is one that
it refuses: then there is nothing to stand in front of.
"""

import getopt
import os
import shlex
import socket

BESIDE = "127.0.0.2"  # the server's address, where the suite's is 127.0.0.1
SUFFIX = ".server"    # of its unix socket


class Plan:
    def __init__(self, arguments):
        self.arguments = arguments  # for the server
        self.listeners = []         # of sidflake
        self.ports = []             # TCP ports among them
        self.upstream = ""          # the server, for sidflake
        self.upstream_path = ""     # its unix socket …
        self.upstream_port = 0      # … or its port
        self.daemon = False         # the server goes on as another process
        self.server_first = False   # it shall listen before sidflake does

    def tcp(self, port, server_port=None, server_host=BESIDE):
        self.listeners.append("tcp://127.0.0.1:%d" % port)
        self.ports.append(port)
        self.upstream_port = server_port or port
        self.upstream = "tcp://%s:%d" % (server_host, self.upstream_port)

    def unix(self, path):
        self.listeners.append("unix://" + os.path.abspath(path))
        if not self.upstream:
            self.upstream_path = os.path.abspath(path) + SUFFIX
            self.upstream = "unix://" + self.upstream_path


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


# ---- memcached

SHORT = "a:Ap:s:U:m:Mc:khiVrvdl:u:P:f:n:t:D:LR:Cb:B:I:SFXWY:e:o:ZN:"
LONG = {"port": "p", "unix-socket": "s", "listen": "l", "daemon": "d", "help": "h",
        "license": "i", "version": "V"}
LOCAL = ("127.0.0.1", "localhost", "0.0.0.0", "INADDR_ANY")


def memcached(arguments):
    try:
        options, rest = getopt.getopt(arguments, SHORT, [
            name + ("=" if short + ":" in SHORT else "") for name, short in LONG.items()])
    except getopt.GetoptError:
        return None
    options = [("-" + LONG.get(name[2:], name[1:]) if name.startswith("--") else name, value)
               for name, value in options]
    given = dict(options)
    if rest or any(o in given for o in ("-h", "-i", "-V")):
        return None
    plan = Plan([])
    plan.daemon = "-d" in given
    # A suite that reads the port from a file connects once, when the server has written it.
    plan.server_first = "MEMCACHED_PORT_FILENAME" not in os.environ
    if "-s" in given:
        plan.unix(given["-s"])
    else:
        udp = given.get("-U", "0")
        port = int(given.get("-p", udp if udp != "0" else "11211"))
        if port == 0:
            return None
        if port < 0:  # any free one; the file that the suite reads names it
            port = free_port()
        hosts = given.get("-l", "127.0.0.1").split(",")
        if any(host not in LOCAL for host in hosts):
            return None
        plan.tcp(port)
        options = [(o, v) for o, v in options if o not in ("-p", "-l")]
        options += [("-p", str(port)), ("-l", BESIDE)]
    for option, value in options:
        plan.arguments.append(option)
        if option == "-s":
            value += SUFFIX
        if value or option[1] + ":" in SHORT:
            plan.arguments.append(value)
    return plan


# ---- Redis

def redis(arguments):
    if not arguments or arguments[0] in ("-v", "--version", "-h", "--help", "--test-memory",
                                         "--check-system") or "--sentinel" in arguments:
        return None
    settings = {"port": "6379", "unixsocket": "", "cluster-enabled": "no", "daemonize": "no"}
    rest = list(arguments)
    if not rest[0].startswith("--"):
        read_redis_file(rest.pop(0), settings)
    read_redis_options(rest, settings)

    plan = Plan(list(arguments))
    plan.daemon = settings["daemonize"] == "yes"
    port = int(settings["port"])
    if port and settings["cluster-enabled"] == "yes":
        # Nodes name one address for clients and for each other, so here the ports differ.
        beside = free_port()
        plan.tcp(port, beside, "127.0.0.1")
        plan.arguments += ["--port", str(beside), "--cluster-port", str(port + 10000),
                           "--cluster-announce-port", str(port)]
    elif port:
        plan.tcp(port)
        plan.arguments += ["--bind", BESIDE]
    path = settings["unixsocket"]
    if path:
        path = path[:-len(SUFFIX)] if path.endswith(SUFFIX) else path
        plan.unix(path)
        plan.arguments += ["--unixsocket", path + SUFFIX]
    return plan if plan.listeners else None


def read_redis_file(path, settings):
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            lines = file.read().splitlines()
    except OSError:
        return
    for line in lines:
        name, _, value = line.strip().partition(" ")
        if name.lower() in settings:
            words = shlex.split(value)
            settings[name.lower()] = words[0] if words else ""


def read_redis_options(arguments, settings):
    for option, value in zip(arguments, arguments[1:]):
        if option.startswith("--") and option[2:].lower() in settings:
            settings[option[2:].lower()] = value


KINDS = {"memcached": memcached, "redis": redis}
