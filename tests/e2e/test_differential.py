"""A few seconds of the differential fuzzer, from a fixed seed; `make differential` goes on for long."""

import os
import sys

from runner import test

sys.path.append(os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "differential"))
import engine  # noqa: E402

SEED = int(os.environ.get("SEED", "1"))
ROUNDS = 1500


def held(case, mode):
    said = []
    found = engine.run(case, mode, SEED, rounds=ROUNDS, say=said.append)
    assert not found, "\n".join(said)
    # Some of these seeds' streams differ as they may: else they were not compared.
    assert mode.endswith("-users") or ", 0 of them differ" not in said[-1], said


@test("random text requests: as memcached answers, and no harm to bystanders", timeout=240)
def text(case):
    held(case, "text")


@test("random meta requests: as memcached answers, and no harm to bystanders", timeout=240)
def meta(case):
    held(case, "meta")


@test("random binary requests: as memcached answers, and no harm to bystanders", timeout=240)
def packets(case):
    held(case, "binary")


@test("random Redis requests: as Redis answers, and no harm to bystanders", timeout=240)
def resp(case):
    held(case, "resp")


@test("clients that log in, text and meta: neither another's keys nor his replies", timeout=480)
def lines_with_users(case):
    held(case, "text-users")
    held(case, "meta-users")


@test("clients that log in, binary: neither another's keys nor his replies", timeout=240)
def packets_with_users(case):
    held(case, "binary-users")


@test("clients that log in to Redis: neither another's keys nor his replies", timeout=240)
def resp_with_users(case):
    held(case, "resp-users")
