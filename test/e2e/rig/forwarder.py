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
            server = self._dial()
            if server is None:
                self._end(client)
                continue
            with self._lock:
                self._open.add(server)
            for source, sink in ((client, server), (server, client)):
                threading.Thread(target=self._copy, args=(source, sink), daemon=True).start()

    def _dial(self):
        for step in range(len(self._servers)):
            place = (self._next + step) % len(self._servers)
            with contextlib.suppress(OSError):
                server = socket.create_connection(("127.0.0.1", self._servers[place]), timeout=2)
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
