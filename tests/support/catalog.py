"""What a schema consists of, as text to compare."""

from typing import Any

import psycopg

QUESTIONS = (
    # Columns with their types and defaults.
    (
        "select 'column', c.relname, a.attname, pg_catalog.format_type(a.atttypid, a.atttypmod),"
        " a.attnotnull::text, a.attidentity::text, pg_catalog.pg_get_expr(d.adbin, d.adrelid)"
        " from pg_catalog.pg_class as c"
        " join pg_catalog.pg_attribute as a on a.attrelid = c.oid and a.attnum > 0"
        " left join pg_catalog.pg_attrdef as d on d.adrelid = c.oid and d.adnum = a.attnum"
        " where c.relnamespace = %(schema)s::regnamespace and c.relkind in ('r', 'p', 'v')"
        " and not a.attisdropped"
    ),
    (
        "select 'relation', c.relname, c.relkind::text, c.reloptions::text"
        " from pg_catalog.pg_class as c where c.relnamespace = %(schema)s::regnamespace"
    ),
    (
        "select 'constraint', n.conname, pg_catalog.pg_get_constraintdef(n.oid)"
        " from pg_catalog.pg_constraint as n where n.connamespace = %(schema)s::regnamespace"
    ),
    (
        "select 'index', i.indexname, i.indexdef from pg_catalog.pg_indexes as i"
        " where i.schemaname = %(schema)s"
    ),
    (
        "select 'function', p.proname, pg_catalog.pg_get_functiondef(p.oid), p.proacl::text"
        " from pg_catalog.pg_proc as p where p.pronamespace = %(schema)s::regnamespace"
    ),
    (
        "select 'trigger', t.tgname, pg_catalog.pg_get_triggerdef(t.oid)"
        " from pg_catalog.pg_trigger as t join pg_catalog.pg_class as c on c.oid = t.tgrelid"
        " where c.relnamespace = %(schema)s::regnamespace and not t.tgisinternal"
    ),
    (
        "select 'type', t.typname, t.typtype::text from pg_catalog.pg_type as t"
        " where t.typnamespace = %(schema)s::regnamespace"
    ),
)


def fingerprint(conn: psycopg.Connection[Any], schema: str = "pgq") -> list[str]:
    """Every object of a schema in a line: equal lists mean equal schemas.

    Names are written as an empty search path wants them, so that a default or a body that means
    another schema's function shows.
    """
    with conn.transaction():
        conn.execute("set local search_path = ''")
        found = [
            row
            for question in QUESTIONS
            for row in conn.execute(question.encode(), {"schema": schema}).fetchall()
        ]
    return sorted(str(row) for row in found)
