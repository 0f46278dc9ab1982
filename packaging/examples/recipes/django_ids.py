"""BIGINT primary keys from sidflake for Django 3.2 and later, with redis-py.

    class Order(models.Model):
        id = SidflakeIdField()
        total = models.IntegerField()

The key is set when the object is made, also for bulk_create, from `id:` and the name of its table.
JavaScript rounds such numbers, so JSON has them as strings:

    JsonResponse({"id": str(order.id), "total": order.total})
"""

from functools import partial

from django.db import models

# ---- IDs; the same in each recipe for Python ------------------------------------------------------

import collections
import os
import threading
import time

import redis

URL = os.environ.get("IDS_URL", "redis://127.0.0.1:6380")  # or unix:///PATH
BATCH = 100
KEEP_S = 1.0  # an ID has the time of its batch: what is left of an older one is thrown away
PATIENCE_S = 10.0  # a sidecar that restarts is waited for


class Batches:
    """The IDs that one process has taken and not used yet."""

    def __init__(self):
        self.pid = os.getpid()
        self.lock = threading.Lock()
        self.left = {}  # name: (IDs, until when)
        self.redis = redis.Redis.from_url(URL, socket_connect_timeout=1, socket_timeout=2)

    def next(self, name):
        with self.lock:
            ids, until = self.left.get(name, ((), 0))
            if not ids or time.monotonic() > until:
                ids = self.take(name)
                self.left[name] = ids, time.monotonic() + KEEP_S
            return ids.popleft()

    def take(self, name):
        """A batch. To ask again does no harm: IDs whose reply was lost are never given to others."""
        end, pause = time.monotonic() + PATIENCE_S, 0.05
        while True:
            try:
                ids = self.redis.lpop("id:" + name, BATCH)
                break
            except redis.RedisError as error:
                if not passing(error) or time.monotonic() + pause > end:
                    raise
            time.sleep(pause)
            pause = min(2 * pause, 1.0)
        if not ids:
            raise LookupError("no IDs: is it sidflake that listens at IDS_URL?")
        return collections.deque(map(int, ids))


def passing(error):
    """Whether to ask again: no connection, no answer, -LOADING and -TRYAGAIN."""
    if isinstance(error, (redis.AuthenticationError, redis.exceptions.AuthorizationError)):
        return False  # which redis-py counts among the errors of connections
    return isinstance(error, (redis.ConnectionError, redis.TimeoutError,
                              redis.exceptions.TryAgainError)) or str(error).startswith("TRYAGAIN")


batches = Batches()


def next_id(name):
    """A fresh ID, an int, from any thread and process."""
    global batches
    mine = batches
    # A child of fork() has a copy of its parent's batches, which the parent goes on to use, of its
    # connection, and of a lock that may be held for ever. Not os.register_at_fork: uWSGI forks
    # without it.
    if mine.pid != os.getpid():
        mine = batches = Batches()
    return mine.next(name)


# ---- the field ------------------------------------------------------------------------------------


class SidflakeIdField(models.BigIntegerField):
    """A BIGINT primary key; foreign keys to it are BIGINT, too."""

    OURS = {"primary_key": True, "editable": False}

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **{**kwargs, **self.OURS})

    def contribute_to_class(self, cls, name, **kwargs):
        super().contribute_to_class(cls, name, **kwargs)
        # A default, so that Django knows that a new object needs INSERT and no UPDATE before it.
        self.default = partial(next_id, cls._meta.db_table)

    def deconstruct(self):
        """For migrations, which need not know how keys are made."""
        name, path, args, kwargs = super().deconstruct()
        for ours in (*self.OURS, "default"):
            kwargs.pop(ours, None)
        return name, path, args, kwargs
