"""A chaos run in figures: as JSON for the record, as text for the one who waits. Pure."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any, assert_never

from tests.chaos.history import Event, History, How, Killed, Outage, Stopped, Terminated, Told
from tests.chaos.invariants import Verdict
from tests.chaos.timeline import Timeline

SHOWN = 20
"""Violations that are printed; the JSON has all."""


def figures(history: History, verdict: Verdict, about: Mapping[str, Any]) -> dict[str, Any]:
    """What happened, as a JSON object; `about`: how to have it happen again."""
    statuses = Counter(job.status for job in history.jobs)
    return {
        **about,
        "faults": dict(sorted(Counter(_fault(history, event) for event in history.events).items())),
        "jobs": {"enqueued": len(history.orders), **dict(sorted(statuses.items()))},
        "attempts": dict(sorted(Counter(found.outcome for found in history.attempts).items())),
        "executions": {
            "begun": len(history.executions),
            "interrupted": sum(found.end is None for found in history.executions),
            "done": sum(found.how is How.DONE for found in history.executions),
        },
        "processes": len(history.processes),
        "exit_codes": _exit_codes(history),
        "overlaps": dict(verdict.overlaps),
        "longest_overlap": verdict.longest_overlap,
        "longest_overlap_awake": verdict.longest_awake,
        "repeats": dict(verdict.repeats),
        "recovery": asdict(verdict.recovery),
        "violations": [str(violation) for violation in verdict.violations],
    }


def _fault(history: History, event: Event) -> str:
    match event:
        case Killed():
            return "SIGKILL"
        case Stopped():
            past = event.until - event.at >= history.rules.visibility
            return "SIGSTOP past the timeout" if past else "SIGSTOP"
        case Told():
            return "SIGTERM"
        case Terminated():
            return f"backend terminated: {event.role}"
        case Outage():
            return "server crash"
        case _:
            assert_never(event)


def _exit_codes(history: History) -> dict[str, int]:
    """By how each process ended; a negative one is the signal that ended it."""
    timeline = Timeline(history)
    codes: Counter[str] = Counter()
    for process in history.processes:
        told = timeline.told(process.name) <= timeline.gone(process.name)
        codes[f"{process.exit_code}{' after SIGTERM' if told else ''}"] += 1
    return dict(sorted(codes.items()))


def text(found: Mapping[str, Any]) -> str:
    """The same for people."""
    recovery = found["recovery"]
    judged = f"{recovery['judged']} judged, promised {recovery['promised']} s"
    lines = [
        *(f"{name:12} {_list(found[name])}" for name in ("jobs", "faults", "attempts")),
        f"executions   {_list(found['executions'])}",
        f"processes    {found['processes']}, exit codes: {_list(found['exit_codes'])}",
        f"overlaps     {_list(found['overlaps'])}",
        f"  longest    {found['longest_overlap']} s, {found['longest_overlap_awake']} s awake",
        f"repeated     {_list(found['repeats'])}",
        f"recovery     median {recovery['median']} s, longest {recovery['longest']} s of {judged}",
        *(
            f"  excused    {found['samples']}, longest {found['longest']} s: {excuse}"
            for excuse, found in recovery["excused"].items()
        ),
        f"violations   {len(found['violations'])}",
        *_shown(found["violations"]),
    ]
    return "\n".join(lines)


def soak_text(found: Mapping[str, Any]) -> str:
    """A soak in figures."""
    waits = [seen["wait_p99"] for seen in found["series"]["queue"]]
    lines = [f"jobs         {_list(found['jobs'])}"]
    for worker, trends in found["trends"].items():
        lines.append(worker)
        lines += [
            f"  {trend['measure']:12} {trend['first']:>9g} first, {trend['last']:>9g} last, "
            f"{trend['most']:>9g} most  {'flat' if trend['flat'] else 'GROWS'}"
            for trend in trends
        ]
    lines.append(f"wait p99     {max(waits, default=0):g} s at most in one sample")
    lines.append(f"violations   {len(found['violations'])}")
    return "\n".join([*lines, *_shown(found["violations"])])


def _shown(violations: Sequence[str]) -> list[str]:
    shown = [f"  {violation}" for violation in violations[:SHOWN]]
    more = len(violations) - SHOWN
    return [*shown, f"  and {more} more"] if more > 0 else shown


def _list(counts: Mapping[str, int]) -> str:
    return "; ".join(f"{name} {count}" for name, count in counts.items()) or "none"
