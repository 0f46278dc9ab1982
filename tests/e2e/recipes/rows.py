"""What an application in Python does in test_recipes.py: a thousand rows from four processes.

    APP DATABASE GO JSON    writes the rows, the second half once the file GO is there; then JSON
    APP                     an ID, or the error, for each line that it is given
"""

import os
import sys
import threading
import time
import traceback

BEFORE, CHILDREN, THREADS, ROWS = 40, 3, 3, 40  # a half is THREADS * ROWS: more than one batch
PATIENCE_S = 45


def in_threads(insert):
    failed = []

    def rows():
        try:
            for _ in range(ROWS):
                insert()
        except BaseException:
            failed.append(traceback.format_exc())
    threads = [threading.Thread(target=rows) for _ in range(THREADS)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not failed, "\n".join(failed)


def halves(insert, go):
    in_threads(insert)
    end = time.monotonic() + PATIENCE_S
    while not os.path.exists(go):
        assert time.monotonic() < end, "no sign to go on"
        time.sleep(0.02)
    in_threads(insert)


def child(insert, go):
    status = 1
    try:
        halves(insert, go)
        status = 0
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(status)


def write(insert, before_fork, go, lock):
    """The parent has used a part of a batch when its children are made, and holds the recipe's lock,
    as when another of its threads is just asking."""
    for _ in range(BEFORE):
        insert()
    before_fork()
    pids = []
    with lock:
        for _ in range(CHILDREN):
            pid = os.fork()
            if pid == 0:
                child(insert, go)
            pids.append(pid)
    halves(insert, go)
    assert [os.waitpid(pid, 0)[1] for pid in pids] == [0] * CHILDREN, "a child failed"


def main(next_id, rows):
    """rows: DATABASE, GO -> JSON."""
    if len(sys.argv) == 1:
        for _ in sys.stdin:
            try:
                print("id", next_id("orders"))
            except Exception as e:
                print("error", type(e).__name__, e)
        return
    database, go, json_path = sys.argv[1:]
    text = rows(database, go)
    with open(json_path, "w") as f:
        f.write(text)
