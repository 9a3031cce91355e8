"""The queue worked by psql alone, as any language could."""

import json

from tests.support.psql import psql

WORK = """
select pgq.register_worker('shell', 1, '1', array['default']) as worker_id \\gset

-- Enqueue, by function and by hand.
begin;
select * from pgq.enqueue('mail', '{"to": "ann@example.org"}', priority => 5);
insert into pgq.jobs (kind, payload) values ('mail', '{"to": "bob@example.org"}');
insert into pgq.jobs (kind) values ('broken');
commit;
copy pgq.jobs (kind, payload) from stdin;
mail\t{"to": "cid@example.org"}
\\.

-- Claim one at a time; an attempt that fails, one that is done.
select id, lease, kind, payload->>'to' as "to", attempts from pgq.claim(:worker_id, '{default}', 1);
select id, lease, attempts from pgq.jobs where status = 'running' \\gset
select pgq.finish(:worker_id, array[:id], array[:'lease'::bigint], array[:attempts]);

select id, lease, attempts from pgq.claim(:worker_id, '{default}', 1, '{broken}') \\gset
select pgq.settle(:worker_id, array[:id], array[:'lease'::bigint], array[:attempts],
    '{buried}', array[null::interval], '{it is broken}', '{null}');

-- And the rest in one batch.
create temp table mine as select * from pgq.claim(:worker_id, '{default}', 100);
select pgq.finish(:worker_id, array_agg(id), array_agg(lease), array_agg(attempts)) from mine;
select pgq.stop_worker(:worker_id);
"""


def test_psql_alone_enqueues_claims_and_finishes(shared: str) -> None:
    psql(shared, WORK)

    ended = psql(
        shared,
        "select kind, payload->>'to', status, attempts, last_error from pgq.jobs order by id;"
        "select queue, status, count(*) from pgq.jobs group by 1, 2 order by 1, 2;"
        "select sum(done), sum(failed) from pgq.throughput;",
    )

    assert ended == [
        "mail|ann@example.org|done|1|",
        "mail|bob@example.org|done|1|",
        "broken||failed|1|it is broken",
        "mail|cid@example.org|done|1|",
        "default|done|3",
        "default|failed|1",
        "3|1",
    ]


def test_a_lost_lease_shows_in_psql(shared: str) -> None:
    lost = psql(
        shared,
        "select pgq.register_worker('shell', 1, '1', array['default']) as worker_id \\gset\n"
        "select id from pgq.enqueue('mail') \\gset\n"
        "select lease from pgq.claim(:worker_id, '{default}', 1) \\gset\n"
        "select outcome from pgq.requeue(array[:id], true);\n"
        "select cardinality("
        "    pgq.finish(:worker_id, array[:id], array[:'lease'::bigint], array[1]));",
    )

    assert lost == ["requeued", "1"]


def test_json_comes_out_of_psql_as_it_went_in(shared: str) -> None:
    payload = {"text": '日本語 🎉 "quoted" \\ back', "number": 1.5, "list": [None, True, {}]}
    written = json.dumps(payload, ensure_ascii=False).replace("'", "''")

    (read,) = psql(
        shared,
        f"insert into pgq.jobs (kind, payload) values ('k', '{written}');"
        " select payload from pgq.jobs;",
    )

    assert json.loads(read) == payload
