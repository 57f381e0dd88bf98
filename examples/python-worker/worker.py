"""A worker for Belfry that needs nothing but Python 3.8: see README.md beside it.

The whole protocol is four calls: lease, heartbeat, complete, release. Every one of them may be
sent again when its answer was lost, so `Belfry.post` simply repeats until it is answered.
"""

import http.client
import json
import os
import signal
import socket
import sys
import threading
import time
import urllib.error
import urllib.request
import uuid
from concurrent.futures import ThreadPoolExecutor

LEASE_MS = int(os.environ.get("LEASE_MS", "30000"))
# How long Belfry keeps a call open when there is no work. Work that comes meanwhile is answered at once.
POLL_MS = 20_000
GRACE_SECONDS = float(os.environ.get("GRACE_SECONDS", "10"))


def handle(run):
    """The work itself: here a list of items, one after the other. This is the part to replace."""
    items = run.payload["items"]
    done = run.checkpoint or 0
    for number in range(done, len(items)):
        run.log(f"item {items[number]}")
        if run.stop.wait(run.payload.get("secondsPerItem", 0)):
            raise Stopped()
        # If this process dies now, the next attempt begins behind this item.
        run.save(checkpoint=number + 1, progress=(number + 1) / len(items))
    return {"items": len(items), "begunAt": done}


class Fail(Exception):
    """Raised by a handler when trying again would not help: the run becomes a dead letter."""


class Snooze(Exception):
    """Raised by a handler that wants to be called again later: `Snooze("10m")`. Not a failure."""


class Stopped(Exception):
    """Raised by a handler that found `run.stop` set."""


class Unavailable(RuntimeError):
    """Nobody answered."""


class Belfry:
    def __init__(self, url, key, worker_id):
        self.url, self.key, self.worker_id = url.rstrip("/"), key, worker_id

    def post(self, path, body, **options):
        return self.send("POST", path, {"workerId": self.worker_id, **body}, **options)

    def send(self, method, path, body=None, timeout=15, tries=100):
        """Sends until it is answered. What is wrong with the request itself is raised at once."""
        request = urllib.request.Request(self.url + path, method=method)
        request.add_header("Authorization", "Bearer " + self.key)
        data = None
        if body is not None:
            request.add_header("Content-Type", "application/json")
            data = json.dumps(body).encode()
        pause = 0.1
        for left in reversed(range(tries)):
            try:
                with urllib.request.urlopen(request, data, timeout) as answer:
                    return json.loads(answer.read() or "null")
            except urllib.error.HTTPError as error:
                if error.code not in (408, 429, 500, 502, 503, 504):
                    raise RuntimeError(f"{path}: {error.code} {error.read().decode(errors='replace')}") from None
                reason, wait = error, float(error.headers.get("Retry-After") or 0)
            except (OSError, ValueError, http.client.HTTPException) as error:  # no connection, a broken one, half an answer
                reason, wait = error, 0
            if left == 0:
                raise Unavailable(f"{path}: {reason}")
            print(f"{path}: {reason}; trying again", file=sys.stderr, flush=True)
            time.sleep(max(wait, pause))
            pause = min(pause * 2, 5)


class Run:
    def __init__(self, belfry, leased):
        self._belfry = belfry
        self._lines = 0
        self._unsent = []
        self._lock = threading.Lock()
        self.token = leased["token"]
        self.id, self.job_id, self.attempt = leased["runId"], leased["jobId"], leased["attempt"]
        self.nominal_at = leased["nominalAt"]
        self.payload = leased.get("payload")
        self.checkpoint = leased.get("checkpoint")
        # Set when the handler should end: canceled, lease lost, or the worker stops and cannot wait.
        self.stop = threading.Event()
        self.is_lost = self.is_canceled = False

    def log(self, message, level="info"):
        """A line of the attempt's log; goes along with the next heartbeat."""
        with self._lock:
            self._lines += 1
            self._unsent.append({"line": self._lines, "level": level, "message": message})

    def save(self, checkpoint=None, progress=None):
        """Leaves a checkpoint for the next attempt; it is stored when this returns."""
        item = self.news()
        if checkpoint is not None:
            item["checkpoint"] = checkpoint
        if progress is not None:
            item["progress"] = {"value": progress}
        self.hear(self._belfry.post("/v1/leases/heartbeat", {"leases": [item]})["leases"][0])

    def news(self):
        """What a heartbeat says about this run. Lines are numbered, so sending one twice does no harm."""
        with self._lock:
            lines, self._unsent = self._unsent, []
        return {"token": self.token, **({"logs": lines} if lines else {})}

    def hear(self, answer):
        if answer["outcome"] == "ok":
            return
        self.is_canceled = answer["outcome"] == "cancel_requested"
        self.is_lost = not self.is_canceled
        self.stop.set()


