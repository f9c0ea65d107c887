"""Writes kubeconfig files with client certificates. JSON is YAML, so the standard library is enough."""

import json


def write(path, server, ca, certificate, key):
    path.write_text(json.dumps({
        "apiVersion": "v1", "kind": "Config", "current-context": "e2e",
        "clusters": [{"name": "e2e", "cluster": {"server": server, "certificate-authority": str(ca)}}],
        "users": [{"name": "e2e", "user": {"client-certificate": str(certificate), "client-key": str(key)}}],
        "contexts": [{"name": "e2e", "context": {"cluster": "e2e", "user": "e2e"}}],
    }, indent=1))
    return path
