"""The agent under attack, with a well-behaved client beside it."""
import contextlib
import threading
import time

from agent import Agent, check, is_sanitized
from scaler import Scaler, grpc

SCENARIO = "gpus: [{board: A100-40, utilization: 60}]\n"
MEMORY_KB = 24000 if is_sanitized() else 6000  # how much of it an attack may cost, beyond what the test allows
SLOWEST_S = 5.0 if is_sanitized() else 2.0  # of an answer to the other client, on a busy machine


class Bystander(threading.Thread):
    """Calls all the time, as KEDA would, and remembers failures and the slowest answer."""

    def __init__(self, address):
        super().__init__(daemon=True)
        self.scaler = Scaler(address)
        self.calls, self.failures, self.slowest_s, self.is_done = 0, [], 0, False
        self.start()

    def run(self):
        while not self.is_done:
            start = time.monotonic()
            try:
                check(self.scaler.value({}) == 60, "another value")
            except (grpc.RpcError, AssertionError) as error:
                self.failures.append(str(error))
            self.calls += 1
            self.slowest_s = max(self.slowest_s, time.monotonic() - start)
            time.sleep(0.02)

    def end(self):
        self.is_done = True
        self.join(30)
        self.scaler.channel.close()


@contextlib.contextmanager
def attacked(*flags, limit=None, memory_kb=0, **options):
    """An agent; after the body: was the limit counted, is memory flat, was the bystander served all the time?"""
    with Agent(SCENARIO, *flags, env={"ASAN_OPTIONS": "quarantine_size_mb=1"}, **options) as agent:
        bystander = Bystander(agent.address)
        while bystander.calls < 20:
            time.sleep(0.02)
        hits, memory = agent.limit_hits(limit) if limit else 0, agent.rss_kb()
        highest = [memory]
        watching = threading.Event()

        def watch():
            while not watching.wait(0.05):
                with contextlib.suppress(OSError):
                    highest.append(agent.rss_kb())
        watcher = threading.Thread(target=watch, daemon=True)
        watcher.start()
        yield agent
        calls = bystander.calls
        deadline = time.monotonic() + 20
        while bystander.calls < calls + 5 and time.monotonic() < deadline:
            time.sleep(0.02)
        bystander.end()
        watching.set()
        watcher.join()
        check(not bystander.failures, f"the other client failed {len(bystander.failures)} times: {bystander.failures[:2]}")
        check(bystander.calls > calls, "the other client is no longer served")
        check(bystander.slowest_s < SLOWEST_S, f"an answer to the other client took {bystander.slowest_s:.1f} s")
        grown = max(highest) - memory
        check(grown < MEMORY_KB + memory_kb, f"memory grew by {grown} kB from {memory} kB")
        if limit:
            check(agent.limit_hits(limit) > hits, f"limit {limit} was not counted; others: " + str(
                {k: v for k, v in agent.page()["keda_gpu_scaler_limit_hits_total"].items() if v}))
