"""How a worker is told to end: by signals, by its own death, by a failure."""

import asyncio
import os
import signal

from pgq.worker import log, supervisor

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Ending:
    """What a worker's process was told; made inside its event loop.

    The first signal drains: nothing more is claimed, what runs may finish. The second hands running
    jobs back, uncharged. The third ends the process at once.
    """

    def __init__(self) -> None:
        self.stop = asyncio.Event()
        self.hurry = asyncio.Event()
        self.exit_code = 0
        self.urgent = False
        """Whether the last writes too may take only a while."""
        self._signals = 0
        self._hung_up = False

    def listen(self) -> None:
        """Hear signals; but SIGHUP stays ignored where it is, as under nohup."""
        loop = asyncio.get_running_loop()
        for number in SIGNALS:
            if number != signal.SIGHUP or signal.getsignal(number) is not signal.SIG_IGN:
                loop.add_signal_handler(number, self._on_signal, number)

    def _on_signal(self, number: int) -> None:
        if number == signal.SIGHUP:
            if self._hung_up:  # a terminal that closes sends it, and so does the shell in it
                return
            self._hung_up = True
        name = signal.Signals(number).name
        self._signals += 1
        if self._signals == 1:
            log.info("draining: the next signal hands running jobs back", signal=name)
            supervisor.stopping()
            self.stop.set()
        elif self._signals == 2:
            log.info("handing running jobs back: the next signal ends at once", signal=name)
            self.exit_code = 128 + number
            self.lose_patience()
        else:
            log.warning("ended at once; running jobs are reaped by others", signal=name)
            os._exit(128 + number)

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
