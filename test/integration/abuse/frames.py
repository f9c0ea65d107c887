"""HTTP/2 by hand: frames as bytes, header blocks of plain literals, and a connection that says how it ended."""
import contextlib
import socket
import struct
import time

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, PRIORITY, RST_STREAM, SETTINGS, PUSH_PROMISE, PING, GOAWAY, WINDOW_UPDATE, CONTINUATION = range(10)
END_STREAM, ACK, END_HEADERS, PADDED = 1, 1, 4, 8
NO_ERROR, PROTOCOL_ERROR, FLOW_CONTROL, STREAM_CLOSED, REFUSED, CANCEL, CALM = 0, 1, 3, 5, 7, 8, 11
GET_METRICS = "/externalscaler.ExternalScaler/GetMetrics"
STREAM_IS_ACTIVE = "/externalscaler.ExternalScaler/StreamIsActive"


def frame(kind, flags=0, stream=0, payload=b""):
    return struct.pack(">I", len(payload))[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + payload


def _length(size, prefix_bits, first=0):
    """HPACK's integers."""
    most = (1 << prefix_bits) - 1
    if size < most:
        return bytes([first | size])
    out, size = [first | most], size - most
    while size >= 128:
        out.append(128 | size & 127)
        size >>= 7
    return bytes(out + [size])


def literal(name, value, first=0):
    """A header field without index; first=0x40 puts it into the dynamic table."""
    name, value = name.encode(), value if isinstance(value, bytes) else value.encode()
    return bytes([first]) + _length(len(name), 7) + name + _length(len(value), 7) + value


def block(*extra, method="POST", path=GET_METRICS, kind="application/grpc"):
    """A request's header block."""
    fields = [(":method", method), (":scheme", "http"), (":path", path), (":authority", "test")]
    fields += [("content-type", kind), ("te", "trailers")] if method == "POST" else []
    return b"".join(literal(*field) for field in [*fields, *extra])


def request(stream, *extra, flags=END_HEADERS, **options):
    return frame(HEADERS, flags, stream, block(*extra, **options))


def message(stream, payload=b"", flags=END_STREAM):
    """DATA with one gRPC message."""
    return frame(DATA, flags, stream, b"\0" + struct.pack(">I", len(payload)) + payload)


def call(stream, **options):
    """A whole unary call; its empty message is refused, which is an answer too."""
    return request(stream, **options) + message(stream)


class Peer:
    """One connection. Everything that comes is parsed by pump(); is_closed tells of its end."""

    def __init__(self, address, say_hello=True, ack=True, window=None, wrap=None, receive_buffer=None):
        host, _, port = address.rpartition(":")
        self.socket = socket.socket()
        if receive_buffer:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        self.socket.connect((host, int(port)))
        if wrap:
            self.socket = wrap(self.socket)
        self.frames, self.rest, self.is_closed = [], b"", False
        if say_hello:
            settings = struct.pack(">HI", 4, window) if window is not None else b""
            self.send(PREFACE + frame(SETTINGS, 0, 0, settings))
            if ack:
                self.wait_for(SETTINGS)
                self.send(frame(SETTINGS, ACK))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()

    def send(self, data, patience_s=10):
        """True unless the other side is gone, or takes nothing more for patience_s."""
        self.socket.settimeout(patience_s)
        try:
            self.socket.sendall(data)
            return True
        except TimeoutError:
            return False
        except OSError:
            self.is_closed = True
            return False

    def pump(self, patience_s=0.05):
        """Read what is there."""
        self.socket.settimeout(patience_s)
        with contextlib.suppress(TimeoutError):
            try:
                data = self.socket.recv(1 << 18)
            except TimeoutError:
                return
            except OSError:
                data = b""
            if not data:
                self.is_closed = True
            self.rest += data
        while len(self.rest) >= 9:
            length = int.from_bytes(self.rest[:3], "big")
            if len(self.rest) < 9 + length:
                break
            kind, flags = self.rest[3], self.rest[4]
            stream = int.from_bytes(self.rest[5:9], "big") & 0x7FFFFFFF
            self.frames.append((kind, flags, stream, self.rest[9:9 + length]))
            self.rest = self.rest[9 + length:]

    def wait_for(self, kind, stream=None, patience_s=10):
        """The payload of the first such frame, or None."""
        deadline = time.monotonic() + patience_s
        while True:
            for f in self.frames:
                if f[0] == kind and stream in (None, f[2]):
                    return f[3]
            if self.is_closed or time.monotonic() > deadline:
                return None
            self.pump()

    def wait_closed(self, patience_s=15):
        deadline = time.monotonic() + patience_s
        while not self.is_closed and time.monotonic() < deadline:
            self.pump(0.1)
        return self.is_closed

    def goaway(self):
        """(code, text) of the last GOAWAY, or None."""
        found = [f[3] for f in self.frames if f[0] == GOAWAY]
        return (int.from_bytes(found[-1][4:8], "big"), found[-1][8:].decode(errors="replace")) if found else None

    def resets(self, code=None):
        codes = [int.from_bytes(f[3], "big") for f in self.frames if f[0] == RST_STREAM]
        return len(codes) if code is None else codes.count(code)

    def count(self, kind):
        return sum(f[0] == kind for f in self.frames)
