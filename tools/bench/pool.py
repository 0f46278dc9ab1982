"""Rows about the generator alone, and about what one Redis bears."""

import json
import subprocess

from lab import Failure
from report import Row, short, spread

SIDECARS = 32768
RENEW_EVERY = 20.0


def inproc(lab, *args):
    done = subprocess.run([lab.tool("inproc"), *map(str, args)], capture_output=True, text=True)
    if done.returncode:
        raise Failure(done.stderr.strip())
    return json.loads(done.stdout)["rate"]


def generator(lab):
    row = Row("generator", "generator in process, one ID per call, one core")
    rounds, ids = (3, 20_000_000) if lab.quick else (7, 200_000_000)
    for members in (1, 16):
        rate = spread([inproc(lab, "ids", "virtual", members, ids) for _ in range(rounds)])
        row.target(f"virtual clock, active {members}", rate["median"], 200e6, unit=" IDs/s")
        row.data[f"virtual {members}"] = rate
    rate = inproc(lab, "some", "virtual", 1, ids * 10)
    row.note(f"virtual clock, up to 1,024 IDs per call: {short(rate)} IDs/s")
    for members in (1, 16):
        ceiling = members * 1_024_000
        rate = inproc(lab, "ids", "real", members, ceiling // (4 if lab.quick else 1))
        row.target(f"real clock, active {members}: share of the ceiling", rate / ceiling * 100, 99,
                   unit=" %")
        row.note(f"real clock, asked for each ID, active {members}: {short(rate)} IDs/s of "
                 f"{short(ceiling)}")
        row.data[f"real {members}"] = rate
    yield row


def run_claims(lab, pool, connections, workers, rounds, how):
    """(what, rate, seconds of Redis per operation) for each phase."""
    redis = lab.coordinator()
    lab.init_pool(pool)
    before = redis.run_seconds()
    process = subprocess.Popen(
        [lab.tool("claims"), lab.coordinator_url, pool, str(connections), str(workers), str(rounds),
         how], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    phases = []
    for line in process.stdout:
        after, phase = redis.run_seconds(), json.loads(line)
        phases.append((phase["what"], phase["rate"], (after - before) / phase["done"]))
        before = after
    if process.wait() != 0:
        raise Failure(process.stderr.read().strip())
    return phases


def claims(lab):
    row = Row("claims", f"claims and renewals against one Redis, {SIDECARS} workerIds, "
              "16 connections")
    workers = 8192 if lab.quick else SIDECARS
    rounds = 1 if lab.quick else 3
    kept = run_claims(lab, "claims-keep", 16, workers, rounds, "keep")
    fresh = run_claims(lab, "claims-fresh", 16, workers, rounds, "reconnect")
    claimed = [p for p in kept + fresh if p[0] == "claim"]
    first, last = claimed[0], claimed[len(claimed) // 2 - 1]
    rate = spread([p[1] for p in claimed])
    row.target("claims, connections kept", rate["median"], 10000, unit="/s",
               text=f"{short(rate['median'])} ({short(rate['min'])}-{short(rate['max'])})")
    row.target("the last eighth of the pool against the first", last[2] / first[2], 1.2, False,
               " x Redis time")
    for name, phases in (("kept", kept), ("opened for each", fresh)):
        renewed = spread([p[1] for p in phases if p[0] == "renew"])
        cost = spread([p[2] for p in phases if p[0] == "renew"])
        share = SIDECARS / RENEW_EVERY * cost["median"]
        row.target(f"renewals, connections {name}", renewed["median"], 10000, unit="/s")
        row.note(f"connections {name}: a renewal takes {cost['median'] * 1e6:.0f} us of Redis; "
                 f"{SIDECARS} sidecars renewing every {RENEW_EVERY:.0f} s take "
                 f"{share * 100:.1f} % of one Redis")
        row.data[f"renewals {name}"] = {"rate": renewed, "redis_s": cost, "share": share}
    row.note("Redis time per claim, by eighths of the pool: " + ", ".join(
        f"{p[2] * 1e6:.0f}" for p in claimed[:len(claimed) // 2]) + " us; a release takes "
        f"{[p for p in kept if p[0] == 'release'][0][2] * 1e6:.0f} us")
    row.data["phases"] = {"kept": kept, "reconnect": fresh}
    yield row
