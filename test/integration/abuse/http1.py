"""HTTP/1.1 by hand: what is refused, and that nothing can be smuggled."""
import re
import time

from agent import check
from frames import Peer
from suite import add, test
from victim import attacked

GET = b"GET /livez HTTP/1.1\r\nHost: x\r\n"


def exchange(data, patience_s=10):
    """(bytes that came back, was the connection closed) for these bytes on a port of an attacked agent."""
    with attacked() as agent, Peer(agent.address, say_hello=False) as peer:
        peer.send(data)
        return collect(peer, patience_s)


def collect(peer, patience_s=10):
    got, deadline = b"", time.monotonic() + patience_s
    peer.socket.settimeout(0.3)
    while time.monotonic() < deadline:
        try:
            data = peer.socket.recv(65536)
        except TimeoutError:
            if got:
                return got, False
            continue
        except OSError:
            return got, True
        if not data:
            return got, True
        got += data
    return got, False


def refused(data, status):
    got, is_closed = exchange(data)
    check(is_closed, f"the connection is still open after {got[:80]!r}")
    check(not got or got.startswith(b"HTTP/1.1 " + status), f"{got[:80]!r}")
    check(len(re.findall(rb"HTTP/1.1 \d", got)) <= 1, f"more than one answer: {got!r}")


for name, data, status in (
        ("a body by length", GET + b"Content-Length: 5\r\n\r\nhello", b"400"),
        ("a chunked body", GET + b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n", b"400"),
        ("both lengths (smuggling)", GET + b"Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + GET, b"400"),
        ("two Hosts", GET + b"Host: y\r\n\r\n", b"400"),
        ("no Host", b"GET /livez HTTP/1.1\r\n\r\n", b"400"),
        ("folded headers", GET + b"A: b\r\n c\r\n\r\n", b"400"),
        ("a bare LF", b"GET /livez HTTP/1.1\nHost: x\n\n", b"400"),
        ("a bare CR", GET + b"A: b\rc\r\n\r\n", b"400"),
        ("a NUL", GET + b"A: b\0c\r\n\r\n", b"400"),
        ("white space before the colon", GET + b"A : b\r\n\r\n", b"400"),
        ("headers of 100 kB", GET + b"A: " + b"b" * 100000 + b"\r\n\r\n", b"431"),
        ("a thousand headers", GET + b"".join(b"A%d: b\r\n" % n for n in range(2000)) + b"\r\n", b"431"),
        ("garbage", bytes(range(128, 256)) * 100, b"400"),
        ("an unknown version", b"GET /livez HTTP/3.7\r\nHost: x\r\n\r\n", b"505"),
        ("TLS on a plaintext port", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"r" * 500, b"400")):
    add(f"HTTP/1.1: {name} is refused and the connection closed", refused, data, status)


@test("HTTP/1.1: five hundred pipelined requests are answered in order")
def pipelined():
    got, _ = exchange((GET + b"\r\n") * 499 + GET + b"Connection: close\r\n\r\n", 30)
    check(got.count(b"HTTP/1.1 200 OK") == 500, f"{got.count(b'HTTP/1.1 200')} answers")


@test("HTTP/1.1: pipelined pages to a peer that does not read are bounded, and it is dropped")
def pipelined_pages():
    with attacked("--limit=write_stall_ms=1500", limit="write_stall_ms", memory_kb=8000) as agent, \
            Peer(agent.address, say_hello=False, receive_buffer=4096) as peer:
        for _ in range(2000):
            if not peer.send(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n" * 10, 0.5):
                break
        time.sleep(4)
        got, is_closed = collect(peer, 30)
        check(is_closed, f"the connection is still open after {len(got)} bytes")
