"""Peers that send too much, or what makes no sense."""
import http.client
import resource
import socket
import struct
import subprocess
import time

from agent import check, wait_until
from frames import (ACK, CALM, CANCEL, CONTINUATION, DATA, END_HEADERS, END_STREAM, HEADERS, PADDED, PING, PRIORITY,
                    PROTOCOL_ERROR, PUSH_PROMISE, REFUSED, RST_STREAM, SETTINGS, STREAM_IS_ACTIVE, WINDOW_UPDATE, Peer,
                    block, call, frame, literal, message, request)
from suite import add, test
from victim import attacked


def flood(peer, piece, seconds=10, chunk=200):
    """Send piece(n) for n = 0, 1, ... until the peer is gone; what comes back is read. True if it is gone."""
    n, deadline = 0, time.monotonic() + seconds
    while time.monotonic() < deadline and not peer.is_closed:
        peer.send(b"".join(piece(n + i) for i in range(chunk)))
        n += chunk
        peer.pump(0.001)
    peer.wait_closed(5)
    return peer.is_closed


def is_stopped(peer, code=CALM):
    check(peer.is_closed, "the connection is still open")
    if peer.goaway():
        check(peer.goaway()[0] == code, f"GOAWAY {peer.goaway()}")


# ---- resets and headers ----


@test("rapid reset (CVE-2023-44487)")
def rapid_reset():
    with attacked(limit="resets_per_s") as agent, Peer(agent.address) as peer:
        flood(peer, lambda n: request(2 * n + 1) + frame(RST_STREAM, 0, 2 * n + 1, struct.pack(">I", CANCEL)))
        is_stopped(peer)


@test("a thousand legitimate cancels at once are no attack")
def many_cancels():
    with attacked() as agent, Peer(agent.address) as peer:
        for first in range(0, 900, 100):
            ids = [2 * n + 1 for n in range(first, first + 100)]
            peer.send(b"".join(request(i, path=STREAM_IS_ACTIVE) + message(i) for i in ids))
            peer.pump(0.01)
            peer.send(b"".join(frame(RST_STREAM, 0, i, struct.pack(">I", CANCEL)) for i in ids))
        peer.send(call(2001))
        check(peer.wait_for(HEADERS, 2001), "no answer afterwards")
        wait_until(lambda: agent.metric("keda_gpu_scaler_open_streams") == 0, "all streams to be gone")


@test("CONTINUATION flood (CVE-2024-28182)")
def continuation_flood():
    with attacked() as agent, Peer(agent.address) as peer:
        peer.send(frame(HEADERS, 0, 1, block()))
        flood(peer, lambda n: frame(CONTINUATION, 0, 1, b""))
        check(peer.is_closed, "the connection is still open")


@test("CONTINUATION flood with content")
def continuation_content():
    with attacked(limit="header_list_bytes") as agent, Peer(agent.address) as peer:
        peer.send(frame(HEADERS, 0, 1, block()))
        flood(peer, lambda n: frame(CONTINUATION, 0, 1, literal(f"x-{n}", "y" * 12000)), chunk=1)
        check(peer.is_closed, "the connection is still open")


@test("HPACK bomb: a header block that inflates a thousandfold")
def hpack_bomb():
    with attacked(limit="header_list_bytes") as agent, Peer(agent.address) as peer:
        big = literal("x-big", "y" * 3900, first=0x40)
        peer.send(frame(HEADERS, END_HEADERS | END_STREAM, 1, block() + big + b"\xbe" * 12000))  # 0xbe: index 62
        check(peer.wait_closed(), "the connection is still open")


@test("headers a little too large: 431, and the connection goes on")
def large_headers():
    with attacked(limit="header_list_bytes") as agent, Peer(agent.address) as peer:
        parts = block(*[(f"x-{n}", "y" * 6000) for n in range(3)])
        peer.send(frame(HEADERS, 0, 1, parts[:16000]) + frame(CONTINUATION, END_HEADERS, 1, parts[16000:]))
        check(peer.wait_for(HEADERS, 1), "no answer")
        peer.send(call(3))
        check(peer.wait_for(HEADERS, 3), "no answer afterwards")


# ---- frames without use ----

