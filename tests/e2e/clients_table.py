"""CLIENTS.md: what was seen with each client, written from a run and held against the next ones.

A run that writes it sets SIDFLAKE_CLIENTS_ROWS to a directory, in which each client's test leaves
its row.
"""

import json
import os

import harness
import matrix

PATH = os.path.join(harness.HERE, "CLIENTS.md")
ROWS = "SIDFLAKE_CLIENTS_ROWS"
COLUMNS = ("client", "version", "from", "speaks", "one ID", "batch", "missing key", "refused write",
           "restart", "unix socket", "INCR", "real server behind")
NOT_COMPARED = ("version",)  # a system's update is no change of ours
HOW = "tests/e2e/run --clients-table"
HEAD = """# Clients

Written by `%s`: what each client was seen to do with a sidecar. `make test`
looks again, and fails where it sees something else; a newer version alone is no failure.

No client is given an option that it would not need for the real server: the same program
([clients/](clients/README.md)) drives it against a real Redis or memcached first.

| column | says |
|---|---|
| one ID | `get id:orders` gives an ID, an exact string |
| batch | what gives %d IDs in one call, exact strings, all different; a key among them that is no ID has no value |
| missing key | what a key without the prefix gives |
| refused write | what `set id:orders` gives, by the client's own way of telling; the next `get` gives an ID at once, on the same connection unless the table says otherwise |
| restart | whether the client goes on by itself after the sidecar was restarted, or after which pause of its own |
| unix socket | whether the client connects to one |
| INCR | the integer: exact, or rounded to 53 bits by the client, or wrong; – where it has no such call |
| real server behind | with `upstream` set: the same row again, and other keys are written and read through the sidecar |

"""


def line(cells):
    return "| " + " | ".join(cells) + " |"


def cells(client, row):
    named = {"client": client.name, "version": client.version() or "?", "from": client.origin(),
             "speaks": client.speaks, **row}
    return {column: named[column] for column in COLUMNS}


def read():
    """{client: {column: cell}} of the file."""
    with open(PATH, encoding="utf-8") as f:
        rows = [[c.strip() for c in text.strip("| \n").split(" | ")] for text in f
                if text.startswith("| ")]
    assert list(COLUMNS) in rows, "CLIENTS.md has other columns: " + HOW
    rows = rows[rows.index(list(COLUMNS)) + 1:]
    return {row[0]: dict(zip(COLUMNS, row)) for row in rows}


def seen(client, row):
    """Called by a client's test with what it saw."""
    found = cells(client, row)
    directory = os.environ.get(ROWS)
    if directory:
        name = "%d.json" % [c.name for c in matrix.CLIENTS].index(client.name)
        with open(os.path.join(directory, name), "w") as f:
            json.dump(found, f)
        return
    said = read().get(client.name)
    assert said, "CLIENTS.md has no row for it: " + HOW
    different = ["%s: it says %r, found %r" % (column, said[column], found[column])
                 for column in COLUMNS
                 if column not in NOT_COMPARED and said[column] != found[column]]
    assert not different, "CLIENTS.md is out of date (%s): %s" % (HOW, "; ".join(different))


def write(directory):
    """From the rows in the directory, of which none may be missing."""
    rows = []
    for number, client in enumerate(matrix.CLIENTS):
        with open(os.path.join(directory, "%d.json" % number)) as f:
            rows.append(json.load(f))
    with open(PATH, "w", encoding="utf-8") as f:
        f.write(HEAD % (HOW, matrix.BATCH))
        f.write(line(COLUMNS) + "\n|" + "---|" * len(COLUMNS) + "\n")
        f.write("".join(line([row[c] for c in COLUMNS]) + "\n" for row in rows))
