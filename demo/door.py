"""The HTTP door of a node, for programs: JSON in, JSON out, and a problem is an exception. Standard library only."""

import http.client
import json
import urllib.parse

ANSWER_SECONDS_MAX = 60


class Problem(Exception):
    """The door said no."""

    def __init__(self, status, document):
        self.status = status
        self.code = document.get("code")
        self.document = document
        detail = document.get("detail") or document.get("title") or "no reason given"
        super().__init__(f"{detail} ({self.code}, {status})")


class Unreachable(Exception):
    """There was no answer, or none yet; what was asked may have been done or not."""


class Door:
    """One connection, made anew when it breaks; used by one thread."""

    def __init__(self, url):
        parts = urllib.parse.urlsplit(url)
        if parts.scheme != "http" or not parts.netloc or parts.path.strip("/"):
            raise ValueError(f"{url!r} is not http://HOST:PORT")
        self.url = f"http://{parts.netloc}"
        self._address = parts.netloc
        self._connection = None

    def call(self, method, path, body=None, content_type="application/json", accept="application/json"):
        """The status and the JSON of the answer, None where it has none."""
        if body is not None and not isinstance(body, (bytes, str)):
            body = json.dumps(body)
        headers = {"accept": accept, "content-type": content_type}
        try:
            if self._connection is None:
                self._connection = http.client.HTTPConnection(self._address, timeout=ANSWER_SECONDS_MAX)
            self._connection.request(method, path, body=body, headers=headers)
            answer = self._connection.getresponse()
            text = answer.read()
        except (OSError, http.client.HTTPException) as error:
            self.close()
            raise Unreachable(f"{self.url}: {error or type(error).__name__}") from None
        try:
            found = json.loads(text) if text else None
        except ValueError:
            found = None
        if answer.status >= 400:
            problem = Problem(answer.status, found if isinstance(found, dict) else {})
            if problem.document.get("retryable") or answer.status in (503, 504):
                raise Unreachable(str(problem))
            raise problem
        return answer.status, found

    def get(self, path):
        """Asks once more if the connection turns out to be an old one."""
        is_new = self._connection is None
        try:
            return self.call("GET", path)[1]
        except Unreachable:
            if is_new or self._connection is not None:
                raise
            return self.call("GET", path)[1]

    def get_or_none(self, path):
        """None if there is no such thing."""
        try:
            return self.get(path)
        except Problem as problem:
            if problem.status == 404:
                return None
            raise

    def close(self):
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    # What the demo and its acceptance ask for.

    def partitions(self, topic):
        """(start, end) of each partition, in order. A partition that has no leader yet has neither."""
        found = self.get(f"/api/v1/topics/{topic}")["partitions"]
        if any(one["start"] is None or one["end"] is None for one in found):
            raise Unreachable(f"not every partition of {topic} has a leader yet")
        return [(one["start"], one["end"]) for one in sorted(found, key=lambda one: one["partition"])]

    def ends(self, topic):
        return [end for _, end in self.partitions(topic)]
