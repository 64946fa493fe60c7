# SPDX-License-Identifier: Apache-2.0
# Copyright the weightfs authors
"""Two ways to do the same thing, measured in turns, and what their times are to each other."""

import dataclasses
import statistics


@dataclasses.dataclass(frozen=True)
class Gate:
    """A bound of the ratio that fails the benchmark when it is missed."""
    bound: float
    at_least: bool

    def holds(self, ratio):
        return ratio >= self.bound if self.at_least else ratio <= self.bound

    def __str__(self):
        return f"{'>=' if self.at_least else '<='} {self.bound:.2f}"


AS_SPEED = "of its speed"
AS_TIME = "of its time"


@dataclasses.dataclass
class Comparison:
    """Times in seconds of the reference and of weightfs, pair by pair.

    `unit` says which way round the ratio is: of the reference's speed (its time by ours), or of its time
    (ours by its).
    """
    name: str
    reference: str
    unit: str
    gate: Gate | None = None
    theirs: list = dataclasses.field(default_factory=list)
    ours: list = dataclasses.field(default_factory=list)

    def measure(self, pairs, reference, weightfs):
        """Calls both in turns; each returns seconds. Who is first changes from pair to pair."""
        for number in range(pairs):
            if number % 2:
                ours, theirs = weightfs(), reference()
            else:
                theirs, ours = reference(), weightfs()
            self.theirs.append(theirs)
            self.ours.append(ours)
        return self

    @property
    def ratios(self):
        pairs = zip(self.theirs, self.ours)
        return [theirs / ours if self.unit == AS_SPEED else ours / theirs for theirs, ours in pairs]

    @property
    def ratio(self):
        return statistics.median(self.ratios)

    @property
    def passed(self):
        return self.gate is None or self.gate.holds(self.ratio)

    def row(self):
        verdict = "" if self.gate is None else f"{self.gate}  {'ok' if self.passed else 'MISSED'}"
        return (f"{self.name:<34} {statistics.median(self.theirs):8.3f} s {self.reference:<7}"
                f"{statistics.median(self.ours):8.3f} s  {self.ratio:6.2f} [{min(self.ratios):.2f} .. "
                f"{max(self.ratios):.2f}] {self.unit:<12} {len(self.ratios):3} pairs  {verdict}").rstrip()

    def as_json(self):
        return {"name": self.name, "reference": self.reference, "unit": self.unit, "ratio": self.ratio,
                "min": min(self.ratios), "max": max(self.ratios), "pairs": len(self.ratios),
                "reference_seconds": self.theirs, "weightfs_seconds": self.ours,
                "gate": str(self.gate) if self.gate else None, "passed": self.passed}
