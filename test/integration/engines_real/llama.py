"""What an agent answers about a llama.cpp server beside what that server says itself, and how it words what is wrong."""
import concurrent.futures
import time

from agent import check, wait_until
from scaler import grpc, near, refused
from server import Server
from shared import of, scaler
from suite import test

WAIT, RUN, BOTH = of("requests_waiting"), of("requests_running"), of("requests_in_flight")
TOKENS = of("tokens_per_second", window="300")


def fault_of(metadata):
    """The code and text of an error; None while there is a value, which must not be 0."""
    try:
        check(scaler().value(metadata) > 0, "0 where nothing is known")
        return None
    except grpc.RpcError as error:
        return f"{error.code().name} {error.details()}"


@test("llama.cpp: five requests for two slots: two run and three wait, and one page is both")
def five_for_two():
    with Server("--metrics") as server, server.busy(5):
        at = {"vllmEndpoint": server.url, "window": "1"}
        wait_until(lambda: scaler().value({**BOTH, **at}) == 5, "5 in flight")
        check(scaler().value({**RUN, **at}) == server.says("requests_processing") == 2, "not 2 running")
        check(scaler().value({**WAIT, **at}) == server.says("requests_deferred") == 3, "not 3 waiting")
        check(scaler().active({**BOTH, **at}) is True, "not active")
        text = scaler().explain({**BOTH, **at})
        check("llama.cpp" in text and "3 waiting" in text and "2 running" in text, text)


@test("llama.cpp: demand is above 100 % where requests wait, and nothing is said of a cache that is not on the page")
def demand():
    with Server("--metrics", slots=4) as server:
        at = {**of("kv_cache_usage"), "vllmEndpoint": server.url, "window": "1"}
        with server.busy(5):
            wait_until(lambda: scaler().value(at) == 125, "demand of 125 %")
        text = wait_until(lambda: fault_of(at), "no demand once nothing waits")
        check(text.startswith("FAILED_PRECONDITION") and "llamacpp:kv_cache_usage_ratio" in text, text)


@test("llama.cpp: requests that are given up are gone from the answer, and the server is idle")
def given_up():
    with Server("--metrics") as server:
        at = {**BOTH, "vllmEndpoint": server.url, "window": "1", "activationWindow": "1"}
        with server.busy(3):
            wait_until(lambda: scaler().value(at) == 3, "3 in flight")
        wait_until(lambda: scaler().value(at) == 0, "none in flight")
        wait_until(lambda: not scaler().active(at), "an idle server")


@test("llama.cpp: tokens that were asked for are the tokens that are counted")
def tokens():
    with Server("--metrics") as server, concurrent.futures.ThreadPoolExecutor(4) as pool:
        at = {**TOKENS, "vllmEndpoint": server.url}
        start = time.monotonic()
        check(scaler().value(at) == 0, "tokens before any request")
        made = sum(pool.map(server.generate, [500] * 6))
        check(made == 3000 == server.says("tokens_predicted_total"), f"{made} tokens")
        # Right after the next page is read, the rate is of the time until now.
        wait_until(lambda: near(scaler().value(at) * (time.monotonic() - start), made, 0.1), f"the rate of {made} tokens")


@test("llama.cpp without --metrics: the answer names what to start it with")
def without_metrics():
    with Server() as server, refused("UNAVAILABLE", "501", "--metrics"):
        scaler().value({**BOTH, "vllmEndpoint": server.url})


@test("llama.cpp that was started anew: counters that fell are no negative rate")
def anew():
    with Server("--metrics") as server:
        at = {**TOKENS, "vllmEndpoint": server.url}
        server.generate(400)
        scaler().value(at)
        server.generate(400)
        wait_until(lambda: scaler().value(at) > 0, "a rate")
        server.end()
        server.start()
        server.generate(200)
        got = scaler().value(at)
        check(got > 0, f"{got}/s after a restart")


@test("llama.cpp that ends: an error that names its address, and never 0")
def ends():
    with Server("--metrics") as server:
        at = {**BOTH, "vllmEndpoint": server.url}
        with server.busy(1):
            wait_until(lambda: scaler().value(at) > 0, "a request in flight")
            server.end()
        text = wait_until(lambda: fault_of(at), "an error")
        check(text.startswith("UNAVAILABLE") and server.url in text, text)
