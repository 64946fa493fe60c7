# SPDX-License-Identifier: Apache-2.0
# Copyright the weightfs authors
"""A model hub on loopback that answers as the public one does, in threads of the test's own process.

Two listeners on two addresses: the hub itself, and the storage (the CDN) that it sends clients to for large
files, by URLs that are signed and expire. The hub's answers for one file come in three shapes: 302 to the
storage, which carries the file's metadata itself; 307 to another path of the hub for files kept in git; or
the file at once.

Every answer is right unless something in `faults` changes it: {kind: [fault, ...]} for all requests of a
kind, {(kind, file): [fault, ...]} for one file. A fault is a function (reply, request); see hub_faults.py
and hostile.py. The request's number counts those of the same kind, method, repository and file.

Kinds: info, tree, paths (paths-info), refs, resolve, cache (/api/resolve-cache), cdn, other.
"""

import base64
import collections
import dataclasses
import email.utils
import gzip
import hashlib
import hmac
import itertools
import json
import math
import re
import threading
import time
import urllib.parse

from loopback import Reply, Request, Server
from origin import coverage
from repositories import COMMITTED

FOLDERS = {"datasets": "dataset", "spaces": "space"}
PREFIXES = {"model": "", "dataset": "datasets/", "space": "spaces/"}
VERBS = ("revision", "tree", "paths-info", "refs", "xet-read-token")
COMPRESSED_BYTES = 1 << 20
DETOUR = "/mirror"        # the same content again, below another path
SIGNING_KEY = b"weightfs tests"


@dataclasses.dataclass
class Ask(Request):
    """A request as the hub understands it. `token` is what Authorization carried, None without one."""
    target: str = ""
    kind: str = "other"
    repository: str | None = None   # "org/name", with "datasets/" or "spaces/" before it
    revision: str | None = None
    file: str | None = None
    query: dict = dataclasses.field(default_factory=dict)
    token: str | None = None
    host: str = ""
    client: str = ""
    form: dict = dataclasses.field(default_factory=dict)

    @property
    def begin(self):
        return self.span[0] if self.span and self.status == 206 else 0

    @property
    def end(self):
        return self.begin + self.sent


class Refusal(Exception):
    def __init__(self, status, message, code=None, **headers):
        super().__init__(message)
        self.status, self.code = status, code
        self.headers = {name.replace("_", "-"): value for name, value in headers.items()}


def quoted(path):
    return urllib.parse.quote(path, safe="/")


