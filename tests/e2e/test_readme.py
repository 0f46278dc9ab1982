"""What the README shows of each language is run as it stands, but for the ports."""

import os
import re
import select
import subprocess
import time

import harness
import ids
import matrix
import runner
from procs import clean_env, die_with_parent
from runner import test

README = os.path.join(harness.TOP, "README.md")
ROW = re.compile(r"\| (\w+) \| `([^`]*)` \| `([^`]*)` \|")
PATIENCE_S = 45
UNTESTED = {"Java"}


def go(code, imported, shown):
    return 'package main\n\nimport (\n"fmt"\n"github.com/%s"\n)\n\nfunc main() {\n%s\nfmt.Println(%s)\n}\n' % (
        imported, code, shown)


def go_run(case, code):
    redis = "redis." in code
    source = case.path("redis.go" if redis else "memcache.go")
    with open(source, "w") as f:
        f.write(go(code, "gomodule/redigo/redis", "id, err") if redis else
                go(code, "bradfitz/gomemcache/memcache", "string(item.Value), err"))
    return ["go", "run", source]


def node(_case, code):
    return ["node", "-e", 'const Redis = require("ioredis"), Memcached = require("memcached");'
            "(async () => console.log(%s))();" % code]


RUN = {
    "shell": lambda case, code: ["sh", "-c", code],
    "Python": lambda case, code: ["/usr/bin/python3", "-c",
                                  "import pymemcache, redis; print(%s)" % code],
    "Node": node,
    "PHP": lambda case, code: ["php", "-r", code],
    "Ruby": lambda case, code: ["ruby", "-rredis", "-rdalli", "-e", "puts(%s)" % code],
    "Perl": lambda case, code: ["perl", "-MRedis", "-MCache::Memcached::Fast", "-e",
                                "print(%s)" % code],
    "Go": go_run,
}


def shown():
    """{language: (Redis, memcached)}"""
    with open(README, encoding="utf-8") as f:
        return {m[1]: (m[2], m[3]) for m in map(ROW.match, f) if m}


def first_id(case, code, argv):
    """The first ID that it prints: a client may keep its process alive."""
    with open(case.path("errors"), "w+") as errors:
        p = subprocess.Popen(argv, env=clean_env(matrix.GO_ENV), cwd=harness.HERE, stderr=errors,
                             stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                             preexec_fn=die_with_parent)
        said, end = b"", time.monotonic() + PATIENCE_S
        found = None
        while not found and select.select([p.stdout], [], [], max(0, end - time.monotonic()))[0]:
            data = os.read(p.stdout.fileno(), 1 << 16)
            said += data
            found = re.search(rb"\d{15,}", said)
            if not data:
                break
        p.kill()
        p.wait()
        errors.seek(0)
        assert found, "%s: expected an ID, found %r\n%s" % (code, said, errors.read())
    return int(found[0])


def register(language):
    @test("%s: what the README shows gives an ID" % language, beside=True, timeout=300)
    def run(case):
        if not matrix.DEBIAN:
            raise runner.Skip("needs Debian's packages")
        if language == "Node":
            runner.need_node_modules()
        s = case.sidecar("static:77", {"workers.spare": 0})
        for code, port, ours in zip(shown()[language], (6380, 11212), (s.resp_port, s.mc_port)):
            assert str(port) in code, "expected port %d in %s" % (port, code)
            code = code.replace(str(port), str(ours))
            value = first_id(case, code, RUN[language](case, code))
            assert ids.worker_of(value) == 77, "%s: found %d" % (code, value)


for language_shown in RUN:
    register(language_shown)


@test("no language is shown that is not run, but Java")
def all_run(case):
    expected, found = set(RUN) | UNTESTED, set(shown())
    assert found == expected, "expected %s, found %s" % (sorted(expected), sorted(found))
