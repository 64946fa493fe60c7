# SPDX-License-Identifier: Apache-2.0
# Copyright the weightfs authors
"""Waiting for conditions: deadlines, never sleeps of a guessed length."""

import time


class Deadline(AssertionError):
    """A condition did not come true in time."""


def until(condition, seconds, what, interval=0.02):
    """Returns the first true value of condition(); raises Deadline naming `what` after `seconds`."""
    end = time.monotonic() + seconds
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > end:
            raise Deadline(f"not within {seconds} s: {what}")
        time.sleep(interval)


def until_still(condition, seconds, progress, interval=0.05):
    """Waits until condition() is true, or progress() has been the same for `seconds`; returns whether
    it was true. progress() is asked once a second."""
    seen, moved = progress(), time.monotonic()
    asked = moved
    while not condition():
        now = time.monotonic()
        if now - asked >= 1:
            value, asked = progress(), time.monotonic()
            if value != seen:
                seen, moved = value, asked
            elif asked - moved > seconds:
                return False
        time.sleep(interval)
    return True


def stays(condition, seconds, what, interval=0.05):
    """Checks that condition() is true now and stays so for `seconds`."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        assert condition(), what
        time.sleep(interval)
