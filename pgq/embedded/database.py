"""The only talk with a private server that is not the queue's own: is it up, has it `pgq`."""

from pgq.embedded import failures
from pgq.embedded.layout import DATABASE, Layout


def obstacle(layout: Layout) -> str | None:
    """Why the server cannot be used yet; None when it can. A missing database is made."""
    import psycopg
    from psycopg import errors

    try:
        with psycopg.connect(
            layout.url("postgres"), autocommit=True, connect_timeout=5, application_name="pgq"
        ) as connection:
            query = "select from pg_catalog.pg_database where datname = %s"
            if connection.execute(query, [DATABASE]).fetchone() is None:
                connection.execute(f"create database {DATABASE} template template0")
    except (errors.DuplicateDatabase, errors.UniqueViolation):
        return None  # another command made it at the same moment
    except psycopg.OperationalError as error:
        return failures.cause(str(error))
    return None
