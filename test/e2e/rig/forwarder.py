"""A TCP forwarder on loopback: a Service's address with one or more servers behind it, or a connection that can be cut.

New connections go to the first server that takes them, beginning with the one after the last used. It looks into nothing.
"""

import contextlib
import socket
import threading


class Forwarder:
    def __init__(self, port, servers):
        """servers: ports on loopback."""
        self.port, self._servers, self._next = port, list(servers), 0
        self._lock, self._open, self._is_blocked = threading.Lock(), set(), False
        self._listener = socket.create_server(("127.0.0.1", port))
        threading.Thread(target=self._accept, daemon=True, name=f"forwarder-{port}").start()

    def lead_to(self, servers):
        """New connections go there from now on."""
        self._servers = list(servers)

    @property
    def address(self):
        return f"127.0.0.1:{self.port}"

    def block(self):
        """Cuts what is open; new connections are accepted and hear nothing, as behind a firewall."""
        self._is_blocked = True
        self._cut()

    def unblock(self):
        self._is_blocked = False
        self._cut()

    def close(self):
        self._listener.close()
        self._cut()

    def _cut(self):
        with self._lock:
            sockets, self._open = self._open, set()
        for one in sockets:
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()

    def _accept(self):
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            with self._lock:
                self._open.add(client)
            if self._is_blocked:
                continue
            server = self._dial(client)
            if server is None:
                self._end(client)
                continue
            with self._lock:
                self._open.add(server)
            for source, sink in ((client, server), (server, client)):
                threading.Thread(target=self._copy, args=(source, sink), daemon=True).start()

    def _dial(self, _client):
        servers = self._servers
        for step in range(len(servers)):
            place = (self._next + step) % len(servers)
            with contextlib.suppress(OSError):
                server = socket.create_connection(("127.0.0.1", servers[place]), timeout=2)
                server.settimeout(None)
                self._next = place + 1
                return server
        return None

    def _copy(self, source, sink):
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                sink.sendall(data)
        self._end(source)
        self._end(sink)

    def _end(self, one):
        with self._lock:
            self._open.discard(one)
        with contextlib.suppress(OSError):
            one.shutdown(socket.SHUT_RDWR)
        one.close()


class Services(Forwarder):
    """The cluster's names for KEDA, which has neither its DNS nor its network: an HTTP proxy (CONNECT) that knows, by
    NAME:PORT, the forwarder behind which a Service's pods are."""

    def __init__(self, port):
        self.known = {}
        super().__init__(port, [])

    def _dial(self, client):
        with contextlib.suppress(OSError):
            client.settimeout(2)
            said = b""
            while b"\r\n\r\n" not in said and len(said) < 8192 and (data := client.recv(4096)):
                said += data
            service = self.known.get(said.split()[1].decode() if len(said.split()) > 1 else "")
            if service is None:
                client.sendall(b"HTTP/1.1 502 no such Service\r\n\r\n")
                return None
            server = socket.create_connection(("127.0.0.1", service.port), timeout=2)
            for one in (client, server):
                one.settimeout(None)
            client.sendall(b"HTTP/1.1 200 connected\r\n\r\n")
            return server
        return None
