"""A Flower federation on this machine, with TLS: one SuperLink and some SuperNodes, each a process of its own."""

import contextlib
import datetime
import ipaddress
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

import equfl

HERE = "127.0.0.1"
BIN = Path(sys.executable).parent
SOURCE = str(Path(equfl.__file__).parents[1])


def authority(folder: Path, name: str = "ca") -> tuple[x509.Certificate, ec.EllipticCurvePrivateKey]:
    """A certificate authority of our own, its certificate written to ``NAME.crt``."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    built = _certificate(subject, subject, key.public_key()).add_extension(x509.BasicConstraints(True, None), True)
    certificate = built.sign(key, hashes.SHA256())
    (folder / f"{name}.crt").write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    return certificate, key


def server_certificate(folder: Path, issuer: x509.Certificate, issuer_key: ec.EllipticCurvePrivateKey) -> None:
    """A certificate for this machine, as ``server.pem`` and ``server.key``."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "superlink")])
    names = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address(HERE))])
    built = _certificate(subject, issuer.subject, key.public_key()).add_extension(names, False)
    certificate = built.sign(issuer_key, hashes.SHA256())
    (folder / "server.pem").write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    (folder / "server.key").write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )


def _certificate(subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey) -> x509.CertificateBuilder:
    now = datetime.datetime.now(datetime.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
    )


def free_port() -> int:
    """A port that nobody listens on just now."""
    with socket.socket() as probe:
        probe.bind((HERE, 0))
        return probe.getsockname()[1]


class Deployment:
    """The processes of one federation; all of them end with the ``with`` block. Each writes ``NAME.log``."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.port = free_port()
        self._processes: dict[str, subprocess.Popen] = {}

    def __enter__(self) -> "Deployment":
        server_certificate(self.folder, *authority(self.folder))
        return self

    def __exit__(self, *error: object) -> None:
        for name in list(self._processes):
            self.kill(name)

    def superlink(self, *options: str) -> None:
        """Start the SuperLink and wait until it listens."""
        files = {"ca-certfile": "ca.crt", "certfile": "server.pem", "keyfile": "server.key"}
        tls = [word for name, file in files.items() for word in (f"--ssl-{name}", str(self.folder / file))]
        place = ["--host", HERE, "--port", str(self.port), "--disable-runtime-dependency-installation"]
        self.start("superlink", ["flower-superlink", *tls, *place, *options])
        self.wait("the SuperLink listens", self._listens)

    def supernode(self, name: str, *options: str, config: str, certificates: str = "ca.crt") -> None:
        """Start a SuperNode."""
        place = ["--superlink", f"{HERE}:{self.port}", "--port", str(free_port())]
        trust = ["--root-certificates", str(self.folder / certificates)]
        self.start(name, ["flower-supernode", *trust, *place, "--node-config", config, *options])

    def run(self, app: Path, **settings: object) -> None:
        """Start a run of the app and return; its log is ``run.log``."""
        home = self.folder / "run"
        home.mkdir(exist_ok=True)
        link = f'address = "{HERE}:{self.port}"\nroot-certificates = "{self.folder / "ca.crt"}"\n'
        (home / "config.toml").write_text(f"[superlink.here]\n{link}")
        words = " ".join(f"{name}={_toml(value)}" for name, value in settings.items())
        self.start("run", ["flwr", "run", str(app), "here", "--stream", "--run-config", words])

    def start(self, name: str, words: list[str]) -> None:
        """Start a process with a home of its own."""
        home = self.folder / name
        home.mkdir(exist_ok=True)
        environment = {
            **os.environ,
            "FLWR_HOME": str(home),
            "FLWR_TELEMETRY_ENABLED": "0",
            "FLWR_DISABLE_UPDATE_CHECK": "1",
            "OMP_NUM_THREADS": "1",
            "NO_COLOR": "1",
            "PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}",
            "PYTHONPATH": os.pathsep.join(filter(None, [SOURCE, os.environ.get("PYTHONPATH")])),
        }
        with (self.folder / f"{name}.log").open("ab") as log:
            self._processes[name] = subprocess.Popen(
                words, cwd=home, env=environment, stdout=log, stderr=log, start_new_session=True
            )

    def kill(self, name: str) -> None:
        """End a process and those that it started, at once, as a power cut would."""
        process = self._processes.pop(name)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()

    def log(self, name: str) -> str:
        """What a process has said so far."""
        return (self.folder / f"{name}.log").read_text(errors="replace")

    def wait(self, until: str, holds: Callable[[], bool], *, seconds: float = 300.0) -> None:
        """Wait until it holds; if it takes too long, the logs say why."""
        deadline = time.monotonic() + seconds
        while not holds():
            if time.monotonic() > deadline:
                logs = [f"--- {path.name}\n{self.log(path.stem)[-3000:]}" for path in self.folder.glob("*.log")]
                raise AssertionError("\n".join([f"waited in vain until {until}", *logs]))
            time.sleep(0.2)

    def ended(self, name: str) -> bool:
        """Whether a process has ended by itself."""
        return self._processes[name].poll() is not None

    def _listens(self) -> bool:
        with socket.socket() as probe:
            return probe.connect_ex((HERE, self.port)) == 0


def _toml(value: object) -> str:
    return f'"{value}"' if isinstance(value, str | Path) else str(value).lower()
