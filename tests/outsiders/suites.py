"""The suites: how each is unpacked beside its source, started, and read.

A suite runs in units, each in a directory of its own that is made of links to the source: there the
server is, or the stand-in for it. read() makes [(test, verdict)] of a unit's output, with the
verdicts 'ok', 'failed' and 'skipped'.
"""

import os
import re
import shlex
import signal
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
STANDIN = os.path.join(HERE, "standin")
TAP = re.compile(r"^(not )?ok (\d+)\b(?:\s*-?\s*(.*))?$")


def link_all(source, target, but=()):
    os.makedirs(target, exist_ok=True)
    for name in os.listdir(source):
        if name not in but:
            os.symlink(os.path.join(source, name), os.path.join(target, name))


def put_server(kind, server, path, through):
    """The server at path, or what stands in for it."""
    words = [STANDIN, kind, server] if through else [server]
    with open(path, "w", encoding="utf-8") as file:
        file.write("#!/bin/sh\nexec %s \"$@\"\n" % " ".join(map(shlex.quote, words)))
    os.chmod(path, 0o755)


def plain(name):
    """A test's name without what differs from run to run."""
    name = re.sub(r"[A-Za-z0-9]{24,}", "X", name)
    return re.sub(r"\d{4,}|\d+\.\d{2,}|(?<=seed[ =])-?\d+|(?<=#)\d+|(?<=CYCLE )\d+|(?<=window: )\d+", "N", name)[:100]


def read_tap(output):
    found = []
    for line in output.splitlines():
        match = TAP.match(line)
        if match:
            name = match.group(3) or ""
            verdict = "skipped" if re.search(r"# skip", name, re.I) else "ok"
            name = re.sub(r"\s*# (skip|todo).*", "", name, flags=re.I).strip()
            found.append((plain(name) or "(no name)",
                          "failed" if match.group(1) else verdict))
        elif re.match(r"1\.\.0\b", line):
            found.append(("(all)", "skipped"))
    return found


class Memcached:
    """t/*.t and testapp of memcached's source, built with `make` there."""
    kind = "memcached"
    seconds = 400  # for a unit

    def __init__(self, source):
        self.source = source

    def units(self):
        return ["testapp"] + sorted(
            name[:-2] for name in os.listdir(os.path.join(self.source, "t")) if name.endswith(".t"))

    def prepare(self, home, through):
        link_all(self.source, home, but=("memcached-debug",))
        put_server("memcached", os.path.join(self.source, "memcached-debug"),
                   os.path.join(home, "memcached-debug"), through)

    def command(self, unit, _slot, _but):
        return ["./testapp"] if unit == "testapp" else ["perl", "t/%s.t" % unit]

    def read(self, output, _home):
        return read_tap(output)


class Redis:
    """tests/ of Redis' source, built with `make` there: a unit of runtest at a time."""
    kind = "redis"
    seconds = 900  # for a unit; runtest itself ends what stands still
    LINE = re.compile(r"^\[(ok|err|skip|ignore|exception|TIMEOUT)\]: (.*)$")

    def __init__(self, source):
        self.source = source

    def units(self):
        text = subprocess.run(["tclsh", "tests/test_helper.tcl", "--list-tests"], cwd=self.source,
                              stdout=subprocess.PIPE, check=True, text=True).stdout
        return text.split()

    def prepare(self, home, through):
        link_all(self.source, home, but=("src", "tests"))
        link_all(os.path.join(self.source, "src"), os.path.join(home, "src"), but=("redis-server",))
        link_all(os.path.join(self.source, "tests"), os.path.join(home, "tests"), but=("tmp",))
        os.mkdir(os.path.join(home, "tests", "tmp"))
        put_server("redis", os.path.join(self.source, "src", "redis-server"),
                   os.path.join(home, "src", "redis-server"), through)

    def command(self, unit, slot, but):
        return ["tclsh", "tests/test_helper.tcl", "--single", unit, "--clients", "1", "--durable",
                "--timeout", "300", "--baseport", str(7111 + 1200 * slot), "--portcount", "1000"] + [
                    word for test in but for word in ("--skiptest", test)]

    def read(self, output, _home):
        found, part = [], output.split("The following tests failed:")[0]
        for line in part.splitlines():
            match = self.LINE.match(line)
            if match:
                word, name = match.groups()
                if word == "ok":
                    name, verdict = re.sub(r" \(\d+ ms\)$", "", name), "ok"
                elif word in ("skip", "ignore"):
                    verdict = "skipped"
                else:
                    name, verdict = re.sub(r" in tests/\S+\.tcl$", "", name), "failed"
                found.append((plain(name), verdict))
        if "The End" not in output:
            found.append(("(to its end)", "failed"))
        return found