class Hub:
    """Serves `repositories`; more may be added while it runs.

    tokens:   {token: user}; a request with any other token is refused, whatever it asks for
    page:     the most entries on one page of a tree
    expires:  seconds that a signed URL lives, by the hub's clock
    signing:  "amazon" (X-Amz-*) or "cloudfront" (Expires=)
    limits:   {"api" | "resolvers": (requests, seconds)}: windows for each token, or else each client address,
              that begin with its first request
    clock:    seconds that the hub's clock is ahead; advance() moves it on
    links_to: the endpoint in links to the next page (a mirror may pass on the original's)
    compress: gzip small texts and JSON for clients that take it
    """

    def __init__(self, *repositories, address="127.0.0.1", cdn_address="127.0.0.2", tls=None, tokens=None,
                 page=1000, expires=3600, signing="amazon", limits=None, clock=0, links_to=None, compress=True):
        self.repositories, self.renamed = {}, {}
        self.tokens, self.page, self.expires, self.signing = dict(tokens or {}), page, expires, signing
        self.limits, self.clock, self.compress = dict(limits or {}), clock, compress
        self.faults, self.requests, self.errors = {}, [], []
        self._windows, self._objects, self._generation = {}, {}, 0
        self._numbers = collections.Counter()
        self._serial, self._lock = itertools.count(1), threading.Lock()
        self._front = _Listener(self, self._ask_hub, self._answer_hub, address, tls)
        self._cdn = _Listener(self, self._ask_cdn, self._answer_cdn, cdn_address, tls)
        self.endpoint, self.cdn = self._front.url()[:-1], self._cdn.url()[:-1]
        self.links_to = links_to or self.endpoint
        for repository in repositories:
            self.add(repository)

    def __enter__(self):
        self._front.__enter__()
        self._cdn.__enter__()
        return self

    def __exit__(self, *_):
        self._front.__exit__()
        self._cdn.__exit__()
        assert not self.errors, self.errors

    def add(self, repository):
        self.repositories[PREFIXES[repository.kind] + repository.name] = repository
        return repository

    def now(self):
        return time.time() + self.clock

    def advance(self, seconds):
        self.clock += seconds

    def forget_signatures(self):
        """Every URL signed so far is dead."""
        self._generation += 1

    # ---- what was asked

    def asked(self, kind=None, file=None, method=None, repository=None):
        with self._lock:
            return [request for request in self.requests
                    if kind in (None, request.kind) and file in (None, request.file)
                    and method in (None, request.method) and repository in (None, request.repository)]

    def clear(self):
        """Forgets the requests so far."""
        with self._lock:
            self.requests.clear()
            self._numbers.clear()

    def bodies(self, file):
        """Requests that were answered with bytes of this file."""
        return [request for request in self.asked(file=file, method="GET")
                if request.kind in ("resolve", "cache", "cdn") and request.status in (200, 206)]

    def coverage(self, file, size):
        """How often each byte of a file was sent: (fewest, most) times."""
        return coverage(self.bodies(file), size)

    # ---- requests

    def begin(self, request):
        key = request.kind, request.method, request.repository, request.file
        with self._lock:
            request.number = self._numbers[key]
            self._numbers[key] += 1
            self.requests.append(request)

    def plan(self, request, answer):
        try:
            reply = answer(request)
        except Refusal as refusal:
            reply = self._refused(refusal)
        except Exception as error:  # a mistake of this server, told at the end and not taken for a client's
            self.errors.append((request.target, error))
            reply = self._refused(Refusal(500, repr(error)))
        for key in (request.kind, (request.kind, request.file)):
            for fault in list(self.faults.get(key, [])):
                fault(reply, request)
        if self.compress and _takes_gzip(request) and "application/json" in reply.headers.get("Content-Type", ""):
            reply.headers.pop("Content-Length", None)
            reply.headers["Content-Encoding"] = "gzip"
        if reply.headers.get("Content-Encoding") == "gzip" and "Content-Length" not in reply.headers:
            reply.body, reply.chunked = gzip.compress(reply.body, 1), True
        return reply

    def _ask(self, handler, **fields):
        path, _, query = handler.path.partition("?")
        bearer = re.fullmatch(r"Bearer (.*)", handler.headers.get("Authorization", ""))
        return Ask(handler.command, urllib.parse.unquote(path), handler.headers, _span(handler.headers), 0,
                   time.monotonic(), target=handler.path, query=_fields(query), token=bearer and bearer[1],
                   host=handler.headers.get("Host", ""), client=handler.client_address[0], **fields)

    def _ask_hub(self, handler):
        length = int(handler.headers.get("Content-Length", 0))
        body = handler.rfile.read(length) if length else b""
        form = json.loads(body) if body.startswith(b"{") else urllib.parse.parse_qs(body.decode())
        return self._ask(handler, form=form, **_route(handler.path.partition("?")[0]))

    def _ask_cdn(self, handler):
        key = handler.path.partition("?")[0].rsplit("/", 2)[-2]
        repository, file, _ = self._objects.get(key, (None, None, None))
        return self._ask(handler, kind="cdn", repository=repository, file=file)

    # ---- the hub

    def _answer_hub(self, request):
        limits = self._count(request)
        try:
            reply = self._answer_within_limits(request)
        except Refusal as refusal:
            reply = self._refused(refusal)
        reply.headers |= limits | {"X-Request-Id": f"Root=1-{next(self._serial):08x}"}
        return reply

    def _answer_within_limits(self, request):
        if request.kind == "other":
            raise Refusal(404, "Sorry, we can't find the page you are looking for.")
        user = self._user(request)
        if request.repository in self.renamed:
            target = request.target.replace(request.repository, self.renamed[request.repository], 1)
            return self._redirect(307, target)
        repository = self._repository(request, user)
        if request.kind in ("resolve", "cache"):
            return self._file(request, repository, user)
        if request.kind == "refs":
            return self._json({"branches": [{"name": name, "ref": f"refs/heads/{name}", "targetCommit": commit}
                                            for name, commit in repository.refs.items() if "/" not in name],
                               "converts": [], "tags": []})
        commit = self._commit(repository, request.revision or "main")
        if request.kind == "info":
            return self._json(self._description(repository, commit, request))
        if request.kind == "tree":
            return self._tree(request, commit)
        if request.kind == "paths":
            wanted = request.form.get("paths", [])
            return self._json([item for item in commit.listing() if item["path"] in wanted])
        raise Refusal(404, "Not Found")  # the other protocol is only announced

    def _user(self, request):
        if "Authorization" not in request.headers:
            return None
        if request.token in self.tokens:
            return self.tokens[request.token]
        repository = self.repositories.get(request.repository)
        if repository and repository.gated and request.kind == "resolve":
            raise self._gated(repository, 401)  # a dead token is no better than none, and nobody says so
        raise Refusal(401, "Invalid credentials in Authorization header")

    def _gated(self, repository, status):
        return Refusal(status, f"Access to {repository.kind} {repository.name} is restricted. You must have access "
                       "to it and be authenticated to access it. Please log in.", "GatedRepo")

    def _repository(self, request, user):
        repository = self.repositories.get(request.repository)
        if repository is None or not repository.may_see(user):
            # Only who is known is told that it is not there.
            if user is None:
                raise Refusal(401, "Invalid username or password.",
                              WWW_Authenticate='Bearer realm="Authentication required", charset="UTF-8"')
            raise Refusal(404, "Repository not found", "RepoNotFound")
        if repository.disabled and request.kind in ("resolve", "cache"):
            raise Refusal(403, "Access to this resource is disabled.")
        return repository

    def _commit(self, repository, revision):
        commit = repository.at(revision)
        if commit is None:
            raise Refusal(404, f"Invalid rev id: {revision}", "RevisionNotFound")
        return commit

    def _description(self, repository, commit, request):
        blobs = request.query.get("blobs", "").lower() in ("true", "1")
        text = {"_id": hashlib.sha1(repository.name.encode()).hexdigest()[:24], "id": repository.name,
                "author": repository.name.rpartition("/")[0] or None, "sha": commit.id,
                "lastModified": email.utils.formatdate(commit.time, usegmt=True), "private": repository.private,
                "gated": repository.gated, "disabled": repository.disabled, "tags": [], "downloads": 0,
                "likes": 0, "createdAt": "2023-11-14T22:13:20.000Z", "usedStorage": 0,
                "siblings": [entry.sibling(path, blobs) for path, entry in commit.files.items()]}
        text["lastModified"] = time.strftime("%Y-%m-%dT%H:%M:%S.000Z", time.gmtime(commit.time))
        if repository.kind == "model":
            text |= {"modelId": repository.name, "library_name": "transformers"}
        if repository.kind == "space":
            text |= {"sdk": "static"}
        return text

    def _tree(self, request, commit):
        if request.file and request.file not in commit.folders:
            raise Refusal(404, f"{request.file} does not exist", "EntryNotFound")
        recursive = request.query.get("recursive", "").lower() in ("true", "1")
        items = commit.listing(request.file or "", recursive)
        first = int(base64.b64decode(request.query["cursor"])) if "cursor" in request.query else 0
        count = min(self.page, int(request.query.get("limit", self.page)))
        reply = self._json(items[first:first + count])
        if first + count < len(items):
            self.link(reply, request, base64.b64encode(b"%d" % (first + count)).decode())
        return reply

    def link(self, reply, request, cursor):
        """Adds the link to the next page."""
        query = urllib.parse.urlencode(request.query | {"cursor": cursor})
        reply.headers["Link"] = f'<{self.links_to}{request.target.partition("?")[0]}?{query}>; rel="next"'

    def _file(self, request, repository, user):
        if not repository.may_read(user):
            raise self._gated(repository, 401 if user is None else 403)
        commit = self._commit(repository, request.revision)
        entry = commit.files.get(request.file)
        if entry is None:
            raise Refusal(404, "Entry not found", "EntryNotFound", X_Repo_Commit=commit.id)
        headers = {"X-Repo-Commit": commit.id, "Accept-Ranges": "bytes"}
        shape = repository.shape(request.file, entry) if request.kind == "resolve" else "direct"
        if shape == "cache":
            original = urllib.parse.quote(request.target, safe="")
            # Its Content-Length is that of the redirect; only where it leads says the size of the file.
            return self._redirect(307, f"/api/resolve-cache/{repository.kind}s/{quoted(repository.name)}/"
                                  f"{commit.id}/{quoted(request.file)}?{original}=&etag=%22{entry.blob_id}%22",
                                  headers | {"X-Linked-Etag": f'"{entry.blob_id}"'})
        if entry.lfs:
            headers |= {"X-Linked-Size": str(entry.size), "X-Linked-Etag": f'"{entry.sha256}"'}
        if shape == "direct":
            return self._content(request, entry, headers | {"ETag": f'"{entry.etag}"'}, not entry.lfs)
        if entry.xet_hash:
            route = f"{self.endpoint}/api/{repository.kind}s/{repository.name}/xet-read-token/{commit.id}"
            headers |= {"X-Xet-Hash": entry.xet_hash, "Link": f'<{route}>; rel="xet-auth", <https://cas-server.'
                        f'xethub.hf.co/v1/reconstructions/{entry.xet_hash}>; rel="xet-reconstruction-info"'}
        return self._redirect(302, self.sign(request.repository, request.file, entry), headers)

    def _content(self, request, entry, headers, text):
        headers |= {"Content-Type": "text/plain; charset=utf-8" if text else "application/octet-stream"}
        if text and self.compress and entry.size <= COMPRESSED_BYTES and _takes_gzip(request):
            # Then a range is of no account.
            headers |= {"Content-Encoding": "gzip", "ETag": "W/" + headers["ETag"], "Vary": "Accept-Encoding"}
            return Reply(200, headers, entry.read())
        if request.span is None or request.method != "GET":
            return Reply(200, headers | {"Content-Length": str(entry.size)},
                         entry.read() if request.method == "GET" else b"")
        begin, end = request.span[0], min(request.span[1], entry.size)
        if begin >= end:
            return Reply(416, {"Content-Range": f"bytes */{entry.size}", "Content-Length": "0"}, b"")
        headers |= {"Content-Range": f"bytes {begin}-{end - 1}/{entry.size}", "Content-Length": str(end - begin)}
        return Reply(206, headers, entry.read(begin, end))

    # ---- the storage

    def sign(self, repository, file, entry):
        """The URL of a file in the storage, good for `expires` seconds."""
        key = hashlib.sha256(f"{repository}\0{file}".encode()).hexdigest()[:24]
        self._objects[key] = (repository, file, entry)
        path, now = f"/xet-bridge-us/{key}/{entry.sha256}", int(self.now())
        name = urllib.parse.quote(f'inline; filename="{quoted(file.rsplit("/", 1)[-1])}"', safe="")
        if self.signing == "cloudfront":
            fields = f"Expires={now + self.expires}"
            rest = f"&Policy=e30_&Signature={self._signature(path, fields)}&Key-Pair-Id=K24J24Z295AEI9"
        else:
            date = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(now))
            fields = f"X-Amz-Date={date}&X-Amz-Expires={self.expires}"
            rest = (f"&X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Content-Sha256=UNSIGNED-PAYLOAD&X-Amz-Credential="
                    f"cas%2F{date[:8]}%2Fus-east-1%2Fs3%2Faws4_request&X-Amz-Signature="
                    f"{self._signature(path, fields)}&X-Amz-SignedHeaders=host&x-id=GetObject")
        return f"{self.cdn}{path}?{fields}{rest}&response-content-disposition={name}"

    def _signature(self, path, fields):
        return hmac.new(SIGNING_KEY, f"{path}?{fields}/{self._generation}".encode(), hashlib.sha256).hexdigest()

    def _answer_cdn(self, request):
        query, path = request.query, request.target.partition("?")[0]
        if "Authorization" in request.headers:
            return _storage_error(400, "InvalidArgument", "Only one auth mechanism allowed")
        if "Expires" in query:
            fields, expires = f"Expires={query['Expires']}", int(query["Expires"])
            signature = query.get("Signature", "")
        elif "X-Amz-Date" in query:
            fields = f"X-Amz-Date={query['X-Amz-Date']}&X-Amz-Expires={query.get('X-Amz-Expires')}"
            signed = email.utils.mktime_tz((*time.strptime(query["X-Amz-Date"], "%Y%m%dT%H%M%SZ")[:9], 0))
            expires, signature = signed + int(query.get("X-Amz-Expires", 0)), query.get("X-Amz-Signature", "")
        else:
            return _storage_error(403, "AccessDenied", "Access Denied")
        # Signed for GET alone.
        if request.method != "GET" or signature != self._signature(path, fields):
            return _storage_error(403, "SignatureDoesNotMatch", "The signature does not match")
        if self.now() >= expires:
            return _storage_error(403, "AccessDenied", "Request has expired")
        _, _, entry = self._objects[path.rsplit("/", 2)[-2]]
        headers = {"ETag": f'"{entry.cdn_etag}"', "Accept-Ranges": "bytes",
                   "Last-Modified": email.utils.formatdate(COMMITTED, usegmt=True),
                   "Content-Disposition": query.get("response-content-disposition", "inline")}
        return self._content(request, entry, headers, False)

    # ---- answers

    def _json(self, value):
        body = json.dumps(value).encode()
        headers = {"Content-Type": "application/json; charset=utf-8", "Content-Length": str(len(body))}
        return Reply(200, headers, body)

    def _redirect(self, status, target, headers=None):
        body = f"{'Found' if status == 302 else 'Temporary Redirect'}. Redirecting to {target}".encode()
        return Reply(status, (headers or {}) | {"Location": target, "Content-Type": "text/plain; charset=utf-8",
                                                "Content-Length": str(len(body))}, body)

    def _refused(self, refusal):
        body = json.dumps({"error": str(refusal)}).encode()
        headers = {"X-Error-Message": str(refusal), "Content-Type": "application/json; charset=utf-8",
                   "Content-Length": str(len(body))} | refusal.headers
        if refusal.code:
            headers["X-Error-Code"] = refusal.code
        return Reply(refusal.status, headers, body)

    def _count(self, request):
        """Counts the request against its limit; returns the headers that tell of it."""
        resource = "resolvers" if request.kind == "resolve" else "api"
        if resource not in self.limits:
            return {}
        quota, window = self.limits[resource]
        now, key = self.now(), (resource, request.token or request.client)
        with self._lock:
            began, used = self._windows.get(key, (now, 0))
            if now >= began + window:
                began, used = now, 0
            used += 1
            self._windows[key] = began, used
        left = max(1, math.ceil(began + window - now))
        headers = {"RateLimit": f'"{resource}";r={max(0, quota - used)};t={left}',
                   "RateLimit-Policy": f'"fixed window";"{resource}";q={quota};w={window}'}
        if used > quota:
            raise Refusal(429, f"We had to rate limit your IP ({request.client}).", **headers)
        return headers


