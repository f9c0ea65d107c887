"""GPU states that many cases ask about, and the agents that hold them: one for each state, shared by its cases."""
import threading

from agent import Agent, TestFailure
from scaler import Scaler

_lock = threading.Lock()
_agents = {}


def gpus(*rows, **top):
    """A scenario of GPUs given as YAML flow mappings without braces. top: other top-level keys."""
    lines = [f"{key}: {value}" for key, value in top.items()]
    lines += ["gpus:"] + [f"  - {{{row}}}" for row in rows] if rows else ["gpus: []"]
    return "\n".join(lines) + "\n"


def loads(*percents, board="A100-40"):
    return gpus(*(f"board: {board}, utilization: {p}" for p in percents))


# 40960 MiB in all: so many MiB make so many percent exactly.
QUARTERS = gpus("board: A100-40, utilization: 75, memory_used_mib: 30720, temperature: 72, power_w: 250")
# State T of the existing scaler's unit tests. A100: PCIe comes from the sampled call, NVLink from counters.
T = gpus("board: A100-80, utilization: 80, memory_used_mib: 40960, temperature: 65, power_w: 250, pcie_tx_kbps: 8000, "
         "pcie_rx_kbps: 4000, nvlink_tx_kibps: 614400, nvlink_rx_kibps: 512000",
         "board: A100-80, utilization: 30, memory_used_mib: 16384, temperature: 45, power_w: 100, pcie_tx_kbps: 2000, "
         "pcie_rx_kbps: 1000, nvlink_tx_kibps: 204800, nvlink_rx_kibps: 153600")
# The same traffic on boards that count PCIe bytes.
T_HOPPER = T.replace("A100-80", "H100")
MIG = gpus("board: A100-80, temperature: 72, power_w: 300, mig: [{profile: 4g.40gb, utilization: 85, memory_used_mib: "
           "30720}, {profile: 3g.40gb, utilization: 10, memory_used_mib: 2048}]")
MIG_HOPPER = gpus("board: H100, temperature: 72, power_w: 300, mig: [{profile: 4g.40gb, sm_activity: 85, memory_used_mib:"
                  " 30720}, {profile: 3g.40gb, sm_activity: 10, memory_used_mib: 2048}]")
MIXED = gpus("board: H100, utilization: 60, sm_activity: 60, memory_used_mib: 40960",
             "board: H100, mig: [{profile: 1g.10gb, utilization: 20, sm_activity: 20, memory_used_mib: 2048}]")
NONE = gpus()


class Shared:
    """The agent of a state and a client of it."""

    def __init__(self, scenario):
        self.agent = Agent(scenario, wait=scenario != NONE)
        self.scaler = Scaler(self.agent.address)


def shared(scenario):
    """The client of the state's agent, which is started by whoever comes first."""
    return shared_agent(scenario).scaler


def shared_agent(scenario):
    with _lock:
        cell = _agents.setdefault(scenario, [threading.Lock(), None])
    with cell[0]:
        if cell[1] is None:
            cell[1] = Shared(scenario)
        return cell[1]


def stop_all():
    failures = []
    for _, one in _agents.values():
        if one is None:
            continue
        one.scaler.channel.close()
        try:
            with one.agent:
                pass
        except TestFailure as failure:
            failures.append(str(failure))
    if failures:
        raise TestFailure("\n".join(failures))
