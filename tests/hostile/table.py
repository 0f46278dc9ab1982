"""What rows say: what falls short, tables for people, and their places in the documents."""

import json
import os
import re

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
P99_US = 20_000
LONGEST_US = 1_000_000  # of a good client's requests, which p99 forgives: one that waits asks no other
LIVEZ_US = 1_000_000
LOGIN_US = 2_000_000
LOG_LINES = 100
PEAK_KIB, AFTER_KIB = 64 * 1024, 8 * 1024


def version():
    with open(os.path.join(TOP, "Makefile")) as f:
        return re.search(r"^VERSION := (\S+)", f.read(), re.M).group(1)


# ---- what falls short ----------------------------------------------------------------------------


def slow(row):
    for kind, what in (("ids", "IDs"), ("there", "other keys"), ("own", "own connections")):
        if row[kind] and row[kind]["p99_us"] > P99_US:
            yield "p99 of %s %s" % (what, ms(row[kind]["p99_us"]))
        elif row[kind] and row[kind]["max_us"] > LONGEST_US:
            yield "%s wait up to %s" % (what, ms(row[kind]["max_us"]))
    if row["livez"]["max_us"] > LIVEZ_US:
        yield "/livez after " + ms(row["livez"]["max_us"])
    login = row["login"]
    if login and (login["errors"] or not login["requests"] or login["max_us"] > LOGIN_US):
        yield "a first login: %s, %d of %d failed" % (
            ms(login["max_us"]), login["errors"], login["requests"])


def wrong(row):
    if row["errors"]:
        yield "%s of the requests failed (%s)" % (
            share(row), "; ".join("%s: %s" % i for i in row["first_errors"].items())[:160])
    if row["wrong"]:
        yield "%d wrong replies" % row["wrong"]
    if row["livez"]["errors"]:
        yield "/livez failed %d of %d times" % (row["livez"]["errors"], row["livez"]["requests"])
    if row["attack"].get("watched"):
        yield "another client's value read %d times" % row["attack"]["watched"]


def left(row):
    if not row["running"]:
        yield "it has ended"
    if row["connections_left"] != 0:
        yield "%s connections left over" % row["connections_left"] if row["running"] and \
            row["connections_left"] is not None else "/metrics has no answer"
    if row["descriptors_left"] > 2:
        yield "%d descriptors left over" % row["descriptors_left"]
    if row["log_lines"] > LOG_LINES:
        yield "%d lines logged" % row["log_lines"]
    if row["kubernetes"] and row["rss_peak_kib"] > PEAK_KIB:
        yield "%s resident" % mib(row["rss_peak_kib"])
    if row["kubernetes"] and row["rss_after_kib"] > AFTER_KIB:
        yield "%s resident %d s later" % (mib(row["rss_after_kib"]), row["settle_s"])


def shortfalls(row):
    """Each thing that is not as it must be, in words."""
    if "unsupported" in row:
        return ["not supported by this build: " + row["unsupported"]]
    if "failed" in row:
        return ["the test failed: " + row["failed"].strip().splitlines()[-1]]
    found = [row["crash"]] if "crash" in row else []
    if "holds" in row:
        return found + ([] if row["holds"] else [row["note"]])
    return found + [text for look in (slow, wrong, left) for text in look(row)]


def verdict(row):
    return "; ".join(shortfalls(row)) or "holds"


# ---- tables --------------------------------------------------------------------------------------


def ms(us):
    return "%.1f ms" % (us / 1000) if us < 10_000 else \
        "%.0f ms" % (us / 1000) if us < 1_000_000 else "%.1f s" % (us / 1e6)


def mib(kib):
    return "%.1f MiB" % (kib / 1024) if kib < 10 * 1024 else "%.0f MiB" % (kib / 1024)


def share(row):
    if not row["errors"]:
        return "0"
    percent = 100 * row["error_share"]
    return "%.1f %%" % percent if percent >= 0.1 else "< 0.1 %"


