"""A scenario's trajectory: one line for each change of what the cluster shows, with the scenario's own remarks between."""

import time

_ROW = "  {:>6}  {:>8}  {:>9}  {:>7}  {}"


class Trace:
    def __init__(self):
        self.lines, self._began, self._last = [], time.monotonic(), {}
        self.replicas = {}  # by workload: each count that was seen, once in a row

    def _age(self):
        return f"{time.monotonic() - self._began:.1f}s"

    def header(self):
        self.lines.append(_ROW.format("time", "replicas", "value", "target", "condition"))

    def note(self, text):
        self.lines.append(f"  {self._age():>6}  -- {text}")

    def add(self, name, view, pods=""):
        """A row if something changed since the last one of this workload; pods: what they do at this moment."""
        columns = view.columns()
        counts = self.replicas.setdefault(name, [])
        if counts[-1:] != [view.replicas]:
            counts.append(view.replicas)
        if self._last.get(name) == columns:
            return
        self._last[name] = columns
        if len(self._last) > 1:
            columns = (*columns[:-1], f"{columns[-1]} [{name}]")
        self.lines.append(_ROW.format(self._age(), *columns) + (f"  pods {pods}" if pods else ""))