class Worker:
    def __init__(self, belfry, queue, concurrency):
        self.belfry, self.queue, self.concurrency = belfry, queue, concurrency
        self.running = {}  # token → Run
        self.changed = threading.Condition()
        self.stopping = threading.Event()

    def work(self):
        threading.Thread(target=self.beat, daemon=True).start()
        with ThreadPoolExecutor(self.concurrency) as pool:
            while not self.stopping.is_set():
                with self.changed:
                    free = self.concurrency - len(self.running)
                    if free == 0:
                        self.changed.wait(1)
                        continue
                for leased in self.lease(free):
                    run = Run(self.belfry, leased)
                    with self.changed:
                        self.running[run.token] = run
                    pool.submit(self.perform, run)
            self.drain()

    def stop(self, *_):
        """Takes nothing new. Belfry hears of it and ends the open poll; by a thread, since a signal calls this."""
        if not self.stopping.is_set():
            self.stopping.set()
            own = f"/v1/workers/{self.belfry.worker_id}"
            threading.Thread(target=self.belfry.send, args=("PUT", own, {"draining": True}), daemon=True).start()

    def lease(self, free):
        # The request id makes it safe to ask again: the same runs are answered, not others.
        call = {"max": free, "waitMs": POLL_MS, "leaseMs": LEASE_MS, "requestId": str(uuid.uuid4())}
        path, timeout = f"/v1/queues/{self.queue}/lease", POLL_MS / 1000 + 15
        answer = None
        while answer is None:
            try:
                answer = self.belfry.post(path, call, timeout=timeout, tries=1)
            except Unavailable as error:
                print(error, file=sys.stderr, flush=True)
                if self.stopping.wait(1):
                    return []
        if answer.get("draining"):  # an operator asked this worker to end
            self.stopping.set()
        self.hear({"token": token, "outcome": "cancel_requested"} for token in answer.get("cancelRequested", []))
        if self.stopping.is_set() and answer["runs"]:
            tokens = [{"token": run["token"]} for run in answer["runs"]]
            self.belfry.post("/v1/leases/release", {"leases": tokens})
            return []
        return answer["runs"]

    def perform(self, run):
        started = time.monotonic()
        print(f"{run.id} attempt {run.attempt}", flush=True)
        try:
            end = {"status": "succeeded", "result": handle(run)}
        except Stopped:
            end = {"status": "canceled"} if run.is_canceled else None
        except Snooze as snooze:
            end = {"status": "snoozed", "retryIn": str(snooze)}
        except Exception as error:
            message = f"{type(error).__name__}: {error}"[:10_000]
            end = {"status": "failed", "error": {"message": message, "retryable": not isinstance(error, Fail)}}
        try:
            self.finish(run, end, round((time.monotonic() - started) * 1000))
        except RuntimeError as error:
            print(f"{run.id}: {error}", file=sys.stderr, flush=True)
        finally:
            with self.changed:
                del self.running[run.token]
                self.changed.notify()

    def finish(self, run, end, duration_ms):
        if run.is_lost:
            print(f"{run.id} was given to another attempt", file=sys.stderr, flush=True)
        elif end is None:
            self.belfry.post("/v1/leases/release", {"leases": [{"token": run.token}]})
            print(f"{run.id} released", flush=True)
        else:
            news = run.news()
            if "logs" in news:  # after the end nobody takes them any more
                self.belfry.post("/v1/leases/heartbeat", {"leases": [news]})
            result = {"token": run.token, "durationMs": duration_ms, **end}
            outcome = self.belfry.post("/v1/leases/complete", {"results": [result]})["results"][0]["outcome"]
            print(f"{run.id} {end['status']} ({outcome})", flush=True)

    def beat(self):
        """One call for all leases, three times per lease."""
        while True:
            time.sleep(LEASE_MS / 3000)
            with self.changed:
                runs = list(self.running.values())
            if not runs:
                continue
            try:
                answer = self.belfry.post("/v1/leases/heartbeat", {"leases": [run.news() for run in runs]})
            except RuntimeError as error:  # the next one may do better, and the thread must go on
                print(error, file=sys.stderr, flush=True)
                continue
            self.hear(answer["leases"])
            if answer.get("draining"):
                self.stopping.set()

    def hear(self, answers):
        for answer in answers:
            run = self.running.get(answer["token"])
            if run is not None:
                run.hear(answer)

    def drain(self):
        """Nothing new is taken. What runs may finish; what is left then is given back."""
        end = time.monotonic() + GRACE_SECONDS
        with self.changed:
            self.changed.wait_for(lambda: not self.running, max(0, end - time.monotonic()))
            for run in self.running.values():
                run.stop.set()


def main():
    queue = sys.argv[1] if len(sys.argv) > 1 else "default"
    worker_id = f"python-{socket.gethostname()}-{os.getpid()}-{uuid.uuid4().hex[:8]}"
    url = os.environ.get("BELFRY_URL", "http://127.0.0.1:8080")
    belfry = Belfry(url, os.environ["BELFRY_API_KEY"], worker_id)
    worker = Worker(belfry, queue, int(os.environ.get("CONCURRENCY", "4")))
    for name in (signal.SIGTERM, signal.SIGINT):
        signal.signal(name, worker.stop)
    print(f"{worker_id} works on {queue}", flush=True)
    worker.work()
    # Or else it would be listed as lost, as if it had died.
    belfry.send("DELETE", f"/v1/workers/{worker_id}", tries=3)
    print("stopped", flush=True)


if __name__ == "__main__":
    main()
