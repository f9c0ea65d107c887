"""A gRPC client of a few lines for measurements: HTTP/2 with prior knowledge, messages as bytes. It sends requests and
counts answers; it judges none, and reads no header: an answer with a message is one with status OK (gRPC sends errors
without one)."""
import socket
import struct

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, RST_STREAM, SETTINGS, PING, GOAWAY, WINDOW_UPDATE = 0, 1, 3, 4, 6, 7, 8
ACK = END_STREAM = 0x1
END_HEADERS = 0x4
SERVICE = "externalscaler.ExternalScaler"


# ---- protobuf ----

def varint(n):
    out = bytearray()
    while n >= 0x80:
        out.append(n & 0x7F | 0x80)
        n >>= 7
    return bytes(out) + bytes([n])


def field(number, content):
    """A length-delimited field."""
    content = content.encode() if isinstance(content, str) else content
    return varint(number << 3 | 2) + varint(len(content)) + content


def reference(metadata, name="vllm", namespace="default"):
    """A ScaledObjectRef."""
    pairs = b"".join(field(3, field(1, k) + field(2, v)) for k, v in metadata.items())
    return field(1, name) + field(2, namespace) + pairs


def metrics_request(metadata, asked, **names):
    """A GetMetricsRequest."""
    return field(1, reference(metadata, **names)) + field(2, asked)


def grpc_frame(message):
    return b"\0" + struct.pack(">I", len(message)) + message


# ---- HTTP/2 ----

def frame(kind, flags, stream, payload):
    return struct.pack(">I", len(payload))[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + payload


def header_block(path, authority):
    """Literals that are not indexed, without Huffman codes: RFC 7541 section 6.2.2."""
    lines = ((":method", "POST"), (":scheme", "http"), (":path", path), (":authority", authority),
             ("content-type", "application/grpc"), ("te", "trailers"))
    return b"".join(b"\0" + bytes([len(k)]) + k.encode() + varint(len(v)) + v.encode() for k, v in lines)


class Connection:
    """One connection. Answers arrive in receive()."""

    def __init__(self, address, timeout_s=30):
        self.socket = socket.create_connection(address, timeout_s)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.authority = f"{address[0]}:{address[1]}"
        self.next_stream, self.input, self.blocks = 1, bytearray(), {}
        wide = struct.pack(">I", 2**30)
        self.socket.sendall(PREFACE + frame(SETTINGS, 0, 0, b"\0\4" + wide) + frame(WINDOW_UPDATE, 0, 0, wide))

    def send(self, method, *messages):
        """One call a message, all in one write. Returns how many."""
        path = method if method.startswith("/") else f"/{SERVICE}/{method}"
        block = self.blocks.setdefault(path, header_block(path, self.authority))
        out = bytearray()
        for message in messages:
            out += frame(HEADERS, END_HEADERS, self.next_stream, block)
            out += frame(DATA, END_STREAM, self.next_stream, grpc_frame(message))
            self.next_stream += 2
        self.socket.sendall(out)
        return len(messages)

    def frames(self):
        """The frames that are there, waiting for at least one."""
        while True:
            seen = False
            while len(self.input) >= 9:
                length = int.from_bytes(self.input[:3], "big")
                if len(self.input) < 9 + length:
                    break
                kind, flags = self.input[3], self.input[4]
                stream = int.from_bytes(self.input[5:9], "big") & 0x7FFFFFFF
                payload = bytes(self.input[9:9 + length])
                del self.input[:9 + length]
                seen = True
                yield kind, flags, stream, payload
            if seen:
                return
            more = self.socket.recv(1 << 16)
            if not more:
                raise EOFError("the server closed the connection")
            self.input += more

    def react(self, kind, flags, payload):
        if kind == SETTINGS and not flags & ACK:
            self.socket.sendall(frame(SETTINGS, ACK, 0, b""))
        elif kind == PING and not flags & ACK:
            self.socket.sendall(frame(PING, ACK, 0, payload))
        elif kind == GOAWAY:
            raise EOFError(f"GOAWAY: {payload[8:].decode(errors='replace')}")

    def receive(self, n):
        """Wait until n calls have ended. Returns the messages of those that had one."""
        messages, ended = [], 0
        while ended < n:
            for kind, flags, _, payload in self.frames():
                self.react(kind, flags, payload)
                if kind == DATA and payload:
                    messages.append(payload[5:])
                ended += kind == RST_STREAM or (kind in (DATA, HEADERS) and bool(flags & END_STREAM))
        return messages

    def wait_for_headers(self, n):
        """Wait until n calls have begun to answer: what tells that a server stream is open."""
        begun = 0
        while begun < n:
            for kind, flags, _, payload in self.frames():
                self.react(kind, flags, payload)
                begun += kind == HEADERS

    def call(self, method, message):
        """The answer's message, or None where the call failed."""
        self.send(method, message)
        messages = self.receive(1)
        return messages[0] if messages else None

    def close(self):
        self.socket.close()


def doubles_in(message):
    """All doubles in a message of one nested message, the shape of GetMetricsResponse."""
    length, at = message[1], 2
    inner, found = message[at:at + length], []
    at = 0
    while at < len(inner):
        kind = inner[at] & 7
        at += 1
        if kind == 1:
            found.append(struct.unpack("<d", inner[at:at + 8])[0])
            at += 8
        elif kind == 2:
            at += 1 + inner[at]
        else:
            while inner[at] & 0x80:
                at += 1
            at += 1
    return found
