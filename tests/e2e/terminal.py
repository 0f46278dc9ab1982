"""A pseudo-terminal with a program on it, and what stands on its screen.

Knows what ncurses sends to an xterm: moves, erasing, inserting, scrolling, styles, the alternate
screen, the cursor. Anything else is a failed test.
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

# A control sequence; a move up that scrolls; or what does not matter: character sets, keypad modes.
ESCAPE = re.compile(r"\x1b(?:\[([?!]?)([0-9;]*)([@-~])|(M)|\(B|[=>78])")
NO_MATTER = {"t", "l", "h"}  # titles, modes


class Screen:
    def __init__(self, rows, cols):
        self.resize(rows, cols)
        self.alternate, self.cursor, self.styles = False, True, set()

    def resize(self, rows, cols):
        self.rows, self.cols = rows, cols
        self.cells = [[" "] * cols for _ in range(rows)]
        self.row = self.col = self.top = 0
        self.bottom = rows - 1  # of the region that scrolls
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
            if m[3] and m[1]:
                self.mode(m[1], m[2], m[3])
            elif m[3]:
                self.control(m[2], m[3])
            elif m[4]:
                self.up()
            at = m.end()
        return ""

    def put(self, c):
        columns = {"\r": 0, "\b": self.col - 1, "\t": (self.col | 7) + 1}
        if c in columns:
            self.col = columns[c]
            return
        if c == "\n" and self.row == self.bottom:
            self.scroll(self.top, 1)
            return
        if c == "\n":
            self.row += 1
            return
        assert c >= " ", "a control character: %r" % c
        if self.row < self.rows and self.col < self.cols:
            self.cells[self.row][self.col] = self.latest = c
        elif not self.stale:
            self.outside = "%r at %d, %d is outside %dx%d" % (c, self.row, self.col, self.rows,
                                                               self.cols)
        self.col += 1

    def up(self):
        if self.row == self.top:
            self.scroll(self.top, -1)
        else:
            self.row -= 1

    def scroll(self, top, n):
        """The lines from top to the region's end, up by n or down by -n."""
        old = self.cells[top:self.bottom + 1]
        empty = [[" "] * self.cols for _ in range(min(abs(n), len(old)))]
        self.cells[top:self.bottom + 1] = (old[n:] + empty) if n > 0 else (empty + old[:n])[:len(old)]

    def mode(self, private, numbers, what):
        for number in numbers.split(";"):
            if private == "?" and number in ("1049", "25"):
                setattr(self, "alternate" if number == "1049" else "cursor", what == "h")

    def blank(self, start, end):
        if self.row < self.rows:
            self.cells[self.row][start:end] = [" "] * (min(end, self.cols) - start)

    def control(self, numbers, what):
        ns = [int(n or 0) for n in numbers.split(";")]
        n = max(1, ns[0])
        line = self.cells[self.row] if self.row < self.rows else []
        if what == "H":
            self.row, self.col = n - 1, max(1, ns[1] if len(ns) > 1 else 1) - 1
        elif what in "AB":
            self.row += -n if what == "A" else n
        elif what in "CD":
            self.col += n if what == "C" else -n
        elif what == "G":
            self.col = n - 1
        elif what == "d":
            self.row = n - 1
        elif what == "J":
            self.cells = [[" "] * self.cols for _ in range(self.rows)] if ns[0] == 2 or (
                self.row, self.col) == (0, 0) else self.below()
            self.stale, self.outside = self.stale and ns[0] != 2, None
        elif what == "K":
            self.blank(*((self.col, self.cols) if ns[0] == 0 else (0, self.col + 1)))
        elif what == "X":
            self.blank(self.col, self.col + n)
        elif what == "b":
            for _ in range(n):
                self.put(self.latest)
        elif what == "@":
            line[self.col:] = ([" "] * n + line[self.col:])[:self.cols - self.col]
        elif what == "P":
            line[self.col:] = (line[self.col + n:] + [" "] * n)[:self.cols - self.col]
        elif what == "r":
            self.row = self.col = 0
            self.top, self.bottom = n - 1, (ns[1] if len(ns) > 1 else self.rows) - 1
        elif what in "ST":
            self.scroll(self.top, n if what == "S" else -n)
        elif what in "LM":
            self.scroll(self.row, n if what == "M" else -n)
        elif what == "m":
            self.styles |= set(numbers.split(";"))
        else:
            assert what in NO_MATTER, (numbers, what)

    def below(self):
        self.blank(self.col, self.cols)
        return self.cells[:self.row + 1] + [[" "] * self.cols for _ in self.cells[self.row + 1:]]

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
