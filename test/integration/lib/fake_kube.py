#!/usr/bin/env python3
"""A Kubernetes API server for tests: objects are plain dicts. It gets, lists (in pages), watches (with bookmarks, ERROR 410
and selectors), creates and merges, has discovery and /scale, and misbehaves as told.

    with FakeKube(token="secret") as kube:
        kube.put({"apiVersion": "v1", "kind": "Pod", "metadata": {"namespace": "a", "name": "p"}, "status": {...}})
        kube.fault(verb="watch", cut_after_bytes=100, times=1)
        kube.delete("pods", "a", "p")
        kube.write_kubeconfig(path)

Alone, `fake_kube.py --port N [--token T] [--tls DIR]` serves until it is ended; POST /_fake takes {"do": "put",
"arguments": [...], "named": {...}} and calls the method of that name.
"""
import argparse
import base64
import copy
import email.utils
import gzip
import http.server
import json
import pathlib
import re
import socket
import ssl
import subprocess
import sys
import threading
import time
import urllib.parse
import uuid

# (apiVersion, kind, plural, has a scale)
KINDS = [
    ("v1", "Pod", "pods", False),
    ("v1", "Service", "services", False),
    ("v1", "Secret", "secrets", False),
    ("apps/v1", "Deployment", "deployments", True),
    ("apps/v1", "StatefulSet", "statefulsets", True),
    ("apps/v1", "DaemonSet", "daemonsets", False),
    ("batch/v1", "Job", "jobs", False),
    ("keda.sh/v1alpha1", "ScaledObject", "scaledobjects", False),
    ("keda.sh/v1alpha1", "ScaledJob", "scaledjobs", False),
    ("autoscaling/v2", "HorizontalPodAutoscaler", "horizontalpodautoscalers", False),
    ("discovery.k8s.io/v1", "EndpointSlice", "endpointslices", False),
    ("leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet", "leaderworkersets", True),
    ("argoproj.io/v1alpha1", "Rollout", "rollouts", True),
]
PATH = re.compile(r"^/(?:api|apis/(?P<group>[^/]+))/(?P<version>[^/]+)"
                  r"(?:/namespaces/(?P<ns>[^/]+))?(?:/(?P<plural>[^/]+)(?:/(?P<name>[^/]+)(?:/(?P<sub>[^/]+))?)?)?$")
FIELDS = {"metadata.name": ("metadata", "name"), "metadata.namespace": ("metadata", "namespace"),
          "spec.nodeName": ("spec", "nodeName"), "status.phase": ("status", "phase")}


def _field(thing, path):
    for key in path:
        thing = (thing or {}).get(key)
    return thing


def matches_labels(selector, labels):
    """Does a label selector in its text form ("a=b,c in (d,e),!f") select these labels?"""
    for part in re.findall(r"(?:[^,(]|\([^)]*\))+", selector or ""):
        part = part.strip()
        among = re.match(r"^(\S+)\s+(in|notin)\s+\(([^)]*)\)$", part)
        if among:
            inside = labels.get(among[1]) in [value.strip() for value in among[3].split(",")]
            good = inside == (among[2] == "in")
        elif "!=" in part:
            key, value = part.split("!=", 1)
            good = labels.get(key.strip()) != value.strip()
        elif "=" in part:
            key, value = re.split("==?", part, maxsplit=1)
            good = labels.get(key.strip()) == value.strip()
        else:
            good = (part.lstrip("!") in labels) != part.startswith("!")
        if not good:
            return False
    return True


def matches_fields(selector, thing):
    """Equality of the few fields that are selectable here."""
    for part in filter(None, (selector or "").split(",")):
        key, value = re.split("!=|==?", part, maxsplit=1)
        is_equal = (_field(thing, FIELDS[key]) or "") == value
        if is_equal == ("!=" in part):
            return False
    return True


def _merge(thing, change):
    """RFC 7396, in place."""
    for key, value in change.items():
        if value is None:
            thing.pop(key, None)
        elif isinstance(value, dict):
            _merge(thing.setdefault(key, {}), value)
        else:
            thing[key] = value