for name, piece in (
        ("empty DATA", lambda n: frame(DATA, 0, 1)),
        ("DATA of padding alone", lambda n: frame(DATA, PADDED, 1, b"\x03\0\0\0")),
        ("unknown frame types", lambda n: frame(0xFA, 0, 0, b"x" * 8)),
        ("unknown frame types on a stream", lambda n: frame(0xFA, 0, 1)),
        ("PRIORITY on idle streams", lambda n: frame(PRIORITY, 0, 2 * n + 101, struct.pack(">IB", 0, 1))),
        ("SETTINGS", lambda n: frame(SETTINGS)),
        ("ACKs of PINGs that were never sent", lambda n: frame(PING, ACK, 0, b"x" * 8)),
        ("WINDOW_UPDATE that nothing asked for", lambda n: frame(WINDOW_UPDATE, 0, 0, struct.pack(">I", 1)))):
    def useless(piece=piece):
        with attacked(limit="glitches_per_s") as agent, Peer(agent.address) as peer:
            peer.send(request(1, path=STREAM_IS_ACTIVE))
            start, cpu = time.monotonic(), agent.cpu_s()
            flood(peer, piece)
            is_stopped(peer)
            check(time.monotonic() - start < 9, "it took 9 s")
            check(agent.cpu_s() - cpu < 4, f"it cost {agent.cpu_s() - cpu:.1f} s of CPU")
    add(f"flood of {name}", useless)

for name, piece in (
        ("WINDOW_UPDATE overflow", lambda n: request(n) + frame(WINDOW_UPDATE, 0, n, struct.pack(">I", 0x7FFFFFFF))),
        ("content-length that is wrong", lambda n: request(n, ("content-length", "3")) + message(n, b"x" * 100)),
        ("two content-lengths", lambda n: request(n, ("content-length", "3"), ("content-length", "4"),
                                                  flags=END_HEADERS | END_STREAM)),
        ("a connection header", lambda n: request(n, ("connection", "close"), flags=END_HEADERS | END_STREAM)),
        ("upper case names", lambda n: request(n, ("X-Upper", "1"), flags=END_HEADERS | END_STREAM)),
        ("pseudo headers at the end", lambda n: request(n, (":path", "/"), flags=END_HEADERS | END_STREAM)),
        ("PRIORITY that depends on itself", lambda n: request(n) + frame(PRIORITY, 0, n, struct.pack(">IB", n, 1)))):
    def made_you_reset(piece=piece):
        with attacked() as agent, Peer(agent.address) as peer:
            flood(peer, lambda n: piece(2 * n + 1), chunk=20)
            check(peer.is_closed, "the connection is still open")
    add(f"MadeYouReset (CVE-2025-8671): {name}", made_you_reset)

for name, data in (
        ("WINDOW_UPDATE of 0 on the connection", frame(WINDOW_UPDATE, 0, 0, b"\0\0\0\0")),
        ("DATA after END_STREAM", call(1) + frame(DATA, 0, 1, b"x")),
        ("PRIORITY of a wrong length", frame(PRIORITY, 0, 1, b"abc")),
        ("DATA on stream 0", frame(DATA, 0, 0, b"x")),
        ("HEADERS on an even stream", request(2)),
        ("a frame larger than 16384 bytes", frame(DATA, 0, 1, b"x" * 16385)),
        ("PUSH_PROMISE from a client", frame(PUSH_PROMISE, END_HEADERS, 1, b"\0\0\0\2" + block())),
        ("a broken header block", frame(HEADERS, END_HEADERS, 1, b"\xff\xff\xff\xff\xff\xff")),
        ("CONTINUATION out of nowhere", frame(CONTINUATION, END_HEADERS, 1, block())),
        ("SETTINGS of a wrong length", frame(SETTINGS, 0, 0, b"abc")),
        ("garbage", bytes(range(256)) * 40)):
    def broken(data=data):
        with attacked() as agent, Peer(agent.address) as peer:
            peer.send(data)
            check(peer.wait_closed(5), "the connection is still open")
    add(f"connection error at once: {name}", broken)