class _Listener(Server):
    def __init__(self, hub, ask, answer, address, tls):
        super().__init__(address, tls)
        self.ask, self.begin, self.date = ask, hub.begin, hub.now
        self.plan = lambda request: hub.plan(request, answer)

    def end(self, request):
        request.over = True


def _storage_error(status, code, message):
    body = (f'<?xml version="1.0" encoding="UTF-8"?>\n<Error><Code>{code}</Code>'
            f"<Message>{message}</Message></Error>").encode()
    return Reply(status, {"Content-Type": "application/xml", "Content-Length": str(len(body))}, body)


def _takes_gzip(request):
    return "gzip" in request.headers.get("Accept-Encoding", "")


def _fields(query):
    return dict(urllib.parse.parse_qsl(query, keep_blank_values=True))


def _span(headers):
    match = re.fullmatch(r"bytes=(\d+)-(\d*)", headers.get("Range", ""))
    return (int(match[1]), int(match[2]) + 1 if match[2] else 1 << 62) if match else None


def _revision(parts):
    """Takes the revision off the front: one encoded part, or a ref whose slashes were left as they are."""
    count = 3 if len(parts) > 2 and parts[0] == "refs" and parts[1] in ("pr", "convert") else 1
    return urllib.parse.unquote("/".join(parts[:count])), parts[count:]


