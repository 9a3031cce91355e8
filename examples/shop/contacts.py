"""The CRM: one contact per customer, kept up to date in the shop's database.

An `async def` handler: psycopg waits on the worker's event loop, a hundred jobs at a time.
"""

import os

import psycopg

from examples.shop.app import app

SYNC = """
    insert into shop.contacts (email, name, country, orders, last_order_at)
    select
        email,
        (array_agg(name order by placed_at desc))[1],
        (array_agg(country order by placed_at desc))[1],
        count(*),
        max(placed_at)
    from shop.orders
    where email = %(email)s
    group by email
    on conflict (email) do update set
        name = excluded.name,
        country = excluded.country,
        orders = excluded.orders,
        last_order_at = excluded.last_order_at
    -- Another job of this customer may have seen a later order and been faster.
    where contacts.last_order_at <= excluded.last_order_at
"""


@app.job("sync_contact", max_attempts=5)
async def sync_contact(email: str) -> dict[str, bool]:
    """Bring a contact up to date with the orders.

    The payload says whose; what the contact becomes is read from the orders, so that running
    the job twice, or late, is harmless.
    """
    async with await psycopg.AsyncConnection.connect(os.environ["SHOP_DSN"]) as conn:
        cursor = await conn.execute(SYNC, {"email": email})
    return {"changed": cursor.rowcount == 1}
