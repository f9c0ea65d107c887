"""Entry point of `make e2e`: brings the bench up, runs the scenarios, prints `N passed, N failed`. Started by ./run."""

import argparse
import os
import pathlib
import signal
import sys
import time

sys.dont_write_bytecode = True

from rig import settings  # noqa: E402

import cache  # noqa: E402  (of the integration tests)

import scenarios  # noqa: E402  (registers them)
from rig import cluster, procs, runner, wait  # noqa: E402
from rig import scenario as registry  # noqa: E402


def _arguments():
    parser = argparse.ArgumentParser(prog="test/e2e/run", description="The real KEDA and HPA against our agent.")
    parser.add_argument("--tool", action="append", default=[], metavar="NAME=FOLDER", help=argparse.SUPPRESS)
    parser.add_argument("--list", action="store_true", help="print the scenarios' names and titles, run nothing")
    parser.add_argument("--at-once", type=int, default=5, metavar="N", help="scenarios at the same time (default 5)")
    parser.add_argument("--hold", action="store_true", help="keep the bench up after the run, until interrupted")
    parser.add_argument("scenario", nargs="*", help="names of scenarios (default: all)")
    return parser.parse_args()


def _choose(names):
    unknown = set(names) - {function.__name__ for _, function in registry.ALL}
    if unknown:
        sys.exit(f"unknown scenario: {', '.join(sorted(unknown))}; see --list")
    return [(title, function) for title, function in registry.ALL if not names or function.__name__ in names]


def _hold(bench):
    print(f"The bench stays up. export KUBECONFIG={bench.admin_kubeconfig}; interrupt to end it.", flush=True)
    while True:
        time.sleep(1)
        bench.children.require_running()


def _end_at_once_on_signals(bench, run):
    """Scenarios run in threads that nobody can interrupt: end the children and leave."""
    def leave(number, _frame):
        run.abandon()
        bench.stop()
        os._exit(128 + number)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, leave)


def _run(arguments, tools):
    bench = cluster.Cluster(tools)
    began = time.monotonic()
    print(f"logs: {bench.logs}", flush=True)
    run = runner.Runner(bench, _choose(arguments.scenario), arguments.at_once)
    _end_at_once_on_signals(bench, run)
    try:
        bench.start()
        print(f"the control plane, KEDA and the release of the chart are up ({time.monotonic() - began:.1f} s)\n", flush=True)
        run.run()
        if arguments.hold:
            _hold(bench)
    except (procs.ChildFailed, wait.TimedOut) as error:
        run.failed.append(f"the bench itself: {error}")
    finally:
        bench.stop()
    if run.failed:
        print(f"failed: {'; '.join(run.failed)}\nlogs: {bench.logs}")
    print(f"{run.passed} passed, {len(run.failed)} failed", flush=True)
    return 1 if run.failed else 0


def main():
    arguments = _arguments()
    if arguments.list:
        for title, function in registry.ALL:
            print(f"{function.__name__:24}  {title}")
        return 0
    cache.enter_python(__file__)
    os.environ["GRPC_ENABLE_FORK_SUPPORT"] = "false"  # children are forked and run other programs at once
    for missing in (path for path in (settings.PROGRAM, settings.NVML_LIBRARY) if not path.exists()):
        sys.exit(f"{missing} does not exist: run `make` first")
    return _run(arguments, {name: pathlib.Path(folder) for name, folder in (t.split("=", 1) for t in arguments.tool)})


if __name__ == "__main__":
    sys.exit(main())
