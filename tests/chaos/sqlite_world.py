"""Several sidecars on one SQLite file. They share a host, so they share its clock: when it is
stepped, it is for all of them and for the coordinator at once."""

import os
import shutil
import sqlite3
import time

import counting
import faults
from faults import HOUR, MS, YEAR, fill
from schedule import table
from world import POOL, RANGE, SKEW_S, World

fault, FAULTS = table()
OLD_PAGE = [f for f in faults.FAULTS if f.run is faults.old_page]
STOPPED_S = 3  # without a number: grants have stopped, since something was lost
MARGIN = 1000000  # more than sidecars hold, or were given and did not get to anybody
SMALL_KIB = 6144  # room for the file, its log and a state page


class SqliteWorld(World):
    name = "sqlite"
    numbers = True
    lane = 1

    def setup(self):
        small = self.mount_small("full", SMALL_KIB)
        self.file = os.path.join(small or self.dir, "pool.db")
        self.latest = 0  # the largest offset that the clock ever had
        self.given = {}  # sequence -> its highest number, the highest that was said, since when
        self.init("--workers", "0-%d" % (RANGE - 1))
        self.add_sidecars()

    @property
    def faults(self):
        return [f for f in faults.FAULTS if "clock" not in f.on] + FAULTS + OLD_PAGE

    def url(self, _i=0):
        return "sqlite://" + self.file

    @property
    def coordinator(self):
        return self.url()

    def init(self, *mode):
        status, text = self.ctl("pool", "init", "--coordinator", self.coordinator, *mode, *POOL)
        if status not in (0, 1):
            self.note("pool init %s: status %d: %s" % (" ".join(mode), status, text))
        return status == 0

    def pass_time(self, seconds):
        super().pass_time(seconds)
        self.latest = max(self.latest, self.clocks.get(0))

    def catch_up(self):
        """A coordinator whose clock was ahead answers again once that time has come."""
        if self.clocks.get(0) < self.latest - 2 * SKEW_S:
            self.must_stop()
            self.clocks.set(0, self.latest + 1)

    def look(self, suffering, coordinator):
        super().look(suffering, coordinator)
        for name in counting.SEQUENCES if self.numbers else ():
            self.reopen(name)

    def reopen(self, name):
        """Here nothing skips: what may have been lost an operator has to say."""
        highest = max(counting.latest(s.numbers, name) for s in self.everyone())
        before, said, since = self.given.get(name, (0, 0, time.monotonic()))
        if highest != before or time.monotonic() - since < STOPPED_S:
            self.given[name] = highest, said, since if highest == before else time.monotonic()
            return
        above = max(highest, said) + MARGIN
        status, text = self.ctl("seq", "reopen", name, "--above", str(above), "--yes",
                                "--coordinator", self.coordinator)
        self.note("seq reopen %s: status %d: %s" % (name, status, text))
        self.counts["seq reopen, since no numbers come"] += status == 0
        self.given[name] = highest, above, time.monotonic()

    def heal(self):
        self.catch_up()
        if not os.path.exists(self.file):
            self.recover_now()

    def workers_of(self, _s):
        return []  # whoever claims next gets the longest free: those of the dead, too

    def prefer(self, _workers, _s):
        pass

    def remove(self):
        if os.path.exists(self.file):
            os.unlink(self.file)

    def connect(self):
        return sqlite3.connect(self.file, timeout=0.3, isolation_level=None)


# ---- the host's clock --------------------------------------------------------------------------

def host_steps(w, sizes):
    w.must_stop()
    for _ in range(w.rng.randint(2, 4)):
        size = w.rng.choice(sizes) * w.rng.choice((1, 1, -1))
        w.pass_time(size)
        yield w.rng.uniform(0.1, 0.8)
        w.pass_time(-size)
        yield w.rng.uniform(0.1, 0.8)
    w.catch_up()
    yield 1


@fault("clock of the host by 1 to 20 ms", "time", 2)
def host_ms(w):
    yield from host_steps(w, (1 * MS, 2 * MS, 5 * MS, 14 * MS, 20 * MS))


