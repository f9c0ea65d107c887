"""One process of an engine in Python: registers metrics of vLLM as that does, counts what it is told to, and ends. Its
argument: JSON of {"waiting", "running", "kv", "tokens", "queue_s", "engine"}. Where PROMETHEUS_MULTIPROC_DIR is set, it
leaves its share there; else it prints the page."""
import json
import os
import sys

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

LABELS = ("model_name", "engine")


def main():
    told = json.loads(sys.argv[1])
    registry = CollectorRegistry()
    labels = ("org/chat-8b", told.get("engine", "0"))
    more = {"registry": registry, "labelnames": LABELS}
    for name, key in (("vllm:num_requests_waiting", "waiting"), ("vllm:num_requests_running", "running"),
                      ("vllm:kv_cache_usage_perc", "kv")):
        Gauge(name, "of a test", multiprocess_mode=told.get("mode", "mostrecent"), **more).labels(*labels).set(told[key])
    Counter("vllm:generation_tokens", "of a test", **more).labels(*labels).inc(told["tokens"])
    queue = Histogram("vllm:request_queue_time_seconds", "of a test", buckets=(0.3, 0.5, 1.0, 5.0), **more).labels(*labels)
    for seconds in told["queue_s"]:
        queue.observe(seconds)
    Histogram("vllm:iteration_tokens_total", "of a test", buckets=(8, 64), **more).labels(*labels).observe(40)
    if "PROMETHEUS_MULTIPROC_DIR" not in os.environ:
        sys.stdout.write(generate_latest(registry).decode())


main()
