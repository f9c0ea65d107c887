"""What a scenario gets: workloads, agents, waiting and asserting, with the trajectory kept on the side.

Scenarios register themselves with @scenario("a sentence"); runner.py runs them.
"""

import time

from . import agent, settings, trace, wait, workload

_LOOK_S = 0.25

ALL = []


class Failed(Exception):
    """An expectation of the scenario did not hold."""


def scenario(title):
    def register(function):
        ALL.append((title, function))
        return function
    return register


class Context:
    def __init__(self, cluster, name):
        self.cluster, self.name, self.trace = cluster, name, trace.Trace()
        self._agents, self._workloads = [], []
        self.trace.header()

    # What the scenario brings up. All of it goes away with the scenario.
    def agent(self, loads, start=True, **options):
        """An agent with one simulated board for each of `loads` (percent)."""
        made = agent.Agent(self.cluster, f"{self.name}-agent{len(self._agents)}", loads, **options)
        self._agents.append(made)
        if start:
            made.start()
        return made

    def workload(self, replicas=1, name="model"):
        made = workload.Workload(self.cluster.api, self.name, name)
        self._workloads.append(made)
        made.create(replicas)
        return made

    def forget(self, made):
        """Of a workload that the scenario deleted itself."""
        self._workloads.remove(made)

    def note(self, text):
        self.trace.note(text)

    # Waiting and asserting. Every look at the cluster goes into the trajectory.
    def look(self, of=None):
        """Records every workload of the scenario; returns the view of `of`, the first one by default."""
        views = {made: made.view() for made in self._workloads}
        for made, view in views.items():
            self.trace.add(made.name, view)
        return views.get(of or self._workloads[0])

    def until(self, description, predicate, timeout_s=None, of=None):
        """Waits until predicate(view) of workload `of` is true; returns the seconds it took."""
        began, seen = time.monotonic(), []

        def question():
            seen[:] = [self.look(of)]
            return predicate(seen[0])
        try:
            wait.until(description, question, timeout_s or settings.PATIENCE_S, _LOOK_S, self._require_alive)
        except wait.TimedOut as error:
            raise Failed(f"{error}\nlast seen: {seen}") from error
        return time.monotonic() - began

    def holds(self, description, predicate, seconds, of=None):
        """The predicate must stay true for so many seconds."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            self._require_alive()
            view = self.look(of)
            if not predicate(view):
                raise Failed(f"did not hold for {seconds} s: {description}\nseen: {view}")
            time.sleep(_LOOK_S)

    def expect(self, condition, description):
        if not condition:
            raise Failed(f"expected: {description}")

    def wait_for(self, description, question, timeout_s=None):
        """For questions that are not about a workload."""
        def ask():
            self.look()
            return question()
        try:
            return wait.until(description, ask, timeout_s or settings.PATIENCE_S, _LOOK_S, self._require_alive)
        except wait.TimedOut as error:
            raise Failed(str(error)) from error

    def _require_alive(self):
        self.cluster.children.require_running()

    def close(self):
        for made in self._workloads:
            made.delete()
        try:
            wait.until("KEDA to let go of the ScaledObjects", lambda: all(w.is_gone() for w in self._workloads), 20)
        finally:
            for made in self._agents:
                made.close()
