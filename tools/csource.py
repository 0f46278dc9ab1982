"""What the source checks share: which files there are, and C without its comments and strings."""

import os
import re

SKIPPED = {".git", "build", "node_modules", "__pycache__"}

TOKEN = re.compile(
    r"/\*.*?\*/"  # comment
    r"|//(?:\\\n|[^\n])*"  # the other comment, which check-banned refuses
    r'|"(?:\\.|[^"\\\n])*"'  # string
    r"|'(?:\\.|[^'\\\n])*'",  # character
    re.DOTALL,
)


def files(*tops, endings=("",)):
    """Paths below the tops, sorted; a top that is a file stands for itself."""
    found = [top for top in tops if os.path.isfile(top) and top.endswith(tuple(endings))]
    for top in tops:
        for directory, below, names in os.walk(top):
            below[:] = sorted(set(below) - SKIPPED)
            found += [os.path.join(directory, n) for n in names if n.endswith(tuple(endings))]
    return sorted(os.path.normpath(path) for path in found)


def read(path):
    with open(path, encoding="utf-8", errors="replace") as file:
        return file.read()


def blank(match):
    text = match[0]
    if text.startswith("//"):
        return "//" + " " * (len(text) - 2)
    kept = text[0] if text[0] in "\"'" else " "
    inside = re.sub(r"[^\n]", " ", text[1:-1])
    return kept + inside + kept


def code(text):
    """The text with comments and what is in quotes blanked; lines and columns stay."""
    return TOKEN.sub(blank, text)
