"""Servers under test, in processes of our own and a directory of our own, and the load on them.

Everything is stopped by its process id and removed when the lab closes. All servers listen on unix
sockets in the lab's directory and on free ports of 127.0.0.1.
"""

import json
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time

KEY = "id:orders"
VALUE = "123456789012345678"  # as long as an ID
MC_ANSWER = f"VALUE {KEY} 0 {len(VALUE)}\r\n{VALUE}\r\nEND\r\n"
RESP_ANSWER = f"${len(VALUE)}\r\n{VALUE}\r\n"


class Failure(Exception):
    """A row could not be measured; the text says why."""


def which(name):
    path = shutil.which(name) or shutil.which(name, path="/usr/sbin:/usr/bin:/usr/local/bin")
    if not path:
        raise Failure(f"expected {name} to be installed, found none")
    return path


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def connect(address, timeout=10):
    if address.startswith("unix:"):
        s = socket.socket(socket.AF_UNIX)
        target = address[5:]
    else:
        s = socket.socket()
        host, port = address[6:].rsplit(":", 1)
        target = (host, int(port))
    s.settimeout(timeout)
    try:
        s.connect(target)
    except OSError:
        s.close()
        raise
    return s


def ask(address, request, end, timeout=10):
    """Sends request and reads until what came ends with `end`, or the peer closes (end None)."""
    with connect(address, timeout) as s:
        s.sendall(request)
        got = b""
        while end is None or not got.endswith(end):
            part = s.recv(65536)
            if not part:
                break
            got += part
    return got


def await_true(what, condition, seconds=20):
    until = time.monotonic() + seconds
    while True:
        try:
            if condition():
                return
        except OSError:
            pass
        if time.monotonic() > until:
            raise Failure(f"expected {what} within {seconds} s")
        time.sleep(0.01)


class Server:
    """A process that listens; unix and tcp are addresses as net/addr.h has them, or None."""

    def __init__(self, lab, name, argv, unix=None, tcp=None, env=None):
        self.lab, self.name, self.unix, self.tcp = lab, name, unix, tcp
        self.log = open(os.path.join(lab.dir, name + ".log"), "wb")
        self.process = subprocess.Popen(
            argv, stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log, cwd=lab.dir,
            env=dict(os.environ, **(env or {})), close_fds=False)
        self.pid = self.process.pid
        lab.servers.append(self)

    def log_text(self):
        with open(self.log.name, errors="replace") as f:
            return f.read()

    def cpu_seconds(self):
        """What all threads have run."""
        total = 0
        for task in os.listdir(f"/proc/{self.pid}/task"):
            with open(f"/proc/{self.pid}/task/{task}/schedstat") as f:
                total += int(f.read().split()[0])
        return total / 1e9

    def confine(self, processors):
        """All its threads run on these."""
        for task in os.listdir(f"/proc/{self.pid}/task"):
            os.sched_setaffinity(int(task), processors)

    def run_seconds(self):
        """The same of the main thread."""
        with open(f"/proc/{self.pid}/schedstat") as f:
            return int(f.read().split()[0]) / 1e9

    def check(self):
        if self.process.poll() is not None:
            raise Failure(f"{self.name} ended with status {self.process.returncode}: "
                          + self.log_text()[-400:].strip())
        return True

    def stop(self, sig=signal.SIGTERM, seconds=20):
        if self.process.poll() is None:
            self.process.send_signal(sig)
            try:
                self.process.wait(seconds)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        self.log.close()
        if self in self.lab.servers:
            self.lab.servers.remove(self)


class Sidecar(Server):
    def __init__(self, lab, name, active=1, sets=(), env=None, before=(), program=None):
        base = os.path.join(lab.dir, name)
        os.makedirs(base + ".state", exist_ok=True)
        unix = {p: f"unix:{base}.{p}" for p in ("mc", "redis", "http")}
        tcp = {p: f"tcp://127.0.0.1:{free_port()}" for p in ("mc", "redis")}
        settings = [f"listen.memcached={unix['mc']},{tcp['mc']}",
                    f"listen.redis={unix['redis']},{tcp['redis']}",
                    f"listen.http={unix['http']}",
                    f"coordinator.url={lab.coordinator_url}", "coordinator.pool=bench",
                    f"workers.active={active}", f"state_dir={base}.state", *sets]
        argv = [*before, program or lab.program("sidflake")]
        for s in settings:
            argv += ["--set", s]
        self.active = active
        super().__init__(lab, name, argv, unix, tcp, env)

    def metric(self, name):
        request = b"GET /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
        for line in ask(self.unix["http"], request, None).decode().splitlines():
            if line.startswith(name + " "):
                return float(line.split()[-1])
        raise Failure(f"expected {name} among the metrics of {self.name}, found none")

    def ready(self):
        await_true(f"{self.name} to hold {self.active} workerIds", lambda: self.check()
                   and self.metric("sidflake_workers_held") >= self.active
                   and self.first_id())
        return self

    def first_id(self):
        return ask(self.unix["mc"], f"get {KEY}\r\n".encode(), b"\r\n").startswith(b"VALUE ")


