"""HTTP: probes, metrics, IDs."""

import contextlib
import json
import re
import time

import ids
import wire
from harness import until
from runner import test

FAMILIES = """ids_issued_total requests_total request_duration_seconds_bucket connections worker_id
worker_range_seconds workers_held reservation_seconds tenure_age_seconds pool_era renewals_total rotations_total
state_page clock_rollbacks_total clock_rollback_seconds_bucket clock_wait_seconds_total clock_skew_seconds
sequence_exhausted_total sequence_peak coordinator_up coordinator_answers coordinator_request_seconds_bucket
coordinator_data_loss_total pool_free pool_horizon_seconds pool_first_horizon_seconds lifetime_seconds build_info
sequence_given_total sequence_left sequence_until_max sequence_used_up_seconds sequence_until_width
sequence_width_seconds sequence_block sequence_counters sequence_parked_total sequence_refused_total
sequence_takes_total sequence_take_seconds_bucket sequence_given_back_total sequence_gaps_total sequence_places
sequence_evicted_total""".split()


@test("/metrics: every family of the contract, in text and in OpenMetrics")
def metrics(case):
    s = case.sidecar(case.pool(), {"sequences.define": ["few --max 99 --on-loss refuse --template F@{seq,width=2}"]})
    s.wait_held(2)
    s.id()
    with s.resp() as r:  # of those for which it is known when they end
        until("a number", lambda: isinstance(r.ask("LPOP", "no:few", 5), list))
    page = s.http("/metrics")
    assert page.status == 200
    assert page.headers["content-type"].startswith("text/plain; version=0.0.4"), page.headers
    names = wire.Metrics(page.text).names()
    missing = [f for f in FAMILIES if "sidflake_" + f not in names]
    assert not missing and "process_resident_memory_bytes" in names, missing
    for name in {re.sub("_(bucket|sum|count)$", "", n) for n in names}:
        assert re.search(r"^# TYPE %s " % name, page.text, re.M) or name not in page.text, name
    om = s.http("/metrics", {"Accept": "application/openmetrics-text; version=1.0.0"})
    assert om.headers["content-type"].startswith("application/openmetrics-text"), om.headers
    assert om.text.endswith("# EOF\n") and "sidflake_ids_issued_total" in om.text
    m = s.metrics()
    assert m.value("sidflake_ids_issued_total") == 1
    assert m.value("sidflake_requests_total", protocol="redis", command="get", result="ok") == 1
    assert m.value("sidflake_pool_era") == 1 and m.value("sidflake_coordinator_up") == 1
    assert abs(m.value("process_resident_memory_bytes") / 1024 - s.rss_kib()) < 4096


@test("/livez /readyz /healthz, ?verbose; 503 with the reason while there is no workerId")
def probes(case):
    redis = case.redis()
    s = case.sidecar(redis, wait=False)
    s.wait_listening()
    s.wait_log("no pool")
    assert s.http("/livez").status == 200
    for path in ("/readyz", "/healthz"):
        reply = s.http(path)
        assert reply.status == 503 and "no pool" in reply.text, reply.text
        assert "[-]workerId failed" in s.http(path + "?verbose").text
    case.ctl("pool", "init", "--coordinator", redis.url, "--fresh", expect=0)
    s.wait_ready(15)
    for path in ("/livez", "/readyz", "/healthz"):
        assert s.http(path).status == 200 and "[+]loop ok" in s.http(path + "?verbose").text


@test("/readyz?verbose names the servers behind, reached or not and why, and stays 200")
def upstreams_named(case):
    s = case.sidecar(case.pool(), {"upstream.redis": "tcp://127.0.0.1:%d" % case.redis().port,
                                   "upstream.memcached": "unix:" + case.path("nobody.sock")})
    assert "upstream" not in s.http("/livez?verbose").text
    assert "[+]upstream.memcached not asked for yet\n" in s.http("/readyz?verbose").text
    with s.resp() as r, s.mc() as m:
        assert r.ask("GET", "none") is None and m.ask("get none").startswith("SERVER_ERROR")
    reply = s.http("/readyz?verbose")
    assert reply.status == 200 and "[+]upstream.redis ok\n" in reply.text, reply.text
    assert re.search(r"\[!\]upstream\.memcached: the memcached behind cannot be reached for \d+ m?s: .* \(unix:.*nobody\.sock\)$", reply.text, re.M), reply.text
    time.sleep(2)
    with s.mc() as m:
        m.ask("get again")  # in vain, and it is away no later for that
    assert re.search(r"memcached behind cannot be reached for [2-9] s: ", s.http("/readyz?verbose").text)
    age = s.metric("sidflake_upstream_state_seconds", protocol="memcached")
    assert 2 <= age < 30 and s.metric("sidflake_upstream_state_seconds", protocol="redis") < 30, age
    assert "No such file" in reply.text and reply.text.endswith("readyz check passed\n"), reply.text


