"""A hub of ours: it opens Fleet/Watch, does what each update says and lets stand what nothing is said of."""
import threading
import time

import cache
from agent import PATIENCE_S, check, wait_until

cache.stubs()

import grpc  # noqa: E402  pylint: disable=wrong-import-position
import fleet_pb2 as pb  # noqa: E402  pylint: disable=wrong-import-position
import fleet_pb2_grpc as pb_grpc  # noqa: E402  pylint: disable=wrong-import-position

OK, NOT_YET, MISSING, UNSUPPORTED = pb.OK, pb.NOT_YET, pb.MISSING, pb.UNSUPPORTED


class Hub:
    """wants: (field, window in seconds, activation window in seconds). What it knows is under `lock`."""

    def __init__(self, address, *wants, name="hub-0", credentials=None):
        options = [("grpc.enable_http_proxy", 0), ("grpc.use_local_subchannel_pool", 1)]
        self.channel = grpc.secure_channel(address, credentials, options) if credentials else \
            grpc.insecure_channel(address, options)
        request = pb.WatchRequest(hub=name, wants=[
            pb.Want(field=field, window_ms=int(window * 1000), activation_window_ms=int(activation * 1000))
            for field, window, activation in wants])
        self.lock = threading.Condition()
        self.updates, self.heard, self.problem, self.code = [], [], None, None
        self.node, self.devices, self.holders, self.readings, self.own = None, {}, {}, {}, {}
        self.taken_s, self.age_s = 0, 0
        self.call = pb_grpc.FleetStub(self.channel).Watch(request)
        self.thread = threading.Thread(target=self._listen, daemon=True)
        self.thread.start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.call.cancel()
        self.channel.close()
        self.thread.join(10)
        if self.problem:
            raise self.problem

    def _listen(self):
        try:
            for update in self.call:
                with self.lock:
                    self._apply(update)
        except grpc.RpcError:
            pass
        except Exception as problem:  # pylint: disable=broad-except
            self.problem = problem
            self.call.cancel()
        with self.lock:
            self.code = self.call.code()

    def _advance(self, passed_s):
        for table in (self.readings, self.own):
            for wants in table.values():
                for reading in wants.values():
                    if reading["status"] == OK:
                        reading["taken_s"] += passed_s
                        reading["valid_s"] += passed_s
                        reading["integral"] += reading["mean"] * passed_s

    def _read(self, table, message):
        wants = table.setdefault(message.id, {})
        for r in message.readings:
            wants[r.want] = {"status": r.status, "mean": r.mean, "peak": r.peak, "integral": r.integral,
                             "valid_s": r.valid_s, "taken_s": self.taken_s - r.age_ms / 1000}
        if not message.readings:
            del table[message.id]

    def _apply(self, update):
        check(update.sequence == len(self.updates) + 1, f"update {update.sequence} after {len(self.updates)}")
        check(update.is_full == (update.sequence == 1), "a full update that is not the first, or the other way round")
        taken_s = (update.sent_ms - update.age_ms) / 1000
        if update.is_full:
            check(update.HasField("node"), "a full update without its node")
        else:
            check(taken_s >= self.taken_s, "a snapshot older than the last")
            self._advance(taken_s - self.taken_s)
        self.taken_s, self.age_s = taken_s, update.age_ms / 1000
        if update.HasField("node"):
            self.node = update.node
        for gone in update.removed_devices:
            del self.devices[gone], self.readings[gone]
            self.holders = {i: h for i, h in self.holders.items() if h.device != gone}
        for gone in update.removed_holders:
            del self.holders[gone]
            self.own.pop(gone, None)
        for device in update.devices:
            self.devices[device.id] = device
        for holder in update.holders:
            self.holders[holder.id] = holder
            check(holder.device in self.devices, "a holder of no device")
        for message in update.device_readings:
            self._read(self.readings, message)
        for message in update.holder_readings:
            self._read(self.own, message)
        self.updates.append(update)
        self.heard.append(time.monotonic())
        self.lock.notify_all()

    def wait(self, look, what, patience_s=PATIENCE_S):
        """The first true answer of look(self)."""
        def locked():
            if self.problem:
                raise self.problem
            with self.lock:
                return look(self)
        return wait_until(locked, what, patience_s)

    def wait_update(self, n=1):
        """Once there are n updates more."""
        want = len(self.updates) + n
        self.wait(lambda hub: len(hub.updates) >= want, f"update {want}")

    def of_device(self, index=0, want=0):
        """The reading of the GPU of this index."""
        ids = [d.id for d in self.devices.values() if d.index == index and d.kind == pb.GPU]
        return self.readings.get(ids[0], {}).get(want) if ids else None

    def mean(self, index=0, want=0):
        reading = self.of_device(index, want)
        return reading["mean"] if reading and reading["status"] == OK else None

    def holder(self, pod):
        return next((h for h in self.holders.values() if h.pod == pod), None)

    def of_pod(self, pod, want=0):
        """The pod's own reading; None where it has none of its own."""
        holder = self.holder(pod)
        return self.own.get(holder.id, {}).get(want) if holder else None