class Lab:
    def __init__(self, build, quick, before=None):
        self.build, self.quick, self.before = build, quick, before
        self.dir = tempfile.mkdtemp(prefix="sfbench-")
        self.servers = []
        self.cache = {}
        self.coordinator_url = None

    def program(self, name):
        return os.path.join(self.build, name)

    def tool(self, name):
        return os.path.join(self.build, "tools", "bench", name)

    def close(self):
        for server in reversed(list(self.servers)):
            server.stop(signal.SIGKILL)
        shutil.rmtree(self.dir, ignore_errors=True)

    def once(self, name, make):
        """A server that several rows share."""
        if name not in self.cache:
            self.cache[name] = make()
        return self.cache[name]

    # ---- peers

    def redis(self, name="redis"):
        def make():
            port, path = free_port(), os.path.join(self.dir, name + ".sock")
            server = Server(self, name, [
                which("redis-server"), "--port", str(port), "--bind", "127.0.0.1", "--unixsocket",
                path, "--save", "", "--appendonly", "no", "--dir", self.dir],
                {"redis": "unix:" + path}, {"redis": f"tcp://127.0.0.1:{port}"})
            await_true(name, lambda: server.check()
                       and ask(server.unix["redis"], b"PING\r\n", b"\r\n") == b"+PONG\r\n")
            return server
        return self.once(name, make)

    def memcached(self):
        def start(where, flags):
            return Server(self, where, [which("memcached"), "-t", "1", "-u", "nobody" if
                          os.geteuid() == 0 else "", "-c", "2048", "-U", "0", *flags])

        def make():
            # One process listens either on a socket file or on a port.
            path, port = os.path.join(self.dir, "memcached.sock"), free_port()
            os.chmod(self.dir, 0o777)
            server = start("memcached", ["-s", path, "-a", "0777"])
            server.unix = {"mc": "unix:" + path}
            server.second = start("memcached-tcp", ["-l", "127.0.0.1", "-p", str(port)])
            server.tcp = server.second.tcp = {"mc": f"tcp://127.0.0.1:{port}"}
            for address in (server.unix["mc"], server.tcp["mc"]):
                for key in [KEY] + [f"{KEY}#{i}" for i in range(100)]:
                    request = f"set {key} 0 0 {len(VALUE)}\r\n{VALUE}\r\n".encode()
                    await_true("memcached to store", lambda a=address, r=request: server.check()
                               and ask(a, r, b"\r\n") == b"STORED\r\n")
            return server
        return self.once("memcached", make)

    def bare(self, protocol="mc", tcp=False, how="epoll"):
        name = f"bare-{protocol}-{'tcp' if tcp else 'unix'}-{how}"
        lines, answer = (1, MC_ANSWER) if protocol == "mc" else (5, RESP_ANSWER)

        def make():
            address = f"tcp://127.0.0.1:{free_port()}" if tcp else f"unix:{self.dir}/{name}"
            server = Server(self, name, [self.tool("bare"), address, str(lines), answer, how],
                            {protocol: address}, {protocol: address})
            await_true(name, lambda: server.check() and connect(address).close() is None)
            return server
        return self.once(name, make)

    # ---- the sidecar

    def coordinator(self):
        def make():
            server = self.redis("coordinator")
            path = server.unix["redis"][5:]
            self.coordinator_url = f"redis+unix://{path}?db=0"
            self.init_pool("bench")
            return server
        return self.once("the coordinator", make)

    def init_pool(self, pool):
        subprocess.run([self.program("sidflakectl"), "pool", "init", "--coordinator",
                        self.coordinator_url, "--pool", pool, "--fresh"], check=True,
                       stdout=subprocess.DEVNULL)

    def sidecar(self, name=None, active=1, **more):
        """By default one that rows share; with a name one that the row stops itself."""
        self.coordinator()
        if name:
            return Sidecar(self, name, active, **more)
        return self.once(f"sidecar{active}", lambda: Sidecar(
            self, f"sidflake-{active}", active).ready())

    # ---- load

    def load_argv(self, address, kind, count=1, connections=1, depth=1, seconds=1.0, warmup=0.1,
                  check="count", requests=0, every_ms=0, key=KEY, keys=1):
        argv = [self.tool("load"), "-a", address, "-k", kind, "-K", key, "-N", str(keys),
                "-n", str(count), "-c", str(connections), "-d", str(depth),
                "-t", f"{int(seconds * 1000)}ms", "-w", f"{int(warmup * 1000)}ms",
                "-C", check, "-r", str(requests)]
        return argv + (["-e", f"{every_ms}ms"] if every_ms else [])

    def start_load(self, *args, **kwargs):
        return subprocess.Popen(self.load_argv(*args, **kwargs), stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, text=True)

    @staticmethod
    def end_load(process):
        out, err = process.communicate()
        if process.returncode != 0:
            raise Failure(err.strip() or f"load ended with status {process.returncode}")
        return json.loads(out)

    def load(self, server, address, kind, **kwargs):
        """One run; what the server's threads used of one processor meanwhile is "cpu", and of each
        request "cpu_us": that tells servers apart even where the machine is busy with others."""
        cpu, begin = server.cpu_seconds(), time.monotonic()
        result = self.end_load(self.start_load(address, kind, **kwargs))
        used = server.cpu_seconds() - cpu
        result["cpu"] = used / (time.monotonic() - begin)
        result["cpu_us"] = used / max(1, result["all"]) * 1e6
        return result
