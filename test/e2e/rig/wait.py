"""Waiting on conditions. Everything polls a cheap question and names what it waited for when it gives up."""

import time


class TimedOut(Exception):
    pass


def until(description, question, timeout_s, interval_s=0.1, alive=None):
    """Calls question() until it answers something true, which is returned. Exceptions of the question propagate only at
    the end; alive(), if given, raises as soon as waiting is pointless (a child died)."""
    deadline, last_error = time.monotonic() + timeout_s, None
    while True:
        if alive:
            alive()
        try:
            answer, last_error = question(), None
            if answer:
                return answer
        except Exception as error:  # the thing asked is not up yet: that is what we wait for
            last_error = error
        if time.monotonic() > deadline:
            raise TimedOut(f"waited {timeout_s:.0f} s in vain for: {description}"
                           + (f" (last answer: {last_error})" if last_error else ""))
        time.sleep(interval_s)
