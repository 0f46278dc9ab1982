"""The release before, 0.1.0, beside this version: what it wrote and runs is taken over, there and back,
and no ID is given out twice. It is built from the history."""

import fcntl
import json
import os
import shutil
import signal
import subprocess
import threading

import harness
import wire
from procs import clean_env
from runner import Skip, test, untimed

RELEASE = "5923515"  # version 0.1.0
SIDECARS = 10
MAKE = ("make", "-j2", "build/sidflake", "build/sidflakectl")


def history():
    """Whether the tree has it: an archive of sources has not, nor a clone that was cut short."""
    r = subprocess.run(["git", "-C", harness.TOP, "cat-file", "-e", RELEASE + "^{commit}"], capture_output=True)
    return r.returncode == 0


def release():
    """The directory of its programs, which the first test that asks builds."""
    if not history():
        raise Skip("the history does not have %s, which is version 0.1.0" % RELEASE)
    top = os.path.join(harness.TOP, "build", "0.1.0")
    os.makedirs(top, exist_ok=True)
    with open(os.path.join(top, "lock"), "w") as lock, untimed():
        fcntl.flock(lock, fcntl.LOCK_EX)
        built = os.path.join(top, "build")
        if not os.path.exists(os.path.join(top, "done")):
            sources = subprocess.run(["git", "-C", harness.TOP, "archive", RELEASE], capture_output=True,
                                     check=True).stdout
            subprocess.run(["tar", "-x", "-C", top], input=sources, check=True)
            env = {k: v for k, v in clean_env(None).items() if not k.startswith(("MAKE", "SIDFLAKE"))}
            r = subprocess.run(MAKE, cwd=top, env=env, capture_output=True, text=True)
            assert r.returncode == 0, r.stderr[-2000:]
            open(os.path.join(top, "done"), "w").close()
    return built


class Clients:
    """One for each sidecar, which asks all the time: whoever is away for a moment is asked again."""

    def __init__(self, sidecars):
        self.end = threading.Event()
        self.ids = [[] for _ in sidecars]
        self.wrong = []
        self.threads = [threading.Thread(target=self.ask, args=x) for x in zip(sidecars, self.ids)]

    def ask(self, s, mine):
        while not self.end.is_set():
            try:
                with s.resp() as r:
                    while not self.end.is_set():
                        got = r.ask("LPOP", "id:orders", "10")
                        if "LOADING" in str(got):  # it has just started
                            got = []
                        if not isinstance(got, list):
                            self.wrong.append("%s: %r" % (s.name, got))
                            return
                        mine += [int(x) for x in got]
                        self.end.wait(0.005)
            except (OSError, wire.Closed):
                self.end.wait(0.02)

    def __enter__(self):
        for t in self.threads:
            t.start()
        return self

    def __exit__(self, *_):
        self.end.set()
        for t in self.threads:
            t.join()

    def check(self):
        assert not self.wrong, self.wrong
        every = [x for mine in self.ids for x in mine]
        assert all(self.ids) and len(every) == len(set(every)), "%d IDs twice" % (len(every) - len(set(every)))


def rolls(case, url, made_by=None, return_every=2):
    """Of so many sidecars one gives its workerIds back when it stops; the others go on with the state
    page of the program before."""
    old = release()
    case.run(os.path.join(made_by or old, "sidflakectl"), "pool", "init", "--coordinator", url, "--fresh",
             expect=0)
    before, now = os.path.join(old, "sidflake"), harness.SIDFLAKE
    sidecars = []
    for i in range(SIDECARS):
        s = harness.Sidecar(case, case.fresh_name("sidecar"), url,
                            {"coordinator.timeout": "2s", "lease.renew_every": "3s",
                             "lease.on_stop": "return" if (i + 1) % return_every == 0 else "keep"})
        s.argv[0] = before
        sidecars.append(s.start())
    with Clients(sidecars) as clients:
        for program in (now, before, now):
            for s in sidecars:
                worker, keeps = s.worker(), s.options["lease.on_stop"] == "keep"
                assert s.stop() == 0, s.log()[-1000:]
                s.argv[0] = program
                s.start()
                assert not keeps or s.worker() == worker, "%s had %d, found %d" % (s.name, worker, s.worker())
    clients.check()
    for s in sidecars:
        s.wait_held(2)


