"""A server with as much of the protocol of S3 as reading needs, that can be slow, cut, forbid or fall silent."""

from __future__ import annotations

import threading
import time
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, unquote, urlsplit
from xml.sax.saxutils import escape

#: What it can do to requests for the content of files, or to all of them.
WAYS = (
    "sound",
    "slow",
    "cuts",
    "cuts at once",
    "forbids",
    "forbids content",
    "fails",
    "silent",
    "silent content",
    "lies",
)
_PIECE, _PAUSE = 1 << 12, 0.002


class HostileServer:
    """Serves the files of a folder as those of the bucket ``run``; a context manager.

    Attributes
    ----------
    way : str
        One of `WAYS`; may be changed at any time.
    """

    def __init__(self, folder: Path, way: str = "sound") -> None:
        self.folder = folder
        self.way = way
        self.ended = threading.Event()
        handler = type("Handler", (_Handler,), {"of": self})
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> HostileServer:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.ended.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


class _Handler(BaseHTTPRequestHandler):
    of: HostileServer
    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *arguments: object) -> None:
        """Say nothing."""

    def do_HEAD(self) -> None:
        if not self._is_refused():
            self._answer(is_head=True)

    def do_GET(self) -> None:
        """Answer with a file, or a piece of it; or with what is in the bucket."""
        if not self._is_refused():
            self._answer(is_head=False)

    def _is_refused(self) -> bool:
        way = self.of.way
        if way == "silent":
            self.of.ended.wait()
        elif way == "forbids":
            self._error(403, "AccessDenied")
        elif way == "fails":
            self._error(503, "SlowDown")
        else:
            return False
        return True

    def _error(self, status: int, code: str) -> None:
        text = f"<Error><Code>{code}</Code><Message>{code}</Message></Error>".encode()
        self._head(status, {"Content-Type": "application/xml", "Content-Length": str(len(text))})
        if self.command != "HEAD":
            self.wfile.write(text)

    def _head(self, status: int, headers: dict[str, str]) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()

    def _answer(self, is_head: bool) -> None:
        parts = urlsplit(self.path)
        query = parse_qs(parts.query)
        name = unquote(parts.path).removeprefix("/run").strip("/")
        if not name or "list-type" in query:
            self._list(query.get("prefix", [""])[0])
            return
        path = self.of.folder / name
        if not path.is_file():
            self._error(404, "NoSuchKey")
            return
        content = path.read_bytes()
        headers = {"ETag": f'"{len(content)}"', "Last-Modified": formatdate(path.stat().st_mtime, usegmt=True)}
        begin, end, status = 0, len(content), 200
        if wanted := self.headers.get("Range"):
            first, _, last = wanted.removeprefix("bytes=").partition("-")
            begin, end, status = int(first), min(int(last or len(content)) + 1, len(content)), 206
            headers["Content-Range"] = f"bytes {begin}-{end - 1}/{len(content)}"
        n_shown = end - begin + (1000 if self.of.way == "lies" and is_head else 0)
        if is_head:
            self._head(status, headers | {"Content-Length": str(n_shown)})
            return
        self._content(content[begin:end], status, headers)

    def _content(self, content: bytes, status: int, headers: dict[str, str]) -> None:
        way = self.of.way
        if way == "forbids content":
            self._error(403, "AccessDenied")
            return
        if way == "cuts at once":
            self.close_connection = True
            return
        self._head(status, headers | {"Content-Length": str(len(content))})
        if way == "silent content":
            self.wfile.write(content[: len(content) // 2])
            self.wfile.flush()
            self.of.ended.wait()
        elif way == "cuts":
            self.wfile.write(content[: len(content) // 2])
            self.close_connection = True
        elif way == "slow":
            for at in range(0, len(content), _PIECE):
                self.wfile.write(content[at : at + _PIECE])
                self.wfile.flush()
                time.sleep(_PAUSE)
        else:
            self.wfile.write(content)

    def _list(self, prefix: str) -> None:
        names = sorted(str(path.relative_to(self.of.folder)) for path in self.of.folder.rglob("*") if path.is_file())
        found = [name for name in names if name.startswith(prefix)]
        rows = "".join(
            f"<Contents><Key>{escape(name)}</Key><LastModified>2026-01-01T00:00:00.000Z</LastModified>"
            f'<ETag>"x"</ETag><Size>{(self.of.folder / name).stat().st_size}</Size></Contents>'
            for name in found
        )
        text = (
            '<?xml version="1.0"?><ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/"><Name>run</Name>'
            f"<Prefix>{escape(prefix)}</Prefix><KeyCount>{len(found)}</KeyCount><IsTruncated>false</IsTruncated>{rows}"
            "</ListBucketResult>"
        ).encode()
        self._head(200, {"Content-Type": "application/xml", "Content-Length": str(len(text))})
        self.wfile.write(text)
