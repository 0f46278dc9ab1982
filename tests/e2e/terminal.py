"""A pseudo-terminal with a program on it, and what stands on its screen.

Knows the escapes that sidflakectl sends: moves, erasing, styles, the alternate screen, the cursor.
Anything else is a failed test.
"""

import codecs
import fcntl
import os
import pty
import re
import select
import signal
import struct
import termios
import time

from procs import clean_env, until

ESCAPE = re.compile(r"\x1b\[(\?)?([0-9;]*)([A-Za-z])")


class Screen:
    def __init__(self, rows, cols):
        self.resize(rows, cols)
        self.alternate, self.cursor, self.styles = False, True, set()

    def resize(self, rows, cols):
        self.rows, self.cols = rows, cols
        self.cells = [[" "] * cols for _ in range(rows)]
        self.row = self.col = 0
        self.stale = True  # until it is drawn anew, what comes may be meant for another size …
        self.outside = None  # … and so may be what was drawn as the size changed: until the next

    def feed(self, text):
        """Returns what is left: an escape that has not come to its end."""
        at = 0
        while at < len(text):
            if text[at] != "\x1b":
                self.put(text[at])
                at += 1
                continue
            m = ESCAPE.match(text, at)
            if not m:
                assert len(text) - at < 16, "an unknown escape: %r" % text[at:at + 16]
                return text[at:]
            self.escape(m[1], m[2], m[3])
            at = m.end()
        return ""

    def put(self, c):
        if c == "\r":
            self.col = 0
        elif c == "\n":
            self.row += 1
        else:
            assert c >= " ", "a control character: %r" % c
            if self.row < self.rows and self.col < self.cols:
                self.cells[self.row][self.col] = c
            elif not self.stale:
                self.outside = "%r at %d, %d is outside %dx%d" % (c, self.row, self.col, self.rows,
                                                                   self.cols)
            self.col += 1

    def escape(self, private, number, what):
        if private:
            assert number in ("1049", "25") and what in "hl", (number, what)
            setattr(self, "alternate" if number == "1049" else "cursor", what == "h")
        elif what == "H":
            row, col = (number or "1;1").split(";")
            self.row, self.col = int(row) - 1, int(col) - 1
        elif what == "J":
            self.cells = [[" "] * self.cols for _ in range(self.rows)]
            self.stale, self.outside = False, None
        elif what == "K" and self.row < self.rows:
            self.cells[self.row][self.col:] = [" "] * max(0, self.cols - self.col)
        elif what != "K":
            assert what == "m", (number, what)
            self.styles |= set(number.split(";"))

    def drawn(self):
        """For the size that it has."""
        return not self.stale and not self.outside

    def text(self):
        return "\n".join("".join(row).rstrip() for row in self.cells)


class Terminal:
    """A program on a terminal of its own; ends with the case."""

    def __init__(self, argv, rows=24, cols=80, env=None):
        self.screen = Screen(rows, cols)
        self.raw = b""
        self.decoder = codecs.getincrementaldecoder("utf-8")()
        self.rest = ""
        self.status = None
        environment = clean_env({"TERM": "xterm", "LC_ALL": "C.UTF-8", **(env or {})})
        environment.pop("NO_COLOR", None) if "NO_COLOR" not in (env or {}) else None
        go, ready = os.pipe()
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.read(go, 1)  # it changes the terminal at once
            os.execvpe(argv[0], argv, environment)
        self.size(rows, cols)
        self.was = termios.tcgetattr(self.fd)
        os.write(ready, b"!")
        os.close(ready)
        os.close(go)

    def size(self, rows, cols):
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, cols, 0, 0))

    def resize(self, rows, cols):
        self.read(0)
        self.screen.resize(rows, cols)
        self.size(rows, cols)

    def read(self, timeout):
        """Takes in what has come; False at the end."""
        if not select.select([self.fd], [], [], timeout)[0]:
            return True
        try:
            data = os.read(self.fd, 65536)
        except OSError:
            return False
        self.raw += data
        self.rest = self.screen.feed(self.rest + self.decoder.decode(data))
        return bool(data)

    def shows(self, pattern, timeout=10):
        def shown():
            self.read(0.05)
            return not self.screen.outside and re.search(pattern, self.screen.text(), re.M)
        try:
            return until("the screen shows /%s/" % pattern, shown, timeout)
        except AssertionError as e:
            raise AssertionError("%s; %s it shows\n%s" % (e, self.screen.outside or "",
                                                          self.screen.text()))

    def keys(self, text):
        os.write(self.fd, text.encode())

    def signal(self, signo):
        os.kill(self.pid, signo)

    def end(self, timeout=10):
        """Its exit status, negative for a signal's, once it has ended."""
        deadline = time.monotonic() + timeout
        while self.status is None:
            assert time.monotonic() < deadline, "it did not end"
            self.read(0.05)
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self.status = os.waitstatus_to_exitcode(status)
        while self.read(0.1) and time.monotonic() < deadline:
            pass  # the kernel may pass on what was written after the end of who wrote it
        assert not self.screen.outside, self.screen.outside
        return self.status

    def is_given_back(self):
        now = termios.tcgetattr(self.fd)
        return self.screen.cursor and not self.screen.alternate and now[3] == self.was[3]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.status is None:
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
        os.close(self.fd)