@test("a rolling upgrade from 0.1.0, back, and again, with Redis: no ID twice", timeout=300)
def redis(case):
    rolls(case, case.redis().url)


@test("the same with an SQLite file: who keeps a workerId goes on, though each version takes what the other wrote"
      " for a file set back", timeout=300)
def sqlite(case):
    rolls(case, "sqlite://" + case.path("pool.db"), return_every=SIDECARS + 1)


@test("0.1.0 in a pool that this version has made: they claim and renew side by side", timeout=300)
def beside(case):
    rolls(case, case.redis().url, harness.BUILD)


@test("sequences in a pool that 0.1.0 serves, repairs and reopens: none begins anew, each does as it was made to",
      timeout=300)
def sequences(case):
    old, redis = release(), case.redis()
    case.ctl("pool", "init", "--coordinator", redis.url, "--fresh", expect=0)

    def seq(*args, expect=0):
        return case.ctl("seq", args[0], "--coordinator", redis.url, "--json", *args[1:], expect=expect)

    def take(name):
        return json.loads(seq("reserve", name, "10").stdout)["first"]

    for name, *loss in (("skip", "--max-rate", "100"), ("stop", "--on-loss", "refuse"), ("on", "--on-loss", "trust")):
        seq("create", name, *loss)
        assert take(name) == 1
    s = harness.Sidecar(case, "s", redis.url, {"lease.renew_every": "3s"})
    s.argv[0] = os.path.join(old, "sidflake")
    s.start()
    s.wait_held(2)
    case.run(os.path.join(old, "sidflakectl"), "pool", "check", "--coordinator", redis.url, "--repair", expect=0)
    assert take("skip") == take("stop") == 11
    redis.ask("SAVE")
    assert take("skip") == take("stop") == take("on") + 10 == 21  # which is lost
    redis.kill()
    redis.start()
    s.wait_log("pool reopened", timeout=30)
    assert "grants have stopped" in seq("reserve", "stop", "10", expect=1).stderr
    assert take("on") == 11  # by the operator's word nothing was

    def given():
        r = seq("reserve", "skip", "10", expect=None)
        return r.returncode == 0 and json.loads(r.stdout)["first"]

    assert harness.until("the line is there", given, 20) > 1000 + 400  # what it may have at once, and in 2S


def ask(r, m):
    return [int(r.ask("GET", "id:orders")), int(m.id())]


@test("SIGUSR2 from 0.1.0 to this version: connections and workerIds are taken over", timeout=300)
def in_place(case):
    old = release()
    redis = case.redis()
    case.run(os.path.join(old, "sidflakectl"), "pool", "init", "--coordinator", redis.url, "--fresh", expect=0)
    s = harness.Sidecar(case, "s", redis.url)
    s.argv[0] = case.path("program")
    shutil.copy(os.path.join(old, "sidflake"), s.argv[0])
    s.start()
    s.wait_held(2)
    worker = s.worker()
    with s.resp() as r, s.mc() as m:
        values = ask(r, m)
        shutil.copy(harness.SIDFLAKE, s.argv[0] + ".new")
        os.rename(s.argv[0] + ".new", s.argv[0])
        s.popen.send_signal(signal.SIGUSR2)
        s.wait_log("upgraded in place")
        values += ask(r, m)
    assert values == sorted(set(values)) and s.worker() == worker
    renewed = s.metric("sidflake_renewals_total", result="renewed")
    harness.until("it is renewed", lambda: s.metric("sidflake_renewals_total", result="renewed") > renewed)