def p99(seen):
    return ms(seen["p99_us"]) if seen else "-"


def livez(row):
    seen = row["livez"]
    text = ms(seen["max_us"])
    return text + ", %d of %d failed" % (seen["errors"], seen["requests"]) if seen["errors"] else text


HEAD = ["attack", "IDs, p99", "longest", "other keys, p99", "errors", "/livez, longest", "resident",
        "later", "log lines"]


def cells(row):
    return [row["what"], p99(row["ids"]), ms(row["ids"]["max_us"]) if row["ids"] else "-",
            p99(row["there"]), share(row), livez(row), mib(row["rss_peak_kib"]),
            mib(row["rss_after_kib"]), str(row["log_lines"])]


def is_load(row):
    return "rss_peak_kib" in row


def is_check(row):
    return not is_load(row)


def markdown_table(head, lines):
    escaped = [[c.replace("|", "\\|") for c in line] for line in lines]
    return "\n".join("| " + " | ".join(line) + " |" for line in
                     [head, ["---"] * len(head)] + escaped)


def markdown(rows):
    """The loads, then what holds or does not."""
    loads = [r for r in rows if is_load(r)]
    checks = [r for r in rows if is_check(r)]
    parts = []
    if loads:
        parts.append(markdown_table(["item"] + HEAD + ["falls short"], [
            [str(r["item"] or "")] + cells(r) + ["; ".join(shortfalls(r))] for r in loads]))
    if checks:
        parts.append(markdown_table(["item", "what must hold", "holds"], [
            [str(r["item"]), r["what"],
             "yes" if not shortfalls(r) else "no: " + verdict(r)] for r in checks]))
    return "\n\n".join(parts)


def roff(text):
    """A cell that stays in one line."""
    text = text.replace("\\", "\\e").replace("`", "").replace("-", "\\-").replace('"', "\\(dq")
    return re.sub(r"^([.'])", r"\\&\1", text).replace(" ", "\\ ")


def columns(head, widths, lines):
    out = [".Bl -column " + " ".join('"%s"' % w for w in widths)]
    out += [".It " + " Ta ".join(map(roff, line)) for line in [head] + lines]
    return "\n".join(out + [".El"])


WIDE = 38  # columns of a page that has 78


def cut(text):
    text = re.sub(r"^([\d,]+) connections", r"\1", text.replace("`", ""))
    return text if len(text) <= WIDE else text[:text.rfind(" ", 0, WIDE - 3)] + " ..."


def man(rows):
    lines = [[cut(r["what"]), p99(r["ids"]), p99(r["there"]), share(r),
              "fails" if r["livez"]["errors"] else ms(r["livez"]["max_us"])]
             for r in rows if is_load(r)]
    return columns(["attackers", "IDs", "others", "errors", "/livez"],
                   ["x" * WIDE, "00 ms", "00 ms", "0000 %", "0000 ms"], lines)


# ---- documents -----------------------------------------------------------------------------------


def put(path, begin, end, text):
    """Replaces what stands between two lines."""
    with open(path) as f:
        old = f.read()
    found = re.search(re.escape(begin) + "\n(.*?)" + re.escape(end) + "\n", old, re.S)
    assert found, "%s: expected the lines %s and %s" % (path, begin, end)
    with open(path, "w") as f:
        f.write(old[:found.start(1)] + text + "\n" + old[found.end(1):])


def rewrite(path):
    with open(path) as f:
        run = json.load(f)
    of = "Version %s, %s." % (run["version"], run["date"])
    put(os.path.join(TOP, "tests", "README.md"), "<!-- hostile -->", "<!-- end of hostile -->",
        of + "\n\n" + markdown(run["rows"]))
    put(os.path.join(TOP, "packaging", "man", "sidflake-protocols.7"), '.\\" hostile',
        '.\\" end of hostile', of + "\n" + man(run["rows"]))
    return 0