for name, options in (("405", {"method": "BREW"}), ("415", {"kind": "application/json"})):
    def storm(options=options):
        with attacked(limit="glitches_per_s") as agent, Peer(agent.address) as peer:
            flood(peer, lambda n: request(2 * n + 1, flags=END_HEADERS | END_STREAM, **options))
            is_stopped(peer)
    add(f"storm of requests that are answered with {name}", storm)

# ---- pings ----


@test("PING flood from a peer that reads: too_many_pings")
def pings_reading():
    with attacked(limit="ping_strikes") as agent, Peer(agent.address) as peer:
        flood(peer, lambda n: frame(PING, 0, 0, struct.pack(">Q", n)), chunk=5)
        is_stopped(peer)
        check(peer.goaway() == (CALM, "too_many_pings"), f"{peer.goaway()}")


for name, data in (("PING", frame(PING, 0, 0, b"x" * 8)), ("SETTINGS", frame(SETTINGS))):
    def not_reading(data=data):
        with attacked() as agent, Peer(agent.address, receive_buffer=4096) as peer:
            deadline = time.monotonic() + 20
            while peer.send(data * 2000, 1) and time.monotonic() < deadline:
                pass
            check(peer.is_closed or peer.wait_closed(30), "the connection is still open")
    add(f"{name} flood from a peer that does not read", not_reading)


@test("pings of a bandwidth estimator, one after each answer, are no abuse")
def estimator():
    with attacked() as agent, Peer(agent.address) as peer:
        for n in range(300):
            peer.send(call(2 * n + 1) + frame(PING, 0, 0, bytes([2, 4, 16, 16, 9, 14, 7, 7])))
            check(peer.wait_for(HEADERS, 2 * n + 1), f"no answer to call {n}: {peer.goaway()}")
        check(not peer.goaway() and peer.count(PING) >= 299, f"{peer.goaway()}, {peer.count(PING)} PINGs answered")


# ---- streams ----


@test("more streams than allowed before our SETTINGS are acknowledged: refused one by one")
def streams_before_ack():
    with attacked("--limit=streams=100") as agent, Peer(agent.address, ack=False) as peer:
        peer.send(b"".join(request(2 * n + 1, path=STREAM_IS_ACTIVE) for n in range(150)))
        wait_until(lambda: peer.pump() or peer.resets(REFUSED) == 50 or peer.is_closed, "50 refusals")
        check(peer.resets(REFUSED) == 50 and not peer.goaway(), f"{peer.resets()} resets, {peer.goaway()}")


@test("more streams than allowed after that: an error of the connection")
def streams_after_ack():
    with attacked("--limit=streams=100") as agent, Peer(agent.address) as peer:
        peer.send(b"".join(request(2 * n + 1, path=STREAM_IS_ACTIVE) for n in range(150)))
        check(peer.wait_closed(), "the connection is still open")
        check(peer.goaway() and peer.goaway()[0] in (PROTOCOL_ERROR, CALM), f"{peer.goaway()}")


@test("more streams than all connections together may have: the rest is refused, safe to retry")
def streams_of_all():
    with attacked("--limit=streams_all=500", limit="streams_all") as agent:
        peers = [Peer(agent.address) for _ in range(3)]
        for peer in peers:
            peer.send(b"".join(request(2 * n + 1, path=STREAM_IS_ACTIVE) for n in range(250)))
        wait_until(lambda: [p.pump() for p in peers] and sum(p.resets(REFUSED) for p in peers) >= 240, "refusals")
        time.sleep(0.5)  # the other client calls meanwhile
        for peer in peers:
            peer.socket.close()


# ---- messages ----


@test("a message said to have 4 GB is refused on its prefix")
def huge_prefix():
    with attacked(limit="message_bytes") as agent, Peer(agent.address) as peer:
        peer.send(request(1) + frame(DATA, 0, 1, b"\0\xff\xff\xff\xff" + b"x" * 100))
        answer = peer.wait_for(HEADERS, 1)
        check(answer and not peer.is_closed, "no answer, or the connection is gone")
        peer.send(call(3))
        check(peer.wait_for(HEADERS, 3), "no answer afterwards")


