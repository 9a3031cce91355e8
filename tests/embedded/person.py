"""A user of the machine who has a private server, and what a test does with both."""

import json
import os
import pwd
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event
from time import monotonic
from typing import Any

ACTING = Path(__file__).with_name("acting.py")
CHECKOUT = Path(__file__).resolve().parents[2]


class Failed(Exception):
    """What `pgq.embedded` raised in the other process: the name of the error and its text."""

    def __init__(self, kind: str, text: str) -> None:
        self.kind, self.text = kind, text
        super().__init__(f"{kind}: {text}")


@dataclass
class Person:
    """A user with a folder of their own, who acts in processes of their own."""

    entry: pwd.struct_passwd
    folder: Path
    environment: dict[str, str] = field(default_factory=dict)
    packages: Path | None = None
    _usual: "Process | None" = None

    @property
    def is_root(self) -> bool:
        return self.entry.pw_uid == 0

    @property
    def home(self) -> Path:
        """Where the server's files are, unless a test has put them elsewhere."""
        return self.folder / "server" if self.is_root else self.folder / ".local/share/pgq-toolkit"

    @property
    def data(self) -> Path:
        return self.home / "data"

    @property
    def account(self) -> pwd.struct_passwd:
        """Who runs the server of this person."""
        return pwd.getpwnam("pgq-server") if self.is_root else self.entry

    def do(self, verb: str, *arguments: str) -> Any:
        """What a verb returns; raises Failed for what it raises."""
        if self._usual is None:
            self._usual = Process(self)
        return self._usual.ask(verb, *arguments).result()

    def begin(self, verb: str, *arguments: str) -> "Process":
        """Start a verb in a new process, which ends with it."""
        return Process(self).ask(verb, *arguments)

    def alone(self, verb: str, *arguments: str) -> Any:
        """What a verb returns in a process that has ended since."""
        process = self.begin(verb, *arguments)
        try:
            return process.result()
        finally:
            process.end()

    def query(self, statement: str) -> Any:
        """Rows of one statement in the database `pgq`."""
        return self.do("query", self.do("url"), statement)

    def kill(self) -> None:
        """End the server at once, if it runs, and wait until it is gone."""
        server = self.do("status")
        if server["running"]:
            os.kill(server["pid"], signal.SIGKILL)
            until(lambda: not self.do("status")["running"])

    def in_place(self, program: str, *arguments: str) -> "subprocess.Popen[bytes]":
        """Start a program of the machine as the account that runs the server."""
        user = self.account.pw_uid if os.geteuid() == 0 else None
        return subprocess.Popen([program, *arguments], user=user, cwd="/")

    def leave(self) -> None:
        """End the server and remove the folder."""
        for file in self.folder.rglob("postmaster.pid"):
            pid = int((file.read_text().split() or ["0"])[0])
            if pid and _serves(pid, file.parent):
                os.kill(pid, signal.SIGQUIT)
                until(lambda pid=pid, data=file.parent: not _serves(pid, data))  # type: ignore[misc]
        if self._usual:
            self._usual.end()
        shutil.rmtree(self.folder)

    def variables(self) -> dict[str, str]:
        """The environment of what this person does."""
        own = {"PGQ_SERVER_HOME": str(self.home)} if self.is_root else {"HOME": str(self.folder)}
        return {"PATH": os.environ["PATH"], **own, **self.environment}


class Process:
    """A process in which a person acts, one verb after the other."""

    def __init__(self, person: Person) -> None:
        self._person = person
        folders = [person.packages, CHECKOUT, os.environ.get("PYTHONPATH")]
        path = os.pathsep.join(str(folder) for folder in folders if folder)
        command = [sys.executable, "-P", "-W", "error", str(ACTING)]
        self.running = subprocess.Popen(
            # The folder is there for the guard, which ends what has it on its command line.
            [*command, str(person.entry.pw_uid), str(person.entry.pw_gid), str(person.folder)],
            env={**os.environ, "PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1"},
            cwd="/",
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self.running.stdin
        assert self.running.stdout
        self._requests, self._answers = self.running.stdin, self.running.stdout

    def ask(self, verb: str, *arguments: str) -> "Process":
        """Have a verb begun; its end is not waited for."""
        environment = self._person.variables()
        request = {"verb": verb, "arguments": arguments, "environment": environment}
        print(json.dumps(request), file=self._requests, flush=True)
        return self

    def result(self) -> Any:
        """What the verb returned; raises Failed for what it raised."""
        answer = json.loads(self._answers.readline())
        if "error" in answer:
            raise Failed(answer["error"], answer["text"])
        return answer["result"]

    def kill(self) -> None:
        """End it in the middle of what it does."""
        self.running.kill()
        self.end()

    def end(self) -> None:
        """Have it end when it has done all it was asked."""
        self._requests.close()
        self.running.wait()
        self._answers.close()


def until(condition: Callable[[], object], *, seconds: float = 30) -> None:
    """Wait for a condition, looking often."""
    deadline = monotonic() + seconds
    while not condition():
        assert monotonic() < deadline, f"not within {seconds} s"
        Event().wait(0.005)


def _serves(pid: int, data: Path) -> bool:
    """Whether a process is a server of this data folder, by its command line."""
    try:
        return os.fsencode(data) in Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False
