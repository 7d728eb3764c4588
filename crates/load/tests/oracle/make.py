"""Writes mlrsearch.txt: what PyPI's MLRsearch 1.2.1 (FD.io CSIT) says of random trials, and what it
finds on simulated devices. The test `mlrsearch` has our search say the same.

    pip install MLRsearch==1.2.1
    python3 make.py > mlrsearch.txt
"""

import random
from types import SimpleNamespace

import MLRsearch
from MLRsearch.target_stat import TargetStat


def classified(draw):
    """A goal, trials at one load, and what they say: `c GOAL | TRIALS | LOW HIGH LOSS`."""
    trial = draw.choice([1.0, 2.0, 10.0])
    goal = SimpleNamespace(
        loss_ratio=draw.choice([0.0, 0.005, 0.1]),
        exceed_ratio=draw.choice([0.0, 0.25, 0.5, 0.75]),
        trial_duration=trial,
        duration_sum=trial * draw.choice([1, 2, 5, 21]),
    )
    stat = TargetStat(goal)
    trials = []
    for _ in range(draw.randrange(30)):
        duration = draw.choice([trial, trial, trial * 2, trial / 2, trial / 8])
        # Numbers that binary fractions hold, so that sums are exact.
        effective = duration + draw.choice([0.0, 0.125, 0.5])
        loss = draw.choice([0.0, 0.0, 0.001, 0.005, 0.006, 0.25, 1.0])
        result = SimpleNamespace(
            duration_with_overheads=effective, loss_ratio=loss, intended_duration=duration
        )
        stat.add(result)
        trials.append(f"{duration},{effective},{loss}")
    optimistic, pessimistic = stat.estimates()
    goal = f"{goal.loss_ratio} {goal.exceed_ratio} {goal.trial_duration} {goal.duration_sum}"
    says = f"{int(optimistic)} {int(pessimistic)} {stat.pessimistic_loss_ratio!r}"
    return f"c {goal} | {' '.join(trials)} | {says}"


class Device(MLRsearch.AbstractMeasurer):
    """Loses a share of all packets, and a share of those above its capacity."""

    def __init__(self, capacity, floor, slope):
        self.capacity, self.floor, self.slope = capacity, floor, slope
        self.trials = 0

    def measure(self, intended_duration, intended_load):
        self.trials += 1
        over = max(0.0, 1.0 - self.capacity / intended_load)
        loss = min(1.0, self.floor + self.slope * over)
        # The count is enough packets for any share.
        count = 10**15
        return MLRsearch.MeasurementResult(
            intended_duration=intended_duration,
            intended_load=intended_load,
            offered_count=count,
            intended_count=count,
            loss_count=round(count * loss),
        )


def searched(draw):
    """A device and what was found: `s CAPACITY FLOOR SLOPE LEAST MOST | NDR | PDR | TRIALS`."""
    least, most = 1e4, 1e7
    capacity = 10 ** draw.uniform(3.9, 7.1)
    floor = draw.choice([0.0, 0.0, 0.0, 0.002, 0.02])
    slope = draw.choice([1.0, 1.0, 0.1])
    device = Device(capacity, floor, slope)
    goals = [
        MLRsearch.SearchGoal(loss_ratio=loss, fail_fast=False) for loss in (0.0, 0.005)
    ]
    config = MLRsearch.Config()
    config.goals = goals
    config.min_load, config.max_load = least, most
    config.search_duration_max = 1e9
    config.warmup_duration = None
    found = MLRsearch.MultipleLossRatioSearch(config).search(device, debug=lambda _: None)
    results = []
    for goal in goals:
        result = found[goal]
        bounds = [
            "-" if bound is None else repr(float(bound))
            for bound in (
                result.relevant_lower_bound,
                result.relevant_upper_bound,
                result.conditional_throughput,
            )
        ]
        results.append(" ".join(bounds))
    what = f"{capacity!r} {floor} {slope} {least} {most}"
    return f"s {what} | {' | '.join(results)} | {device.trials}"


def main():
    """Writes all."""
    draw = random.Random(9971)
    for _ in range(400):
        print(classified(draw))
    for _ in range(40):
        print(searched(draw))


main()