@test("/v1/status: the members that sidflakectl(1) and scripts read, as the state changes")
def status(case):
    redis = case.redis()
    s = case.sidecar(redis, {"upstream.redis": "tcp://127.0.0.1:%d" % redis.port,
                             "upstream.memcached": "unix:" + case.path("nobody.sock")}, wait=False)
    s.wait_listening()

    def read():
        reply = s.http("/v1/status")
        assert reply.status == 200 and reply.headers["content-type"] == "application/json", reply
        return json.loads(reply.text)
    until("it is said", lambda: "no pool" in read()["why"])
    j = read()
    assert j["ready"] is False and j["state"] == "fail", j
    assert (j["pool"]["free"], j["workers"]["left_ms"], j["worker_ids"]) == (None, None, []), j
    case.ctl("pool", "init", "--coordinator", redis.url, "--fresh", expect=0)
    s.wait_held(2)
    s.id()
    with contextlib.suppress(wire.Closed), s.resp() as r:
        r.ask("GET", "none")
    until("counted", lambda: read()["ids"]["issued_total"] > 0)
    j = read()
    assert j["ready"] is True and j["why"] is None and j["coordinator"]["state"] == "up", j
    assert [w["use"] for w in j["worker_ids"]] == ["active", "spare"], j["worker_ids"]
    assert 0 < j["worker_ids"][0]["left_ms"] <= 30000 + 1000, j["worker_ids"]
    assert j["pool"]["free"] == 32766 and j["pool"]["first_horizon_ms"] == 30000, j["pool"]
    behind = {u["protocol"]: u for u in j["upstreams"]}
    assert behind["redis"]["state"] == "up" and behind["redis"]["why"] is None, behind
    assert behind["memcached"]["state"] == "unasked", behind
    assert sum(j["protocols"][1]["request_duration"]["counts"]) > 0, j["protocols"]
    redis.kill()

    def away():
        with contextlib.suppress(wire.Closed), s.resp() as r:
            r.ask("GET", "none")
        u = [u for u in read()["upstreams"] if u["protocol"] == "redis"][0]
        return u["state"] == "away" and u["why"] and u["errors_total"] > 0 and u["state_ms"] >= 0
    until("away", away)
    until("down", lambda: read()["coordinator"]["state"] == "down", 30)
    assert read()["findings"] and read()["ready"] is True


@test("/v1/id/NAME?n=N as text and JSON; /v1/decode/ID")
def api(case):
    s = case.sidecar(case.pool())
    ledger = ids.Ledger()
    ledger.ask(lambda: s.http("/v1/id/orders").text.split(), {0})
    got = ledger.ask(lambda: s.http("/v1/id/orders?n=1024").text.split(), {0})
    assert len(got) == 1024
    json_type = {"Accept": "application/json"}
    reply = s.http("/v1/id/orders?n=3", json_type)
    values = json.loads(reply.text)["ids"]
    assert all(isinstance(v, str) for v in values) and len(values) == 3
    assert reply.headers["content-type"].startswith("application/json")
    ledger.check(1025)
    ids.check_increasing(ledger.values() + [int(v) for v in values])
    ms, worker, sequence = ids.decode(int(values[0]))
    j = json.loads(s.http("/v1/decode/" + values[0], json_type).text)
    assert (j["unix_ms"], j["worker"], j["sequence"]) == (ms, worker, sequence), j
    assert str(ms) in s.http("/v1/decode/" + values[0]).text
    for path, status in (("/v1/id/orders?n=0", 400), ("/v1/id/orders?n=1025", 400),
                         ("/v1/id/", 404), ("/v1/decode/x", 400), ("/nothing", 404)):
        assert s.http(path).status == status, path
    assert s.http("/metrics", method="DELETE").status in (405, 501)


@test("keep-alive and pipelined requests on one connection")
def keep_alive(case):
    s = case.sidecar(case.pool())
    with wire.Stream(("127.0.0.1", s.http_port)) as c:
        c.send(b"GET /livez HTTP/1.1\r\nHost: x\r\n\r\n" * 10 +
               b"GET /readyz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        assert c.rest().count(b"HTTP/1.1 200 ") == 11
