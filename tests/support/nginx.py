"""A real reverse proxy before the console: nginx with TLS, set up as docs/console.md asks."""

from __future__ import annotations

import socket
import ssl
import subprocess
import time
from pathlib import Path

from tests.support.needs import program

NAME = "hold.test"  # a name that nobody has: clients are told where it is
_DEADLINE_S = 60.0
_TRIES = 5  # somebody else may have been given the port meanwhile

_SETTINGS = """
daemon off;
master_process off;
pid {folder}/pid;
error_log {folder}/log;
events {{}}
http {{
  access_log off;
  client_body_temp_path {folder}/t1; proxy_temp_path {folder}/t2; fastcgi_temp_path {folder}/t3;
  uwsgi_temp_path {folder}/t4; scgi_temp_path {folder}/t5;
  server {{
    listen 127.0.0.1:{port} ssl;
    ssl_certificate {folder}/cert.pem;
    ssl_certificate_key {folder}/key.pem;
    location / {{
      proxy_pass http://{behind};
      proxy_http_version 1.1;
      proxy_set_header Host $http_host;
      proxy_set_header Upgrade $http_upgrade;
      proxy_set_header Connection "upgrade";
      proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;
      proxy_set_header X-Forwarded-Host $http_host;
      proxy_set_header X-Forwarded-Proto $scheme;
      proxy_read_timeout 1h;
    }}
  }}
}}
"""


class Nginx:
    """`https://hold.test:PORT` leads to `behind`, an address with its port."""

    def __init__(self, folder: Path, behind: str) -> None:
        server = program("nginx")
        folder.mkdir()
        self._certify(folder)
        self.certificate = folder / "cert.pem"
        for attempt in range(1, _TRIES + 1):
            self.port = _free()
            (folder / "conf").write_text(_SETTINGS.format(folder=folder, port=self.port, behind=behind))
            self._process = subprocess.Popen([server, "-e", str(folder / "log"), "-c", str(folder / "conf")])
            if self._serves():
                break
            self.close()
            assert attempt < _TRIES, (folder / "log").read_text()
        self.url = f"https://{NAME}:{self.port}"

    @staticmethod
    def _certify(folder: Path) -> None:
        made = [
            "openssl",
            "req",
            "-x509",
            "-newkey",
            "ec",
            "-pkeyopt",
            "ec_paramgen_curve:P-256",
            "-nodes",
            "-days",
            "2",
            "-keyout",
            str(folder / "key.pem"),
            "-out",
            str(folder / "cert.pem"),
            "-subj",
            f"/CN={NAME}",
            "-addext",
            f"subjectAltName=DNS:{NAME}",
        ]
        subprocess.run(made, check=True, capture_output=True, timeout=_DEADLINE_S)

    def _serves(self) -> bool:
        deadline = time.monotonic() + _DEADLINE_S
        while self._process.poll() is None:
            try:
                socket.create_connection(("127.0.0.1", self.port), timeout=_DEADLINE_S).close()
                return True
            except OSError:
                assert time.monotonic() < deadline, "nginx does not listen"
                time.sleep(0.02)
        return False

    def trusted(self) -> ssl.SSLContext:
        """For clients: this certificate and no other."""
        return ssl.create_default_context(cafile=str(self.certificate))

    def close(self) -> None:
        self._process.kill()
        self._process.wait(_DEADLINE_S)


def _free() -> int:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return int(sock.getsockname()[1])
