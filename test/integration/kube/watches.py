"""List and watch: what is told, and what comes after each way in which a server can fail."""
from client import Client, FakeKube, check, pod
from agent import wait_until
from suite import add, test


def names(client, word="changed"):
    """Names in lines of one word, in order."""
    return [line.split()[2] for line in client.seen(f"^{word} ")]


@test("a list of several pages is told, then what changes")
def _():
    with FakeKube() as kube:
        for i in range(1203):
            kube.put(pod(f"p{i}"))
        with Client(kube) as client:
            client.watch()
            client.until("^synced 0")
            check(sorted(names(client)) == sorted(f"a/p{i}" for i in range(1203)), "not every pod was told, or not once")
            check(kube.count("list") == 3, f"{kube.count('list')} pages")
            kube.put(pod("new"))
            client.until("^changed 0 a/new ")
            kube.delete("pods", "a", "p7")
            check(len(client.until("^gone 0 a/p7 uid=[0-9a-f-]{36}$")) == 1, "told twice")
            kube.put(pod("p8", status={"phase": "Failed"}))
            client.until("^changed 0 a/p8 .*phase=3")
            check(client.metric("objects,pods") == 1203, "objects are miscounted")
            check(client.metric("watches,pods,watching") == 1, "the watch is not counted")
            check(client.metric("requests,list,2xx") == 3, "requests are miscounted")


@test("each kind is told with its fields")
def _():
    with FakeKube() as kube, Client(kube) as client:
        meta = {"namespace": "a", "name": "n"}
        target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"}
        kube.put({"apiVersion": "keda.sh/v1alpha1", "kind": "ScaledObject", "metadata": meta, "spec": {
            "scaleTargetRef": {"name": "d"}, "fallback": {"failureThreshold": 3, "replicas": 2},
            "triggers": [{"type": "external", "metadata": {"scalerAddress": "x"}}, {"type": "cron", "metadata": {}}]}})
        kube.put({"apiVersion": "keda.sh/v1alpha1", "kind": "ScaledJob", "metadata": meta, "spec": {}})
        kube.put({"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "metadata": meta, "spec": {
            "scaleTargetRef": target, "maxReplicas": 9, "metrics": [{"type": "External", "external": {
                "metric": {"name": "s0-x"}, "target": {"type": "AverageValue", "averageValue": "1500m"}}}]}})
        kube.put({"apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "addressType": "IPv4", "metadata": {
            **meta, "labels": {"kubernetes.io/service-name": "agents"}}, "ports": [{"name": "grpc", "port": 6000}],
            "endpoints": [{"addresses": ["10.0.0.1"]}]})
        for kind in ("scaledobjects", "scaledjobs", "horizontalpodautoscalers", "endpointslices"):
            client.watch(kind)
        client.until("target=apps/v1,Deployment,d hpa= triggers=1[+]1 min=0 max=100 paused=0 fallback=1,static,2$")
        client.until("^changed 1 a/n ")
        client.until("target=apps/v1,Deployment,d min=1 max=9 desired=0 metrics=1:s0-x,0,1.5 ")
        client.until("service=agents ports=1 endpoints=1$")


@test("selectors and a namespace choose; who is no longer chosen is gone")
def _():
    with FakeKube() as kube, Client(kube) as client:
        kube.put(pod("here"))
        kube.put(pod("elsewhere", ns="b"))
        kube.put(pod("other", labels={"app": "y"}))
        client.watch(ns="a", labels="app=x", fields="spec.nodeName=node1")
        client.until("^synced")
        check(names(client) == ["a/here"], f"told {names(client)}")
        kube.put(pod("other", labels={"app": "x"}))
        client.until("^changed 0 a/other")
        kube.put(pod("here", labels={"app": "y"}))
        client.until("^gone 0 a/here")


def expire_open(kube, client):
    """An open watch is told that its place is gone."""
    wait_until(lambda: kube.count("watch"), "the watch")
    kube.expire_watches()
    client.until("^synced", 2, skipping=True)


def expire_cut(kube, client):
    """The place is gone while nobody watches."""
    kube.fault(verb="watch", status=503)
    kube.cut_connections()
    client.until("^failed 0 UNAVAILABLE", 2, skipping=True)
    kube.delete("pods", "a", "leaves")
    kube.put(pod("comes"))
    kube.expire()
    kube.clear_faults()
    client.until("^gone 0 a/leaves ", skipping=True)
    client.until("^changed 0 a/comes ")
    client.until("^synced", 2)
    check(not client.seen("^gone 0 a/stays"), "what stays was said to be gone")


