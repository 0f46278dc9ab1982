"""Which fault comes when: several at once, each a generator that yields the seconds until its next
step and heals what it did before it ends.

Invariants
  - A fault has what it needs (a sidecar, its clock, the coordinator, …) for itself.
  - Each fault that the run must have is begun once, in random order; after that all come by weight
    until the time is over. All that begin also end.
  - A fault of the coordinator begins when the sidecars have got over the one before: a loss that
    finds nobody with anything to lose shows nothing.
"""

import inspect
import time

ABREAST = 3  # faults at a time
OVER_S = 12  # after which the coordinator's next fault comes all the same


PERSONAL = ("sidecar", "clock", "link")  # each sidecar has one: itself, its clock, its link


class Fault:
    """name; on: words for what it needs: PERSONAL ones of the sidecar that run() is given, or of
    another ("sidecar:0") or of all ("sidecar:*"), and others, which stand for themselves;
    run(world, sidecar), or run(world) where no sidecar has to be chosen."""

    def __init__(self, name, on, run, weight=1):
        self.name, self.on, self.run, self.weight = name, on.split(), run, weight
        self.personal = len(inspect.signature(run).parameters) == 2

    def needs(self, world, sidecar):
        out = set()
        for word in self.on:
            word, _, which = word.partition(":")
            if which == "*":
                out |= {(word, s.index) for s in world.sidecars}
            elif which or word in PERSONAL:
                out.add((word, int(which) if which else sidecar.index))
            else:
                out.add((word, None))
        return out


def table():
    """A decorator that registers faults, and the list of those."""
    faults = []

    def fault(name, on, weight=1):
        def register(run):
            faults.append(Fault(name, on, run, weight))
            return run
        return register
    return fault, faults


class Active:
    def __init__(self, world, fault, sidecar, now):
        self.fault, self.sidecar, self.due = fault, sidecar, now
        self.needs = fault.needs(world, sidecar)
        self.steps = fault.run(world, sidecar) if fault.personal else fault.run(world)
        self.label = fault.name + (" (%s)" % sidecar.name if sidecar else "")


class Schedule:
    def __init__(self, world, faults, seconds):
        self.world, self.faults, self.rng = world, faults, world.rng
        self.todo = [f for f in world.required() if f in faults]
        self.rng.shuffle(self.todo)
        self.end = time.monotonic() + seconds
        self.active = []
        self.next_start = 0
        self.eased = 0  # the end of the coordinator's last fault

    def done(self):
        over = time.monotonic() >= self.end and not self.todo
        return (over or self.world.failures) and not self.active

    def wants_more(self, now):
        if self.world.failures or len(self.active) >= ABREAST or now < self.next_start:
            return False
        return self.todo or now < self.end

    def free_target(self, fault):
        """(found, sidecar)"""
        if "coordinator" in fault.on and self.world.waiting and \
                time.monotonic() < self.eased + OVER_S:
            return False, None
        taken = set().union(*(a.needs for a in self.active))
        targets = self.world.sidecars if fault.personal else [None]
        free = [s for s in targets if not taken & fault.needs(self.world, s)]
        return bool(free), self.rng.choice(free) if free else None

    def candidates(self):
        """In the order in which they are tried. Of those that are still to come, what most others
        wait for comes first."""
        if not self.todo:
            return self.rng.choices(self.faults, [f.weight for f in self.faults])
        queue = [f.on[0] for f in self.todo]
        return sorted(self.todo, key=lambda f: -queue.count(f.on[0]))

    def begin(self, now):
        for fault in self.candidates():
            found, sidecar = self.free_target(fault)
            if not found:
                if not self.todo:
                    self.todo.append(fault)  # it waits, or those that need much would never come
                continue
            if fault in self.todo:
                self.todo.remove(fault)
            self.active.append(Active(self.world, fault, sidecar, now))
            self.world.note("begin  " + self.active[-1].label)
            break
        # Every kind is to come once before the time is over.
        left = self.end - now
        mean = min(1.0, max(0.05, left / (len(self.todo) + 1) / 2)) if self.todo else 1.0
        self.next_start = now + self.rng.uniform(0, 2 * mean)

    def step(self, a, now):
        try:
            a.due = now + (next(a.steps) or 0)
            return True
        except StopIteration as stop:
            w = self.world
            if "coordinator" in a.fault.on:
                self.eased = now
            if stop.value:  # why it could not be done
                w.skipped.setdefault(a.fault.name, stop.value)
            else:
                w.counts[a.fault.name] += 1
            w.note("end    " + a.label + (": skipped: " + stop.value if stop.value else ""))
            return False

    def turn(self):
        now = time.monotonic()
        for a in [a for a in self.active if a.due <= now]:
            if not self.step(a, now):
                self.active.remove(a)
        if self.wants_more(now):
            self.begin(now)
        if not self.done():
            time.sleep(0.01)

    def look(self):
        """Now and then: who is ready, and who could be."""
        needs = set().union(*(a.needs for a in self.active))
        own = {i for word, i in needs if word in PERSONAL}
        self.world.look({s for s in self.world.sidecars if s.index in own},
                        any(word == "coordinator" for word, _ in needs))
