"""Peers that are slow, silent or do not read: every stage has an absolute deadline. The limits are lowered so that the
tests are quick; that they are counted shows which one ended it."""
import pathlib
import socket
import struct
import tempfile
import time

from agent import Agent, check, wait_until
from certs import Authority
from frames import (DATA, END_HEADERS, END_STREAM, HEADERS, PING, PREFACE, STREAM_IS_ACTIVE, WINDOW_UPDATE, Peer,
                    block, call, frame, message, request)
from scaler import Scaler, grpc
from suite import add, test
from victim import SCENARIO, attacked

SOON_S = 8  # an end is seen within, with limits of half a second

_folder = tempfile.TemporaryDirectory(prefix="kgs-")
AUTHORITY = Authority(pathlib.Path(_folder.name), "ca")
SERVER = AUTHORITY.issue("server", "/CN=server")


def ends_by(limit, data, dribble, options):
    """A peer that says `data` and then nothing, or a byte of dribble now and then."""
    with attacked(f"--limit={limit}=500", limit=limit) as agent, Peer(agent.address, **options) as peer:
        start = time.monotonic()
        peer.send(data)
        for byte in dribble:
            if peer.is_closed:
                break
            peer.pump(0.2)
            peer.send(bytes([byte]))
        check(peer.wait_closed(SOON_S), "the connection is still open")
        check(time.monotonic() - start < SOON_S, f"took {time.monotonic() - start:.1f} s")


for name, limit, data, dribble, options in (
        ("nothing at all", "preface_ms", b"", b"", {"say_hello": False}),
        ("half a preface", "preface_ms", PREFACE[:10], b"", {"say_hello": False}),
        ("a preface byte by byte", "preface_ms", b"", PREFACE, {"say_hello": False}),
        ("a preface without SETTINGS", "preface_ms", PREFACE, b"", {"say_hello": False}),
        ("half a SETTINGS frame", "preface_ms", PREFACE + b"\0\0\6\4", b"", {"say_hello": False}),
        ("no ACK of our SETTINGS", "settings_ack_ms", b"", b"", {"ack": False}),
        ("a header block without its end", "headers_ms", frame(HEADERS, 0, 1, block()), b"", {}),
        ("a header block byte by byte", "headers_ms", b"", frame(HEADERS, END_HEADERS, 1, block()), {}),
        ("half a GET of HTTP/1.1", "headers_ms", b"GET / HTTP/1.1\r\n", b"", {"say_hello": False}),
        ("a GET of HTTP/1.1 byte by byte", "headers_ms", b"GET / HTTP/1.1\r\n", b"Host: " + b"x" * 200,
         {"say_hello": False}),
        ("HTTP/1.1 without a second request", "idle_http1_ms", b"GET /livez HTTP/1.1\r\nHost: x\r\n\r\n", b"",
         {"say_hello": False})):
    add(f"slow peer: {name} ends by {limit}", ends_by, limit, data, dribble, options)


@test("slow peer: a body that does not come ends the call, not the connection")
def slow_body():
    with attacked("--limit=body_ms=500", limit="body_ms") as agent, Peer(agent.address) as peer:
        peer.send(request(1) + frame(DATA, 0, 1, b"\0\0\0"))
        wait_until(lambda: peer.pump() or peer.count(HEADERS) or peer.resets(), "an end of the call", SOON_S)
        peer.send(call(3))
        check(peer.wait_for(HEADERS, 3), "no answer afterwards")


@test("slow peer: a body byte by byte ends by body_ms too")
def dribbled_body():
    with attacked("--limit=body_ms=500", limit="body_ms") as agent, Peer(agent.address) as peer:
        peer.send(request(1))
        deadline = time.monotonic() + SOON_S
        while not peer.count(HEADERS) and not peer.resets() and time.monotonic() < deadline:
            peer.send(frame(DATA, 0, 1, b"\0"))
            peer.pump(0.2)
        check(peer.count(HEADERS) or peer.resets(), "the call goes on")