def expired_place(how):
    with FakeKube() as kube, Client(kube) as client:
        kube.put(pod("stays"))
        kube.put(pod("leaves"))
        client.watch()
        client.until("^synced")
        how(kube, client)
        check(client.metric("watch_restarts,pods,expired") >= 1, "the restart is not counted")
        check(not client.seen("^failed.*(410|xpired)"), "410 is no failure")
        kube.put(pod("later"))
        client.until("^changed 0 a/later")


add("410 in an open watch leads to a new list", expired_place, expire_open)
add("410 after a cut leads to a new list, which tells what is gone", expired_place, expire_cut)


@test("a watch that is cut goes on where it was, without a new list")
def _():
    with FakeKube(bookmark_s=0.2) as kube, Client(kube) as client:
        kube.put(pod("p"))
        client.watch()
        client.until("^synced")
        for i in range(3):
            kube.put({"apiVersion": "v1", "kind": "Service", "metadata": {"name": f"s{i}"}})
        wait_until(lambda: kube.bookmarks >= 2, "bookmarks past the services")
        kube.expire()
        kube.cut_connections()
        client.until("^failed 0 UNAVAILABLE")
        kube.put(pod("after"))
        client.until("^changed 0 a/after", skipping=True)
        check(kube.count("list") == 1, "it listed again")
        check(len(names(client)) == 2, f"told {names(client)}")


@test("an object of the same name with another uid is a new one")
def _():
    with FakeKube() as kube, Client(kube) as client:
        kube.put(pod("p", metadata={"namespace": "a", "name": "p", "uid": "one"}))
        client.watch()
        client.until("^synced")
        kube.fault(verb="watch", status=503)
        kube.cut_connections()
        client.until("^failed", 2, skipping=True)
        kube.put(pod("p", metadata={"namespace": "a", "name": "p", "uid": "two"}))
        kube.expire()
        kube.clear_faults()
        client.until("^synced", 2, skipping=True)
        told = [line for line in client.lines if line.startswith(("changed", "gone"))]
        check("uid=one" in told[0] and told[1].startswith("gone 0 a/p uid=one") and "uid=two" in told[2], f"told {told}")


def refused(status, said):
    with FakeKube() as kube, Client(kube) as client:
        kube.put(pod("p"))
        kube.fault(verb="list", status=status, message="so it is", headers={"Retry-After": "1"})
        client.watch()
        client.until(f"^failed 0 {said} GET /api/v1/pods: {status}: so it is$", 2, skipping=True)
        check("is_synced 0" in client.ask("synced", "^is_synced"), "synced too early")
        kube.clear_faults()
        client.until("^synced", skipping=True)
        check("is_synced 1" in client.ask("synced", "^is_synced"), "not synced")


for code, word in ((401, "UNAUTHENTICATED"), (403, "PERMISSION_DENIED"), (404, "NOT_FOUND"), (429, "RESOURCE_EXHAUSTED"),
                   (500, "UNAVAILABLE"), (503, "UNAVAILABLE")):
    add(f"a list that is answered {code} fails as {word} and is tried again", refused, code, word)


@test("Retry-After is waited for")
def _():
    with FakeKube() as kube, Client(kube) as client:
        kube.fault(verb="list", status=429, headers={"Retry-After": "20"}, times=1)
        client.watch()
        client.until("^failed")
        client.say("skip 19")
        for _ in range(10):
            client.ask("now", "^now")
        check(kube.count("list") == 1, "it came too soon")
        client.say("skip 2")
        client.until("^synced")


@test("a watch that is refused again and again is begun with a list")
def _():
    with FakeKube() as kube, Client(kube) as client:
        kube.fault(verb="watch", status=503, times=4)
        client.watch()
        client.until("^synced", 2, skipping=True)
        check(kube.count("list") == 2 and len(client.seen("^failed 0 UNAVAILABLE")) == 4, "it listed too soon or too late")


