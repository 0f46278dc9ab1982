"""Texts that numbers were written as, taken apart again; and how long they get."""

import json

from runner import test
from test_auth import CRYPT, basic
from test_numbers import sidecar, stores
from test_seq import both
from test_sequences import sqlite

SN = "SN-@{seq}-@{check,linear,9,31,10,of=seq}"
DAY = "INV-@{date,%Y%m%d}-@{seq,width=5}@{check,damm}"


@test("decode takes texts of a sequence apart, by the templates that it had, too, and checks their digit")
def by_sequence(case):
    for q in both(case):
        url = q.url
        for name, how in (("invoice", ("--reset", "day", "--template", DAY)), ("sn", ("--template", SN)),
                          ("plain", ())):
            q.run("create", name, *how, "--on-loss", "refuse")
        q.run("alter", "sn", "--template", SN.replace("SN", "SM"))

        def decode(name, *texts, expect=0):
            r = case.ctl("decode", "--coordinator", url, "--seq", name, *texts, expect=expect)
            return r.stdout, r.stderr

        assert decode("invoice", "INV-20261122-000417") == (
            "INV-20261122-000417 sequence=invoice number=41 period=2026-11-22 check=7\n", "")
        out, said = decode("sn", "SN-417-2", "SN-417-3", "SO-1-1", "SM-417-2", expect=1)
        assert out == ("SN-417-2 sequence=sn number=417 check=2\nSM-417-2 sequence=sn number=417 check=2\n"), out
        assert 'expected check digit "2" by linear at character 8, found "3"' in said, said
        assert 'expected "SM-" at character 1, found "SO-"' in said, said
        j = json.loads(decode("sn", "SN-417-2", "--json")[0])
        assert j == [{"text": "SN-417-2", "sequence": "sn", "number": 417, "period": None, "sub": None,
                      "arguments": {}, "check": "2"}], j
        assert "without" in decode("plain", "1", expect=1)[1]
        assert "none named" in decode("nix", "1", expect=1)[1]


@test("decode needs no pool where the template is said")
def by_template(case):
    def decode(*args, expect=0):
        r = case.ctl("decode", *args, expect=expect)
        return r.stdout if expect == 0 else r.stderr

    serial = "@{date,%Y%m%d}@{seq,width=5}"
    assert decode("--template", serial, "2017030400001") == "2017030400001 number=1 period=2017-03-04\n"
    assert decode("--template", serial, "--reset", "month", "2017030100001") == (
        "2017030100001 number=1 period=2017-03\n")
    assert 'expected "01" at character 7' in decode("--template", serial, "--reset", "month",
                                                    "2017030400001", expect=1)
    assert "where the first ends" in decode("--template", "@{sub}@{seq}", "a1", expect=2)
    assert "--seq NAME" in decode("--template", "@{name}@{seq}", "a1", expect=2)
    assert "--coordinator" in decode("--seq", "a", "a1", expect=2)
    assert decode("--template", "@{name}.@{seq}", "--seq", "a", "a.1") == "a.1 sequence=a number=1\n"


@test("GET /v1/decode/TEXT takes apart what no: gave, and says which digit was expected")
def over_http(case):
    for url in stores(case):
        s = sidecar(case, url)
        text = s.http("/v1/no/policy?area=010&unit=6541").text.strip()
        assert text == "010-6541-00001", text
        body = s.http("/v1/decode/" + text).text
        assert body == ("text=010-6541-00001\nseq=policy\nnumber=1\nargument.area=010\n"
                        "argument.unit=6541\n"), body
        sn = s.http("/v1/no/sn").text.strip()
        assert sn == "SN-417-2", sn
        body = s.http("/v1/decode/SN-417-3").text
        assert 'expected check digit "2" by linear' in body, body
        order = s.http("/v1/no/order").text.strip()
        assert s.http("/v1/decode/" + order).text.startswith("id="), order  # digits alone are an ID ...
        body = s.http("/v1/decode/%s?seq=order" % order).text
        assert "seq=order\nnumber=1\nperiod=" in body, body  # ... unless it is said
        assert s.http("/v1/decode/SN-417-2?seq=policy").status == 400
        assert s.http("/v1/decode/nothing").status == 400


@test("a text is taken apart for who may have such numbers, whoever else's it may be, too")
def rights(case):
    path = case.path("users")
    with open(path, "w") as f:
        f.write("ann:%s\neve:%s:names=mine\nacme:%s:names=*:acme\n" % (CRYPT, CRYPT, CRYPT))
    s = sidecar(case, sqlite(case), ["hidden --on-loss refuse --template N-@{seq}-@{check,luhn}",
                                     "mine --on-loss refuse --template N-@{arg,a,width=1}-@{seq,width=1}",
                                     "tenant --subs --on-loss refuse --template @{sub}/@{seq}"],
                options={"auth.mode": "required", "auth.users_file": path})

    def decode(user, text):
        reply = s.http("/v1/decode/" + text, basic(user, "secret"))
        return reply.status, reply.text

    for path in ("hidden", "mine?a=1", "mine?a=1", "tenant:acme"):  # which are known in this order
        assert s.http("/v1/no/" + path, basic("ann", "secret")).status == 200
    assert decode("ann", "N-1-8") == (200, "text=N-1-8\nseq=hidden\nnumber=1\ncheck=8\n")
    for text in ("N-1-8", "N-1-2"):  # the second would be wrong of the other one
        assert decode("eve", text) == (200, "text=%s\nseq=mine\nnumber=%s\nargument.a=1\n" % (text, text[-1]))
    status, why = decode("eve", "N-11-2")
    assert status == 400 and "luhn" not in why and "hidden" not in why, why
    assert "luhn" in decode("ann", "N-11-2")[1]
    assert decode("acme", "acme%2F1") == (200, "text=acme/1\nseq=tenant\nnumber=1\nsub=acme\n")
    assert decode("acme", "zoo%2F1")[0] == 400
    assert decode("acme", "zoo%2F1?seq=tenant")[0] == 400 and decode("acme", "acme%2F1?seq=tenant")[0] == 200
    s.stop()


@test("seq show says how long texts get, and how many numbers are left for the template")
def how_long(case):
    for q in both(case):
        url = q.url
        q.run("create", "sn", "--template", SN, "--on-loss", "refuse")
        q.run("create", "few", "--template", "F@{seq,width=2}", "--on-loss", "refuse")
        out = q.out("show", "sn")
        assert "\nlongest      21 characters, of numbers up to 9007199254740991\n" in out, out
        q.run("reserve", "few", "90")
        form = q.json("show", "few")["form"]
        assert (form["longest"], form["last"], form["left"]) == (3, 99, 9), form
        q.run("reserve", "few", "9")
        assert "\nused up      now\n" in q.out("show", "few")
