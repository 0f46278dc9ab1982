"""Each of packaging/examples/recipes, as it stands, in an application: a thousand rows of an SQLite
database from four processes with three threads each, the sidecar away in the midst."""

import json
import os
import re
import shutil
import socket
import sqlite3
import threading
import time

import harness
import ids
import matrix
import runner
from procs import Proc, until
from runner import test

RECIPES = os.path.join(harness.TOP, "packaging", "examples", "recipes")
APPS = os.path.join(harness.HERE, "recipes")
WORKER = 77
HALF, ALL = 520, 1000  # rows
AWAY_S = 0.5
# As a browser reads and writes it: numbers in quotes stay what they are.
BROWSER = ("const rows = JSON.parse(require('fs').readFileSync(0, 'utf8'));"
           "console.log(JSON.stringify({ids: rows.map(r => r.id),"
           " rounded: rows.map(r => String(Number(r.id)))}));")


def python(_case, name):
    return ["/usr/bin/python3", "-B", os.path.join(APPS, name + "_app.py")], {
        "PYTHONPATH": RECIPES, "PYTHONWARNINGS": "ignore::DeprecationWarning"}


def ruby(_case, name):
    return ["ruby", os.path.join(APPS, name + "_app.rb")], {"RUBYLIB": RECIPES}


def go(case, name):
    package = case.path("go/src/ids")
    os.makedirs(package)
    shutil.copy(os.path.join(RECIPES, name + "_ids.go"), package)
    env = {**matrix.GO_ENV, "GOPATH": case.path("go") + ":" + matrix.GO_ENV["GOPATH"]}
    # libsqlite3: with the system's SQLite, which is all that Debian's package knows
    with runner.untimed():
        case.run("go", "build", "-tags", "libsqlite3", "-o", case.path("app"),
                 os.path.join(APPS, name + "_app.go"), env=env, expect=0, timeout=None)
    return [case.path("app")], {}


# `generate` would fetch an engine for migrations, which nothing here needs, unless it is told of one.
GENERATE = ["env", "PRISMA_SCHEMA_ENGINE_BINARY=/bin/true", "CHECKPOINT_DISABLE=1",
            "node_modules/.bin/prisma", "generate", "--schema", "schema.prisma"]


def prisma(case, name):
    home = os.path.join(APPS, name)
    runner.need_node_modules(home, GENERATE)
    os.symlink(os.path.join(home, "node_modules"), case.path("node_modules"))
    shutil.copy(os.path.join(RECIPES, name + "_ids.mjs"), case.dir)
    return ["node", shutil.copy(os.path.join(APPS, name + "_app.mjs"), case.dir)], {}


JARS = ":".join("/usr/share/java/%s.jar" % jar for jar in (
    "hibernate3", "hibernate-entitymanager", "hibernate-commons-annotations", "geronimo-jpa_2.0_spec",
    "geronimo-jta-1.2-spec", "dom4j", "commons-collections3", "antlr", "javassist", "slf4j-api",
    "slf4j-nop", "sqlite-jdbc"))


def java(case, name):
    home, classes = os.path.join(APPS, name), case.path("classes")
    shutil.copytree(home, classes)
    with runner.untimed():
        case.run("javac", "-d", classes, "-cp", JARS, os.path.join(RECIPES, "SidflakeIds.java"),
                 os.path.join(home, "JpaApp.java"), expect=0, timeout=None)
    return ["java", "-XX:TieredStopAtLevel=1", "-cp", classes + ":" + JARS, "JpaApp"], {}


APP = {  # recipe: makes argv and the environment
    "SQLAlchemy": (python, "sqlalchemy"),
    "Django": (python, "django"),
    "ActiveRecord": (ruby, "active_record"),
    "database/sql": (go, "sql"),
    "Prisma": (prisma, "prisma"),
    "JPA": (java, "jpa"),
}


def app_of(case, recipe):
    if not matrix.DEBIAN:
        raise runner.Skip("needs Debian's packages")
    how, name = APP[recipe]
    return how(case, name)


def rows(database):
    """The keys, and what column they are in."""
    with sqlite3.connect(database, timeout=20) as db:
        columns = db.execute("PRAGMA table_info(orders)").fetchall()
        return [k for k, in db.execute("SELECT id FROM orders")], {c[1]: c[2] for c in columns}