@test("tries are spread: the first within a second, later ones further apart, at most 30 s")
def _():
    with FakeKube() as kube, Client(kube) as client:
        kube.fault(verb="list", status=500)
        client.watch()
        client.until("^failed", 1)
        for times in range(2, 9):
            client.say("skip 30")
            client.until("^failed", times)
        kube.clear_faults()
        client.say("skip 30")
        client.until("^synced")


def cut_list(rule):
    with FakeKube() as kube, Client(kube) as client:
        for i in range(20):
            kube.put(pod(f"p{i}"))
        kube.fault(verb="list", times=1, **rule)
        client.watch()
        client.until("^failed 0 UNAVAILABLE", skipping=True)
        client.until("^synced", skipping=True)
        check(set(names(client)) == {f"a/p{i}" for i in range(20)}, "not all were told")
        check(not client.seen("^gone"), "a list that broke off says nothing about who is gone")


add("a list that is cut is begun again", cut_list, {"cut_after_bytes": 2000})
add("an answer that is no list is refused", cut_list, {"body": "<html>sorry</html>"})
add("a list without an end is refused", cut_list, {"body": '{"metadata":{"resourceVersion":"5"},"items":[]'})
add("a list without a place is refused", cut_list, {"body": '{"metadata":{},"items":[]}'})


@test("a page that came too late is asked for from the start")
def _():
    with FakeKube() as kube, Client(kube) as client:
        for i in range(700):
            kube.put(pod(f"p{i}"))
        kube.fault(verb="list", path="continue=", status=410, times=1)
        client.watch()
        client.until("^synced", skipping=True)
        check(set(names(client)) == {f"a/p{i}" for i in range(700)}, "not all were told")
        check(kube.count("list") == 4 and not client.seen("^failed"), "pages were not asked for anew")


def bad_watch(rule):
    with FakeKube() as kube, Client(kube) as client:
        kube.put(pod("p", metadata={"namespace": "a", "name": "p", "uid": "u"}))
        kube.fault(verb="watch", times=1, **rule)
        client.watch()
        client.until("^synced")
        kube.put(pod("q"))
        client.until("^changed 0 a/q", skipping=True)
        check(not client.seen("^gone"), "something is gone")
        check(client.seen("^failed"), "nobody was told")


EVENT = '{"type":"MODIFIED","object":{"metadata":{"name":"p","namespace":"a","uid":"u"}}}'
add("a watch that is cut in a line goes on", bad_watch, {"cut_after_bytes": 30})
add("a watch that is refused is tried again", bad_watch, {"status": 500})
add("a watch with a line that is no event is begun with a list", bad_watch, {"body": "nonsense\n"})
add("a watch that ends with an error of the server's is begun with a list", bad_watch,
    {"body": '{"type":"ERROR","object":{"kind":"Status","code":500,"message":"etcd is away"}}\n'})
add("an event that cannot be read is told and passed over", bad_watch,
    {"body": '{"type":"ADDED","object":{"metadata":{"name":"z","namespace":"a"},"spec":7}}\n' + EVENT + "\n"})


@test("a server that does not answer is given up on after the time limit")
def _():
    with FakeKube() as kube, Client(kube, timeout_s=10) as client:
        kube.fault(verb="list", hang=True, times=1)
        client.watch()
        wait_until(lambda: kube.count("list"), "the list")
        client.say("skip 11")
        client.until("^failed 0 DEADLINE_EXCEEDED GET /api/v1/pods: no complete answer in time$")
        client.until("^synced", skipping=True)
        kube.clear_faults()


@test("a watch that falls silent is begun again where it was")
def _():
    with FakeKube(bookmark_s=3600) as kube, Client(kube) as client:
        kube.put(pod("p"))
        client.watch()
        client.until("^synced")
        wait_until(lambda: client.metric("requests,watch,2xx"), "the watch to be open")
        check(client.ask("silent", "^silent").startswith("silent 0.000"), "an open watch is not silent")
        client.say("skip 100")
        check(float(client.ask("silent", "^silent").split()[1]) >= 100, "100 s without a bookmark are silence")
        client.say("skip 100")
        client.until("^failed 0 DEADLINE_EXCEEDED")
        wait_until(lambda: client.say("skip 1") or kube.count("watch") == 2, "a second watch")
        kube.put(pod("q"))
        client.until("^changed 0 a/q")
        check(client.metric("watch_restarts,pods,silent") == 1 and kube.count("list") == 1, "it listed again")


