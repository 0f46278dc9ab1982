"""The status page, in a real Chromium."""

import glob
import os
import re
import time

from browser import Driver
from harness import until
from runner import test

SPEED = 60  # an hour of history in a minute
KEEP = os.environ.get("STATUS_SHOTS")  # a directory to keep the screenshots in

LOOKS = {
    "light": {},
    "dark": {"dark": True},
    "phone": {"width": 360, "height": 740},
    "plain": {"width": 900, "javascript": False},
}

# The worst contrast of text: of each element's own text to the background it lies on.
CONTRAST = """(() => {
  const rgb = c => c.match(/[\\d.]+/g).map(Number);
  const light = c => {
    const [r, g, b] = c.map(v => (v /= 255) <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const back = e => {
    for (; e; e = e.parentElement) {
      const c = rgb(getComputedStyle(e).backgroundColor);
      if (c.length < 4 || c[3] > 0) return c.slice(0, 3);
    }
    return [255, 255, 255];
  };
  let worst = [21, ""];
  for (const e of document.querySelectorAll("body *")) {
    if (![...e.childNodes].some(n => n.nodeType === 3 && n.data.trim())) continue;
    if (["TITLE", "DESC", "SCRIPT"].includes(e.tagName.toUpperCase())) continue;
    const style = getComputedStyle(e);
    const ink = rgb(e instanceof SVGElement ? style.fill : style.color).slice(0, 3);
    const [a, b] = [light(ink), light(back(e))].sort((x, y) => y - x);
    const ratio = (a + 0.05) / (b + 0.05);
    if (ratio < worst[0]) worst = [ratio, e.outerHTML.slice(0, 80)];
  }
  return worst;
})()"""


def hurried(case):
    """A sidecar for which time passes SPEED times as fast."""
    found = glob.glob("/usr/lib/*/faketime/libfaketimeMT.so.1")
    assert found, "expected libfaketimeMT.so.1 (Debian's package libfaketime), found none"
    # No coordinator that waits for a disk or another process: that would take a minute a second.
    return case.sidecar("static:7", {"workers.spare": 0, "lease.renew_every": "20s"}, env={
        "LD_PRELOAD": found[0], "FAKETIME": "+0 x%d" % SPEED, "FAKETIME_NO_CACHE": "1",
        "NO_FAKE_STAT": "1", "TSAN_OPTIONS": "report_bugs=0"})


def check_look(browser, name):
    wide = browser.run("document.documentElement.scrollWidth")
    assert wide <= browser.width, "%s: %d wide in a window of %d" % (name, wide, browser.width)
    ratio, where = browser.run(CONTRAST)
    assert ratio >= 4.5, "%s: a contrast of %.2f at %s" % (name, ratio, where)
    background = browser.run("getComputedStyle(document.body).backgroundColor")
    assert (max(map(int, re.findall(r"\d+", background))) < 100) == (name == "dark"), background
    assert browser.run("document.querySelectorAll('main svg[role=img]').length") >= 3 + 1
    unnamed = browser.run("""[...document.querySelectorAll("svg")].filter(
        e => !e.closest("[role=img], [aria-hidden=true]")).length""")
    assert unnamed == 0, "%s: %d pictures without a name" % (name, unnamed)
    browser.check_console()
    if KEEP:
        browser.screenshot(os.path.join(KEEP, "status-%s.png" % name))


def rows(browser, heading):
    """The texts of a table's cells, row by row."""
    return browser.run("""[...document.querySelectorAll("table[aria-labelledby=%s] tbody tr")].map(
        r => [...r.cells].map(c => c.textContent.trim()))""" % heading)


def figure(browser, title):
    return browser.run("""[...document.querySelectorAll(".figures div")].find(
        d => d.firstChild.textContent === "%s").children[1].textContent""" % title)


def steps(browser, path):
    """How many samples a line of a chart has."""
    return browser.run("document.querySelector('figure > svg .%s').getAttribute('d')" %
                       path).count("H")


@test("light, dark, on a phone, without JavaScript; figures, charts and events of a live sidecar",
      timeout=180)
