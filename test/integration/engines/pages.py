"""Metrics pages of inference engines, and a server for them that answers and misbehaves as told. The texts have the names
and labels of the real pages; the numbers are the test's."""
import contextlib
import itertools
import socket
import ssl
import threading
import time

from agent import free_port

MODEL = "meta-llama/Llama-3.1-8B-Instruct"
HTML = "<!DOCTYPE html>\n<html><head><title>Sign in</title></head><body><p>waiting 0</p></body></html>\n"


def family(name, kind, *rows):
    """One family: rows of (labels, value)."""
    lines = [f"# HELP {name} of a test", f"# TYPE {name} {kind}"]
    for labels, value in rows:
        text = ",".join(f'{key}="{label}"' for key, label in labels.items())
        lines.append(f"{name}{{{text}}} {value}" if text else f"{name} {value}")
    return "\n".join(lines) + "\n"


def vllm(waiting=0, running=0, kv=0.0, finished=0, tokens=0, model=MODEL, engine="0", kv_name="vllm:kv_cache_usage_perc"):
    """A page of vLLM: one engine; kv from 0 to 1."""
    return vllm_ranks([dict(waiting=waiting, running=running, kv=kv, finished=finished, tokens=tokens, engine=engine)],
                      model, kv_name)


def vllm_ranks(ranks, model=MODEL, kv_name="vllm:kv_cache_usage_perc"):
    """A page of vLLM with data-parallel engines: for each what vllm() takes, or also a model of its own."""
    def rows(key):
        return [({"engine": one.get("engine", str(i)), "model_name": one.get("model", model)}, one.get(key, 0))
                for i, one in enumerate(ranks)]
    finished = [({**labels, "finished_reason": "stop"}, value) for labels, value in rows("finished")]
    return (family("vllm:num_requests_running", "gauge", *rows("running")) +
            family("vllm:num_requests_waiting", "gauge", *rows("waiting")) +
            family(kv_name, "gauge", *rows("kv")) +
            family("vllm:generation_tokens_total", "counter", *rows("tokens")) +
            family("vllm:request_success_total", "counter", *finished))


def triton(*models, pending=True):
    """A page of Triton: for each model a dict of count (requests and inferences), queue_us, pending, name."""
    def rows(key):
        return [({"model": one.get("name", f"model{i}"), "version": "1"}, one.get(key, 0)) for i, one in enumerate(models)]
    text = (family("nv_inference_request_success", "counter", *rows("count")) +
            family("nv_inference_count", "counter", *[(labels, one.get("inferences", one.get("count", 0)))
                                                      for (labels, _), one in zip(rows("count"), models)]) +
            family("nv_inference_exec_count", "counter", *rows("count")) +
            family("nv_inference_request_duration_us", "counter", *rows("queue_us")) +
            family("nv_inference_queue_duration_us", "counter", *rows("queue_us")))
    return text + (family("nv_inference_pending_request_count", "gauge", *rows("pending")) if pending else "")


def sglang(waiting=0, running=0, kv=0.0, model=MODEL):
    """A page of SGLang; kv from 0 to 1."""
    labels = {"model_name": model, "engine_type": "unified", "tp_rank": "0", "pp_rank": "0"}
    return (family("sglang:num_running_reqs", "gauge", (labels, running)) +
            family("sglang:num_queue_reqs", "gauge", (labels, waiting)) +
            family("sglang:token_usage", "gauge", (labels, kv)))


def tgi(waiting=0, batch=0):
    """A page of TGI."""
    return family("tgi_queue_size", "gauge", ({}, waiting)) + family("tgi_batch_current_size", "gauge", ({}, batch))


class PageServer:
    """Serves `page` (text, or a function that gives it) from one address until close(). Faults, in force from the next
    request on: status (with any page), head (more header lines), length (what Content-Length says instead), fault:

    silent   takes the request and never answers       endless  lines without an end, as fast as they are taken
    dribble  a byte each 50 ms                         cut      closes in the middle of the page
    slow     answers after delay_s
    """

    def __init__(self, page="", address="127.0.0.1", port=None, tls=None):
        self.page, self.status, self.head, self.length, self.fault, self.delay_s = page, 200, (), None, "", 0.0
        self.requests = []   # (path, {header in lower case: value}), in order
        self.connections, self.at_once, self.most_at_once, self.sent_bytes = 0, 0, 0, 0
        self._lock = threading.Lock()
        self._open = set()
        self._tls = tls
        self._socket = socket.socket()
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.address, self.port = address, port or free_port()
        self._socket.bind((address, self.port))
        self._socket.listen(256)
        self._is_over = False
        threading.Thread(target=self._accept, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    @property
    def url(self):
        return f"{'https' if self._tls else 'http'}://{self.address}:{self.port}/metrics"

    @property
    def n(self):
        """How many requests have come."""
        with self._lock:
            return len(self.requests)

    def close(self):
        """The address refuses connections from now on, and those that are open are gone."""
        self._is_over = True
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
        with self._lock:
            connections = list(self._open)
        for connection in connections:
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)

    def _accept(self):
        while not self._is_over:
            try:
                connection, _ = self._socket.accept()
            except OSError:
                return
            with self._lock:
                self.connections += 1
                self._open.add(connection)
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection):
        raw = connection
        try:
            if self._tls:
                connection = self._tls.wrap_socket(connection, server_side=True)
            with contextlib.closing(connection), connection.makefile("rb") as reader:
                while not self._is_over and self._answer(connection, reader):
                    pass
        except (OSError, ssl.SSLError, ValueError):
            pass
        finally:
            with self._lock:
                self._open.discard(raw)

    def _answer(self, connection, reader):
        """One request and its answer; False where the connection is not to be used again."""
        words = reader.readline().split()
        if len(words) < 2:
            return False
        lines = iter(lambda: reader.readline().strip(), b"")
        headers = {key.strip().lower().decode(): value.strip().decode() for key, _, value in
                   (line.partition(b":") for line in lines)}
        with self._lock:
            self.requests.append((words[1].decode(), headers))
            self.at_once += 1
            self.most_at_once = max(self.most_at_once, self.at_once)
        try:
            return self._reply(connection)
        finally:
            with self._lock:
                self.at_once -= 1

    def _reply(self, connection):
        fault = self.fault
        body = (self.page() if callable(self.page) else self.page).encode()
        if fault == "slow":
            time.sleep(self.delay_s)
        if fault == "silent":
            connection.recv(1)
            return False
        length = len(body) if self.length is None else self.length
        size = "" if fault == "endless" else f"Content-Length: {length}\r\n"
        more = "".join(f"{line}\r\n" for line in self.head)
        self._send(connection, f"HTTP/1.1 {self.status} Status\r\nContent-Type: text/plain; version=0.0.4\r\n{size}{more}\r\n"
                   .encode())
        if fault == "endless":
            for number in itertools.count():
                self._send(connection, b"".join(b'endless_metric{n="%d"} 1\n' % (number * 1000 + i) for i in range(1000)))
        elif fault == "dribble":
            for byte in body:
                self._send(connection, bytes([byte]))
                time.sleep(0.05)
        else:
            self._send(connection, body[:len(body) // 2] if fault == "cut" else body)
        return not fault and self.length is None

    def _send(self, connection, data):
        connection.sendall(data)
        with self._lock:
            self.sent_bytes += len(data)