def _route(path):
    """What a path of the hub asks for, as fields of Ask."""
    parts = path.removeprefix(DETOUR).strip("/").split("/")
    if parts[0] != "api":
        prefix = parts.pop(0) + "/" if parts[0] in FOLDERS else ""
        place = next((at for at in (1, 2) if len(parts) > at and parts[at] == "resolve"), None)
        return _of_file("resolve", prefix, parts, place, place + 1) if place else {}
    _, folder, *parts = parts + [""] * (2 - len(parts))
    if folder == "resolve-cache" and len(parts) > 3:
        prefix = "" if parts[0] == "models" else parts[0] + "/"
        place = next((at for at in (2, 3) if re.fullmatch(r"[0-9a-f]{40}", parts[at])), None)
        return _of_file("cache", prefix, parts[1:], place - 1, place - 1) if place else {}
    if folder not in ("models", *FOLDERS) or not parts:
        return {}
    prefix = folder + "/" if folder in FOLDERS else ""
    place = next((at for at in (1, 2) if len(parts) > at and parts[at] in VERBS), len(parts))
    fields = {"repository": prefix + urllib.parse.unquote("/".join(parts[:place])), "kind": "info"}
    if place < len(parts):
        verb, rest = parts[place], parts[place + 1:]
        fields["kind"] = {"revision": "info", "paths-info": "paths"}.get(verb, verb)
        if rest:
            fields["revision"], rest = _revision(rest)
        if rest:
            fields["file"] = urllib.parse.unquote("/".join(rest))
    return fields


def _of_file(kind, prefix, parts, name_parts, revision_at):
    revision, rest = _revision(parts[revision_at:])
    return {"kind": kind, "repository": prefix + urllib.parse.unquote("/".join(parts[:name_parts])),
            "revision": revision, "file": urllib.parse.unquote("/".join(rest))}
