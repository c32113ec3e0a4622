"""Local Hugging Face Hub: the HTTP requests of huggingface_hub to create, list, upload and download."""

import base64
import hashlib
import json
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from urllib.parse import unquote, urlsplit

TOKEN = "hf_of_the_tests"


class LocalHub:
    """Server with repositories.

    Attributes:
        repositories: Content of files by repository and name.
        private: Names of private repositories.
        messages: Messages of commits.
        address: Address of the server.
    """

    def __init__(self):
        self.repositories = {}
        self.private = set()
        self.messages = []
        self.address = ""


class _Handler(BaseHTTPRequestHandler):
    def log_message(self, *_):
        pass

    @property
    def _hub(self):
        return self.server.hub

    def _reply(self, body, status=200, **headers):
        body = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def _refuse(self, status, code, message):
        self._reply({"error": message}, status, X_Error_Code=code, X_Error_Message=message)

    def do_POST(self):  # noqa: N802
        data = self.rfile.read(int(self.headers.get("Content-Length") or 0)) or self._chunks()
        if self.headers.get("Authorization") != f"Bearer {TOKEN}":
            return self._refuse(401, "", "Invalid username or password.")
        path = urlsplit(self.path).path.split("/")[1:]
        if path == ["api", "validate-yaml"]:
            return self._reply({"errors": [], "warnings": []})
        if path[:3] == ["api", "repos", "create"]:
            asked = json.loads(data)
            name = f"{asked['organization'] or 'me'}/{asked['name']}"
            status = 409 if name in self._hub.repositories else 200
            self._hub.repositories.setdefault(name, {})
            if status == 200 and asked.get("visibility") == "private":
                self._hub.private.add(name)
            return self._reply({"url": f"{self._hub.address}/{name}"}, status)
        files, what = self._hub.repositories["/".join(path[2:4])], path[4]
        if what == "preupload":
            chosen = {"uploadMode": "regular", "shouldIgnore": False}
            return self._reply({"files": [{"path": each["path"], **chosen} for each in json.loads(data)["files"]]})
        assert what == "commit"
        for line in map(json.loads, data.splitlines()):
            value = line["value"]
            if line["key"] == "file":
                files[value["path"]] = base64.b64decode(value["content"])
            elif line["key"] == "deletedFile":
                del files[value["path"]]
            else:
                self._hub.messages.append(value["summary"])
        return self._reply(
            {
                "commitUrl": f"{self._hub.address}/{'/'.join(path[2:4])}/commit/{_commit(files)}",
                "commitOid": _commit(files),
            }
        )

    def do_GET(self):  # noqa: N802
        path = [unquote(part) for part in urlsplit(self.path).path.split("/")[1:]]
        if path == ["api", "whoami-v2"]:
            return self._reply({"name": "me"})
        if path[0] == "api":
            repo, what = "/".join(path[2:4]), path[4] if len(path) > 4 else "revision"
        else:
            repo, what = "/".join(path[:2]), path[2]
        files = self._hub.repositories.get(repo)
        if files is None:
            return self._refuse(401, "RepoNotFound", "Repository not found")
        if what == "revision" and len(path) > 5 and path[5] not in ("main", _commit(files)):
            return self._refuse(404, "RevisionNotFound", f"Invalid rev id: {path[5]}")
        if what == "revision":
            siblings = [{"rfilename": name} for name in files]
            private = repo in self._hub.private
            return self._reply({"id": repo, "sha": _commit(files), "private": private, "siblings": siblings})
        if what == "tree":
            return self._reply(
                [{"type": "file", "path": name, "size": len(data), "oid": _oid(data)} for name, data in files.items()]
            )
        data = files["/".join(path[4:])]
        return self._reply(data, ETag=f'"{_oid(data)}"', X_Repo_Commit=_commit(files))

    do_HEAD = do_GET  # noqa: N815

    def _chunks(self):
        """Read a body that comes in chunks."""
        if self.headers.get("Transfer-Encoding") != "chunked":
            return b""
        data = b""
        while size := int(self.rfile.readline(), 16):
            data += self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()
        return data


def _oid(data):
    return hashlib.sha1(b"blob %d\0" % len(data) + data).hexdigest()


def _commit(files):
    return hashlib.sha1(repr(sorted(files.items())).encode()).hexdigest()


@contextmanager
def local_hub():
    """Yield a Hub without repositories, which serves during the block."""
    with ThreadingHTTPServer(("127.0.0.1", 0), _Handler) as server:
        server.hub = LocalHub()
        server.hub.address = f"http://127.0.0.1:{server.server_port}"
        Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield server.hub
        finally:
            server.shutdown()