class Refusal(Exception):
    """An answer that is a Status object."""

    def __init__(self, code, reason, message):
        super().__init__(message)
        self.code, self.reason, self.message = code, reason, message

    def status(self):
        """The object itself."""
        return {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "message": self.message,
                "reason": self.reason, "code": self.code}


class FakeKube:  # pylint: disable=too-many-instance-attributes
    """One server. All methods may be called from any thread, before and while it serves."""

    def __init__(self, port=0, token=None, tls_dir=None, bookmark_s=60.0, address="127.0.0.1"):
        self.token, self.bookmark_s, self.skew_s = token, bookmark_s, 0.0
        self.kinds = list(KINDS)
        self.requests = []          # (verb, path with query), in order
        self.bookmarks = 0          # sent so far
        self._lock = threading.Condition(threading.RLock())
        self._version, self._oldest = 1000, 0
        self._objects = {}          # (apiVersion, plural) -> {(ns, name): object}
        self._history = []          # (version, (apiVersion, plural), before or None, after or None)
        self._scales = {}           # (plural, ns, name) -> Scale
        self._faults = []
        self._pages = {}            # continue token -> (version, [objects])
        self._epoch = 0             # of watches: cut_watches ends those of older ones
        self._is_over = False
        self._server = _Server((address, port), _Handler)
        self._server.fake = self
        self.port = self._server.server_address[1]
        self.ca_file = None
        if tls_dir:
            self._wrap(pathlib.Path(tls_dir), address)
        self.url = f"{'https' if tls_dir else 'http'}://{address}:{self.port}"
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)

    def _wrap(self, folder, address):
        make_certificates(folder, address)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(folder / "server.pem", folder / "server.key")
        context.load_verify_locations(folder / "ca.pem")
        context.verify_mode = ssl.CERT_OPTIONAL
        self.ca_file = folder / "ca.pem"
        self._server.tls = context

    def start(self):
        """Serve, in a thread."""
        self._thread.start()
        return self

    def stop(self):
        """Serve no more; open watches are cut."""
        with self._lock:
            self._is_over = True
            self._lock.notify_all()
        self._server.shutdown()
        self._server.server_close()
        self.cut_connections()

    def __enter__(self):
        return self.start()

    def __exit__(self, *_):
        self.stop()

    # ---- objects ----

    def _resource(self, thing):
        for version, kind, plural, _ in self.kinds:
            if (version, kind) == (thing["apiVersion"], thing["kind"]):
                return version, plural
        raise KeyError(f"{thing['apiVersion']} {thing['kind']}: add it with add_kind")

    def _resource_of_plural(self, plural):
        return next((version, name) for version, _, name, _ in self.kinds if name == plural)

    def add_kind(self, version, kind, plural, has_scale=False):
        """Another kind, as a CRD brings it."""
        with self._lock:
            self.kinds.append((version, kind, plural, has_scale))

    def _record(self, resource, before, after):
        self._history.append((self._version, resource, before, after))
        self._lock.notify_all()

    def put(self, thing):
        """Create or replace an object; uid, resourceVersion and creationTimestamp are filled in where they are not there.
        Returns its new resourceVersion."""
        thing = copy.deepcopy(thing)
        with self._lock:
            resource = self._resource(thing)
            meta = thing.setdefault("metadata", {})
            objects = self._objects.setdefault(resource, {})
            key = (meta.setdefault("namespace", "default"), meta["name"])
            before = objects.get(key)
            self._version += 1
            meta["resourceVersion"] = str(self._version)
            meta.setdefault("uid", before["metadata"]["uid"] if before else str(uuid.uuid4()))
            meta.setdefault("creationTimestamp", before["metadata"]["creationTimestamp"] if before else
                            time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + self.skew_s)))
            if before and before["metadata"]["uid"] != meta["uid"]:
                objects.pop(key)
                self._record(resource, before, None)
                self._version += 1
                meta["resourceVersion"], before = str(self._version), None
            objects[key] = thing
            self._record(resource, before, thing)
            return meta["resourceVersion"]

    def delete(self, plural, ns, name):
        """Remove an object."""
        with self._lock:
            resource = self._resource_of_plural(plural)
            before = self._objects.get(resource, {}).pop((ns, name))
            self._version += 1
            self._record(resource, before, None)

    def find(self, plural, ns, name):
        """A copy of an object; None where there is none."""
        with self._lock:
            return copy.deepcopy(self._objects.get(self._resource_of_plural(plural), {}).get((ns, name)))

    def create(self, thing, ns):
        """What a POST does."""
        with self._lock:
            name = thing["metadata"]["name"]
            if (ns, name) in self._objects.get(self._resource(thing), {}):
                raise Refusal(409, "AlreadyExists", f'{name} already exists')
            thing["metadata"]["namespace"] = ns
            self.put(thing)
            return self._objects[self._resource(thing)][(ns, name)]

    def merge(self, resource, ns, name, change):
        """What a merge PATCH does."""
        with self._lock:
            thing = copy.deepcopy(self.get(resource, ns, name, None))
            version = change.get("metadata", {}).pop("resourceVersion", None)
            if version not in (None, thing["metadata"]["resourceVersion"]):
                raise Refusal(409, "Conflict", f'{name}: the object has been modified')
            _merge(thing, change)
            self.put(thing)
            return self._objects[resource][(ns, name)]

    def set_scale(self, plural, ns, name, spec, status, selector):
        """What /scale says, where it is not to come from the object (spec.replicas, status.replicas, spec.selector)."""
        with self._lock:
            self._scales[(plural, ns, name)] = (spec, status, selector)

    # ---- misbehaviour ----

    def expire(self):
        """Forget history and pages: places from before now are 410 Gone."""
        with self._lock:
            self._oldest = self._version
            self._history.clear()
            self._pages.clear()

    def expire_watches(self):
        """Open watches get an ERROR event of 410, and places from before now are gone."""
        self.expire()
        with self._lock:
            self._epoch += 1
            self._lock.notify_all()

    def fault(self, times=None, **rule):
        """The next `times` (all) requests that match verb (get, list, watch, create, patch, discovery) and path (a regular expression)
        meet: status=500 (message=, headers={}), delay_s=2, hang=True, cut_after_bytes=10, body="raw text"."""
        with self._lock:
            self._faults.append(dict(rule, times=times))

    def clear_faults(self):
        """Behave again."""
        with self._lock:
            self._faults.clear()
            self._lock.notify_all()

    def cut_connections(self):
        """Cut every open connection."""
        self._server.cut()

    def find_fault(self, verb, path):
        """The first rule for this request, which is used up by one."""
        with self._lock:
            for rule in self._faults:
                if rule.get("verb", verb) == verb and re.search(rule.get("path", ""), path) and rule["times"] != 0:
                    if rule["times"] is not None:
                        rule["times"] -= 1
                    return rule
        return {}

    def hang(self):
        """Wait until faults are cleared or the server ends."""
        with self._lock:
            self._lock.wait_for(lambda: self._is_over or not self._faults)

    def count(self, verb, path=""):
        """How many such requests came."""
        with self._lock:
            return sum(1 for v, p in self.requests if v == verb and re.search(path, p))

    # ---- answers ----

    def note(self, verb, path):
        """Remember a request."""
        with self._lock:
            self.requests.append((verb, path))

    def discovery(self, version):
        """APIResourceList."""
        rows = [row for row in self.kinds if row[0] == version]
        if not rows:
            raise Refusal(404, "NotFound", "the server could not find the requested resource")
        resources = []
        for _, kind, plural, has_scale in rows:
            resources.append({"name": plural, "singularName": kind.lower(), "namespaced": True, "kind": kind,
                              "verbs": ["get", "list", "watch"]})
            if has_scale:
                resources.append({"name": plural + "/scale", "singularName": "", "namespaced": True,
                                  "group": "autoscaling", "version": "v1", "kind": "Scale", "verbs": ["get"]})
        return {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": version, "resources": resources}

    def get(self, resource, ns, name, sub):
        """One object, or its scale."""
        with self._lock:
            scale = self._scales.get((resource[1], ns, name))
            thing = self._objects.get(resource, {}).get((ns, name))
            if not thing and not scale:
                raise Refusal(404, "NotFound", f'{resource[1]} "{name}" not found')
            if not sub:
                return thing
            if not scale:
                labels = _field(thing, ("spec", "selector", "matchLabels")) or {}
                scale = (_field(thing, ("spec", "replicas")) or 0, _field(thing, ("status", "replicas")) or 0,
                         ",".join(f"{key}={value}" for key, value in labels.items()))
            return {"kind": "Scale", "apiVersion": "autoscaling/v1", "metadata": {"namespace": ns, "name": name},
                    "spec": {"replicas": scale[0]}, "status": {"replicas": scale[1], "selector": scale[2]}}

    @staticmethod
    def _selects(query, ns, thing):
        return (thing is not None and (not ns or thing["metadata"]["namespace"] == ns) and
                matches_labels(query.get("labelSelector"), thing["metadata"].get("labels", {})) and
                matches_fields(query.get("fieldSelector"), thing))

    def list(self, resource, ns, query):
        """A page of a list."""
        with self._lock:
            if "continue" in query:
                if query["continue"] not in self._pages:
                    raise Refusal(410, "Expired", "The provided continue parameter is too old to display a consistent list result")
                version, rest = self._pages[query["continue"]]
            else:
                objects = self._objects.get(resource, {})
                version, rest = self._version, [copy.deepcopy(o) for _, o in sorted(objects.items()) if self._selects(query, ns, o)]
            limit = int(query.get("limit", 0)) or len(rest)
            meta = {"resourceVersion": str(version)}
            if len(rest) > limit:
                meta["continue"] = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode()
                meta["remainingItemCount"] = len(rest) - limit
                self._pages[meta["continue"]] = (version, rest[limit:])
            kind = next(kind for v, kind, plural, _ in self.kinds if (v, plural) == resource)
            return {"kind": kind + "List", "apiVersion": resource[0], "metadata": meta, "items": rest[:limit]}

    def events(self, resource, ns, query):
        """The events of a watch that is open from here on."""
        return self._events(resource, ns, query, self._epoch)

    def _events(self, resource, ns, query, epoch):
        at = int(query.get("resourceVersion") or 0)
        until = time.monotonic() + float(query.get("timeoutSeconds", 1800))
        told = time.monotonic()
        while True:
            with self._lock:
                if at < self._oldest or epoch != self._epoch:
                    yield {"type": "ERROR", "object": Refusal(410, "Expired", f"too old resource version: {at}").status()}
                    return
                news = [e for e in self._history if e[0] > at]
                now = time.monotonic()
                if not news and not self._is_over and now < until:
                    self._lock.wait(max(0.0, min(until, told + self.bookmark_s) - now))
                version, is_over = self._version, self._is_over
            if not news and time.monotonic() >= told + self.bookmark_s and query.get("allowWatchBookmarks") == "true":
                told = time.monotonic()
                self.bookmarks += 1
                kind = next(kind for v, kind, plural, _ in self.kinds if (v, plural) == resource)
                yield {"type": "BOOKMARK", "object": {"kind": kind, "apiVersion": resource[0],
                                                      "metadata": {"resourceVersion": str(version), "creationTimestamp": None}}}
            for version, of, before, after in news:
                at = version
                was, is_ = self._selects(query, ns, before), self._selects(query, ns, after)
                if of != resource or not (was or is_):
                    continue
                kind = "MODIFIED" if was and is_ else "ADDED" if is_ else "DELETED"
                thing = copy.deepcopy(after if is_ else before)
                thing["metadata"]["resourceVersion"] = str(version)
                yield {"type": kind, "object": thing}
            if is_over or time.monotonic() >= until:
                return

    # ---- files for clients ----

    def kubeconfig(self, **user):
        """The text of a kubeconfig; user: token=, tokenFile=, client_certificate= and so on (token by default)."""
        cluster = {"server": self.url}
        if self.ca_file:
            cluster["certificate-authority-data"] = base64.b64encode(self.ca_file.read_bytes()).decode()
        entry = {key.replace("_", "-"): str(value) for key, value in user.items()}
        if not entry and self.token:
            entry = {"token": self.token}
        return json.dumps({"apiVersion": "v1", "kind": "Config", "current-context": "fake",
                           "contexts": [{"name": "fake", "context": {"cluster": "fake", "user": "fake"}}],
                           "clusters": [{"name": "fake", "cluster": cluster}], "users": [{"name": "fake", "user": entry}]})

    def write_kubeconfig(self, path, **user):
        """JSON, which is YAML."""
        pathlib.Path(path).write_text(self.kubeconfig(**user), encoding="utf-8")

    def write_service_account(self, folder, ns="default"):
        """The files that a pod is given; only with TLS. Returns the variables to set."""
        folder = pathlib.Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "token").write_text(self.token or "none", encoding="utf-8")
        (folder / "namespace").write_text(ns, encoding="utf-8")
        (folder / "ca.crt").write_bytes(self.ca_file.read_bytes())
        return {"KUBERNETES_SERVICE_HOST": "127.0.0.1", "KUBERNETES_SERVICE_PORT": str(self.port)}


