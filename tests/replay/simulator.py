# SPDX-License-Identifier: Apache-2.0
# Copyright the weightfs authors
"""Cache policies, told as plainly as can be, to compare `weightfs replay` with.

One node. A reference is (artifact, consumer, size); what does not fit is streamed. Nothing here knows
how weightfs does it; speed is no aim.
"""

import math


class Cache:
    """What is held, least recently used first, and the books of one run."""

    def __init__(self, capacity):
        self.capacity = capacity
        self.held = {}  # artifact: size
        self.evictions = 0

    def used(self):
        return sum(self.held.values())

    def use(self, artifact):
        self.held[artifact] = self.held.pop(artifact)

    def evict(self, artifacts):
        for artifact in artifacts:
            del self.held[artifact]
        self.evictions += len(artifacts)

    def insert(self, artifact, size, order):
        """Evicts as much of `order` as is needed; nothing where all of it is not enough."""
        victims = []
        room = self.capacity - self.used()
        for victim in order:
            if room >= size:
                break
            victims.append(victim)
            room += self.held[victim]
        if room >= size:
            self.evict(victims)
            self.held[artifact] = size


def lru(references, capacity):
    cache = Cache(capacity)
    for artifact, _, size in references:
        hit = artifact in cache.held
        if hit:
            cache.use(artifact)
        else:
            cache.insert(artifact, size, list(cache.held))
        yield hit, cache


def fifo(references, capacity):
    cache = Cache(capacity)
    for artifact, _, size in references:
        hit = artifact in cache.held
        if not hit:
            cache.insert(artifact, size, list(cache.held))
        yield hit, cache


def lookahead(references, capacity, distance=20):
    cache = Cache(capacity)
    for place, (artifact, _, size) in enumerate(references):
        hit = artifact in cache.held
        if hit:
            cache.use(artifact)
        else:
            coming = [known for known, _, _ in references[place + 1:place + 1 + distance]]
            unknown = [held for held in cache.held if held not in coming]
            needed = [held for held in cache.held if held in coming]
            needed.sort(key=coming.index, reverse=True)
            cache.insert(artifact, size, unknown + needed)
        yield hit, cache


def belady(references, capacity):
    """What would be needed last is streamed; of what is never needed again the newest name goes first."""
    following = [math.inf] * len(references)
    later = {}
    for place in range(len(references) - 1, -1, -1):
        following[place] = later.get(references[place][0], math.inf)
        later[references[place][0]] = place
    number = {}
    for artifact, _, _ in references:
        number.setdefault(artifact, len(number))

    cache = Cache(capacity)
    needed = {}
    for place, (artifact, _, size) in enumerate(references):
        hit = artifact in cache.held
        needed[artifact] = following[place]
        if not hit:
            later = [held for held in cache.held if needed[held] > following[place]]
            later.sort(key=lambda held: (needed[held], number[held]), reverse=True)
            cache.insert(artifact, size, later)
        yield hit, cache


def second_reference(references, capacity, probation):
    cache = Cache(capacity)
    first, proven, on_probation = {}, set(), set()
    for artifact, consumer, size in references:
        if first.setdefault(artifact, consumer) != consumer:
            proven.add(artifact)
        hit = artifact in cache.held
        if hit:
            cache.use(artifact)
        else:
            waiting = [held for held in cache.held if held in on_probation]
            residents = [held for held in cache.held if held not in on_probation]
            fits = True
            if artifact not in proven:
                fits = size <= probation
                if fits:
                    taken = sum(cache.held[held] for held in waiting)
                    while taken + size > probation:
                        taken -= cache.held[waiting[0]]
                        cache.evict([waiting.pop(0)])
            if fits:
                cache.insert(artifact, size, waiting + residents)
            on_probation.add(artifact)
        if artifact in proven:
            on_probation.discard(artifact)
        yield hit, cache


def result(steps, references):
    """The books, as `weightfs replay --json` names them."""
    hits = repeated = repeated_hits = pulled = total = 0
    seen = set()
    cache = None
    for (hit, cache), (artifact, consumer, size) in zip(steps, references):
        total += size
        hits += hit
        pulled += 0 if hit else size
        if (artifact, consumer) in seen:
            repeated += 1
            repeated_hits += hit
        seen.add((artifact, consumer))
    return {"object_hit_rate": hits / len(references), "byte_hit_rate": 1 - pulled / total,
            "repeated_job_hit_rate": repeated_hits / repeated if repeated else 0,
            "pulled_bytes": pulled, "evictions": cache.evictions}


def che_hit_rate(weights, capacity):
    """What LRU hits of independent references with these weights (Che, Tung and Wang 2002)."""
    total = sum(weights)
    rates = [weight / total for weight in weights]
    low, high = 0.0, 1e9
    for _ in range(200):
        middle = (low + high) / 2
        if sum(1 - math.exp(-rate * middle) for rate in rates) < capacity:
            low = middle
        else:
            high = middle
    return sum(rate * (1 - math.exp(-rate * low)) for rate in rates)
