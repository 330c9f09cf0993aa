"""Short trainings on PointReach with episodes of 10 steps."""

from hindsight_rl import HER, PointReach

SMALL = {"hidden": (8,), "batch_size": 16, "updates_per_step": 1.0, "random_steps": 20, "solved_evaluations": 0}
OPTIONS = SMALL | {"eval_every": 0}
SUBGOALS = {"subgoals": ("near achieved=0,1 goal=2,3 tolerance=0.1 switch_distance=0.5",)}  # any two columns will do
CHOICES = {"symmetries": (), "structure": "none", "goal_features": "agreement"}  # a task of bits has no mirrors


def short():
    return PointReach(max_steps=10)


def her(env=short, **options):
    return HER(env, recipe="point_reach", **({"check": False} | OPTIONS | options))


class Recorder:
    """A source that keeps the jobs that it was given."""

    def __init__(self, source):
        self.source, self.jobs = source, []

    def submit(self, job):
        self.jobs.append(job)
        return self.source.submit(job)

    def result(self, ticket):
        return self.source.result(ticket)

    def take_fault_counts(self):
        return self.source.take_fault_counts()


class Uneven(Recorder):
    """A source that returns results in the order that `first` chooses. Evaluations wait while `is_evaluating` is False."""

    def __init__(self, source, first):
        super().__init__(source)
        self.first, self.is_evaluating, self.fault_counts = first, True, {}

    def wait_any(self, tickets):
        return self.first(tickets)

    def has_result(self, ticket):
        return self.is_evaluating

    def drop(self, ticket):
        self.source.drop(ticket)

    def take_fault_counts(self):
        fault_counts, self.fault_counts = self.fault_counts, {}
        return fault_counts


def same_bytes(arrays, others):
    return set(arrays) == set(others) and all(arrays[k].tobytes() == others[k].tobytes() for k in arrays)
