"""A local HTTP server with byte ranges. Usage: range_server.py FOLDER LOG PORT_FILE

Each request adds a line to LOG: the path and the requested range. The server ignores ranges for paths under /plain/.
"""

import http.server
import os
import sys

folder, log, port_file = sys.argv[1:]


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        wanted = self.headers.get("Range", "")
        with open(log, "a") as lines:
            lines.write(f"{self.path} {wanted}\n")
        path = os.path.join(folder, self.path.lstrip("/"))
        if not os.path.isfile(path):
            return self.send_error(404)
        with open(path, "rb") as stream:
            content = stream.read()
        start = int(wanted.removeprefix("bytes=").split("-")[0]) if wanted and "/plain/" not in self.path else 0
        if start and start >= len(content):
            return self.send_error(416)
        self.send_response(206 if start else 200)
        if start:
            self.send_header("Content-Range", f"bytes {start}-{len(content) - 1}/{len(content)}")
        self.send_header("Content-Length", str(len(content) - start))
        self.end_headers()
        self.wfile.write(content[start:])

    def log_message(self, *arguments):
        pass


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
with open(port_file + ".part", "w") as stream:
    stream.write(str(server.server_port))
os.rename(port_file + ".part", port_file)
server.serve_forever()