@fault("clock of the host by 0.1 to 60 s", "time", 2)
def host_s(w):
    yield from host_steps(w, (0.1, 0.9, 1, 2, 10, 15, 60))


@fault("clock of the host by 1 h", "time")
def host_h(w):
    yield from host_steps(w, (HOUR,))


@fault("clock of the host by 1 year", "time", 0)
def host_y(w):
    """Once in a run: the years of an epoch are few, and one that was seen is over."""
    yield from host_steps(w, (YEAR,))


# ---- the file ----------------------------------------------------------------------------------

@fault("the file locked by somebody else", "coordinator")
def locked(w):
    db = w.connect()
    try:
        for _ in range(20):
            try:
                db.execute("BEGIN EXCLUSIVE")
                break
            except sqlite3.OperationalError:
                yield 0.05
        yield w.rng.uniform(0.5, 3)
    finally:
        db.close()
    yield 0.3


def is_copied(source, to):
    """By SQLite itself, as .backup and .restore of its shell do; or not, within a second."""
    end = time.monotonic() + 1
    source, to = sqlite3.connect(source, timeout=0.2), sqlite3.connect(to, timeout=0.2)

    def in_time(*_):
        if time.monotonic() > end:
            raise TimeoutError

    try:
        source.backup(to, progress=in_time)
    except TimeoutError:
        return False
    finally:
        source.close()
        to.close()
    return True


def copy_of(source, to):
    """Who is stopped in the midst of a transaction holds it up, and goes on by another turn."""
    while not is_copied(source, to):
        yield 0.2


@fault("the file set back in place under sidecars that run, and a newcomer", "coordinator disk")
def set_back(w):
    kept = w.path("back.db")
    yield from copy_of(w.file, kept)
    yield w.rng.uniform(0.2, 2)
    w.sidecars[0].renew_life()  # it claims, which is forgotten next
    yield w.rng.uniform(0.6, 1.5)
    inode = os.stat(w.file).st_ino
    yield from copy_of(kept, w.file)
    if os.stat(w.file).st_ino != inode:
        return "expected the file to be the same one, found another"
    w.sidecars[-1].renew_life()
    os.unlink(kept)
    yield 1


@fault("all SIGKILLed, an old copy of the file put in its place", "coordinator disk sidecar:* clone")
def old_copy(w):
    kept = w.path("old.db")
    yield from copy_of(w.file, kept)
    yield w.rng.uniform(0.2, 2)
    w.sidecars[0].renew_life()
    yield w.rng.uniform(0.2, 0.6)
    w.must_stop()
    for s in w.sidecars:
        s.kill()
    w.remove()
    shutil.move(kept, w.file)
    last = w.sidecars[-1]
    if os.path.exists(last.page()) and w.rng.random() < 0.7:
        os.unlink(last.page())  # it claims what was claimed since the copy
    for s in reversed(w.sidecars):
        s.start()
    yield 1


@fault("all SIGKILLed at once, restarted, the clock back meanwhile or not", "sidecar:* time", 2)
def all_killed(w):
    w.must_stop()
    for s in w.sidecars:
        s.kill()
    w.pass_time(w.rng.choice((0, -0.02, -0.3, -1)))
    yield w.rng.choice((0, w.rng.uniform(0, 0.5)))
    for s in w.sidecars:
        s.start()
    yield 1


@fault("the file deleted while in use, pool made again", "coordinator disk")
def deleted(w):
    w.remove()
    yield w.rng.uniform(0, 1)
    yield from w.made_again()
    yield 1


@fault("disk full under the file", "coordinator disk")
def database_full(w):
    if not w.mounts:
        return "expected to be allowed to mount a tmpfs, found that mount fails"
    filler = os.path.join(w.mounts[0], "filler")
    fill(filler)
    try:
        yield w.rng.uniform(1, 3)
    finally:
        os.unlink(filler)
    yield 0.3


