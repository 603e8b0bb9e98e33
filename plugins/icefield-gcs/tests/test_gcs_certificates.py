"""A client certificate that google-auth is configured with."""

from __future__ import annotations

import json
import ssl
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from certificates import certified
from icefield_gcs.gcs_file_system import GcsFileSystem


class Described(BaseHTTPRequestHandler):
    """Describes an object of three bytes."""

    def do_GET(self) -> None:
        self.send_response_only(200)
        self.end_headers()
        self.wfile.write(b'{"name": "a", "size": "3"}')

    def log_message(self, *arguments: Any) -> None:
        """Say nothing."""


@pytest.fixture
def strict(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The address of a server that serves only clients with the certificate in google-auth's configuration."""
    server, client = certified(tmp_path, "server"), certified(tmp_path, "client")
    workload = {"cert_path": client.certificate, "key_path": client.key}
    (tmp_path / "google.json").write_text(json.dumps({"cert_configs": {"workload": workload}}))
    monkeypatch.setenv("GOOGLE_API_CERTIFICATE_CONFIG", str(tmp_path / "google.json"))
    monkeypatch.setenv("GOOGLE_API_USE_CLIENT_CERTIFICATE", "true")
    monkeypatch.setenv("SSL_CERT_FILE", server.certificate)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(server.certificate, server.key)
    context.load_verify_locations(client.certificate)
    context.verify_mode = ssl.CERT_REQUIRED
    with ThreadingHTTPServer(("127.0.0.1", 0), Described) as listening:
        listening.socket = context.wrap_socket(listening.socket, server_side=True)
        thread = threading.Thread(target=listening.serve_forever, args=(0.005,), daemon=True)
        thread.start()
        yield f"https://127.0.0.1:{listening.server_port}"
        listening.shutdown()
        thread.join()


def test_the_client_certificate_of_google_auth_is_presented(strict: str) -> None:
    system = GcsFileSystem({"gcs.service.host": strict, "gcs.no-auth": "true", "gcs.retry.num-retries": "0"})
    assert system.stat("gs://bucket/a").size == 3
