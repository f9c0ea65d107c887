"""Waiting on conditions. Everything polls a cheap question and names what it waited for when it gives up."""

import time


class TimedOut(Exception):
    pass


class GivenUp(Exception):
    """Raised by a question: what is waited for can no longer come."""


def until(description, question, timeout_s, interval_s=0.1, alive=None):
    """Calls question() until it answers something true, which is returned. Exceptions of the question propagate only at
    the end, but for GivenUp; alive(), if given, raises as soon as waiting is pointless (a child died)."""
    deadline, last_error = time.monotonic() + timeout_s, None
    while True:
        if alive:
            alive()
        try:
            answer, last_error = question(), None
            if answer:
                return answer
        except GivenUp:
            raise
        except Exception as error:  # the thing asked is not up yet: that is what we wait for
            last_error = error
        if time.monotonic() > deadline:
            raise TimedOut(f"waited {timeout_s:.0f} s in vain for: {description}"
                           + (f" (last answer: {last_error})" if last_error else ""))
        time.sleep(interval_s)
