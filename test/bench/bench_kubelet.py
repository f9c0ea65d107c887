"""A kubelet's pod-resources socket that lists what it is given: one answer to every call, over HTTP/2 in a few lines."""
import contextlib
import pathlib
import socket
import threading

import h2


def literal(name, value):
    """A header that is not indexed."""
    return b"\0" + bytes([len(name)]) + name.encode() + bytes([len(value)]) + value.encode()


STATUS_200 = b"\x88"  # RFC 7541, appendix A
HEAD = STATUS_200 + literal("content-type", "application/grpc")
TRAILERS = literal("grpc-status", "0")


def pod(namespace, name, *devices):
    """PodResources with one container."""
    container = h2.field(1, "main") + b"".join(
        h2.field(2, h2.field(1, "nvidia.com/gpu") + h2.field(2, device)) for device in devices)
    return h2.field(1, name) + h2.field(2, namespace) + h2.field(3, container)


class Kubelet:
    """As a context; `path` is its socket."""

    def __init__(self, path, *pods):
        self.path = pathlib.Path(path)
        self.answer = h2.grpc_frame(b"".join(h2.field(1, one) for one in pods))

    def __enter__(self):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.bind(str(self.path))
        self.socket.listen()
        threading.Thread(target=self.serve, daemon=True).start()
        return self

    def __exit__(self, *_):
        self.socket.close()

    def serve(self):
        with contextlib.suppress(OSError):
            while True:
                connection, _ = self.socket.accept()
                threading.Thread(target=self.talk, args=(connection,), daemon=True).start()

    def talk(self, connection):
        with connection, contextlib.suppress(OSError), connection.makefile("rb") as stream:
            stream.read(len(h2.PREFACE))
            connection.sendall(h2.frame(h2.SETTINGS, 0, 0, b""))
            while len(head := stream.read(9)) == 9:
                kind, flags, number = head[3], head[4], int.from_bytes(head[5:9], "big")
                payload = stream.read(int.from_bytes(head[:3], "big"))
                if kind in (h2.SETTINGS, h2.PING) and not flags & h2.ACK:
                    connection.sendall(h2.frame(kind, h2.ACK, 0, payload if kind == h2.PING else b""))
                if kind in (h2.DATA, h2.HEADERS) and flags & h2.END_STREAM:
                    connection.sendall(h2.frame(h2.HEADERS, h2.END_HEADERS, number, HEAD) +
                                       h2.frame(h2.DATA, 0, number, self.answer) +
                                       h2.frame(h2.HEADERS, h2.END_HEADERS | h2.END_STREAM, number, TRAILERS))
