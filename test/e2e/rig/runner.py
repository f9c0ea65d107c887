"""Runs the registered scenarios on one cluster, a few at a time, and prints each one's trajectory when it ends."""

import concurrent.futures
import re
import threading
import time
import traceback

from . import procs, scenario, wait


class Runner:
    def __init__(self, cluster, chosen, at_once):
        self._cluster, self._chosen, self._at_once = cluster, chosen, at_once
        self._print_lock = threading.Lock()
        self.passed, self.failed, self._abandoned = 0, [], False

    def abandon(self):
        """What fails from now on fails because the bench is being ended: say nothing."""
        self._abandoned = True

    def run(self):
        with concurrent.futures.ThreadPoolExecutor(self._at_once) as pool:
            for done in [pool.submit(self._run_one, *one) for one in self._chosen if not one[1].is_alone]:
                done.result()
        for one in [one for one in self._chosen if one[1].is_alone]:
            self._run_one(*one)

    def _run_one(self, title, function):
        began = time.monotonic()
        context = scenario.Context(self._cluster, re.sub(r"[^a-z0-9]+", "-", function.__name__))
        problem = self._attempt(lambda: function(context))
        problem = self._attempt(context.close) if problem is None else self._close_after(context, problem)
        self._report(title, context, problem, time.monotonic() - began)

    def _close_after(self, context, problem):
        self._attempt(context.diagnose)
        self._attempt(context.close)
        return problem

    @staticmethod
    def _attempt(work):
        """None, or what went wrong as text."""
        try:
            work()
        except (scenario.Failed, procs.ChildFailed, wait.TimedOut) as error:
            return str(error)
        except Exception:  # a defect of the rig: the scenario failed all the same
            return traceback.format_exc()
        return None

    def _report(self, title, context, problem, seconds):
        with self._print_lock:
            if self._abandoned:
                return
            if problem is None:
                self.passed += 1
            else:
                self.failed.append(title)
            print(f"{'FAIL' if problem else 'ok'}: {title} ({seconds:.0f} s)")
            print("\n".join(context.trace.lines))
            if problem:
                print("  " + problem.replace("\n", "\n  "))
            print(flush=True)