def make_certificates(folder, address):
    """ca.pem, server.pem and server.key, client.pem and client.key in the folder, with the openssl program."""
    folder.mkdir(parents=True, exist_ok=True)

    def openssl(*arguments):
        subprocess.run(["openssl", *arguments], cwd=folder, check=True, capture_output=True)

    key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    openssl("req", "-x509", *key, "-keyout", "ca.key", "-out", "ca.pem", "-subj", "/CN=fake CA", "-days", "30")
    for name, extension in (("server", f"subjectAltName=IP:{address},DNS:localhost"), ("client", "extendedKeyUsage=clientAuth")):
        (folder / f"{name}.ext").write_text(extension + "\n", encoding="utf-8")
        openssl("req", *key, "-keyout", f"{name}.key", "-out", f"{name}.csr", "-subj", f"/CN={name}")
        openssl("x509", "-req", "-in", f"{name}.csr", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-days", "30",
                "-out", f"{name}.pem", "-extfile", f"{name}.ext")


class _Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 128
    allow_reuse_address = True
    fake, tls = None, None

    def __init__(self, *arguments):
        self._open, self._lock = set(), threading.Lock()
        super().__init__(*arguments)

    def finish_request(self, request, client_address):
        with self._lock:
            self._open.add(request)
        try:
            if self.tls:
                request.settimeout(10)
                request = self.tls.wrap_socket(request, server_side=True)
                request.settimeout(None)
                with self._lock:
                    self._open.add(request)
            super().finish_request(request, client_address)
        except (OSError, ValueError, AttributeError):  # the last: what cut() ended has no TLS any more
            pass
        finally:
            with self._lock:
                self._open.discard(request)

    def cut(self):
        """Every connection, at once."""
        with self._lock:
            connections, self._open = self._open, set()
        for connection in connections:
            try:
                connection.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    _left = None  # bytes until the connection is cut

    def log_message(self, *_):  # pylint: disable=arguments-differ
        pass

    def date_time_string(self, timestamp=None):
        return email.utils.formatdate(time.time() + self.server.fake.skew_s, usegmt=True)

    def _write(self, data):
        if self._left is not None:
            data, self._left = data[:self._left], self._left - len(data)
        self.wfile.write(data)
        self.wfile.flush()
        if self._left is not None and self._left <= 0:
            self.connection.shutdown(socket.SHUT_RDWR)
            raise ConnectionError("cut")

    def _answer(self, code, thing, headers=()):
        body = thing.encode() if isinstance(thing, str) else json.dumps(thing, separators=(",", ":")).encode()
        is_zipped = len(body) > 128 * 1024 and "gzip" in self.headers.get("Accept-Encoding", "")
        if is_zipped:
            body = gzip.compress(body, 1)
        self.send_response(code)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        if is_zipped:
            self.send_header("Content-Encoding", "gzip")
        for name, value in headers:
            self.send_header(name, value)
        self.end_headers()
        self._write(body)

    def _stream(self, events):
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        self.wfile.flush()
        for event in events:
            line = json.dumps(event, separators=(",", ":")).encode() + b"\n"
            self._write(b"%x\r\n%s\r\n" % (len(line), line))
        self._write(b"0\r\n\r\n")

    def _authorize(self, fake):
        sent = self.headers.get("Authorization")
        if sent == f"Bearer {fake.token}" or fake.token is None:
            return
        if isinstance(self.connection, ssl.SSLSocket) and self.connection.getpeercert():
            return
        raise Refusal(401, "Unauthorized", "Unauthorized")

    def _route(self, fake, path, query):
        match = PATH.match(path)
        if not match:
            raise Refusal(404, "NotFound", "the server could not find the requested resource")
        version = f"{match['group']}/{match['version']}" if match["group"] else match["version"]
        if not match["plural"]:
            return "discovery", lambda: fake.discovery(version)
        resource = (version, urllib.parse.unquote(match["plural"]))
        if resource not in [(v, p) for v, _, p, _ in fake.kinds]:
            raise Refusal(404, "NotFound", "the server could not find the requested resource")
        ns, name = (urllib.parse.unquote(match[key]) if match[key] else None for key in ("ns", "name"))
        if name:
            return "get", lambda: fake.get(resource, ns, name, match["sub"])
        if query.get("watch") in ("1", "true"):
            return "watch", lambda: fake.events(resource, ns, query)
        return "list", lambda: fake.list(resource, ns, query)

    def _misbehave(self, fake, rule):
        if "delay_s" in rule:
            time.sleep(rule["delay_s"])
        if rule.get("hang"):
            fake.hang()
        self._left = rule.get("cut_after_bytes")
        if "status" in rule:
            refusal = Refusal(rule["status"], "Fault", rule.get("message", "told to fail"))
            self._answer(rule["status"], refusal.status(), rule.get("headers", {}).items())
            return True
        if "body" in rule:
            self._answer(200, rule["body"])
            return True
        return False

    def do_GET(self):
        """Everything that clients ask."""
        fake, self._left = self.server.fake, None
        parts = urllib.parse.urlsplit(self.path)
        query = dict(urllib.parse.parse_qsl(parts.query))
        try:
            self._authorize(fake)
            verb, answer = self._route(fake, parts.path, query)
            events = answer() if verb == "watch" else None
            fake.note(verb, self.path)
            if self._misbehave(fake, fake.find_fault(verb, self.path)):
                return
            if verb == "watch":
                self._stream(events)
            else:
                self._answer(200, answer())
        except Refusal as refusal:
            self._answer(refusal.code, refusal.status())
        except OSError:
            self.close_connection = True

    def _write_object(self, verb, told):
        """An answer to POST or PATCH."""
        fake, self._left = self.server.fake, None
        try:
            self._authorize(fake)
            match = PATH.match(self.path)
            resource = ("v1" if not match["group"] else f"{match['group']}/{match['version']}", match["plural"])
            fake.note(verb, self.path)
            if self._misbehave(fake, fake.find_fault(verb, self.path)):
                return
            if verb == "create":
                self._answer(201, fake.create(told, match["ns"]))
            else:
                self._answer(200, fake.merge(resource, match["ns"], match["name"], told))
        except Refusal as refusal:
            self._answer(refusal.code, refusal.status())
        except OSError:
            self.close_connection = True

    def do_PATCH(self):
        """Changes of objects, as merge patches only."""
        told = json.loads(self.rfile.read(int(self.headers.get("Content-Length", "0"))))
        if self.headers.get("Content-Type") != "application/merge-patch+json":
            self._answer(415, Refusal(415, "UnsupportedMediaType", "only merge patches").status())
            return
        self._write_object("patch", told)

    def do_POST(self):
        """New objects, and the tests' own door."""
        told = json.loads(self.rfile.read(int(self.headers.get("Content-Length", "0"))))
        if self.path != "/_fake":
            self._write_object("create", told)
            return
        method = told["do"]
        if method.startswith("_") or not callable(getattr(FakeKube, method, None)):
            self._answer(404, {})
            return
        result = getattr(self.server.fake, method)(*told.get("arguments", []), **told.get("named", {}))
        self._answer(200, {"result": result if isinstance(result, (str, int, type(None))) else None})


def main():
    """Serve alone."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--token")
    parser.add_argument("--tls", metavar="DIR")
    parser.add_argument("--objects", metavar="FILE", help="JSON, a list of objects")
    options = parser.parse_args()
    fake = FakeKube(options.port, options.token, options.tls)
    for thing in json.loads(pathlib.Path(options.objects).read_text(encoding="utf-8")) if options.objects else []:
        fake.put(thing)
    fake.start()
    print(fake.url, flush=True)
    try:
        threading.Event().wait()
    except KeyboardInterrupt:
        fake.stop()
    return 0


if __name__ == "__main__":
    sys.exit(main())
