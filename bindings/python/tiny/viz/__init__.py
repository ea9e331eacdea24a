"""A page that shows what a program's default context did: schedules as graphs, kernels pass by pass with the rules that
fired, their loops and code, and when what ran.

    python -m tiny.viz PROGRAM.py ARGS        or, of a program as it is:     VIZ=1 python PROGRAM.py ARGS

The page is served on this machine alone, until Ctrl-C.
"""

import http.server
import json
import os
import pathlib
import sys

from .. import _tensor
from ..native import tiny_version

_HERE = pathlib.Path(__file__).parent
_KINDS = {".html": "text/html", ".css": "text/css", ".js": "text/javascript", ".json": "application/json"}
PORT = 8000


def record(context=None) -> str:
    """What the context (the default one, if none is said) has kept, as JSON; it was made with the option viz=1."""
    return (context or _tensor.default_context()).record().text()


def about(context=None) -> str:
    """A line of what was run, and where."""
    info = json.loads((context or _tensor.default_context()).info().text())
    return (f"{' '.join(sys.argv)[:80]} on {info['device']} {info['isa']}, {info['threads']} "
            f"{'thread' if info['threads'] == 1 else 'threads'}, tiny {tiny_version()}")


class Server(http.server.ThreadingHTTPServer):
    """Serves the page for a record; `port` 0: any that is free.  `url` says where."""

    daemon_threads = True

    def __init__(self, text, line="", port=0):
        self.answers = {f"/{path.name}": path.read_bytes() for path in _HERE.iterdir() if path.suffix in _KINDS}
        self.answers["/"] = self.answers["/index.html"]
        self.answers["/record.json"] = text.encode()
        self.answers["/about.json"] = json.dumps({"text": line}).encode()
        super().__init__(("127.0.0.1", port), _Handler)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/"


class _Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        host = self.headers.get("Host", "").rsplit(":", 1)[0]
        path = self.path.split("?")[0]
        body = self.server.answers.get(path)
        if host not in ("127.0.0.1", "localhost"):  # another site's name for this machine
            return self.send_error(403)
        if body is None:
            return self.send_error(404)
        self.send_response(200)
        kind = _KINDS.get(pathlib.PurePath(path).suffix, "text/html")
        self.send_header("Content-Type", f"{kind}; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Cache-Control", "no-store")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *arguments):
        """Nothing is printed."""


def serve(text, line="", port=PORT, browser=False) -> None:
    """Shows a record until Ctrl-C, on `port` or, where that is taken, another one."""
    try:
        server = Server(text, line, port)
    except OSError:
        server = Server(text, line)
    with server:
        print(f"tiny viz: {server.url} (Ctrl-C ends it)", file=sys.stderr, flush=True)
        if browser:
            import webbrowser
            webbrowser.open(server.url)
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            print(file=sys.stderr)


def at_exit() -> None:
    """Of VIZ=1: shows what the program did."""
    serve(record(), about(), int(os.environ.get("VIZ_PORT", PORT)), os.environ.get("BROWSER", "") == "1")
