"""What a scenario gets: workloads, agents, waiting and asserting, with the trajectory kept on the side.

Scenarios register themselves with @scenario("a sentence"); runner.py runs them.
"""

import time

from . import agent, engines, fleet, forwarder, hub, nodes, pods, question, settings, trace, wait, workload

_LOOK_S = 0.25

ALL = []


class Failed(wait.GivenUp):
    """An expectation of the scenario did not hold."""


def scenario(title, alone=False):
    """alone: it disturbs what all scenarios share, and runs when the others have ended."""
    def register(function):
        function.is_alone = alone
        ALL.append((title, function))
        return function
    return register


class Context:
    def __init__(self, cluster, name):
        self.cluster, self.name, self.trace = cluster, name, trace.Trace()
        self._agents, self._workloads, self._nodes, self._hubs, self._others = [], [], [], [], []
        self._releases, self._fleets = [], []
        self.pods = None
        self.trace.header()

    # What the scenario brings up. All of it goes away with the scenario.
    def agent(self, loads, start=True, **options):
        """An agent with one simulated board for each of `loads` (percent)."""
        made = agent.Agent(self.cluster, f"{self.name}-agent{len(self._agents)}", loads, **options)
        self._agents.append(made)
        if start:
            made.start()
        return made

    def workload(self, replicas=1, name="model", **options):
        made = workload.Workload(self.cluster.api, self.name, name)
        self._workloads.append(made)
        made.create(replicas, **options)
        return made

    def nodes(self, count, gpus, kind=nodes.Node, **options):
        """So many simulated nodes more; returns all. The life of the scenario's pods begins with the first."""
        for number in range(len(self._nodes), len(self._nodes) + count):
            made = kind(self.cluster, f"{self.name}-node{number}", gpus, **options)
            self._nodes.append(made)
            made.start()
        self.pods = self.pods or pods.Pods(self.cluster, self.name, self._nodes)
        return self._nodes

    def hub(self, agents=None, start=True, **options):
        """A hub that follows the agents of all nodes, or those that `agents` names in the form of its flag."""
        where = [node.agent.address for node in self._nodes] if agents is None else agents
        made = hub.Hub(self.cluster, f"{self.name}-hub{len(self._hubs)}", where, **options)
        self._hubs.append(made)
        if start:
            made.start()
        return made

    def release(self, namespace, name):
        """A release of the scenario's own, not installed yet."""
        made = self.cluster.releases.new(namespace, name)
        self._releases.append(made)
        return made

    def fleet(self, release, host, names):
        """Runs the pods of a release on nodes of these names, on which the scenario's pods are too, each with a GPU of those
        that the release simulates."""
        made = fleet.Fleet(self.cluster, release, self.forwarder(), host, names)
        self._fleets.append(made)
        self.pods = pods.Pods(self.cluster, self.name, [nodes.Plain(name, 4) for name in names])
        return made

    def serve(self, name, of):
        """KEDA finds the ready hubs of a fleet by this NAME:PORT from now on; returns it."""
        self.cluster.services.known[name] = of.forwarder
        return name

    def demand(self, of, total=0, **options):
        """What workload `of` is asked for from now on, in percent of one GPU; change it by its fields."""
        made = pods.Demand(total, **options)
        self.pods.demand[of.name] = made
        return made

    def traffic(self, of, requests=0, **options):
        """Requests a second that workload `of` gets from now on: its pods are simulated model servers."""
        if not self.pods.engines:
            self.pods.engines = engines.Engines(self.cluster, self.name)
            self._others.append(self.pods.engines)
        made = engines.Traffic(requests, **options)
        self.pods.demand[of.name] = made
        return made

    def until_served(self, of, count):
        """Waits until so many pods serve and no other is left."""
        self.wait_for(f"{count} pods to serve", lambda: len(self.pods.serving(of.name)) == count == len(self.pods.of(of.name)))

    def forwarder(self, *ports):
        """One address in front of these ports of loopback."""
        made = forwarder.Forwarder(self.cluster.ports.take(), ports)
        self._others.append(made)
        return made

    def questions(self, address, of, metadata):
        """To ask `address` about a workload as KEDA does."""
        made = question.Questions(address, of, metadata)
        self._others.append(made)
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
            self.trace.add(made.name, view, self.pods.summary(made.name) if self.pods else "")
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
        if self.pods and self.pods.problem:
            raise Failed(f"the simulated pods ended:\n{self.pods.problem}")
        for one in self._fleets:
            if one.problem:
                raise Failed(f"a program of the release:\n{one.problem}")

    def diagnose(self):
        """After a failure: what the hubs say about it, into the trajectory."""
        for one in [one for one in self._hubs if one.is_running()]:
            for made in self._workloads:
                text = one.explain(self.name, made.name).replace("\n", "\n    ")
                self.note(f"explain {self.name}/{made.name} by {one.name}:\n    {text}")

    def close(self):
        """Ends everything; the first problem on the way is raised at the end."""
        problems = []

        def end(work):
            try:
                work()
            except Exception as error:
                problems.append(error)
        for made in self._workloads:
            end(made.delete)
        end(lambda: wait.until("KEDA to let go of the ScaledObjects", lambda: all(w.is_gone() for w in self._workloads), 20))
        for made in self._releases:
            end(made.remove)
        pods_of = [self.pods] if self.pods else []
        for made in [*self._fleets, *self._hubs, *pods_of, *self._nodes, *self._others, *self._agents]:
            end(made.close)
        if problems:
            raise problems[0]