@test("objects that cannot be read are told as failures and are not gone")
def _():
    with FakeKube() as kube, Client(kube) as client:
        kube.put(pod("good"))
        kube.put(pod("bad"))
        client.watch()
        client.until("^synced")
        kube.put(pod("bad", spec={"containers": 7}))
        client.until("^failed 0 INVALID_ARGUMENT pods: a/bad: spec.containers is not a list$")
        kube.expire_watches()
        client.until("^synced", 2, skipping=True)
        check(len(client.seen("^failed.*a/bad")) == 2 and not client.seen("^gone"), "the object is gone")


@test("an object that is too large is passed over, and nothing is said to be gone")
def _():
    with FakeKube() as kube, Client(kube) as client:
        kube.put(pod("a-huge"))
        kube.put(pod("small"))
        client.watch()
        client.until("^synced")
        kube.put(pod("a-huge", metadata={"namespace": "a", "name": "a-huge", "labels": {"x": "y" * (3 << 20)}}))
        client.until("^failed 0 RESOURCE_EXHAUSTED pods: an event of more than 2 MiB$")
        client.until("^failed 0 RESOURCE_EXHAUSTED pods: an object of more than 2 MiB is passed over$", skipping=True)
        client.until("^synced", 2)
        check(not client.seen("^gone"), "it is gone")


@test("more objects than the ceiling are refused with one error a list")
def _():
    with FakeKube() as kube, Client(kube) as client:
        for i in range(6):
            kube.put(pod(f"p{i}"))
        client.watch(most="4")
        client.until("^synced")
        check(names(client) == ["a/p0", "a/p1", "a/p2", "a/p3"], f"told {names(client)}")
        check(client.seen("^failed") == ["failed 0 RESOURCE_EXHAUSTED there are more than 4 pods: the others are not looked at"],
              f"told {client.seen('^failed')}")
        kube.delete("pods", "a", "p0")
        client.until("^gone 0 a/p0")
        kube.put(pod("p5"))
        client.until("^changed 0 a/p5")


def freed_inside(cause):
    with FakeKube() as kube, Client(kube) as client:
        kube.put(pod("p"))
        kube.put(pod("q"))
        if cause == "changed":
            client.say("free-next")
        elif cause == "failed":
            kube.fault(verb="list", status=500)
            client.say("free-next")
        client.watch()
        if cause in ("gone", "replaced", "cut"):
            client.until("^synced")
            wait_until(lambda: client.metric("requests,watch,2xx"), "the watch to be open")
            client.ask("free-next", "^free-next")
            if cause == "gone":
                kube.delete("pods", "a", "p")
            elif cause == "replaced":
                kube.put(pod("p", metadata={"namespace": "a", "name": "p", "uid": "two"}))
            else:
                kube.cut_connections()
        client.until("^freed", skipping=True)
        client.watch()
        kube.clear_faults()
        client.until("^synced 1", skipping=True)
        check(client.metric("watches,pods,watching") + client.metric("watches,pods,listing") + client.metric(
            "watches,pods,waiting") == 1, "the freed watch is counted")


for where in ("changed", "failed", "gone", "replaced", "cut"):
    add(f"a watch may be freed from inside its callbacks: {where}", freed_inside, where)


@test("a watch that ends at once is not begun again at once")
def _():
    with FakeKube() as kube, Client(kube) as client:
        kube.put(pod("p"))
        kube.fault(verb="watch", body="")
        client.watch()
        client.until("^synced")
        for _ in range(20):
            client.ask("now", "^now")
        check(kube.count("watch") < 10, f"{kube.count('watch')} watches in a moment")
        kube.clear_faults()
        kube.put(pod("q"))
        client.until("^changed 0 a/q", skipping=True)


@test("a server that ends every watch with an error is not listed in a hurry")
def _():
    with FakeKube() as kube, Client(kube) as client:
        kube.fault(verb="watch", body='{"type":"ERROR","object":{"kind":"Status","code":410,"message":"gone"}}\n')
        client.watch()
        client.until("^synced")
        client.until("^synced", 7, skipping=True)
        client.say("skip 2", "now")  # the pause is up to 30 s by now; a pause of up to 1 s would be over many times
        before = kube.count("list")
        for _ in range(10):
            client.ask("now", "^now")
        check(kube.count("list") - before <= 1, "it lists in a hurry")
