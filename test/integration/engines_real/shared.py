"""The agent that all tests share. It has no GPU: pages need none."""
import functools
import threading

from agent import Agent
from scaler import Scaler

_lock = threading.Lock()
_agents = []


def the_agent():
    with _lock:
        if not _agents:
            _agents.append(Agent(None))
        return _agents[0]


def stop():
    for agent in _agents:
        with agent:
            pass


@functools.cache
def scaler():
    return Scaler(the_agent().address)


def of(kind, **more):
    """Metadata for one metric, without its endpoint."""
    return {"metricType": kind, "targetValue": "5", **more}
