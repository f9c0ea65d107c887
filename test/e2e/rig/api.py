"""A small Kubernetes API client: JSON over HTTPS with a client certificate, a deadline on every request.

It knows paths and verbs, not the meaning of objects.
"""

import http.client
import json
import ssl
import threading
import urllib.parse

_TIMEOUT_S = 10


class ApiError(Exception):
    def __init__(self, status, method, path, body):
        self.status, self.body = status, body
        super().__init__(f"{method} {path}: HTTP {status}: {body[:600]}")


class Api:
    def __init__(self, port, ca, certificate, key):
        self._port = port
        self._tls = ssl.create_default_context(cafile=str(ca))
        self._tls.load_cert_chain(str(certificate), str(key))
        self._mine = threading.local()

    def request(self, method, path, body=None, content_type="application/json"):
        """Returns the decoded answer (text where it is not JSON); raises ApiError for anything but 2xx."""
        data = body if isinstance(body, (bytes, type(None))) else json.dumps(body).encode()
        headers = {"Accept": "application/json", "Content-Type": content_type}
        answer, text = self._exchange(method, path, data, headers)
        if not 200 <= answer.status < 300:
            raise ApiError(answer.status, method, path, text)
        return json.loads(text) if "json" in answer.headers.get("Content-Type", "") else text

    def _exchange(self, method, path, data, headers):
        """On the thread's own connection, anew where the server has closed it in the meantime."""
        connection = getattr(self._mine, "connection", None)
        is_used = connection is not None
        if not is_used:
            connection = http.client.HTTPSConnection("127.0.0.1", self._port, context=self._tls, timeout=_TIMEOUT_S)
        self._mine.connection = None
        try:
            connection.request(method, path, data, headers)
            answer = connection.getresponse()
            text = answer.read().decode(errors="replace")
        except (http.client.HTTPException, OSError):
            connection.close()
            if not is_used:
                raise
            return self._exchange(method, path, data, headers)
        self._mine.connection = connection
        return answer, text

    def get(self, path):
        return self.request("GET", path)

    def find(self, path):
        """Like get(), but None where there is no such object."""
        try:
            return self.get(path)
        except ApiError as error:
            if error.status == 404:
                return None
            raise

    def create(self, path, body):
        return self.request("POST", path, body)

    def apply(self, path, body):
        """Server-side apply, as `kubectl apply --server-side --force-conflicts`; body is an object or YAML bytes."""
        query = urllib.parse.urlencode({"fieldManager": "e2e", "force": "true"})
        return self.request("PATCH", f"{path}?{query}", body, "application/apply-patch+yaml")

    def merge(self, path, body):
        return self.request("PATCH", path, body, "application/merge-patch+json")

    def delete(self, path):
        try:
            return self.request("DELETE", path)
        except ApiError as error:
            if error.status == 404:
                return None
            raise
