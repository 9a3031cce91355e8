"""The yardstick: a hand-written claim-and-finish loop, and nothing else.

The table has the columns that matter and the two indexes that claiming needs. Claims and finishes
are overlapped on two connections in batches of 500; finished rows are kept, writes are guarded by
the id alone, and there are no leases, retries, heartbeats, counters, timeouts or logs. It is what
one would write for speed only, with the same driver and the same pinned plans.
"""

import asyncio
import time
from datetime import UTC, datetime
from typing import Any

import psycopg

BATCH = 500

SCHEMA = """
create schema bare;
create table bare.jobs (
    id bigint generated always as identity primary key,
    queue text not null default 'default',
    kind text not null,
    payload jsonb not null,
    status text not null default 'pending',
    priority smallint not null default 0,
    attempts integer not null default 0,
    scheduled_at timestamptz not null default now(),
    locked_at timestamptz,
    finished_at timestamptz
) with (fillfactor = 50);
create index on bare.jobs (queue, priority desc, scheduled_at, id) where status = 'pending';
create function bare.claim(p_limit integer, p_at timestamptz, p_id bigint)
returns table (id bigint, payload jsonb, scheduled_at timestamptz)
language plpgsql set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off
set enable_mergejoin = off set plan_cache_mode = force_generic_plan as $$
begin
    return query
    with c as materialized (
        select j.id from bare.jobs j
        where j.queue = 'default' and j.status = 'pending' and j.priority = 0
            and (j.scheduled_at, j.id) >= (p_at, p_id) and j.scheduled_at <= now()
        order by j.queue, j.priority desc, j.scheduled_at, j.id
        limit p_limit for update skip locked
    )
    update bare.jobs j set status = 'running', attempts = j.attempts + 1, locked_at = now()
    from c where j.id = c.id returning j.id, j.payload, j.scheduled_at;
end $$;
create function bare.finish(p_ids bigint[]) returns void
language plpgsql set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off
set enable_mergejoin = off set plan_cache_mode = force_generic_plan as $$
begin
    update bare.jobs j set status = 'done', finished_at = now()
    from unnest(p_ids) u (id) where j.id = u.id;
end $$;
"""

FILL = """
insert into bare.jobs (kind, payload)
select 'noop', jsonb_build_object('n', n) from generate_series(1, %s) n
"""


async def noop(n: int) -> None:
    """The handler."""


async def drain(dsn: str, jobs: int) -> float:
    """Work all jobs off; gives the seconds from the first claim to the last finish."""
    claims = await psycopg.AsyncConnection.connect(dsn, autocommit=True, prepare_threshold=0)
    finishes = await psycopg.AsyncConnection.connect(dsn, autocommit=True, prepare_threshold=0)
    ready: asyncio.Queue[list[Any]] = asyncio.Queue(2)
    done: asyncio.Queue[list[int]] = asyncio.Queue()
    began = time.perf_counter()

    async def claim() -> None:
        at, last = datetime(2000, 1, 1, tzinfo=UTC), 0
        while True:
            cursor = await claims.execute(
                "select * from bare.claim(%s, %s, %s)", (BATCH, at, last), binary=True
            )
            rows = await cursor.fetchall()
            await ready.put(rows)
            if not rows:
                return
            last, _, at = rows[-1]

    async def run() -> None:
        while rows := await ready.get():
            for _, payload, _ in rows:
                await noop(**payload)
            await done.put([row[0] for row in rows])
        await done.put([])

    async def finish() -> None:
        while ids := await done.get():
            text = "{" + ",".join(map(str, ids)) + "}"
            await finishes.execute("select bare.finish(%s::bigint[])", (text,))

    await asyncio.gather(claim(), run(), finish())
    seconds = time.perf_counter() - began
    cursor = await claims.execute("select count(*) from bare.jobs where status = 'done'")
    assert await cursor.fetchone() == (jobs,)
    await claims.close()
    await finishes.close()
    return seconds


def listen_and_claim(dsn: str, jobs: int, ready: Any, taken: list[float]) -> None:
    """The bare worker for latency: LISTEN, and claim one job per look; notes the milliseconds."""
    conn = psycopg.connect(dsn, autocommit=True, prepare_threshold=0)
    conn.execute("listen bare")
    ready.set()
    at, last = datetime(2000, 1, 1, tzinfo=UTC), 0
    while len(taken) < jobs:
        rows = conn.execute("select * from bare.claim(%s, %s, %s)", (BATCH, at, last)).fetchall()
        for job_id, payload, scheduled_at in rows:
            taken.append((time.time() - payload["sent"]) * 1000)
            last, at = job_id, scheduled_at
        if not rows:
            for _ in conn.notifies(timeout=1, stop_after=1):
                pass
    conn.close()
