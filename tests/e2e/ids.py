"""What an ID must be: decoding, and a ledger of all that were asked for."""

import datetime
import time

EPOCH_MS = 1767225600000  # 2026-01-01T00:00:00Z
WORKER_BITS, SEQUENCE_BITS = 15, 10
SLACK_MS = 2  # allowed around the time of asking


def now_ms():
    return time.time() * 1000


def ms_of(text):
    """Unix ms of an RFC 3339 time."""
    return round(datetime.datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp() * 1000)


def decode(value, epoch_ms=EPOCH_MS):
    """Unix ms, workerId, sequence."""
    sequence = value & ((1 << SEQUENCE_BITS) - 1)
    worker = (value >> SEQUENCE_BITS) & ((1 << WORKER_BITS) - 1)
    return (value >> (WORKER_BITS + SEQUENCE_BITS)) + epoch_ms, worker, sequence


def time_of(value):
    return decode(value)[0]


def worker_of(value):
    return decode(value)[1]


class Ledger:
    """IDs with the span of time in which each was asked for, and who may have issued it."""

    def __init__(self, epoch_ms=EPOCH_MS):
        self.epoch_ms = epoch_ms
        self.rows = []

    def __len__(self):
        return len(self.rows)

    def add(self, value, sent_ms, received_ms, workers):
        assert str(value).isdigit() or isinstance(value, bytes) and value.isdigit(), \
            "expected an ID in decimal, found %r" % (value,)
        self.rows.append((int(value), sent_ms, received_ms, workers))

    def ask(self, call, workers, clock=now_ms):
        """Calls, and enters the ID or the list of IDs that it returns."""
        sent = clock()
        got = call()
        received = clock()
        values = got if isinstance(got, (list, tuple)) else [got]
        assert values, "expected IDs, found none"
        for value in values:
            self.add(value, sent, received, workers)
        return got

    def values(self):
        return [row[0] for row in self.rows]

    def check(self, least):
        """All distinct, each of the right workerId, each of the time when it was asked for."""
        assert len(self.rows) >= least, "expected at least %d IDs, found %d" % (least, len(self))
        check_distinct(self.values())
        for value, sent, received, workers in self.rows:
            ms, worker, sequence = decode(value, self.epoch_ms)
            assert 0 < value < 1 << 63, "expected 63 bits, found %d" % value
            assert worker in workers, "ID %d: expected a workerId of %s, found %d" % (
                value, sorted(workers), worker)
            assert sent - SLACK_MS <= ms <= received + SLACK_MS, \
                "ID %d (sequence %d): expected a time of %.1f to %.1f, found %d" % (
                    value, sequence, sent, received, ms)


def check_distinct(values):
    assert len(set(values)) == len(values), "expected %d distinct IDs, found %d" % (
        len(values), len(set(values)))


def check_increasing(values):
    for a, b in zip(values, values[1:]):
        assert a < b, "expected IDs that increase, found %d after %d" % (b, a)
