"""A real Chromium, by chromedriver and the W3C WebDriver protocol.

Source: W3C, "WebDriver"; ChromeDriver, "Capabilities & ChromeOptions" for what begins with goog.
"""

import base64
import http.client
import json
import shutil

from procs import Proc, free_port, until


def chromium():
    names = ("chromium", "chromium-browser")
    found = [p for p in map(shutil.which, names) if p]
    assert found, "expected one of %s, found none" % ", ".join(names)
    return found[0]


class Driver(Proc):
    """chromedriver. It dies with the test, and its browsers with it."""

    def __init__(self, case):
        self.port = free_port()
        super().__init__(case, "chromedriver", ["chromedriver", "--port=%d" % self.port],
                         env={"HOME": case.dir})
        self.start()
        until("chromedriver answers", self.up, timeout=60)

    def up(self):
        try:
            return self.ask("GET", "/status")["ready"]
        except OSError:
            return False

    def ask(self, method, path, body=None, timeout=60):
        conn = http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout)
        try:
            conn.request(method, path, None if body is None else json.dumps(body))
            value = json.loads(conn.getresponse().read())["value"]
        finally:
            conn.close()
        assert not (isinstance(value, dict) and value.get("error")), \
            "%s %s: %s" % (method, path, str(value)[:500])
        return value

    def browser(self, **kwargs):
        return Browser(self, **kwargs)


class Browser:
    """One window. dark: the page is told that its reader wants dark colours; javascript: whether
    scripts of the page run."""

    def __init__(self, driver, width=1200, height=900, dark=False, javascript=True):
        self.driver, self.width = driver, width
        # --no-sandbox: tests run as root, in containers. /dev/shm is small there, too.
        options = {"args": ["--headless=new", "--no-sandbox", "--disable-gpu",
                            "--disable-dev-shm-usage", "--disable-background-networking",
                            "--no-first-run", "--hide-scrollbars"],
                   "binary": chromium()}
        capabilities = {"browserName": "chrome", "goog:chromeOptions": options,
                        "goog:loggingPrefs": {"browser": "ALL"}}
        session = driver.ask("POST", "/session",
                             {"capabilities": {"alwaysMatch": capabilities}}, timeout=120)
        self.path = "/session/" + session["sessionId"]
        self.cdp("Emulation.setDeviceMetricsOverride", width=width, height=height,
                 deviceScaleFactor=1, mobile=width < 600)
        self.cdp("Emulation.setEmulatedMedia", features=[
            {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}])
        if not javascript:
            self.cdp("Emulation.setScriptExecutionDisabled", value=True)

    def ask(self, method, path, body=None):
        return self.driver.ask(method, self.path + path, body)

    def cdp(self, command, **params):
        return self.ask("POST", "/goog/cdp/execute", {"cmd": command, "params": params})

    def open(self, url):
        self.ask("POST", "/url", {"url": url})

    def run(self, expression):
        """The value of a JavaScript expression; works where scripts of the page do not."""
        reply = self.cdp("Runtime.evaluate", expression=expression, returnByValue=True,
                         awaitPromise=True)
        assert "exceptionDetails" not in reply, reply["exceptionDetails"]
        return reply["result"].get("value")

    def text(self, selector):
        return self.run("document.querySelector(%s).innerText" % json.dumps(selector))

    def check_console(self):
        """Nothing was complained of since the last look: by scripts, network or CSP."""
        said = [e["message"] for e in self.ask("POST", "/se/log", {"type": "browser"})]
        assert not said, "expected an empty console, found %s" % said

    def screenshot(self, path):
        """The whole page, not only what the window shows."""
        size = self.cdp("Page.getLayoutMetrics")["cssContentSize"]
        clip = {"x": 0, "y": 0, "width": size["width"], "height": size["height"], "scale": 1}
        data = self.cdp("Page.captureScreenshot", captureBeyondViewport=True, clip=clip)["data"]
        with open(path, "wb") as f:
            f.write(base64.b64decode(data))

    def close(self):
        self.ask("DELETE", "")
