"""A container of the chart as a process of this machine: its own arguments, environment and files, and the only list of
what is different here, with why. Everything else goes to the program as the chart renders it; what the program does not
take ends the scenario.
"""

import os
import subprocess

from . import procs, settings

_taken = set()  # arguments that the program is known to take


def ports(listen, metrics="127.0.0.1:0", probe="127.0.0.1:0"):
    """Pods have an address each. Here all programs share one machine: each listens where nobody else does."""
    return {"--port": [f"--listen={listen}"], "--metrics-port": [f"--metrics-listen={metrics}"],
            "--probe-port": [f"--probe-listen={probe}"]}


def no_driver():
    """The driver that the program looks for, or the image's simulation: it is where the build has it."""
    return {"--nvml-library": [f"--nvml-library={settings.NVML_LIBRARY}"]}


def kubelet(socket):
    """There is no kubelet's socket but the simulated node's."""
    return {"--pod-resources": [f"--pod-resources={socket}"]}


def host_processes(proc, pods, containers):
    """The host's /proc and the kubelet's folders of logs are the simulated node's; the chart mounts the latter to where the
    program looks by itself."""
    return {"--procfs": [f"--procfs={proc}"], "--pod-logs": [f"--pod-logs={pods}"],
            "--container-logs": [f"--container-logs={containers}"]}


def api_server(kubeconfig):
    """A pod finds the API server by its environment and its account by a mounted token; a process needs a file for both."""
    return {"--kubeconfig": [f"--kubeconfig={kubeconfig}"]}


def agents_at(addresses):
    """EndpointSlices may not name loopback addresses, and each scenario has agents of its own. None: as the chart says."""
    return {"--agents": [f"--agents={where}" for where in addresses]} if addresses else {}


def boards_as_if_real():
    """All boards here are simulated, which agents say; yet kubelets say who holds them, as with real ones."""
    return {"--simulated-gpus": ["--simulated-gpus=0"]}


def instead(words):
    """Flags that a scenario is about, in place of the chart's."""
    return {word.partition("=")[0]: [word] for word in words}


class Container:
    """spec: of a pod with one container. folder: where its mounts go; what lies there already is the scenario's own."""

    def __init__(self, release, spec, folder):
        [self._spec] = spec["containers"]
        self._release, self._own, self._mounts = release, set(), {}
        self._volumes = {volume["name"]: volume for volume in spec.get("volumes", [])}
        for mount in self._spec.get("volumeMounts", []):
            here = folder / mount["mountPath"].rsplit("/", 1)[-1]
            if "hostPath" not in self._volumes[mount["name"]]:
                here.mkdir(exist_ok=True)
                self._own |= set(here.iterdir())
                self._mounts[mount["mountPath"]] = here
        self.refresh()

    def refresh(self):
        """Brings the files to what ConfigMaps and Secrets say now, as a kubelet does from time to time."""
        for mount in self._spec.get("volumeMounts", []):
            here = self._mounts.get(mount["mountPath"])
            for name, text in (self._release.files(self._volumes[mount["name"]]) if here else {}).items():
                path = here / name
                if path in self._own or path.exists() and path.read_text() == text:
                    continue
                fresh = here / f".{name}.new"
                fresh.write_text(text)
                os.replace(fresh, path)

    def _moved(self, text):
        for path, here in self._mounts.items():
            text = text.replace(f"{path}/", f"{here}/")
        return text

    def _require_taken(self):
        """The program takes all of the chart's arguments, also those that are others here."""
        args = self._spec["args"]
        if args[0] not in ("agent", "hub") or tuple(args) in _taken:
            return
        done = subprocess.run([settings.PROGRAM, *map(self._moved, args), "--print-config"], capture_output=True, text=True,
                              timeout=settings.PATIENCE_S, check=False)
        if done.returncode != 0:
            raise procs.ChildFailed(f"the program does not take {' '.join(args)}: {done.stderr.strip()}")
        _taken.add(tuple(args))

    def argv(self, *different):
        """different: by flag, the words for it here; those that the chart does not render come last."""
        self._require_taken()
        here = {flag: words for each in different for flag, words in each.items()}
        argv, told = [settings.PROGRAM], set()
        for word in self._spec["args"]:
            flag = word.partition("=")[0]
            if flag not in here:
                argv.append(self._moved(word))
            elif flag not in told:
                argv += here[flag]
            told.add(flag)
        return argv + [word for flag, words in here.items() if flag not in told for word in words]

    def value(self, flag):
        """Of the chart's own argument; "" where it has none."""
        return next((word.partition("=")[2] for word in self._spec["args"] if word.startswith(f"{flag}=")), "")

    def environment(self, pod, node, namespace):
        """With what the downward API says of the pod."""
        facts = {"metadata.name": pod, "spec.nodeName": node, "metadata.namespace": namespace}
        return {each["name"]: self._moved(each["value"]) if "value" in each
                else facts[each["valueFrom"]["fieldRef"]["fieldPath"]] for each in self._spec.get("env", [])}