def count(app, database):
    assert app.running(), app.log()
    try:
        return len(rows(database)[0])
    except sqlite3.OperationalError:
        return 0  # no table yet


def look_at(case, database, json_path, started_ms):
    keys, columns = rows(database)
    assert len(keys) == ALL, "expected %d rows, found %d" % (ALL, len(keys))
    assert len(set(keys)) == ALL, "expected %d keys, found %d" % (ALL, len(set(keys)))
    assert columns["id"].lower() == "bigint", "expected BIGINT, found %s" % columns
    for key in keys:
        made, worker, _ = ids.decode(key)
        assert worker == WORKER, "%d: expected workerId %d, found %d" % (key, WORKER, worker)
        assert started_ms - ids.SLACK_MS <= made <= ids.now_ms() + ids.SLACK_MS, "%d" % key
    with open(json_path) as f:
        text = f.read()
    browser = json.loads(case.run("node", "-e", BROWSER, stdin=text, expect=0).stdout)
    assert sorted(browser["ids"]) == sorted(map(str, keys)), "JSON has other IDs: " + text[:200]
    assert browser["rounded"] != browser["ids"], "expected numbers that JavaScript rounds"


def register_rows(recipe):
    @test("%s: keys are unique over threads, forks and a restart" % recipe, beside=True, timeout=300)
    def run(case):
        argv, env = app_of(case, recipe)
        s = case.sidecar("static:%d" % WORKER, {"workers.spare": 0})
        started_ms = ids.now_ms()
        database, sign, json_path = (case.path(n) for n in ("orders.db", "sign", "orders.json"))
        with sqlite3.connect(database) as db:
            db.execute("PRAGMA journal_mode=WAL")  # who looks keeps nobody from writing
        app = Proc(case, "app", argv + [database, sign, json_path],
                   {**env, "IDS_URL": "redis://127.0.0.1:%d" % s.resp_port}).start()
        until("half of the rows", lambda: count(app, database) == HALF, 80, 0.05)
        s.stop()
        open(sign, "w").close()
        time.sleep(AWAY_S)
        n = count(app, database)
        assert n < ALL, "expected the application to wait for IDs, found %d rows" % n
        s.start()
        assert app.wait(60) == 0, app.log()
        look_at(case, database, json_path, started_ms)


class Script:
    """A server that gives these replies, one a request, and closes where it is None."""

    def __init__(self, *replies):
        self.replies = list(replies)
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.url = "redis://127.0.0.1:%d" % self.socket.getsockname()[1]
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        while True:
            with self.socket.accept()[0] as c:
                while self.replies and c.recv(4096):
                    reply = self.replies.pop(0)
                    if reply is None:
                        break
                    c.sendall(reply)


REFUSALS = [b"-ERR each range of time held has ended\r\n", b"-NOAUTH Authentication required.\r\n",
            b"*-1\r\n", b"*0\r\n"]
PASSING = [None, b"-LOADING no workerId is held yet\r\n", b"-TRYAGAIN the clock is behind\r\n"]
IDS = b"*2\r\n$18\r\n943065207314323456\r\n$18\r\n943065207314323457\r\n"


def register_errors(recipe):
    @test("%s: what passes is asked again, and nothing else" % recipe, beside=True, timeout=300)
    def run(case):
        argv, env = app_of(case, recipe)
        script = Script(*REFUSALS, *PASSING, IDS)
        said = case.run(*argv, env={**env, "IDS_URL": script.url}, expect=0,
                        stdin="\n" * (len(REFUSALS) + 2)).stdout.splitlines()
        for refusal, line in zip(REFUSALS, said):
            assert line.startswith("error "), "%r: found %r" % (refusal, said)
        expected = ["id 943065207314323456", "id 943065207314323457"]
        assert said[len(REFUSALS):] == expected, "expected %s, found %s" % (expected, said)
        assert not script.replies, "not asked for: %r" % script.replies


for of in APP:
    register_rows(of)
    register_errors(of)


@test("both recipes for Python have the same text for IDs")
def same_text(case):
    found = []
    for name in ("sqlalchemy_ids.py", "django_ids.py"):
        with open(os.path.join(RECIPES, name)) as f:
            found.append(re.search(r"\n# ---- IDs; .*?\n# ---- the", f.read(), re.S)[0])
    assert found[0] == found[1], "expected one text, found two"
