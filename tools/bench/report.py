"""Rows, and how they are shown: as a table, as JSON, and as a plot."""

import json
import os
import platform
import statistics
import sys
import textwrap


def spread(values):
    """Median, least and greatest."""
    return {"median": statistics.median(values), "min": min(values), "max": max(values)}


def short(v):
    """1234567 as 1.23M."""
    for unit, size in (("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if abs(v) >= size:
            return f"{v / size:.3g}{unit}"
    return f"{v:.3g}"


class Target:
    """A number held against a bound, both shown."""

    def __init__(self, what, value, bound, at_least=True, unit="", text=None):
        self.what, self.value, self.bound, self.unit = what, value, bound, unit
        self.at_least, self.text = at_least, text
        self.met = None if value is None else (value >= bound if at_least else value <= bound)

    def json(self):
        return {"what": self.what, "value": self.value, "bound": self.bound, "unit": self.unit,
                "at_least": self.at_least, "met": self.met}

    def measured(self):
        return self.text or ("not measured" if self.value is None else
                             short(self.value) + self.unit)

    def wanted(self):
        return ("≥ " if self.at_least else "≤ ") + short(self.bound) + self.unit

    def verdict(self):
        return {True: "met", False: "NOT MET", None: "-"}[self.met]


class Row:
    def __init__(self, group, what):
        self.group, self.what = group, what
        self.targets, self.notes, self.lines, self.data = [], [], [], {}

    def target(self, *args, **kwargs):
        self.targets.append(Target(*args, **kwargs))

    def note(self, text):
        self.notes.append(text)

    def table(self, rows):
        """Cells as text; the first row is the head, and the first column to the left."""
        widths = [max(map(len, column)) for column in zip(*rows)]
        for cells in rows:
            first, *others = (c.rjust(w) for c, w in zip(cells, widths))
            self.lines.append("  ".join([first.strip().ljust(widths[0]), *others]))

    def json(self):
        return {"group": self.group, "what": self.what, "notes": self.notes, "data": self.data,
                "targets": [t.json() for t in self.targets]}


def machine():
    model = ""
    try:
        with open("/proc/cpuinfo") as f:
            model = next((x.split(":", 1)[1].strip() for x in f if x.startswith("model name")), "")
    except OSError:
        pass
    return {"cpus": os.cpu_count(), "model": model, "kernel": platform.release(),
            "machine": platform.machine()}


def print_row(row):
    print(f"\n{row.what}")
    for t in row.targets:
        print(f"    {t.what:<52} {t.measured():>16}   {t.wanted():>14}   {t.verdict()}")
    for line in row.lines:
        print("      " + line)
    for n in row.notes:
        print(textwrap.fill(n, 110, initial_indent="      ", subsequent_indent="        "))
    sys.stdout.flush()


def print_summary(rows):
    targets = [(r, t) for r in rows for t in r.targets]
    met = sum(t.met is True for _, t in targets)
    unknown = sum(t.met is None for _, t in targets)
    print(f"\n{met} of {len(targets)} targets met, {len(targets) - met - unknown} not, "
          f"{unknown} not measured. Nothing here is a test.")
    for r, t in targets:
        if t.met is False:
            print(f"  not met: {r.what}: {t.what}: {t.measured()}, wanted {t.wanted()}")


def write_json(path, document):
    with open(path, "w") as f:
        json.dump(document, f, indent=1)
        f.write("\n")


def plot(path, sweeps):
    """Throughput and latency against depth and connections. False: matplotlib is not there."""
    try:
        import matplotlib
    except ImportError:
        return False
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt
    fig, axes = plt.subplots(2, len(sweeps), figsize=(6 * len(sweeps), 9), squeeze=False)
    for column, sweep in enumerate(sweeps):
        top, bottom = axes[0][column], axes[1][column]
        for name, points in sweep["series"].items():
            x = [p["x"] for p in points]
            (line,) = top.plot(x, [p["rate"] for p in points], marker="o", label=name)
            bottom.plot(x, [p["p50_us"] for p in points], marker="o", color=line.get_color(),
                        label=name + " p50")
            bottom.plot(x, [p["p99_us"] for p in points], marker=".", linestyle=":",
                        color=line.get_color(), label=name + " p99")
        for ax, label in ((top, "requests/s"), (bottom, "latency, us")):
            ax.set_xscale("log", base=2)
            ax.set_yscale("log")
            ax.set_xlabel(sweep["x"])
            ax.set_ylabel(label)
            ax.grid(True, which="both", alpha=0.2)
            ax.legend(fontsize="small")
        top.set_title(sweep["title"])
    fig.tight_layout()
    fig.savefig(path, dpi=90)
    return True