@test("slow peer: half a TLS handshake ends by handshake_ms; another TLS client is served")
def half_handshake():
    flags = (f"--tls-cert={SERVER[0]}", f"--tls-key={SERVER[1]}", "--limit=handshake_ms=700")
    trusted = grpc.ssl_channel_credentials(AUTHORITY.certificate.read_bytes())
    with Agent(SCENARIO, *flags) as agent:
        hello = b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"r" * 40
        peers = [Peer(agent.address, say_hello=False) for _ in range(50)]
        for peer in peers:
            peer.send(hello)
        with Scaler(f"localhost:{agent.port}", trusted) as scaler:
            check(scaler.value({}) == 60, "another client is not served")
        for peer in peers:
            check(peer.wait_closed(SOON_S), "the connection is still open")
        check(agent.limit_hits("handshake_ms") >= 50, f"{agent.limit_hits('handshake_ms')} hits")
        for data in (b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", PREFACE, b"\x16\x03\x01\xff\xff" + b"\0" * 60000, b"\x80\x2e"):
            peer = Peer(agent.address, say_hello=False)
            peer.send(data)
            check(peer.wait_closed(SOON_S), f"{data[:20]!r}: the connection is still open")


@test("silent peer: pinged after keepalive_ms, dropped without an ACK")
def keepalive():
    flags = ("--limit=keepalive_ms=500", "--limit=keepalive_timeout_ms=500")
    with attacked(*flags, limit="keepalive_timeout_ms") as agent, Peer(agent.address) as peer:
        peer.send(request(1, path=STREAM_IS_ACTIVE) + message(1))
        check(peer.wait_for(PING) is not None, "no PING")
        check(peer.wait_closed(SOON_S), "the connection is still open")
        wait_until(lambda: agent.metric("keda_gpu_scaler_open_streams") == 0, "its stream to be freed")


@test("a peer that answers pings stays, though it says nothing else")
def alive():
    flags = ("--limit=keepalive_ms=300", "--limit=keepalive_timeout_ms=700")
    with attacked(*flags) as agent, Peer(agent.address) as peer:
        peer.send(request(1, path=STREAM_IS_ACTIVE) + message(1))
        answered, end = 0, time.monotonic() + 4
        while time.monotonic() < end:
            peer.pump(0.05)
            for f in [f for f in peer.frames if f[0] == PING and not f[1] & 1]:
                peer.send(frame(PING, 1, 0, f[3]))
                peer.frames.remove(f)
                answered += 1
        check(not peer.is_closed and answered >= 3, f"closed: {peer.is_closed}, {answered} pings")


# ---- peers that do not read ----


@test("zero window: answers wait in bounded memory, and the peer is dropped")
def zero_window():
    with attacked("--limit=write_stall_ms=1500", limit="write_stall_ms", memory_kb=70000) as agent, \
            Peer(agent.address, window=0) as peer:
        for n in range(900):
            peer.send(request(2 * n + 1, method="GET", path="/metrics", flags=END_HEADERS | END_STREAM))
        wait_until(lambda: peer.pump() or peer.is_closed or agent.limit_hits("write_stall_ms") > 0,
                   "the answers to be given up", 20)


@test("a peer that asks for pages and never reads is dropped; memory stays bounded")
def never_reads():
    with attacked("--limit=write_stall_ms=1500", limit="write_stall_ms", memory_kb=8000) as agent, \
            Peer(agent.address, receive_buffer=4096) as peer:
        n, deadline = 0, time.monotonic() + 15
        window = frame(WINDOW_UPDATE, 0, 0, struct.pack(">I", 1 << 30))
        peer.send(window)
        while time.monotonic() < deadline and not peer.is_closed and n < 3000:
            if not peer.send(request(2 * n + 1, method="GET", path="/metrics", flags=END_HEADERS | END_STREAM), 0.5):
                break
            n += 1
        check(peer.is_closed or _is_reset(peer.socket), "the connection is still open")


def _is_reset(connection, patience_s=20):
    """Without reading: is the other side gone?"""
    deadline = time.monotonic() + patience_s
    while time.monotonic() < deadline:
        connection.settimeout(0.5)
        try:
            connection.send(frame(PING, 0, 0, b"x" * 8))
        except TimeoutError:
            pass
        except OSError:
            return True
        if connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 1)[0] not in (1,):
            return True
        time.sleep(0.2)
    return False


@test("streams to a peer that does not read cost one message each")
def deaf_streams():
    with attacked(memory_kb=8000) as agent, Peer(agent.address, window=0) as peer:
        peer.send(b"".join(request(2 * n + 1, path=STREAM_IS_ACTIVE) + message(2 * n + 1) for n in range(900)))
        wait_until(lambda: agent.metric("keda_gpu_scaler_open_streams", 'method="StreamIsActive"') == 900, "900 streams")
        time.sleep(2)