@test("unfinished messages on many streams: the connection's budget holds, the rest is refused")
def many_messages():
    with attacked(limit="receive_bytes", memory_kb=8000) as agent, Peer(agent.address) as peer:
        half = b"\0" + struct.pack(">I", 60000) + b"x" * 16000
        for n in range(500):
            if not peer.send(request(2 * n + 1) + frame(DATA, 0, 2 * n + 1, half) +
                             frame(WINDOW_UPDATE, 0, 0, struct.pack(">I", 1)), 2):
                break
            peer.pump(0.001)
        wait_until(lambda: peer.pump() or peer.count(HEADERS) > 50 or peer.is_closed, "refusals")


@test("the budget of all connections holds too")
def many_messages_of_all():
    with attacked("--limit=receive_bytes_all=2000000", limit="receive_bytes_all", memory_kb=8000) as agent:
        peers = [Peer(agent.address) for _ in range(4)]
        half = b"\0" + struct.pack(">I", 60000) + b"x" * 16000
        for n in range(60):
            for peer in peers:
                peer.send(request(2 * n + 1) + frame(DATA, 0, 2 * n + 1, half), 2)
        wait_until(lambda: [p.pump() for p in peers] and sum(p.count(HEADERS) for p in peers) > 20, "refusals")
        time.sleep(0.5)  # the other client calls meanwhile
        for peer in peers:
            peer.socket.close()


@test("protobuf that costs much memory for little bytes is refused, not served")
def amplification():
    with attacked() as agent, Peer(agent.address) as peer:
        # Sixty kilobytes of two-byte unknown fields, then of empty map entries.
        for stream, payload in ((1, b"\x50\x01" * 30000), (3, b"\x0a\xff\xd3\x03" + b"\x1a\x00" * 29951)):
            body = b"\0" + struct.pack(">I", len(payload)) + payload
            data = b"".join(frame(DATA, 0, stream, body[i:i + 16000]) for i in range(0, len(body), 16000))
            peer.send(request(stream) + data + frame(DATA, END_STREAM, stream))
            check(peer.wait_for(HEADERS, stream), f"no answer on {stream}: {peer.goaway()}")


# ---- connections ----


@test("more connections than allowed: the newest is closed, the others live")
def many_connections():
    with attacked("--limit=connections=40", limit="connections") as agent:
        peers = [Peer(agent.address, say_hello=False) for _ in range(60)]
        wait_until(lambda: [p.pump(0.001) for p in peers] and sum(p.is_closed for p in peers) >= 15, "closed connections")
        check(sum(not p.is_closed for p in peers) >= 30, "too many were closed")
        for peer in peers:
            peer.socket.close()
        time.sleep(0.3)  # the page below needs a place


@test("more connections from one address than allowed")
def many_of_one():
    with attacked("--limit=connections_per_ip=40", limit="connections_per_ip") as agent:
        peers = [Peer(agent.address, say_hello=False) for _ in range(60)]
        wait_until(lambda: [p.pump(0.001) for p in peers] and sum(p.is_closed for p in peers) >= 15, "closed connections")
        for peer in peers:
            peer.socket.close()
        time.sleep(0.3)


@test("no file descriptor left: accepting pauses, and goes on once there are some")
def no_descriptors():
    with attacked() as agent:
        subprocess.run(["prlimit", f"--pid={agent.process.pid}", "--nofile=64:64"], check=True)
        peers = [socket.create_connection(("127.0.0.1", agent.port)) for _ in range(120)]
        time.sleep(1)
        cpu = agent.cpu_s()
        time.sleep(1)
        check(agent.cpu_s() - cpu < 0.7, "it spins while there are no descriptors")
        for peer in peers:
            peer.close()

        def is_counted():
            try:
                return agent.metric("keda_gpu_scaler_accept_errors_total") > 0
            except (OSError, http.client.HTTPException):
                return False  # the first connection after may still be one of those that were turned away
        wait_until(is_counted, "the error in the metrics")


@test("two thousand connections that come and go leave nothing behind", alone=True)
def churn():
    with attacked() as agent:
        for _ in range(20):
            peers = [Peer(agent.address, say_hello=False) for _ in range(100)]
            for peer in peers:
                peer.send(b"PRI * HT")
                peer.socket.close()
        wait_until(lambda: agent.metric("keda_gpu_scaler_connections") < 5, "all connections to be gone")


resource.setrlimit(resource.RLIMIT_NOFILE, (4096, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
