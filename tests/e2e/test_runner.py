"""The runner of these tests: what a test builds takes nothing of its time, and has a limit of its own."""

import signal
import subprocess
import time

import harness
import runner
from procs import clean_env, until
from runner import test


@test("a test's clock stands while it builds, and goes on afterwards", timeout=2)
def stands(_case):
    with runner.untimed():
        time.sleep(2.5)
    left = signal.getitimer(signal.ITIMER_REAL)[0]
    assert 0 < left <= 2, "expected up to 2 s, found %.1f s" % left
    assert 2.5 <= runner.CLOCK.untimed_s() < 20, runner.CLOCK.untimed_s()


@test("a build that never ends is ended, and the test fails")
def ends(_case):
    try:
        with runner.untimed(1):
            time.sleep(30)
    except TimeoutError:
        pass
    else:
        raise AssertionError("expected an end after 1 s")
    assert runner.CLOCK.untimed_s() < 20, runner.CLOCK.untimed_s()


@test("a test that hangs is killed by the runner, though it has built before")
def killed(_case):
    def hangs(_):
        signal.signal(signal.SIGALRM, signal.SIG_IGN)
        with runner.untimed(1):
            pass
        time.sleep(60)
    grace, runner.GRACE_S = runner.GRACE_S, 0.5
    try:
        run = runner.Run(runner.Test("hangs", hangs, 1, False), 1)
        until("the runner's limit is reached", lambda: time.monotonic() > run.deadline(), 10)
        passed, text = run.finish(hung=True)
    finally:
        runner.GRACE_S = grace
    assert not passed and "hung" in text and run.seconds < 10, (text, run.seconds)


@test("a target that builds or runs tests installs what they need")
def installs(_case):
    for target, job in (("unit", "unit"), ("quick", "unit"), ("lint", "lint"), ("sim", "unit"), ("replay", "unit"),
                        ("e2e", "test"), ("model", "test"), ("mutants", "test"), ("chaos", "test"),
                        ("soak", "test"), ("hostile", "test"), ("differential", "test"), ("storm", "test")):
        said = subprocess.run(["make", "-n", target], cwd=harness.TOP, env=clean_env({"MAKEFLAGS": ""}), text=True,
                              capture_output=True, timeout=60, check=True).stdout
        jobs = [line.split()[1:] for line in said.splitlines() if line.startswith("tools/install-deps ")]
        assert any(job in asked for asked in jobs), (target, jobs)


@test("what takes its sources from the history installs git, and before a recipe asks for the commit")
def has_git(_case):
    for job in ("test", "deb", "rpm", "image", "files"):
        said = subprocess.run(["tools/install-deps", "list", job], cwd=harness.TOP, text=True, capture_output=True,
                              timeout=60, check=True).stdout.split()
        assert "git" in said, (job, said)
    rules = subprocess.run(["make", "-qp", "help"], cwd=harness.TOP, env=clean_env({"MAKEFLAGS": ""}), text=True,
                           capture_output=True, timeout=60).stdout
    for target in ("deb", "rpm", "image"):
        assert "\n%s: ready-%s\n" % (target, target) in rules, target
