"""Writes kubeconfig files with client certificates or tokens. JSON is YAML, so the standard library is enough."""

import json


def write(path, server, ca, certificate, key):
    return _write(path, server, ca, {"client-certificate": str(certificate), "client-key": str(key)}, "default")


def write_token(path, server, ca, token_file, namespace):
    return _write(path, server, ca, {"tokenFile": str(token_file)}, namespace)


def _write(path, server, ca, user, namespace):
    path.write_text(json.dumps({
        "apiVersion": "v1", "kind": "Config", "current-context": "e2e",
        "clusters": [{"name": "e2e", "cluster": {"server": server, "certificate-authority": str(ca)}}],
        "users": [{"name": "e2e", "user": user}],
        "contexts": [{"name": "e2e", "context": {"cluster": "e2e", "user": "e2e", "namespace": namespace}}],
    }, indent=1))
    return path
