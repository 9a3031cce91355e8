"""How a worker is told to end: by signals, by its own death, by a failure."""

import asyncio
import contextlib
import os
import signal
import socket
import threading
from collections.abc import Iterator, Sequence

from pgq.runner import fork
from pgq.worker import log, supervisor

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def _wake(*_: object) -> None:
    """Let a signal be: a thread hears of it by the wakeup descriptor."""


class Ending:
    """What a worker's process was told; made inside its event loop.

    The first signal drains: nothing more is claimed, what runs may finish. The second hands running
    jobs back, uncharged. The third ends the process at once.
    """

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self.stop = asyncio.Event()
        self.hurry = asyncio.Event()
        self.exit_code = 0
        self.urgent = False
        """Whether the last writes too may take only a while."""
        self.abandoned = False
        """Whether jobs were handed back that still run: they end with the process, at once."""
        self._signals = 0
        self._hung_up = False
        self._heard: Sequence[int] = ()
        self._wakeup = -1

    @contextlib.contextmanager
    def listening(self) -> Iterator[None]:
        """Hear signals in the block; but SIGHUP stays ignored where it is, as under nohup.

        A thread hears them: the main thread may be blocked by a handler for long.
        """
        before = {number: signal.getsignal(number) for number in (*SIGNALS, signal.SIGCHLD)}
        self._heard = heard = [
            number
            for number in SIGNALS
            if number != signal.SIGHUP or before[number] is not signal.SIG_IGN
        ]
        told, telling = socket.socketpair()
        telling.settimeout(0)
        fork.own(telling.fileno())  # what a forked child is told is not for us
        self._wakeup = telling.fileno()
        earlier = signal.set_wakeup_fd(self._wakeup, warn_on_full_buffer=False)
        self.insist()
        # Whoever started us may have ignored it, and that is inherited: then no exit code of a
        # command or process could be had.
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        thread = threading.Thread(
            target=self._hear, args=(told, heard), name="pgq-signals", daemon=True
        )
        thread.start()
        try:
            yield
        finally:
            signal.set_wakeup_fd(earlier)
            for number, handler in before.items():
                if handler is not None:  # None: one in C, which cannot be put back from here
                    signal.signal(number, handler)
            fork.disown(telling.fileno())
            telling.close()
            thread.join()
            told.close()

    def insist(self) -> None:
        """Hear the signals again if a handler on the event loop has taken them for itself.

        The loop's own add_signal_handler() does, and would leave a worker that cannot be stopped.
        """
        signal.set_wakeup_fd(self._wakeup, warn_on_full_buffer=False)
        for number in self._heard:
            if signal.getsignal(number) is not _wake:
                signal.signal(number, _wake)

    def _hear(self, told: socket.socket, wanted: Sequence[int]) -> None:
        while numbers := told.recv(100):
            for number in numbers:
                if number in wanted:
                    self._on_signal(number)

    def _on_signal(self, number: int) -> None:
        if number == signal.SIGHUP:
            if self._hung_up:  # a terminal that closes sends it, and so does the shell in it
                return
            self._hung_up = True
        name = signal.Signals(number).name
        self._signals += 1
        if self._signals == 1:
            log.info("draining: the next signal hands running jobs back", signal=name)
            self._loop.call_soon_threadsafe(self._drain)
        elif self._signals == 2:
            log.info("handing running jobs back: the next signal ends at once", signal=name)
            self._loop.call_soon_threadsafe(self._hurry, 128 + number)
        else:
            log.warning("ended at once; running jobs are reaped by others", signal=name)
            log.flush(0.1)
            os._exit(128 + number)

    def _drain(self) -> None:
        supervisor.stopping()
        self.stop.set()

    def _hurry(self, exit_code: int) -> None:
        self.exit_code = exit_code
        self.lose_patience()

    def lose_patience(self) -> None:
        """Wait no longer for what runs."""
        self.urgent = True
        self.hurry.set()

    def at_once(self) -> None:
        """End without waiting for what runs."""
        self.stop.set()
        self.lose_patience()

    def fail(self) -> None:
        """End, since a part of the worker cannot go on; what runs may finish."""
        self.exit_code = self.exit_code or 1
        self.urgent = True
        self.stop.set()

    def renew(self) -> bool:
        """Begin anew, unless a signal or a failure said otherwise."""
        if self._signals or self.exit_code:
            return False
        self.urgent = False
        self.stop.clear()
        self.hurry.clear()
        return True

    async def pause(self, seconds: float) -> None:
        """Wait so long, or until told to stop."""
        try:
            async with asyncio.timeout(seconds):
                await self.stop.wait()
        except TimeoutError:
            pass
