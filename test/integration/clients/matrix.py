"""Every client library over every transport: the client programs' own cases, each counted as a test."""
import atexit
import pathlib
import re
import tempfile
import threading

import languages
from agent import Agent, TestFailure, check, wait_until
from certs import Authority
from suite import add

SCENARIO = "gpus: [{board: A100-40, utilization: 60}]\n"
CASES = {"grpc-go": 17, "grpc-js": 16, "grpcio": 18}
TRANSPORTS = ("plaintext", "TLS", "mTLS", "IPv6", "unix")

_folder = tempfile.TemporaryDirectory(prefix="kgs-")
atexit.register(_folder.cleanup)
FOLDER = pathlib.Path(_folder.name)
AUTHORITY = Authority(FOLDER, "ca")
SERVER = AUTHORITY.issue("server", "/CN=server", ("DNS:localhost", "IP:127.0.0.1", "IP:::1"))
CLIENT = AUTHORITY.issue("client", "/CN=client")
OTHER = Authority(FOLDER / "other", "other")
STRANGER = OTHER.issue("stranger", "/CN=stranger")

_lock = threading.Lock()
_agents = {}


def server_flags(is_mutual):
    flags = [f"--tls-cert={SERVER[0]}", f"--tls-key={SERVER[1]}"]
    return flags + ([f"--tls-client-ca={AUTHORITY.certificate}"] if is_mutual else [])


def _start(transport):
    if transport in ("TLS", "mTLS"):
        agent = Agent(SCENARIO, *server_flags(transport == "mTLS"))
        flags = ["-ca", AUTHORITY.certificate]
        flags += ["-cert", CLIENT[0], "-key", CLIENT[1]] if transport == "mTLS" else []
        return agent, f"localhost:{agent.port}", flags
    if transport == "unix":
        path = FOLDER / "agent.sock"
        return Agent(SCENARIO, listen=(f"unix:{path}",)), f"unix:{path}", []
    agent = Agent(SCENARIO)
    if transport == "IPv6":
        agent.kill()
        agent = Agent(SCENARIO, listen=(f"[::1]:{agent.port}",))
        listening = re.search(r"listening address=\"?(\[::1\]:\d+)", agent.log())
        return agent, listening[1], []
    return agent, agent.address, []


def agent_of(transport):
    """(agent, address, client flags) of a transport; started by whoever comes first."""
    with _lock:
        if transport not in _agents:
            _agents[transport] = _start(transport)
        return _agents[transport]


def run_client(language, transport):
    agent, address, flags = agent_of(transport)
    output = languages.run(language, address, *flags)
    passed = re.findall(r"^ok +(.*)$", output, re.MULTILINE)
    failed = re.findall(r"^FAIL .*$", output, re.MULTILINE)
    check(not failed and len(passed) == CASES[language], "\n" + output)
    wait_until(lambda: agent.metric("keda_gpu_scaler_open_streams") == 0, "all streams to be gone")


def stop_all():
    failures = []
    for agent, _, _ in _agents.values():
        try:
            with agent:
                pass
        except TestFailure as failure:
            failures.append(str(failure))
    if failures:
        raise TestFailure("\n".join(failures))


languages.prepare()
for transport in TRANSPORTS:
    for language in languages.LANGUAGES:
        add(f"{language} over {transport}: all its cases", run_client, language, transport)