def looks(case):
    s = hurried(case)
    end = time.monotonic() + 4
    while time.monotonic() < end:
        s.id()
        time.sleep(0.02)
    driver = Driver(case)
    samples = []
    for name, options in LOOKS.items():
        browser = driver.browser(**options)
        browser.open("http://127.0.0.1:%d/" % s.http_port)
        assert browser.text("h2") == "Healthy", browser.text("section")
        check_look(browser, name)
        m = s.metrics()
        assert figure(browser, "workerIds") == "1 of 1"
        assert figure(browser, "Coordinator") == "up"
        issued = int(m.value("sidflake_ids_issued_total"))
        assert "%s since the start" % format(issued, ",") in browser.text(".figures")
        assert [r[:2] for r in rows(browser, "workers")] == [["7", "active"]]
        protocols = {r[0]: r[1:] for r in rows(browser, "protocols")}
        assert protocols["redis"][2] == format(issued, ","), protocols
        # 4 s are 240: 16 samples at most, and some where this machine is busy.
        samples.append(steps(browser, "one"))
        assert samples[0] >= 8, samples
        # Time that runs 60 times as fast takes small steps back, too.
        events = [e for e in rows(browser, "events") if not e[3].startswith("clock stepped back")]
        assert [e[3].split()[0] for e in events].count("listening") == 5, events
        assert "starting" in [e[3].split()[0] for e in events[-2:]], events
        assert re.fullmatch(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d", events[0][0]), events[0]
        assert events[0][3].startswith("ready held=1 ids_until=2034-09-17T10:58:26"), events[0]
        assert events[1][3].startswith("workerId held worker=7 ceiling="), events[1]
        browser.close()
    # Since then it was idle but for its renewals.
    assert samples[-1] > samples[0] + 2, samples


@test("troubles are told, with names and texts that are markup; the script renews what is shown",
      timeout=120)
def troubles(case):
    clock = case.clock()
    redis = case.pool()
    hostile = "<img src=x onerror=document.title=1>&amp;'"
    s = case.sidecar(redis, {"workers.spare": 1}, clock=clock, env={"POD_NAME": hostile})
    s.wait_held(2)
    s.id()
    browser = Driver(case).browser()
    browser.open("http://127.0.0.1:%d/" % s.http_port)
    assert browser.text("h1") == "sidflake on " + hostile
    assert hostile in browser.run("document.title") and not browser.run("document.images.length")
    browser.run("void (window.kept = true)")
    redis.kill()
    s.wait_log("coordinator down")
    s.id()
    clock.step(-60)
    s.id()
    s.wait_log("rotated")

    def told():
        browser.run("refresh()")
        return figure(browser, "workerIds") == "1 of 2"
    until("the page has the workerId that is left", told)
    assert browser.text("h2") == "Needs attention" and "of 1 h" in browser.text(".figures")
    findings = browser.text(".findings")
    assert "the coordinator is away: " in findings and "; IDs can be had until 20" in findings
    assert figure(browser, "Coordinator") == "down"
    assert "workerId 1" in browser.text("figure:nth-of-type(3) figcaption")
    assert browser.run("document.querySelector('figure.wide .bar-b[d*=Z]') !== null")
    events = [e[2:] for e in rows(browser, "events")]
    assert any(e[0] == "warn" and e[1].startswith("clock stepped back: workerId rotated last=")
               for e in events), events
    assert any(e[0] == "error" and e[1].startswith("coordinator down held=") for e in events), events
    assert s.http("/readyz").status == 200
    assert browser.run("window.kept"), "the page was loaded anew"
    check_look(browser, "trouble")

    s.kill()
    browser.run("refresh()")
    assert browser.text("header .stale") == "No answer since:"


@test("GET and HEAD, headers, and plain text for who asks for it")
def headers(case):
    s = case.sidecar(case.pool())
    page = s.http("/")
    assert page.status == 200 and page.text.endswith("</html>\n")
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    assert page.headers["cache-control"] == "no-store"
    policy = page.headers["content-security-policy"]
    nonce = re.search("script-src 'nonce-([0-9a-f]{32})'", policy).group(1)
    assert policy.startswith("default-src 'none'; ") and "unsafe" not in policy
    assert page.text.count('nonce="%s"' % nonce) == 2
    assert not re.search(r"\b(src|href)=\"?(https?:)?//", page.text), "an outside resource"
    assert nonce not in s.http("/").text
    head = s.http("/", method="HEAD")
    assert head.status == 200 and not head.text and int(head.headers["content-length"]) > 10000
    plain = s.http("/", {"Accept": "text/plain"})
    assert plain.headers["content-type"].startswith("text/plain") and "/metrics" in plain.text
    for path in re.findall(r"^/(\S*[a-z]) ", plain.text, re.M):
        if path != "healthz":  # the same as readyz
            assert re.search(r'href="%s[?"]' % path, page.text), "expected a link to /%s on the page" % path