class Served:
    """A suite for a server that runs already: each unit has one of its own."""
    kind = ""
    server = ()  # its command line, with PORT in it
    seconds = 300

    def __init__(self, source):
        self.source = source

    def units(self):
        return ["all"]

    def words(self, _unit):
        """The suite's command line, with PORT in it."""
        raise NotImplementedError

    def prepare(self, home, through):
        link_all(self.source, home)
        put_server(self.kind, self.server[0], os.path.join(home, "outsiders-server"), through)

    def command(self, unit, slot, _but):
        port = str(6611 + 13 * slot)
        server = ["./outsiders-server"] + [w.replace("PORT", port) for w in self.server[1:]]
        return [sys.executable, os.path.join(HERE, "served.py"), port, shlex.join(server)] + [
            w.replace("PORT", port) for w in self.words(unit)]


class Pytest(Served):
    """Test files for pytest, a unit each."""
    below = ""      # where they are
    but = ()        # those left out
    arguments = ()
    LINE = re.compile(r"^(\S+\.py)::(.+?) (PASSED|FAILED|ERROR|SKIPPED|XFAIL|XPASS)\b", re.M)
    WORDS = {"FAILED": "failed", "ERROR": "failed", "SKIPPED": "skipped"}

    def units(self):
        found = []
        for where, _, files in os.walk(os.path.join(self.source, self.below)):
            found += [os.path.relpath(os.path.join(where, f), self.source) for f in files
                      if f.startswith("test_") and f.endswith(".py") and f not in self.but]
        return sorted(found)

    def words(self, unit):
        return [sys.executable, "-m", "pytest", "-v", "-o", "addopts=", "-p", "no:cacheprovider",
                "--capture=fd", unit, *self.arguments]

    def read(self, output, _home):
        found = [(plain(test), self.WORDS.get(word, "ok"))
                 for _, test, word in self.LINE.findall(output)]
        if not re.search(r"^=+ .* in \d", output, re.M):
            found.append(("(to its end)", "failed"))
        return found


MEMCACHED = ("/usr/bin/memcached", "-u", "root", "-U", "0", "-p", "PORT", "-l", "127.0.0.1")
REDIS = ("/usr/bin/redis-server", "--port", "PORT", "--bind", "127.0.0.1", "--save", "",
         "--enable-debug-command", "yes", "--enable-module-command", "yes")


class Memccapable(Served):
    """memccapable of libmemcached-tools; the source is any empty directory."""
    kind, server = "memcached", MEMCACHED

    def words(self, _unit):
        return ["memccapable", "-h", "127.0.0.1", "-p", "PORT"]

    def read(self, output, _home):
        return [(name.strip(), "ok" if verdict == "pass" else "failed") for name, verdict in
                re.findall(r"^(\S.*?)\s+\[(pass|FAIL)\]", output, re.M)] or [
                    ("(to its end)", "failed")]


class Pymemcache(Pytest):
    """pymemcache/test: Debian's python3-pymemcache has it."""
    kind, server = "memcached", MEMCACHED
    below, but = "pymemcache/test", ("test_benchmark.py",)
    arguments = ("--server=127.0.0.1", "--port=PORT")


class RedisPy(Pytest):
    """tests/ of redis-py's source: those that ask for one plain server."""
    kind, server = "redis", REDIS
    below = "tests"
    but = ("test_bloom.py", "test_cluster.py", "test_graph.py", "test_json.py", "test_search.py",
           "test_sentinel.py", "test_ssl.py", "test_timeseries.py", "test_cwe_404.py")
    arguments = ("--redis-url=redis://127.0.0.1:PORT/9", "-m",
                 "not redismod and not onlycluster and not ssl and not replica")


SUITES = {"memcached": Memcached, "redis": Redis, "memccapable": Memccapable,
          "pymemcache": Pymemcache, "redis-py": RedisPy}


def run(suite, unit, slot, home, through, logs, but):
    """Runs a unit, through sidflake without the tests `but`; returns [(test, verdict)].
    Whatever it started has ended when this returns."""
    token = "%d.%d.%d" % (os.getpid(), slot, time.monotonic_ns())
    env = dict(os.environ, TERM="dumb", LC_ALL="C.UTF-8", OUTSIDERS_LOGS=logs, OUTSIDERS_RUN=token)
    suite.prepare(home, through)
    command = ["timeout", "-k", "5", str(suite.seconds)] + suite.command(
        unit, slot, but if through else ())
    with open(os.path.join(logs, "output"), "w+", encoding="utf-8", errors="replace") as output:
        done = subprocess.run(command, cwd=home, env=env, stdin=subprocess.DEVNULL, stdout=output,
                              stderr=subprocess.STDOUT, start_new_session=True, check=False)
        end_all(token)
        output.seek(0)
        found = suite.read(output.read(), home)
    if done.returncode in (124, 137):
        found.append(("(in time)", "failed"))
    return found


def end_all(token):
    """Waits for the processes that have this token in their environment, and then kills them."""
    mine = ("OUTSIDERS_RUN=" + token).encode()
    end = time.monotonic() + 2
    while having(mine) and time.monotonic() < end:
        time.sleep(0.05)
    for pid in having(mine):
        try:
            os.kill(pid, signal.SIGKILL)
        except OSError:
            pass


def having(variable):
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open("/proc/%s/environ" % pid, "rb") as file:
                if variable in file.read().split(b"\0"):
                    found.append(int(pid))
        except OSError:
            pass
    return found
